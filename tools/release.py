"""Build the wheel and the sdist, and try both: `make release`.

Each is installed into an empty environment of every Python from 3.11 on that is found here, without
the source tree in reach, and links two simulated files. Arguments are Pythons to try instead.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SMOKE = """
import json, sys, bayeslink as bl
files = bl.simulate(300, seed=1)
run = bl.link(files.a, files.b, draws=200, tune=200, chains=2)
run.save("out")
run.report("out/report.html")
found = bl.evaluate(bl.open_run("out").links, files.truth)
print(json.dumps({"python": sys.version.split()[0], "at": bl.__file__, "f1": found.f1}))
"""


def main(wanted: list[str]) -> None:
    built = build()
    pythons = wanted or list(found())
    print(f"built {', '.join(path.name for path in built)}; tried on {len(pythons)} Pythons")
    for python in pythons:
        for path in built:
            print(f"{path.name}: {json.dumps(smoke(python, path))}", flush=True)


def build() -> list[Path]:
    """The wheel and the sdist, in dist/."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--quiet", str(ROOT)], check=True)
    wheel, sdist = (next((ROOT / "dist").glob(end)) for end in ("*.whl", "*.tar.gz"))
    assert wheel.name.endswith("-py3-none-any.whl"), wheel.name
    return [wheel, sdist]


def found() -> Iterator[str]:
    """Pythons on this machine, one of each version that is supported: on the path, or pyenv's."""
    for version in VERSIONS:
        homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        for python in (*map(str, homes), shutil.which(f"python{version}")):
            if python and _version(python) == version:
                yield python
                break
        else:
            print(f"no Python {version} here")


def _version(python: str) -> str | None:
    done = subprocess.run([python, "-V"], capture_output=True, text=True, check=False)
    told = re.match(r"Python (\d+\.\d+)", done.stdout)
    return told[1] if told and not done.returncode else None


def smoke(python: str, path: Path) -> dict[str, object]:
    """Install into an empty environment, link two files far from the source, say how it went."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/env"], check=True)
        inside = f"{folder}/env/bin/python"
        pip = [inside, "-m", "pip", "install", "--quiet", "--no-compile"]
        pip += ["--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), str(path)]
        subprocess.run(pip, check=True)
        clean = {"HOME": folder, "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [inside, "-c", SMOKE],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{path.name} on {python}:\n{done.stderr}")
        shown = subprocess.run(
            [f"{folder}/env/bin/bayeslink", "--version"],
            env=clean, capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["f1"] > 0.9, told
        assert str(told.pop("at")).startswith(folder), "not the installed package"
        return {**told, "version": shown.stdout.strip()}


if __name__ == "__main__":
    main(sys.argv[1:])
