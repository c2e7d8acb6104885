"""The report in a real browser: no request, no error, every chart there and answering."""

from pathlib import Path

import pyarrow as pa
import pytest

import bayeslink as bl
from tests.browser.accessible import barriers
from tests.unit.report.test_page import HOSTILE

CHARTS = [
    "sure", "weights", "path", "blocks", "links", "probabilities", "calibration", "trace",
    "waterfall",
]  # fmt: skip

LINES = """all => all.map((e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    return new Set([...range.getClientRects()].map((r) => r.top)).size;
})"""


class Visit:
    """A page opened with the network shut, unfolded; what it asked for and complained of."""

    def __init__(self, browser, path: Path, folded=False, **options):
        self.requests, self.complaints, self.dialogs = [], [], []
        context = browser.new_context(offline=True, **options)
        self.page = context.new_page()
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("dialog", lambda d: (self.dialogs.append(d.message), d.dismiss()))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body.scripted")
        if not folded:
            self.page.click("#open-all")

    def check_quiet(self, path):
        assert self.requests == [path.as_uri()]
        assert self.complaints == []
        assert self.dialogs == []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    files = bl.simulate(200, seed=2)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]
    run = bl.link(files.a, files.b, fields, draws=1000, tune=50, chains=2)
    return run.report(folder / "report.html", truth=files.truth)


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.short), 400])
def test_the_report_opens_quietly_and_every_chart_answers(browser, made, width):
    visit = Visit(browser, made, viewport={"width": width, "height": 900})
    page = visit.page
    tip = page.locator("#tip")
    for name in CHARTS:
        mark = page.locator(f"[data-chart={name}] .bl-mark:visible").first
        page.mouse.move(1, 1)
        assert not tip.is_visible(), name
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        assert tip.is_visible(), name
        assert len(tip.inner_text()) > 5, name
        box = tip.bounding_box()
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    visit.check_quiet(made)
    ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert ready < 2000  # ms


def test_text_in_charts_stays_inside_them(browser, made):
    for width in (1280, 400):
        page = Visit(browser, made, viewport={"width": width, "height": 900}).page
        outside = page.evaluate(
            """() => [...document.querySelectorAll("svg.bl-chart text")].filter((t) => {
                const box = t.getBoundingClientRect();
                const all = t.closest("svg").getBoundingClientRect();
                return box.width && (box.left < all.left - 1 || box.right > all.right + 1);
            }).map((t) => t.textContent)"""
        )
        assert outside == []


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_no_table_and_no_value_is_cut_off(browser, made, width):
    page = Visit(browser, made, viewport={"width": width, "height": 900}).page
    cut = """() => [...document.querySelectorAll(".scroll")]
        .filter((e) => e.scrollWidth > e.clientWidth + 1)
        .map((e) => e.getAttribute("aria-label"))"""
    assert page.evaluate(cut) == []
    bits = page.eval_on_selector_all(
        ".example td:nth-child(5)", "all => all.map((e) => e.getBoundingClientRect().right)"
    )
    assert max(bits) <= width
    collide = """() => [...document.querySelectorAll(".example tr")].flatMap((row) =>
        [...row.cells].filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
        .map((cell) => cell.textContent))"""
    long = "Wolfeschlegelsteinhausenbergerdorff-" * 3
    page.eval_on_selector_all(
        ".example td.value bdi", f"all => all.forEach((e) => {{ e.textContent = '{long}'; }})"
    )
    assert page.evaluate(collide) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_is_short_until_it_is_unfolded(browser, made):
    high = "document.documentElement.scrollHeight"
    visit = Visit(browser, made, folded=True, viewport={"width": 1280, "height": 900})
    page = visit.page
    short = page.evaluate(high)
    assert short < 3000  # pixels
    page.evaluate("location.hash = 'patterns'")
    page.wait_for_selector("#patterns table:visible")
    assert not page.locator("#fields table").is_visible()
    page.click("#open-all")
    assert page.evaluate(high) > 2 * short
    assert page.locator("#open-all").inner_text() == "Fold all"
    page.click("#open-all")
    assert page.evaluate(high) == pytest.approx(short, abs=40)
    visit.requests[1:] = []  # of the hash
    visit.check_quiet(made)


def test_prose_is_as_wide_as_tables_and_figures_have_no_hole(browser, made):
    for width, columns in ((1280, 3), (800, 3), (400, 2)):
        page = Visit(browser, made, viewport={"width": width, "height": 900}).page
        wide = page.eval_on_selector_all(
            ".lead, #fields details > p, .scroll",
            "all => [...new Set(all.map((e) => Math.round(e.getBoundingClientRect().width)))]",
        )
        assert len(wide) == 1
        lefts = page.eval_on_selector_all(
            "dl.facts div", "all => all.map((e) => Math.round(e.getBoundingClientRect().left))"
        )
        assert len(set(lefts)) == columns
        assert len(lefts) % columns == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_people_who_see_badly(browser, made, scheme):
    page = Visit(browser, made, color_scheme=scheme).page
    assert barriers(page) == []
    page.goto("about:blank")  # what the check can see
    page.set_content("<main><p style='color: #aaa; background: #fff'>pale</p></main>")
    assert "color-contrast" in [rule for rule, *_ in barriers(page)]


