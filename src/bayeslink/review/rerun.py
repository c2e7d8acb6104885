"""The loop closes: link again with the judgements, in the background."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from pathlib import Path

from bayeslink.errors import BayeslinkError
from bayeslink.results.changes import changes
from bayeslink.results.store import run_settings


class Rerun:
    """One linkage at a time, and how it went."""

    def __init__(self, folder: Path, inputs: tuple[str | None, str | None] = (None, None)) -> None:
        self._inputs = inputs  # where the files are now, if they have moved
        self._folder = folder.resolve() if folder.name in ("", "..") else folder
        self._lock = threading.Lock()
        self._status, self._words = "", ""  # "", running, done or failed

    def state(self) -> dict[str, str]:
        """How it goes, in words, and the command that does the same."""
        config, labels, output = self._folder / "link.toml", self._folder, self._output()
        moved = []
        if any(self._inputs):
            settings = run_settings(self._folder, *self._inputs)
            moved = [str(settings.a), str(settings.b)]
        parts = [*moved, "--config", str(config), "--labels", str(labels), "-o", str(output)]
        command = shlex.join(["bayeslink", "link", *parts])
        found = {"command": command, "status": self._status, "words": self._words}
        # A path may hold bytes that are no UTF-8, which JSON cannot.
        return {k: v.encode("utf-8", "backslashreplace").decode() for k, v in found.items()}

    def start(self) -> None:
        """Begin, unless it is under way."""
        with self._lock:
            if self._status == "running":
                return
            self._status, self._words = "running", "Starting."
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        def progress(message: str) -> None:
            self._words = f"{message[:1].upper()}{message[1:]} …"

        try:
            from bayeslink.linking.link import link_with

            settings = replace(run_settings(self._folder, *self._inputs), labels=self._folder)
            output = self._output()
            run = link_with(settings, settings.a, settings.b, progress=progress)
            run.save(output)
            found = f"{changes(self._folder, output)}\nThe new run is in {output}."
            self._status, self._words = "done", found
        except BayeslinkError as error:
            self._status, self._words = "failed", str(error)
        except Exception as error:  # shown, not lost in a thread
            self._status, self._words = "failed", f"It failed: {type(error).__name__}."

    def _output(self) -> Path:
        """The first name that is free."""
        name, number = f"{self._folder.name}-reviewed", 1
        folder = self._folder.parent / name
        while folder.exists():
            number += 1
            folder = self._folder.parent / f"{name}-{number}"
        return folder
