"""Review of a run of people in a real browser, by keyboard."""

import pytest

import bayeslink as bl
from bayeslink.review.people_material import people_material_of
from bayeslink.review.people_view import numbered, verdicts_of
from tests.browser.accessible import barriers
from tests.browser.reviewing import Visit, stored
from tests.served import copied

FIELDS = [bl.name("gname"), bl.name("fname"), bl.date("dob")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    given = bl.simulate_duplicates(300, seed=3, sizes=(0.4, 0.3, 0.2, 0.1), errors=4)
    (folder / "data").mkdir()
    given.a.to_pandas().to_csv(folder / "data" / "a.csv", index=False)
    bl.dedupe(folder / "data" / "a.csv", FIELDS, draws=60, tune=60, chains=2).save(folder / "run")
    return folder / "run"


@pytest.fixture
def run(made, tmp_path):
    return copied(made, tmp_path)


def letters(visit):
    """The person of each record, as the page shows it."""
    return [box.strip() for box in visit.page.locator(".verdicts .person").all_inner_texts()]


def people(visit):
    """The same as numbers, as a verdict has it."""
    return [one if one == "?" else str(ord(one) - 64) for one in letters(visit)]


def until_records(visit, n):
    while len(letters(visit)) < n:
        visit.next("s")


@pytest.mark.short
def test_people_by_keyboard(browser, run, serve):
    visit, material = Visit(browser, serve(run)), people_material_of(bl.open_run(run))
    expected, seen = {}, []
    for turn in range(12):
        key, found = visit.case, people(visit)
        ids = [material.ids[r] for r in material.records_of(key)]
        seen.append(key)
        assert found == numbered(
            [str(material.structure.cluster[r]) for r in material.records_of(key)]
        )
        visit.press(*["c", "a", "x", ["2", "n"], ["2", "u"], "c"][turn % 6])
        if turn % 6 in (0, 5):
            visit.saved()
        now = people(visit)
        expected[key] = verdicts_of(ids, now)
        if turn % 6 == 1:
            assert set(now) == {"1"}
        elif turn % 6 == 2:
            assert len(set(now)) == len(now)
        elif turn % 6 == 3:
            assert now.count(now[1]) == 1
        elif turn % 6 == 4:
            assert now[1] == "?"
        else:
            assert now == found
        visit.next("Enter" if turn % 2 else " ")
        assert stored(run) == expected
    assert seen == [str(k + 1) for k in range(12)]
    assert visit.page.inner_text("#progress").startswith("12 of ")
    visit.check_quiet()


def test_parting_joining_and_undoing(browser, run, serve):
    visit = Visit(browser, serve(run))
    until_records(visit, 5)
    key, n = visit.case, len(letters(visit))
    visit.press("Enter")  # nothing is kept of a case that was not looked at
    visit.until_text("Press c")
    assert visit.case == key
    visit.press("a")
    assert letters(visit) == ["A"] * n
    visit.press("2", "t", "3", "t", "n")  # split in two
    assert letters(visit) == ["A", "B", "B", *["A"] * (n - 3)]
    visit.press("5", "n")
    assert letters(visit)[4] == "C"
    visit.press("2", "t", "5", "t", "l")  # who goes with one of them goes with all
    assert letters(visit) == ["A", "B", "B", "A", "B", *["A"] * (n - 5)]
    visit.press("3", "l")  # the whole person is that of record 1
    assert letters(visit) == ["A"] * n
    visit.press("z")
    assert letters(visit)[:5] == ["A", "B", "B", "A", "B"]
    assert stored(run) == {}
    visit.press("c")
    visit.saved()
    assert len(stored(run)[key]) == n * (n - 1) // 2
    visit.next()
    visit.press("z")
    visit.until(lambda: visit.case == key)
    assert stored(run) == {}
    visit.press("1", "l")
    visit.until_text("Choose a record")
    visit.check_quiet()


def test_evidence_comes_when_asked(browser, run, serve):
    visit = Visit(browser, serve(run))
    assert visit.page.locator(".evidence").count() == 0
    visit.press("p")
    visit.page.wait_for_selector(".evidence")
    assert "probability of membership" in visit.page.inner_text("#case")
    visit.press("p")
    visit.until(lambda: visit.page.locator(".evidence").count() == 0)
    visit.press("o")
    visit.page.wait_for_selector("#more-dialog[open]")
    visit.until_text("Find the people again", "#overview")
    assert "judge clusters drawn at random" in visit.page.inner_text("#overview")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_in_the_way_of_anybody(browser, run, serve, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    visit = Visit(browser, serve(run), **options)
    until_records(visit, 4)
    visit.press("2", "t", "3", "n", "p")
    visit.page.wait_for_selector(".evidence")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert barriers(visit.page) == []
    visit.press("?")
    visit.page.wait_for_selector("#help-dialog[open]")
    assert "one person" in visit.page.inner_text("#help-dialog")
    assert barriers(visit.page) == []


def test_by_touch(browser, run, serve):
    visit = Visit(browser, serve(run), viewport={"width": 400, "height": 800}, has_touch=True)
    until_records(visit, 3)
    key = visit.case
    visit.page.get_by_role("button", name="Tick record 1,").tap()
    visit.page.get_by_role("button", name="Tick record 3,").tap()
    visit.page.get_by_role("button", name="Same person").tap()
    assert letters(visit)[0] == letters(visit)[2]
    visit.page.get_by_role("button", name="As shown").tap()
    visit.saved()
    assert key in stored(run)
