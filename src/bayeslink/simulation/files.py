"""Synthetic files with known truth, in the manner of the simulation study (Section 5.2).

A population of people, mostly in households, is spread over two files. File A records them
rightly; every record of file B, matched or not, is written down with errors. (Were only the
matched ones wrong, the errors would give the truth away.)
"""

import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from bayeslink.errors import OutputError, SettingsError
from bayeslink.simulation.mistakes import (
    ALL_KINDS,
    ERROR_FIELDS,
    KINDS,
    SPREADS,
    corrupt,
    forget,
)
from bayeslink.simulation.people import population

FILES = ("a.csv", "b.csv", "truth.csv")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Simulation:
    """Two synthetic files and the truth about them.

    Attributes
    ----------
    a, b
        The files: `id` and the eight fields, all text, null where missing.
    truth
        The pairs that are the same person: `id_a`, `id_b`.
    """

    a: pa.Table
    b: pa.Table
    truth: pa.Table

    @property
    def tables(self) -> dict[str, pa.Table]:
        """What is written, by the name of the file."""
        return dict(zip(FILES, (self.a, self.b, self.truth), strict=True))


class Simulated(Protocol):
    """What can be written: two files, or one with duplicates, and the truth."""

    @property
    def tables(self) -> dict[str, pa.Table]: ...


