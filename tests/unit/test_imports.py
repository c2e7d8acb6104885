"""Imports point one way, statistics import no data-frame library, only cli prints."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import bayeslink

SOURCE = Path(bayeslink.__file__).parent

# Each room may import from those after it; within a room, imports go in no circle.
ROOMS = [
    "__main__", "cli", "commands", "review", "exchange", "linking", "suggesting", "plots",
    "report", "runs", "judging", "simulation", "engines", "many_settings", "dedupe_settings",
    "settings", "sampling", "linkage", "model", "pairs", "comparing", "data", "kernels", "progress",
    "threads", "streams", "memory",
    "checkpoints", "notebook_html", "number_format", "options", "plain", "private", "distinct",
    "errors", "__init__",
]  # fmt: skip


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


def own_imports():
    """Each module and the modules of ours that it imports."""
    found = {
        name: {t.removeprefix("bayeslink.") for t in imported(tree) if t.startswith("bayeslink.")}
        for name, tree in modules()
    }
    return {name: {t for t in targets if t in found} for name, targets in found.items()}


def room_of(module):
    return ROOMS.index(module.split(".")[0])


def test_imports_point_down_from_room_to_room():
    upward = [
        f"{name} imports {target}"
        for name, targets in own_imports().items()
        for target in targets
        if room_of(target) < room_of(name)
    ]
    assert not upward


def test_imports_go_in_no_circle():
    assert list(TopologicalSorter(own_imports()).static_order())


def test_statistics_import_no_data_frames():
    libraries = {"pyarrow", "pandas", "polars", "duckdb", "pyspark"}
    for name, tree in modules():
        if name.split(".")[0] in ("model", "linkage", "sampling"):
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
        "import bayeslink.linking, bayeslink.runs.saving, bayeslink as bl\n"
        "assert callable(bl.link) and callable(bl.evaluate)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_completion_offers_the_public_names_and_no_others():
    code = "import bayeslink as bl; print(sorted(bl.__all__) == dir(bl), dir(bl))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("True")
    assert "'link'" in out.stdout
    assert "importlib" not in out.stdout
