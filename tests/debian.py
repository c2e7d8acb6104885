"""What tests need beside Python, installed where that can be done."""

import os
import shutil
import subprocess

import pytest


def install(package, seconds=600):
    """Try to install a package; the lists of packages are fetched if they are missing or old."""
    if shutil.which("apt-get") is None:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", package]
    for words in (command, ["apt-get", "update"], command):
        done = subprocess.run(words, capture_output=True, timeout=seconds, check=False)
        if words is command and done.returncode == 0:
            return


def lacking(reason):
    """Skip a test for what is not here; where all must be run (CI=true), fail it."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
