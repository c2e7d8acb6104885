"""What goes with the package: citation, changelog, container, what a build takes along."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bayeslink
from benchmarks import hashes

ROOT = Path(__file__).parents[2]


def test_the_citation_is_valid_and_of_this_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= cited.keys()
    assert str(cited["version"]) == bayeslink.__version__


def test_the_changelog_begins_with_this_version():
    said = re.findall(r"^## (\S+)(?: \((.*)\))?$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert said[0][0] in ("Unreleased", bayeslink.__version__)
    assert bayeslink.__version__ in [version for version, _ in said]


def test_the_container_takes_what_a_build_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:]}
    needed = {"pyproject.toml", "constraints.txt", "src", project["readme"]}
    needed |= {*project["license-files"]}
    assert needed <= copied
    ignored = (ROOT / ".containerignore").read_text("utf-8").split()
    assert needed <= {line[1:] for line in ignored if line[0] == "!"}
    assert all((ROOT / name).exists() for name in needed)


def test_python_m_is_the_command_line():
    command = [sys.executable, "-m", "bayeslink", "link", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: bayeslink link ")


def test_the_experiments_are_in_the_sdist_and_not_in_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    targets = project["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["src/bayeslink"]}
    assert {"src", "tests", "experiments", "/.github"} <= {*targets["sdist"]["include"]}


def test_the_bill_of_materials_names_what_is_needed_and_says_when_it_cannot_check(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "supply_chain.py"
    code = (
        "import runpy, sys, urllib.request\n"
        "def fail(*_, **__): raise OSError('no network')\n"
        "urllib.request.urlopen = fail\n"
        f"sys.argv = ['x', {str(tmp_path / 'sbom.json')!r}]\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Could not ask" in done.stdout
    made = json.loads((tmp_path / "sbom.json").read_text())
    names = {part["name"] for part in made["components"]}
    assert {"bayeslink", "numpy", "click"} <= names
    assert "pytest" not in names


def test_every_pin_has_its_hashes_and_no_host_is_named(tmp_path, monkeypatch, capsys):
    assert hashes.check() == 0
    text = hashes.HASHED.read_text("utf-8")
    assert "://" not in text
    pins = text.splitlines()
    whole = "\n".join(line for line in pins if "click==" not in line and "idna==" not in line)
    monkeypatch.setattr(hashes, "HASHED", tmp_path / "r.txt")
    (tmp_path / "r.txt").write_text(whole, "utf-8")
    assert hashes.check() == 1
    assert "click==" in capsys.readouterr().out
