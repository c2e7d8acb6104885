"""A real Chromium for the tests of what people see."""

import shutil
from importlib.util import find_spec

import pytest

import bayeslink as bl
from tests.debian import install, lacking
from tests.served import FIELDS, Server, copied


def chromium():
    """The browser on this machine; Debian's is installed if it can be."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        install("chromium")
        found = shutil.which("chromium")
    return found


@pytest.fixture(scope="module")  # not longer: its event loop would be in the way of others
def browser():
    if find_spec("playwright") is None:
        lacking("Playwright is not installed: bayeslink[dev]")
    path = chromium()
    if path is None:
        lacking("no Chromium here, and apt-get could not install it")
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def reviewed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    bl.write_simulation(bl.simulate(400, seed=4), folder / "data")
    a, b = folder / "data" / "a.csv", folder / "data" / "b.csv"
    bl.link(a, b, FIELDS, draws=200, tune=100, chains=2).save(folder / "run")
    return folder / "run"


@pytest.fixture
def run(reviewed, tmp_path):
    """A run to review, of one's own."""
    return copied(reviewed, tmp_path)


@pytest.fixture
def serve(run):
    """Starts servers, and ends those that are left."""
    servers = []

    def start(folder=run, *options):
        servers.append(Server(folder, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.communicate()
