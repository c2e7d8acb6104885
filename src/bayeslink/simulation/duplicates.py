"""One synthetic file in which people appear more than once, some of them in several forms.

Each person's records are written down one after the other. Some people move in between, some take
another surname: the records before and after are two forms of one person. Every record has errors
of its own, so that none is known for the right one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.simulation.files import check, record_ids
from bayeslink.simulation.mistakes import ALL_KINDS, corrupt, forget
from bayeslink.simulation.people import population

SIZES = (0.6, 0.25, 0.1, 0.05)  # shares of people with 1, 2, 3, 4 records, unless others are given

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SimulatedFile:
    """A synthetic file with duplicates and the truth about it.

    Attributes
    ----------
    a
        The file: `id` and the eight fields, all text, null where missing.
    truth
        Which person each record is of: `id`, `entity_id`, in the order of the file.
    """

    a: pa.Table
    truth: pa.Table

    @property
    def tables(self) -> dict[str, pa.Table]:
        """What is written, by the name of the file."""
        return {"a.csv": self.a, "truth.csv": self.truth}


def simulate_duplicates(
    n: int = 1000,
    *,
    sizes: Sequence[float] = SIZES,
    moved: float = 0.1,
    married: float = 0.1,
    errors: int = 1,
    kinds: Sequence[str] = ALL_KINDS,
    missing: float = 0.05,
    households: bool = True,
    spread: str = "exact",
    group_quarters: float = 0.0,
    eras: bool = True,
    seed: int = 0,
) -> SimulatedFile:
    """Make one file in which people appear more than once.

    Parameters
    ----------
    n
        Records in the file.
    sizes
        Shares of the people who have 1, 2, 3, … records; they need not add up to 1.
    moved
        Share of the people with several records who have another address from one of them on.
    married
        Share of the women with several records who have another surname from one of them on.
    errors, kinds, spread
        Wrong fields in each record, as in `simulate`: here all records have some.
    missing
        Further rate of missing cells.
    households, group_quarters, eras
        As in `simulate`. People of one household are different people who share an address.
    seed
        The same seed gives the same file, byte for byte.

    Returns
    -------
    SimulatedFile
        With rows in random order and ids that say nothing about the truth.
    """
    shares = {"moved": moved, "married": married, "missing": missing}
    check(errors, kinds, spread, seed, {**shares, "group_quarters": group_quarters}, n=n)
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), _sizes_drawn(n, sizes, rng))[:n]
    n_people = int(who[-1]) + 1
    # As many people again, who are not in the file: whose address or surname others come to have.
    people = population(
        2 * n_people, max(20, n // 300), households, rng, eras=eras, group_quarters=group_quarters
    )
    turned = partial(_changed, who, rng=rng)
    women = pc.equal(people["sex"], "f").to_numpy()[:n_people]
    moves, marries = turned(np.ones(n_people, bool), moved), turned(women, married)
    file = people.take(who)
    other = people.take(who + n_people)
    for columns, later in ((("postcode", "street"), moves), (("fname",), marries)):
        for name in columns:
            column = pc.if_else(pa.array(later), other[name], file[name])
            file = file.set_column(file.column_names.index(name), name, column)
    order = rng.permutation(n)
    file, who = file.take(order), who[order]
    file = forget(corrupt(file, errors, kinds, rng, spread), missing, rng)
    ids, entities = record_ids("A", n), record_ids("P", n_people)
    named = entities.take(rng.permutation(n_people)[who])
    return SimulatedFile(file.add_column(0, "id", ids), pa.table({"id": ids, "entity_id": named}))


def _sizes_drawn(n: int, sizes: Sequence[float], rng: np.random.Generator) -> Ints:
    """Records of each of n people; more than needed."""
    shares = np.array(sizes, np.float64)
    if shares.ndim != 1 or not len(shares) or not (shares >= 0).all() or not 0 < shares.sum() < 1e9:
        raise SettingsError(
            f"sizes must be the shares of people with 1, 2, 3, … records, got {sizes!r}. They are "
            f"not negative, and not all 0; leave them out for {', '.join(map(str, SIZES))}."
        )
    return 1 + rng.choice(len(shares), size=n, p=shares / shares.sum())


def _changed(
    who: Ints, may: NDArray[np.bool_], share: float, *, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which records are of a time after their person's change; each form has one, at least."""
    n_records = np.bincount(who)
    changes = may & (n_records > 1) & (rng.random(len(may)) < share)
    before = 1 + (rng.random(len(may)) * (n_records - 1)).astype(np.int64)
    place = np.arange(len(who)) - np.searchsorted(who, who)
    return np.asarray(changes[who] & (place >= before[who]))
