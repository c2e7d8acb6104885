"""The options of a deduplication: those of a linkage that make sense for one file, and its own."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bayeslink.errors import SettingsError
from bayeslink.options import Argument, Entries, key, option
from bayeslink.settings import LinkSettings

if TYPE_CHECKING:
    from bayeslink.linkage.clustering import ClusterLoss
    from bayeslink.linkage.partitions import ClusterSizes

# Options of `link` that one file with duplicates does not have.
NOT_HERE = (
    "b", "prior", "theta", "overlap", "point", "model", "strength", "w0", "wrong_fields",
)  # fmt: skip
SHAPES = ("pointers", "star", "tree")
KEEP = REPRESENTATIVE, LONGEST, MOST_FREQUENT = "representative", "longest", "most_frequent"
NEWEST, FILES, OTHERS = "newest", "files", "*"
_BY_COLUMN = re.compile(
    rf"(?P<column>.+)=(?P<rule>{'|'.join(KEEP)}|(?:{NEWEST}|{FILES}):.*)", re.DOTALL
)
# Where `link` tells of two files.
_HELP = {
    "id": "Id column.",
    "block": "Compare only pairs that agree on this column.",
    "encoding": "Such as cp1252. [utf-8]",
    "engine": "Who does the work: this machine, or Spark; then a file may be a table of its "
    "catalogue or a Parquet folder. [local]",
    "quarantine": "Set short and long rows aside in this file.",
    "restricted": "Only pairs above the sampler's limit may be one person; for comparison.",
}


def _checked_word(name: str, allowed: tuple[str, ...]) -> Any:
    def check(given: Any) -> Any:
        if given not in allowed:
            words = ", ".join(map(repr, allowed))
            raise SettingsError(f"unknown {name} {given!r}. Allowed: {words}.")
        return given

    return check


class KeepRule(NamedTuple):
    """Which value of its records a person has in a column."""

    kind: str  # one of KEEP, NEWEST or FILES
    of: tuple[str, ...] = ()  # the column of dates, or the files, the best first


def _keep_rule(text: Any) -> KeepRule:
    kind, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind in KEEP and not colon:
        return KeepRule(kind)
    if kind == NEWEST and rest:
        return KeepRule(kind, (rest,))
    if kind == FILES and rest and all(names := tuple(rest.split(","))):
        return KeepRule(kind, names)
    words = ", ".join(map(repr, KEEP))
    raise SettingsError(
        f"unknown keep {text!r}. Allowed: {words}, 'newest:COLUMN' (by a column of dates) and "
        "'files:NAME,NAME' (of several files, the first that has a value)."
    )


def keep_rules(keep: str | Mapping[str, str]) -> tuple[KeepRule, dict[str, KeepRule]]:
    """The rule of all columns, and those of columns that have their own."""
    by_column = {OTHERS: keep} if isinstance(keep, str) else dict(keep)
    rules = {column: _keep_rule(text) for column, text in by_column.items()}
    return rules.pop(OTHERS, KeepRule(REPRESENTATIVE)), rules


def checked_keep(given: Any) -> str | dict[str, str]:
    """A rule for all columns, or rules by column with "*" for all others.

    Also as a list of texts: "longest", "address=newest:updated_on".
    """
    if isinstance(given, str) and not _BY_COLUMN.fullmatch(given):
        given = {OTHERS: given}
    if not isinstance(given, Mapping):
        found: dict[str, str] = {}
        for text in [given] if isinstance(given, str) else given:
            own = _BY_COLUMN.fullmatch(text) if isinstance(text, str) else None
            column, rule = own.group("column", "rule") if own else (OTHERS, text)
            if column in found:
                what = "all other columns" if column == OTHERS else f"the column {column!r}"
                raise SettingsError(f"keep has two rules for {what}. Give one.")
            found[column] = rule
        given = found
    keep_rules(given)
    return given[OTHERS] if [*given] == [OTHERS] else dict(given)


def _made(what: str, given: Any, cls: type[Any]) -> Any:
    """An object of the class from itself, or from a table of its attributes."""
    if given is None or isinstance(given, cls):
        return given
    allowed = [f.name for f in dataclasses.fields(cls)]
    if not isinstance(given, Mapping):
        raise SettingsError(f"{what} must be a bl.{cls.__name__}, got {type(given).__name__}.")
    if unknown := [name for name in given if name not in allowed]:
        raise SettingsError(f"{what}: unknown key {unknown[0]!r}. Allowed: {', '.join(allowed)}.")
    return cls(**given)


def _checked_loss(given: Any) -> Any:
    from bayeslink.linkage.clustering import ClusterLoss

    return _made("loss", given, ClusterLoss)


def _checked_sizes(given: Any) -> Any:
    from bayeslink.linkage.partitions import ClusterSizes

    return _made("sizes", given, ClusterSizes)


def _checked_earlier(given: Any) -> Any:
    if given is None or isinstance(given, str | os.PathLike) or hasattr(type(given), "clusters"):
        return given
    raise SettingsError(
        f"earlier must be a run of `dedupe` or `link_many`, or its directory, got "
        f"{type(given).__name__}."
    )


def _path_of_run(run: Any) -> str | None:
    """The directory of a run; None of one that was never saved."""
    path = getattr(run, "directory", run)
    return None if path is None else os.fspath(path)


def _loss_entries(loss: ClusterLoss | None) -> Entries:
    # TOML has infinity, but "not given" says the same.
    told = {k: v for k, v in dataclasses.asdict(loss).items() if v != float("inf")} if loss else {}
    return {"loss": told or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeSettings(LinkSettings):
    """Everything that can be chosen in a deduplication."""

    WITHOUT: ClassVar[tuple[str, ...]] = NOT_HERE
    TOML: ClassVar[str] = "dedupe.toml"

    a: Any = option(
        None,
        key("a", "The file, or a list of files that are one.", (str, list), flag=False, path=True),
    )
    earlier: Any = option(
        None,
        key("earlier", "The run that this one updates: its people keep their entity_id.", (str,),
            flag=False, path=True),
        doc="An earlier run of some of these records, or its directory: its people keep their "
        "entity_id. `bl.update` and `--update` say it.",
        check=_checked_earlier,
        split=lambda earlier: {"earlier": _path_of_run(earlier)},
    )  # fmt: skip
    loss: Any = option(
        None,
        key(
            "loss", "Leave a record to review where that costs less than its share of the expected "
            "errors, as .2 does.", (dict,), lambda cost: {"review": cost}, flags=("--review",),
            type=float, metavar="COST",
        ),
        doc="Costs of errors, as ClusterLoss(false_pair=1, missed_pair=1, review=0.2).",
        check=_checked_loss,
        split=_loss_entries,
    )  # fmt: skip
    sizes: ClusterSizes | None = option(
        None,
        key("sizes", "The prior of how many records a person has.", (dict,), flag=False),
        doc="The prior of how many records a person has; ClusterSizes() unless given.",
        check=_checked_sizes,
        split=lambda sizes: {"sizes": sizes and dataclasses.asdict(sizes)},
    )
    shape: str = option(
        "pointers",
        key("shape", "Whether a record may be a copy of a copy: how often is learned (pointers), "
            "never (star), or as often as of an original (tree). [pointers]", (str,),
            choices=SHAPES),
        doc='Whether a record may be a copy of a copy: "pointers" (how often is learned), "star" '
        '(never) or "tree" (as often as of an original).',
        check=_checked_word("shape", SHAPES),
    )  # fmt: skip
    keep: str | Mapping[str, str] = option(
        REPRESENTATIVE,
        key(
            "keep", "The value that people.csv has in each column: representative (of the record "
            "that represents the person), longest, most_frequent, newest:DATES (by a column of "
            "dates), or of several files files:NAME,NAME (the first that has one). Again for a "
            "column of its own, as in address=newest:changed_on. [representative]",
            (str, list, dict), list, multiple=True, metavar="[COLUMN=]RULE",
        ),
        doc='What people.csv has where the records of a person differ: "representative" (what the '
        'record has that represents the person), "longest", "most_frequent", "newest:changed_on" '
        '(of the record with the newest date in that column) or, of several files, "files:tax,'
        'census" (of the first of these that has a value). Or a rule for each column, with "*" '
        'for all others: {"address": "newest:changed_on", "*": "longest"}.',
        check=checked_keep,
    )  # fmt: skip

    @classmethod
    def arguments(cls) -> dict[str, Argument]:
        """Every argument by name, in words of one file."""
        found = LinkSettings.arguments.__func__(cls)  # type: ignore[attr-defined]
        return {
            name: argument._replace(
                keys=tuple(k._replace(help=_HELP.get(k.name, k.help)) for k in argument.keys)
            )
            for name, argument in found.items()
        }
