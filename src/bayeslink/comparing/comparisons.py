"""From cell texts to comparable values, and from values of A and of B to levels.

`level_matrix` compares everything with everything: it is the definition of the levels. How the
value pairs above level 1 are found among billions is the matter of `dictionaries`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler, Levenshtein
from scipy import sparse

from bayeslink.comparing.dates import date_array, date_levels, read_date
from bayeslink.comparing.fields import Field
from bayeslink.comparing.units import converted, in_unit
from bayeslink.errors import SettingsError

Levels = NDArray[np.uint8]
JOIN = "\x1f"  # between the columns of a field that has two (geo)

_MONEY = re.compile(r"[ \u00a0\u202f'’$€£¥%]|(?i:usd|eur|gbp|chf)")
_FEET = re.compile(r"\d['’]\d{1,2}(?!\d)")  # 5'9, which is not 5'900
_GROUPED = re.compile(r"[+-]?\d[\d.,]*\Z")
EARTH_KM = 6371.0088


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


def normalise_texts(texts: pa.Array, steps: Sequence[str]) -> pa.Array:
    """`normalise` for many texts: those in plain ASCII at once, the others one by one."""
    plain = texts
    if "case" in steps:
        plain = pc.ascii_lower(plain)
    if "punctuation" in steps:
        plain = pc.replace_substring_regex(plain, "['`]", "")
        plain = pc.replace_substring_regex(plain, r"[!-/:-@\[-_{-~]", " ")
    if "space" in steps or "punctuation" in steps:
        plain = pc.replace_substring_regex(plain, r"[\t-\r\x1c-\x20]+", " ")
        plain = pc.ascii_trim(plain, " ")
    others = pc.invert(pc.string_is_ascii(texts))
    read = [normalise(text, steps) for text in texts.filter(others).to_pylist()]
    return pc.replace_with_mask(plain, others, pa.array(read, plain.type))


def value_reader(field: Field, side: int) -> Callable[[str], Any]:
    """The function from a cell's text to a number, date or place; it returns None for missing."""
    if field.kind == "numeric":
        valid, units = field.options["valid"], field.options["units"]
        return lambda text: number(text, valid, units[side], units[0])
    if field.kind == "date":
        form, valid = field.options["formats"][side], field.options["valid"]
        order = field.options["orders"][side]
        return lambda text: read_date(text, order, form, valid)
    return _place


def is_text(field: Field) -> bool:
    """Whether the values compared are texts, read by `normalise_texts`."""
    return field.kind not in ("numeric", "date", "geo")


def number(
    text: str, valid: tuple[float, float], unit: str | None = None, wanted: str | None = None
) -> float | None:
    """The number of a text that is in `unit` unless it says another, as so many `wanted`."""
    try:
        value: float | None = float(text) if "_" not in text else math.nan
    except ValueError:
        bare = _MONEY.sub("", text)
        grouped = _GROUPED.match(bare) and not _FEET.search(text)
        value = float(_decimal(bare)) if grouped else None
    if value is None:
        value = in_unit(text, lambda number: float(_decimal(number)), wanted)
    elif unit != wanted:
        value = converted(value, unit, wanted)
    known = value is not None and valid[0] <= value <= valid[1] and math.isfinite(value)
    return value if known else None


def _decimal(text: str) -> str:
    """1,234.50 and 1.234,50 and 12,5 as Python has them."""
    point = max(text.rfind("."), text.rfind(","))
    whole, part = text[:point], text[point + 1 :]
    thousands = len(part) == 3 and text.count(text[point]) * 4 >= len(whole.lstrip("-"))
    if point < 0 or (thousands and not {".", ","} <= {*text}):
        return re.sub("[.,]", "", text)
    return f"{re.sub('[.,]', '', whole)}.{part}"


def _place(text: str) -> tuple[float, float] | None:
    latitude, longitude = (number(part, (-math.inf, math.inf)) for part in text.rsplit(JOIN, 1))
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return latitude, longitude


# --- levels -----------------------------------------------------------------------------------


def level_matrix(field: Field, x: Sequence[Any], y: Sequence[Any], threads: int) -> Levels:
    """Level of each value of x against each of y, frequency bands left aside."""
    if field.kind in _RULES:
        left, right = value_array(field, x), value_array(field, y)
        return levels_of_pairs(field, left[:, None], right[None, :])
    if ladder := field.options.get("ladder"):
        return ladder.matrix(x, y)
    return _MATRICES[field.kind](field, x, y, threads)


def value_array(field: Field, values: Sequence[Any]) -> NDArray[Any]:
    """Numbers; places, a row of degrees each; or dates, a row of `DATE_COLUMNS` each."""
    if field.kind != "date":
        return np.array(values, np.float64)
    return date_array(np.array(values, np.int64))


def levels_of_pairs(field: Field, left: NDArray[Any], right: NDArray[Any]) -> Levels:
    """Level of each number, date or place against the one beside it, as arrays broadcast."""
    return _RULES[field.kind](field, left, right)


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
    s = process.cdist(x, y, scorer=JaroWinkler.similarity, dtype=np.float64, workers=threads)
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
    share = np.divide(shared, union, out=np.zeros(union.shape), where=union > 0)
    return _cut_distances(-share, [-c for c in field.cuts])


def _exact_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    return (np.array(x, object)[:, None] == np.array(y, object)[None, :]).astype(np.uint8) + 1


def number_tolerances(field: Field) -> list[float]:
    """The cuts, a hair wider: 0.3 − 0.2 is not 0.1, but equals it in decimals."""
    return [c + 1e-9 * max(1.0, c) if c else 0.0 for c in field.cuts]


def _numeric_levels(field: Field, left: NDArray[Any], right: NDArray[Any]) -> Levels:
    with np.errstate(over="ignore"):
        d = np.abs(left - right)
    if field.options["relative"]:
        scale = np.maximum(np.abs(left), np.abs(right))
        d = np.divide(d, scale, out=np.zeros_like(d), where=scale > 0)
    return _cut_distances(d, number_tolerances(field))


def _geo_levels(field: Field, left: NDArray[Any], right: NDArray[Any]) -> Levels:
    left, right = np.radians(left), np.radians(right)
    half = (left - right) / 2
    cosines = np.cos(left[..., 0]) * np.cos(right[..., 0])
    h = np.sin(half[..., 0]) ** 2 + cosines * np.sin(half[..., 1]) ** 2
    return _cut_distances(2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(h, 1))), field.cuts)


def _custom_levels(field: Field, x: Sequence[str], y: Sequence[str], threads: int) -> Levels:
    function, k = field.options["function"], field.n_levels
    levels = np.array([[function(v, w) for w in y] for v in x])
    if levels.dtype.kind not in "iub" or levels.min() < 1 or levels.max() > k:
        raise SettingsError(
            f"the function of custom field {field.name!r} must return a whole number from 1 "
            f"(worst) to {k} (best) for every pair of values. Change it, or set levels."
        )
    return levels.astype(np.uint8)


_RULES: dict[str, Callable[[Field, NDArray[Any], NDArray[Any]], Levels]] = {
    "numeric": _numeric_levels,
    "date": date_levels,
    "geo": _geo_levels,
}
_MATRICES: dict[str, Callable[..., Levels]] = {
    "exact": _exact_levels,
    "levenshtein": _edit_levels,
    "damerau_levenshtein": _edit_levels,
    "jaro_winkler": _jaro_winkler_levels,
    "tokens": _token_levels,
    "custom": _custom_levels,
}
