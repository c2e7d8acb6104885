"""What every PairSource must do, on random small problems, against two plain loops.

Each problem comes as two files, as one file whose records are compared with each other, and as
several files that stand together in one.
"""

import pickle
import tempfile
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink import threads as work_threads
from bayeslink.comparing import dictionaries
from bayeslink.comparing.fields import exact, levenshtein
from bayeslink.comparing.special_fields import identifier, name
from bayeslink.engines import arrays, joining, missing, search, work
from bayeslink.engines import pattern_counts as counts
from bayeslink.engines.listed import ListedPairs
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.many_files import of_files
from bayeslink.engines.preselected import ChosenPairs
from bayeslink.engines.spark import sending
from bayeslink.engines.spark.sending import Sender, loads
from bayeslink.engines.swapping import SwappedNames
from bayeslink.engines.swaps import Swaps
from bayeslink.errors import InputError, TooManyPairsError
from bayeslink.pairs.candidates import Candidates, Lists
from bayeslink.pairs.source import Files, Pairs, PairSource, sum_weights
from tests import oracles


def ruled(field):
    """The field with all of its levels, however few pairs have them."""
    return replace(field, options={**field.options, "join": False})


NAMES = ["ann", "anna", "hanna", "bob", "bobby", "li", "lee", None, ""]
CODES = ["1", "2", "3", None]
FIELDS = [
    levenshtein("name"),
    levenshtein("other", cuts=(0, 0.4)),
    levenshtein("third", cuts=(0, 0.2, 0.4, 0.6, 0.8)),
    exact("code"),
    exact("number"),
    exact("zone", name="zone_field"),
    ruled(name("name", name="as_name", bands=None)),
    ruled(identifier("other", name="as_number")),
]
COLUMNS = {
    "name": NAMES,
    "other": NAMES,
    "third": NAMES,
    "code": CODES,
    "number": CODES,
    "zone": ["x", "y", None],
}
SEVERAL = "several files"  # in one, some of them without duplicates
BLOCKS = [(), (), ("zone",), ("zone", "code")]


def local(problem, threads=2):
    a, b = problem.records()
    pairs = LocalPairs(a, b, problem.fields, [exact(k) for k in problem.block], workers=threads)
    return pairs if problem.files is None else of_files(pairs, problem.files)


def listed(problem, threads=2):
    """The same problem through two loops and a list, shuffled."""
    found = problem.pairs()
    order = np.random.default_rng(len(found)).permutation(len(found))
    a, b = (np.array([p[side] for p in found], np.int32)[order] for side in (0, 1))
    if problem.one_file:  # each pair once, in either order
        turned = np.random.default_rng(len(found)).random(len(found)) < 0.5
        a, b = np.where(turned, b, a), np.where(turned, a, b)
    pairs = Pairs(a, b, levels_of(found, problem.fields)[order])
    n_files = 1 if problem.one_file else 2
    return ListedPairs(
        problem.fields,
        pairs,
        tuple([f"{side}{i}" for i in range(len(rows))] for side, rows in problem.sides())[:n_files],
        blocks=problem.blocks()[:n_files],
        cells=tuple(
            {f.name: [r[f.columns[0][0]] or None for r in rows] for f in problem.fields}
            for _, rows in problem.sides()
        )[:n_files],
        one_file=problem.one_file,
        files=problem.files,
    )


class Others:
    """Who does the work elsewhere, in this process: it goes through bytes, there and back."""

    threads, records = 1, 5

    def __init__(self, folder):
        self.sender, self.folder, self.jobs = Sender(Parcel), folder, 0

    def run(self, work, pieces, seconds):
        self.jobs += 1
        text, parcels = self.sender.dumps(work)
        work = loads(text, parcels, self.folder, tuple(self.sender.gone))
        return iter([pickle.loads(pickle.dumps(work(*piece))) for piece in pieces])


class Parcel:
    def __init__(self, value):
        self.value = value


def sent(problem, threads=2):
    """The local engine with all of its work sent to others, B in pieces of five records."""
    a, b = problem.records()
    others = Others(FOLDER.name)
    pairs = LocalPairs(a, b, problem.fields, [exact(k) for k in problem.block], workers=others)
    return pairs if problem.files is None else of_files(pairs, problem.files)


