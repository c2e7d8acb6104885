"""Deliberate bugs, each put into a copy of the package, each caught by the check named with it.

A check that passes on the right code says little until it has been seen to fail on the wrong one.
Bugs are replacements of source text that must occur exactly once in the package, in whichever
module: when the source has changed so that it does not, the gate says so instead of testing
nothing.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
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
GAMMA = "tests/exact/test_random.py::test_logs_of_gamma_numbers[0.3]"
TABLE_1 = "tests/paper/test_table1.py::test_penalized_column_from_the_printed_counts"


@dataclass(frozen=True)
class Bug:
    check: str
    replacements: tuple[tuple[str, str], ...]


def bug(check, *texts):
    return Bug(check, tuple(zip(texts[::2], texts[1::2], strict=True)))


BUGS = {
    # --- the prior on C
    "prior with the wrong sign": bug(
        POSTERIOR + "[penalty-False-250]",
        "np.clip(-np.diff(log_prior),", "np.clip(np.diff(log_prior),",
    ),
    "overlap prior over A × B, not the pairs in scope": bug(
        POSTERIOR + "[overlap-True-250]",
        "log_matchings = MatchingCounts(scope)",
        "log_matchings = MatchingCounts("
        "Scope(scope.sizes_a.sum(keepdims=True), scope.sizes_b.sum(keepdims=True)))",
    ),
    "known links not among the number of links": bug(
        POSTERIOR + "[overlap-False-250]",
        "int(linked.sum()) + layout.n_known", "int(linked.sum())",
    ),
    "cost of the wrong link: single pair": bug(
        SINGLE,
        "total = weight + step_cost[n_links]", "total = weight + step_cost[n_links + 1]",
    ),
    "cost of the wrong link: joint draw": bug(
        JOINT,
        "weight /= step_cost[n_rest + set_size[s] - 1]",
        "weight /= step_cost[n_rest + set_size[s]]",
    ),
    "cost of the wrong link: row": bug(
        ROW, "step_cost[n_rest]\n", "step_cost[n_rest + 1]\n",
    ),
    "cost of the wrong link: balanced move": bug(
        BALANCED,
        "np.sqrt(step_cost[n_links - 1])", "np.sqrt(step_cost[n_links])",
    ),
    # --- moves
    "no Hastings correction": bug(
        BALANCED, "if accept * there < here:", "if accept < 2.0:",
    ),
    "moves redrawn until one adds or drops a link": bug(
        SWEEPS,
        "    for _ in range((high - low + 3) // 4):\n",
        "    before = n_links\n    while n_links == before:\n",
    ),
    "number of links not restored after a rejection": bug(
        BALANCED,
        "    make_move(undo, row_start, edge_row, edge_column, of_row, of_column)\n"
        "    return n_links\n",
        "    make_move(undo, row_start, edge_row, edge_column, of_row, of_column)\n"
        "    return n_links + change\n",
    ),
    "switch not undone after a rejection": bug(
        BALANCED, "        undo = current\n", "        undo = e\n",
    ),
    "wrong row of the way back": bug(
        BALANCED, "back = edge_row[other]", "back = row",
    ),
    "double switch leaves half of the left-over pair": bug(
        UNDONE,
        "            of_column[edge_column[current]] = left\n", "",
    ),
    "double switch weighted without the left-over pair": bug(
        BALANCED,
        "weight *= root[edge_pattern[left]] / before", "weight /= before",
    ),
    "row barred from the column it has": bug(
        POSTERIOR + "[penalty-False-1]",
        "        of_column[edge_column[e]] = -1\n        n_links -= 1\n",
        "        n_links -= 1\n",
        "    so_far = 1.0\n",
        "    so_far = 1.0\n    if e >= 0:\n        of_column[edge_column[e]] = -1\n",
    ),
    "two links of one record in a listed matching": bug(
        LISTED, " and used_columns[s] & column == 0:", ":",
    ),
    # --- m and u
    "u from the candidate pairs only": bug(
        POSTERIOR + "[penalty-False-250]",
        "all_counts = at_least(counts, sum(of_listed[1:], of_listed[0]))",
        "all_counts = sum(of_listed[1:], of_listed[0])",
    ),
    # Where all blocks are drawn jointly this one leaves both marginals right, of C and of m and u:
    # C and the m and u of every other sweep form a correct chain of their own.
    "m and u from the links of the sweep before": bug(
        SWEEPS,
        "    counts = np.empty(n_patterns, np.int64)\n",
        "    counts = known.copy()\n"
        "    for e in range(len(links.linked)):\n"
        "        counts[graph.edge_pattern[e]] += links.linked[e]\n",
        "        n_links = sweep_blocks(\n",
        "        stale = counts.copy()\n        n_links = sweep_blocks(\n",
        "draw_parameters(model, vectors, counts, room, key, rng, state)\n        if",
        "draw_parameters(model, vectors, stale, room, key, rng, state)\n        if",
    ),
    "α − 1 in the draws of m": bug(
        POSTERIOR + "[penalty-False-250]",
        "model.alpha_m[j, h] + levels[j, h]\n",
        "max(model.alpha_m[j, h] - 1.0, 0.01) + levels[j, h]\n",
    ),
    "α instead of α − 1 in the penalized likelihood": bug(
        TABLE_1,
        "np.maximum(self.alpha_m - 1, MIN", "np.maximum(self.alpha_m, MIN",
    ),
    "known links not among the counts": bug(
        POSTERIOR + "[penalty-False-250]",
        "counts[g] = known[g]", "counts[g] = 0",
    ),
    "missing counted as disagreement": bug(
        POSTERIOR + "[penalty-False-250]",
        "levels[j, vectors.levels[g, j]] += counts[g]",
        "levels[j, max(1, vectors.levels[g, j])] += counts[g]",
    ),
    "missing weighted as disagreement": bug(
        POSTERIOR + "[penalty-False-250]",
        "of_level[j, vectors.levels[g, j]]", "of_level[j, max(1, vectors.levels[g, j])]",
    ),
    # --- complete and incomplete links
    "the law of all links does not hear of incomplete ones": bug(
        ALL_PAIRS + "[all-tied-overlap]", "shape[0, t] += 1.0", "shape[0, t] += 0.0",
    ),
    "rows of incomplete links are not tied": bug(
        ALL_PAIRS + "[all-tied-overlap]",
        "shape[a, e] += model.tie * expected_h(model, a, e, log_h)", "pass",
    ),
    # --- links of pairs that no sweep visits
    "births weighed by the links there are, not one more": bug(
        ALL_PAIRS + "[some-independent-overlap]",
        "not accept * (n + 1) * step_cost[n_links] < total",
        "not accept * n * step_cost[n_links] < total",
    ),
    "deaths at the cost of one more link": bug(
        ALL_PAIRS + "[low-independent-overlap]",
        "uniform(rng) * total < n * step_cost[n_links - 1]",
        "uniform(rng) * total < n * step_cost[n_links]",
    ),
    "candidates of a taken record are not barred": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "            edge_pattern[records.edges[k]] = BARRED\n", "            pass\n",
    ),
    "records in a swept link taken for free": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "            if linked[edges[k]]:\n                return False\n",
        "            pass\n",
    ),
    "pairs freed though the other end is taken": bug(
        ALL_PAIRS + "[some-independent-penalty]",
        "if not (records.taken[records.ends[e, 0]] or records.taken[records.ends[e, 1]]):",
        "if True:",
    ),
    "proposals taken for uniform": bug(
        ALL_PAIRS + "[none-independent-penalty]",
        "(1.0 if field == ANY else levels[:, field] == level)", "1.0",
    ),
    "listed pairs proposed as far ones too": bug(
        ALL_PAIRS + "[few-independent-penalty]",
        "return ~(listed | self._known_a", "return ~(self._known_a",
    ),
    "links elsewhere do not inform m and u": bug(
        ALL_PAIRS + "[low-independent-penalty]",
        "        counts[links_low.links[k, 2]] += 1\n",
        "        counts[links_low.links[k, 2]] += 0\n",
    ),
    # --- which fields are wrong, and which go together
    "which fields are wrong not normalised": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "w = state.log_h[vectors.n_missing[g], e] - constants[vectors.seen_set[g], e]",
        "w = state.log_h[vectors.n_missing[g], e]",
    ),
    "h not by the number of fields missing": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "by_errors[vectors.n_missing[g], vectors.n_wrong[g]] += counts[g]",
        "by_errors[0, vectors.n_wrong[g]] += counts[g]",
    ),
    "steps in log r always taken": bug(
        ALL_PAIRS + "[all-dependent-overlap]",
        "if not np.log(1.0 - uniform(rng)) < after - before:", "if uniform(rng) < -1.0:",
    ),
    "tree left out of the weights": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "            w -= vectors.fixed_log_u[g]\n", "",
    ),
    "u of dependent fields counted twice": bug(
        ALL_PAIRS + "[all-dependent-penalty]",
        "            if model.free[j]:\n                of_level",
        "            if True:\n                of_level",
    ),
    # --- probabilities
    "expectations not normalised: joint draw": bug(
        POSTERIOR + "[penalty-False-250]",
        "share = 0.0, 1.0 / total", "share = 0.0, 1.0",
    ),
    "expectations not normalised: row": bug(
        POSTERIOR + "[penalty-False-1]",
        "expected[e] = weights[e - first] / total", "expected[e] = weights[e - first]",
    ),
    # --- random numbers
    "chains share their streams": bug(
        STREAMS, "np.uint64(chain) *", "np.uint64(0) *",
    ),
    "sweeps share their streams": bug(
        STREAMS, "np.uint64(sweep) *", "np.uint64(0) *",
    ),
    "blocks share their streams": bug(
        STREAMS, "np.uint64(block) *", "np.uint64(0) *",
    ),
    "large blocks have the streams of listed ones": bug(
        SWEEPS,
        "start_stream(rng, key[0], key[1], key[2], 1 + n_joint + k)",
        "start_stream(rng, key[0], key[1], key[2], 1 + k + 0 * n_joint)",
    ),
    "gamma numbers of small shape without their boost": bug(
        GAMMA, "return np.log(d * v) + boost", "return np.log(d * v)",
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


def plant(package, bug):
    """Put a bug in wherever its text is: it may move to another module, but must be there once."""
    for right, wrong in bug.replacements:
        found = [path for path in package.rglob("*.py") if right in path.read_text("utf-8")]
        times = sum(path.read_text("utf-8").count(right) for path in found)
        assert times == 1, f"{times} times in the package: {right!r}"
        found[0].write_text(found[0].read_text("utf-8").replace(right, wrong), "utf-8")


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


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.verify) for name in BUGS],
)
def test_a_bug_is_caught(name, tmp_path):
    plant(copy_package(tmp_path), BUGS[name])
    code, output = run_checks(tmp_path, BUGS[name].check)
    assert code == pytest.ExitCode.TESTS_FAILED, output[-3000:]
    assert "AssertionError" in output, output[-3000:]


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param(tuple(BUGS), marks=pytest.mark.verify)], ids=["quick", "all"]
)
def test_the_copy_without_a_bug_passes(names, tmp_path):
    copy_package(tmp_path)
    code, output = run_checks(tmp_path, *sorted({BUGS[name].check for name in names}))
    assert code == pytest.ExitCode.OK, output[-3000:]


def test_every_bug_can_be_planted(tmp_path):
    """The texts to replace are still in the source, each once."""
    for number, bug in enumerate(BUGS.values()):
        (folder := tmp_path / str(number)).mkdir()
        plant(copy_package(folder), bug)
