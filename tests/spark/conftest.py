import signal

import pytest

from tests.spark.java import spark_session


@pytest.fixture(scope="session")
def spark():
    before = signal.getsignal(signal.SIGINT)
    session = spark_session("local[2]")
    signal.signal(signal.SIGINT, before)  # Spark has set one of its own, for all tests to come
    yield session
    session.stop()


@pytest.fixture
def everything_sent(monkeypatch):
    """However little work it is, it goes to Spark."""
    from bayeslink import threads

    monkeypatch.setattr(threads, "_WORTH", 0.0)
