"""The report: one HTML file that needs nothing else and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayeslink.errors import OutputError, SettingsError, reason_of
from bayeslink.private import mode_within, written_whole
from bayeslink.report import fields, finding, fit, patterns, sections, uncertainty
from bayeslink.report.charts import Counts
from bayeslink.report.disclosed import disclosed_page
from bayeslink.report.examples import examples
from bayeslink.report.material import Material, gather
from bayeslink.report.svg import asset, escape, tag
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.evaluation import evaluate_links
from bayeslink.runs.pair_files import pairs_of
from bayeslink.runs.run import Run


def report(
    run: Run,
    path: str | Path | None = None,
    *,
    truth: Any = None,
    disclosure: int | None = None,
    values: bool = True,
) -> Path:
    """Write the report of a run as one HTML file, and return its path: see `Run.report`."""
    target = place_of(run, path)
    if disclosure is not None and (isinstance(disclosure, bool) or disclosure < 1):
        raise SettingsError(f"disclosure must be a whole number from 1 up, got {disclosure!r}.")
    material, known = gather(run), None if truth is None else pairs_of(truth, "truth")
    if disclosure is None:
        title, body = page(material, truth=known, values=values)
    else:
        title, body = disclosed_page(material, Counts(disclosure), known)
    write_page(target, filled(title, body), mode_within(run.directory or target.parent))
    return target


def place_of(run: Run | DedupeRun, path: str | Path | None) -> Path:
    """Where the report goes: to the run's directory unless told otherwise."""
    if path is None and run.directory is None:
        raise SettingsError("name the file to write, such as run.report('report.html').")
    return Path(str(run.directory), "report.html") if path is None else Path(path)


def page(material: Material, *, truth: pa.Table | None, values: bool) -> tuple[str, str]:
    """The title and the body of the page."""
    result = None if truth is None else evaluate_links(material.links, truth)
    title = finding.title(material)
    parts = [
        fit.section_of(material),
        fields.fields(material),
        fields.unlinkable(material),
        patterns.patterns(material, values=values),
        sections.prior(material),
    ]
    if material.pairs is not None:
        parts += [
            uncertainty.threshold(material),
            uncertainty.blocks(material),
            uncertainty.number_of_links(material),
            uncertainty.probabilities(material, truth),
            uncertainty.thresholds(material),
            uncertainty.diagnostics(material),
        ]
    parts += [
        examples(material, values=values),
        sections.provenance(material),
    ]
    return title, (
        tag("h1", escape(title))
        + finding.overview(material, result)
        + fields.compared(material.summary)
        + finding.on_details()
        + "".join(parts)
    )


def filled(title: str, body: str) -> str:
    """A page that needs nothing else, of a title and the markup of its body."""
    style, script = asset("charts.css") + asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "title": escape(title), "style": style, "script": script}
    parts["body"] = body
    # In one pass: what is filled in may hold such a name itself.
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], asset("page.html"))


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def write_page(target: Path, text: str, mode: int) -> None:
    """Write the file whole or not at all."""
    try:
        with written_whole(target, mode=mode) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        raise OutputError(
            f"cannot write {target}: {reason_of(error)}. What was there is untouched. "
            "Check the permissions and the space left, or choose another place with -o."
        ) from None
