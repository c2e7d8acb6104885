"""What is said of comparisons, on the command line and in the docs."""

from pathlib import Path

from click.testing import CliRunner

from bayeslink.cli import main
from bayeslink.comparing.catalogue import COMPARISONS, EXAMPLES
from bayeslink.comparing.parsing import parse_on

DOCS = Path(__file__).parents[3] / "docs" / "comparisons.md"


def test_the_command_and_the_docs_say_the_same():
    said = CliRunner().invoke(main, ["comparisons"]).output
    assert all(f"\n\n{name}\n" in f"\n\n{said}" for name in COMPARISONS)
    assert said in DOCS.read_text("utf-8")


def test_every_example_is_a_field():
    for name, example in EXAMPLES.items():
        for field in parse_on(example):
            assert field.kind == ("name" if name == "person_name" else name)
    assert {*COMPARISONS} - {*EXAMPLES} == {"custom"}


def test_unknown_comparisons_are_named():
    result = CliRunner().invoke(main, ["comparisons", "nmae"])
    assert result.exit_code == 2
    assert "unknown comparison 'nmae'" in result.output
