"""`review` where its extra is not installed."""

import importlib.util

import pytest
from click.testing import CliRunner

from bayeslink.cli import main


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_a_missing_extra_is_told_before_the_run_is_read(tmp_path, monkeypatch, missing):
    (tmp_path / "run.json").write_text("not read")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == missing else find(n))
    done = CliRunner().invoke(main, ["review", str(tmp_path)])
    assert done.exit_code == 2
    assert "pip install 'bayeslink[review]'" in done.output
