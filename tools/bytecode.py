"""Write the bytecode of all that bayeslink imports: `python tools/bytecode.py`.

`make` installs without it, as most of what is installed is never imported. Python would write the
rest when it is first imported, but not where PYTHONDONTWRITEBYTECODE is set, as in containers:
there every start would compile it again, 1.5 seconds.
"""

from __future__ import annotations

import importlib
import pkgutil
import py_compile
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import bayeslink
import bayeslink.commands


def main() -> None:
    for name in bayeslink.__all__:
        with suppress(ImportError):  # of an extra that is not installed
            getattr(bayeslink, name)
    for found in pkgutil.walk_packages(bayeslink.__path__, "bayeslink."):
        if not found.name.endswith("__main__"):
            with suppress(ImportError):
                importlib.import_module(found.name)
    for module in [*sys.modules.values()]:
        source = getattr(module, "__file__", None) or ""
        if source.endswith(".py") and not Path(cache_from_source(source)).exists():
            with suppress(OSError, py_compile.PyCompileError):
                py_compile.compile(source, quiet=2)


if __name__ == "__main__":
    main()
