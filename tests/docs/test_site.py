"""The site builds without a warning, leads nowhere that is not there, and asks nobody outside."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import pytest

from tests.browser.conftest import browser  # noqa: F401
from tests.docs.blocks import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.leads, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        self.leads += [given[key] for key in ("href", "src") if given.get(key)]


def links_of(path):
    parsed = _Links()
    parsed.feed(path.read_text("utf-8"))
    return parsed


def test_no_link_is_dead(site):
    pages = {path: links_of(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 30
    dead = []
    for path, found in pages.items():
        for lead in found.leads:
            address, fragment = urldefrag(lead)
            if re.match(r"[a-z]+:", address):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            known = target in pages and (not fragment or unquote(fragment) in pages[target].ids)
            if not (known or (target.is_file() and target not in pages)):
                dead.append(f"{path.relative_to(site)} -> {lead}")
    assert not dead


def test_no_page_has_outside_parts(site):
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]*src=.?https?:", text)
        assert not re.findall(r"<link[^>]*rel=.?stylesheet[^>]*https?:", text)


@pytest.fixture(scope="module", params=["disk", "server"])
def address(request, site):
    if request.param == "disk":
        yield (site / "index.html").as_uri()
        return

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


def test_the_search_finds_and_no_request_leaves(address, browser):  # noqa: F811
    asked = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.click("input.md-search__input")
    page.get_by_text("Type to start searching").wait_for(timeout=60_000)  # the index is there
    page.keyboard.type("missing codes")
    page.wait_for_selector(".md-search-result__item", timeout=60_000)
    assert "missing codes" in page.inner_text(".md-search-result__list").lower()
    page.close()
    outside = [url for url in asked if not url.startswith(("file:", "http://127.0.0.1:", "data:"))]
    assert asked
    assert not outside
