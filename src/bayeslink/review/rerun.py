"""The loop closes: link again, or find the people again, with the judgements, in the background."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayeslink.errors import BayeslinkError, InputError
from bayeslink.many_settings import ManySettings
from bayeslink.runs.changes import changes, link_changes
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.opening import saved_in
from bayeslink.runs.run import Run


class Rerun:
    """One run at a time, and how it went."""

    def __init__(self, run: Run | DedupeRun) -> None:
        folder, self._run = saved_in(run), run
        self._folder = folder.resolve() if folder.name in ("", "..") else folder
        self._lock = threading.Lock()
        self._status, self._words = "", ""  # "", running, done or failed

    def state(self) -> dict[str, str]:
        """How it goes, in words, and the command that does the same."""
        command, toml = "link", "link.toml"
        settings, here = self._run.settings, self._run.sources or ()
        told: tuple[Any, ...] = (settings.a, settings.b)
        if isinstance(self._run, DedupeRun):
            toml, told = self._run.settings.TOML, ()
            command = "link-many" if isinstance(settings, ManySettings) else "dedupe"
        labels, output = self._folder, self._output()
        moved = [] if told == here else [str(source) for source in here]
        config = str(self._folder / toml)
        parts = [*moved, "--config", config, "--labels", str(labels), "-o", str(output)]
        found = {
            "command": shlex.join(["bayeslink", command, *parts]),
            "status": self._status,
            "words": self._words,
        }
        # A path may hold bytes that are no UTF-8, which JSON cannot.
        return {k: v.encode("utf-8", "backslashreplace").decode() for k, v in found.items()}

    def start(self) -> None:
        """Begin, unless it is under way."""
        with self._lock:
            if self._status == "running":
                return
            self._status, self._words = "running", "Starting."
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            output = self._output()
            found = self._linked(output) if isinstance(self._run, Run) else self._found(output)
            self._status, self._words = "done", f"{found}\nThe new run is in {output}."
        except BayeslinkError as error:
            self._status, self._words = "failed", str(error)
        except Exception as error:  # shown, not lost in a thread
            self._status, self._words = "failed", f"It failed: {type(error).__name__}."

    def _progress(self, message: str) -> None:
        self._words = f"{message[:1].upper()}{message[1:]} …"

    def _linked(self, output: Path) -> str:
        """Link again; what changed."""
        assert isinstance(self._run, Run)
        from bayeslink.linking.link import link_with

        settings = replace(self._run.settings, labels=self._folder)
        run = link_with(settings, *self._run.sources or (None, None), progress=self._progress)
        run.save(output)
        return str(link_changes(self._run, run))

    def _found(self, output: Path) -> str:
        """Find the people again; what changed."""
        assert isinstance(self._run, DedupeRun)
        from bayeslink.linking.dedupe import dedupe_with
        from bayeslink.linking.many import link_many_with
        from bayeslink.linking.updating_people import settings_again

        # What was known before is in the folder, too, with what is judged.
        settings = replace(
            settings_again(self._run), labels=self._folder, known_links=None, known_nonlinks=None
        )
        if isinstance(settings, ManySettings):
            if settings.files is None:
                raise _not_here()
            run = link_many_with(settings, settings.files, progress=self._progress)
        else:
            (source,) = self._run.sources or (settings.a,)
            if source is None:
                raise _not_here()
            run = dedupe_with(settings, source, progress=self._progress)
        run.save(output, people=(self._folder / "people.parquet").exists())
        return str(changes(self._run, run))

    def _output(self) -> Path:
        """The first name that is free."""
        name, number = f"{self._folder.name}-reviewed", 1
        folder = self._folder.parent / name
        while folder.exists():
            number += 1
            folder = self._folder.parent / f"{name}-{number}"
        return folder


def _not_here() -> InputError:
    return InputError(
        "the records came from Python and are not in the directory of the run. Find the people "
        "again there, with labels= and this directory."
    )
