"""Splink's settings and trained models (versions 4 and 5) as fields, m and u as prior means."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayeslink.comparing.fields import (
    Field,
    damerau_levenshtein,
    date,
    exact,
    geo,
    given_levels,
    jaro_winkler,
    levenshtein,
    numeric,
)
from bayeslink.errors import InputError, SettingsError

LINK_ONLY, DEDUPE_ONLY, LINK_AND_DEDUPE = "link_only", "dedupe_only", "link_and_dedupe"
_USED_BY = {
    DEDUPE_ONLY: "for bl.dedupe(a, model.fields)",
    LINK_AND_DEDUPE: "for bl.link_many(files, model.fields, duplicates=[…]), with the name of each "
    "file in which people can be more than once",
}
STRENGTH = 20.0  # pairs that a prior from a trained model counts for
_UNSEEN = 1e-6  # u of a level that training has not seen
_LENGTH = 6  # letters of a name, about: Splink counts edits, bayeslink edits over the length
_LEAST = 1e-4  # of m or u at a level


@dataclass(frozen=True, slots=True)
class SplinkModel:
    """What a Splink model becomes.

    Attributes
    ----------
    fields
        To give to `link` or `compare`; to `dedupe` or `link_many`, as `link_type` says.
    theta
        The cost of a link that goes with its probability_two_random_records_match; None if it has
        none, or if people may be in a file more than once. Leave it out to have the cost follow
        from the number of links.
    notes
        What was not taken over, or only nearly so.
    link_type
        As in Splink: link_only, for `link`; dedupe_only, for `dedupe`; link_and_dedupe, for
        `link_many` with every file named in `duplicates`.
    """

    fields: tuple[Field, ...]
    theta: float | None
    notes: tuple[str, ...]
    link_type: str = LINK_ONLY

    def __str__(self) -> str:
        shown = [f"{f.name}: {f.kind}, {f.n_levels} levels" for f in self.fields]
        return "\n".join([*shown, *(f"note: {note}" for note in self.notes)])


def read_splink(settings: Any, *, strength: float = STRENGTH) -> SplinkModel:
    """Fields from Splink's settings, with m and u of a trained model as prior means.

    Parameters
    ----------
    settings
        The path of a settings or model JSON, what it holds as a dictionary, or Splink's
        SettingsCreator.
    strength
        How many pairs the prior of m counts for; that of u as many.
    """
    if not 0 < strength < math.inf:
        raise SettingsError(f"strength must be a positive number of pairs, got {strength!r}.")
    data = _loaded(settings)
    notes: list[str] = []
    kind = _link_type(data)
    if kind in _USED_BY:
        notes.append(f"link_type {kind!r}: {_USED_BY[kind]}.")
    if rules := data.get("blocking_rules_to_generate_predictions"):
        notes.append(f"{len(rules)} blocking rules are left out: all pairs are compared.")
    fields = []
    for comparison in data["comparisons"]:
        name = str(comparison.get("output_column_name") or "?")
        field, said = _field(name, comparison, strength)
        notes += [f"{name}: {note}" for note in said]
        if field is not None:
            fields.append(field)
    chance = data.get("probability_two_random_records_match")
    theta = math.log((1 - chance) / chance) if chance and 0 < chance < 1 else None
    if theta is not None and kind in _USED_BY:
        theta = None
        notes.append(
            "probability_two_random_records_match is left out: how many records a person has is "
            "learned (sizes= says what is known of it)."
        )
    return SplinkModel(tuple(fields), theta, tuple(notes), kind)


def _link_type(data: Mapping[str, Any]) -> str:
    kind = str(data.get("link_type", LINK_ONLY))
    if kind != LINK_ONLY and kind not in _USED_BY:
        raise InputError(
            f"link_type must be {LINK_ONLY}, {' or '.join(_USED_BY)}, got {kind!r}. Save the model "
            "with version 4 or 5 of Splink."
        )
    return kind


def is_of_one_file(settings: Any) -> bool:
    """Whether these settings are of one file with itself."""
    return settings is not None and _link_type(_loaded(settings)) == DEDUPE_ONLY


def levels_of(settings: Any, name: str) -> tuple[Field | None, list[float] | None]:
    """The levels of one comparison, to go with a gamma column, and the u of a trained model."""
    if settings is None:
        return None, None
    for comparison in _loaded(settings)["comparisons"]:
        if comparison.get("output_column_name") == name:
            levels = _levels(comparison)
            labels = _distinct([level.label for level in levels])
            field = given_levels(name, labels, **_priors(levels, STRENGTH))
            return field, _all_u(name, levels)
    raise SettingsError(
        f"the settings have no comparison {name!r}, which the predictions have (gamma_{name}). "
        "Give the model that made them."
    )


def _all_u(name: str, levels: Sequence[_Level]) -> list[float]:
    """u of each level; of one that training has not seen, what is left over."""
    known = [level.u for level in levels if level.u is not None]
    if not known:
        raise SettingsError(
            f"the comparison {name!r} of the settings is not trained: it has no u. In Splink, run "
            "estimate_u_using_random_sampling and save_model_to_json, and give that."
        )
    unseen = max(_UNSEEN, 1 - sum(known)) / max(1, len(levels) - len(known))
    return [unseen if level.u is None else level.u for level in levels]


# --- one comparison -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Level:
    condition: str
    label: str
    m: float | None
    u: float | None
    adjusted: bool  # by term frequencies


def _levels(comparison: Mapping[str, Any]) -> list[_Level]:
    """Levels that are no missing value, worst first; Splink writes the best first."""
    found = [
        _Level(
            str(level.get("sql_condition", "")),
            str(level.get("label_for_charts") or level.get("sql_condition", "")),
            _share(level.get("m_probability")),
            _share(level.get("u_probability")),
            bool(level.get("tf_adjustment_column")),
        )
        for level in comparison.get("comparison_levels", ())
        if not level.get("is_null_level")
    ]
    return found[::-1]


def _share(value: Any) -> float | None:
    """A probability; Splink writes a text where a level was not seen in training."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _priors(levels: Sequence[_Level], strength: float) -> dict[str, Any]:
    """Dirichlet parameters with the model's m and u as means, where it has all of them."""
    priors: dict[str, Any] = {}
    for which, shares in (("m_prior", [x.m for x in levels]), ("u_prior", [x.u for x in levels])):
        if all(share is not None for share in shares):
            kept = [max(share or 0.0, _LEAST) for share in shares]
            priors[which] = [strength * share / sum(kept) for share in kept]
    return priors


