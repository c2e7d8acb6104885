"""A cluster of two worker processes, one of which is killed; a run that is cancelled."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from bayeslink.engines.spark import sending
from bayeslink.engines.spark.cluster import Cluster
from bayeslink.errors import SettingsError, TooManyPairsError

pytestmark = pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning")

# In a process of its own, as only one Spark context may be active in one: links two files on two
# executors, kills the first that works on a task, and compares with this machine.
KILLED = """
    import os, signal, threading, time
    import pyarrow as pa
    from tests.spark.java import spark_session
    import bayeslink as bl
    from bayeslink import threads

    threads._WORTH = 0.0
    files = bl.simulate(200, seed=2)
    a, b = (pa.table(t).sort_by("id") for t in (files.a, files.b))
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob")]
    how = {"draws": 40, "tune": 20, "chains": 2}
    here = bl.link(a, b, fields, **how)
    src = os.environ["PYTHONPATH"]
    spark = spark_session("local-cluster[2,1,1024]", **{
        "spark.executorEnv.PYTHONPATH": src, "spark.task.maxFailures": "8",
        "spark.worker.cleanup.enabled": "false",
    })

    def java_processes():
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                text = open(f"/proc/{pid}/cmdline", "rb").read()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in text and b"--executor-id" in text:
                around = open(f"/proc/{pid}/environ", "rb").read()
                if os.environ["BAYESLINK_TEST"].encode() in around:
                    out.append(int(pid))
        return out

    killed, done = [], threading.Event()

    def kill_one():
        while not killed and not done.wait(0.02):
            jobs = spark.sparkContext.statusTracker().getActiveJobsIds()
            if jobs and (found := java_processes()):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])

    df_a, df_b = spark.createDataFrame(a).repartition(2), spark.createDataFrame(b).repartition(2)
    df_a.count()
    watch = threading.Thread(target=kill_one)
    watch.start()
    there = bl.link(df_a, df_b, fields, engine=spark, **how)
    done.set()
    watch.join()
    assert killed, "no executor was killed"
    assert there.table.equals(here.table)
    assert there.posterior.m.tobytes() == here.posterior.m.tobytes()
    assert there.posterior.probability.tobytes() == here.posterior.probability.tobytes()
    print("the same after a kill")
    spark.stop()
"""


def run_alone(code, folder):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.path.join(root, "src"), root]),
        "PYTHONWARNINGS": "ignore",
        "BAYESLINK_TEST": f"bayeslink-{os.getpid()}-{time.time_ns()}",
    }
    script = folder / "alone.py"
    script.write_text(textwrap.dedent(code))
    return subprocess.run(
        [sys.executable, script],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=root,
    )


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the executor to kill in /proc")
def test_a_worker_killed_in_the_middle_changes_nothing(spark, tmp_path):
    done = run_alone(KILLED, tmp_path)
    assert "the same after a kill" in done.stdout, done.stderr[-3000:]


def test_a_cancelled_run_cancels_its_jobs(spark, everything_sent):
    cluster = Cluster(spark)
    tracker = spark.sparkContext.statusTracker()

    def slow(number):
        time.sleep(60)
        return number

    def interrupt():
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    watch = threading.Thread(target=interrupt)
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        list(cluster.run(slow, [(k,) for k in range(4)], 1.0))
    watch.join()
    deadline = time.time() + 30
    while tracker.getActiveJobsIds() and time.time() < deadline:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()
    assert list(cluster.run(lambda k: k + 1, [(1,), (2,)], 1.0)) == [2, 3]


def test_a_worker_that_dies_is_told_of_and_the_next_try_has_all_answers_in_order(spark, tmp_path):
    cluster, mark = Cluster(spark), str(tmp_path / "failed")
    big = np.arange(200_000)

    def work(number):
        if number == 3 and not os.path.exists(mark):
            with open(mark, "w"):
                pass
            os._exit(1)  # the worker dies
        return number, int(big[number])

    with pytest.raises(SettingsError, match="Spark could not do the work"):
        list(cluster.run(work, [(k,) for k in range(7)], 1.0))  # local mode tries once
    assert list(cluster.run(work, [(k,) for k in range(7)], 1.0)) == [(k, k) for k in range(7)]


@pytest.mark.short
def test_errors_of_ours_come_back_as_they_are(spark):
    def work(number):
        raise TooManyPairsError("too many pairs")

    with pytest.raises(TooManyPairsError, match="too many pairs"):
        list(Cluster(spark).run(work, [(1,)], 1.0))


def test_what_is_sent_once_is_taken_back_when_it_is_gone(spark):
    cluster = Cluster(spark)
    array = np.arange(100_000)

    def work(number, array=array):
        return int(array[number])

    assert list(cluster.run(work, [(5,)], 1.0)) == [5]
    assert len(cluster.sender._parcels) == 1
    del array, work
    assert list(cluster.run(lambda k: k, [(1,)], 1.0)) == [1]
    assert len(cluster.sender._parcels) == 0


@pytest.mark.short
def test_two_processes_may_drop_the_same_file(tmp_path, monkeypatch):
    """One is told that it is there, and the other has dropped it since."""
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    assert sending.loads(pickle.dumps("work"), {}, str(tmp_path), ["bayeslink-1-1"]) == "work"
