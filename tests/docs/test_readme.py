"""README's first snippet, on a machine with nothing but what is installed with the package."""

import re
import subprocess
import sys
from pathlib import Path

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {0!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
"""


def test_the_first_snippet_of_the_readme_needs_no_extra():
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    snippet, shown = re.search(r"```python\n(.*?)```\n```\n(.*?)```", readme, re.DOTALL).groups()
    extras = ["pandas", "polars", "duckdb", "arviz", "openpyxl", "matplotlib"]
    extras += ["starlette", "uvicorn"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(extras) + snippet],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == shown
