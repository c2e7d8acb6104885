"""Each kind of file is linked once; at the end, a table of kinds and commands is printed."""

import shutil

import pytest

from tests.journeys.kinds import COMMANDS, KINDS, linked

CELL = "journey"


@pytest.fixture(scope="session")
def all_journeys(tmp_path_factory):
    """Each kind of file as it was linked in this process, once."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = linked(KINDS[name], tmp_path_factory.mktemp("journey"))
        return made[name]

    return of


@pytest.fixture
def journey(kind, command, all_journeys, tmp_path, monkeypatch, record_property):
    """A copy for one cell, which may write to it; its folder is where commands are given."""
    record_property(CELL, f"{kind}|{command}")
    made = all_journeys(kind)
    folder = shutil.copytree(made.folder, tmp_path / "files")
    monkeypatch.chdir(folder)
    return made.at(folder)


def pytest_terminal_summary(terminalreporter):
    """Print one row a kind, ✓ or ✗ a command."""
    cells = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == CELL:
                    cells[value] = cells.get(value, True) and outcome == "passed"
    if not cells:
        return
    seen = {part for cell in cells for part in cell.split("|")}
    kinds, commands = ([name for name in names if name in seen] for names in (KINDS, COMMANDS))
    wide = max(map(len, kinds)) + 2
    terminalreporter.section("journeys")
    terminalreporter.write_line(" " * wide + "  ".join(commands))
    sign = {True: "✓", False: "✗", None: " "}
    for kind in kinds:
        row = (sign[cells.get(f"{kind}|{c}")].ljust(len(c)) for c in commands)
        terminalreporter.write_line(kind.ljust(wide) + "  ".join(row).rstrip())
    terminalreporter.write_line(f"{sum(cells.values())} of {len(cells)} cells.")
