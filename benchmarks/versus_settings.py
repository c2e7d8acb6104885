"""Data sets of the head-to-head and every setting of every tool on each of them.

Splink's follow its worked examples of linking people (FEBRL 4, 50,000 historical persons):
forename-surname and date-of-birth comparisons with term frequencies, u by random sampling, m by EM
in two sessions, several blocking rules. Its prior, the share of pairs that match, is told to it as
it truly is. recordlinkage's follow its guide: Jaro–Winkler at .85 for strings, others exact, ECM.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Settings = dict[str, Any]
Rules = list[list[str] | str]


@dataclass(frozen=True)
class DataSet:
    """Files and the arms run on them: name -> (tool, settings)."""

    name: str
    maker: str
    arguments: tuple[int, ...]
    arms: dict[str, tuple[str, Settings]] = field(hash=False)


# --- how each tool is set up ------------------------------------------------------------------


def bayeslink(
    *fields: str, block: tuple[str, ...] = (), point: bool = False
) -> tuple[str, Settings]:
    return "bayeslink", {"fields": fields, "block": block, **({"point": True} if point else {})}


def splink(
    prior: float,
    comparisons: list[str],
    rules: Rules,
    training: Rules,
    derived: tuple[str, ...] = (),
    **predict: int,
) -> tuple[str, Settings]:
    return "splink", {
        "prior": prior,
        "comparisons": comparisons,
        "rules": rules,
        "training": training,
        "derived": derived,
        "u": {"max_pairs": 1e7, "seed": 1},
        "predict": predict,
    }


def recordlinkage(
    strings: str, others: str, rules: Rules, agree: int | None = None
) -> tuple[str, Settings]:
    """By ECM, or linking pairs of which at least `agree` fields agree."""
    compared = [f"string('{c}', '{c}', 'jarowinkler', threshold=0.85)" for c in strings.split()]
    compared += [f"exact('{c}', '{c}')" for c in others.split()]
    return "recordlinkage", {"comparisons": compared, "rules": rules, "agree": agree}


def crosswise(given: str, family: str) -> tuple[str, str]:
    """Fields that agree when given and family name are swapped."""
    return (
        f"bl.exact('{given}', columns=('{given}', '{family}'), name='swapped 1')",
        f"bl.exact('{family}', columns=('{family}', '{given}'), name='swapped 2')",
    )


def _names(given: str, family: str) -> str:
    columns = f"'{given}', '{family}', forename_surname_concat_col_name='name'"
    return f"cl.ForenameSurnameComparison({columns})"


def _with_frequencies(comparison: str) -> str:
    return f"cl.{comparison}.configure(term_frequency_adjustments=True)"


_POSTCODE = _with_frequencies("DamerauLevenshteinAtThresholds('postcode', [1, 2])")


# --- simulated people: gname, fname, dob, sex, occup, postcode --------------------------------

PEOPLE = (
    "bl.levenshtein('gname')", "bl.levenshtein('fname')", "bl.date('dob')", "bl.exact('sex')",
    "bl.exact('occup')", "bl.levenshtein('postcode')",
)  # fmt: skip


def simulated(n: int, errors: int, seed: int) -> DataSet:
    few = n <= 2000  # recordlinkage can compare all pairs
    arms = {
        "bayeslink": bayeslink(*PEOPLE),
        "bayeslink, names crosswise too": bayeslink(*PEOPLE, *crosswise("gname", "fname")),
        "Splink": splink(
            0.5 / n,
            [_names("gname", "fname"), "cl.DateOfBirthComparison('dob', input_is_string=True)",
             "cl.ExactMatch('sex')", "cl.ExactMatch('occup')", _POSTCODE],
            [["gname"], ["fname"], ["dob"], "l.gname = r.fname and l.fname = r.gname",
             ["postcode", "occup", "sex"], ["postcode", "substr(dob, 1, 4)"]],
            [["dob"], ["gname", "fname"]],
            ("gname || ' ' || fname as name",),
        ),
        "recordlinkage": recordlinkage(
            "gname fname", "dob sex occup postcode", [] if few else [["dob"], ["gname", "fname"]]
        ),
    }  # fmt: skip
    return DataSet(
        f"simulated, {n:,} records, errors {errors}", "simulated", (n, errors, seed), arms
    )


# --- FEBRL 4 ----------------------------------------------------------------------------------


def febrl(number: bool, shared: int = 5000, each: int = 5000) -> DataSet:
    """With or without the social-security number; `shared` of `each` file's records in both."""
    ours = (
        "bl.levenshtein('given_name')", "bl.levenshtein('surname')", "bl.date('date_of_birth')",
        "bl.exact('street_number')", "bl.levenshtein('address_1')", "bl.levenshtein('suburb')",
        "bl.levenshtein('postcode')", "bl.exact('state')",
    )  # fmt: skip
    theirs = [
        _names("given_name", "surname"),
        "cl.DateOfBirthComparison('date_of_birth', input_is_string=True)",
        _with_frequencies("ExactMatch('street_number')"),
        "cl.JaroWinklerAtThresholds('address_1', [0.92, 0.8])",
        "cl.JaroWinklerAtThresholds('suburb', [0.92, 0.8])", _POSTCODE, "cl.ExactMatch('state')",
    ]  # fmt: skip
    rules: Rules = [
        ["given_name", "surname"], "l.given_name = r.surname and l.surname = r.given_name",
        ["date_of_birth"], ["state", "address_1"], ["street_number", "address_1"], ["postcode"],
    ]  # fmt: skip
    exact = "date_of_birth street_number postcode state"
    blocks: Rules = [["date_of_birth"], ["given_name", "surname"], ["postcode"]]
    if number:
        ours += ("bl.levenshtein('soc_sec_id')",)
        theirs.append("cl.DamerauLevenshteinAtThresholds('soc_sec_id', [1, 2])")
        rules.append(["soc_sec_id"])
        exact += " soc_sec_id"
        blocks.append(["soc_sec_id"])
    arms = {
        "bayeslink": bayeslink(*ours),
        "Splink": splink(
            shared / each**2, theirs, rules, [["date_of_birth"], ["postcode"]],
            ("given_name || ' ' || surname as name",),
        ),
        "recordlinkage": recordlinkage("given_name surname address_1 suburb", exact, blocks),
    }  # fmt: skip
    part = "" if shared == each else f", {shared:,} of {each:,} in both"
    with_number = " with social-security number" if number else ""
    return DataSet(f"FEBRL 4{with_number}{part}", "febrl", (shared, each), arms)


