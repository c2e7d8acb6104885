"""The report of a deduplication in a real browser: nothing collides, whatever the width."""

import pytest

import bayeslink as bl
from tests.browser.accessible import barriers
from tests.browser.test_report import Visit

CHARTS = ["sure", "sizes", "cluster", "people", "weights", "trace"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    given = bl.simulate_duplicates(300, seed=5, sizes=(0.5, 0.2, 0.1, 0.1, 0.1))
    fields = [bl.name("gname"), bl.name("fname"), bl.date("dob"), bl.postcode("postcode")]
    run = bl.dedupe(given.a, fields, draws=200, tune=100, chains=2)
    return run.report(tmp_path_factory.mktemp("report") / "report.html", truth=given.truth)


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_every_chart_answers_and_no_words_collide(browser, made, width):
    visit = Visit(browser, made, viewport={"width": width, "height": 900})
    page = visit.page
    for name in CHARTS:
        mark = page.locator(f"[data-chart={name}] .bl-mark:visible").first
        page.mouse.move(1, 1)
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        assert len(page.locator("#tip").inner_text()) > 5, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """() => [...document.querySelectorAll("svg.bl-chart text")].filter((t) => {
        const box = t.getBoundingClientRect();
        const all = t.closest("svg").getBoundingClientRect();
        return box.width && (box.left < all.left - 1 || box.right > all.right + 1);
    }).map((t) => t.textContent)"""
    assert page.evaluate(outside) == []
    collide = """() => [...document.querySelectorAll("[data-chart=cluster] svg")].flatMap((svg) => {
        const all = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()])
            .filter(([t, box]) => box.width);
        return all.flatMap(([t, p], i) => all.slice(0, i).filter(([u, q]) =>
            p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 &&
            q.top < p.bottom - 3).map(([u, q]) => t.textContent + " on " + u.textContent));
    })"""
    assert page.evaluate(collide) == []
    visit.check_quiet(made)


def test_the_page_is_short_until_a_list_is_asked_for(browser, made):
    page = Visit(browser, made, folded=True, viewport={"width": 1280, "height": 900}).page
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    assert not page.locator("#doubt article").first.is_visible()
    page.locator("a[href='#doubt']").click()
    page.wait_for_selector("#doubt article:visible")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(browser, made, scheme):
    page = Visit(browser, made, color_scheme=scheme, viewport={"width": 400, "height": 900}).page
    assert barriers(page) == []
