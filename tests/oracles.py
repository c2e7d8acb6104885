"""Plain versions of what the package does fast. Slow on purpose; each is itself simple to check."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa

from bayeslink.data.records import read_records


def records(rows, ids=None, side="A"):
    """Records from a list of dicts of texts (None = missing)."""
    names = list(rows[0])
    table = pa.table({n: pa.array([r[n] for r in rows], pa.string()) for n in names})
    ids = ids or [f"{side}{i}" for i in range(len(rows))]
    table = table.append_column("id", pa.array(ids, pa.string()))
    return read_records(table, id="id", columns=names, side=side)


def levenshtein(x, y):
    """The textbook table."""
    row = list(range(len(y) + 1))
    for i, cx in enumerate(x, 1):
        before, row[0] = row[0], i
        for j, cy in enumerate(y, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (cx != cy))
    return row[-1]


def levels_of_pair(fields, a, b):
    """Comparison vector of two rows (dicts): exact, levenshtein, and by the rules of a field."""
    out = []
    for field in fields:
        x, y = a[field.columns[0][0]], b[field.columns[1][0]]
        if not x or not y:
            out.append(0)
        elif field.kind == "exact":
            out.append(2 if x == y else 1)
        elif ladder := field.options.get("ladder"):
            out.append(int(ladder.matrix([x], [y])[0, 0]))
        else:
            distance = levenshtein(x, y) / max(len(x), len(y))
            out.append(1 + sum(distance <= cut for cut in field.cuts))
    return tuple(out)


def all_pairs(fields, rows_a, rows_b, block=()):
    """Every pair in scope with its comparison vector, by two loops."""
    for (i, a), (j, b) in itertools.product(enumerate(rows_a), enumerate(rows_b)):
        if all(a[k] and a[k] == b[k] for k in block):
            yield i, j, levels_of_pair(fields, a, b)


def pattern_counts(fields, rows_a, rows_b, block=()):
    return Counter(levels for _, _, levels in all_pairs(fields, rows_a, rows_b, block))


def matchings(edges):
    """Every matching of a small graph given as (number, row, column), as tuples of numbers."""
    if not edges:
        yield ()
        return
    (number, a, b), rest = edges[0], edges[1:]
    yield from matchings(rest)
    for more in matchings([e for e in rest if e[1] != a and e[2] != b]):
        yield (number, *more)


def count_matchings(sizes):
    """Number of matchings with 0, 1, … links over blocks of a × b, in exact integers."""
    total = [1]
    for a, b in sizes:
        block, ways = [], 1
        for n in range(min(a, b) + 1):
            block.append(ways)
            ways = ways * (a - n) * (b - n) // (n + 1)
        product = [0] * (len(total) + len(block) - 1)
        for i, x in enumerate(total):
            for j, y in enumerate(block):
                product[i + j] += x * y
        total = product
    return total


def log_integer(n):
    """Natural log of an integer of any size."""
    shift = max(0, n.bit_length() - 1000)
    return float(np.log(float(n >> shift)) + shift * np.log(2))
