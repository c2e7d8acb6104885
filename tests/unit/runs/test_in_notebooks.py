"""What a notebook user reaches from a run: its pictures, its evaluation, its review page."""

import http.client
import inspect
import re

import numpy as np
import pytest

import bayeslink as bl
from bayeslink import plots
from bayeslink.errors import InputError, SettingsError
from bayeslink.notebook_html import Shown
from bayeslink.report.notebook import as_html
from bayeslink.runs.thresholds import expected_pairs

FEW = {"draws": 100, "tune": 50, "chains": 2}
FIELDS = ["gname", "fname", "dob", "sex"]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(80, seed=5)


@pytest.fixture(scope="module")
def run(files):
    return bl.link(files.a, files.b, FIELDS, **FEW)


@pytest.fixture(scope="module")
def people():
    made = bl.simulate_duplicates(60, seed=2)
    return made, bl.dedupe(made.a, FIELDS, **FEW)


@pytest.fixture(scope="module")
def opened(run, people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    run.save(folder / "linked", keep_inputs=True)
    people[1].save(folder / "people")
    return bl.open_run(folder / "linked"), bl.open_run(folder / "people")


# --- pictures ---------------------------------------------------------------------------------


def test_completion_finds_the_pictures_of_a_run(run, people):
    of_pairs = set(plots.__all__) - {"completeness", "people"}
    assert set(dir(run.plots)) == of_pairs
    assert set(dir(people[1].plots)) == {"people", "thresholds", "weights"}
    assert ".links" in repr(run.plots)
    assert [*inspect.signature(run.plots.trace).parameters] == ["name"]
    assert inspect.getdoc(run.plots.links) == inspect.getdoc(plots.links)


def test_they_are_those_of_the_module_fresh_and_opened(run, opened, files):
    for one in (run, opened[0]):
        for name in set(dir(one.plots)) - {"waterfall", "calibration", "sensitivity"}:
            assert getattr(one.plots, name)().svg() == getattr(plots, name)(run).svg(), name
        drawn = one.plots.calibration(files.truth)
        assert drawn.svg() == plots.calibration(run, files.truth).svg()
        pair = one.candidates().slice(0, 1).select(["id_a", "id_b"]).to_pylist()[0]
        drawn = one.plots.waterfall(pair["id_a"], pair["id_b"])
        assert drawn.svg() == plots.waterfall(run.explain(*pair.values())).svg()


def test_those_of_one_file_too(people, opened):
    _, run = people
    for name in ("people", "thresholds"):
        assert getattr(run.plots, name)().svg() == getattr(opened[1].plots, name)().svg()
    assert "number of people" in run.plots.people().svg()
    assert run.plots.weights().svg()
    with pytest.raises(InputError, match=r"plots\.people"):
        opened[1].plots.weights()


def test_thresholds_of_pairs_of_one_file_are_counted_by_hand(people):
    _, run = people
    kept = run.posterior.kept
    together = (kept[:, :, None] == kept[:, None, :]).mean(0)
    p = together[np.triu_indices(len(together), 1)]
    (row,) = [r for r in run.plots.thresholds().table.to_pylist() if r["threshold"] == 0.5]
    assert row["pairs"] == (p >= 0.5).sum()
    assert row["expected_precision"] == pytest.approx(p[p >= 0.5].mean())
    assert row["expected_recall"] == pytest.approx(p[p >= 0.5].sum() / p.sum(), abs=1e-3)
    sizes = run.table["size"].filter(run.table["representative"])
    assert expected_pairs(sizes, run.summary()) == pytest.approx(p.sum())


# --- evaluation -------------------------------------------------------------------------------


def test_a_run_is_evaluated_as_the_function_does(run, people, opened, files):
    told = bl.evaluate(run, files.truth)
    assert run.evaluate(files.truth) == opened[0].evaluate(files.truth) == told
    made, one_file = people
    assert one_file.evaluate(made.truth) == bl.evaluate(one_file, made.truth)
    assert opened[1].evaluate(made.truth) == one_file.evaluate(made.truth)


# --- the review page --------------------------------------------------------------------------


def asked(page, path, **headers):
    host, port = re.search(r"//([\d.]+):(\d+)/", page.address).groups()
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    status, text = answer.status, answer.read().decode()
    connection.close()
    return status, text


def test_a_review_page_is_served_until_it_is_closed(opened):
    with opened[0].review(browser=False) as page:
        status, text = asked(page, "/")
        assert status == 200
        assert "<html" in text
        assert asked(page, "/api/state")[0] in (401, 403)  # no token
        token = page.address.split("token=")[1]
        assert asked(page, "/api/state", **{"X-Review-Token": token})[0] == 200
        assert page.address in page._repr_html_()
        assert page.address in repr(page)
        port = int(re.search(r":(\d+)/", page.address)[1])
        with pytest.raises(SettingsError, match="cannot listen"):
            opened[0].review(browser=False, port=port)
    with pytest.raises(ConnectionError):
        asked(page, "/")
    assert (opened[0].directory / "review.sqlite").exists()


def test_a_run_that_is_not_saved_says_where_judgements_would_go(run, opened, tmp_path):
    with pytest.raises(InputError, match="Save it"):
        run.review(browser=False)
    with run.review(tmp_path / "out", browser=False) as page:  # its inputs are tables
        assert page.folder == tmp_path / "out"
        assert asked(page, "/")[0] == 200
    with pytest.raises(SettingsError, match="Leave the directory out"):
        opened[0].review(tmp_path / "other", browser=False)


# --- HTML -------------------------------------------------------------------------------------


def test_every_result_has_html_worth_reading(run, people, opened, files):
    post, (_, one_file) = run.posterior, people
    pair = run.candidates().slice(0, 1).select(["id_a", "id_b"]).to_pylist()[0]
    shown = {
        "run": (run, "links between"),
        "opened": (opened[0], "links between"),
        "people": (one_file, "records are of"),
        "opened people": (opened[1], "records are of"),
        "posterior": (post, "95 % interval"),
        "clusters": (one_file.posterior, "People: "),
        "entities": (one_file.entities, "People: "),
        "forest": (one_file.fit, "people at θ"),
        "fit": (run.fit, "links at θ"),
        "blocks": (run.blocks, "post-hoc blocks"),
        "path": (bl.penalty_path(run.pairs, [4.0, 6.0]), "2 values of θ"),
        "sensitivity": (bl.sensitivity(run, thetas=[6.0]), "several priors"),
        "explanation": (run.explain(*pair.values()), "a link costs"),
    }
    for name, (thing, words) in shown.items():
        html = thing._repr_html_()
        assert words in html, name
        assert "<svg" in html, name
        assert "<script" not in html, name


def test_nothing_that_is_to_be_shown_lacks_its_html():
    """`Shown` promises `_repr_html_`, which fails for a class that `as_html` does not know."""
    known = {one.__name__ for one in as_html.registry} - {"object"}

    def classes(above):
        for one in above.__subclasses__():
            yield one
            yield from classes(one)

    # By name, as a dataclass with slots is made of a class that stays until it is collected.
    lacking = [one for one in classes(Shown) if not {c.__name__ for c in one.__mro__} & known]
    assert not lacking
    assert {"Run", "DedupeRun"} <= known


def test_a_suggestion_is_a_table_and_hostile_headers_stay_text(files):
    found = bl.suggest(files.a, files.b)
    html = found._repr_html_()
    for field, why in zip(found.fields, found.reasons, strict=True):
        assert f"<td>{field.name}</td>" in html
        assert field.kind in html
        assert why.split(",")[0][:15] in html
    assert html.count("<table>") == 1 + bool(found.left_out)
    renamed = [
        side.rename_columns([n.replace("gname", "<b>x") for n in side.column_names])
        for side in (files.a, files.b)
    ]
    assert "<b>x" not in bl.suggest(*renamed)._repr_html_()


def test_an_explanation_shows_hostile_values_as_text(files):
    hostile = ["<script>alert(1)</script>", *files.a["gname"].to_pylist()[1:]]
    at = files.a.column_names.index("gname")
    a = files.a.set_column(at, "gname", [hostile])
    run = bl.link(a, files.b, FIELDS, **FEW)
    html = run.explain(a["id"][0].as_py(), files.b["id"][0].as_py())._repr_html_()
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
