"""The options of a linkage. Each is written here once: default, check, help, flag, link.toml key.

`link()`, the command line, link.toml, `relink`, `update` and `resume` are derived from
`LinkSettings`. A new option is one attribute, and the line in `link()` that uses it.

An attribute takes Python's form of an option (`prior=Penalty(2)`, `loss=Loss(reject=.1)`) or the
plain data of link.toml (`loss={"reject": .1}`). Where one attribute stands for several keys of
link.toml, as `read` does for `encoding` and `missing`, Python takes these keys too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from bayeslink.errors import SettingsError
from bayeslink.options import INPUT, RESOURCES, SPARK, TYPE_NAMES, Entries, Options, key, option
from bayeslink.plain import plain, texts

if TYPE_CHECKING:
    from bayeslink.comparing.fields import Field
    from bayeslink.data.read_options import ReadOptions
    from bayeslink.linkage.decisions import Loss
    from bayeslink.linkage.priors import LinkCountPrior

Sides = str | tuple[str, str]
Ids = Sides | tuple[str | None, str | None] | None


class Found(Enum):
    """That a setting is found in the files."""

    IN_THE_FILES = "found"


FOUND = Found.IN_THE_FILES
STRUCTURES = ("dependent", "independent")
_NUMBER = (int, float)


# --- checks, and the way from link.toml and back ----------------------------------------------


def _one_or_two(key: str, value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        names = []
    if not 1 <= len(names) <= 2:
        raise SettingsError(f"{key} takes one column name, or the name in A and in B.")
    return names[0] if len(names) == 1 else tuple(names)


def checked_id(given: Any) -> Any:
    """The id column of both files, or of each; None, in link.toml [], where there is none."""
    if given is FOUND:
        return given
    given = plain(given)
    if given is None or given == []:
        return None
    if isinstance(given, list) and len(given) == 2 and ([] in given or None in given):
        a, b = (checked_id(part) for part in given)
        return a, b
    return _one_or_two("id", given)


def _id_entry(ids: Any) -> Entries:
    if ids is FOUND:  # of pairs that another tool compared
        return {}
    plain_ids = plain(ids)
    if isinstance(plain_ids, str):
        return {"id": plain_ids}
    return {"id": [[] if name is None else name for name in plain_ids or ()]}


def _checked_block(given: Any) -> tuple[Sides, ...]:
    given = plain(given)
    parts = [given] if isinstance(given, str) else given or ()
    return tuple(_one_or_two("block", part) for part in parts)


def _checked_fields(given: Any) -> list[Field | str] | None:
    if given is None:
        return None
    from bayeslink.comparing.fields import Field
    from bayeslink.comparing.parsing import fields_from

    flat = [given] if isinstance(given, Field | str) else given
    flat = [f for part in flat for f in (part if isinstance(part, list | tuple) else [part])]
    found: list[Field | str] = []
    for entry in flat:
        found += fields_from(entry) if isinstance(entry, Mapping) else [entry]
    return found


def _checked_structure(given: Any) -> str:
    if given not in STRUCTURES:
        allowed = " or ".join(map(repr, STRUCTURES))
        raise SettingsError(f"structure must be {allowed}, got {given!r}.")
    return given


def _checked_wrong_fields(given: Any) -> list[list[float]] | None:
    given = plain(given)
    rows = given if isinstance(given, list) else [given]
    if given is None or all(
        isinstance(row, list) and all(type(n) in _NUMBER and 0 <= n < math.inf for n in row)
        for row in rows
    ):
        return given
    raise SettingsError(
        "wrong_fields takes a list of numbers from 0 up for each number of missing fields: the "
        "links with no field wrong, with one, and so on. An earlier run has them: say --model RUN."
    )


def _prior_from(entries: Entries) -> LinkCountPrior:
    from bayeslink.linkage.priors import Overlap, Penalty

    if "theta" in entries:
        if "overlap" in entries:
            raise SettingsError("give theta or overlap, not both.")
        return Penalty(entries["theta"])
    overlap = entries["overlap"]
    if len(overlap) != 2:
        raise SettingsError(f"overlap takes two numbers, alpha and beta, got {overlap!r}.")
    return Overlap(*overlap)


def _prior_entries(prior: LinkCountPrior | None) -> Entries:
    from bayeslink.linkage.priors import Penalty

    if prior is None:
        return {}
    if isinstance(prior, Penalty):
        return {"theta": prior.theta}
    return {"overlap": [prior.alpha, prior.beta]}


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(
            f"--overlap-beta takes two numbers such as 1,1, got {text!r}."
        ) from None


def _checked_loss(given: Any) -> Loss | None:
    from bayeslink.linkage.decisions import Loss

    if given is None or isinstance(given, Loss):
        return given
    allowed = [f.name for f in dataclasses.fields(Loss)]
    if unknown := [key for key in given if key not in allowed]:
        raise SettingsError(f"loss: unknown key {unknown[0]!r}. Allowed: {', '.join(allowed)}.")
    return Loss(**given) if given else None


def _loss_entries(loss: Loss | None) -> Entries:
    return {"loss": loss and {k: v for k, v in dataclasses.asdict(loss).items() if v is not None}}


def _checked_read(given: Any) -> tuple[ReadOptions, ReadOptions]:
    from bayeslink.data.read_options import ReadOptions

    given = given or ReadOptions()
    a, b = (given, given) if isinstance(given, ReadOptions) else given
    return a, b


def _read_from(entries: Entries) -> tuple[ReadOptions, ReadOptions]:
    """Reading options for A and for B; each setting is for both, or for one each."""
    from bayeslink.data.read_options import ReadOptions

    words = _missing(entries.get("missing", []))
    sides: list[Entries] = [{"missing": side} for side in words]
    for name, wanted in ((k.name, k.types[0]) for k in _READ if k.name in entries):
        if name == "missing":
            continue
        given = plain(entries[name])
        pair = given if isinstance(given, list) else [given, given]
        if len(pair) != 2:
            raise SettingsError(f"{name} takes one value, or one for A and one for B.")
        for side, value in zip(sides, pair, strict=True):
            if type(value) is not wanted:
                raise SettingsError(f"{name} must be {TYPE_NAMES[wanted]}, got {value!r}.")
            if value != "":  # none on this side
                side[name] = value
    a, b = (ReadOptions(**side) for side in sides)
    return a, b


def _missing(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The missing values of A and of B: the same texts, or a table of those of a and of b."""
    sides = given if isinstance(given, Mapping) else {"a": given, "b": given}
    a, b = (texts(sides.get(side, [])) for side in "ab")
    if a is None or b is None or not sides.keys() <= {"a", "b"}:
        raise SettingsError(
            'missing takes texts, such as ["NA", "999"], or those of each file, such as '
            '{a = ["NA"], b = ["999"]}.'
        )
    return a, b


