"""Pages of the documentation that are made from the code each time the site is built.

A hook of MkDocs (mkdocs.yml). What the code has and no words are given for here is an error: the
reference can be short, but not behind.
"""

import inspect
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import click
import notebook_page  # beside this one
import pyarrow.parquet as pq

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.linkage.clustering import ClusterDecision
from bayeslink.linkage.decisions import Decision
from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.linkage.posthoc import Blocks
from bayeslink.linking.dedupe import DedupeRun
from bayeslink.options import TYPE_NAMES
from bayeslink.runs.link_toml import KEYS
from bayeslink.runs.run import Run
from bayeslink.sampling.clusters import ClusterPosterior, Entities
from bayeslink.sampling.posterior import Posterior
from bayeslink.suggesting.suggestion import Suggestion

ROOT = Path(__file__).parents[1]
TOPICS = {
    "Link": "link dedupe link_many profile suggest compare open_run relink update changes",
    "Say how files are read": "ReadOptions",
    "Look at the pieces": "fit_penalized penalty_path posthoc_blocks block_curve sample "
    "sensitivity",
    "Priors and losses": "Overlap Penalty Loss ClusterSizes ClusterLoss",
    "Carry the uncertainty on": "pool population_size population_from_lists list_counts chapman "
    "lincoln_petersen coverage cross_table expected",
    "Judge": "draw_sample plan_sample evaluate_sample evaluate read_labels export_labels",
    "With other tools": "read_splink from_splink splink_predictions splink_clusters splink_labels "
    "read_clusters write_clusters from_recordlinkage from_fastlink from_table given_levels",
    "Classical methods": "fit_em fellegi_sunter assign_em",
    "Simulate": "simulate simulate_duplicates write_simulation",
    "Draw": "plots",
    "Errors": "BayeslinkError InputError OutputError SettingsError",
}
RESULTS = (
    Run, DedupeRun, Suggestion, PenalizedFit, Blocks, Posterior, Decision, Entities,
    ClusterPosterior, ClusterDecision,
)  # fmt: skip
# Keys of link.toml without a flag of their name.
TOML = {
    "a": "The first file: a path, seen from the folder of this link.toml.",
    "b": "The second file.",
    "id": "Id column, or [in A, in B]; [] numbers the rows.",
    "fields": "What is compared: a [[fields]] table each, with `column` (or `columns` = [in A, in "
    "B]), `compare` and the settings of that [comparison](../comparisons.md).",
    "wrong_fields": "Links seen before, a list for each number of missing fields: how many had no "
    "field wrong, one, two. `--update` and `--model` write it.",
    "loss": "What errors and review cost: `{reject = .1}`; keys as of `bl.Loss`.",
    "output": "Directory for the results, unless -o says another.",
}
FILES = {
    "linked": "the linked file: A's columns, B's with `_b` where names clash, the link probability",
    "unlinked_a": "records of A without a link, as they came",
    "unlinked_b": "records of B without a link",
    "links": "links and pairs left to review, with their probabilities; weights in bits",
    "pairs": "every candidate pair, the most probable first, with the level of each field",
    "reach": "a pair of some records without link or candidate, and its chance, for judged samples",
    "draws": "one row a draw: links, log posterior, m and u",
    "link_draws": "for each pair (its row in pairs.parquet) the runs of draws with it linked",
    "parameters": "m, u and the weight in bits of each level of each field, with 95 % intervals",
    "labels": "pairs that were known before the run",
    "model.json": "what was learned, as a prior for the next linkage (`--model`)",
    "link.toml": "the settings: `bayeslink link --config OUT/link.toml` repeats the run",
    "state.npz": "the rest of what `bl.open_run` needs to give back all of the run",
    "run.json": "the run in numbers and its provenance; keys below",
    "input_a": "input A, with `--keep-inputs`",
    "input_b": "input B, with `--keep-inputs`",
}
SUMMARY = {
    "n_a": "records of A",
    "n_b": "records of B",
    "n_pairs": "pairs in scope",
    "n_links": "links of the estimate",
    "theta": "what one more link costs at the number of links found (natural log)",
    "prior": "on the number of links",
    "structure": "how fields depend on each other, as learned",
    "fit": "whether the model fits: `fits`, and what was held against the data",
    "search": "how all pairs were searched",
    "point_estimate": "the penalized-likelihood estimate and its modes",
    "seconds": "by phase",
    "links_mean": "posterior mean of L, the number of links",
    "links_interval": "95 % interval of L, with the doubt about links that are only counted",
    "links_pointed": "links expected among pairs that can be pointed to, known ones too",
    "links_counted": "links expected among all other pairs",
    "links_by_chance": "links that pairs within the files explain as well; not among those pointed "
    "to",
    "links_identified": "whether L is identified; if not, the interval has its bounds",
    "expected_false_links": "among the links, by their probabilities",
    "review_records": "records left to review",
    "restricted": "whether only pairs above w0 could link",
    "w0": "weight above which pairs are swept over (natural log)",
    "w0_why": "why that w0",
    "links_outside": "links expected among pairs that are not listed",
    "candidates": "pairs swept over",
    "listed": "pairs listed, swept over or not",
    "links_elsewhere": "links expected among pairs that are no candidates",
    "known_links": "links that were known before",
    "blocks": "post-hoc blocks",
    "largest_block": "its number of pairs",
    "blocks_drawn": "blocks by the way they are drawn",
    "chains": "chains",
    "draws": "draws kept of each chain",
    "tune": "draws before those",
    "warnings": "the [warnings](warnings.md), in words",
    "kept_every": "of so many draws, the links of one are kept",
    "diagnostics": "R-hat, effective sample size, Monte Carlo error of each quantity",
    "created": "when",
    "versions": "of bayeslink and the libraries it rests on",
    "python": "version",
    "platform": "system",
    "engine": "which engine compared the pairs",
    "inputs": "both files: name, kind, SHA-256, records, rows set aside",
    "fields": "each field: comparison, levels, pairs by level, distinct and missing values",
    "left_out": "columns that are not compared, each with the reason, where fields were chosen",
    "memory": "the budget and what was used of it",
    "files": "SHA-256 of each file here",
    "format": "version of this directory; bayeslink opens one format",
    "path": "links of the penalized-likelihood estimate around theta, followed up and down",
}


