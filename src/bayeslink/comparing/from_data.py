"""What a field leaves to the data: cut points, frequency bands, and which levels are worth having.

None of it looks at any truth. Cut points follow from how often values of different records are as
near by chance: each level is a few times rarer among all pairs than the one below, from a share of
the pairs that says little down to less than a pair a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.comparisons import value_array
from bayeslink.comparing.dates import fillers, two_calendars
from bayeslink.comparing.fields import (
    CALENDAR,
    FILLER,
    PARTIAL,
    Field,
    band_labels,
    date_labels,
    default_m_prior,
    distance_labels,
)
from bayeslink.comparing.level_tables import number_bounds
from bayeslink.comparing.texts import Rarity, rare_codes, scored, text_ladder

if TYPE_CHECKING:
    from bayeslink.comparing.dictionaries import Codes

SAMPLE = 500  # values of A that cut points are told from
FEWEST = 20  # pairs of records at a level, or it is joined with its neighbour
_MOST, _STEP = 4, 2.0  # cuts beside equality, and how much rarer one is than the next, at least
_WIDEST = 0.1  # share of all pairs within the last cut, at most
_LEAST = 0.1  # likeness that is looked at for cuts
_CODED = 0.2  # share of the texts of each file with a code of their own that makes codes count
_ALIKE = (0.1, 0.4, 1.0, 2.5, 8.0)  # pairs a record from each cut of a likeness on
_NUMBERS = tuple(d * 10.0**k for k in range(-6, 9) for d in (1, 2, 3, 5))
_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365, 730)
_TENS = 10.0  # larger numbers so many times the smaller: differences count in proportion
_BANDS, _RARER = 3, 4.0  # frequency bands, and how many times as rare as the one before


def relabelled(field: Field, labels: Sequence[str], n_bands: int = 0, **changes: Any) -> Field:
    """The field with other levels, and priors to go with them.

    However many levels there are, the prior of m is worth as much as that of four.
    """
    prior = default_m_prior(len(labels) - n_bands - 1, n_bands)
    most = sum(default_m_prior(3, 0))
    scale = min(1.0, most / sum(prior))
    return replace(
        field,
        labels=tuple(labels),
        m_prior=tuple(alpha * scale for alpha in prior),
        u_prior=(1.0,) * len(labels),
        **changes,
    )


# --- distances ------------------------------------------------------------------------------------


def number_field(field: Field, a: Codes, b: Codes) -> Field:
    """A numeric field with what is left open: cuts, and whether differences are relative."""
    options = dict(field.options)
    if options["relative"] is None:
        options["relative"] = _in_proportion(a, b)
    cuts = field.cuts
    if not cuts:
        nice = [c for c in _NUMBERS if c < 0.5] if options["relative"] else _NUMBERS
        trial = replace(field, options=options)
        cuts = _by_chance(trial, a, b, nice, lambda v, c: _number_window(trial, v, c))
    unit = " of the larger" if options["relative"] else ""
    labels = distance_labels(cuts, "difference", unit)
    return relabelled(field, labels, cuts=cuts, options=options)


def _in_proportion(a: Codes, b: Codes) -> bool:
    """Whether numbers differ so much in size that only their ratio tells how near two are."""
    sizes = np.abs(np.concatenate([_drawn(side) for side in (a, b)]))
    if len({*a.values, *b.values}) < 200 or not len(sizes):
        return False
    low, high = np.quantile(sizes, [0.1, 0.9])
    return bool(high > _TENS * low)


def _number_window(
    field: Field, values: NDArray[Any], cut: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    return number_bounds(replace(field, cuts=(cut,)), values)


def date_field(field: Field, a: Codes, b: Codes) -> Field:
    """A date field with windows in days, and with levels for dates that are not whole."""
    options = dict(field.options)
    partial = any(date % 100 == 0 for side in (a, b) for date in side.values)
    counts = [dict(zip(side.values, side.counts[:-1].tolist(), strict=True)) for side in (a, b)]
    options["partial"] = partial or _has_prior(field, PARTIAL)
    options["filler"] = fillers(*counts) or _has_prior(field, FILLER)
    options["calendar"] = two_calendars(*counts) or _has_prior(field, CALENDAR)
    auto = not field.cuts
    if auto and _share_one_digit_off(a, b) >= _WIDEST / 2:
        options |= {"one_digit": False, "exchanged": False}
    cuts = field.cuts or _by_chance(field, a, b, _DAYS, lambda v, c: (v - c, v + c))
    if not auto and not any(options[which] for which in ("partial", "filler", "calendar")):
        return field
    priors = [field.settings.get(which) for which in ("m_prior", "u_prior")]
    if any(given and not isinstance(given, Mapping) for given in priors):  # for levels as given
        return field
    return relabelled(field, date_labels(cuts, options), cuts=cuts, options=options)


def _share_one_digit_off(a: Codes, b: Codes) -> float:
    """Of all pairs: in files of a few months it is a large one, and means nothing."""
    sides = [_drawn(side).astype(np.int64) for side in (a, b)]
    if not all(map(len, sides)):
        return 0.0
    digits = [np.stack([side // 10**p % 10 for p in range(8)], 1) for side in sides]
    return float(((digits[0][:, None] != digits[1][None]).sum(2) == 1).mean())


def _by_chance(
    field: Field,
    a: Codes,
    b: Codes,
    nice: Sequence[float],
    window: Callable[[NDArray[Any], float], tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[float, ...]:
    """0, and those of the `nice` numbers at which pairs within them are evenly rarer."""
    sides = []
    for own in (_drawn(a).tolist(), b.values):
        values = value_array(field, own)
        sides.append(values[:, 2] if values.ndim == 2 else values)
    itself = 1.0 if a is b else 0.0  # in one file
    if not len(sides[0]) or not len(sides[1]):
        return (0.0,)
    order = np.argsort(sides[1], kind="stable")
    keys, below = sides[1][order], np.concatenate([[0], np.cumsum(b.counts[:-1][order])])

    def within(cut: float) -> float:
        low, high = window(sides[0], cut)
        ends = (np.searchsorted(keys, low, "left"), np.searchsorted(keys, high, "right"))
        return float((below[ends[1]] - below[ends[0]]).mean()) - itself

    at = np.array([within(cut) for cut in nice])
    first, last = max(_STEP * within(0), 0.1), _WIDEST * below[-1]
    if last < first:
        return (0.0,)
    n = int(min(_MOST, 1 + np.log(last / first) / np.log(_STEP)))
    targets = np.geomspace(last, first, n)
    fit = [(cut, r) for cut, r in zip(nice, at, strict=True) if within(0) < r <= last * 1.1]
    chosen = {min(fit, key=lambda c: abs(np.log(c[1] / t)))[0] for t in targets if fit}
    return (0.0, *sorted(float(cut) for cut in chosen))


def _drawn(side: Codes, most: int = SAMPLE) -> NDArray[Any]:
    """Values of records spread evenly over those that have one."""
    counts = np.cumsum(side.counts[:-1])
    if not len(counts):
        return np.zeros(0)
    n = int(min(most, counts[-1]))
    ranks = (np.arange(n) + 0.5) / n * counts[-1]
    return np.array([side.values[k] for k in np.searchsorted(counts, ranks, "right").tolist()])


# --- likenesses -----------------------------------------------------------------------------------


def text_field(field: Field, a: Codes, b: Codes) -> Field:
    """A text field with cuts, and the weights of words, as the data have them."""
    rarity = Rarity.of(a.values, b.values)
    codes = rare_codes(a.values, b.values) if field.options["codes"] is not False else None
    if codes is not None and field.options["codes"] is None:
        shares = [np.mean([bool(codes(v)) for v in side.values] or [False]) for side in (a, b)]
        codes = codes if min(shares) >= _CODED else None
    cuts = field.cuts or _alike_cuts(a.values, b.values, rarity)
    ladder, labels = text_ladder(cuts, rarity, codes)
    told = {"ladder": ladder, "alike": cuts, "codes": codes is not None}
    return relabelled(field, labels, cuts=(), options={**field.options, **told})


def _alike_cuts(x: Sequence[str], y: Sequence[str], rarity: Rarity) -> tuple[float, ...]:
    """Cuts of the likeness, from some values of A with all of B, equal ones left aside."""
    drawn = [x[k] for k in np.linspace(0, len(x) - 1, min(SAMPLE, len(x))).astype(int)]
    if not drawn or not y:
        return (0.5,)
    rows, columns, scores = scored(drawn, y, rarity, _LEAST)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    other = np.array([drawn[row] != y[column] for row, column in pairs], bool)
    ranked = np.sort(scores[other])[::-1]
    cuts = []
    for rate in _ALIKE:
        rank = int(rate * len(drawn))
        if 0 < rank <= len(ranked) and rate * len(x) >= FEWEST:
            cuts.append(round(float(ranked[rank - 1]), 2))
    return tuple(sorted({cut for cut in cuts if 0 < cut < 1}, reverse=True)) or (0.5,)


# --- frequency bands ------------------------------------------------------------------------------


def with_bands(field: Field, a: Codes, b: Codes) -> Field:
    """Agreement split by how common the value is, where some values are far more common.

    Bands are cut where values are 4, 16 and 64 times as rare as the most common one, as far as
    enough pairs of records agree in each.
    """
    in_b = dict(zip(b.values, b.counts[:-1].tolist(), strict=True))
    shared = [
        (n, in_b[v]) for v, n in zip(a.values, a.counts[:-1].tolist(), strict=True) if v in in_b
    ]
    if not shared:
        return field
    n_a, n_b = np.array(shared, np.float64).T
    share = (n_a + n_b) / (a.counts[:-1].sum() + b.counts[:-1].sum())
    pairs, bands, upper = n_a * (n_b - 1) / 2 if a is b else n_a * n_b, [], np.inf
    for k in range(_BANDS):
        band = float(f"{share.max() / _RARER ** (k + 1):.2g}")
        enough = (pairs[(share > band) & (share <= upper)].sum(), pairs[share <= band].sum())
        if min(enough) >= FEWEST:
            bands.append(band)
            upper = band
    if not bands:
        return field
    labels = [*field.labels[:-1], *band_labels(field.labels[-1], tuple(bands))]
    return relabelled(field, labels, len(bands), bands=tuple(bands))


def level_with_copy(field: Field, a: Codes, b: Codes) -> list[NDArray[np.uint8]]:
    """Level of each record, of A and of B, against a copy of itself in the other file.

    Agreement, on a value that at least one record of the other file then has; 0 where missing.
    """
    present = a.counts[:-1].sum() + b.counts[:-1].sum()
    top, found = field.n_levels - len(field.bands), []
    for own, other in ((a, b), (b, a)):
        in_other = dict(zip(other.values, other.counts[:-1].tolist(), strict=True))
        copies = np.array([max(1, in_other.get(v, 0)) for v in own.values], np.int64)
        share = (own.counts[:-1] + copies) / max(1, present)
        levels = np.full(len(own.values) + 1, top, np.uint8)
        for band in field.bands:
            levels[:-1] += share <= band
        levels[-1] = 0
        found.append(levels[own.codes])
    return found


# --- levels that are worth having -----------------------------------------------------------------


def joined_levels(
    field: Field, pairs: NDArray[Any], lowest: int
) -> tuple[Field, NDArray[np.uint8]]:
    """The field without levels that hardly any pairs have, and the new level of each old one.

    `pairs` are the pairs at each level, 0 first. Levels above `lowest` and below agreement are
    joined from the worst up until they have `FEWEST` pairs; agreement stays as it is.
    """
    top = field.n_levels - len(field.bands)
    lowest = min(lowest, top - 1)
    new = np.arange(field.n_levels + 1, dtype=np.uint8)
    groups: list[list[int]] = []
    for level in range(lowest + 1, top):
        if groups and sum(pairs[h] for h in groups[-1]) < FEWEST:
            groups[-1].append(level)
        else:
            groups.append([level])
    if len(groups) > 1 and sum(pairs[h] for h in groups[-1]) < FEWEST:
        last = groups.pop()
        groups[-1].extend(last)
    kept = [*([h] for h in range(1, lowest + 1)), *groups, *([h] for h in range(top, len(new)))]
    for level, group in enumerate(kept, 1):
        new[group] = level
    labels = [_joined_label(field, group, pairs) for group in kept]
    return relabelled(field, labels, len(field.bands)), new


def _joined_label(field: Field, group: Sequence[int], pairs: NDArray[Any]) -> str:
    """The labels of those levels that pairs have, or else of the first."""
    seen = [h for h in group if pairs[h]] or [group[0]]
    return " or ".join(field.labels[h - 1] for h in seen)


# --- priors by label ------------------------------------------------------------------------------


def joined_as_given(field: Field, lowest: int) -> tuple[Field, NDArray[np.uint8]]:
    """The field with the levels for which priors were given, and the new level of each old one.

    A label such as "x or y" joins two levels; one without a prior joins the next worse, or, if that
    is `lowest`, the next better below agreement, as in `joined_levels`. The levels up to `lowest`
    and the next stay apart: they share a prior that was given for both.
    """
    of_m, of_u = (field.options.get(which, {}) for which in ("m_prior", "u_prior"))
    new = np.zeros(field.n_levels + 1, np.uint8)
    labels: list[str] = []
    called: list[str | None] = []
    names = [_name_in(of_m or of_u, label) for label in field.labels]
    below = names[lowest : field.n_levels - len(field.bands) - 1]
    if below and below[0] is None:
        names[lowest] = next((name for name in below if name), None)
    for level, (label, name) in enumerate(zip(field.labels, names, strict=True), 1):
        if level <= lowest + 1 or name not in (None, called[-1]):
            labels.append(label if name is None or level <= lowest else name)
            called.append(name)
        new[level] = len(labels)
    joined = relabelled(field, labels, len(field.bands))
    m = [
        of_m[n] / called.count(n) if n in of_m else p
        for n, p in zip(called, joined.m_prior, strict=True)
    ]
    u = [
        of_u[n] / called.count(n) if n in of_u else p
        for n, p in zip(called, joined.u_prior, strict=True)
    ]
    return replace(joined, m_prior=tuple(m), u_prior=tuple(u)), new


def _name_in(given: Iterable[str], label: str) -> str | None:
    """The label among those given that a level goes by: its own, or one that joins it to others."""
    return next((name for name in given if f" or {label} or " in f" or {name} or "), None)


def _has_prior(field: Field, label: str) -> bool:
    return _name_in(field.options.get("m_prior", {}), label) is not None


# --- all of it ------------------------------------------------------------------------------------

_SETTLE: dict[str, Callable[[Field, Codes, Codes], Field]] = {
    "numeric": number_field,
    "date": date_field,
    "text": text_field,
    "address": text_field,
    "company": text_field,
}


def settled(field: Field, a: Codes, b: Codes) -> Field:
    """The field with everything told from the data that it leaves open."""
    if field.options.get("settle"):
        field = _SETTLE[field.kind](field, a, b)
    return with_bands(field, a, b) if field.options.get("bands") == "auto" else field
