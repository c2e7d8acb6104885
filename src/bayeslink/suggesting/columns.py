"""The field for a column that was named without a comparison: as `suggest` would propose it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bayeslink.comparing.fields import Field, exact
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records
from bayeslink.engines.compare import read_options
from bayeslink.errors import NoColumnError, SettingsError
from bayeslink.suggesting.births import with_events
from bayeslink.suggesting.likely_pairs import LikelyPairs
from bayeslink.suggesting.pairing import pair_columns, pair_named
from bayeslink.suggesting.profiles import profile_columns, sample_rows
from bayeslink.suggesting.proposing import COMPARISONS, propose
from bayeslink.suggesting.recodes import recoded
from bayeslink.suggesting.units import with_units


def with_chosen(
    given: Sequence[Field | str],
    a: Any,
    b: Any,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
) -> tuple[list[Field], str | None]:
    """Fields with a comparison for each column that was only named, and a line that says which.

    A column is named as `surname`, or as `Surname=last_name` where its name differs between the
    files. Where its values do not tell, as if all were the same, it is compared as it is.
    """
    named = {text: _both(text) for text in given if isinstance(text, str)}
    if not named:
        return [field for field in given if isinstance(field, Field)], None
    fields = [field.columns for field in given if isinstance(field, Field)]
    alone = [(x[0], y[0]) for x, y in fields if len(x) == len(y) == 1]
    options, profiles, sampled = read_options(read, missing), [], []
    for side, source in enumerate((a, b)):
        columns = [*dict.fromkeys(names[side] for names in (*named.values(), *alone))]
        records = read_records(
            source, id=None, columns=columns, options=options[side], side="AB"[side]
        )
        profiles.append({profile.name: profile for profile in profile_columns(records)})
        sampled.append(len(sample_rows(len(records))) / len(records))
    found = {
        (x, y): pair_named(profiles[0][x], profiles[1][y], (sampled[0], sampled[1]))
        for x, y in dict.fromkeys((*named.values(), *alone))
    }
    if a is not b:
        shared = {names: pair.shared for names, pair in found.items() if pair}
        likely = LikelyPairs([*profiles[0].values()], [*profiles[1].values()], shared)
        found = {
            names: pair and with_units(recoded(pair, likely), likely)
            for names, pair in found.items()
        }
    chosen = {}
    for text, (x, y) in named.items():
        pair = found[x, y]
        as_it_is = exact(x) if x == y else exact(x, columns=(x, y))
        chosen[text] = propose(pair) if pair and pair.kind in COMPARISONS else as_it_is
    recodes = {text: ", recoded" for text, field in chosen.items() if "recode" in field.settings}
    told = ", ".join(f"{text} ({f.kind}{recodes.get(text, '')})" for text, f in chosen.items())
    said = f"comparisons were chosen from the files for the columns named without one: {told}."
    return [chosen[field] if isinstance(field, str) else field for field in given], said


def with_partner(
    error: NoColumnError,
    a: Any,
    b: Any,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
) -> NoColumnError:
    """The error, with the column of the other name that holds the same thing, if there is one."""
    options, profiles, sampled = read_options(read, missing), [], []
    for side, source in enumerate((a, b)):
        records = read_records(
            source, id=None, columns=None, options=options[side], side="AB"[side]
        )
        profiles.append(with_events([p for p in profile_columns(records) if p.name]))
        sampled.append(len(sample_rows(len(records))) / len(records))
    for pair in pair_columns(profiles[0], profiles[1], (sampled[0], sampled[1])):
        x, y = pair.columns
        if x != y and error.column in (x, y):
            told = re.sub(r" Did you mean '.*?'\?", "", str(error))  # which goes by letters alone
            return NoColumnError(
                f"{told} {x!r} of A and {y!r} of B look alike. Say so: --on {x}={y} "
                f"(columns=({x!r}, {y!r}) in a field).",
                error.column,
            )
    x = error.column
    own = [x in {profile.name for profile in side} for side in profiles]
    if own == [True, False]:
        return NoColumnError(f"{error} If B calls it otherwise, say so: --on {x}=NAME_IN_B.", x)
    if own == [False, True]:
        return NoColumnError(f"{error} If A calls it otherwise, say so: --on NAME_IN_A={x}.", x)
    return error


def _both(text: str) -> tuple[str, str]:
    sides = text.split("=")
    if len(sides) > 2 or not all(sides):
        raise SettingsError(
            f"{text!r} is no column, nor COLUMN_A=COLUMN_B. Say how to compare it, too: exact(…), "
            "name(…)."
        )
    return sides[0], sides[-1]
