"""Deliberate bugs, each put into a copy of the package, each caught by the check named with it.

A check that passes on the right code says little until it has been seen to fail on the wrong one.
A bug names a function, in whichever module that is, and a piece of its code that must be there
once, in whatever layout. Where the code has changed so that it is not,
`test_every_bug_can_be_planted` says so.
"""

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from numba.core.caching import UserProvidedCacheLocator

import bayeslink
from bayeslink import kernels

SOURCE = Path(bayeslink.__file__).parent
ROOT = Path(__file__).parents[2]

MOVES = "tests/exact/test_moves.py::"
BALANCED = MOVES + "test_the_balanced_move_is_reversible[overlap-small_problems-200]"
UNDONE = MOVES + "test_every_move_can_be_undone[overlap-small_problems-200]"
ROW = MOVES + "test_the_draw_of_a_row_is_its_conditional[overlap-small_problems-200]"
JOINT = MOVES + "test_the_joint_draw_of_a_block_is_its_conditional[overlap-small_problems-200]"
SINGLE = MOVES + "test_the_draw_of_a_single_pair_is_its_conditional[overlap]"
LISTED = MOVES + "test_listed_matchings_are_all_there_are[penalty-small_problems-200]"
SWEEPS = MOVES + "test_sweeps_do_what_the_plain_version_does[overlap]"
POSTERIOR = MOVES + "test_the_sampler_draws_from_the_exact_posterior"  # [prior-blocked-listed]
ALL_PAIRS = "tests/statistical/test_all_pairs.py::test_the_posterior_is_that_of_all_pairs"
STREAMS = "tests/exact/test_random.py::test_no_two_keys_share_a_stream"
FOREST = "tests/exact/test_forests.py::"
PARTITIONS = FOREST + "test_the_sampler_draws_from_every_partition_as_often_as_it_should"
OF_FILES = FOREST + "test_the_sampler_draws_from_every_partition_of_several_files"
FOREST_SWEEPS = FOREST + "test_sweeps_do_what_the_plain_version_does"
GAMMA = "tests/exact/test_random.py::test_logs_of_gamma_numbers[0.3]"
TABLE_1 = "tests/paper/test_table1.py::test_penalized_column_from_the_printed_counts"


@dataclass(frozen=True)
class Bug:
    check: str
    function: str
    edits: tuple[tuple[str, str], ...]  # right code, wrong code; `...` is any body


def bug(check, function, *texts):
    return Bug(check, function, tuple(zip(texts[::2], texts[1::2], strict=True)))


