"""A reviewer at the page, for the tests."""

from urllib.parse import urlsplit

from bayeslink.judging.judgements import FILE, Judgements


class Visit:
    """A reviewer at the page; what it asked for and complained of."""

    def __init__(self, browser, server, name="Anna", **options):
        self.server, self.requests, self.complaints = server, [], []
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("dialog", lambda d: (self.complaints.append(d.message), d.dismiss()))
        self.page.goto(server.address)
        self.page.wait_for_selector("#name-dialog[open]")
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        self.arrive()

    @property
    def case(self):
        return self.page.get_attribute("#case", "data-case")

    @property
    def status(self):
        return self.page.inner_text("#status")

    def arrive(self, before=None):
        """Wait until another case is on the screen and keys act on it."""
        self.until(lambda: self.case not in (None, before))
        self.until(lambda: self.page.evaluate("document.activeElement.id === 'main'"))
        self.page.wait_for_timeout(20)

    def until(self, holds):
        """Wait for something. (The page's policy stops Playwright's own way of doing so.)"""
        for _ in range(500):
            if holds():
                return
            self.page.wait_for_timeout(20)
        raise AssertionError("waited for 10 s in vain")

    def until_text(self, words, where="#status"):
        self.until(lambda: words in self.page.text_content(where))

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def saved(self):
        self.page.wait_for_selector("#status.saved")

    def next(self, key="Enter"):
        before = self.case
        self.press(key)
        self.arrive(before)

    def verdicts(self):
        """The verdict that the page shows on each pair."""
        shown = self.page.eval_on_selector_all(
            ".verdicts td[data-place]",
            """cells => cells.map((c) => [Number(c.dataset.place),
                c.querySelector("button[aria-pressed=true]")?.dataset.verdict ?? null])""",
        )
        return [verdict for _, verdict in sorted(shown)]

    def check_quiet(self):
        assert {urlsplit(url).netloc for url in self.requests} == {self.server.host}
        assert self.complaints == []


def stored(run, reviewer="Anna"):
    """Case -> verdicts, as the file has them."""
    with Judgements(run / FILE) as judgements:
        found = {}
        for one in judgements.current():
            if one.reviewer == reviewer:
                found.setdefault(one.case, {})[one.id_a, one.id_b] = one.verdict
    return found
