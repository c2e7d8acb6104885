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

pytestmark = pytest.mark.full  # the site is built


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


def test_every_list_and_table_is_one(site):
    """Python-Markdown takes a list right below a paragraph for its next lines; GitHub does not."""
    lost = {
        (path.name, text[:60])
        for path in site.rglob("*.html")
        for text in re.findall(r"<p>(.*?)</p>", path.read_text("utf-8"), re.DOTALL)
        if re.search(r"\n(?:[-*|>] |\d+\. )", text)
    }
    assert not lost


PAGES = [
    "index",
    "tutorial",
    "notebook",
    "concepts",
    "calibration",
    "reference/command-line",
    "head-to-head",
]


@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_pages_fit_the_screen_and_printed_output_is_wrapped(site, browser, width):  # noqa: F811
    page = browser.new_page(viewport={"width": width, "height": 900})
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        cut = page.eval_on_selector_all(
            ":is(.language-console, .language-text) code, .md-content img",
            "all => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)",
        )
        assert cut == [], name
    page.close()


def test_charts_are_dark_in_the_dark_and_tables_whole_on_paper(site, browser):  # noqa: F811
    page = browser.new_page(color_scheme="dark")
    page.goto((site / "concepts.html").as_uri())
    turned = "all => all.map((e) => getComputedStyle(e).filter.startsWith('invert(1)'))"
    charts = page.eval_on_selector_all(".md-content img", turned)
    assert charts
    assert all(charts)
    page.locator("label[for=__palette_0]").click()  # the switch, to light
    assert not any(page.eval_on_selector_all(".md-content img", turned))
    page.close()

    page = browser.new_page(viewport={"width": 680, "height": 900})  # A4 without its margins
    page.emulate_media(media="print")
    page.goto((site / "calibration.html").as_uri())
    right = "all => all.map((e) => e.getBoundingClientRect().right)"
    assert max(page.eval_on_selector_all("table", right)) <= 680
    assert not page.locator(".md-sidebar, .md-header, .md-code__nav").filter(visible=True).count()
    page.close()
