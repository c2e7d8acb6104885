"""From cell texts to comparable values, and from two lists of values to a matrix of levels."""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler, Levenshtein
from scipy import sparse

from bayeslink.errors import InputError, SettingsError
from bayeslink.fields import Field

Levels = NDArray[np.uint8]
JOIN = "\x1f"  # between the columns of a field that has two (geo)

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_EARTH_KM = 6371.0088


class UnreadableDateError(InputError):
    """A value that needs a date format that was not given; the caller knows where it stands."""


# --- values -----------------------------------------------------------------------------------


def normalise(text: str, steps: Sequence[str]) -> str:
    """Even out what `steps` names; their order is fixed, whatever the order given."""
    if "accents" in steps:
        text = "".join(
            c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
        )
    if "case" in steps:
        text = text.casefold()
    if "unicode" in steps:
        text = unicodedata.normalize("NFC", text)
    if "punctuation" in steps:
        text = "".join(
            "" if c in "'’`" else " " if unicodedata.category(c)[0] in "PS" else c for c in text
        )
    if "space" in steps or "punctuation" in steps:
        text = " ".join(text.split())
    return text


def value_reader(field: Field, side: int) -> Callable[[str], Any]:
    """The function from a cell's text to the value compared; it returns None for missing."""
    if field.kind == "numeric":
        return lambda text: _number(text, field.options["valid"])
    if field.kind == "date":
        first, last = (dt.date.fromisoformat(d) for d in field.options["valid"])
        form = field.options["formats"][side]
        return lambda text: _date(text.strip(), form, first, last)
    if field.kind == "geo":
        return _place
    return lambda text: normalise(text, field.normalise) or None


def _number(text: str, valid: tuple[float, float]) -> float | None:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if valid[0] <= value <= valid[1] and math.isfinite(value) else None


def _date(text: str, form: str | None, first: dt.date, last: dt.date) -> int | None:
    """YYYYMMDD of the date; None if there is no such day or it lies outside first … last."""
    try:
        if form is None:
            if not _ISO.match(text):
                raise UnreadableDateError
            day = dt.date.fromisoformat(text)
        else:
            day = dt.datetime.strptime(text, form).date()
    except ValueError as error:
        if isinstance(error, UnreadableDateError):
            raise
        return None
    return day.year * 10000 + day.month * 100 + day.day if first <= day <= last else None


def _place(text: str) -> tuple[float, float] | None:
    latitude, longitude = (_number(part, (-math.inf, math.inf)) for part in text.rsplit(JOIN, 1))
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return latitude, longitude


# --- levels -----------------------------------------------------------------------------------


def level_matrix(field: Field, x: Sequence[Any], y: Sequence[Any], threads: int) -> Levels:
    """Level of each value of x against each of y, frequency bands left aside."""
    return _MATRICES[field.kind](field, x, y, threads)


def _cut_distances(d: NDArray[Any], cuts: Sequence[float]) -> Levels:
    """Level k for d ≤ cuts[0], k−1 for d ≤ cuts[1], …, 1 beyond the last."""
    levels = np.ones(d.shape, np.uint8)
    for cut in cuts:
        levels += d <= cut
    return levels


def _edit_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    scorer = Levenshtein if field.kind == "levenshtein" else OSA
    lengths = [np.array([len(v) for v in vs], np.float64) for vs in (x, y)]
    longer = np.maximum(lengths[0][:, None], lengths[1][None, :])
    cutoff = math.ceil(field.cuts[-1] * longer.max()) if field.cuts[-1] < 1 else None
    dtype = np.uint8 if longer.max() < 255 else np.uint32
    d = process.cdist(
        x, y, scorer=scorer.distance, score_cutoff=cutoff, dtype=dtype, workers=threads
    )
    return _cut_distances(d / longer, field.cuts)


def _jaro_winkler_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    s = process.cdist(
        x,
        y,
        scorer=JaroWinkler.similarity,
        score_cutoff=field.cuts[-1],
        dtype=np.float64,
        workers=threads,
    )
    return _cut_distances(-s, [-c for c in field.cuts])


