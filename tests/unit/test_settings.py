"""Every option is written once; Python, the command line and link.toml are derived from it."""

import inspect
import re
from dataclasses import dataclass, replace

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import SettingsError
from bayeslink.options import BASICS, GROUPS, Options, key, option, signature_of
from bayeslink.runs.link_toml import KEYS
from bayeslink.settings import NOT_BY_NAME, READING, LinkSettings

FLAGS = {parameter.name: parameter for parameter in main.commands["link"].params}


def test_every_option_is_taken_by_python_the_command_line_and_the_file():
    named = inspect.signature(bl.link).parameters
    for name, argument in LinkSettings.arguments().items():
        assert name in named or name in NOT_BY_NAME
        for one in argument.keys:
            assert (one.name in KEYS) == bool(one.types)
            assert one.flag is None or FLAGS[one.name].help == one.help
            assert one.name in named or one.name in NOT_BY_NAME


def test_the_group_of_an_option_is_part_of_it_and_the_help_lists_it_there():
    """Each flag once, in the section that its definition names."""
    told = CliRunner().invoke(main, ["link", "--help"], terminal_width=200).output
    parts = re.split(r"^(\w+):$", told.partition("\n\n")[2], flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert tuple(sections) == GROUPS
    for one in LinkSettings.keys().values():
        if one.flag is not None:
            flag = FLAGS[one.name].opts[0]
            found = [name for name, text in sections.items() if re.search(f"  {flag}[ ,\n]", text)]
            assert found == [one.group], flag
    assert {one.group for one in LinkSettings.keys().values()} == {*GROUPS} - {BASICS}
    assert "  -o, --output" in sections[BASICS]
    assert "  [A]" not in told


def test_an_option_is_one_edit():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class More(Options):
        draws: int = option(1000, key("draws", "Draws. [1000]", (int,), type=int))
        thin: int = option(1, key("thin", "Keep every so many draws. [1]", (int,), type=int))

    assert "thin" in signature_of(lambda **options: None, More).parameters
    assert More.keys()["thin"].flag == {"type": int}
    made = More.of(thin=5)
    assert made.entries() == {"draws": 1000, "thin": 5}
    assert More.of(**made.entries()) == made
    assert made.changed(draws=7) == More(draws=7, thin=5)


def test_python_takes_the_keys_of_the_file_too():
    made = LinkSettings.of(theta=2, encoding="cp1252", missing=["NA"], loss={"reject": 0.1})
    read = bl.ReadOptions(encoding="cp1252", missing=["NA"])
    assert made == LinkSettings.of(prior=bl.Penalty(2), read=(read, read), loss=bl.Loss(reject=0.1))
    assert made.changed(theta=3) == replace(made, prior=bl.Penalty(3))
    assert made.changed(missing=[]).read == (bl.ReadOptions(),) * 2
    with pytest.raises(SettingsError, match="give prior= or theta=, not both"):
        LinkSettings.of(theta=2, prior=bl.Overlap())


def test_a_mistyped_option_is_told_with_the_nearest_one():
    files = bl.simulate(20, seed=1)
    with pytest.raises(TypeError, match=r"no option 'drawz'\. Did you mean 'draws'"):
        bl.link(files.a, files.b, drawz=5)


def test_the_help_of_python_tells_every_option():
    for name in LinkSettings.arguments():
        assert name in NOT_BY_NAME or f"\n    {name}\n" in bl.link.__doc__


def test_reading_is_the_same_for_every_command_that_reads():
    options = {parameter.name for parameter in main.commands["init"].params}
    assert {*READING} - {"quarantine"} <= options
