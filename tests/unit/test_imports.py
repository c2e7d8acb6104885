"""Imports point one way, the middle imports no data-frame library, only cli prints."""

import ast
import subprocess
import sys
from pathlib import Path

import bayeslink

SOURCE = Path(bayeslink.__file__).parent

# Each layer may import from those after it, not from those before it or beside it.
LAYERS = [
    {"cli"},
    {"review.server"},
    {"review.desk", "review.gate", "review.rerun"},
    {"review.screen"},
    {"review.material", "review.marks"},
    {"review.cases"},
    {"reproduce.census", "reproduce.simulation", "reproduce.large"},
    {"reproduce.calibration"},
    {"reproduce.data", "reproduce.drawing"},
    {"linking", "audit", "differences"},
    {"labels"},
    {"runs"},
    {"plots", "report.page"},
    {"report.examples", "report.uncertainty"},
    {"report.sections"},
    {"report.material"},
    {"store"},
    {"settings", "explanation"},
    {"engines.local", "evaluation", "simulation", "sensitivity_analysis"},
    {"sampler"},
    {"posterior"},
    {"posthoc", "decisions", "engines.deferred"},
    {"penalized", "em", "keys", "idpairs", "engines.counts", "engines.joining"},
    {"engines.plan"},
    {"engines.search"},
    {"engines.tables", "engines.work"},
    {"engines.missing"},
    {"assignment", "priors", "dictionaries", "_people", "diagnostics", "downstream"},
    {"level_tables"},
    {"model", "comparisons", "records", "independence"},
    {"patterns", "delimited", "celltexts", "judgements"},
    {"report.curves"},
    {"report.charts", "report.markup"},
    {"fields", "report.svg"},
    {
        "kernels.scan",
        "kernels.search",
        "kernels.matching",
        "kernels.sampling",
        "kernels.components",
        "kernels.distances",
    },
    {"kernels.tables", "memory"},
    {"kernels", "kernels.lanes", "engines", "report", "reproduce", "review", "errors", "__init__"},
]
MIDDLE = {
    "model", "priors", "patterns", "assignment", "em", "penalized", "fields", "posthoc", "sampler",
    "posterior", "decisions", "diagnostics", "downstream",
}  # fmt: skip


def modules():
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(path.read_text("utf-8"))


def imported(tree):
    """Every module imported, at top level or within functions, type-checking blocks left out."""
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "bayeslink":
            yield from (f"bayeslink.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def layer_of(module):
    return next((i for i, layer in enumerate(LAYERS) if module in layer), None)


def test_imports_point_one_way():
    upward = []
    for name, tree in modules():
        here = layer_of(name)
        assert here is not None, f"{name} has no layer in tests/unit/test_imports.py"
        for target in imported(tree):
            if target.startswith("bayeslink."):
                there = layer_of(target.removeprefix("bayeslink."))
                if there is not None and there <= here:
                    upward.append(f"{name} imports {target}")
    assert not upward


def test_the_middle_imports_no_data_frames():
    libraries = {"pyarrow", "pandas", "polars", "duckdb", "pyspark"}
    for name, tree in modules():
        if name in MIDDLE:
            used = {target.split(".")[0] for target in imported(tree)}
            assert not used & libraries, name


def test_only_cli_prints():
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                raise AssertionError(f"{name} prints")


def test_the_command_line_starts_without_the_heavy_libraries():
    code = (
        "import sys, bayeslink.cli\n"
        "print([m for m in ('numba', 'scipy', 'pyarrow', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in bayeslink.__all__:
        assert getattr(bayeslink, name) is not None
    code = (
        "import bayeslink.linking, bayeslink.store, bayeslink as bl\n"
        "assert callable(bl.link) and callable(bl.evaluate)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
