"""Clerical review in a real browser, by keyboard, with a server that may die at any time."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

import bayeslink as bl
from bayeslink.review.case_view import evidence, in_order
from bayeslink.review.material import material_of
from tests.browser.reviewing import Visit, stored
from tests.unit.report.test_page import HOSTILE


@pytest.mark.short
def test_ten_cases_by_keyboard_and_a_server_that_is_killed(browser, run, serve):
    material = material_of(bl.open_run(run))
    server = serve()
    visit = Visit(browser, server)
    page = visit.page
    assert not page.evaluate("location.href").count("token")
    expected, seen = {}, []
    for turn in range(10):
        if turn == 5:  # no time to say goodbye
            visit.check_quiet()
            server.process.kill()
            server.process.wait()
            page.keyboard.press("Enter")
            page.wait_for_selector("#status.error")
            assert "does not answer" in visit.status
            server = serve()
            visit = Visit(browser, server)
            page = visit.page
            assert stored(run) == expected
            assert page.inner_text("#progress").startswith("5 of ")
        key = visit.case
        seen.append(key)
        rows = in_order(material, key)
        verdict, press = [("link", "l"), ("nonlink", "n"), ("unsure", "u")][turn % 3]
        if turn % 5 == 4:
            verdict = "nonlink"
            visit.press("x" if len(rows) > 1 else "n")
        elif verdict == "link":
            visit.press("l")
            while None in visit.verdicts():
                visit.press("n")
        else:
            visit.press(*press * len(rows))
        visit.saved()
        shown = visit.verdicts()
        assert verdict in shown
        expected[key] = dict(zip(map(material.ids, rows), shown, strict=True))
        assert stored(run) == expected
        if turn not in (4, 9):
            visit.next("Enter" if turn % 2 else " ")
    assert seen == [str(i + 1) for i in range(10)]  # most worth first, none twice
    assert page.inner_text("#progress").startswith("10 of ")
    visit.check_quiet()


def test_a_link_settles_its_rivals_and_can_be_withdrawn(browser, run, serve):
    visit = Visit(browser, serve())
    while len(visit.verdicts()) < 2:
        visit.next("s")
    while visit.page.locator("table.group").count() > 1:
        visit.next("s")
    n = len(visit.verdicts())
    visit.press("ArrowRight", "l")
    visit.saved()
    assert visit.verdicts() == ["nonlink", "link", *["nonlink"] * (n - 2)]
    assert visit.page.get_by_text("as a rival is linked").count() == n - 1
    assert stored(run)[visit.case] is not None
    visit.press("2", "n")
    visit.until_text("open")
    assert visit.verdicts() == [None, "nonlink", *[None] * (n - 2)]
    assert "earlier judgement stands" in visit.status
    visit.press("1", "l")
    visit.saved()
    assert visit.verdicts() == ["link", *["nonlink"] * (n - 1)]
    assert sorted(stored(run)[visit.case].values()) == sorted(visit.verdicts())
    visit.check_quiet()


def test_a_case_is_not_left_before_it_is_judged_and_can_be_skipped(browser, run, serve):
    visit = Visit(browser, serve())
    first = visit.case
    visit.press("Enter")
    visit.page.wait_for_selector("#status.error")
    assert visit.case == first
    visit.next("s")
    assert visit.case == "2"
    assert stored(run) == {}
    visit.check_quiet()


def test_undo_brings_the_case_back(browser, run, serve):
    visit = Visit(browser, serve())
    visit.press("z")
    visit.until_text("nothing")
    for _ in range(2):
        visit.press(*"n" * len(visit.verdicts()))
        visit.saved()
        visit.next()
    assert stored(run).keys() == {"1", "2"}
    for case in ("2", "1"):
        before = visit.case
        visit.press("z")
        visit.arrive(before)
        assert visit.case == case
        assert set(visit.verdicts()) == {None}
        assert case not in stored(run)
    visit.check_quiet()


def test_judging_is_blind_until_p(browser, run, serve):
    material = material_of(bl.open_run(run))
    visit = Visit(browser, serve())
    page = visit.page
    rows = in_order(material, visit.case)
    chances = [material.candidates["link_probability"][row].as_py() for row in rows]
    assert not any("evidence" in url for url in visit.requests)
    assert page.locator(".evidence").count() == 0
    text = page.inner_text("#case")
    assert not any(f"{p:.3f}" in text for p in chances)
    visit.press("p")
    page.wait_for_selector(".evidence.sum")
    text = page.inner_text("#case")
    assert all(f"{p:.3f}" in text for p in chances)
    assert all(f"{p:.3f}" in visit.status for p in chances)  # rounded alike
    bars = page.locator(".evidence:not(.sum)")
    assert bars.count() == len(rows) * len(material.fields)
    together = [x["together"] for x in evidence(material, visit.case) if x["together"]]
    assert together  # or the page might leave it out
    told = page.locator(".evidence.sum .together").all_inner_texts()
    assert [text.split()[0] for text in told] == [f"{x:+.1f}".replace("-", "−") for x in together]
    visit.press("p")
    visit.until(lambda: page.locator(".evidence").count() == 0)
    visit.press("p")
    page.wait_for_selector(".evidence.sum")
    visit.next("s")
    assert page.locator(".evidence").count() == 0  # blind again
    visit.check_quiet()


def test_keys_do_not_judge_a_case_that_is_not_yet_seen(browser, run, serve):
    visit = Visit(browser, serve())
    first = visit.case
    visit.press(*"n" * len(visit.verdicts()))
    visit.saved()

    def slowly(route):
        visit.page.wait_for_timeout(300)
        route.continue_()

    visit.page.route("**/api/case/*", slowly)
    visit.press("Enter", "l", "l", "l")
    visit.arrive(first)
    visit.page.wait_for_timeout(100)
    assert set(visit.verdicts()) == {None}
    assert stored(run).keys() == {first}
    assert "link" not in stored(run)[first].values()


def test_two_reviewers_and_their_disagreement(browser, run, serve):
    server = serve()
    anna, ben = Visit(browser, server), Visit(browser, server, "Ben")
    assert (anna.case, ben.case) == ("1", "2")  # nobody judges what another is judging
    anna.press(*"n" * len(anna.verdicts()))
    anna.saved()
    ben.page.select_option("#queue", "second")
    ben.arrive("2")
    assert ben.case == "1"
    assert set(ben.verdicts()) == {None}
    ben.press("l")
    ben.press(*"n" * ben.verdicts().count(None))  # those that the link does not rule out
    ben.saved()

    anna.press("o")
    anna.until_text("Link again", "#overview")
    text = anna.page.inner_text("#overview")
    assert "Anna not a link, Ben link" in text
    assert "Anna and Ben" in text
    assert "κ" in text
    with anna.page.expect_download() as download:
        anna.page.get_by_role("button", name="CSV", exact=True).click()
    with download.value.path().open(newline="") as file:
        labels = list(csv.DictReader(file))
    assert {row["reviewer"] for row in labels} == {"Anna", "Ben"}
    anna.page.get_by_role("button", name="Case 1").first.click()
    anna.until(lambda: anna.page.locator("dialog[open]").count() == 0)
    anna.arrive()
    anna.press("p")
    anna.page.wait_for_selector(".evidence.sum")
    assert "Ben: link" in anna.page.inner_text("#case")
    for visit in (anna, ben):
        visit.check_quiet()


def test_a_random_sample_is_drawn_and_judged(browser, run, serve):
    visit = Visit(browser, serve())
    visit.press("o")
    visit.until_text("Link again", "#overview")
    visit.page.fill("#overview input[type=number]", "30")
    visit.page.get_by_role("button", name="Draw").click()
    visit.until_text("still to be judged", "#overview")
    left, drawn = sample_shown(visit)
    assert left == drawn >= 30
    visit.press("Escape")
    before = visit.case
    visit.page.select_option("#queue", "sample")
    visit.arrive(before)
    visit.press(*"n" * len(visit.verdicts()))
    visit.saved()
    visit.press("o")
    visit.until(lambda: sample_shown(visit)[0] < drawn)
    visit.check_quiet()


def sample_shown(visit):
    found = re.search(r"(\d+) of (\d+) pairs drawn", visit.page.text_content("#overview"))
    return int(found[1]), int(found[2])


BEYOND_THE_EDGE = """() => [...document.querySelectorAll("body *")].filter((e) =>
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    && !e.closest(".unseen")).map((e) => e.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("width", [400, 800, 1280, 2560])
def test_it_fits_from_400_to_2560_pixels(browser, run, serve, width):
    visit = Visit(browser, serve(), viewport={"width": width, "height": 900})
    page = visit.page
    for _ in range(6):
        visit.press("p")
        page.wait_for_selector(".evidence.sum")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(BEYOND_THE_EDGE) == []
        visit.next("s")
    for key in "o?":
        visit.press(key)
        page.wait_for_selector("dialog[open]")
        assert page.evaluate(BEYOND_THE_EDGE) == []
        visit.press("Escape")
    small = page.eval_on_selector_all(
        "button", "all => all.filter((b) => b.offsetParent && b.offsetHeight < 36).length"
    )
    assert small == 0  # fingers can hit them
    visit.check_quiet()


def test_it_can_be_done_by_touch_and_in_the_dark(browser, run, serve):
    options = {"viewport": {"width": 400, "height": 860}, "has_touch": True, "color_scheme": "dark"}
    visit = Visit(browser, serve(), **options)
    paper, ink = visit.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, c[4:-1].split(","))) for c in (paper, ink)]
    assert brightness[0] < 120 < 500 < brightness[1]
    for place in range(len(visit.verdicts())):
        visit.page.locator(f".verdicts td[data-place='{place}'] button").nth(2).tap()
    visit.saved()
    assert set(stored(run)["1"].values()) == {"unsure"}
    visit.page.locator("#next").tap()
    visit.arrive("1")
    assert visit.case == "2"
    visit.check_quiet()


