"""What reviewers judged, in one SQLite file in the run directory.

Nothing is ever overwritten: judging again and taking back are further entries, and what stands is
worked out from all of them. Several threads and processes may use the file at once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bayeslink.errors import InputError, OutputError, SettingsError
from bayeslink.private import mode_within

Pair = tuple[str, str]

LINK, NONLINK, UNSURE = "link", "nonlink", "unsure"
VERDICTS = (LINK, NONLINK, UNSURE)
FILE = "review.sqlite"  # its name in a run directory

_OURS = 0x624C724A  # SQLite's application_id
_VERSION = 1
_WAIT = 30.0  # seconds for another process to finish writing


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reviewer's standing verdict on one pair."""

    id_a: str
    id_b: str
    verdict: str
    reviewer: str
    at: str  # UTC, ISO 8601
    case: str
    version: str  # of the case, as the reviewer saw it


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the candidate pairs, from which a random sample is drawn."""

    name: str
    linked: bool  # whether its pairs are links of the run
    size: int  # pairs in it
    expected: float  # links among them, according to the model


@dataclass(frozen=True, slots=True)
class Sample:
    """A stratified random sample of the candidate pairs of a run."""

    run: str  # fingerprint of the run it was drawn from
    seed: int
    strata: tuple[Stratum, ...]
    pairs: tuple[Pair, ...]  # in the random order in which to judge them
    stratum: tuple[int, ...]  # of each pair, as position in `strata`


class Judgements:
    """The judgements in one file, which is made if it is not there.

    Each write is one transaction and is on the disk when its method returns.
    """

    def __init__(self, path: str | Path) -> None:
        # Absolute: the file is found again if the process changes its directory.
        self.path = Path(path).absolute()
        self._lock = threading.RLock()
        try:
            self._make()
            self._db = sqlite3.connect(
                self.path, _WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise
        except sqlite3.Error as error:
            raise _cannot_use(self.path, str(error)) from None

    def add(self, *, case: str, version: str, reviewer: str, verdicts: Mapping[Pair, str]) -> None:
        """Record a reviewer's verdicts on the pairs of a case, all of them or none.

        They take the place of what the reviewer said before of this version of the case, and of
        these pairs in any other.
        """
        if not reviewer:
            raise SettingsError("a judgement needs a reviewer. Give a name or initials.")
        if not verdicts:
            raise SettingsError("a judgement needs a verdict on at least one pair.")
        for verdict in verdicts.values():
            if verdict not in VERDICTS:
                raise SettingsError(f"unknown verdict {verdict!r}. Allowed: {', '.join(VERDICTS)}.")
        with self._writing():
            entry = self._enter(case, version, reviewer)
            self._db.executemany(
                "INSERT INTO verdict VALUES (?, ?, ?, ?)",
                [(entry, *pair, verdict) for pair, verdict in verdicts.items()],
            )

    def undo(self, reviewer: str) -> str | None:
        """Take back the reviewer's latest case that stands; its name, or None if there is none."""
        with self._writing():
            found = self._db.execute(
                'SELECT id, "case", version FROM standing WHERE reviewer = ? '
                "ORDER BY id DESC LIMIT 1",
                (reviewer,),
            ).fetchone()
            if found is None:
                return None
            self._enter(found[1], found[2], reviewer, undoes=found[0])
            return str(found[1])

    def current(self) -> list[Judgement]:
        """Each reviewer's latest standing verdict on each pair, in the order given."""
        found = self._read(_CURRENT)
        if not all(isinstance(cell, str) for row in found for cell in row):
            raise _cannot_use(self.path, "the judgements in it are damaged")
        return [Judgement(*row) for row in found]

    def cases(self) -> list[tuple[str, str, str]]:
        """Cases whose judgement stands, as (case, version, reviewer), in the order given."""
        return self._read(
            'SELECT "case", version, reviewer FROM standing WHERE id = latest ORDER BY id'
        )

    def said(self) -> dict[Pair, set[str]]:
        """The different verdicts that stand on each pair."""
        said: dict[Pair, set[str]] = {}
        for one in self.current():
            said.setdefault((one.id_a, one.id_b), set()).add(one.verdict)
        return said

    def disagreements(self) -> list[Pair]:
        """Pairs that one reviewer calls a link and another a non-link."""
        said = self.said()
        return [pair for pair, verdicts in said.items() if {LINK, NONLINK} <= verdicts]

    def agreed(self) -> tuple[list[Pair], list[Pair]]:
        """Links, and non-links, on which no two reviewers disagree.

        Two of the links may still share a record: see `conflicts`.
        """
        settled = {pair: said - {UNSURE} for pair, said in self.said().items()}
        links = [pair for pair, verdicts in settled.items() if verdicts == {LINK}]
        nonlinks = [pair for pair, verdicts in settled.items() if verdicts == {NONLINK}]
        return links, nonlinks

    def conflicts(self) -> list[Pair]:
        """Agreed links that share a record with another: at most one of them can hold."""
        return conflicting(self.agreed()[0])

    def set_sample(self, sample: Sample) -> None:
        """Store a random sample; it takes the place of an earlier one."""
        with self._writing():
            number = self._db.execute(
                "INSERT INTO sample (at, run, seed) VALUES (?, ?, ?)",
                (_now(), sample.run, sample.seed),
            ).lastrowid
            self._db.executemany(
                "INSERT INTO stratum VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (number, k, s.name, s.linked, s.size, s.expected)
                    for k, s in enumerate(sample.strata)
                ],
            )
            rows = zip(sample.pairs, sample.stratum, strict=True)
            self._db.executemany(
                "INSERT INTO sampled VALUES (?, ?, ?, ?, ?)",
                [(number, k, stratum, *pair) for k, (pair, stratum) in enumerate(rows)],
            )

    def sample(self) -> Sample | None:
        """The latest random sample, if one was drawn."""
        with self._lock:
            found = self._read("SELECT id, run, seed FROM sample ORDER BY id DESC LIMIT 1")
            if not found:
                return None
            (number, run, seed), *_ = found
            strata = self._read(
                "SELECT name, linked, size, expected FROM stratum WHERE sample = ? ORDER BY number",
                (number,),
            )
            rows = self._read(
                "SELECT id_a, id_b, stratum FROM sampled WHERE sample = ? ORDER BY position",
                (number,),
            )
        if not _is_sample(run, seed, strata, rows):
            raise _cannot_use(self.path, "the random sample in it is damaged")
        return Sample(
            run=run,
            seed=seed,
            strata=tuple(Stratum(name, bool(linked), *rest) for name, linked, *rest in strata),
            pairs=tuple((id_a, id_b) for id_a, id_b, _ in rows),
            stratum=tuple(stratum for *_, stratum in rows),
        )

    @contextmanager
    def carried_to(self, path: Path) -> Iterator[None]:
        """Have the file at a second path too; nobody can write to it until the block ends.

        Then the first path may go, or be taken by the second: who has the file open and finds it
        at its old path goes on undisturbed.
        """
        with self._writing():
            try:
                os.link(self.path, path)
            except OSError:  # no hard links there
                with (
                    closing(sqlite3.connect(self.path)) as reader,
                    closing(sqlite3.connect(path)) as copy,
                ):
                    reader.backup(copy)
            yield

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """Check that the file is ours and as we know it; fill a new one."""
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA synchronous = EXTRA")
        if self._is_new():
            with self._writing():
                if self._is_new():  # still, now that no other process can be filling it
                    for statement in _SCHEMA:
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {_OURS}")
                    self._db.execute(f"PRAGMA user_version = {_VERSION}")
        (ours,), (version,) = (
            self._read(f"PRAGMA {name}")[0] for name in ("application_id", "user_version")
        )
        if ours != _OURS:
            raise _cannot_use(self.path, "another program's database")
        if self._read("PRAGMA quick_check(1)") != [("ok",)]:
            raise _cannot_use(self.path, "the database is damaged")
        if version > _VERSION:
            raise InputError(
                f"{self.path} was written by a newer bayeslink. Update bayeslink to read it."
            )

    def _make(self) -> None:
        """Have the file, readable by whom the run is for, before SQLite makes it for all."""
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with suppress(OSError):  # there already, or SQLite will say why it cannot be
            os.close(os.open(self.path, flags, mode_within(self.path.parent)))

    def _is_new(self) -> bool:
        return not self._read("SELECT 1 FROM sqlite_master LIMIT 1")

    def _enter(self, case: str, version: str, reviewer: str, undoes: int | None = None) -> int:
        entry = self._db.execute(
            'INSERT INTO entry (at, reviewer, "case", version, undoes) VALUES (?, ?, ?, ?, ?)',
            (_now(), reviewer, case, version, undoes),
        ).lastrowid
        assert entry is not None
        return entry

    def _read(
        self, query: str, values: Mapping[str, object] | tuple[object, ...] = ()
    ) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or "busy" in str(error):
                    raise _cannot_write(self.path, error) from None
                raise _cannot_use(self.path, str(error)) from None
            except sqlite3.Error as error:
                raise _cannot_use(self.path, str(error)) from None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, alone from its start, so that what it reads still holds at its end."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise _cannot_write(self.path, error) from None
                raise