# --- the large example: gname, fname, age, occup, postcode ------------------------------------

LARGE = (
    "bl.levenshtein('gname')", "bl.levenshtein('fname')", "bl.exact('age')", "bl.exact('occup')",
)  # fmt: skip
LARGE_SPLINK = [
    _with_frequencies("LevenshteinAtThresholds('gname', [1, 2, 4])"),
    _with_frequencies("LevenshteinAtThresholds('fname', [1, 2, 4])"),
    "cl.ExactMatch('age')", "cl.ExactMatch('occup')",
]  # fmt: skip
LARGE_RULES: Rules = [
    ["postcode", "gname"], ["postcode", "fname"], ["gname", "fname"], ["postcode", "age", "occup"],
]  # fmt: skip
LARGE_TRAINING: Rules = [["postcode", "gname"], ["postcode", "fname"]]
WITHIN_POSTCODE = 160_620_919  # pairs


def large() -> DataSet:
    arms = {
        "bayeslink, within postcode": bayeslink(*LARGE, block=("postcode",)),
        "bayeslink, all 2.5 billion pairs": bayeslink(*LARGE, "bl.exact('postcode')"),
        "bayeslink, all pairs, point estimate": bayeslink(
            *LARGE, "bl.exact('postcode')", point=True
        ),
        "Splink, four blocking rules": splink(
            0.5 / 50_000, [*LARGE_SPLINK, "cl.ExactMatch('postcode')"], LARGE_RULES, LARGE_TRAINING
        ),
        "Splink, within postcode": splink(
            25_000 / WITHIN_POSTCODE, LARGE_SPLINK, [["postcode"]], LARGE_TRAINING,
            num_chunks_left=4, num_chunks_right=4,
        ),
        "recordlinkage, ECM": recordlinkage(
            "gname fname", "age occup postcode", [["gname", "fname"]]
        ),
        "recordlinkage, 4 of 5 fields agree": recordlinkage(
            "gname fname", "age occup postcode",
            [["postcode", "gname"], ["postcode", "fname"], ["gname", "fname"]], agree=4,
        ),
    }  # fmt: skip
    return DataSet("large example", "large", (), arms)


# Settings were tried out on seed 1; these are other seeds. Small files vary, so three of each.
DATA_SETS = [
    *(simulated(500, errors, seed) for errors in (1, 2, 3) for seed in (2, 3, 4)),
    *(simulated(2000, errors, 2) for errors in (1, 2, 3)),
    *(simulated(10_000, errors, 2) for errors in (1, 2, 3)),
    simulated(50_000, 2, 2),
    febrl(number=True),
    febrl(number=False),
    febrl(number=False, shared=2500, each=3750),
    large(),
]
