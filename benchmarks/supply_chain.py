"""What bayeslink is built on: a bill of materials (CycloneDX), and known holes in it.

python benchmarks/supply_chain.py [sbom.json]

Asks the OSV database for each library that is installed; without a network it says that it could
not, and ends well. It ends with 1 if a library has a known hole.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

DATABASE = "https://api.osv.dev/v1/querybatch"


def components(root: str = "bayeslink") -> dict[str, str]:
    """Libraries that the package needs to run, with those that they need: name and version."""
    found: dict[str, str] = {}
    waiting = [root]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # of another system, or an extra that is not there
        found[name] = installed.version
        needs = (text for text in installed.requires or () if "extra ==" not in text)
        waiting += [re.split(r"[\s\[;<>=!~(]", text, maxsplit=1)[0] for text in needs]
    return dict(sorted(found.items()))


def bill(found: dict[str, str]) -> dict[str, object]:
    """The bill of materials, as CycloneDX 1.5 has it."""
    entries = [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in found.items()
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": entries}


def holes(found: dict[str, str]) -> dict[str, list[str]] | None:
    """Known holes by library; None where the database cannot be asked."""
    queries = [
        {"package": {"ecosystem": "PyPI", "name": name}, "version": version}
        for name, version in found.items()
    ]
    request = urllib.request.Request(
        DATABASE, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            results = json.load(answer)["results"]
    except (urllib.error.URLError, OSError, ValueError, KeyError):
        return None
    return {
        name: [hole["id"] for hole in result["vulns"]]
        for name, result in zip(found, results, strict=True)
        if result.get("vulns")
    }


def main() -> int:
    found = components()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(bill(found), indent=2) + "\n", "utf-8")
    known = holes(found)
    if known is None:
        print(f"Could not ask {DATABASE}: known holes of {len(found)} libraries are not checked.")
        return 0
    for name, ids in known.items():
        print(f"{name} {found[name]}: {', '.join(ids)}")
    print(f"{len(found)} libraries checked, {len(known)} with known holes.")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