def _token_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    words: dict[str, int] = {}
    sides = []
    for values in (x, y):
        sets = [sorted({words.setdefault(w, len(words)) for w in v.split()}) for v in values]
        indptr = np.cumsum([0, *(len(s) for s in sets)])
        indices = np.array([w for s in sets for w in s], np.int64)
        sides.append((indptr, indices))
    (px, ix), (py, iy) = sides
    left = sparse.csr_array((np.ones(len(ix), np.int32), ix, px), (len(x), len(words)))
    right = sparse.csr_array((np.ones(len(iy), np.int32), iy, py), (len(y), len(words)))
    shared = (left @ right.T).toarray()
    union = np.diff(px)[:, None] + np.diff(py)[None, :] - shared
    return _cut_distances(-(shared / union), [-c for c in field.cuts])


def _exact_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    return (np.array(x, object)[:, None] == np.array(y, object)[None, :]).astype(np.uint8) + 1


def _numeric_levels(field: Field, x: Sequence[float], y: Sequence[float], threads: int) -> Levels:
    left, right = np.array(x)[:, None], np.array(y)[None, :]
    with np.errstate(over="ignore"):
        d = np.abs(left - right)
    if field.options["relative"]:
        scale = np.maximum(np.abs(left), np.abs(right))
        d = np.divide(d, scale, out=np.zeros_like(d), where=scale > 0)
    # 0.3 − 0.2 is not 0.1: a difference that equals a cut in decimals stays within it.
    return _cut_distances(d, [c + 1e-9 * max(1.0, c) if c else 0.0 for c in field.cuts])


def _date_levels(field: Field, x: Sequence[int], y: Sequence[int], threads: int) -> Levels:
    left, right = np.array(x, np.int64), np.array(y, np.int64)
    days = np.abs(_ordinals(left)[:, None] - _ordinals(right)[None, :])
    levels = np.ones(days.shape, np.uint8)
    for cut in field.cuts[:0:-1]:
        levels[days <= cut] += 1
    level = len(field.cuts)
    if field.options["one_digit"]:
        level += 1
        wrong = sum(
            (left // 10**p % 10)[:, None] != (right // 10**p % 10)[None, :] for p in range(8)
        )
        levels[wrong == 1] = level
    if field.options["swapped"]:
        level += 1
        turned = left // 10000 * 10000 + left % 100 * 100 + left // 100 % 100
        levels[turned[:, None] == right[None, :]] = level
    levels[days <= field.cuts[0]] = level + 1
    return levels


def _ordinals(yyyymmdd: NDArray[np.int64]) -> NDArray[np.int64]:
    days = [dt.date(v // 10000, v // 100 % 100, v % 100).toordinal() for v in yyyymmdd.tolist()]
    return np.array(days, np.int64)


def _geo_levels(
    field: Field, x: Sequence[tuple[float, float]], y: Sequence[tuple[float, float]], threads: int
) -> Levels:
    left, right = np.radians(np.array(x)), np.radians(np.array(y))
    half = (left[:, None, :] - right[None, :, :]) / 2
    cosines = np.cos(left[:, 0])[:, None] * np.cos(right[:, 0])[None, :]
    h = np.sin(half[..., 0]) ** 2 + cosines * np.sin(half[..., 1]) ** 2
    return _cut_distances(2 * _EARTH_KM * np.arcsin(np.sqrt(np.minimum(h, 1))), field.cuts)


def _custom_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    function, k = field.options["function"], field.n_levels
    levels = np.array([[function(v, w) for w in y] for v in x])
    if levels.dtype.kind not in "iub" or levels.min() < 1 or levels.max() > k:
        raise SettingsError(
            f"the function of custom field {field.name!r} must return a whole number from 1 "
            f"(worst) to {k} (best) for every pair of values. Change it, or set levels."
        )
    return levels.astype(np.uint8)


_MATRICES: dict[str, Callable[..., Levels]] = {
    "exact": _exact_levels,
    "levenshtein": _edit_levels,
    "damerau_levenshtein": _edit_levels,
    "jaro_winkler": _jaro_winkler_levels,
    "tokens": _token_levels,
    "numeric": _numeric_levels,
    "date": _date_levels,
    "geo": _geo_levels,
    "custom": _custom_levels,
}
