"""Real Spark beside this machine: the same links, draws and probabilities, to the byte."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.comparing.fields import exact
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.spark import cluster
from tests.contract import test_pair_source as contract

pytestmark = pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning")
FIELDS = [
    bl.levenshtein("gname"),
    bl.name("fname"),
    bl.date("dob"),
    bl.levenshtein("place", columns=[["occup", "postcode"], ["occup", "postcode"]]),
]
HOW = {"draws": 60, "tune": 40, "chains": 2}


def people(n=200, seed=1):
    files = bl.simulate(n, seed=seed)
    return (pa.table(files.a).sort_by("id"), pa.table(files.b).sort_by("id"))


@pytest.fixture(scope="module")
def files():
    return people()


@pytest.fixture(scope="module")
def here(files):
    return bl.link(*files, FIELDS, **HOW)


def assert_same(run, other):
    """Links, probabilities, draws and what was counted."""
    assert run.table.equals(other.table)
    assert run.candidates().equals(other.candidates())
    for name in ("m", "u", "n_links", "log_posterior", "probability"):
        x, y = (np.asarray(getattr(r.posterior, name)) for r in (run, other))
        assert x.tobytes() == y.tobytes(), name
    assert run.plan.summary() == other.plan.summary()
    assert run.warnings == other.warnings


@pytest.mark.parametrize(("partitions", "records"), [((1, 1), 10**6), ((5, 3), 100)])
def test_frames_of_any_partitions_link_as_tables_do(
    spark, everything_sent, monkeypatch, files, here, partitions, records
):
    monkeypatch.setattr(cluster, "RECORDS", records)
    frames = [
        spark.createDataFrame(t).repartition(n) for t, n in zip(files, partitions, strict=True)
    ]
    run = bl.link(*frames, FIELDS, engine=spark, **HOW)
    assert run.pairs.describe().engine == "spark"
    assert_same(run, here)


def sent_by_spark(spark):
    def engine(problem, threads=2):
        a, b = problem.records()
        keys = [exact(k) for k in problem.block]
        workers = cluster.Cluster(spark, threads=threads, records=4)
        return LocalPairs(a, b, problem.fields, keys, workers=workers, engine="spark")

    return engine


@pytest.mark.short
@pytest.mark.parametrize("one_file", [False, True])
def test_counts_and_listed_pairs_equal_two_loops(spark, everything_sent, one_file):
    rng = np.random.default_rng(21)
    contract.check_problems(sent_by_spark(spark), rng, 4, one_file, searches=2)


def test_one_file_with_itself_is_compared_as_here(spark, everything_sent, monkeypatch):
    monkeypatch.setattr(cluster, "RECORDS", 100)
    table = bl.simulate_duplicates(300, seed=2).a
    here = bl.compare(table, fields=FIELDS)
    there = bl.compare(spark.createDataFrame(table), fields=FIELDS, engine=spark)
    assert there.one_file
    assert there.describe().engine == "spark"
    assert there.level_counts().counts.tolist() == here.level_counts().counts.tolist()
    p, q = here.pattern_counts(), there.pattern_counts()
    assert p.levels.tobytes() == q.levels.tobytes()
    assert p.counts.tobytes() == q.counts.tobytes()
    width = max(f.n_levels for f in here.fields) + 1
    weights = np.tile(np.arange(width) - 2.0, (len(FIELDS), 1))
    x, y = (source.pairs_above(weights, 2.0) for source in (here, there))
    assert len(x) > 50
    for part in ("a", "b", "levels"):
        assert getattr(x, part).tobytes() == getattr(y, part).tobytes()
    uniforms = np.random.default_rng(1).random((50, 3))
    for found, other in zip(
        here.draw_pairs(0, 4, uniforms), there.draw_pairs(0, 4, uniforms), strict=True
    ):
        assert found.tobytes() == other.tobytes()


@pytest.mark.verify
def test_many_problems_equal_two_loops(spark, everything_sent):
    for one_file in (False, True):
        rng = np.random.default_rng(22)
        contract.check_problems(sent_by_spark(spark), rng, 30, one_file, searches=3)
