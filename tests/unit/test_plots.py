"""Each picture, drawn from the run itself."""

import sys

import pytest

import bayeslink as bl
from bayeslink import plots
from bayeslink.errors import SettingsError

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(60, seed=3)


@pytest.fixture(scope="module")
def run(files):
    return bl.link(files.a, files.b, FIELDS, draws=100, tune=50, chains=2)


def test_every_picture_but_that_of_one_pair_takes_a_run(run, files):
    post = run.posterior
    assert plots.weights(run).svg()
    assert plots.links(run).svg() == plots.links(post).svg()
    assert plots.probabilities(run).svg() == plots.probabilities(post).svg()
    assert plots.blocks(run).svg() == plots.blocks(post).svg()
    assert plots.trace(run).svg() == plots.trace(post).svg()
    assert plots.calibration(run, files.truth).svg() == plots.calibration(post, files.truth).svg()
    assert "cost of a link" in plots.path(run).svg()
    assert "Overlap(1, 1)" in plots.sensitivity(run).svg()
    with pytest.raises(SettingsError, match=r"run\.explain"):
        plots.waterfall(run)


def test_new_pictures_are_of_an_opened_run_too_and_have_a_table(run, files, tmp_path):
    run.save(tmp_path / "out", keep_inputs=True)
    opened = bl.open_run(tmp_path / "out")
    for picture in (plots.thresholds, plots.unlinkable, plots.patterns):
        drawn = picture(run)
        assert drawn.svg() == picture(opened).svg()
        assert drawn.table.equals(picture(opened).table)
        drawn.save(tmp_path / "picture.svg")
        assert "<svg" in (tmp_path / "picture.svg").read_text("utf-8")


def test_a_picture_is_saved_as_png_with_the_colours_that_it_has(run, tmp_path, monkeypatch):
    pytest.importorskip("resvg_py")
    image = pytest.importorskip("PIL.Image")
    plots.weights(run).save(tmp_path / "weights.png")
    with image.open(tmp_path / "weights.png") as drawn:
        assert drawn.size[0] == 2 * 736
        found = {colour for _, colour in drawn.convert("RGB").getcolors(1 << 20)}
    blue, orange, white = (10, 106, 168), (179, 74, 0), (255, 255, 255)
    assert {blue, orange, white} <= found
    with pytest.raises(SettingsError, match=r"weights\.svg or \.png"):
        plots.weights(run).save(tmp_path / "weights.pdf")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(SettingsError, match=r"bayeslink\[png\]"):
        plots.weights(run).save(tmp_path / "again.png")
    assert not (tmp_path / "again.png").exists()


def test_patterns_add_up_and_name_a_pair_that_has_them(run):
    table = plots.patterns(run).table.to_pylist()
    pairs = run.as_table("pairs")
    assert sum(row["pairs"] for row in table) == len(pairs)
    assert sum(row["links"] for row in table) == run.n_links
    expected = sum(pairs["link_probability"].to_pylist())
    assert sum(row["expected_links"] for row in table) == pytest.approx(expected)
    for row in table[:5]:
        told = run.explain(row["id_a"], row["id_b"])
        assert told.bits == pytest.approx(row["match_weight"])
        found = run.pairs.find([(row["id_a"], row["id_b"])]).levels[0].tolist()
        assert found == [row[f"gamma_{f.name}"] for f in run.pairs.fields]
        assert row["id_a"] not in plots.patterns(run).svg()


def test_completion_finds_the_pictures_alone():
    assert dir(bl.plots) == sorted(plots.__all__)


@pytest.mark.parametrize("picture", plots.__all__)
def test_what_a_picture_cannot_be_of_is_told(picture, run, files):
    more = (files.truth,) if picture == "calibration" else ()
    with pytest.raises(SettingsError, match="It takes"):
        getattr(plots, picture)(files.truth, *more)
    if picture in ("path", "patterns", "sensitivity", "thresholds", "unlinkable", "waterfall"):
        with pytest.raises(SettingsError, match="It takes"):
            getattr(plots, picture)(run.posterior)


def test_sensitivity_takes_a_run(run):
    assert len(bl.sensitivity(run, thetas=[6.0]).results) == 1


def test_draws_that_are_not_there_are_named(run, files):
    with pytest.raises(SettingsError, match="log_posterior"):
        plots.trace(run, "link")
    point = bl.link(files.a, files.b, FIELDS, point=True)
    for picture in (
        plots.links, plots.probabilities, plots.blocks, plots.trace, plots.thresholds,
    ):  # fmt: skip
        with pytest.raises(SettingsError, match="point=True"):
            picture(point)
    assert plots.weights(point).svg()
    assert plots.unlinkable(point).svg()
    assert sum(row["links"] for row in plots.patterns(point).table.to_pylist()) == point.n_links
