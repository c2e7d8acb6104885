"""Real Spark beside this machine: the same links, draws and probabilities, to the byte."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.comparing.fields import exact
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.spark import cluster
from tests import oracles
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
        a, b = (oracles.records(rows, side=name) for name, rows in problem.sides())
        keys = [exact(k) for k in problem.block]
        workers = cluster.Cluster(spark, threads=threads, records=4)
        return LocalPairs(a, b, problem.fields, keys, workers=workers, engine="spark")

    return engine


@pytest.mark.short
def test_counts_and_listed_pairs_equal_two_loops(spark, everything_sent):
    contract.check_problems(sent_by_spark(spark), np.random.default_rng(21), 4, searches=2)


@pytest.mark.verify
def test_many_problems_equal_two_loops(spark, everything_sent):
    contract.check_problems(sent_by_spark(spark), np.random.default_rng(22), 60, searches=3)
