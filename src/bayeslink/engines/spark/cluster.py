"""Pieces of work as tasks of Spark."""

from __future__ import annotations

import os
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from bayeslink.engines.spark.sending import Sender, loads
from bayeslink.errors import BayeslinkError, SettingsError

RECORDS = 4_000_000  # of B in a piece: with its index, 300 MB for seven fields
_TASK = 4.0  # seconds that a task should take, about
_LOOK = 0.5  # seconds between two looks at how far Spark is
_DONE = "task long, number long, payload binary"

T = TypeVar("T")


class Cluster:
    """What a Spark session offers to whoever has pieces of work (`threads.Workers`)."""

    def __init__(
        self,
        session: Any,
        progress: Callable[[str], None] = lambda message: None,
        threads: int | None = None,
        records: int | None = None,
    ) -> None:
        self.session, self.progress = session, progress
        self.threads, self.records = threads or os.cpu_count() or 1, records or RECORDS
        try:
            self._context = session.sparkContext
        except Exception:  # Spark Connect
            raise SettingsError(
                "this Spark session is a remote one (Spark Connect), which cannot be given "
                "compiled work. Run on the cluster itself: with spark-submit, or in a notebook of "
                "its driver."
            ) from None
        if self._context.master.startswith("local"):  # executors are of this machine
            self._context.pythonExec = os.environ.get("PYSPARK_PYTHON") or sys.executable
        self.sender = Sender(self._publish, lambda parcel: parcel.destroy())
        self.sent = self.received = 0  # bytes: to each executor at most, and back

    def _publish(self, content: Any) -> Any:
        self.sent += content.nbytes if isinstance(content, np.ndarray) else len(content)
        return self._context.broadcast(content)

    def run(
        self, work: Callable[..., T], pieces: Sequence[tuple[Any, ...]], seconds: float
    ) -> Iterator[T]:
        """`work(*piece)` for each piece, in order."""
        text, parcels = self.sender.dumps(work)
        gone = tuple(self.sender.gone)
        self.sent += len(text)
        cores = max(1, int(self._context.defaultParallelism))
        n_tasks = min(len(pieces), max(cores, int(seconds / _TASK)))
        bounds = np.linspace(0, len(pieces), n_tasks + 1).astype(int).tolist()

        def do(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import SparkFiles

            work = loads(text, parcels, SparkFiles.getRootDirectory(), gone)
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    for number in range(bounds[task], bounds[task + 1]):
                        yield _answer(task, number, work, pieces[number])

        tasks = self.session.range(0, n_tasks, 1, n_tasks).mapInArrow(do, _DONE)
        for payload in self.collect(tasks, "number"):
            found = pickle.loads(payload)
            if isinstance(found, BayeslinkError):
                raise found
            yield found

    def collect(self, frame: Any, by: str) -> Iterator[Any]:
        """The `payload` of each row of a frame, in the order of the column `by`.

        Whatever ends the wait for it, Ctrl-C above all, ends the work on the cluster too.
        """
        with self._told():
            table = frame.toArrow()
        payloads = table["payload"]
        self.received += table.nbytes
        for at in np.argsort(table[by].to_numpy(), kind="stable").tolist():
            yield payloads[at].as_buffer()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell how far Spark is, cancel what is not waited for, and say what went wrong."""
        group, done = f"bayeslink-{uuid.uuid4().hex}", Event()
        self._context.setJobGroup(group, "bayeslink", interruptOnCancel=True)
        watch = Thread(target=self._watch, args=(group, done), daemon=True)
        watch.start()
        try:
            yield
        except Exception as error:
            self._context.cancelJobGroup(group)
            if _interrupted(error):  # Spark's own handler of Ctrl-C came first
                raise KeyboardInterrupt from None
            raise _in_words(error) from None
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        finally:
            done.set()
            watch.join()
            self._context.setLocalProperty("spark.jobGroup.id", None)

    def _watch(self, group: str, done: Event) -> None:
        """Tell the tasks that have ended, of those that there are, in Spark's own stages."""
        tracker, told = self._context.statusTracker(), ""
        while not done.wait(_LOOK):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(s) for job in jobs if job for s in job.stageIds]
            ended = sum(stage.numCompletedTasks for stage in stages if stage)
            total = sum(stage.numTasks for stage in stages if stage)
            message = f"on Spark {100 * ended // max(1, total)} %"
            if message != told and not done.is_set():
                self.progress(message)
                told = message


def _answer(task: int, number: int, work: Callable[..., Any], piece: tuple[Any, ...]) -> Any:
    """One piece, done: an error of ours is an answer, not a reason to try again."""
    try:
        found = work(*piece)
    except BayeslinkError as error:
        found = error
    payload = pickle.dumps(found, protocol=5)
    columns = [pa.array([task], pa.int64()), pa.array([number], pa.int64()), pa.array([payload])]
    return pa.RecordBatch.from_arrays(columns, ["task", "number", "payload"])


def _interrupted(error: BaseException | None) -> bool:
    """Whether it all began with Ctrl-C."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _in_words(error: Exception) -> Exception:
    """What Spark says, without the rows and the tracebacks that it may hold."""
    text = f"{error}"
    if "maxResultSize" in text:
        return SettingsError(
            "the answers of the cluster are larger than Spark lets its driver take. Start the "
            "session with spark.driver.maxResultSize=0."
        )
    if lacking := re.search(r"No module named '(\w+)", text):
        return SettingsError(
            f"the executors do not have {lacking[1]}. Install bayeslink there, or send an "
            "environment with --archives (docs/scale.md); PYSPARK_PYTHON names their Python."
        )
    kind = type(error).__name__
    return SettingsError(
        f"Spark could not do the work ({kind}). Its own log, or the page of the job, says why; a "
        "lost executor or too little memory there is the commonest cause (docs/scale.md)."
    )