BUGS = {
    # --- the prior on C
    "prior with the wrong sign": bug(
        POSTERIOR + "[penalty-False-250]",
        "_prior_table", "-np.diff(log_prior)", "np.diff(log_prior)",
    ),
    "overlap prior over A × B, not the pairs in scope": bug(
        POSTERIOR + "[overlap-True-250]",
        "Overlap.on", "MatchingCounts(scope)",
        "MatchingCounts("
        "Scope(scope.sizes_a.sum(keepdims=True), scope.sizes_b.sum(keepdims=True)))",
    ),
    "known links not among the number of links": bug(
        POSTERIOR + "[overlap-False-250]",
        "MatchingChain.__init__", "int(linked.sum()) + layout.n_known", "int(linked.sum())",
    ),
    "cost of the wrong link: single pair": bug(
        SINGLE,
        "sweep_singles", "weight + step_cost[n_links]", "weight + step_cost[n_links + 1]",
    ),
    "cost of the wrong link: joint draw": bug(
        JOINT,
        "joint_weights", "weight /= step_cost[n_rest + set_size[s] - 1]",
        "weight /= step_cost[n_rest + set_size[s]]",
    ),
    "cost of the wrong link: row": bug(
        ROW,
        "row_chances", "step_cost[n_rest]", "step_cost[n_rest + 1]",
    ),
    "cost of the wrong link: balanced move": bug(
        BALANCED,
        "row_weights", "np.sqrt(step_cost[n_links - 1])", "np.sqrt(step_cost[n_links])",
    ),
    # --- moves
    "no Hastings correction": bug(
        BALANCED,
        "balanced_move", "accept * there < here", "accept < 2.0",
    ),
    "moves redrawn until one adds or drops a link": bug(
        SWEEPS,
        "make_moves", "for _ in range((high - low + 3) // 4): ...",
        "before = n_links\nwhile n_links == before: ...",
    ),
    "number of links not restored after a rejection": bug(
        BALANCED,
        "balanced_move",
        "make_move(undo, row_start, edge_row, edge_column, of_row, of_column)",
        "make_move(undo, row_start, edge_row, edge_column, of_row, of_column)\n"
        "n_links += change",
    ),
    "switch not undone after a rejection": bug(
        BALANCED,
        "balanced_move", "undo = current", "undo = e",
    ),
    "wrong row of the way back": bug(
        BALANCED,
        "make_move", "back = edge_row[other]", "back = row",
    ),
    "double switch leaves half of the left-over pair": bug(
        UNDONE,
        "make_move", "of_column[edge_column[current]] = left", "pass",
    ),
    "double switch weighted without the left-over pair": bug(
        BALANCED,
        "row_weights", "weight *= root[edge_pattern[left]] / before", "weight /= before",
    ),
    "row barred from the column it has": bug(
        POSTERIOR + "[penalty-False-1]",
        "draw_row", "of_column[edge_column[e]] = -1", "pass",
        "so_far = 1.0", "so_far = 1.0\nif e >= 0:\n    of_column[edge_column[e]] = -1",
    ),
    "two links of one record in a listed matching": bug(
        LISTED,
        "fill_matchings", "used_rows[s] & row == 0 and used_columns[s] & column == 0",
        "used_rows[s] & row == 0",
    ),
    # --- m and u
    "u from the candidate pairs only": bug(
        POSTERIOR + "[penalty-False-250]",
        "kernel_model", "at_least(counts, sum(of_listed[1:], of_listed[0]))",
        "sum(of_listed[1:], of_listed[0])",
    ),
    # Where all blocks are drawn jointly this one leaves both marginals right, of C and of m and u:
    # C and the m and u of every other sweep form a correct chain of their own.
    "m and u from the links of the sweep before": bug(
        SWEEPS,
        "run_sweeps", "counts = np.empty(n_patterns, np.int64)",
        "counts = known.copy()\n"
        "for e in range(len(links.linked)):\n"
        "    counts[graph.edge_pattern[e]] += links.linked[e]",
        "weigh(model, vectors, state, room, odds, root)",
        "weigh(model, vectors, state, room, odds, root)\nstale = counts.copy()",
        "count_by_level(vectors, counts, room.levels)",
        "count_by_level(vectors, stale, room.levels)",
        "draw_parameters(model, vectors, counts, room.levels, room, key, rng, state)",
        "draw_parameters(model, vectors, stale, room.levels, room, key, rng, state)",
    ),
    "α − 1 in the draws of m": bug(
        POSTERIOR + "[penalty-False-250]",
        "draw_parameters", "model.alpha_m[j, h]", "max(model.alpha_m[j, h] - 1.0, 0.01)",
    ),
    "α instead of α − 1 in the penalized likelihood": bug(
        TABLE_1,
        "Priors.pseudo_m", "self.alpha_m - 1", "self.alpha_m",
    ),
    "known links not among the counts": bug(
        POSTERIOR + "[penalty-False-250]",
        "count_links", "known[g]", "0",
    ),
    "missing counted as disagreement": bug(
        POSTERIOR + "[penalty-False-250]",
        "count_by_level", "vectors.levels[g, j]", "max(1, vectors.levels[g, j])",
    ),
    "missing weighted as disagreement": bug(
        POSTERIOR + "[penalty-False-250]",
        "weigh", "vectors.levels[g, j]", "max(1, vectors.levels[g, j])",
    ),
    # --- complete and incomplete links
    "the law of all links does not hear of incomplete ones": bug(
        ALL_PAIRS + "[all-tied-overlap]",
        "draw_h", "shape[0, t] += 1.0", "shape[0, t] += 0.0",
    ),
    "rows of incomplete links are not tied": bug(
        ALL_PAIRS + "[all-tied-overlap]",
        "draw_h", "shape[a, e] += model.tie * expected_h(model, a, e, log_h)", "pass",
    ),
    # --- links of pairs that no sweep visits
    "births weighed by the links there are, not one more": bug(
        ALL_PAIRS + "[some-independent-overlap]",
        "move_low", "accept * (n + 1)", "accept * n",
    ),
    "deaths at the cost of one more link": bug(
        ALL_PAIRS + "[low-independent-overlap]",
        "move_low", "n * step_cost[n_links - 1]", "n * step_cost[n_links]",
    ),
    "candidates of a taken record are not barred": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "hold", "edge_pattern[records.edges[k]] = BARRED", "pass",
    ),
    "records in a swept link taken for free": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "both_free", "linked[edges[k]]", "False",
    ),
    "pairs freed though the other end is taken": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "let_go", "records.taken[records.ends[e, 0]] or records.taken[records.ends[e, 1]]",
        "False",
    ),
    "proposals taken for uniform": bug(
        ALL_PAIRS + "[none-independent-penalty]",
        "FarPairs._q", "1.0 if field == ANY else levels[:, field] == level", "1.0",
    ),
    "listed pairs proposed as far ones too": bug(
        ALL_PAIRS + "[few-independent-penalty]",
        "FarPairs._open", "listed | self._closed[0][drawn.a]", "self._closed[0][drawn.a]",
    ),
    "links elsewhere do not inform m and u": bug(
        ALL_PAIRS + "[low-independent-penalty]",
        "count_links", "counts[links_low.links[k, 2]] += 1", "pass",
    ),
    # --- which fields are wrong, and which go together
    "which fields are wrong not normalised": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "weigh", "constants[vectors.seen_set[g], e]", "0.0",
    ),
    "h not by the number of fields missing": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "draw_error_law", "vectors.n_missing[g]", "0",
    ),
    "steps in log r always taken": bug(
        ALL_PAIRS + "[all-dependent-overlap]",
        "draw_error_law", "not np.log(1.0 - uniform(rng)) < after - before",
        "uniform(rng) < -1.0",
    ),
    "tree left out of the weights": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "weigh", "w -= vectors.fixed_log_u[g]", "pass",
    ),
    "u of dependent fields counted twice": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "weigh_levels", "model.free[j]", "True",
    ),
    # --- probabilities
    "expectations not normalised: joint draw": bug(
        POSTERIOR + "[penalty-False-250]",
        "edge_chances", "1.0 / total", "1.0",
    ),
    "expectations not normalised: row": bug(
        POSTERIOR + "[penalty-False-1]",
        "draw_row", "weights[e - first] / total", "weights[e - first]",
    ),
    # --- random numbers
    "chains share their streams": bug(
        STREAMS,
        "start_stream", "np.uint64(chain)", "np.uint64(0)",
    ),
    "sweeps share their streams": bug(
        STREAMS,
        "start_stream", "np.uint64(sweep)", "np.uint64(0)",
    ),
    "blocks share their streams": bug(
        STREAMS,
        "start_stream", "np.uint64(block)", "np.uint64(0)",
    ),
    "large blocks have the streams of listed ones": bug(
        SWEEPS,
        "sweep_blocks", "1 + n_joint + k", "1 + k",
    ),
    "gamma numbers of small shape without their boost": bug(
        GAMMA,
        "log_gamma_variate", "np.log(d * v) + boost", "np.log(d * v)",
    ),
    # --- forests of one file with duplicates
    "sizes that other people have do not count": bug(
        PARTITIONS + "[pointers]",
        "weight_joined", "weight *= forest.n_with[f, n + more] + prior.beta[f, n + more]",
        "weight *= prior.beta[f, n + more]",
    ),
    "roots of a part are all as good": bug(
        PARTITIONS + "[pointers, few copies of copies]",
        "root_weights", "power(log_rho, most - degree)", "1.0",
    ),
    "trees are not divided by their number": bug(
        PARTITIONS + "[tree]",
        "tabulate", "-np.log(k) - (k - 2) * np.log1p((k - 1) * rho)", "-np.log(k)",
    ),
    "births as if a pair had one direction": bug(
        PARTITIONS + "[none listed]",
        "try_birth", "2.0 * weight", "weight",
    ),
    "deaths chosen among one edge more": bug(
        PARTITIONS + "[none listed]",
        "try_death", "alone(roots, forest, prior, space) * n * q",
        "alone(roots, forest, prior, space) * (n + 1) * q",
    ),
    "records known to be one may part": bug(
        PARTITIONS + "[known]",
        "bar_trees", "may_leave = False", "may_leave = True",
    ),
    "records known to be two may meet": bug(
        PARTITIONS + "[known]",
        "move_part", "space.barred[to] == stamp and to != c", "space.barred[to] == -1",
    ),
    "another original by the wrong weights": bug(
        FOREST_SWEEPS + "[None-0.0-all]",
        "move_original", "w += log_odds[candidates.pattern[e]]",
        "w -= log_odds[candidates.pattern[e]]",
    ),
    "an edge turned round keeps the child's pattern": bug(
        FOREST_SWEEPS + "[None-0.2-all]",
        "make_root", "pattern, q, place = pattern_p, q_p, place_p", "q, place = q_p, place_p",
    ),
    "u from pairs within clusters too": bug(
        FOREST + "test_m_and_u_are_learned_where_people_have_two_records_at_most",
        "run_forest", "count_by_level(vectors, counts, held)", "held[:] = 0",
    ),
    "rho drawn without the number of trees": bug(
        FOREST + "test_rho_is_learned",
        "draw_rho", "forest.of_size[k] * (k - 2)", "0.0",
    ),
    "records known to be one are always joined by a candidate": bug(
        PARTITIONS + "[known, none listed]",
        "try_birth",
        "try_instead(a, b, pattern, q, accept, candidates, forest, prior, odds, space, rng)", "0",
    ),
    "an edge for another whatever the way back": bug(
        PARTITIONS + "[known, none listed]",
        "try_instead", "accept * (n + 1) * q * total", "accept * (n + 1) * q",
    ),
    "a person of one more file counts as one of as many": bug(
        OF_FILES + "[pointers-three files]",
        "weight_joined", "after != before", "after < 0",
    ),
    "a file joined by a person without its prior": bug(
        OF_FILES + "[pointers-two files with duplicates]",
        "new_in_file", "forest.n_in[f] + prior.totals[f]", "1.0",
    ),
    "a part hangs by a record of another block": bug(
        FOREST + "test_so_it_does_where_records_are_in_blocks[pointers-None]",
        "move_part", "first <= x < last", "True",
    ),
    "records change places whatever their pairs weigh": bug(
        OF_FILES + "[pointers-two clean files]",
        "change_places", "accept * back < np.exp(min(ratio, 500.0)) * n", "accept < 2.0",
    ),
}  # fmt: skip
QUICK = (
    "no Hastings correction",
    "overlap prior over A × B, not the pairs in scope",
    "u from the candidate pairs only",
)


