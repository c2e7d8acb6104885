"""What Python users expect: reprs, pickling, help, progress, -q and -v."""

import copy
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import progress
from bayeslink.cli import main
from bayeslink.linkage.penalized import Mode
from bayeslink.linking.run import Run
from bayeslink.sampling.posterior import Posterior

FIELDS = [bl.levenshtein("gname"), bl.exact("fname"), bl.exact("occup"), bl.date("dob")]
FEW = {"draws": 50, "tune": 20, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(120, seed=2)


@pytest.fixture(scope="module")
def run(files):
    return bl.link(files.a, files.b, FIELDS, **FEW)


def test_everything_a_user_can_hold_is_readable(run, files, tmp_path):
    run.save(tmp_path / "run")
    held = {
        "run": (run, "records in A"),
        "opened": (bl.open_run(tmp_path / "run"), "records in A"),
        "pairs": (run.pairs, "120 records of A"),
        "field": (FIELDS[0], "levenshtein('gname'): distance > 0.5 <"),
        "diagnostics": (run.posterior.diagnostics(), "rhat"),
        "m": (run.fit.m, "gname: ["),
        "evaluation": (bl.evaluate(run.links, files.truth), "precision"),
    }
    for name, (thing, words) in held.items():
        assert words in repr(thing), name
        assert " object at 0x" not in repr(thing), name
        html = thing._repr_html_()
        assert html.count("<") > 3, name
    assert "<script" not in bl.exact("<script>")._repr_html_()
    assert run.posterior.diagnostics()[0].name == "links"


def test_copying_works_or_is_refused_with_the_way_out(run, files):
    for thing in (run, run.posterior, run.fit, run.blocks, run.pairs):
        for attempt in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="open_run"):
                attempt(thing)
    for thing in (FIELDS[0], run.parameters, run.decision, bl.evaluate(run.links, files.truth)):
        assert repr(pickle.loads(pickle.dumps(thing))) == repr(thing)
        assert repr(copy.deepcopy(thing)) == repr(thing)
    assert copy.copy(run).table is run.table


def test_compare_says_what_a_field_is_where_a_column_is_given(files):
    with pytest.raises(bl.SettingsError, match=r"levenshtein\('gname'\)"):
        bl.compare(files.a, files.b, ["gname"])


def test_every_public_name_is_documented():
    public = {name: getattr(bl, name) for name in bl.__all__ if name != "__version__"}
    for name, thing in {**public, "Run": Run, "Posterior": Posterior, "Mode": Mode}.items():
        if inspect.ismodule(thing):
            continue
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for key, member in vars(thing).items():
                if not key.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), f"{name}.{key}"
    described = inspect.getdoc(bl.link)
    missing = [name for name in inspect.signature(bl.link).parameters if name not in described]
    assert not missing


def test_progress_is_shown_to_people_only(monkeypatch, capsys):
    with progress.bar() as tell:
        tell("sampling: 40%")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.bar(show=True) as tell:
        tell("reading A")
        tell("sampling: 40%")
        tell("sampling: 80%")
    assert "sampling" in capsys.readouterr().err
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with progress.bar(show=True) as tell:
        tell("sampling: 40%")
    assert capsys.readouterr().err == ""


def test_the_clock_of_the_bar_goes_on_while_only_numbers_change(monkeypatch):
    from rich.progress import Progress

    anew = []
    monkeypatch.setattr(Progress, "reset", lambda *_, **__: anew.append(message))
    with progress.bar(show=True) as tell:
        for message in (
            "2 of 10 modules: 20%",
            "3 of 10 modules: 30%",
            "sampling: 1%",
            "sampling: 2%",
        ):
            tell(message)
    assert anew == ["2 of 10 modules: 20%", "sampling: 1%"]


def test_a_first_run_is_spoken_of_but_for_quiet(monkeypatch, tmp_path):
    def prepare(say, progress):
        say("compiling")
        for done in (0, 0, 1):
            progress(f"{done} of 2 modules")

    monkeypatch.setattr("bayeslink.kernels.prepare", prepare)
    said = {}
    for loud in ("-q", "-v", None):
        command = ["demo", "--n", "20", "-o", str(tmp_path / "demo"), *([loud] if loud else [])]
        said[loud] = CliRunner().invoke(main, command).stderr
    assert "bayeslink: compiling\n" in said[None]
    assert "modules" not in said[None]
    assert "bayeslink: 0 of 2 modules\nbayeslink: 1 of 2 modules\n" in said["-v"]
    assert "compiling" not in said["-q"]


def test_quiet_and_verbose(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    paths = [str(tmp_path / "files" / f"{side}.csv") for side in "ab"]

    def link(*more):
        found = ["link", *paths, "--on=gname", "--on=fname", "--on=dob", "--point", "--force"]
        return CliRunner().invoke(main, [*found, *more, "-o", str(tmp_path / "out")])

    quiet, loud, usual = link("-q"), link("-v"), link()
    assert quiet.exit_code == loud.exit_code == usual.exit_code == 0
    assert quiet.output == ""
    assert "reading A" in loud.stderr
    assert usual.stderr == ""
    assert "links" in usual.stdout
    assert link("-q", "--json").output.startswith("{")


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
    extras = ("pandas", "polars", "duckdb", "arviz", "openpyxl", "matplotlib")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(extras) + snippet],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == shown