FOLDER = tempfile.TemporaryDirectory()
ENGINES = [
    pytest.param(local, id="local"),
    pytest.param(listed, id="listed"),
    pytest.param(sent, id="sent"),
]


@pytest.fixture(autouse=True)
def _everything_is_sent(monkeypatch):
    monkeypatch.setattr(work_threads, "_WORTH", 0.0)
    monkeypatch.setattr(sending, "_LARGE", 64)


def n_levels_made(field):
    """How many levels above 1 the table of a field would have."""
    if ladder := field.options.get("ladder"):
        return max(max(levels) for levels in ladder.levels) - 1
    return len(field.cuts)


@pytest.fixture(params=["as it comes", "as if large", "in pieces", "open levels", "equal values"])
def size(request, monkeypatch):
    """Small problems as they are, mostly by looking at every pair, and as large ones are treated.

    That is with joins whatever they cost, in many pieces of work, and with only the commonest sets
    of missing fields and a few states of the knapsack told apart; with B in pieces; with tables
    that have only the best levels, or only equal values.
    """
    if request.param in ("open levels", "equal values"):
        affordable = 2 if request.param == "open levels" else 0
        monkeypatch.setattr(dictionaries, "MAX_SECONDS", affordable)
        monkeypatch.setattr(dictionaries, "table_seconds", lambda field, x, y: n_levels_made(field))
    if request.param != "as it comes":
        monkeypatch.setattr(arrays, "_SCANNED", 0.0)
        monkeypatch.setattr(search, "_SCAN_FROM", np.inf)
        monkeypatch.setattr(search, "_MAX_STATES", 8)
        monkeypatch.setattr(work, "_PIECE", 1.0)
        monkeypatch.setattr(missing, "_ALL_CLASSES", 4)
        monkeypatch.setattr(missing, "_MAX_CLASSES", 3)
    if request.param == "in pieces":
        monkeypatch.setattr(joining, "records_at_a_time", lambda tables, threads: 3)


# --- what a source says of itself ---------------------------------------------------------------


def chosen(problem, threads=2):
    """Some of the pairs, as another tool's blocking rules leave them."""
    found = problem.pairs()[::2]
    a, b = (np.array([p[side] for p in found], np.int32) for side in (0, 1))
    ids = tuple([f"{side}{i}" for i in range(len(rows))] for side, rows in problem.sides())
    u = [[1.0] * f.n_levels for f in problem.fields]
    return ChosenPairs(problem.fields, Pairs(a, b, levels_of(found, problem.fields)), ids, u=u)


def saved(problem, threads=2):
    """A run that was saved and opened again."""
    rows = [[{"id": f"{side}{i}", **row} for i, row in enumerate(r)] for side, r in problem.sides()]
    run = bl.link(*map(pa.Table.from_pylist, rows), problem.fields, point=True)
    with tempfile.TemporaryDirectory() as folder:
        run.save(f"{folder}/run")
        opened = bl.open_run(f"{folder}/run")
        return opened.pairs


MORE = [pytest.param(chosen, id="chosen"), pytest.param(saved, id="saved")]


@pytest.mark.parametrize("engine", [*ENGINES, *MORE])
def test_a_source_says_who_works_and_what_may_link(engine):
    source = swapped_problem().source(engine)
    assert isinstance(source, PairSource)
    assert work_threads.threads_of(source.workers) >= 1
    assert isinstance(source.workers, Others if engine is sent else int)
    assert (source.memory is None) == (engine in (listed, chosen, saved))
    assert source.closed == (engine is chosen)
    assert not source.remote
    assert source.describe().names == ("a", "b")