def copy_package(folder):
    """The package as it is, with its compiled code, which serves unless a kernel is changed."""
    package = folder / "bayeslink"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    kept = kernels._folder()
    here, there = (  # Numba has a folder for each place a source is in
        UserProvidedCacheLocator.get_suitable_cache_subpath(path / "kernels" / "__init__.py")
        for path in (SOURCE, package)
    )
    copy = package / "kernels" / "__pycache__" / "bayeslink" / kept.name / there
    copy.mkdir(parents=True)
    for file in (kept / here).glob("*.nb?"):
        shutil.copy(file, copy)
    return package


class Replacement(ast.NodeTransformer):
    """Puts wrong code in place of the right, however that is laid out; counts how often."""

    def __init__(self, right, wrong):
        (self.right,), self.wrong = ast.parse(right).body, ast.parse(wrong).body
        if len(self.wrong) == 1 and all(isinstance(s, ast.Expr) for s in (self.right, *self.wrong)):
            self.right, self.wrong = self.right.value, self.wrong[0].value  # part of a statement
        self.times = 0

    def visit(self, node):
        if not self.is_right(node):
            return self.generic_visit(node)
        self.times += 1
        for statement in self.wrong if isinstance(self.wrong, list) else ():
            if is_any_body(statement):
                statement.body = node.body
        return self.wrong

    def is_right(self, node):
        if type(node) is not type(self.right):
            return False
        code, right = (ast.unparse(n).splitlines() for n in (node, self.right))
        return code[:1] == right[:1] if is_any_body(self.right) else code == right