_PLAIN = re.compile(r'^"?([\w ]+?)_l"? = "?([\w ]+?)_r"?$')
_CALL = re.compile(r'^(\w+)\("?([\w ]+?)_l"?, ?"?([\w ]+?)_r"?\) (<=|>=|<|>) ([\d.]+)$')
_DIFFERENCE = re.compile(
    r'^abs\("?([\w ]+?)_l"? ?- ?"?([\w ]+?)_r"?\) (<=|<) ([\d.]+)$', re.IGNORECASE
)
_SECONDS = re.compile(r'^ABS\(.*EPOCH\(.*"([\w ]+?)_l".*"([\w ]+?)_r".*\) <= ([\d.]+)$', re.I)
_KILOMETRES = re.compile(r"acos.*\) (<=|<) ([\d.]+)$", re.IGNORECASE | re.DOTALL)
_PLACES = re.compile(r'"?([\w ]+?)_[lr]"?\b')
_FUNCTIONS = {
    "levenshtein": "levenshtein",
    "damerau_levenshtein": "damerau_levenshtein",
    "jaro_winkler_similarity": "jaro_winkler",
    "jaro_winkler": "jaro_winkler",
}


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What one condition says."""

    kind: str  # equal, levenshtein, …, numeric, date, geo, else
    column: str
    cut: float


def _meaning(condition: str) -> _Meaning | None:
    text = " ".join(condition.split())
    if text.upper() == "ELSE":
        return _Meaning("else", "", 0.0)
    if (found := _PLAIN.match(text)) and found[1] == found[2]:
        return _Meaning("equal", found[1], 0.0)
    if (found := _CALL.match(text)) and found[2] == found[3] and found[1] in _FUNCTIONS:
        return _Meaning(_FUNCTIONS[found[1]], found[2], float(found[5]))
    if (found := _DIFFERENCE.match(text)) and found[1] == found[2]:
        return _Meaning("numeric", found[1], float(found[4]))
    if (found := _SECONDS.match(text)) and found[1] == found[2]:
        return _Meaning("date", found[1], float(found[3]) / 86_400)
    if found := _KILOMETRES.search(text):
        return _Meaning("geo", ",".join(dict.fromkeys(_PLACES.findall(text))), float(found[2]))
    return None


def _field(
    name: str, comparison: Mapping[str, Any], strength: float
) -> tuple[Field | None, list[str]]:
    """A comparison as a field, and what is to be said of it; None if it has none like it."""
    levels = _levels(comparison)
    notes = []
    if any(level.adjusted for level in levels):
        notes.append("its term-frequency adjustment is left out; bands=(.01, .001) is like it.")
    if not levels or levels[0].condition.strip().upper() != "ELSE":
        return None, [*notes, "left out: its last level is not ELSE."]
    told = [_meaning(level.condition) for level in levels[1:]]
    for level, meaning in zip(levels[1:], told, strict=True):
        if meaning is None:
            return None, [*notes, f"left out: bayeslink has nothing like {level.condition!r}."]
    meanings = [meaning for meaning in told if meaning is not None]
    columns = {meaning.column for meaning in meanings}
    kinds = {meaning.kind for meaning in meanings} - {"equal"}
    if len(columns) != 1:
        return None, [*notes, f"left out: it compares several columns, {sorted(columns)}."]
    column = columns.pop()
    priors = {**_priors(levels, strength), "name": name}
    if not kinds:
        return exact(column, **priors), notes
    if kinds == {"date", "levenshtein"} or kinds == {"date", "damerau_levenshtein"}:
        return _date(column, levels, meanings, name, strength, notes)
    if len(kinds) > 1:
        return None, [*notes, f"left out: it mixes {', '.join(sorted(kinds))}."]
    return _one_kind(kinds.pop(), column, meanings, priors, notes)


def _one_kind(
    kind: str,
    column: str,
    meanings: Sequence[_Meaning],
    priors: dict[str, Any],
    notes: list[str],
) -> tuple[Field | None, list[str]]:
    """A comparison by one measure, whose best level may be equality."""
    equal = [1.0 if kind == "jaro_winkler" else 0.0] if meanings[-1].kind == "equal" else []
    cuts = [*equal, *(m.cut for m in reversed(meanings) if m.kind != "equal")]
    if kind in ("levenshtein", "damerau_levenshtein"):
        cuts = [round(cut / _LENGTH, 3) for cut in cuts]
        notes = [
            *notes,
            "Splink counts edits, bayeslink edits over the length: cuts are for "
            f"{_LENGTH} letters.",
        ]
        make: Any = levenshtein if kind == "levenshtein" else damerau_levenshtein
        return make(column, cuts, **priors), notes
    if kind == "jaro_winkler":
        return jaro_winkler(column, cuts, **priors), notes
    if kind == "numeric":
        return numeric(column, cuts, **priors), notes
    if kind == "date":
        return date(column, cuts, swapped=False, one_digit=False, exchanged=False, **priors), notes
    latitude, _, longitude = column.partition(",")
    if not longitude or "," in longitude:
        return None, [*notes, "left out: its columns of latitude and longitude cannot be told."]
    return geo(latitude, longitude, cuts, **priors), notes


def _date(
    column: str,
    levels: Sequence[_Level],
    meanings: Sequence[_Meaning],
    name: str,
    strength: float,
    notes: list[str],
) -> tuple[Field | None, list[str]]:
    """Splink's date of birth: equal, one edit, within some days; here one digit, and swapped."""
    cuts = [m.cut for m in reversed(meanings) if m.kind == "date"]
    kinds = [m.kind for m in meanings]
    edits = [kind for kind in kinds if kind not in ("date", "equal")]
    if kinds != ["date"] * len(cuts) + edits + ["equal"] or len(edits) != 1:
        return None, [*notes, "left out: its levels are in an order that date() has not."]
    said = "one edit of a date is taken as one digit wrong; a date of another form needs format=."
    priors = {**_priors(levels, strength), "name": name}
    return date(column, [0.0, *cuts], swapped=False, exchanged=False, **priors), [*notes, said]


# --- reading ------------------------------------------------------------------------------------


def _distinct(labels: Sequence[str]) -> list[str]:
    """Labels, with a number where two are the same."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out


def _loaded(settings: Any) -> Mapping[str, Any]:
    if isinstance(settings, str | os.PathLike):
        try:
            settings = json.loads(Path(settings).read_text("utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {settings}: {error.strerror}. Check the path.") from None
        except ValueError:
            raise InputError(
                f"{settings} is not JSON. Give what Splink's save_model_to_json wrote."
            ) from None
    elif hasattr(settings, "create_settings_dict"):
        settings = settings.create_settings_dict("duckdb")
    if not isinstance(settings, Mapping) or not isinstance(settings.get("comparisons"), list):
        raise InputError(
            "these are no Splink settings: there is no list of comparisons. Give the JSON of "
            "version 4 or 5."
        )
    for comparison in settings["comparisons"]:
        if not isinstance(comparison, Mapping) or "comparison_levels" not in comparison:
            raise InputError(
                "a comparison in these settings has no comparison_levels: they are of Splink 3 or "
                "earlier, or not of Splink. Save the model with version 4 or 5."
            )
    return settings
