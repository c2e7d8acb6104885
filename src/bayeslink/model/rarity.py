"""Where agreement on a rare value is no better a sign of a link than agreement on a common one.

Two records agree on a value by chance, and then mostly on a common one, or because one household or
house has it: then the value is that of some person, as it is among links, and how rare it is says
nothing of which of the two it was. Which of them it is can be seen in pairs that are certainly no
links and agree in another field too. How often such pairs share one of the *rarest* values cannot:
a pair of a certain record that shares its value shares it with the link too, so that the value is
not that rare. It was once learned there, and spouses became one person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.pairs.source import Floats, Ints

_FEWEST = 10  # pairs that agree in both fields, and
_LIFT = 2.0  # how many for one that would by chance, or chance will do


def shared_values(
    fields: Sequence[Field], tables: Ints, margins: Sequence[Floats], links: NDArray[np.uint8]
) -> dict[int, Floats]:
    """Fields in which non-links share values as links do, and how frequent each rarity is there.

    Parameters
    ----------
    tables
        [field, other field, level, other level]: joint counts of certain non-links.
    margins
        The law of each field over all pairs.
    links
        Comparison vectors of certain links.
    """
    found = {}
    for j, f in enumerate(fields):
        if not f.bands:
            continue
        own = margins[j][agreement(f)]
        own = own / own.sum()
        of_links = np.bincount(links[:, j], minlength=f.n_levels + 1)[agreement(f)] + own
        of_links = of_links / of_links.sum()
        others = [k for k in range(len(fields)) if k != j]
        if any(
            _as_links_do(
                tables[k, j, agreement(fields[k]), agreement(f)].sum(0),
                _expected(tables[k, j, 1:, 1:], fields[k], f),
                own,
                of_links,
            )
            for k in others
        ):
            found[j] = of_links
    return found


def agreement(field: Field) -> slice:
    """Levels of full agreement, those on ever rarer values last."""
    return slice(field.n_levels - len(field.bands), field.n_levels + 1)


def _expected(table: Ints, one: Field, other: Field) -> float:
    """How many of the pairs would agree in both fields if these were independent."""
    rows, columns = (slice(agreement(f).start - 1, f.n_levels) for f in (one, other))
    return float(table[rows].sum() * (table[:, columns].sum() / max(1, table.sum())))


def _as_links_do(seen: Ints, expected: float, own: Floats, of_links: Floats) -> bool:
    """Whether values shared by pairs that agree in another field are rather those of links.

    `seen` are these pairs by rarity. The rarest cannot all be seen, so it is left out.
    """
    if seen.sum() < max(_FEWEST, _LIFT * expected):
        return False
    seen, own, of_links = seen[:-1], own[:-1], of_links[:-1]
    if len(seen) == 1:  # nothing but how many there are can tell
        return True
    ratio = np.log(of_links / of_links.sum()) - np.log(own / own.sum())
    return bool(seen @ ratio > 0)


def join(
    fields: Sequence[Field], tables: Ints, margins: Sequence[Floats], shared: Mapping[int, Floats]
) -> tuple[Ints, list[Floats]]:
    """Joint counts and laws with full agreement in one level, in the fields where that is so."""
    tables, margins = tables.copy(), [margin.copy() for margin in margins]
    for j in shared:
        at = agreement(fields[j])
        for counts in (tables[j], np.moveaxis(tables, 3, 2)[:, j]):
            counts[:, at.start] = counts[:, at].sum(1)
            counts[:, at.start + 1 : at.stop] = 0
        margins[j][at.start] = margins[j][at].sum()
        margins[j][at.start + 1 : at.stop] = 0
    return tables, margins


def part(
    log_u: Floats, fields: tuple[Field, Field], shares: tuple[Floats | None, Floats | None]
) -> Floats:
    """log u of a field given another, [other, field], with the levels that were joined."""
    out = log_u.copy()
    (field, on), (of_field, of_other) = fields, shares
    if of_field is not None:
        at = agreement(field)
        out[:, at] = log_u[:, [at.start]] + np.log(of_field)
    if of_other is not None:
        at = agreement(on)
        out[at] = out[at.start]
    return out