@contextmanager
def kept_in(directory: Path, folder: Path) -> Iterator[None]:
    """Have the judgements of a directory, if there are any, in the folder that replaces it, too."""
    judged = directory / FILE
    if not judged.exists():
        yield
        return
    with Judgements(judged) as judgements, judgements.carried_to(folder / FILE):
        yield


def conflicting(links: Iterable[Pair]) -> list[Pair]:
    """Links that share a record with another link: at most one of them can hold."""
    pairs = list(dict.fromkeys(links))
    times_a, times_b = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    return [(a, b) for a, b in pairs if times_a[a] > 1 or times_b[b] > 1]


def _is_sample(run: Any, seed: Any, strata: list[Any], rows: list[Any]) -> bool:
    """Whether SQLite, which takes any value anywhere, holds what was put there."""
    return (
        isinstance(run, str)
        and isinstance(seed, int)
        and all(
            isinstance(name, str) and isinstance(size, int) and isinstance(expected, float | int)
            for name, _, size, expected in strata
        )
        and all(
            isinstance(a, str) and isinstance(b, str) and k in range(len(strata))
            for a, b, k in rows
        )
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _cannot_use(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot use {path} for judgements: {reason}. "
        f"Give the {FILE} of a run directory, or a new file in a directory that can be written."
    )


def _cannot_write(path: Path, error: sqlite3.Error) -> OutputError:
    return OutputError(
        f"cannot write to {path}: {error}. What was there is untouched. "
        "Check the permissions and the space left, and try again."
    )


_SCHEMA = (
    """CREATE TABLE entry (
        id INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        reviewer TEXT NOT NULL,
        "case" TEXT NOT NULL,
        version TEXT NOT NULL,
        undoes INTEGER UNIQUE REFERENCES entry (id)
    )""",
    """CREATE TABLE verdict (
        entry INTEGER NOT NULL REFERENCES entry (id),
        id_a TEXT NOT NULL,
        id_b TEXT NOT NULL,
        verdict TEXT NOT NULL CHECK (verdict IN ('link', 'nonlink', 'unsure')),
        PRIMARY KEY (entry, id_a, id_b)
    ) WITHOUT ROWID""",
    # Entries not taken back; of those on one version of a case, the reviewer's latest counts.
    """CREATE VIEW standing AS
        SELECT *, max(id) OVER (PARTITION BY reviewer, "case", version) AS latest FROM entry
        WHERE undoes IS NULL
        AND id NOT IN (SELECT undoes FROM entry WHERE undoes IS NOT NULL)""",
    """CREATE TABLE sample (
        id INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        run TEXT NOT NULL,
        seed INTEGER NOT NULL
    )""",
    """CREATE TABLE stratum (
        sample INTEGER NOT NULL REFERENCES sample (id),
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        linked INTEGER NOT NULL,
        size INTEGER NOT NULL,
        expected REAL NOT NULL,
        PRIMARY KEY (sample, number)
    ) WITHOUT ROWID""",
    """CREATE TABLE sampled (
        sample INTEGER NOT NULL,
        position INTEGER NOT NULL,
        stratum INTEGER NOT NULL,
        id_a TEXT NOT NULL,
        id_b TEXT NOT NULL,
        PRIMARY KEY (sample, position),
        FOREIGN KEY (sample, stratum) REFERENCES stratum (sample, number)
    ) WITHOUT ROWID""",
)

_CURRENT = """
    SELECT id_a, id_b, verdict, reviewer, at, "case", version FROM (
        SELECT verdict.*, standing.*, row_number() OVER (
            PARTITION BY id_a, id_b, reviewer ORDER BY entry DESC
        ) AS back
        FROM standing JOIN verdict ON verdict.entry = standing.id
        WHERE standing.id = standing.latest
    )
    WHERE back = 1 ORDER BY entry, id_a, id_b
"""