def on_files(files: Any, config: Any) -> Any:
    """Called by MkDocs."""
    from mkdocs.structure.files import File

    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """The pages that are made: path and Markdown."""
    yield "reference/python.md", python_page()
    yield "reference/command-line.md", command_line_page()
    yield "reference/link-toml.md", link_toml_page()
    yield "reference/run-directory.md", run_directory_page()
    yield "notebook.md", notebook_page.notebook_page()
    yield "changelog.md", (ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")


# --- Python ------------------------------------------------------------------------------------


def python_page() -> str:
    topics = {topic: names.split() for topic, names in TOPICS.items()}
    topics["Compare"] = ["Field", *COMPARISONS]
    told = {name for names in topics.values() for name in names}
    if missed := told ^ {name for name in bl.__all__ if name != "__version__"}:
        raise SystemExit(f"tools/reference.py: public names without a topic, or gone: {missed}")
    parts = ["# Python", "`import bayeslink as bl`. Names are imported when first used."]
    for topic, names in topics.items():
        parts.append(f"## {topic}")
        parts += [entry(f"bl.{name}", getattr(bl, name), 3) for name in names]
    parts.append("## What they give back")
    for found in RESULTS:
        parts.append(entry(found.__name__, found, 3))
        parts += [entry(f".{name}", member, 4) for name, member in members(found)]
    return "\n\n".join(parts) + "\n"


def members(found: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, in the order of its source, and those inherited."""
    ours = [cls for cls in found.__mro__ if cls.__module__.startswith("bayeslink.")]
    own: dict[str, Any] = {}
    for cls in ours:
        own = {**own, **{name: m for name, m in vars(cls).items() if name not in own}}
    for name, member in own.items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        if inspect.getdoc(member):
            yield name, member


def entry(name: str, found: Any, level: int) -> str:
    """Heading, signature and docstring of one thing."""
    head = f"{'#' * level} `{name}`"
    doc = inspect.getdoc(found) or ""
    if inspect.isclass(found) and is_dataclass(found):
        shown = "" if doc.startswith(found.__name__ + "(") else as_markdown(doc)
        signature = f"```text\n{name}{plain_signature(found)}\n```" if level == 3 else ""
        return "\n\n".join(filter(None, [head, "" if found in RESULTS else signature, shown]))
    if inspect.ismodule(found):
        names = [n for n, f in vars(found).items() if inspect.isfunction(f) and n[0] != "_"]
        return f"{head}\n\n{as_markdown(doc)}\n\nFunctions: {', '.join(f'`{n}`' for n in names)}."
    if isinstance(found, property) or inspect.isclass(found):
        return f"{head}\n\n{as_markdown(doc)}"
    return f"{head}\n\n```text\n{name}{plain_signature(found)}\n```\n\n{as_markdown(doc)}"


def plain_signature(found: Any) -> str:
    """The signature without types, which the docstring says in words."""
    signature = inspect.signature(found)
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<function <lambda>[^>]*>", "…", text)
    if len(text) < 80:
        return text
    return "(\n    " + ",\n    ".join(_parameters(text[1:-1])) + ",\n)"


def _parameters(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()]


def as_markdown(doc: str) -> str:
    """A numpydoc docstring as Markdown: its sections become bold words, its entries lists."""
    out: list[str] = []
    lines, at, section = doc.splitlines(), 0, ""
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and line and set(lines[at + 1]) == {"-"}:
            section = line
            out += ["", f"**{line}**", ""]
            at += 2
            continue
        if section in ("Parameters", "Returns", "Attributes", "Yields") and line:
            out.append(f"    {line.strip()}" if line.startswith(" ") else f"- `{line}` —")
        elif line.startswith(">>>"):
            code = []
            while at < len(lines) and lines[at]:
                code.append(lines[at])
                at += 1
            out += ["```text", *code, "```"]
            continue
        else:
            out.append(line)
        at += 1
    return "\n".join(out)


# --- the command line --------------------------------------------------------------------------


def command_line_page() -> str:
    parts = [
        "# Command line",
        "Every command takes `-h`. Exit codes: 0 done, 2 usage, 3 bad input or settings, 4 could "
        "not write, 130 interrupted (143 by SIGTERM), 1 a fault of bayeslink itself.",
    ]
    context = click.Context(main, info_name="bayeslink")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=96)
        parts.append(f"## `{name}`\n\n```text\n{command.get_help(inner)}\n```")
    return "\n\n".join(parts) + "\n"


# --- link.toml ---------------------------------------------------------------------------------


def link_toml_page() -> str:
    flags = {p.name: p for p in main.commands["link"].params if isinstance(p, click.Option)}
    rows = []
    for key, types in KEYS.items():
        words = TOML.get(key) or (flags[key].help if key in flags else None)
        if words is None:
            raise SystemExit(f"tools/reference.py: no words for the key {key!r} of link.toml")
        kinds = " or ".join(TYPE_NAMES[t] for t in types)
        rows.append(f"| `{key}` | {kinds} | {words.replace('|', chr(92) + '|')} |")
    fields = [f"`{name}`" for name in COMPARISONS if name != "custom"]
    return "\n".join(
        [
            "# link.toml",
            "",
            "What a run is made of, as a file: `bayeslink init` writes one to change, every run "
            "its own to repeat it (`bayeslink link --config link.toml`). Flags win over it. Paths "
            "are seen from the folder it lies in. A setting that differs between the files is a "
            'list of two, `""` (for `id`, `[]`) where a file has none: `encoding = ["cp1252", ""]`'
            '; for `missing` it is `{a = ["NA"], b = ["999"]}`.',
            "",
            "| key | takes | meaning |",
            "|---|---|---|",
            *rows,
            "",
            f"Comparisons of a `[[fields]]` table: {', '.join(fields)}.",
            "",
        ]
    )


# --- the run directory ---------------------------------------------------------------------------


def run_directory_page() -> str:
    """Made from a run: its files, their columns, the keys of its run.json."""
    files = bl.simulate(150, seed=1)
    fields = [bl.name("gname"), bl.name("fname"), bl.date("dob")]
    known = list(
        zip(*(files.truth[side].to_pylist()[:1] for side in ("id_a", "id_b")), strict=True)
    )
    run = bl.link(files.a, files.b, fields, known_links=known, draws=100, tune=100, chains=2)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        run.save(folder, keep_inputs=True)
        found = sorted(path.name for path in folder.iterdir())
        schemas = {p.name: pq.read_schema(p) for p in sorted(folder.glob("*.parquet"))}
        summary = json.loads((folder / "run.json").read_text("utf-8"))
    return "\n".join(
        [
            "# Run directory",
            "",
            "What `-o OUT` and `run.save` write. Only you may read it, unless `--group-readable`. "
            "CSV is made safe for spreadsheets: an apostrophe stands before a text that would be "
            "a formula. `bl.open_run(OUT)` gives back all that `bl.link` gave.",
            "",
            "| file | what it holds |",
            "|---|---|",
            *(f"| `{name}` | {_said(FILES, name)} |" for name in found),
            "| `review.sqlite` | what was judged (`bayeslink review`) |",
            "| `report.html` | the report (`bayeslink report`) |",
            "",
            "## Columns",
            "",
            "Of a run with fields gname, fname and dob.",
            "",
            "| table | columns |",
            "|---|---|",
            *(
                f"| `{name}` | {', '.join(f'`{c}`' for c in _by_field(schema.names))} |"
                for name, schema in schemas.items()
                if not name.startswith(("input_", "linked", "unlinked"))
            ),
            "",
            "## run.json",
            "",
            "| key | meaning |",
            "|---|---|",
            *(f"| `{key}` | {_said(SUMMARY, key)} |" for key in summary),
            "",
        ]
    )


def _by_field(names: list[str]) -> list[str]:
    """Columns of each field and level told once."""
    return list(dict.fromkeys(re.sub(r"^([mu])\[.*\]", r"\1[FIELD, LEVEL]", n) for n in names))


def _said(words: dict[str, str], name: str) -> str:
    found = words.get(name) or words.get(name.split(".")[0])
    if found is None:
        raise SystemExit(f"tools/reference.py: no words for {name!r} of a run directory")
    return found
