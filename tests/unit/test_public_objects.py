"""What Python users expect of public names and results: reprs, pickling, help."""

import copy
import inspect
import pickle

import pytest

import bayeslink as bl
from bayeslink.linkage.penalized import Mode
from bayeslink.runs.run import Run
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
        "run": (run, "records of A"),
        "opened": (bl.open_run(tmp_path / "run"), "records of A"),
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