def test_it_can_be_heard_and_single_keys_switched_off(browser, run, serve):
    visit = Visit(browser, serve())
    page = visit.page
    nameless = page.eval_on_selector_all(
        "button, select, input",
        """all => all.filter((e) => e.offsetParent
            && !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).length""",
    )
    assert nameless == 0
    assert page.get_by_role("table").count() >= 1
    assert " with " in page.get_by_role("group").first.get_attribute("aria-label")
    visit.press("u")
    visit.until_text("Unsure: pair 1", "#live")
    visit.press("?")
    page.wait_for_selector("#help-dialog[open]")
    page.uncheck("#keys-on")
    visit.press("Escape")
    before = visit.verdicts()
    visit.press("n", "x")
    page.wait_for_timeout(100)
    assert visit.verdicts() == before
    visit.check_quiet()


def test_hostile_values_are_inert_and_visible(browser, tmp_path, serve):
    """In ids, values, column names, the reviewer's name and the path of the run."""
    name, other = HOSTILE[0], HOSTILE[1]
    values = [*HOSTILE, "\u0410nna", "An\u200bna", "x" * 2000, "\u05d0\u05d1\u05d2", "a\u0301" * 9]
    for side, copies in (("a", 1), ("b", 2)):  # two of each in B: which is it?
        with (tmp_path / f"{side}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([HOSTILE[2], name, other, "plain"])
            for copy in range(copies):
                for number, value in enumerate(values):
                    writer.writerow([f"{value[:200]}{copy or ''}", value, value, f"n{number}"])
    fields = [bl.exact(name), bl.levenshtein(other), bl.exact("plain")]
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    made = bl.link(
        tmp_path / "a.csv", tmp_path / "b.csv", fields, id=HOSTILE[2], draws=60, tune=20, chains=2
    )
    made.save(folder)
    server = serve(folder, "--show", HOSTILE[2])
    material = material_of(bl.open_run(folder))
    assert material.cases.n_worth >= len(values)
    narrow = {"width": 400, "height": 900}
    visit = Visit(browser, server, "<b>{{7*7}}</b>", viewport=narrow)
    page, texts = visit.page, ""
    for left in reversed(range(material.cases.n_worth)):
        texts += page.inner_text("body")
        visit.press("p")
        page.wait_for_selector(".evidence.sum")
        assert page.locator("img, iframe, form, object, svg, b b, #case a").count() == 0
        assert page.locator("script").count() == 1
        assert page.evaluate(BEYOND_THE_EDGE) == []
        visit.press("x" if len(visit.verdicts()) > 1 else "n")
        visit.saved()
        if left:
            visit.next()
    for value in HOSTILE[:9]:
        assert value in texts, value
    for shown in ("U+202E", "U+200B", "U+0009", "more characters", "Cyrillic"):
        assert shown in texts, shown
    assert not set("\u202e\u200b\u0009") & set(texts.replace("\t", ""))
    visit.press("o")
    page.wait_for_selector("#more-dialog[open]")
    visit.until_text("<img src=x onerror=alert(1)>", "#overview")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    with download.value.path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for row in rows for cell in row)
    assert page.title() == "Review"
    visit.check_quiet()


