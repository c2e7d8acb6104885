"""Headings of the report that pages send people to are there."""

import re

import pytest

import bayeslink as bl
from tests.docs.blocks import FENCE, pages


def named():
    """What stands in quotes, with a capital letter, in a paragraph that tells of the report."""
    for page in pages():
        for paragraph in FENCE.sub("", page.read_text("utf-8")).split("\n\n"):
            if re.search(r"\breport\b", paragraph):
                yield from re.findall(r'"([A-Z][^"]{3,40})"', paragraph.replace("\n", " "))


@pytest.mark.full
def test_headings_of_the_report_exist(tmp_path):
    files = bl.simulate(60, seed=1)
    run = bl.link(files.a, files.b, ["gname", "fname", "dob"], draws=50, tune=50, chains=2)
    page = run.report(tmp_path / "report.html").read_text("utf-8")
    headings = {re.sub("<[^>]+>", "", text) for text in re.findall(r"<h2.*?</h2>", page, re.DOTALL)}
    names = {*named()}
    assert "Does the model fit?" in names
    assert names <= headings
