"""Every warning that the code can make has its entry in docs/reference/warnings.md.

Two nets: the words in the functions that make warnings, here; and every run of any test, whose
warnings `tests/conftest.py` looks up.
"""

import ast
from pathlib import Path

import pytest

import bayeslink
from tests.docs.warnings_page import undocumented

SOURCE = Path(bayeslink.__file__).parent
# Functions that make warnings: any of these names, in these modules.
MAKERS = {
    "engines/input_checks.py": ("_missing_codes", "_agreement", "_twice"),
    "engines/local.py": ("_file_warnings",),
    "engines/open_levels.py": ("describe_sample",),
    "engines/swapping.py": ("describe",),
    "engines/preselected.py": ("describe",),
    "comparing/dates.py": ("said",),
    "sampling/fit_checks.py": (
        "_on_bands",
        "_on_look_alikes",
        "_on_humps",
        "_on_together",
        "_on_twice",
        "_on_modes",
        "_on_few",
    ),
    "sampling/identified.py": ("said",),
    "sampling/cluster_checks.py": ("_on_share", "_on_component", "_on_forms", "_on_forest_modes"),
    "linkage/penalized.py": ("warning",),
    "linkage/rivals.py": ("warning",),
    "sampling/diagnostics.py": ("verdict",),
    "linkage/decisions.py": ("too_few",),
    "sampling/sensitivity.py": ("_notes",),
    "judging/labels.py": ("known_pairs",),
    "linking/dedupe.py": ("_warnings", "_compared", "_strangers"),
    "linking/many.py": ("_duplicates_in",),
    "linking/stacking.py": ("read_file", "_renamed"),
    "linking/link.py": ("_point_warnings", "_posterior_warnings", "_copies_linked"),
    "runs/dedupe_saving.py": ("_write_people",),
    "runs/people.py": ("write_people_there",),
    "runs/outputs.py": ("write_outputs",),
    "suggesting/suggestion.py": ("in_one_line", "find_ids", "id_warnings"),
    "suggesting/one_file.py": ("_repeated_ids", "_without_ids", "_remark"),
    "suggesting/partners.py": ("_warning",),
    "kernels/__init__.py": ("prepare",),
}


def texts(function):
    """Long texts in a function, … for what is put into them; not those of errors or docstrings."""
    skipped = set()
    for node in ast.walk(function):
        raised = isinstance(node, ast.Raise)
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if raised or docstring:
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(function):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in ast.walk(node)}
            text = "".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.replace("{}", "…")
        else:
            continue
        part = text.startswith(("import ", ", "))  # code, or a piece of another text
        if len(text.replace("…", "")) > (20 if "…" in text else 30) and not part:
            yield text


def made_in(module, names):
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name in names]
    assert {f.name for f in functions} == {*names}, "a maker is gone: mend MAKERS"
    return [text for f in functions for text in texts(f)]


@pytest.mark.parametrize("module", MAKERS)
def test_a_warning_has_an_entry(module):
    found = made_in(module, MAKERS[module])
    assert found
    assert not undocumented(found)


def test_a_new_warning_is_seen():
    assert undocumented(["the moon is in the way of field 'x'."])
    assert undocumented(["The chains only nearly agree on links: draw more; the moon is too high."])
    assert not undocumented(["A and B hold the same records: each of them finds itself."])
