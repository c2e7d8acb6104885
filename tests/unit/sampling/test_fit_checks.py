"""Pairs by weight: as enumeration has them, silent on the model's own files, heard on others."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import bayeslink as bl
from bayeslink.model.structure import Dependent
from bayeslink.sampling.fit_checks import _on_humps, _on_look_alikes, check_fit
from bayeslink.sampling.identified import Identified, Parts
from bayeslink.sampling.weight_bands import weight_bands
from tests.data import ROOT

SIZES = (60, 80, 150, 12, 30)  # values of each field
FIELDS = [bl.exact(f"f{j}") for j in range(len(SIZES))]
SHORT = {"draws": 150, "tune": 100, "chains": 2}


def files(seed, households=False, n=300, both=150):
    """Values at random, errors and gaps at random; or households that share two of the fields."""
    rng = np.random.default_rng(seed)
    people = 2 * n - both
    values = np.stack([rng.integers(size, size=people) for size in SIZES], 1)
    if households:
        home = rng.integers(people // 3, size=people)
        values[:, 1:3] = values[home, 1:3]

    def written(rows):
        columns = {"id": [str(row) for row in rows]}
        for j, size in enumerate(SIZES):
            other = rng.integers(size, size=len(rows))
            kept = np.where(rng.random(len(rows)) < 0.06, other, values[rows, j])
            missing = rng.random(len(rows)) < 0.03
            columns[f"f{j}"] = [
                None if gone else f"v{v}" for v, gone in zip(kept, missing, strict=True)
            ]
        return pa.table(columns)

    return written(np.arange(n)), written(np.arange(n - both, people))


def of_weight(run):
    return [w for w in run.checks.warnings if "and the model expects" in w and "bits" in w]


def new_doubts(run):
    return [w for w in run.checks.warnings if "look-alikes" in w or "wrong fields" in w]


@pytest.mark.parametrize("structure", ["independent", "dependent"])
def test_bands_by_enumeration(structure):
    """Every pair and every comparison vector, one by one."""
    run = bl.link(*files(1, households=True, n=80, both=40), FIELDS, structure=structure, **SHORT)
    fit, blocks, parameters = run.fit, run.posterior.blocks, run.posterior.parameters
    vectors = np.array(list(itertools.product(range(3), repeat=len(FIELDS))), np.uint8)
    u, m = np.zeros(len(vectors)), parameters.weight_of(vectors)
    free = np.ones(len(FIELDS), bool)
    if isinstance(parameters, Dependent):
        free = parameters.tree.free(len(FIELDS))
        u += parameters.tree.log_u(vectors)
    for j in np.flatnonzero(free):
        seen = vectors[:, j] > 0
        u[seen] += np.log(parameters.u[j, vectors[seen, j]])
    u, m = np.exp(u), np.exp(m + u)
    listed = blocks.candidates.with_more(blocks.low)
    assert len(listed) == run.pairs.n_pairs
    p = np.append(run.posterior.probability, np.zeros(len(blocks.low)))
    p *= run.posterior.n_links.mean() / p.sum()
    nonlinks, links = np.zeros(len(vectors)), np.zeros(len(vectors))
    for seen in itertools.product((False, True), repeat=len(FIELDS)):
        pairs = ((listed.levels > 0) == seen).all(1)
        these = ((vectors > 0) == seen).all(1)
        nonlinks[these] = (pairs.sum() - p[pairs].sum()) * u[these]
        links[these] = p[pairs].sum() * m[these]
    w, all_w = fit.weight_of(vectors), fit.weight_of(listed.levels)
    assert len(run.checks.bands) > 3
    for band in run.checks.bands:
        high = math.inf if band.high is None else band.high
        at = (w > band.low) & (w <= high)
        assert band.observed == ((all_w > band.low) & (all_w <= high)).sum()
        assert band.from_nonlinks == pytest.approx(nonlinks[at].sum())
        assert band.from_links == pytest.approx(links[at].sum())


def test_silent_on_files_drawn_from_the_model():
    """At most one alarm in ten; 24 files."""
    runs = [
        bl.link(*files(seed), FIELDS, structure=structure, **SHORT)
        for seed in range(1, 13)
        for structure in ("independent", "dependent")
    ]
    assert sum(bool(of_weight(run)) for run in runs) <= 2
    assert sum(bool(new_doubts(run)) for run in runs) <= 2


def test_look_alikes_are_told_of_where_they_are_many():
    def told(**parts):
        given = Parts(**{"pointed": 500.0, "counted": 5.0, **parts})
        return [*_on_look_alikes(Identified(given, 900, np.zeros((1, 1), int)))]

    (warning,) = told(false=5.0, look_alikes=40.0)
    assert "expects 5.0 false links" in warning
    assert "about 40" in warning
    assert not told(false=20.0, look_alikes=39.0)  # not far more
    assert not told(false=0.5, look_alikes=8.0)  # few of all links


def test_two_humps_are_heard_in_links_of_two_kinds():
    """People with no wrong field, and others of their household with two."""
    run = bl.link(*files(1), FIELDS, **SHORT)
    post = run.posterior
    assert not [*_on_humps(post)]
    pairs = post.blocks.candidates
    p = np.where(post.probability > 0.5, post.probability, 0.0)
    p[(pairs.levels == 1).sum(1) == 1] = 0.0
    right = np.flatnonzero((p > 0.5) & (pairs.levels == 2).all(1))
    levels = pairs.levels.copy()
    levels[right[::3], 3:] = 1
    planted = replace(
        post, probability=p, blocks=replace(post.blocks, candidates=replace(pairs, levels=levels))
    )
    planted = replace(planted, prior=bl.Penalty(-20.0))  # they stay above θ
    (warning,) = [*_on_humps(planted)]
    assert "links have 2 wrong fields and only" in warning
    assert "have 1" in warning


def test_households_are_heard_where_fields_are_taken_to_be_independent():
    for seed in range(1, 5):
        a, b = files(seed, households=True)
        assert of_weight(bl.link(a, b, FIELDS, structure="independent", **SHORT))
        assert not of_weight(bl.link(a, b, FIELDS, **SHORT))


def test_people_who_are_in_a_file_twice_are_heard():
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("dob"), bl.exact("occup")]
    heard = []
    for seed in range(1, 5):
        twice = bl.simulate(400, seed=seed, duplicates=0.25)
        heard.append(bool(of_weight(bl.link(twice.a, twice.b, fields, **SHORT))))
        once = bl.simulate(400, seed=seed)
        assert not of_weight(bl.link(once.a, once.b, fields, **SHORT))
    assert sum(heard) >= 3


def test_bands_are_of_the_part_of_the_files_that_is_open():
    """Pairs of records with a known link are neither counted nor expected."""
    a, b = files(2)
    run = bl.link(a, b, FIELDS, **SHORT)
    known = run.links.slice(0, 60)
    told = bl.link(a, b, FIELDS, known_links=known, **SHORT)
    bands = told.checks.bands
    assert sum(band.observed for band in bands) < sum(x.observed for x in run.checks.bands) - 50
    left = told.posterior.n_links.mean() - len(known)
    assert sum(band.from_links for band in bands) == pytest.approx(left, rel=0.25)
    assert not of_weight(told)


def test_a_point_estimate_has_bands_too():
    run = bl.link(*files(3), FIELDS, point=True)
    assert weight_bands(run.fit, None) == run.checks.bands == check_fit(run.fit, None).bands
    assert sum(band.observed for band in run.checks.bands) >= run.fit.n_links
    assert not of_weight(run)


@pytest.mark.skipif(not (ROOT / "truth" / "fodors_zagats").is_dir(), reason="no truth folders")
def test_restaurants_whose_telephones_are_written_in_two_ways_are_heard():
    """117 to 124 links for 112: non-links at a level that is taken to be rare among them."""
    folder = ROOT / "truth" / "fodors_zagats"
    fields = [*map(bl.levenshtein, ("name", "address", "city", "phone", "type"))]
    a, b = (pa.csv.read_csv(folder / f"{side}.csv.gz") for side in "ab")
    run = bl.link(a, b, fields, **SHORT)
    assert of_weight(run)
