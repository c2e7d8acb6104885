"""The report: one HTML file that needs nothing else and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from bayeslink.errors import OutputError, SettingsError
from bayeslink.report import fit, sections, uncertainty
from bayeslink.report.charts import Counts
from bayeslink.report.examples import examples
from bayeslink.report.material import Material, gather, read_truth
from bayeslink.report.svg import asset, escape, tag
from bayeslink.results.evaluation import evaluate

_CONTENTS = {
    "fit": "Does it fit?",
    "fields": "Fields",
    "patterns": "Patterns",
    "prior": "Prior",
    "w0": "Pairs drawn",
    "blocks": "Blocks",
    "posterior": "Number of links",
    "probabilities": "Probabilities",
    "diagnostics": "Diagnostics",
    "examples": "Examples",
    "repeat": "To repeat it",
}


def report(
    source: Any,
    path: str | Path | None = None,
    *,
    truth: Any = None,
    disclosure: int | None = None,
    values: bool = True,
    a: Any = None,
    b: Any = None,
) -> Path:
    """Write the report of a run as one HTML file, and return its path.

    Parameters
    ----------
    source
        The directory a run was saved to, or a `Run`.
    path
        The file to write; report.html in the directory unless given.
    truth
        Known true pairs, a file or a table with id_a and id_b: adds how well it went and whether
        the probabilities are calibrated.
    disclosure
        Counts below this are shown as "< k", and no single records are.
    values
        Whether the examples show the records' values.
    a, b
        Where the inputs of a run directory are now, if they are not where they were.
    """
    if path is None:
        if not isinstance(source, str | os.PathLike):
            raise SettingsError("name the file to write, such as run.report('report.html').")
        path = Path(source) / "report.html"
    if disclosure is not None and (isinstance(disclosure, bool) or disclosure < 1):
        raise SettingsError(f"disclosure must be a whole number from 1 up, got {disclosure!r}.")
    made = page(gather(source, a, b), truth=truth, counts=Counts(disclosure or 0), values=values)
    target = Path(path)
    _write(target, made)
    return target


def page(material: Material, *, truth: Any, counts: Counts, values: bool) -> str:
    """The page as text."""
    known = None if truth is None else read_truth(truth)
    result = None if known is None else evaluate(material.links, known)
    title = sections.title(material, counts)
    parts = [
        fit.section_of(material, counts),
        sections.fields(material, counts),
        sections.patterns(material, counts),
        sections.prior(material, counts),
    ]
    if material.pairs is not None:
        parts += [
            uncertainty.threshold(material, counts),
            uncertainty.blocks(material, counts),
            uncertainty.number_of_links(material, counts),
            uncertainty.probabilities(material, counts, known),
            uncertainty.diagnostics(material, counts),
        ]
    parts += [
        examples(material, values=values, hidden=counts.least > 0),
        sections.provenance(material, counts),
    ]
    body = (
        tag("h1", escape(title))
        + sections.overview(material, counts, result)
        + _contents("".join(parts))
        + "".join(parts)
    )
    return _filled(title, body)


def _contents(body: str) -> str:
    here = {name: words for name, words in _CONTENTS.items() if f'id="{name}"' in body}
    entries = (tag("a", words, href=f"#{name}") for name, words in here.items())
    return tag("nav", " ".join(entries), aria_label="Contents")


def _filled(title: str, body: str) -> str:
    style, script = asset("charts.css") + asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "title": escape(title), "style": style, "script": script}
    before, after = asset("page.html").split("{body}")
    for name, part in parts.items():
        before, after = (piece.replace(f"{{{name}}}", part) for piece in (before, after))
    return before + body + after


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _write(target: Path, text: str) -> None:
    """Write the file whole or not at all."""
    try:
        handle, scratch = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            os.chmod(scratch, 0o644)
            os.replace(scratch, target)
        except BaseException:
            os.unlink(scratch)
            raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(
            f"cannot write {target}: {reason}. What was there is untouched. "
            "Check the permissions and the space left, or choose another place with -o."
        ) from None
