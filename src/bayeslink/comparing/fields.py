"""What is compared, and how: one `Field` per comparison, with its ordinal levels and priors.

Levels run from 1 (worst) to k (best); 0 is kept for missing (Section 2 of the paper).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bayeslink.comparing.field_checks import (
    Columns,
    check_text,
    checked_bands,
    checked_bounds,
    checked_columns,
    checked_cuts,
    checked_days,
    checked_flag,
    checked_formats,
    checked_missing,
    checked_name,
    checked_normalisation,
    checked_prior,
    checked_recodes,
    checked_units,
    numbers,
)
from bayeslink.errors import SettingsError
from bayeslink.notebook_html import html_table
from bayeslink.plain import plain

GIVEN = "given"  # the kind of a field whose levels came with the pairs
FILLER, PARTIAL = "the same year, and 1 January", "equal as far as known"  # levels of some dates
CALENDAR = "the same day of another calendar"
DEFAULT_NORMALISATION = ("unicode", "case", "space")


@dataclass(frozen=True, slots=True)
class Field:
    """One comparison of two records.

    Made by `exact`, `levenshtein`, … rather than by hand.
    """

    name: str
    kind: str
    columns: Columns  # of file A, of file B
    labels: tuple[str, ...]  # what each level means, worst first
    cuts: tuple[float, ...]
    bands: tuple[float, ...]
    normalise: tuple[str, ...]
    missing: tuple[str, ...] | None
    m_prior: tuple[float, ...]
    u_prior: tuple[float, ...]
    options: Mapping[str, Any]
    settings: Mapping[str, Any]  # the call that made it, as plain data for link.toml
    covers: tuple[tuple[int, str], ...] = ()  # levels that see another field too, and which

    @property
    def n_levels(self) -> int:
        """How many levels there are, missing left out."""
        return len(self.labels)

    def __repr__(self) -> str:
        called = "" if self.columns[0][:1] == (self.name,) else f", name={self.name!r}"
        return f"{self.kind}({self.columns[0][0]!r}{called}): {' < '.join(self.labels)}"

    def _repr_html_(self) -> str:
        rows = [[*each] for each in zip(self.labels, self.m_prior, self.u_prior, strict=True)]
        told = f"{self.kind}, {' and '.join(map(repr, dict.fromkeys(map(' '.join, self.columns))))}"
        return html_table(f"{self.name}: {told}", ["level", "prior of m", "prior of u"], rows)


def exact(
    column: str,
    *,
    recode: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
    **common: Any,
) -> Field:
    """Equal or not.

    Parameters
    ----------
    column
        The column's name in both files, and the field's name.
    recode
        What values stand for: {"1": "M", "2": "F"}; for either file, or a pair for A and B.
    columns
        The column's names in A and in B, where they differ. Several columns of a file, given as
        a tuple of names, are joined into one text.
    name
        What the field is called in results; `column` unless given.
    normalise
        Which of "unicode", "case", "accents", "punctuation", "space" are evened out first.
    missing
        Values that count as missing in this field, beside those given for the whole file.
    bands
        Frequency bands, as falling shares of the records, such as `(.01, .001)`: agreement is
        split into levels by how common the shared value is, the rarest being the best level.
        "auto": where some values are far more common than others.
    m_prior, u_prior
        Dirichlet parameters, worst level to best; or by the labels of levels, where these would
        follow from the data: levels without one are then joined with the next worse.
    """
    if recode is None:
        return make_field("exact", column, ["different"], "equal", (), common)
    both = checked_recodes(column, recode)
    own = {"recode": both[0] if both[0] == both[1] else both}
    return make_field("exact", column, ["different"], "equal", (), common, own, {"recode": both})


def levenshtein(column: str, cuts: Sequence[float] = (0, 0.25, 0.5), **common: Any) -> Field:
    """Edit distance over the longer length, cut at `cuts`; the defaults are those of Section 5.2.

    Other parameters as for `exact`.
    """
    return _string_distance("levenshtein", column, cuts, common)


def damerau_levenshtein(
    column: str, cuts: Sequence[float] = (0, 0.25, 0.5), **common: Any
) -> Field:
    """As `levenshtein`, with a swap of neighbouring letters counted as one edit.

    The distance is the restricted one (optimal string alignment).
    """
    return _string_distance("damerau_levenshtein", column, cuts, common)


def jaro_winkler(column: str, cuts: Sequence[float] = (1, 0.92, 0.8), **common: Any) -> Field:
    """Jaro–Winkler similarity, cut at `cuts` from high to low. Other parameters as for `exact`."""
    return _similarity("jaro_winkler", "similarity", column, cuts, common)


def tokens(column: str, cuts: Sequence[float] = (1, 0.6, 0.3), **common: Any) -> Field:
    """Shared words over all words of both values (Jaccard), for addresses and long names.

    Punctuation is dropped unless `normalise` says otherwise. Other parameters as for `exact`.
    """
    common.setdefault("normalise", (*DEFAULT_NORMALISATION, "punctuation"))
    return _similarity("tokens", "shared words", column, cuts, common)


def numeric(
    column: str,
    cuts: Sequence[float] | str = "auto",
    *,
    relative: bool | str = "auto",
    units: str | tuple[str, str] | None = None,
    valid: tuple[float | None, float | None] = (0, None),
    **common: Any,
) -> Field:
    """Difference of two numbers, absolute or (`relative=True`) over the larger of the two.

    Without `cuts`, they follow from how near numbers of different records are by chance, and
    differences are relative where numbers are of very different size. Currency signs
    and thousands separators are read, and units: 175 cm, 1.75 m and 5'9" are read in metres, as
    weights are in kilograms. `units` says what bare numbers are in, such as "cm" or, in A and in
    B, ("cm", "m"); all numbers are then in those of A. Values that are no number or lie outside
    `valid` (default: negative ones) count as missing. Other parameters as for `exact`.
    """
    own: dict[str, Any] = {"valid": checked_bounds(column, valid)}
    fixed = () if is_auto(cuts) else checked_cuts(column, cuts, rising=True)
    if is_auto(relative):
        ratio = False if fixed else None
    else:
        ratio = checked_flag(column, "relative", relative)
    own |= {"cuts": fixed} if fixed else {}
    own |= {} if is_auto(relative) else {"relative": ratio}
    both = checked_units(column, units)
    own |= {"units": both} if both[0] else {}
    options = {"relative": ratio, "valid": own["valid"], "units": both}
    if not fixed or ratio is None:
        refuse_priors("numeric", column, common)
        options["settle"] = True
    labels = distance_labels(fixed or (0.0,), "difference", " of the larger" if ratio else "")
    return make_field("numeric", column, labels[:-1], labels[-1], fixed, common, own, options)


def date(
    column: str,
    cuts: Sequence[float] | str = "auto",
    *,
    format: str | tuple[str | None, str | None] | None = None,
    swapped: bool = True,
    one_digit: bool = True,
    exchanged: bool = True,
    valid: tuple[str, str] = ("0001-01-01", "2099-12-31"),
    **common: Any,
) -> Field:
    """Days between two dates, cut at `cuts`, with levels for what goes wrong with dates.

    From best to worst: equal (within the first cut); day and month swapped; two neighbouring
    digits of YYYYMMDD exchanged; one digit wrong, or the year off by one or ten; the same day of
    the old and the new calendar; equal as far as known, where a date is a year or a month only;
    the same year, where 1 January stands for an unknown day; within the further cuts; further
    apart. The three levels before the cuts are there only where such dates are. Without `cuts`,
    they follow from how near dates of different records are by chance.

    `format` is a `strptime` format such as "%d/%m/%Y", or one for each file. Without it, or where
    one of the two is None (or ""), the order of day, month and year is told from the file. A date
    that does not exist is compared digit by digit. Dates outside `valid` count as missing. Year,
    month and day may stand in three columns: `columns=("dob", ("year", "month", "day"))`.
    Other parameters as for `exact`.
    """
    fixed = () if is_auto(cuts) else checked_cuts(column, cuts, rising=True)
    swapped = checked_flag(column, "swapped", swapped)
    one_digit = checked_flag(column, "one_digit", one_digit)
    exchanged = checked_flag(column, "exchanged", exchanged)
    formats = checked_formats(column, format)
    slips = {"swapped": swapped, "one_digit": one_digit, "exchanged": exchanged}
    shared = {**slips, "valid": checked_days(column, valid)}
    one = formats[0] if formats[0] == formats[1] else tuple(form or "" for form in formats)
    own = {**({"cuts": fixed} if fixed else {}), **({"format": one} if one else {}), **shared}
    options = {
        "formats": formats, **shared, "partial": False, "filler": False, "calendar": False,
        "orders": ("ymd", "ymd"), "told": (False, False),
        "settle": True, "join": not fixed,
    }  # fmt: skip
    if not fixed:
        refuse_priors("date", column, common)
    labels = date_labels(fixed or (0.0,), options)
    return make_field("date", column, labels[:-1], labels[-1], fixed, common, own, options)


def date_labels(cuts: tuple[float, ...], options: Mapping[str, Any]) -> list[str]:
    """What the levels of a date mean, worst first."""
    labels = distance_labels(cuts, "apart", " days")
    slips = (
        (FILLER, "filler"),
        (PARTIAL, "partial"),
        (CALENDAR, "calendar"),
        ("one digit wrong", "one_digit"),
        ("two digits exchanged", "exchanged"),
        ("day and month swapped", "swapped"),
    )
    return [*labels[:-1], *(label for label, on in slips if options[on]), labels[-1]]


def geo(
    latitude: str, longitude: str, cuts: Sequence[float] = (0.5, 5, 50), **common: Any
) -> Field:
    """Kilometres between two places given in degrees, cut at `cuts`.

    `columns` takes `(("lat", "lon"), ("y", "x"))` where names differ between the files.
    Other parameters as for `exact`; `bands` does not apply.
    """
    _refuse_bands("geo", common)
    cuts = checked_cuts(latitude, cuts, rising=True)
    labels = distance_labels(cuts, "distance", " km")
    check_text("geo", "longitude", longitude)
    common.setdefault("name", f"{latitude},{longitude}")
    own = {"cuts": cuts, "longitude": longitude}
    return make_field("geo", latitude, labels[:-1], labels[-1], cuts, common, own)


def custom(
    column: str, function: Callable[[str, str], int], *, levels: int = 2, **common: Any
) -> Field:
    """Any function of two values, which returns the level: 1 (worst) to `levels` (best).

    It is called once for each pair of distinct values, never for a missing one. Values reach
    it as they are unless `normalise` is given. Within one file what it returns for the smaller
    value, in sorted order, and the larger counts. Other parameters as for `exact`.
    """
    levels = plain(levels)
    if not isinstance(levels, int) or not 2 <= levels <= 250:
        raise SettingsError(
            f"custom({column!r}): levels must be a whole number from 2 to 250, got {levels!r}."
        )
    if not callable(function):
        raise SettingsError(f"custom({column!r}): give a function of two values.")
    _refuse_bands("custom", common)
    common.setdefault("normalise", ())
    labels = [f"level {h}" for h in range(1, levels)]
    own = {"levels": levels}
    options = {**own, "function": function}
    return make_field("custom", column, labels, f"level {levels}", (), common, own, options)


def given_levels(name: str, labels: Sequence[str], **priors: Any) -> Field:
    """A field whose levels another tool has told; `labels` say what they mean, worst first.

    `m_prior` and `u_prior` as for `exact`.
    """
    own = {"labels": tuple(labels)}
    return make_field(GIVEN, name, list(labels[:-1]), labels[-1], (), priors, own)


def default_m_prior(n_lower: int, n_bands: int) -> tuple[float, ...]:
    """Dirichlet parameters of m that keep the match class the match class.

    Weight grows towards agreement, with some on every lower level: fields of matches do disagree.
    For other numbers of levels than four the curve is read off at evenly spaced points. Frequency
    bands share the weight of agreement.
    """
    curve = (1.5, 2.5, 5.0, 10.0)
    k = n_lower + 1
    at = [3 * h / (k - 1) for h in range(k)]
    alpha = [curve[int(x)] + (x % 1) * (curve[min(int(x) + 1, 3)] - curve[int(x)]) for x in at]
    if k == 2:
        alpha = [3.0, 8.0]
    top = alpha.pop()
    return (*alpha, *([max(1.0, top / (n_bands + 1))] * (n_bands + 1)))


# ---------------------------------------------------------------------------------------------


def _string_distance(
    kind: str, column: str, cuts: Sequence[float], common: dict[str, Any]
) -> Field:
    cuts = checked_cuts(column, cuts, rising=True)
    if cuts[0] != 0:
        _refuse_bands(f"{kind} with a first cut above 0", common)
    labels = distance_labels(cuts, "distance", "")
    return make_field(kind, column, labels[:-1], labels[-1], cuts, common, {"cuts": cuts})


def _similarity(
    kind: str, word: str, column: str, cuts: Sequence[float], common: dict[str, Any]
) -> Field:
    cuts = checked_cuts(column, cuts, rising=False)
    if cuts[0] < 1:
        _refuse_bands(f"{kind} with a first cut below 1", common)
    labels = [f"{word} < {cuts[-1]:g}", *(f"{word} ≥ {c:g}" for c in reversed(cuts))]
    if cuts[0] == 1:
        labels[-1] = "equal" if kind == "jaro_winkler" else "same words"
    return make_field(kind, column, labels[:-1], labels[-1], cuts, common, {"cuts": cuts})


def distance_labels(cuts: tuple[float, ...], word: str, unit: str) -> list[str]:
    labels = [f"{word} > {cuts[-1]:g}{unit}", *(f"{word} ≤ {c:g}{unit}" for c in reversed(cuts))]
    if cuts[0] == 0:
        labels[-1] = "equal"
    return labels


def make_field(
    kind: str,
    column: str,
    lower: list[str],
    agreement: str,
    cuts: Sequence[float],
    common: dict[str, Any],
    own: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Field:
    """Check what all comparisons share and put the field together."""
    allowed = ("columns", "name", "normalise", "missing", "bands", "m_prior", "u_prior")
    for key in common:
        if key not in allowed:
            near = get_close_matches(key, [*allowed, *(own or {})], 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(
                f"{kind}({column!r}): unknown setting {key!r}.{hint} "
                f"Allowed: {', '.join([*(own or {}), *allowed])}."
            )
    column = plain(column)
    check_text(kind, "the column", column)
    auto = is_auto(common.get("bands"))
    if auto:
        refuse_priors(kind, column, common)
    bands = () if auto else checked_bands(column, common.get("bands"))
    labels = (*lower, *band_labels(agreement, bands))
    default_m, flat = default_m_prior(len(lower), len(bands)), (1.0,) * len(labels)
    columns = checked_columns(kind, column, (own or {}).get("longitude"), common.get("columns"))
    checked: dict[str, Any] = {
        "name": checked_name(kind, column, common.get("name")),
        "normalise": checked_normalisation(column, common.get("normalise", DEFAULT_NORMALISATION)),
        "missing": checked_missing(column, common.get("missing")),
        "bands": bands,
        "m_prior": checked_prior(column, "m_prior", common.get("m_prior"), default_m),
        "u_prior": checked_prior(column, "u_prior", common.get("u_prior"), flat),
    }
    by_label = {
        key: dict(common[key])
        for key in ("m_prior", "u_prior")
        if isinstance(common.get(key), Mapping)
    }
    said = {
        **checked,
        **by_label,
        **({"bands": "auto"} if auto else {}),
        "columns": [c[0] if len(c) == 1 else c for c in columns],
    }
    given = {key: said[key] for key, value in common.items() if value is not None}
    settings = {"column": column, "compare": kind, **(own or {}), **given}
    return Field(
        kind=kind,
        columns=columns,
        labels=labels,
        cuts=tuple(cuts),
        options={**(options or {}), **by_label, **({"bands": "auto"} if auto else {})},
        settings={key: plain(value) for key, value in settings.items()},
        **checked,
    )


def band_labels(agreement: str, bands: tuple[float, ...]) -> list[str]:
    if not bands:
        return [agreement]
    edges = [f"{100 * b:g} %" for b in bands]
    return [f"{agreement}, value > {edges[0]}", *(f"{agreement}, value ≤ {e}" for e in edges)]


def is_auto(given: Any) -> bool:
    """Whether a setting is left to the data."""
    return isinstance(given, str) and given == "auto"


def refuse_priors(kind: str, column: str, common: Mapping[str, Any]) -> None:
    """Priors go by level, and levels that follow from the data are not known yet."""
    for prior in ("m_prior", "u_prior"):
        if common.get(prior) is not None and not isinstance(common[prior], Mapping):
            raise SettingsError(
                f"{kind}({column!r}): {prior} has a number for each level, so give cuts too."
            )


def _refuse_bands(kind: str, common: Mapping[str, Any]) -> None:
    if numbers(common.get("bands")):
        raise SettingsError(
            f"{kind} has no level of exact agreement, so frequency bands do not apply. "
            "Leave bands out, or compare with exact."
        )