def test_the_policy_holds_where_our_care_might_fail(browser, run, serve):
    """The negative control of the test above."""
    visit = Visit(browser, serve())
    page = visit.page
    outcome = page.evaluate(
        """async () => {
            const tried = { markup: true, fetch: true };
            try { document.body.innerHTML += "<b>x</b>"; } catch { tried.markup = false; }
            try { await fetch("https://example.org/"); } catch { tried.fetch = false; }
            const image = new Image();
            image.src = "https://example.org/x.png";
            await new Promise((done) => { image.onload = image.onerror = done; });
            tried.image = image.naturalWidth > 0;
            return tried;
        }"""
    )
    assert outcome == {"markup": False, "fetch": False, "image": False}
    assert len(visit.complaints) >= 2
    assert {urlsplit(url).netloc for url in visit.requests} <= {visit.server.host, "example.org"}


def test_another_site_changes_nothing(browser, run, serve, tmp_path):
    server = serve()
    visit = Visit(browser, server)
    body = {
        "case": "1",
        "version": material_of(bl.open_run(run)).version("1"),
        "reviewer": "Eve",
        "verdicts": [],
    }
    (tmp_path / "evil.html").write_text(
        f"""<script>
        fetch("http://{server.host}/api/judge", {{method: "POST", credentials: "include",
            mode: "no-cors", headers: {{"Content-Type": "text/plain"}},
            body: {json.dumps(json.dumps(body))}}}).finally(() => document.title = "done");
        </script><iframe src="http://{server.host}/"></iframe>"""
    )
    page = visit.context.new_page()
    page.goto((tmp_path / "evil.html").as_uri())
    page.wait_for_function("document.title === 'done'")  # no policy there
    assert stored(run, "Eve") == {}


