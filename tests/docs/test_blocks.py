"""Every block of every page is run, and prints what the page says."""

import pytest

from tests.docs.blocks import ROOT, blocks_of, pages, run_page

# Why some blocks are not run, and how many blocks that is the reason for.
NOT_RUN = {
    "takes as long as the tests do": 1,
    "it waits for a person": 4,
    "it installs": 2,
    "needs make": 2,
    "needs a cluster": 6,
}


@pytest.mark.filterwarnings("ignore")  # of other tools
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=() if p.parent == ROOT else pytest.mark.full) for p in pages()],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_page_prints_what_it_says(page, tmp_path):
    for output in run_page(page.read_text("utf-8"), tmp_path):
        assert output.right, f"shown:\n{output.shown}\nprinted:\n{output.printed}"


def test_what_is_not_run_has_a_reason():
    said = [
        block.said
        for page in pages()
        for block in blocks_of(page.read_text("utf-8"))
        if block.mark == "not run"
    ]
    assert {why: said.count(why) for why in said} == NOT_RUN


def test_a_wrong_output_is_seen(tmp_path):
    (wrong,) = run_page("```python\nprint(1 + 1)\n```\n```\n3\n```\n", tmp_path)
    (right,) = run_page("```python\nprint(1 + 1, object())\n```\n```\n2 <…>\n```\n", tmp_path)
    assert not wrong.right
    assert right.right


def test_a_block_that_nobody_runs_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="nobody runs"):
        run_page("```sql\nselect 1\n```\n", tmp_path)


def test_an_error_that_is_not_announced_fails_the_page(tmp_path):
    page = "```console\n$ bayeslink link nowhere.csv b.csv -o out\n…\n```\n"
    for wrong in (
        page,
        f"<!-- fails: exit 2 -->\n{page}",
        "<!-- fails: exit 3 -->\n```console\n$ true\n```\n",
    ):
        with pytest.raises(AssertionError, match="exit"):
            run_page(wrong, tmp_path)
    (announced,) = run_page(f"<!-- fails: exit 3 -->\n{page}", tmp_path)
    assert announced.right