def simulate(
    n: int = 1000,
    *,
    n_b: int | None = None,
    overlap: float = 0.5,
    errors: int = 2,
    kinds: Sequence[str] = ALL_KINDS,
    missing: float = 0.05,
    households: bool = True,
    spread: str = "exact",
    group_quarters: float = 0.0,
    eras: bool = True,
    duplicates: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Make two files of people, of whom some are in both (cf. Section 5.2).

    Parameters
    ----------
    n, n_b
        Records in A and in B (as many as in A if left out).
    overlap
        Share of the smaller file that has a match in the other, rounded to whole records.
    errors
        Fields of each record of B that are written down wrongly, drawn from gname, fname, dob,
        age, occup, postcode and street. Sex is never wrong, only missing at times. An exchange of
        gname and fname counts as one error; a value on which none of `kinds` can act stays right.
    kinds
        Kinds of error, equally likely where they apply: "typing", "ocr", "phonetic", "swap"
        (gname with fname; day with month) and "missing". An error in the categories age and
        occup is another category or, if "missing" is among the kinds, sometimes none. "nickname",
        Bill for William, is not among them unless asked for.
    missing
        Further rate of missing cells in B; a fifth of it holds in A.
    households
        Whether people share street, postcode and mostly surname in groups of one to six.
    spread
        "exact": every record of B has just so many errors. "independent": each field is wrong by
        itself, with so many errors on average. "clustered": a careless quarter of the records has
        most of them.
    group_quarters
        Share of people who live in homes, halls or barracks: some thirty at one address.
    eras
        Whether given names come and go with the year of birth.
    duplicates
        Share of the people in B who are written down there twice, each time with errors of its own:
        B then has more than `n_b` records, and the truth more than one pair for some of A.
    seed
        The same seed gives the same files, byte for byte.

    Returns
    -------
    Simulation
        With rows in random order and ids that say nothing about the truth.
    """
    n_a, n_b = n, n if n_b is None else n_b
    shares = {"overlap": overlap, "missing": missing}
    shares |= {"group_quarters": group_quarters, "duplicates": duplicates}
    check(errors, kinds, spread, seed, shares, n=n_a, n_b=n_b)
    rng = np.random.default_rng(seed)
    n_links = round(overlap * min(n_a, n_b))
    n_people = n_a + n_b - n_links
    people = population(
        n_people,
        max(20, max(n_a, n_b) // 300),
        households,
        rng,
        eras=eras,
        group_quarters=group_quarters,
    )
    order = rng.permutation(n_people)
    who_a, who_b = rng.permutation(order[:n_a]), rng.permutation(order[n_a - n_links :])
    a = forget(people.take(who_a), missing / 5, rng)
    if duplicates:
        again = who_b[rng.random(n_b) < duplicates]
        who_b = rng.permutation(np.concatenate([who_b, again]))
    b = forget(corrupt(people.take(who_b), errors, kinds, rng, spread), missing, rng)
    ids_a, ids_b = record_ids("A", n_a), record_ids("B", len(who_b))
    row_a, row_b = _same_people(who_a, who_b)
    truth = pa.table({"id_a": ids_a.take(row_a), "id_b": ids_b.take(row_b)})
    return Simulation(a.add_column(0, "id", ids_a), b.add_column(0, "id", ids_b), truth)


def write_simulation(sim: Simulated, directory: Path, *, force: bool = False) -> None:
    """Write a.csv, b.csv and truth.csv to a directory, all or none; of one file, no b.csv.

    Parameters
    ----------
    sim
        What to write. A missing cell is nothing between commas.
    directory
        Made if need be.
    force
        Replace an earlier simulation there. A directory that holds anything else is refused.
    """
    directory = Path(directory).resolve()
    check_directory(directory, force=force)
    token = secrets.token_hex(4)
    fresh = directory.with_name(f".{directory.name}.{token}.new")
    old = directory.with_name(f".{directory.name}.{token}.old")
    try:
        fresh.mkdir(parents=True)
        for name, table in sim.tables.items():
            _write_csv(table, fresh / name)
        if directory.exists():
            directory.rename(old)
        fresh.rename(directory)
    except OSError as error:
        raise OutputError(
            f"Could not write the simulation to {directory}: {error}. What was there before is "
            "untouched. Choose a directory that can be written and has room."
        ) from error
    finally:
        if old.exists() and not directory.exists():
            old.rename(directory)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(fresh, ignore_errors=True)


def _same_people(who_a: Ints, who_b: Ints) -> tuple[Ints, Ints]:
    """Rows of A and of B that are the same person, by rows of A."""
    order = np.argsort(who_b, kind="stable")
    first, last = (np.searchsorted(who_b[order], who_a, side=side) for side in ("left", "right"))
    n = last - first
    at = np.arange(n.sum()) + np.repeat(first - (np.cumsum(n) - n), n)
    return np.repeat(np.arange(len(who_a)), n), order[at]


def check(
    errors: int,
    kinds: Sequence[str],
    spread: str,
    seed: int,
    shares: Mapping[str, float],
    **sizes: int,
) -> None:
    """Refuse what no file can be made with."""
    most = len(ERROR_FIELDS)
    for name, size in sizes.items():
        _check_whole(name, size, 1, None, f"records in file {'B' if name == 'n_b' else 'A'}")
    _check_whole("seed", seed, 0, None, "the start of the random numbers")
    _check_whole("errors", errors, 0, most, f"wrong fields per record ({', '.join(ERROR_FIELDS)})")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise SettingsError(
                f"{name} must be between 0 and 1, got {share!r}. It is a share; write 5 % as 0.05."
            )
    if spread not in SPREADS:
        raise SettingsError(
            f"spread must be one of {', '.join(SPREADS)}, got {spread!r}. It says how errors are "
            "spread over records and fields; leave it out for exactly so many in each record."
        )
    unknown = sorted({*kinds} - {*KINDS}) if not isinstance(kinds, str) else [kinds]
    if unknown or (errors and not kinds):
        raise SettingsError(
            f"kinds must be a list of known kinds of error, got {unknown or kinds!r}. Allowed are "
            f"{', '.join(KINDS)}; leave it out for all but the last."
        )


def _check_whole(name: str, value: int, low: int, high: int | None, meaning: str) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise SettingsError(
            f"{name} must be a whole number {allowed}, got {value!r}. It is {meaning}; "
            f"choose one {allowed} or leave {name} out."
        )


def record_ids(letter: str, n: int) -> pa.Array:
    """Ids of n records, or people: a letter and a number."""
    width = max(6, len(str(n)))
    return pa.array([f"{letter}{k:0{width}d}" for k in range(1, n + 1)], pa.string())


# --- output ---------------------------------------------------------------------------------


def check_directory(directory: Path, *, force: bool) -> None:
    """Refuse a directory that holds anything but a simulation that may be replaced."""
    directory = directory.resolve()
    if not directory.exists():
        return
    if Path.cwd().is_relative_to(directory):
        raise OutputError(
            f"{directory} is where you are. A simulation replaces a whole directory; "
            "name a new one inside it."
        )
    if not directory.is_dir():
        raise OutputError(f"{directory} is a file. A simulation needs a directory; name another.")
    held = {path.name for path in directory.iterdir()}
    if others := held - {*FILES}:
        raise OutputError(
            f"{directory} holds {len(others)} other files. A simulation replaces a whole "
            "directory; name a new one."
        )
    if held and not force:
        raise OutputError(
            f"{directory} already holds a simulation. It is replaced only if you say so; "
            "use force (--force) or name a new directory."
        )


def _write_csv(table: pa.Table, path: Path) -> None:
    """Write plain CSV: no value we make needs a quote."""
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none", batch_size=65_536)
    with path.open("wb") as file:
        file.write((",".join(table.column_names) + "\n").encode())
        pa.csv.write_csv(table, file, options)
