"""requirements-dev.txt: the pins of constraints.txt with the hash of every file that may be used.

python benchmarks/hashes.py            write it, from the index that pip is set to use
python benchmarks/hashes.py --check    say whether it has every pin, each with hashes; no network

`pip install --require-hashes -r requirements-dev.txt` then takes no other file.
"""

import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS, HASHED = ROOT / "constraints.txt", ROOT / "requirements-dev.txt"
HEAD = "# Made by benchmarks/hashes.py from constraints.txt. To change a pin, change it there.\n"
# PyPy, builds without the interpreter lock, and Pythons older than ours.
_NOT_OURS = re.compile(r"-(pp\d+|graalpy\w*|cp2\d|cp3\d|cp310|cp\d+-cp\d+t)-(?!abi3)")


def pins() -> list[str]:
    """Lines of constraints.txt, such as `numpy==2.4.6 ; python_full_version < '3.12'`."""
    return [line.strip() for line in PINS.read_text("utf-8").splitlines() if line.strip()]


def index() -> str:
    """Where pip looks packages up."""
    pip = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(pip, capture_output=True, text=True).stdout.strip()
    if not told:
        from pip._internal.models.index import PyPI

        told = PyPI.simple_url
    return told.rstrip("/")


def hashes(pin: str, base: str) -> list[str]:
    """SHA-256 of the files of a version that one of our Pythons may use, on any system."""
    name, version = re.match(r"([\w.-]+)==([^ ;]+)", pin).groups()
    with urllib.request.urlopen(f"{base}/{name}/", timeout=120) as answer:
        page = answer.read().decode()
    files = re.findall(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"', page)
    normal = re.sub(r"[-_.]+", "_", name).lower()
    begin = re.compile(rf"{normal}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip)", re.IGNORECASE)
    return sorted(
        digest
        for file, digest in set(files)
        if begin.fullmatch(re.sub(r"^[\w.-]+?(?=-\d)", normal, file)) and not _NOT_OURS.search(file)
    )


def write() -> int:
    base, lines = index(), pins()
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda pin: hashes(pin, base), lines)]
    for pin, digests in zip(lines, found, strict=True):
        if not digests:
            print(f"the index has no file of {pin}")
            return 1
    entries = [
        " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in digests)])
        for pin, digests in zip(lines, found, strict=True)
    ]
    HASHED.write_text(HEAD + "\n".join(entries) + "\n", "utf-8")
    print(f"{len(lines)} pins, {sum(map(len, found))} files.")
    return 0


def check() -> int:
    text = HASHED.read_text("utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    told = {line.split(" --hash")[0].strip(): line.count("--hash=sha256:") for line in lines}
    wrong = {pin for pin, n in told.items() if not n} | (set(pins()) ^ told.keys())
    for pin in sorted(wrong):
        print(f"{pin}: not both in constraints.txt and, with hashes, in requirements-dev.txt.")
    if not wrong:
        print(f"requirements-dev.txt: {len(told)} pins, {sum(told.values())} hashes.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else write())
