"""What runs on each push parses, and agrees with pyproject.toml, the Makefile and the release."""

import re
import tomllib
from pathlib import Path

import pytest

from tools import release

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = {path.name: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def supported():
    """Versions of Python that the package says it runs on, from the oldest."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line)
             for line in PROJECT["classifiers"]]  # fmt: skip
    return [match[1] for match in found if match]


def steps():
    return [
        step
        for path in WORKFLOWS.values()
        for job in read(path)["jobs"].values()
        for step in job["steps"]
    ]


def test_every_workflow_has_jobs_with_steps_and_few_rights():
    assert set(WORKFLOWS) == {"ci.yml", "release.yml", "docs.yml"}
    assert all(("run" in step) != ("uses" in step) for step in steps())
    assert all(read(path)["permissions"] == {"contents": "read"} for path in WORKFLOWS.values())


def test_each_supported_python_is_tested_and_no_other():
    jobs = read(WORKFLOWS["ci.yml"])["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported() == list(release.VERSIONS)
    assert PROJECT["requires-python"] == f">={supported()[0]}"
    asked = [step["with"]["python-version"] for step in steps() if "setup-python" in str(step)]
    assert {str(version) for version in asked if "matrix" not in version} <= set(supported())
    (lowest,) = (step for step in jobs["lowest"]["steps"] if "setup-python" in str(step))
    assert lowest["with"]["python-version"] == supported()[0]


def test_what_is_made_can_be_made():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    made = {word for step in steps() for word in re.findall(r"^make ([\w-]+)", step.get("run", ""))}
    assert made == {"test", "test-all", "release", "docs"}
    assert made <= set(targets)


def test_the_tests_that_are_named_are_there():
    named = {word for step in steps() for word in re.findall(r"tests/\S+", step.get("run", ""))}
    assert named
    assert all((ROOT / name).is_dir() for name in named)


def test_the_hooks_are_those_of_make_lint():
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert [hook["name"] for hook in hooks] == ["ruff check", "ruff format", "mypy"]
