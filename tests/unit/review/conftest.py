"""A run to review."""

import pytest

import bayeslink as bl
from tests.served import FIELDS, copied


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on files, untouched by the tests."""
    folder = tmp_path_factory.mktemp("review")
    bl.write_simulation(bl.simulate(400, seed=4), folder / "data")
    a, b = folder / "data" / "a.csv", folder / "data" / "b.csv"
    bl.link(a, b, FIELDS, draws=500, tune=100, chains=4).save(folder / "run")
    return folder / "run"


@pytest.fixture
def run(made, tmp_path):
    return copied(made, tmp_path)
