"""What reviewers stumbled over, each once: names, undo, disputes, narrow and wide windows."""

import pytest

import bayeslink as bl
from bayeslink.runs.audits import draw_sample
from tests.browser.accessible import barriers
from tests.browser.reviewing import Visit, stored


def several(visit):
    """Go to a case of several pairs of one record."""
    while len(visit.verdicts()) < 2 or visit.page.locator("table.group").count() > 1:
        visit.next("s")


def test_after_a_change_of_name_keys_judge_again(browser, run, serve):
    visit = Visit(browser, serve())
    page = visit.page
    page.click("#who")
    page.wait_for_selector("#name-dialog[open]")
    page.keyboard.type("Ben")
    visit.press("Enter")
    visit.arrive()
    visit.press("Enter")  # not judged yet: it says so, and opens nothing
    page.wait_for_selector("#status.error")
    assert page.locator("dialog[open]").count() == 0
    visit.press(*"n" * len(visit.verdicts()))
    visit.saved()
    assert stored(run, "Ben").keys() == {visit.case}

    page.click("#who")
    page.wait_for_selector("#name-dialog[open]")
    visit.press("Escape", "Enter")
    visit.arrive("1")
    assert page.locator("dialog[open]").count() == 0
    assert page.inner_text("#who") == "Ben"


def test_undo_takes_back_what_is_not_saved_and_leaves_the_case_before(browser, run, serve):
    visit = Visit(browser, serve())
    visit.press(*"n" * len(visit.verdicts()))
    visit.saved()
    visit.next()
    several(visit)
    here, before = visit.case, stored(run)
    visit.press("u")
    assert visit.verdicts()[0] == "unsure"
    visit.press("z")
    visit.until_text("not saved yet")
    assert visit.case == here
    assert set(visit.verdicts()) == {None}
    assert stored(run) == before
    visit.press("z")  # nothing unsaved is left: now the case before
    visit.arrive(here)
    assert visit.case == "1"
    assert stored(run) == {}


def test_the_button_says_what_it_will_do(browser, run, serve):
    visit = Visit(browser, serve())
    button = visit.page.locator("#reveal")
    assert button.inner_text().startswith("Show evidence")
    visit.press("p")
    visit.page.wait_for_selector(".evidence.sum")
    visit.until(lambda: button.inner_text().startswith("Hide evidence"))
    visit.next("s")
    assert button.inner_text().startswith("Show evidence")


def test_a_dispute_is_marked_with_how_to_settle_it(browser, run, serve):
    server = serve()
    anna, ben = Visit(browser, server), Visit(browser, server, "Ben")
    anna.press(*"n" * len(anna.verdicts()))
    anna.saved()
    ben.page.select_option("#queue", "second")
    ben.arrive("2")
    ben.press("l")
    ben.press(*"n" * ben.verdicts().count(None))
    ben.saved()
    assert ben.page.locator(".disputed").count() == 0  # he judged without knowing

    anna.page.select_option("#queue", "disagreements")
    anna.until(lambda: anna.page.locator("thead .disputed").count() == 1)
    assert "settled when all who judged" in anna.page.inner_text(".how")
    place = int(anna.page.get_attribute("thead [data-place]:has(.disputed)", "data-place"))
    anna.press(str(place + 1), "l")
    anna.saved()
    anna.until(lambda: anna.page.locator(".disputed").count() == 0)


def test_progress_and_queue_stay_in_sight(browser, run, serve):
    visit = Visit(browser, serve(), viewport={"width": 1000, "height": 600})
    visit.press("p")
    visit.page.wait_for_selector(".evidence.sum")
    visit.page.evaluate("document.getElementById('main').style.minHeight = '3000px'")
    visit.page.mouse.wheel(0, 900)
    visit.until(lambda: visit.page.evaluate("window.scrollY") > 500)
    assert visit.page.locator("header").bounding_box()["y"] == 0
    assert visit.page.locator("#queue").bounding_box()["y"] > 0


def test_on_a_phone_verdicts_are_in_sight(browser, run, serve):
    visit = Visit(browser, serve(), viewport={"width": 400, "height": 700}, has_touch=True)
    page = visit.page
    several(visit)
    for place in range(len(visit.verdicts())):
        button = page.locator("#quick [data-quick=nonlink]")
        box = button.bounding_box()
        assert 0 <= box["y"] <= 700 - box["height"]
        assert f"Pair {place + 1} of" in page.inner_text("#quick-of")
        button.tap()
    visit.saved()
    assert set(stored(run)[visit.case].values()) == {"nonlink"}
    visit.check_quiet()


def test_on_a_wide_screen_the_case_is_in_the_middle(browser, run, serve):
    visit = Visit(browser, serve(), viewport={"width": 2560, "height": 1200})
    lefts, rights = visit.page.evaluate(
        """() => { const boxes = [...document.querySelectorAll("table.group")]
            .map((e) => e.getBoundingClientRect());
            return [boxes.map((b) => b.left), boxes.map((b) => b.right)]; }"""
    )
    assert min(lefts) + max(rights) == pytest.approx(2560, abs=20)
    title = visit.page.locator(".title").bounding_box()
    assert title["x"] == pytest.approx(min(lefts), abs=2)