def reading_entries(options: Sequence[ReadOptions]) -> Entries:
    """How the files are read, as far as it is not as usual."""
    from bayeslink.data.read_options import ReadOptions

    entries: Entries = {}
    default = ReadOptions()
    for name in (name for name in READING if name != "missing"):
        values = [plain(getattr(side, name)) for side in options]
        if values != [getattr(default, name)] * 2:
            a, b = ("" if value is None else value for value in values)
            entries[name] = a if a == b else [a, b]
    a, b = ([*side.missing[1:]] for side in options)  # after the blank, which always is
    entries["missing"] = {"a": a, "b": b} if a != b else a or None
    return entries


# --- the options --------------------------------------------------------------------------------

_OF_INPUT: dict[str, Any] = {"group": INPUT}
_EACH = {"multiple": True, **_OF_INPUT}  # once for both files, or once for each
_READ = (
    key("encoding", "Such as cp1252 (twice: of A, then of B). [utf-8]", (str, list), **_EACH),
    key("delimiter", "Told from the header unless given.", (str, list), **_EACH),
    key("skip_lines", "Lines before the header. [0]", (int, list), type=int, **_EACH),
    key("table", "Table or query in a database, or sheet of a workbook.", (str, list), **_EACH),
    key(
        "quarantine", "Set short and long rows aside in this file (twice: of A, then of B).",
        (str, list), path=True, metavar="FILE", **_EACH,
    ),
    key("multiline", "Cells may hold lines that look like records.", (bool, list), is_flag=True,
        **_OF_INPUT),
    key("missing", "A value that means missing.", (list, str, dict), list, metavar="VALUE",
         **_EACH),
)  # fmt: skip
READING = tuple(key.name for key in _READ)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings(Options):
    """Everything that can be chosen in a linkage."""

    a: Any = option(None, key("a", "The first file, if it is one.", (str,), flag=False, path=True))
    b: Any = option(None, key("b", "The second file.", (str,), flag=False, path=True))
    id: Any = option(
        FOUND,
        key("id", "Id column (twice: in A, then in B).", (str, list), flag=False),
        doc="The id column, as one name or (name in A, name in B); None numbers the rows. Unless "
        "given, the column `id`, or where a file has none, what `suggest` finds.",
        check=checked_id,
        split=_id_entry,
    )
    block: Sequence[Sides] = option(
        (),
        key(
            "block", "Compare only pairs that agree on this column (COLUMN_A=COLUMN_B if they "
            "differ).", (list, str), lambda parts: [part.split("=", 1) for part in parts],
            multiple=True, metavar="COLUMN",
        ),
        doc="Columns that must be equal for a pair to be in scope, each as one name or two.",
        check=_checked_block,
        split=lambda block: {"block": plain(block) or None},
    )  # fmt: skip
    labels: Any = option(
        None,
        key(
            "labels", "Judged pairs, to hold for certain: a reviewed run directory, or a CSV or "
            "Parquet file.", (str,), path=True, metavar="PATH",
        ),
        doc="Pairs as judged in a review: a run directory, or what else `read_labels` takes.",
    )  # fmt: skip
    structure: str = option(
        "dependent",
        key(
            "structure", "Fields may depend on each other, or (as in the paper) not. [dependent]",
            (str,), choices=STRUCTURES,
        ),
        doc='"dependent": errors of a link may come together or apart, and fields may agree '
        'together among non-links, as households do; how far, follows from the data. '
        '"independent": the paper\'s model.',
        check=_checked_structure,
    )  # fmt: skip
    point: bool = option(
        False,
        key("point", "Point estimate only: no probabilities.", (bool,), is_flag=True),
        doc="Stop at the penalized-likelihood estimate: no probabilities.",
        split=lambda on: {"point": on or None},
    )
    w0: float | None = option(
        None,
        key("w0", "Weight above which pairs are swept over. [chosen by block size]", _NUMBER,
             type=float),
        doc="Pairs above this weight are swept over in sampling, all others are sampled now and "
        "then: a matter of speed.",
    )  # fmt: skip
    restricted: bool = option(
        False,
        key("restricted", "Only pairs above w0 may link, as in the paper; for comparison.",
             (bool,), is_flag=True),
        doc="Only pairs above w0 may link: the paper's restricted MCMC.",
        split=lambda on: {"restricted": on or None},
    )  # fmt: skip
    draws: int = option(
        1000, key("draws", "Draws of each chain that are kept. [1000]", (int,), type=int)
    )
    tune: int = option(
        500, key("tune", "Draws of each chain before those. [500]", (int,), type=int)
    )
    chains: int = option(4, key("chains", "Chains. [4]", (int,), type=int))
    seed: int = option(
        1,
        key("seed", "Of the draws. [1]", (int,), type=int),
        doc="Of the draws: the same seed gives the same result on any number of threads.",
    )
    read: Any = option(
        None,  # then both as usual
        *_READ,
        doc="How files are read (`ReadOptions`, for both or one each), or by name: missing (values "
        "that count as missing), encoding, delimiter, skip_lines, table, quarantine, multiline.",
        check=_checked_read,
        join=_read_from,
        split=reading_entries,
    )
    prior: LinkCountPrior | None = option(
        None,
        key("theta", "Cost of one link. Without it, it follows from --overlap-beta.", _NUMBER,
             type=float),
        key(
            "overlap", "Beta prior on the share of the smaller file that has a match: its mean is "
            "ALPHA / (ALPHA + BETA), as sure as if so many records had been looked up. [1,1: any "
            "share]", (list,), _numbers, flags=("--overlap-beta", "--overlap"),
            metavar="ALPHA,BETA",
        ),
        doc="A prior on the number of links; a flat one on the overlap of the files unless given. "
        "theta=2, the cost of a link, is short for prior=Penalty(2).",
        join=_prior_from,
        split=_prior_entries,
    )  # fmt: skip
    wrong_fields: Sequence[Sequence[float]] | None = option(
        None,
        key("wrong_fields", "Links of a model, by missing and by wrong fields.", (list,),
             flag=False),
        doc="Links seen before, [missing fields][wrong fields]: a prior of how many fields of a "
        "link are wrong, where they depend on each other. A `model` gives it.",
        check=_checked_wrong_fields,
    )  # fmt: skip
    loss: Loss | None = option(
        None,
        key(
            "loss", "Leave a record to review where that costs less than the expected error, as .1 "
            "does.", (dict,), lambda cost: {"reject": cost}, flags=("--reject",), type=float,
            metavar="COST",
        ),
        doc="What errors and review cost; balanced unless given, which links pairs above ½.",
        check=_checked_loss,
        split=_loss_entries,
    )  # fmt: skip
    engine: Any = option(
        None,
        key(
            "engine", "Who does the work: this machine, or Spark; then A and B may be tables of "
            "its catalogue or Parquet folders. [local]", (str,), group=SPARK,
            choices=("local", "spark"),
        ),
        doc='A Spark session, or "spark" for the active one: comparing and searching are done on '
        "its cluster, with the same result; `a` and `b` may be Spark DataFrames, tables of its "
        "catalogue or addresses of Parquet folders. This machine unless given.",
    )  # fmt: skip
    fields: Any = option(
        None,
        key("fields", "What is compared.", (list,), flag=False),
        check=_checked_fields,
        split=lambda fields: {},  # link.toml has a table for each
    )
    threads: int | None = option(
        None,
        key("threads", "Threads to use. [all]", (int,), repeated=False, type=int, group=RESOURCES),
    )
    memory: str | int | None = option(
        None,
        key("memory", "Memory to use, such as 8GB. [most of the machine's]", (str, int),
             repeated=False, metavar="SIZE", group=RESOURCES),
    )  # fmt: skip
    model: Any = option(
        None,
        key("model", "An earlier run directory or its model.json: what it learned of m is the "
             "prior.", repeated=False, path=True, metavar="PATH"),
        doc="An earlier run, its directory or its model.json: what it learned of m is the prior. "
        "Its fields are compared unless `fields` are given.",
    )  # fmt: skip
    strength: float = option(
        1.0,
        key("strength", "How much of the model's links counts. [1]", repeated=False, type=float,
             metavar="SHARE"),
        doc="How much of the model counts (1: as if its links were links here; 0: not at all; inf: "
        "m and u are fixed).",
    )  # fmt: skip
    known_links: Any = option(
        None,
        doc="Pairs (id_a, id_b) known to be links; of a table with a `decision`, as `run.links` "
        "has, the links.",
    )
    known_nonlinks: Any = option(None, doc="Pairs known to be no links.")
    started_in: str = option(".")  # the directory from which paths lead
    left_out: Any = option(())  # columns that were looked at and are not compared, with reasons

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", _checked_read(self.read))

    def repeated(self) -> dict[str, Any]:
        """The arguments of `link` that repeat a run on the same files, or on others."""
        return {
            name: getattr(self, name)
            for name, argument in self.arguments().items()
            if name not in ("a", "b", "labels", "engine") and any(k.repeated for k in argument.keys)
        }


NOT_BY_NAME = ("a", "b", "fields", "started_in", "left_out")  # to `link`: given otherwise