@pytest.mark.parametrize("engine", ENGINES)
def test_swapped_names_are_found_over_any_source(engine):
    """The same levels, counts and lists; and what the source says of itself goes through."""
    problem = swapped_problem()
    swaps = Swaps.of(local(problem))
    inner = problem.source(engine)
    plain, source = (SwappedNames(each, swaps) for each in (local(problem), inner))
    assert source.n_exceptions == plain.n_exceptions >= 10
    assert isinstance(source, PairSource)
    assert (source.workers, source.memory) == (inner.workers, inner.memory)
    assert (source.closed, source.remote) == (inner.closed, inner.remote)
    np.testing.assert_array_equal(source.level_counts().counts, plain.level_counts().counts)
    vectors = [{*zip(map(tuple, p.levels.tolist()), p.counts.tolist(), strict=True)}
               for p in (source.pattern_counts(), plain.pattern_counts())]  # fmt: skip
    assert vectors[0] == vectors[1]
    rng = np.random.default_rng(8)
    for _ in range(20):
        weights = random_weights(rng, source.fields)
        threshold = float(rng.uniform(-8, 14))
        found, expected = (s.pairs_above(weights, threshold) for s in (source, plain))
        for part in ("a", "b", "levels"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    ids = [("A0", "B0"), ("A7", "B7")]
    np.testing.assert_array_equal(source.find(ids).levels, plain.find(ids).levels)


def swapped_problem():
    """Two files of the same people, of whom every third has the names swapped in B."""
    rng, first, last = np.random.default_rng(5), ["ann", "bob", "cleo"], ["maier", "huber", "li"]
    people = [
        {"name": str(rng.choice(first)) + str(k), "other": str(rng.choice(last)) + str(k),
         "code": str(rng.integers(3))} for k in range(40)
    ]  # fmt: skip
    turned = [
        {**p, "name": p["other"], "other": p["name"]} if k % 3 == 0 else p
        for k, p in enumerate(people)
    ]
    return Problem(people, turned, [levenshtein("name"), levenshtein("other"), exact("code")], ())


# --- random problems --------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    rows_a: list
    rows_b: list
    fields: list
    block: tuple
    names: tuple = ("A", "B")  # begin the ids
    one_file: bool = False  # the rows of A alone count
    files: Files | None = None  # several that stand together in the one

    def records(self):
        a, b = (oracles.records(rows, side=name) for name, rows in self.sides())
        return a, None if self.one_file else b

    def of_rows(self, expected, rows):
        """Those of the pairs that are of chosen records."""
        sides = (0, 1) if self.one_file else (0,)
        return [pair for pair in expected if any(pair[side] in rows for side in sides)]

    def source(self, engine, **how):
        return engine(self, **how)

    def sides(self):
        return (self.names[0], self.rows_a), (self.names[1], self.rows_b)

    def blocks(self):
        """Block of the blocking key of each record, -1 where part of the key is missing."""
        keys = [
            [tuple(row[k] for k in self.block) if all(row[k] for k in self.block) else None
             for row in rows]
            for _, rows in self.sides()
        ]  # fmt: skip
        number = {key: i for i, key in enumerate(sorted({*keys[0], *keys[1]} - {None}))}
        return tuple(np.array([number.get(key, -1) for key in side]) for side in keys)

    def swapped(self):
        return Problem(self.rows_b, self.rows_a, self.fields, self.block, self.names[::-1])

    def pairs(self):
        """All pairs in scope and their levels, by two loops."""
        found = list(oracles.all_pairs(self.fields, self.rows_a, self.rows_b, self.block))
        if self.one_file:
            found = [pair for pair in found if pair[0] < pair[1]]
        if self.files is not None:
            of, clean = self.files.of, self.files.clean
            found = [p for p in found if of[p[0]] != of[p[1]] or of[p[0]] not in clean]
        return found


def random_problem(rng, one_file=False):
    """Two files, or one, with duplicates and missing values."""
    gone = rng.choice([0.0, 0.1, 0.5])
    pool = [
        {c: None if rng.random() < gone else rng.choice(v) for c, v in COLUMNS.items()}
        for _ in range(rng.integers(1, 25))
    ]
    rows_a, rows_b = (
        [pool[i] for i in rng.integers(0, len(pool), n)] for n in rng.integers(1, 13, 2)
    )
    fields = [FIELDS[i] for i in rng.permutation(len(FIELDS))[: rng.integers(1, len(FIELDS) + 1)]]
    block = BLOCKS[rng.integers(len(BLOCKS))]
    if one_file:
        rows_a = [*rows_a, *rows_b]
        files = None
        if one_file == SEVERAL:
            clean = tuple(np.flatnonzero(rng.random(3) < 0.6).tolist())
            files = Files(("x", "y", "z"), rng.integers(0, 3, len(rows_a)), clean)
        return Problem(rows_a, rows_a, fields, block, ("A", "A"), True, files)
    return Problem(rows_a, rows_b, fields, block)


@pytest.fixture(params=[False, True, SEVERAL], ids=["two files", "one file", SEVERAL])
def one_file(request):
    return request.param


def random_weights(rng, fields):
    shape = len(fields), max(f.n_levels for f in fields) + 1
    weights = rng.uniform(-6, 6, shape)
    kind = rng.integers(5)
    if kind <= 1:  # as a fit has them: missing 0, rising with the level
        weights = np.sort(weights, axis=1)
        weights[:, 0] = 0
    elif kind == 2:  # inverted: agreement speaks against a link
        weights = -np.sort(-weights, axis=1)
    elif kind == 3:  # sums that tie
        weights = rng.integers(-2, 4, shape).astype(float)
    if rng.random() < 0.05:
        weights[rng.integers(shape[0]), rng.integers(shape[1])] = -np.inf
    return weights


def random_threshold(rng, sums):
    """Any threshold, or one that a pair just fails to exceed, or none at all."""
    kind = rng.integers(20)
    if kind == 0:
        return float(rng.choice([-np.inf, np.inf]))
    return float(rng.choice(sums) if kind < 10 and len(sums) else rng.uniform(-8, 14))


def levels_of(pairs, fields):
    return np.array([levels for _, _, levels in pairs], np.uint8).reshape(-1, len(fields))


def check_counts(source, fields, expected):
    assert source.n_pairs == len(expected)
    patterns = source.pattern_counts()
    found = zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True)
    assert patterns.exact
    assert dict(found) == dict(Counter(levels for _, _, levels in expected))
    counts = source.level_counts().counts
    assert source.level_counts().exact
    for j in range(len(fields)):
        by_hand = Counter(levels[j] for _, _, levels in expected)
        assert counts[j].tolist() == [by_hand[h] for h in range(counts.shape[1])]


