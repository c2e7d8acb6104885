"""What commands say with -q, with -v, and with neither."""

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from tests.unit.runs.test_brief import JARGON


def test_a_first_run_is_spoken_of_but_for_quiet(monkeypatch, tmp_path):
    def prepare(say, progress):
        say("compiling")
        for done in (0, 0, 1):
            progress(f"{done} of 2 modules")

    monkeypatch.setattr("bayeslink.kernels.prepare", prepare)
    said = {}
    for loud in ("-q", "-v", None):
        command = ["demo", "--n", "20", "-o", str(tmp_path / "demo"), *([loud] if loud else [])]
        said[loud] = CliRunner().invoke(main, command).stderr
    assert "bayeslink: compiling\n" in said[None]
    assert "modules" not in said[None]
    assert "bayeslink: 0 of 2 modules\nbayeslink: 1 of 2 modules\n" in said["-v"]
    assert "compiling" not in said["-q"]


def test_quiet_and_verbose(tmp_path):
    files = bl.simulate(120, seed=2)
    bl.write_simulation(files, tmp_path / "files")
    paths = [str(tmp_path / "files" / f"{side}.csv") for side in "ab"]

    def link(*more):
        found = ["link", *paths, "--on=gname", "--on=fname", "--on=dob", "--point", "--force"]
        return CliRunner().invoke(main, [*found, *more, "-o", str(tmp_path / "out")])

    quiet, loud, usual = link("-q"), link("-v"), link()
    assert quiet.exit_code == loud.exit_code == usual.exit_code == 0
    assert quiet.output == ""
    assert "reading A" in loud.stderr
    assert usual.stderr == ""
    assert "links" in usual.stdout
    assert link("-q", "--json").output.startswith("{")


def test_the_usual_words_need_no_statistics_and_verbose_has_them_all(tmp_path):
    bl.write_simulation(bl.simulate(120, seed=2), tmp_path / "files")
    paths = [str(tmp_path / "files" / f"{side}.csv") for side in "ab"]

    def link(*more):
        quick = ["--draws=50", "--tune=50", "--chains=2", "--force", "-o", str(tmp_path / "out")]
        return CliRunner().invoke(main, ["link", *paths, *quick, *more]).stdout.splitlines()

    usual, loud = link(), link("-v")
    assert usual[0].startswith("Compared: gname, fname, ")
    assert usual[1].startswith("Left out: id, age. ")
    assert " links between 120 records of A and 120 of B." in usual[2]
    assert usual[3].startswith("People in both files: ")
    assert usual[-1].startswith("Results in ")
    assert len(usual) <= 9
    assert not JARGON.findall("\n".join(usual))
    assert any(line.startswith("Sampled: ") for line in loud)
    assert any("chance 1 time in" in line for line in loud)
    assert not any(line.startswith("Sampled: ") for line in usual)


@pytest.mark.parametrize("name", [None, *main.commands])
def test_every_command_can_be_quiet_and_verbose(name):
    command = main if name is None else main.commands[name]
    flags = {flag for option in command.params for flag in option.opts}
    assert {"-q", "--quiet", "-v", "--verbose"} <= flags


def test_completion_works_and_is_out_of_sight():
    assert "completion" not in CliRunner().invoke(main, ["--help"]).output
    assert "compare " in CliRunner().invoke(main, ["--help"]).output
    assert "_BAYESLINK_COMPLETE" in CliRunner().invoke(main, ["completion", "zsh", "-q"]).output


def test_init_is_quiet(tmp_path):
    bl.write_simulation(bl.simulate(60, seed=2), tmp_path / "files")
    paths = [str(tmp_path / "files" / f"{side}.csv") for side in "ab"]
    done = CliRunner().invoke(main, ["init", *paths, "-o", str(tmp_path / "link.toml"), "-q"])
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "link.toml").exists()
