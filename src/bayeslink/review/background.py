"""The review page served from Python, beside what the process does."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from html import escape
from pathlib import Path
from typing import Any

from bayeslink.errors import SettingsError
from bayeslink.review.material import Material, material_of
from bayeslink.review.people_material import PeopleMaterial, people_material_of
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.opening import open_run, saved_in
from bayeslink.runs.run import Run


class ReviewPage:
    """A review page that is being served. Judgements are kept as they are made."""

    def __init__(self, address: str, folder: Path, end: Callable[[], None]) -> None:
        self.address, self.folder, self._end = address, folder, end

    def close(self) -> None:
        """Serve it no longer."""
        self._end()

    def __enter__(self) -> ReviewPage:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Review at {self.address}\n.close() ends it; what is judged is saved."

    def _repr_html_(self) -> str:
        link = f'<a href="{escape(self.address)}" target="_blank" rel="noreferrer">Review</a>'
        return f"<p>{link} what is in doubt. .close() ends it; what is judged is saved.</p>"


def review(
    run: Run | DedupeRun, directory: Any = None, *, show: Sequence[str], port: int, browser: bool
) -> ReviewPage:
    """Serve the page of a run: see `Run.review` and `DedupeRun.review`."""
    require_server()
    if directory is not None:
        if run.directory is not None:
            raise SettingsError(
                f"this run is that of {run.directory}, where judgements are kept. Leave the "
                "directory out."
            )
        run.save(directory)
        run = open_run(directory, **_tables_of(run))
    saved_in(run)
    page, address_for_once = _served(material_for(run, show), port)
    if browser:
        open_browser(address_for_once)
    return page


def material_for(
    run: Run | DedupeRun, show: Sequence[str], names: tuple[str, str] = ("a", "b")
) -> Material | PeopleMaterial:
    """What there is to review of a run, of links or of people."""
    if isinstance(run, DedupeRun):
        return people_material_of(run, show)
    return material_of(run, show, names)


def _tables_of(run: Run | DedupeRun) -> dict[str, Any]:
    """The inputs that a run directory does not lead to."""
    given = zip("ab", run.sources or (), strict=False)
    return {name: source for name, source in given if not isinstance(source, str | os.PathLike)}


def _served(material: Material | PeopleMaterial, port: int) -> tuple[ReviewPage, str]:
    """The page in a thread, once it can be visited, and an address that is good for one visit."""
    from bayeslink.review.server import serve

    ready: Future[tuple[str, str]] = Future()
    servers: list[Any] = []

    def work() -> None:
        try:
            serve(
                material,
                port=port,
                ready=lambda *addresses: ready.set_result(addresses),
                log=lambda line: None,
                started=servers.append,
            )
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    address, address_for_once = ready.result()

    def end() -> None:
        while thread.is_alive():
            for server in servers:
                server.should_exit = True
            thread.join(0.05)

    return ReviewPage(address, material.folder, end), address_for_once


def require_server() -> None:
    """Refuse where the extra is not installed."""
    if not (all(map(importlib.util.find_spec, ("starlette", "uvicorn")))):
        raise SettingsError(
            "the review page needs Starlette and uvicorn. Install them with pip install "
            "'bayeslink[review]'. `--plan` and `bayeslink evaluate --labels` do without."
        )


def open_browser(address: str) -> None:
    """Open a browser, where there is a screen; one in the terminal would take it over."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        return
    threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
