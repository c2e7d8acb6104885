"""One or two files or tables in, a PairSource out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field, exact
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records
from bayeslink.engines.input_checks import refuse_long_texts
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.same_input import refuse_same_records
from bayeslink.engines.spark.choosing import cluster_for, read_there
from bayeslink.engines.swapping import with_swapped_names
from bayeslink.errors import OutputError, SettingsError
from bayeslink.memory import Memory, parse_memory
from bayeslink.pairs.source import PairSource
from bayeslink.settings import Ids, Sides
from bayeslink.threads import Workers

Progress = Callable[[str], None]


def compare(
    a: Any,
    b: Any = None,
    fields: Sequence[Field] | None = None,
    *,
    id: Ids = "id",
    block: Sequence[Sides] = (),
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    swapped_names: bool = False,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda message: None,
    checkpoints: Checkpoints | None = None,
    engine: Any = None,
) -> PairSource:
    """Compare all pairs of two files, or all pairs that share a blocking key.

    Without `b`, the pairs are those of two different records of `a`, each once.

    Parameters
    ----------
    a, b
        Paths (CSV, TSV, Parquet or a folder of it, Excel, SQLite, DuckDB), "-" for standard input,
        the address of a Postgres database, or pandas, polars or Arrow tables, lazy ones too.
    fields
        What is compared: `exact("age")`, `levenshtein("surname")`, …
    id
        The id column, as one name or (name in A, name in B); None numbers the rows.
    block
        Columns that must be equal for a pair to be in scope, each as one name or two.
    read
        How files are read, for both or one each; see `ReadOptions`.
    missing
        Values that count as missing in both files, short for `read=ReadOptions(missing=…)`.
    swapped_names
        Whether to look for two text fields whose values are swapped in far more pairs than by
        chance, as given and family names are, and to make that a level of the first.
    memory
        What the whole run may use, such as "8GB"; most of the machine's unless given. It never
        changes a result: large arrays beyond it are kept in files.
    checkpoints
        Where long searches are written down, to go on from after an interruption.
    engine
        A Spark session, or "spark" for the active one: then the work is done on its cluster, and
        `a` and `b` may be tables of its catalogue or addresses of Parquet folders. Spark
        DataFrames bring their own. This machine unless given.
    """
    if fields is None:
        raise SettingsError(
            "compare needs fields: bl.compare(a, b, fields) for two files, and "
            "bl.compare(a, fields=fields) for the pairs of one file with itself."
        )
    fields, keys = _checked_fields(fields), block_fields(block)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise SettingsError(f"threads must be a whole number from 1 up, got {threads!r}.")
    options, room = read_options(read, missing), Memory(parse_memory(memory))
    ids = (id, id) if id is None or isinstance(id, str) else tuple(id)
    sources = ((a, "A"),) if b is None else ((a, "A"), (b, "B"))
    if b is None:
        _refuse_two_sides(ids, options, [*fields, *keys])
    records: list[Records] = []
    cluster = cluster_for(engine, (a, b), progress, threads)
    for side, (source, name) in enumerate(sources):
        progress(f"reading {name}" if b is not None else "reading the file")
        columns = list(dict.fromkeys(c for f in (*fields, *keys) for c in f.columns[side]))
        how: dict[str, Any] = {"id": ids[side], "columns": columns, "options": options[side]}
        found = None if cluster is None else read_there(cluster, source, side=name, **how)
        records.append(found or read_records(source, side=name, memory=room.budget, **how))
        codes = 2 * 4 * len(columns) * len(records[side])
        room.take("the records read so far", records[side].nbytes + codes)
    if b is not None:
        refuse_same_records(records, options)
        _refuse_shared_quarantine(records, options)
    refuse_long_texts(records, fields)
    progress(f"comparing values. {room}")
    if checkpoints is not None:
        checkpoints.bind({f"input {s}": str(r.sha256) for s, r in zip("AB", records, strict=False)})
    workers, does = (threads, "local") if cluster is None else (cluster, "spark")
    how = {"block": block, "swapped_names": swapped_names, "workers": workers}
    return compare_records(records, fields, **how, memory=room, checkpoints=checkpoints, does=does)


def compare_records(
    records: Sequence[Records],
    fields: Sequence[Field],
    *,
    block: Sequence[Sides] = (),
    swapped_names: bool = False,
    workers: int | Workers | None = None,
    memory: Memory | None = None,
    checkpoints: Checkpoints | None = None,
    does: str = "local",
) -> PairSource:
    """The same of records that were read before, of two files or of one."""
    keys = block_fields(block)
    other = records[1] if len(records) > 1 else None
    pairs = LocalPairs(records[0], other, fields, keys, workers, memory, checkpoints, does)
    return with_swapped_names(pairs) if swapped_names else pairs


def compare_one(a: Any, fields: Sequence[Field], **options: Any) -> PairSource:
    """Compare all pairs of two different records of one file: `compare` without `b`."""
    return compare(a, None, fields, **options)


def _refuse_two_sides(
    ids: tuple[str | None, ...], options: tuple[ReadOptions, ReadOptions], fields: Sequence[Field]
) -> None:
    """Refuse what is said of A and B apart where there is one file."""
    two = [f"field {f.name!r}" for f in fields if f.columns[0] != f.columns[1]]
    two += [
        f"field {f.name!r} (format)" for f in fields if len({*f.options.get("formats", ())}) > 1
    ]
    two += ["id"] * (len({*ids}) > 1) + ["read"] * (options[0] != options[1])
    if two:
        raise SettingsError(
            f"{', '.join(two)}: two are given, and there is one file. Its records are compared "
            "with each other, so name each column, the id and the way to read once."
        )


def _checked_fields(fields: Sequence[Field]) -> list[Field]:
    fields = flat(fields)
    if column := next((f for f in fields if isinstance(f, str)), None):
        raise SettingsError(
            f"{column!r} is a column; a field also says how to compare it: levenshtein({column!r}) "
            f"for names, exact({column!r}) for codes, date({column!r}) for dates. bl.link takes "
            "columns, too, and chooses."
        )
    if not fields or not all(isinstance(f, Field) for f in fields):
        raise SettingsError(
            "give at least one field to compare, such as [levenshtein('surname'), exact('age')]."
        )
    names = [f.name for f in fields]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SettingsError(
            f"two fields are called {twice[0]!r}. Give one of them another name, "
            f"such as exact({twice[0]!r}, name='{twice[0]}_exact')."
        )
    return fields


def flat(fields: Any) -> list[Any]:
    """Fields, those of a `person_name` among them, as one list."""
    given = [fields] if isinstance(fields, Field | str) else list(fields)
    return [f for part in given for f in (part if isinstance(part, list | tuple) else [part])]


def block_fields(block: Sequence[Sides]) -> list[Field]:
    """The columns of a blocking key, as fields."""
    return [
        exact(names) if isinstance(names, str) else exact(names[0], columns=tuple(names))
        for names in as_list(block)
    ]


def as_list(block: Any) -> list[Sides]:
    """Blocking keys as a list, each as one name or two."""
    return [block] if isinstance(block, str) else list(() if block is None else block)


def read_options(
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None, missing: Sequence[str] | None
) -> tuple[ReadOptions, ReadOptions]:
    """How A and B are read, from what `compare` takes."""
    if missing is not None:
        if read is not None:
            raise SettingsError("give missing or read=ReadOptions(missing=…), not both.")
        read = ReadOptions(missing=[missing] if isinstance(missing, str) else missing)
    read = read or ReadOptions()
    return (read, read) if isinstance(read, ReadOptions) else read


def _refuse_shared_quarantine(records: Sequence[Records], options: Sequence[ReadOptions]) -> None:
    aside = {str(side.quarantine) for side in options}
    if len(aside) == 1 and all(side.quarantined for side in records):
        raise OutputError(
            f"both files have rows to set aside, in one file, {aside.pop()!r}. Name a file for "
            "each: --quarantine twice (quarantine= in a ReadOptions of each)."
        )
