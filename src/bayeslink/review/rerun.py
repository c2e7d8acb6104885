"""The loop closes: link again with the judgements, in the background."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from pathlib import Path

from bayeslink.errors import BayeslinkError
from bayeslink.runs.changes import link_changes
from bayeslink.runs.opening import saved_in
from bayeslink.runs.run import Run


class Rerun:
    """One linkage at a time, and how it went."""

    def __init__(self, run: Run) -> None:
        folder, self._run = saved_in(run), run
        self._folder = folder.resolve() if folder.name in ("", "..") else folder
        self._lock = threading.Lock()
        self._status, self._words = "", ""  # "", running, done or failed

    def state(self) -> dict[str, str]:
        """How it goes, in words, and the command that does the same."""
        config, labels, output = self._folder / "link.toml", self._folder, self._output()
        told, here = (self._run.settings.a, self._run.settings.b), self._run.sources or ()
        moved = [] if told == here else [str(source) for source in here]
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
        threading.Thread(target=self._link, daemon=True).start()

    def _link(self) -> None:
        def progress(message: str) -> None:
            self._words = f"{message[:1].upper()}{message[1:]} …"

        try:
            from bayeslink.linking.link import link_with

            settings = replace(self._run.settings, labels=self._folder)
            output = self._output()
            run = link_with(settings, *self._run.sources or (None, None), progress=progress)
            run.save(output)
            found = f"{link_changes(self._run, run)}\nThe new run is in {output}."
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