def test_words_of_tables_are_whole_and_examples_line_up(browser, made):
    phone = Visit(browser, made, viewport={"width": 400, "height": 900}).page
    lines = phone.eval_on_selector_all("#patterns th", LINES)
    assert set(lines) <= {1, 2}  # "Expected links" has two words
    desk = Visit(browser, made, viewport={"width": 1280, "height": 900}).page
    edges = desk.eval_on_selector_all(
        ".example th", "all => all.map((e) => [e.cellIndex, e.getBoundingClientRect().left])"
    )
    assert len({tuple(edge) for edge in edges}) == 6  # columns, the same in every example


def test_a_pattern_opens_to_a_pair_and_none_is_printed(browser, made):
    page = Visit(browser, made, viewport={"width": 400, "height": 900}).page
    page.evaluate("document.querySelectorAll('.pattern').forEach((e) => { e.open = false; })")
    first = page.locator("#patterns .pattern").first
    assert not first.locator(".example").is_visible()
    first.locator("summary").click()
    assert first.locator("table").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.emulate_media(media="print")
    assert not page.locator(".viewer").is_visible()


def test_menus_and_tables_answer(browser, made):
    visit = Visit(browser, made)
    page = visit.page
    traces = page.locator("[data-chart=trace]")
    assert traces.count() > 2
    assert [traces.nth(i).is_visible() for i in range(3)] == [True, False, False]
    page.select_option("select[data-group=trace]", "2")
    assert [traces.nth(i).is_visible() for i in range(3)] == [False, False, True]

    page.select_option("select[data-group=example]", "no link")
    keys = page.eval_on_selector_all(
        "#examples .example", "all => all.filter((e) => e.offsetHeight).map((e) => e.dataset.key)"
    )
    assert set(keys) == {"no link"}

    column = "#patterns tbody tr:not(.rest) td:last-child"
    read = "all => all.map((cell) => Number(cell.dataset.value))"
    page.click("#patterns th:last-child button")
    down = page.eval_on_selector_all(column, read)
    assert down == sorted(down, reverse=True)
    page.click("#patterns th:last-child button")
    assert page.eval_on_selector_all(column, read) == sorted(down)
    visit.check_quiet(made)


def test_it_reads_in_the_dark_on_paper_and_without_scripts(browser, made):
    dark = Visit(browser, made, folded=True, color_scheme="dark").page
    paper, ink = dark.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, c[4:-1].split(","))) for c in (paper, ink)]
    assert brightness[0] < 120 < 500 < brightness[1]

    dark.emulate_media(media="print")
    assert dark.locator("[data-chart=trace]").nth(1).is_visible()
    assert not dark.locator("#open-all").is_visible()
    light = dark.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light == "rgb(255, 255, 255)"

    plain = browser.new_context(offline=True, java_script_enabled=False).new_page()
    plain.goto(made.as_uri())
    assert not plain.locator("#open-all").is_visible()
    plain.click("#diagnostics summary")
    assert plain.locator("[data-chart=trace]").nth(1).is_visible()
    assert not plain.locator("select").first.is_visible()


def test_hostile_values_run_nothing_and_ask_for_nothing(browser, tmp_path):
    name = HOSTILE[0]
    numbers = [str(i) for i in range(len(HOSTILE))]
    table = pa.table({"id": HOSTILE, name: HOSTILE, HOSTILE[1]: numbers})
    fields = [bl.exact(name), bl.exact(HOSTILE[1])]
    run = bl.link(table, table.slice(0), fields, draws=40, tune=10, chains=2)
    path = run.report(tmp_path / "report.html", truth=[(h, h) for h in HOSTILE])
    visit = Visit(browser, path)
    for mark in visit.page.locator(".bl-mark:visible").all()[:20]:
        mark.hover(force=True)
    visit.page.wait_for_timeout(200)
    visit.check_quiet(path)
    assert visit.page.title().endswith("links between pyarrow.Table and pyarrow.Table")
    assert visit.page.locator("script").count() == 1
    assert visit.page.locator("img, iframe, form, object").count() == 0
    assert visit.page.get_by_text(HOSTILE[0]).count() > 0


def test_a_script_that_is_not_ours_is_stopped(browser, made, tmp_path):
    """The policy holds even where escaping fails: the negative control of the test above."""
    attacked = tmp_path / "attacked.html"
    broken = "<script>document.title = 'run'</script><img src='https://example.org/x'>"
    attacked.write_text(made.read_text("utf-8").replace("</main>", broken + "</main>"), "utf-8")
    visit = Visit(browser, attacked)
    visit.page.wait_for_timeout(200)
    assert visit.page.title() != "run"
    assert len(visit.complaints) >= 2


def test_on_paper_headings_stay_with_what_follows(browser, made):
    """And what is for narrow screens does not apply to paper, which is as narrow."""
    page = Visit(browser, made, viewport={"width": 680, "height": 960}).page
    page.emulate_media(media="print")
    rules = page.eval_on_selector_all(
        "h2, h3, h2 + p:not(:last-child)",
        "all => [...new Set(all.map((e) => getComputedStyle(e).breakAfter))]",
    )
    assert rules == ["avoid"]
    heights = page.eval_on_selector_all(
        "#examples .example", "all => all.map((e) => e.getBoundingClientRect().height)"
    )
    assert max(heights) < 960 / 3
    head = page.locator("#examples .example thead").first.bounding_box()
    assert head["width"] > 200  # a table still