def is_any_body(node):
    return ast.unparse(node).endswith(":\n    ...")


def functions(node, name=""):
    """The functions of a module or class, with their names: `function` or `Class.function`."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef):
            yield name + inner.name, inner
            yield from functions(inner, f"{name}{inner.name}.")


@cache
def named():
    """Each function's name, and the modules that have it."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        for name, _ in functions(ast.parse(path.read_text("utf-8"))):
            found.setdefault(name, []).append(path)
    return found


def planted(bug):
    """The module with a bug, and its wrong source. Its function may move to another module."""
    places = named().get(bug.function, [])
    assert len(places) == 1, f"{len(places)} functions of the name {bug.function}"
    tree = ast.parse(places[0].read_text("utf-8"))
    node = dict(functions(tree))[bug.function]
    for right, wrong in bug.edits:
        replacement = Replacement(right, wrong)
        replacement.visit(node)
        assert replacement.times == 1, f"{replacement.times} times in {bug.function}: {right}"
    return places[0].relative_to(SOURCE), ast.unparse(ast.fix_missing_locations(tree))


def run_checks(folder, *checks):
    """Run checks against the copy of the package in a folder: pytest's exit code and output."""
    code = (
        "import sys, pytest, bayeslink\n"
        "ours = bayeslink.__file__.startswith(sys.argv[1])\n"
        "sys.exit(pytest.main(sys.argv[2:]) if ours else 'not the copy')"
    )
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", ""]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(folder), "NUMBA_OPT": "1"}  # quicker to compile
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), *options, *checks],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.verify) for name in BUGS],
)
def test_a_bug_is_caught(name, tmp_path):
    module, wrong = planted(BUGS[name])
    (copy_package(tmp_path) / module).write_text(wrong, "utf-8")
    code, output = run_checks(tmp_path, BUGS[name].check)
    assert code == pytest.ExitCode.TESTS_FAILED, output[-3000:]
    assert "AssertionError" in output, output[-3000:]


@pytest.mark.full
@pytest.mark.parametrize(
    "names", [QUICK, pytest.param(tuple(BUGS), marks=pytest.mark.verify)], ids=["quick", "all"]
)
def test_the_copy_without_a_bug_passes(names, tmp_path):
    copy_package(tmp_path)
    code, output = run_checks(tmp_path, *sorted({BUGS[name].check for name in names}))
    assert code == pytest.ExitCode.OK, output[-3000:]


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_be_planted(name):
    planted(BUGS[name])
