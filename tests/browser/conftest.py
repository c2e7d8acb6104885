"""A real Chromium for the tests of what people see."""

import shutil
import subprocess

import pytest


def chromium():
    """The browser on this machine; Debian's is installed if it can be."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        subprocess.run(command, capture_output=True, timeout=300, check=False)
        found = shutil.which("chromium")
    return found


@pytest.fixture(scope="module")  # not longer: its event loop would be in the way of others
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here, and apt-get could not install it")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
