"""For all tests."""

import signal
import threading

import pytest


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard():
    """Where the tests were started in the background, SIGINT may be ignored, also by children."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
