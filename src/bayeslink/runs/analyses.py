"""Tables that carry the uncertainty of the links on: A's groups by B's, coverage by stratum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.cell_texts import as_text
from bayeslink.errors import InputError, SettingsError, check_interval
from bayeslink.pairs.pair_tables import in_kind, row_table
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.inputs import inputs_of
from bayeslink.runs.joined import PROBABILITY, LinkedRows, joined_names
from bayeslink.runs.outputs import drawn_rows

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

_NONE = "–"  # a group of records without a value
_MOST = 1000  # draws looked at unless told otherwise


def cross_table(
    run: Run, a: str, b: str, *, draws: int | None = None, interval: float = 0.95
) -> Any:
    """Linked people by a column of A and a column of B: mean count and interval of each cell.

    Parameters
    ----------
    a, b
        The columns; they need not have been compared.
    draws
        Draws of the links to look at; up to 1,000 unless given.
    interval
        Probability of the intervals, which are of the number of people in these files: they hold
        the doubt about links, and no sampling of files from a population.
    """
    check_interval(interval)
    groups_a, codes_a = _groups(run, 0, a)
    groups_b, codes_b = _groups(run, 1, b)
    width = len(groups_b)
    counts = np.array(
        [
            np.bincount(codes_a[rows.a] * width + codes_b[rows.b], minlength=len(groups_a) * width)
            for rows in _drawn(run, draws)
        ]
    )
    low, high = np.quantile(counts, [(1 - interval) / 2, (1 + interval) / 2], axis=0)
    rows = [
        {f"{a}_a": x, f"{b}_b": y, "people": float(counts[:, k].mean()),
         "low": float(low[k]), "high": float(high[k])}
        for k, (x, y) in enumerate((x, y) for x in groups_a for y in groups_b)
    ]  # fmt: skip
    return row_table(rows, run.pairs.kind)


def coverage(
    run: Run,
    by: str,
    *,
    of: str = "a",
    draws: int | None = None,
    interval: float = 0.95,
    seed: int = 1,
) -> Any:
    """Share of people that a file covers, by stratum, as post-enumeration surveys report it.

    Of the people of the other file, those with a link are covered: B is the survey where A, the
    census, is asked about. The undercount is what is lacking to 1. People of a stratum are taken
    as a sample (Jeffreys prior), so that intervals hold for the population, too; the doubt about
    links is in them through the draws. That takes the other file to be right: people in it by
    mistake count as missed.

    Parameters
    ----------
    by
        A column of the other file.
    of
        The file whose coverage is asked for, "a" or "b".
    """
    check_interval(interval)
    if of not in ("a", "b"):
        raise InputError(f'of must be "a" or "b", got {of!r}.')
    side = 1 - "ab".index(of)
    groups, codes = _groups(run, side, by)
    n = np.bincount(codes, minlength=len(groups))
    linked = np.array(
        [
            np.bincount(codes[(rows.a, rows.b)[side]], minlength=len(groups))
            for rows in _drawn(run, draws)
        ]
    )
    every = [*zip(groups, n, linked.T, strict=True), ("all", n.sum(), linked.sum(1))]
    rng = np.random.default_rng(seed)
    rows = []
    for name, size, covered in every:
        share = rng.beta(covered + 0.5, size - covered + 0.5)
        low, high = np.quantile(share, [(1 - interval) / 2, (1 + interval) / 2])
        rows.append(
            {
                by: name,
                "people": int(size),
                "covered": float(covered.mean()),
                "coverage": float(covered.mean() / size),
                "low": float(low),
                "high": float(high),
                "undercount": float(1 - covered.mean() / size),
            }
        )
    return row_table(rows, run.pairs.kind)


def expected(run: Run, *columns: str, of: str = "a") -> Any:
    """B's records, each with what A's columns are expected to be for it, given the links.

    That is their mean over the posterior of the record's link; where it may have none, over all of
    A: people of B alone are taken to be like those of A. To regress a column of B on these, with
    standard errors that allow for unequal variances, is not pulled towards 0 by wrong links as
    long as the link probabilities are right (Lahiri & Larsen 2005). It holds for what is linear in
    these columns: a square, or a product of two, is to be a column of A beforehand.

    Parameters
    ----------
    columns
        Columns of numbers; a missing one counts as if there were no link.
    of
        The file that they are of: "b" gives A's records with what B's columns are expected to be.
    """
    if of not in ("a", "b"):
        raise InputError(f'of must be "a" or "b", got {of!r}.')
    if run.posterior is None:
        raise SettingsError(
            "a point estimate has no link probabilities. Link without point=True (--point)."
        )
    side = "ab".index(of)
    source, target = (inputs_of(run, sides=(k,))[0].whole() for k in (side, 1 - side))
    known = run.posterior.blocks.known
    pairs = run.posterior.blocks.candidates.with_more(known)
    p = np.append(run.posterior.probability, np.ones(len(known)))
    rows, partners = ((pairs.b, pairs.a), (pairs.a, pairs.b))[side]
    n, found = len(target), {}
    for column in columns:
        x = _numbers(source, column, f"input {of.upper()}")
        there = np.isfinite(x[partners])
        at, weight = rows[there], p[there]
        sums = np.bincount(at, weight * x[partners[there]], minlength=n)
        rest = 1 - np.bincount(at, weight, minlength=n)
        found[column] = sums + rest * np.nanmean(x)
    linked = np.bincount(rows, p, minlength=n)
    made = pa.table([*map(pa.array, found.values()), pa.array(linked)], [*found, PROBABILITY])
    names = joined_names(target.column_names, made.column_names)[:-1]
    return in_kind(pa.table([*target.columns, *made.columns], names), run.pairs.kind)


def _numbers(table: pa.Table, column: str, where: str) -> Floats:
    """A column as numbers, NaN where there is none."""
    _require_column(table, column, where)
    try:
        cells = table[column]
        if not pa.types.is_floating(cells.type) and not pa.types.is_integer(cells.type):
            texts = pc.utf8_trim_whitespace(as_text(cells, column, where))
            cells = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        found = np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except pa.ArrowInvalid:
        raise InputError(
            f"{where}: column {column!r} does not hold numbers alone. Make a column of numbers of "
            "it first, such as 0 and 1."
        ) from None
    if not np.isfinite(found).any():
        raise InputError(f"{where}: column {column!r} has no number at all.")
    return found


def _require_column(table: pa.Table, column: str, where: str) -> None:
    if column not in table.column_names:
        raise InputError(
            f"{where} has no column {column!r}. Its columns are "
            f"{', '.join(map(repr, table.column_names))}."
        )


def _groups(run: Run, side: int, column: str) -> tuple[list[str], Ints]:
    """The values of a column, and which of them each record has."""
    table = inputs_of(run, sides=(side,))[0].whole()
    where = f"input {'AB'[side]}"
    _require_column(table, column, where)
    texts = as_text(table[column], column, where)
    values = [_NONE if text is None or not text.strip() else text for text in texts.to_pylist()]
    encoded = pa.array(values, pa.large_string()).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    order = np.argsort(names)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return [names[k] for k in order], rank[encoded.indices.to_numpy()]


def _drawn(run: Run, draws: int | None) -> list[LinkedRows]:
    kept = 0 if run.posterior is None else sum(len(chain) for chain in run.posterior.kept)
    return drawn_rows(run, min(_MOST, max(1, kept)) if draws is None else draws)
