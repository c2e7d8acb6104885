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
    numbers,
)
from bayeslink.errors import SettingsError
from bayeslink.plain import plain
from bayeslink.shown import html_table

GIVEN = "given"  # the kind of a field whose levels came with the pairs
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


def exact(column: str, **common: Any) -> Field:
    """Equal or not.

    Parameters
    ----------
    column
        The column's name in both files, and the field's name.
    columns
        The column's names in A and in B, where they differ.
    name
        What the field is called in results; `column` unless given.
    normalise
        Which of "unicode", "case", "accents", "punctuation", "space" are evened out first.
    missing
        Values that count as missing in this field, beside those given for the whole file.
    bands
        Frequency bands, as falling shares of the records, such as `(.01, .001)`: agreement is
        split into levels by how common the shared value is, the rarest being the best level.
    m_prior, u_prior
        Dirichlet parameters, worst level to best.
    """
    return _field("exact", column, ["different"], "equal", (), common)


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
    cuts: Sequence[float] = (0, 1),
    *,
    relative: bool = False,
    valid: tuple[float | None, float | None] = (0, None),
    **common: Any,
) -> Field:
    """Difference of two numbers, absolute or (`relative=True`) over the larger of the two.

    Values that are no number or lie outside `valid` (default: negative ones) count as missing.
    Other parameters as for `exact`.
    """
    cuts = checked_cuts(column, cuts, rising=True)
    relative = checked_flag(column, "relative", relative)
    unit = " of the larger" if relative else ""
    labels = _distance_labels(cuts, "difference", unit)
    own = {"cuts": cuts, "relative": relative, "valid": checked_bounds(column, valid)}
    return _field("numeric", column, labels[:-1], labels[-1], cuts, common, own, own)


def date(
    column: str,
    cuts: Sequence[float] = (0, 30),
    *,
    format: str | tuple[str | None, str | None] | None = None,
    swapped: bool = True,
    one_digit: bool = True,
    valid: tuple[str, str] = ("1800-01-01", "2099-12-31"),
    **common: Any,
) -> Field:
    """Days between two dates, cut at `cuts`, with levels for two usual slips.

    From best to worst: equal (within the first cut); day and month swapped; one digit of
    YYYYMMDD wrong; within the further cuts; further apart.

    `format` is a `strptime` format such as "%d/%m/%Y", or one for each file. Without it, or where
    one of the two is None (or ""), only ISO dates (1980-02-01) are read, and any other form is an
    error rather than a guess. Dates that do not exist or lie outside `valid` count as missing.
    Other parameters as for `exact`.
    """
    cuts = checked_cuts(column, cuts, rising=True)
    labels = _distance_labels(cuts, "apart", " days")
    swapped = checked_flag(column, "swapped", swapped)
    one_digit = checked_flag(column, "one_digit", one_digit)
    slips = (("one digit wrong", one_digit), ("day and month swapped", swapped))
    lower = [*labels[:-1], *(label for label, on in slips if on)]
    formats = checked_formats(column, format)
    shared = {"swapped": swapped, "one_digit": one_digit, "valid": checked_days(column, valid)}
    one = formats[0] if formats[0] == formats[1] else tuple(form or "" for form in formats)
    own = {"cuts": cuts, **({"format": one} if one else {}), **shared}
    options = {"formats": formats, **shared}
    return _field("date", column, lower, labels[-1], cuts, common, own, options)


def geo(
    latitude: str, longitude: str, cuts: Sequence[float] = (0.5, 5, 50), **common: Any
) -> Field:
    """Kilometres between two places given in degrees, cut at `cuts`.

    `columns` takes `(("lat", "lon"), ("y", "x"))` where names differ between the files.
    Other parameters as for `exact`; `bands` does not apply.
    """
    _refuse_bands("geo", common)
    cuts = checked_cuts(latitude, cuts, rising=True)
    labels = _distance_labels(cuts, "distance", " km")
    check_text("geo", "longitude", longitude)
    common.setdefault("name", f"{latitude},{longitude}")
    own = {"cuts": cuts, "longitude": longitude}
    return _field("geo", latitude, labels[:-1], labels[-1], cuts, common, own)


def custom(
    column: str, function: Callable[[str, str], int], *, levels: int = 2, **common: Any
) -> Field:
    """Any function of two values, which returns the level: 1 (worst) to `levels` (best).

    It is called once for each pair of distinct values, never for a missing one. Values reach
    it as they are unless `normalise` is given. Other parameters as for `exact`.
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
    return _field("custom", column, labels, f"level {levels}", (), common, own, options)


def given_levels(name: str, labels: Sequence[str], **priors: Any) -> Field:
    """A field whose levels another tool has told; `labels` say what they mean, worst first.

    `m_prior` and `u_prior` as for `exact`.
    """
    own = {"labels": tuple(labels)}
    return _field(GIVEN, name, list(labels[:-1]), labels[-1], (), priors, own)


COMPARISONS: dict[str, Callable[..., Field]] = {
    f.__name__: f
    for f in (
        exact,
        levenshtein,
        damerau_levenshtein,
        jaro_winkler,
        numeric,
        date,
        tokens,
        geo,
        custom,
    )
}


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
    labels = _distance_labels(cuts, "distance", "")
    return _field(kind, column, labels[:-1], labels[-1], cuts, common, {"cuts": cuts})


def _similarity(
    kind: str, word: str, column: str, cuts: Sequence[float], common: dict[str, Any]
) -> Field:
    cuts = checked_cuts(column, cuts, rising=False)
    if cuts[0] < 1:
        _refuse_bands(f"{kind} with a first cut below 1", common)
    labels = [f"{word} < {cuts[-1]:g}", *(f"{word} ≥ {c:g}" for c in reversed(cuts))]
    if cuts[0] == 1:
        labels[-1] = "equal" if kind == "jaro_winkler" else "same words"
    return _field(kind, column, labels[:-1], labels[-1], cuts, common, {"cuts": cuts})


def _distance_labels(cuts: tuple[float, ...], word: str, unit: str) -> list[str]:
    labels = [f"{word} > {cuts[-1]:g}{unit}", *(f"{word} ≤ {c:g}{unit}" for c in reversed(cuts))]
    if cuts[0] == 0:
        labels[-1] = "equal"
    return labels


def _field(
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
    bands = checked_bands(column, common.get("bands"))
    labels = (*lower, *_band_labels(agreement, bands))
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
    said = {**checked, "columns": [c[0] if len(c) == 1 else c for c in columns]}
    given = {key: said[key] for key, value in common.items() if value is not None}
    settings = {"column": column, "compare": kind, **(own or {}), **given}
    return Field(
        kind=kind,
        columns=columns,
        labels=labels,
        cuts=tuple(cuts),
        options=dict(options or {}),
        settings={key: plain(value) for key, value in settings.items()},
        **checked,
    )


def _band_labels(agreement: str, bands: tuple[float, ...]) -> list[str]:
    if not bands:
        return [agreement]
    edges = [f"{100 * b:g} %" for b in bands]
    return [f"{agreement}, value > {edges[0]}", *(f"{agreement}, value ≤ {e}" for e in edges)]


def _refuse_bands(kind: str, common: Mapping[str, Any]) -> None:
    if numbers(common.get("bands")):
        raise SettingsError(
            f"{kind} has no level of exact agreement, so frequency bands do not apply. "
            "Leave bands out, or compare with exact."
        )
