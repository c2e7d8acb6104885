"""docs/notebook.ipynb, run: its page of the site, and what its test looks at.

A cell shows what its last line gives, as Jupyter does. Running it takes no more than Python, so
neither the site nor the tests need Jupyter.
"""

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from pprint import pformat
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


def cells() -> Iterator[tuple[str, str]]:
    """Kind and text of each cell."""
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def outputs() -> Iterator[tuple[str, str, str]]:
    """Kind and text of each cell, and what it shows, as HTML; in an empty folder."""
    space: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for kind, text in cells():
                yield kind, text, shown(text, space) if kind == "code" else ""
        finally:
            os.chdir(before)


def shown(text: str, space: dict[str, Any]) -> str:
    """Run a cell: what it prints, and what its last line gives."""
    tree, value = ast.parse(text), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    out = f"<pre>{escape(printed.getvalue())}</pre>" if printed.getvalue() else ""
    if value is None:
        return out
    as_html = getattr(value, "_repr_html_", None)
    return out + (
        as_html() if as_html else f"<pre>{escape(pformat(value, width=96, sort_dicts=False))}</pre>"
    )


def notebook_page() -> str:
    """The page, in Markdown."""
    parts = []
    for kind, text, output in outputs():
        parts.append(text if kind == "markdown" else f"```python\n{text}\n```")
        if output:
            parts.append(f'<div class="output">{_one_block(output)}</div>')
    return "\n\n".join(parts) + "\n"


def _one_block(output: str) -> str:
    """HTML in which Markdown sees one block: without a line that is empty."""
    return "\n".join(line or " " for line in output.split("\n"))
