"""Work that outlives its process: arrays in files, checked, two generations of each.

A checkpoint is bound to what it was made from (settings, versions, the contents of the inputs):
`bind` refuses to go on with anything else. A file is written whole beside the one before it, which
is kept: a file that is cut short or damaged is never used, the one before it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import InputError, OutputError

EVERY = 30.0  # seconds of work that may be lost
_MAGIC = b"bayeslink checkpoint 1\n"

Arrays = dict[str, NDArray[Any]]


class Checkpoints:
    """The checkpoints of one run, in a folder of their own.

    Attributes
    ----------
    bound
        What the run is made from, by name; of a folder that is there already, from there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bound: dict[str, str] = self._read_bound()

    def __bool__(self) -> bool:
        """Whether there is any work to go on from."""
        return any(self.folder.glob("*.now"))

    def bind(self, facts: Mapping[str, str]) -> None:
        """Tie the checkpoints to these facts, or refuse if they were made from others."""
        for name, value in facts.items():
            if self.bound.setdefault(name, value) != value:
                raise InputError(
                    f"{name} is not as it was when the interrupted run began, so that its work "
                    "cannot be used. Put it back as it was, or start anew with bayeslink link."
                )
        with self._writing():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._put("bound.json", json.dumps(self.bound).encode())

    def due(self, since: float) -> bool:
        """Whether work done since then, by `time.monotonic`, is worth writing down."""
        return time.monotonic() - since >= EVERY

    def save(self, name: str, arrays: Arrays) -> None:
        """Write a checkpoint; the one before it is kept."""
        stream = io.BytesIO()
        np.savez(stream, **arrays)  # type: ignore[arg-type]
        content = stream.getvalue()
        with self._writing():
            now, before = self.folder / f"{name}.now", self.folder / f"{name}.before"
            self._put(f"{name}.new", _MAGIC + self._seal(content) + content)
            with suppress(FileNotFoundError):
                os.replace(now, before)
            os.replace(self.folder / f"{name}.new", now)

    def load(self, name: str) -> Arrays | None:
        """The latest checkpoint of that name that is whole; None if there is none."""
        for generation in ("now", "before"):
            with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
                content = (self.folder / f"{name}.{generation}").read_bytes()
                head = len(_MAGIC)
                seal, payload = content[head : head + 32], content[head + 32 :]
                if content[:head] == _MAGIC and seal == self._seal(payload):
                    with np.load(io.BytesIO(payload), allow_pickle=False) as found:
                        return {key: found[key] for key in found.files}
        return None

    def _seal(self, content: bytes) -> bytes:
        """A checksum of the content and of what the run is made from."""
        made_from = json.dumps(sorted(self.bound.items())).encode()
        return hashlib.sha256(hashlib.sha256(made_from).digest() + content).digest()

    def _put(self, name: str, content: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(self.folder / f"{name}~", flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.folder / f"{name}~", self.folder / name)

    def _read_bound(self) -> dict[str, str]:
        try:
            found = json.loads((self.folder / "bound.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise InputError(
                f"{self.folder} is damaged, so that its work cannot be used. Start anew with "
                "bayeslink link."
            )
        return found

    def _writing(self) -> _Writing:
        return _Writing(self.folder)


class _Writing:
    """Says where a checkpoint could not be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, OSError):
            raise OutputError(
                f"cannot write a checkpoint in {self.folder}: {error.strerror}. Make room there; "
                "`bayeslink resume` goes on from the last one that was written."
            ) from None