def check_search(source, weights, threshold, expected, sums):
    pairs = source.pairs_above(weights, threshold)
    listed = list(
        zip(pairs.a.tolist(), pairs.b.tolist(), map(tuple, pairs.levels.tolist()), strict=True)
    )
    assert listed == [p for p, above in zip(expected, sums > threshold, strict=True) if above]


def check_problems(engine, rng, n, one_file, searches=5):
    for _ in range(n):
        problem = random_problem(rng, one_file)
        source, expected = problem.source(engine), problem.pairs()
        check_counts(source, problem.fields, expected)
        for _ in range(searches):
            weights = random_weights(rng, problem.fields)
            sums = sum_weights(weights, levels_of(expected, problem.fields))
            check_search(source, weights, random_threshold(rng, sums), expected, sums)


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_and_listed_pairs_equal_two_loops(engine, size, one_file):
    check_problems(engine, np.random.default_rng(1), 30 if engine is sent else 150, one_file)


@pytest.mark.verify
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2, 12))
def test_thousands_of_problems_equal_two_loops(engine, size, seed, one_file):
    check_problems(engine, np.random.default_rng(seed), 400, one_file)


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_make_no_difference(engine, size, one_file):
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = random_problem(rng, one_file)
        one, two = (problem.source(engine, threads=t) for t in (1, 2))
        weights, threshold = random_weights(rng, problem.fields), float(rng.uniform(-5, 5))
        x, y = (s.pairs_above(weights, threshold) for s in (one, two))
        for left, right in ((x.a, y.a), (x.b, y.b), (x.levels, y.levels)):
            assert left.tobytes() == right.tobytes()
        p, q = one.pattern_counts(), two.pattern_counts()
        assert p.levels.tobytes() == q.levels.tobytes()
        assert p.counts.tobytes() == q.counts.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_more_patterns_than_fit_an_array(engine):
    rng = np.random.default_rng(4)
    rows = [
        {f"c{k}": str(rng.choice(["ab", "abcd", "abcdef"])) for k in range(12)} for _ in range(9)
    ]
    fields = [levenshtein(f"c{k}", cuts=(0, 0.3, 0.5, 0.7)) for k in range(12)]
    assert np.prod([f.n_levels + 1.0 for f in fields]) > 2**30
    problem = Problem(rows[:5], rows[5:], fields, ())
    check_counts(problem.source(engine), fields, problem.pairs())


