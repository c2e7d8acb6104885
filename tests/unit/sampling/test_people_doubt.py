"""The doubt about the number of people, beside plain counts."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.linkage.clustering import pairs_together
from bayeslink.pairs.source import Files
from bayeslink.sampling.cluster_checks import cluster_warnings
from bayeslink.sampling.entities import Entities
from bayeslink.sampling.people_doubt import Joins, joins_of, with_doubt

# Draw × row: 0 and 1 are one in three of four draws; 2 and 3 always; 3 and 4 in one draw; 5 alone.
KEPT = np.array(
    [
        [0, 0, 2, 2, 4, 5],
        [0, 0, 2, 2, 4, 5],
        [0, 0, 2, 2, 2, 5],
        [0, 1, 2, 2, 4, 5],
    ],
    np.int32,
)
ESTIMATE = np.array([0, 0, 2, 2, 4, 5])


def drawn(of_files=None, chains=2, draws=400):
    """Entities as of a run of six records, 4 people in each draw."""
    people = np.full((chains, draws), 4)
    of_size = np.zeros((chains, draws, 4), np.int64)
    of_size[:, :, 1:3] = 2
    if of_files is None:
        return Entities(people, of_size)
    in_files = np.zeros((chains, draws, 4), np.int64)
    in_files[:] = of_files
    return Entities(people, of_size, in_files, ("x", "y"))


def test_joins_are_divided_as_a_count_by_hand_has_it():
    together = pairs_together(KEPT)
    stands_out = together.probability >= 0.5
    joins = joins_of(KEPT, together, stands_out, ESTIMATE)
    # People: 4, 4, 3, 5. The estimate's 4 are parted once and joined once in four draws.
    assert joins.false == pytest.approx(1 / 4)
    assert joins.counted == pytest.approx(1 / 4)
    assert joins.pointed == pytest.approx(6 - 4 - 1 / 4)
    all_out = joins_of(KEPT, together, np.ones_like(stands_out), ESTIMATE)
    assert (all_out.counted, all_out.pointed) == pytest.approx((0, 2))


def test_the_doubt_is_as_wide_as_its_parts_and_moves_sizes_with_people():
    together = pairs_together(KEPT)
    none = with_doubt(drawn(), Joins(2.0, 0.0, 0.0), together, ESTIMATE, None, seed=1)
    assert none.interval() == (4, 4)
    assert np.array_equal(none.of_size, drawn().of_size)
    # One false join and no more: a person of two becomes two of one.
    some = with_doubt(drawn(), Joins(2.0, 0.0, 1.0), together, ESTIMATE, None, seed=1)
    low, high = some.interval(0.999)
    assert low >= 3
    assert high >= 5
    moved = some.draws != 4
    assert moved.any()
    assert (some.of_size[moved][:, 1] != 2).mean() > 0.9
    more = some.draws > 4
    assert (some.of_size[more][:, 1] > 2).all()
    assert (some.of_size[more][:, 2] <= 2).all()


def test_no_number_of_people_is_out_of_range():
    together = pairs_together(KEPT)
    wild = with_doubt(drawn(), Joins(2.0, 2.0, 4.0), together, ESTIMATE, None, seed=1)
    assert wild.draws.min() >= 1
    assert wild.draws.max() <= 6
    assert wild.of_size.min() >= 0


def test_a_clean_file_stays_clean_and_sets_of_files_follow():
    """Rows 0, 2, 4 are of x and 1, 3, 5 of y: 3 and 4 may be one, and are in both then."""
    files = Files(("x", "y"), np.array([0, 1, 0, 1, 0, 1]), (0, 1))
    kept = np.array([[0, 0, 2, 3, 4, 5], [0, 0, 2, 3, 3, 5]] * 2, np.int32)
    together = pairs_together(kept)
    before = drawn(of_files=[0, 2, 2, 1])  # alone in x: 2, in y: 2, in both: 1
    found = with_doubt(
        before, Joins(1.0, 1.0, 0.0), together, np.array([0, 0, 2, 3, 4, 5]), files, seed=3
    )
    assert found.in_files is not None
    more = found.in_files[:, :, 3] > 1  # more joins: one less in each, one more in both
    assert more.any()
    assert (found.in_files[more][:, 1:3] < 2).all()


def test_where_most_is_counted_there_are_bounds_and_a_note():
    joins = Joins(0.0, 2.0, 0.0)
    assert joins.mostly_counted
    found = with_doubt(drawn(), joins, pairs_together(KEPT), ESTIMATE, None, seed=1)
    assert found.interval() == (4, 6)  # as drawn, and with nothing but what can be pointed to


def test_where_most_is_counted_the_files_that_people_are_in_have_bounds_too():
    """Else the population would have a narrow interval, from the draws alone."""
    files = Files(("x", "y"), np.array([0, 1, 0, 1, 0, 1]), (0, 1))
    kept = np.array([[0, 0, 2, 3, 4, 5], [0, 0, 2, 3, 3, 5]] * 2, np.int32)
    found = with_doubt(
        drawn(of_files=[0, 1, 1, 2]), Joins(0.0, 2.0, 0.0), pairs_together(kept), kept[0], files, 1
    )
    assert found.interval() == (4, 6)
    assert [(row["low"], row["high"]) for row in found.by_files()] == [(0, 2), (1, 3), (1, 3)]


def test_a_run_tells_draws_from_doubt_and_keeps_both(tmp_path):
    made = bl.simulate_duplicates(300, errors=2, seed=5)
    run = bl.dedupe(made.a, draws=200, tune=200, seed=1)
    low, high = run.posterior.drawn.interval()
    assert run.entities.interval()[0] <= low
    assert high <= run.entities.interval()[1]
    assert run.posterior.quantities()["people"] is run.posterior.drawn.draws
    run.save(tmp_path / "out")
    assert bl.open_run(tmp_path / "out").entities.interval() == run.entities.interval()
    strict = bl.dedupe(made.a, draws=200, tune=200, seed=1, restricted=True)
    assert strict.entities is strict.posterior.drawn
    object.__setattr__(run.posterior, "joins", Joins(1.0, 300.0, 0.0))
    assert any(
        "number of people is not identified" in note for note in cluster_warnings(run.posterior)
    )