def test_a_server_at_another_port_learns_nothing_that_opens_the_review(browser, run, serve):
    """Browsers tell it the cookies of 127.0.0.1, whichever port they came from."""
    got = {}

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            got.update(self.headers)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>other</title>")

        def log_message(self, *words):
            pass

    server = serve()
    visit = Visit(browser, server)
    with HTTPServer(("127.0.0.1", 0), Other) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        page = visit.context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        seen = page.evaluate("JSON.stringify([document.cookie, {...sessionStorage}, name])")
        tried = page.evaluate(
            f"""fetch("http://{server.host}/api/state", {{credentials: "include",
                headers: {{"X-Review-Token": "x"}}}}).then((r) => r.status, () => "refused")"""
        )
        other.shutdown()
    assert got["Host"] == f"127.0.0.1:{other.server_port}"
    assert server.token not in f"{got}{seen}"
    assert tried == "refused"
    for path in ("/api/state", "/api/case/1?reviewer=Eve", "/files/labels.csv"):
        assert server.ask(path, token="", Cookie=got.get("Cookie")).status == 403
    assert visit.context.cookies() == []


def test_a_reload_goes_on_and_a_tab_without_the_token_says_what_to_open(browser, run, serve):
    server = serve()
    visit = Visit(browser, server)
    page = visit.page
    page.reload()
    visit.arrive()
    assert page.url == f"http://{server.host}/"
    visit.press(*"n" * len(visit.verdicts()))
    visit.saved()
    visit.check_quiet()

    page = visit.page = visit.context.new_page()
    page.goto(f"http://{server.host}/")
    visit.until_text("Open the whole address that bayeslink review printed", "#remark")
    visit.press("s", "o")
    assert page.locator("dialog[open], button:visible").count() == 0
    page.evaluate("address => { location.href = address; }", server.address)  # as if pasted
    visit.arrive()
    assert page.url == f"http://{server.host}/"

    page.goto("about:blank")
    page.goto(f"http://{server.host}/#token=wrong")
    visit.until_text("Open the whole address that bayeslink review printed last", "#remark")


def test_the_address_that_a_browser_is_started_with_is_good_for_once(browser, run, tmp_path):
    """Others may see it among the arguments of the browser."""
    note = tmp_path / "address"
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{note}.new' && mv '{note}.new' '{note}'\n")
    script.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{script} %s", "DISPLAY": ":0"}
    words = [sys.executable, "-m", "bayeslink", "review", str(run)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
        try:
            printed = process.stdout.readline().decode().split()[-1]
            for _ in range(200):
                if note.exists():
                    break
                time.sleep(0.05)
            address = note.read_text()
            assert address.split("#")[0] == printed.split("#")[0]
            assert address != printed
            page = browser.new_context().new_page()
            page.goto(address)
            for _ in range(2):
                page.wait_for_selector("#name-dialog[open]")
                page.reload()
            page = browser.new_context().new_page()
            page.goto(address)
            page.wait_for_selector("footer", state="hidden")
            assert "printed" in page.inner_text("#remark")
        finally:
            process.kill()