# --- counts of chosen fields and records --------------------------------------------------------


def check_joint(patterns, expected, which):
    found = zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True)
    assert dict(found) == dict(Counter(tuple(levels[j] for j in which) for *_, levels in expected))


@pytest.mark.parametrize("engine", ENGINES)
def test_two_way_counts_equal_two_loops(engine, size, one_file):
    rng = np.random.default_rng(6)
    for _ in range(60):
        problem = random_problem(rng, one_file)
        source, expected = problem.source(engine), problem.pairs()
        k = int(rng.integers(1, len(problem.fields) + 1))
        which = rng.permutation(len(problem.fields))[: min(k, 3)].tolist()
        check_joint(source.pattern_counts(which), expected, which)
        rows = rng.permutation(len(problem.rows_a))[: rng.integers(1, 6)]
        of_rows = problem.of_rows(expected, rows)
        check_joint(source.pattern_counts(which, rows), of_rows, which)
        check_joint(source.pattern_counts(rows=rows), of_rows, range(len(problem.fields)))


def test_counts_of_a_sample_of_records_add_up_and_come_near(monkeypatch):
    rng = np.random.default_rng(7)
    rows = [
        {"name": str(rng.choice(["ann", "anna", "bob", "li"])), "code": str(rng.integers(4))}
        for _ in range(4000)
    ]
    problem = Problem(rows[:3000], rows[3000:], [levenshtein("name"), exact("code")], ())
    source = local(problem)
    whole = source.pattern_counts([1])
    monkeypatch.setattr(counts, "MAX_VISITS", 0)
    monkeypatch.setattr(counts, "MAX_OF_RECORDS", 200_000)
    part = local(problem).pattern_counts([1])
    assert part.sampled <= 200_000 < part.counts.sum() == whole.counts.sum()
    away = np.abs(part.counts - whole.counts) / np.maximum(part.standard_errors, 1)
    assert (part.counts != whole.counts).any()
    assert away.max() < 5


# --- records by id and row ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_a_pair_source(engine, one_file):
    source = random_problem(np.random.default_rng(0), one_file).source(engine)
    assert isinstance(source, PairSource)
    assert source.one_file == bool(one_file)
    described = source.describe()
    assert described.engine in ("local", "listed")
    sizes = [source.n_a, source.n_b]
    assert [i["records"] for i in described.inputs] == sizes[: 1 if one_file else 2]
    assert not one_file or len({*sizes}) == 1
    assert len(described.fields) == len(source.fields)


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_are_found_by_their_ids(engine, size, one_file):
    rng = np.random.default_rng(8)
    for _ in range(40):
        problem = random_problem(rng, one_file)
        source, expected = problem.source(engine), problem.pairs()
        if not expected:
            continue
        some = [expected[i] for i in rng.integers(0, len(expected), 5)]
        x, y = problem.names
        named = [(f"{x}{a}", f"{y}{b}") for a, b, _ in some]
        found = source.find([pair[::-1] for pair in named] if one_file else named)
        assert found.levels.tolist() == [list(levels) for *_, levels in some]
        assert source.ids(0, found.a).to_pylist() == [f"{x}{a}" for a, *_ in some]
        assert source.ids(1, found.b).to_pylist() == [f"{y}{b}" for _, b, _ in some]
        assert source.levels_of(found.a, found.b).tolist() == found.levels.tolist()
        if one_file:
            assert source.levels_of(found.b, found.a).tolist() == found.levels.tolist()
        for side, rows in enumerate((found.a, found.b)):
            cells = source.cells(side, rows.tolist())
            held = problem.sides()[side][1]
            for row, cell in zip(rows.tolist(), cells, strict=True):
                names = {f.name: held[row][f.columns[side][0]] or None for f in problem.fields}
                assert cell == names


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_that_are_not_there_are_refused(engine):
    rows = [{"name": "ann", "zone": z} for z in ("x", "y", None)]
    source = Problem(rows, rows, [levenshtein("name")], ("zone",)).source(engine)
    for pairs, why in (
        ([("A0", "B9")], "1 ids named in pairs are not in "),
        ([("A0", "B1")], "outside the blocking key's scope"),
        ([("A2", "B2")], "outside the blocking key's scope"),
    ):
        with pytest.raises(InputError, match=why):
            source.find(pairs)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_record_with_itself_is_refused(engine):
    rows = [{"name": "ann"}, {"name": "bob"}]
    source = Problem(rows, rows, [levenshtein("name")], (), ("A", "A"), True).source(engine)
    with pytest.raises(InputError, match="a record with itself"):
        source.find([("A0", "A1"), ("A1", "A1")])


