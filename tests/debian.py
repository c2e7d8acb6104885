"""Packages of Debian that tests need, installed where that can be done."""

import shutil
import subprocess


def install(package, seconds=600):
    """Try to install a package; the lists of packages are fetched if they are missing or old."""
    if shutil.which("apt-get") is None:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", package]
    for words in (command, ["apt-get", "update"], command):
        done = subprocess.run(words, capture_output=True, timeout=seconds, check=False)
        if words is command and done.returncode == 0:
            return
