"""For all tests."""

import signal
import threading
from pathlib import Path

import pytest

LONG = {"browser", "paper", "program", "spark", "statistical"}  # folders


def pytest_collection_modifyitems(items):
    """`make test` runs the tests marked `short` of a long folder; `make test-all` the others."""
    for item in items:
        if Path(item.path).parent.name in LONG and not item.get_closest_marker("short"):
            item.add_marker("full")


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard():
    """Where the tests were started in the background, SIGINT may be ignored, also by children."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _every_warning_is_explained():
    """A run whose warning has no entry in docs/reference/warnings.md fails its test."""
    from bayeslink.runs.run import Run
    from tests.docs.warnings_page import undocumented

    make = Run.__init__

    def checked(self, *args, **kwargs):
        make(self, *args, **kwargs)
        missed = undocumented(self.warnings)
        assert not missed, f"no entry in docs/reference/warnings.md: {missed}"

    Run.__init__ = checked
    yield
    Run.__init__ = make