@pytest.mark.parametrize("engine", ENGINES)
def test_both_sides_of_one_file_have_the_same_tie_keys(engine):
    problem = random_problem(np.random.default_rng(9), one_file=True)
    keys = problem.source(engine).tie_keys
    assert keys[0].tolist() == keys[1].tolist()
    assert len(set(keys[0].tolist())) == len(problem.rows_a)


@pytest.mark.parametrize("engine", ENGINES)
def test_tie_keys_do_not_hang_on_which_file_is_called_a(engine):
    rng = np.random.default_rng(9)
    for _ in range(20):
        problem = random_problem(rng)
        source, other = problem.source(engine), problem.swapped().source(engine)
        assert len(set(np.concatenate(source.tie_keys).tolist())) == source.n_a + source.n_b
        assert source.tie_keys[0].tolist() == other.tie_keys[1].tolist()
        assert source.tie_keys[1].tolist() == other.tie_keys[0].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_tie_keys_hang_on_nothing_but_the_id_and_the_file(engine):
    problem = random_problem(np.random.default_rng(11))
    more = replace(problem, rows_a=[*problem.rows_a, *problem.rows_a])
    few, many = problem.source(engine).tie_keys[0], more.source(engine).tie_keys[0]
    first = few.tolist() == many[: len(few)].tolist()
    assert first or len(problem.rows_a) <= len(problem.rows_b) < len(more.rows_a)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scope_is_what_may_link(engine):
    rng = np.random.default_rng(10)
    for _ in range(30):
        problem = random_problem(rng)
        source, blocks = problem.source(engine), problem.blocks()
        expected = sorted(
            (int((blocks[0] == k).sum()), int((blocks[1] == k).sum()))
            for k in {*blocks[0].tolist(), *blocks[1].tolist()} - {-1}
        )
        sizes = zip(source.scope.sizes_a.tolist(), source.scope.sizes_b.tolist(), strict=True)
        assert sorted(sizes) == expected
        assert source.scope.n_pairs == source.n_pairs == len(problem.pairs())
        assert source.scope.max_links == sum(min(pair) for pair in expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scope_of_one_file_is_its_pairs(engine):
    rng = np.random.default_rng(10)
    for _ in range(30):
        problem = random_problem(rng, one_file=True)
        source, blocks = problem.source(engine), problem.blocks()[0]
        sizes = sorted(int((blocks == k).sum()) for k in {*blocks.tolist()} - {-1})
        assert sorted(source.scope.sizes_a.tolist()) == sizes
        assert source.scope.sizes_a.tolist() == source.scope.sizes_b.tolist()
        assert source.scope.n_pairs == source.n_pairs == len(problem.pairs())
        assert source.scope.max_links == sum(sizes) - len(sizes)


@pytest.mark.parametrize("engine", ENGINES)
def test_too_long_a_list_is_refused(engine, monkeypatch, one_file):
    rows = [{"name": "ann", "zone": "x"} for _ in range(40)]
    names = ("A", "A") if one_file else ("A", "B")
    source = Problem(rows, rows, [levenshtein("name")], (), names, bool(one_file)).source(engine)
    if engine is listed:
        source._most = 100
    else:
        monkeypatch.setattr(joining, "MAX_LISTED", 100)
    weights = np.array([[0, -1, 0, 1, 2]], float)
    with pytest.raises(TooManyPairsError):
        source.pairs_above(weights, 1.0)
    assert len(source.pairs_above(weights, 2.0)) == 0


def test_a_list_that_is_not_the_scope_is_refused():
    pairs = Pairs(np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones((1, 1), np.uint8))
    with pytest.raises(InputError, match="1 pairs are listed and 2 are in scope"):
        ListedPairs([exact("x")], pairs, (["a"], ["b", "c"]))


# --- reuse ------------------------------------------------------------------------------------


class Additive:
    """Weights that add up over fields."""

    def __init__(self, weights):
        self.bound = weights

    def bound_above(self, threshold, counts):
        return self.bound

    def weight_of(self, levels):
        return sum_weights(self.bound, levels)


@pytest.mark.parametrize("engine", ENGINES)
def test_reused_candidates_miss_nothing(engine, one_file):
    rng = np.random.default_rng(5)
    for _ in range(60):
        problem = random_problem(rng, one_file)
        source = problem.source(engine)
        weights, threshold = random_weights(rng, problem.fields), float(rng.uniform(-8, 12))
        weights[np.isneginf(weights)] = -6
        candidates = Candidates(source, slack=1.0), Lists(source, lambda *_: 0.0)
        for _ in range(4):
            weights = weights + rng.uniform(-0.5, 0.5) * np.sign(weights)
            threshold += rng.uniform(-1, 1)
            fresh = source.pairs_above(weights, threshold)
            for kept in candidates:
                pairs, w = kept.above(Additive(weights), threshold)
                assert (pairs.a.tolist(), pairs.b.tolist()) == (fresh.a.tolist(), fresh.b.tolist())
                assert (w > threshold).all()


def test_candidates_are_really_reused():
    rng = np.random.default_rng(0)
    rows = [
        {"name": str(rng.choice(["ann", "bob", "li"])), "code": str(rng.integers(9))}
        for _ in range(60)
    ]
    fields = [levenshtein("name"), exact("code")]
    source = local(Problem(rows[:30], rows[30:], fields, ()))
    weights = np.array([[0, -3, -1, 1, 3], [0, -2, 2, 0, 0]], float)
    candidates = Candidates(source, slack=2.0)
    for shift in (0, 0.2, 0.4, -0.3):
        candidates.above(Additive(weights + 0.1 * shift), 1.0)
    assert candidates.searches == 1
    candidates.above(Additive(weights), -3.0)
    assert candidates.searches == 2


@pytest.mark.parametrize(("room", "searches"), [(20_000_000, 2), (0, 3)])
def test_an_earlier_list_serves_again(room, searches, monkeypatch):
    monkeypatch.setattr("bayeslink.pairs.candidates._KEPT", room)
    rng = np.random.default_rng(0)
    rows = [
        {"name": str(rng.choice(["ann", "bob", "li"])), "code": str(rng.integers(9))}
        for _ in range(60)
    ]
    source = local(Problem(rows[:30], rows[30:], [levenshtein("name"), exact("code")], ()))
    search, asked = source.pairs_above, []
    monkeypatch.setattr(source, "pairs_above", lambda *given: asked.append(1) or search(*given))
    weights = np.array([[0, -3, -1, 1, 3], [0, -2, 2, 0, 0]], float)
    lists = Lists(source, lambda *_: 0.0)
    for sign in (1, -1, 1):
        lists.above(Additive(sign * weights), 1.0)
    assert len(asked) == searches


@pytest.mark.parametrize("engine", ENGINES)
def test_two_records_of_a_file_without_duplicates_are_no_pair(engine):
    rows = [{"name": f"ann{k}"} for k in range(6)]
    files = Files(("census", "survey"), np.array([0, 0, 0, 1, 1, 1]), (0,))
    problem = Problem(rows, rows, [levenshtein("name")], (), ("A", "A"), True, files)
    source = problem.source(engine)
    assert source.n_pairs == 12
    assert source.files == files
    assert len(source.find([("A0", "A3"), ("A3", "A4")])) == 2
    with pytest.raises(InputError, match="two records of census, where nobody is twice"):
        source.find([("A0", "A1"), ("A0", "A3")])
    assert "census, survey" in repr(source)