def test_bars_for_and_against_differ_in_forced_colours(browser, run, serve):
    visit = Visit(browser, serve(), forced_colors="active")
    fills = set()
    while len(dict(fills)) < 2:
        visit.press("p")
        visit.page.wait_for_selector(".evidence.sum")
        found = visit.page.eval_on_selector_all(
            ".bar", "all => all.map((e) => [e.className, getComputedStyle(e).backgroundColor])"
        )
        fills |= {tuple(one) for one in found}
        visit.next("s")
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dict(fills)["bar"] != paper
    assert dict(fills)["bar against"] == paper


def test_the_chosen_pair_is_seen_in_forced_colours(browser, run, serve):
    screen = {"width": 400, "height": 900}
    page = Visit(browser, serve(), forced_colors="active", viewport=screen).page
    edges = page.eval_on_selector_all(
        ".stacked tbody td:not(.first)",
        "all => all.map((e) => [e.matches('.chosen'), getComputedStyle(e).borderLeftColor])",
    )
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert {chosen for chosen, _ in edges} >= {True}
    assert all((edge != paper) == chosen for chosen, edge in edges)


def test_a_case_prints_without_its_buttons(browser, run, serve):
    visit = Visit(browser, serve(), color_scheme="dark")
    n = len(visit.verdicts())
    visit.press(*"n" * n)
    visit.saved()
    visit.page.emulate_media(media="print")
    assert visit.page.locator(".choices button").filter(visible=True).count() == n  # verdicts
    assert not visit.page.locator("footer, .tools").filter(visible=True).count()
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert visit.page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 28, 26)"


def test_a_judged_sample_shows_its_estimate(browser, run, serve):
    draw_sample(run, 8)
    visit = Visit(browser, serve())
    visit.page.select_option("#queue", "sample")
    visit.arrive(visit.case)
    while visit.case is not None:
        visit.press("x" if len(visit.verdicts()) > 1 else "n")
        visit.saved()
        before = visit.case
        visit.press("Enter")
        visit.until(lambda: visit.case != before)  # noqa: B023
    said = visit.page.inner_text("#case .quality")
    for word in ("precision", "recall", "true links"):
        assert word in said
    visit.check_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_people_who_see_badly(browser, run, serve, scheme):
    visit = Visit(browser, serve(), color_scheme=scheme)
    page = visit.page
    assert barriers(page) == []
    visit.press("p", "u")
    page.wait_for_selector(".evidence.sum")
    assert barriers(page) == []
    for key in "?o":
        visit.press(key)
        page.wait_for_selector("dialog[open]")
        if key == "o":
            visit.until_text("Link again", "#overview")
        assert barriers(page) == []
        visit.press("Escape")
    page.set_viewport_size({"width": 400, "height": 800})
    assert barriers(page) == []


def test_the_queue_is_read_whole_on_a_phone(browser, serve):
    options = {"viewport": {"width": 400, "height": 850}}
    page = Visit(browser, serve(), name="Wilhelmina Fitzgerald", **options).page
    needed = """(select) => {
        const style = getComputedStyle(select), canvas = document.createElement("canvas");
        const pen = canvas.getContext("2d");
        pen.font = `${style.fontSize} ${style.fontFamily}`;
        const words = [...select.options].map((option) => pen.measureText(option.text).width);
        return Math.max(...words) + 2 * parseFloat(style.paddingLeft) + 20;  // its arrow
    }"""
    queue = page.locator("#queue")
    assert queue.evaluate("(select) => select.clientWidth") >= queue.evaluate(needed)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_evidence_is_beside_all_values_or_below_all(browser, serve):
    visit = Visit(browser, serve(), viewport={"width": 1800, "height": 900})
    page = visit.page
    several(visit)
    visit.press("p")
    page.wait_for_selector(".evidence.sum")
    below = """() => [...document.querySelectorAll(".line .evidence")].map((one) => {
        const value = one.parentElement.firstElementChild;
        return one.offsetTop >= value.offsetTop + value.offsetHeight - 2;
    })"""
    assert page.locator("table.roomy").count() == 1
    assert set(page.evaluate(below)) == {False}
    page.locator("td[data-place='1'] .value").first.evaluate(
        "(value) => { value.textContent = 'Adelheid-Wilhelmine zu '.repeat(3); }"
    )
    visit.press("p", "p")
    page.wait_for_selector(".evidence.sum")
    visit.until(lambda: set(page.evaluate(below)) == {True})
    assert page.locator("table.roomy").count() == 0


def test_columns_of_different_names_are_both_told(browser, tmp_path, serve):
    files = bl.simulate(120, seed=4)
    names = ["first name" if name == "gname" else name for name in files.b.column_names]
    fields = [bl.levenshtein("gname", columns=("gname", "first name")), bl.exact("fname")]
    run = bl.link(files.a, files.b.rename_columns(names), fields, draws=100, tune=50, chains=2)
    run.save(tmp_path / "named", keep_inputs=True)
    visit = Visit(browser, serve(tmp_path / "named"))
    labels = visit.page.locator("tbody th[role=rowheader]").all_inner_texts()
    assert "A: gname" in labels[0]
    assert "B: first name" in labels[0]
    assert labels[1].strip() == "fname"
