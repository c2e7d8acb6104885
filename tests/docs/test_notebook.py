"""The notebook of the docs runs from top to bottom, and shows something to look at."""

import json

import pytest

from tools.notebook_page import NOTEBOOK, cells, notebook_page, outputs, shown


def test_it_is_a_notebook_without_what_it_once_showed():
    told = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    assert told["metadata"]["kernelspec"]["language"] == "python"
    ids = [cell["id"] for cell in told["cells"]]
    assert len({*ids}) == len(ids)
    for cell in told["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_a_cell_shows_what_jupyter_would():
    space = {}
    assert shown("x = '<b>'\nx", space) == "<pre>&#x27;&lt;b&gt;&#x27;</pre>"
    assert shown("print(x)\nNone", space) == "<pre>&lt;b&gt;\n</pre>"
    assert shown("y = 2", space) == ""
    with pytest.raises(NameError):
        shown("nowhere", space)


@pytest.mark.full
def test_every_cell_runs_and_every_result_is_shown():
    found = [(text, output) for kind, text, output in outputs() if kind == "code"]
    (run,) = [output for text, output in found if text.endswith("\nrun")]
    assert "links between 300 records of A and 300 of B" in run
    pictures = [output for text, output in found if text.startswith("run.plots") or output == run]
    assert len(pictures) == 2
    assert all("<svg" in output for output in pictures)
    (truth,) = [output for text, output in found if "evaluate" in text]
    assert "precision" in truth
    assert "&lt;" not in run  # HTML, not its text
    for text, output in found:
        assert output or text.startswith("import")


@pytest.mark.full
def test_the_page_has_every_cell_and_each_output_is_one_block():
    page = notebook_page()
    for _, text in cells():
        assert text in page
    blocks = [part for part in page.split("\n\n") if part.startswith('<div class="output">')]
    assert len(blocks) == page.count('<div class="output">') >= 8
    assert all(block.rstrip().endswith("</div>") for block in blocks)
