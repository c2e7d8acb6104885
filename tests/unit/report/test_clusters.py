"""The report of a deduplication: what it says, what it hides, and its pictures of clusters."""

import json
import re
import stat
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError
from bayeslink.report.cluster_examples import MOST, probability, records_shown
from bayeslink.report.cluster_picture import Arc, Node, picture
from bayeslink.report.svg import NARROW, WIDE
from bayeslink.runs.notes import ranked
from tests.unit.report.test_page import HOSTILE, Page

ORDER = [
    "sizes", "compared", "doubt", "largest", "hanging", "forms", "people", "fields", "diagnostics",
    "repeat",
]  # fmt: skip
FEW = {"draws": 60, "tune": 60, "chains": 2}
FIELDS = [bl.name("gname"), bl.name("fname"), bl.date("dob"), bl.postcode("postcode")]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A file with duplicates, and the truth, in a folder."""
    folder = tmp_path_factory.mktemp("given")
    made = bl.simulate_duplicates(300, seed=5, sizes=(0.5, 0.2, 0.1, 0.1, 0.1))
    pyarrow.csv.write_csv(made.a, folder / "file.csv")
    pyarrow.csv.write_csv(made.truth, folder / "truth.csv")
    return folder


@pytest.fixture(scope="module")
def run(given):
    return bl.dedupe(given / "file.csv", FIELDS, **FEW)


@pytest.fixture(scope="module")
def saved(run, given):
    run.save(given / "out")
    return given / "out"


def text_of(run, tmp_path, **options):
    return run.report(tmp_path / "report.html", **options).read_text("utf-8")


def finished(text):
    """A page without the time at which its run was finished."""
    return re.sub(r"Finished [^<]+", "", text)


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


# --- what it says -----------------------------------------------------------------------------


def test_sections_come_in_the_order_of_reading(run, tmp_path):
    page = Page(text_of(run, tmp_path))
    assert page.sections == ORDER
    assert not [a for a in page.attributes if str(a.get("src", a.get("href", "#")))[:1] not in "#d"]


def test_a_run_and_its_directory_make_the_same_page(run, saved, tmp_path):
    here, there = (text_of(source, tmp_path) for source in (run, bl.open_run(saved)))
    assert finished(here) == finished(there)


def test_the_finding_is_that_of_the_run(run, tmp_path):
    s, text = run.summary(), Page(text_of(run, tmp_path)).text
    low, high = run.entities.interval()
    assert f"{low:,} to {high:,} people in file.csv" in text
    assert f"The 300 records of file.csv are of {low:,} to {high:,} people" in text
    assert f"{s['records_in_doubt']} records in doubt" in text
    assert f"They were put into {len({*run.table['entity_id'].to_pylist()}):,} clusters" in text


def test_a_grave_note_stands_above_the_finding_and_in_the_headline(run, tmp_path):
    note = "The chains disagree on people: they may sit in different modes."
    calm = tuple(n.text for n in ranked(run.warnings) if not n.grave)
    for warnings, grave in ((calm, False), ((*calm, note), True)):
        text = text_of(replace(run, warnings=warnings), tmp_path)
        assert ("<h1>Not to be used yet: " in text) == grave
        assert ("<h2>First</h2>" in text) == grave
    assert text.index("Do not use the numbers yet") < text.index('class="lead"')
    assert text.count("Do not use the numbers yet") == 1


def test_people_by_number_of_records_are_those_of_the_draws(run, tmp_path):
    rows = [row for row in Page(text_of(run, tmp_path)).rows if re.fullmatch("[1-9]", row[0])]
    size = run.table["size"].to_numpy()
    sizes = run.entities.of_size
    told = [row for row in rows if len(row) == 5]
    assert len(told) >= 5
    for records, people, between, _, clusters in told:
        drawn = sizes[:, :, int(records)]
        tail = (1 - 0.95) / 2
        low, high = np.quantile(drawn, (tail, 1 - tail), method="inverted_cdf")
        assert people == f"{drawn.mean():,.1f}"
        assert between == f"{low:.0f}–{high:.0f}"
        assert int(clusters) == (size == int(records)).sum() / int(records)


def test_truth_adds_how_well_it_went(run, given, tmp_path):
    found = run.evaluate(given / "truth.csv")
    text = Page(text_of(run, tmp_path, truth=given / "truth.csv")).text
    assert f"{found.exact_clusters} of {found.n_clusters} clusters are a person" in text
    assert f"recall {found.recall:.4f}" in text
    assert "Against the truth" not in text_of(run, tmp_path)


def test_records_in_doubt_are_shown_the_least_sure_first(run, tmp_path):
    doubt = text_of(run, tmp_path).split('id="doubt"')[1].split("</section>")[0]
    sure = run.table["membership_probability"].to_numpy()
    least = run.table["id"].to_numpy(zero_copy_only=False)[sure == sure.min()]
    assert set(re.findall(r"A\d{6}", doubt.split("</article>")[0])) & {*least}


# --- what it hides ----------------------------------------------------------------------------


def test_without_values_no_cell_and_no_id_is_in_the_page(run, given, tmp_path):
    records = pa.csv.read_csv(
        given / "file.csv",
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in ("dob", "postcode")}
        ),
    )
    names = ("id", "gname", "fname", "dob", "postcode")
    known = {str(v) for name in names for v in records[name].to_pylist() if v and len(str(v)) > 4}
    text = text_of(run, tmp_path)
    assert len([value for value in known if value in text]) > 50
    hidden = text_of(run, tmp_path, values=False)
    page = Page(hidden)
    told = page.text + " ".join(str(v) for a in page.attributes for v in a.values())
    assert not [value for value in known if re.search(rf"\b{re.escape(value)}\b", told)]
    assert "left out, as asked" in told
    assert hidden.count('class="example"') == text.count('class="example"')


def test_without_its_file_a_run_shows_what_was_saved(run, saved, given, tmp_path):
    """The file may be gone, or have changed; with_entities has its records as they were."""
    moved, bare = given / "moved.csv", tmp_path / "bare"
    run.save(bare, people=False)
    page = text_of(run, tmp_path)
    (given / "file.csv").rename(moved)
    try:
        assert finished(text_of(bl.open_run(saved), tmp_path)) == finished(page)
        gone = text_of(bl.open_run(bare), tmp_path)
        there = text_of(bl.open_run(bare, a=moved), tmp_path)
        text = moved.read_text("utf-8")
        moved.write_text(text.replace("0", "1", 1), "utf-8")
        with pytest.raises(InputError, match="has changed since the run read it"):  # it was named
            text_of(bl.open_run(bare, a=moved), tmp_path)
        moved.write_text(text, "utf-8")
    finally:
        moved.rename(given / "file.csv")
    assert finished(there) == finished(page)
    assert "cannot be shown: the input is not there as it was" in gone
    assert str(given) not in gone
    assert gone.count('class="example"') == page.count('class="example"')
    assert re.search(r">A\d{6}", gone)  # ids are there


def test_hostile_values_stay_text(tmp_path):
    twice = [value for value in HOSTILE for _ in range(2)]
    table = pa.table({"id": [f"{v}{i}" for i, v in enumerate(twice)], "x": twice, "y": twice})
    made = bl.dedupe(table, [bl.exact("x"), bl.levenshtein("y")], id="id", **FEW)
    text = text_of(made, tmp_path)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [a for a in page.attributes if any(name.startswith("on") for name in a)]
    assert not {c for c in text if not c.isprintable() and c != "\n"}


# --- several files ----------------------------------------------------------------------------


def three_files(numbered=False):
    """One file with duplicates in three parts, the last with other column names."""
    given = bl.simulate_duplicates(240, seed=4, sizes=(0.4, 0.4, 0.2)).a
    of, files = np.random.default_rng(1).integers(0, 3, len(given)), {}
    for k, name in enumerate(("census", "survey", "tax")):
        part = given.filter(pa.array(of == k))
        if name == "tax":
            own = {"gname": "Vorname", "dob": "geboren"}
            part = part.rename_columns([own.get(c, c) for c in part.column_names])
        files[name] = part.drop_columns(["id"]) if numbered else part
    return files


@pytest.mark.parametrize("numbered", [False, True])
def test_several_files_are_told_by_name(numbered, tmp_path):
    how = {"id": None} if numbered else {}
    made = bl.link_many(three_files(numbered), FIELDS, **FEW, **how)
    here = text_of(made, tmp_path)
    assert "people in census, survey and tax" in here
    assert ">census:" in here
    rows = [row for row in Page(here).rows if row[0] == "census, survey, tax"]
    (everywhere,) = [r for r in made.people_by_files() if r["files"].count("+") == 2]
    assert rows[0][1] == f"{everywhere['people']:,.1f}"
    made.save(tmp_path / "out")
    there = text_of(bl.open_run(tmp_path / "out"), tmp_path)
    assert finished(here) == finished(there)
    assert not re.search(r"(census|survey|tax):[A\d]", text_of(made, tmp_path, values=False))


def test_several_files_without_their_records_show_ids(tmp_path):
    made = bl.link_many(three_files(), FIELDS, **FEW)
    made.save(tmp_path / "out", people=False)
    text = text_of(bl.open_run(tmp_path / "out"), tmp_path)
    assert "and the run was saved without its records" in text
    assert ">census:" in text


# --- the command ------------------------------------------------------------------------------


def test_the_command_writes_it_beside_the_run(saved, given, tmp_path):
    done = call("report", saved, "--truth", given / "truth.csv", "--json")
    assert done.exit_code == 0, done.output
    written = saved / "report.html"
    assert json.loads(done.stdout) == {"report": str(written)}
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert call("report", saved, "--no-values", "-o", tmp_path / "x.html").exit_code == 0
    assert "left out, as asked" in (tmp_path / "x.html").read_text("utf-8")
    for words in (("--disclosure", "10"), ("--b", given / "file.csv")):
        refused = call("report", saved, *words)
        assert refused.exit_code == 2
        assert f"{words[0]} is for linkages" in refused.output


def test_a_run_with_no_directory_asks_where_to(run):
    with pytest.raises(bl.SettingsError, match="name the file"):
        run.report()


def test_a_directory_without_its_theta_is_refused(saved, tmp_path):
    told = json.loads((saved / "run.json").read_text("utf-8"))
    assert told.pop("theta") > 0
    (tmp_path / "run.json").write_text(json.dumps(told), "utf-8")
    with pytest.raises(InputError, match="theta"):
        bl.open_run(tmp_path)


# --- the picture ------------------------------------------------------------------------------


def labels_of(svg):
    """The middles of the numbers on arcs, and what they say."""
    found = re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)"[^>]*text-anchor="middle">([^<]+)', svg)
    return [(float(x), float(y), words) for x, y, words in found]


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("values", [0, 1, 6])
def test_numbers_on_arcs_never_meet(width, values):
    cells = tuple((f"field{k}", "a value of some length", False) for k in range(values))
    heights = [cells[: k % (values + 1)] for k in range(MOST)]
    nodes = [Node(f"record {k}", "0.99", own) for k, own in enumerate(heights)]
    every = [(a, b) for b in range(MOST) for a in range(b)]
    arcs = [Arc(a, b, "+22", "curve", "tip") for a, b in every]
    svg = picture("A cluster", [("", nodes[:5]), ("another", nodes[5:])], arcs).svg(width)
    found = labels_of(svg)
    assert len(found) == len(every)
    room = 3 * 6.6
    for k, (x, y, _) in enumerate(found):
        assert x - room / 2 >= 0
        assert not [1 for u, v, _ in found[:k] if abs(x - u) < room and abs(y - v) < 13]
    right = [float(x) for x in re.findall(r'<text x="([\d.-]+)"(?![^>]*anchor)', svg)]
    assert max(right) < width * 0.6  # room for values


def test_an_edge_that_a_cluster_hangs_on_is_between_neighbours():
    """0-1-2 and 3-4-5 are chains, joined by 0 and 5."""
    strength = {(0, 1): 9.0, (1, 2): 9.0, (0, 2): 1.0, (3, 4): 9.0, (4, 5): 9.0, (0, 5): 3.0}
    groups = [("", (0, 1, 2)), ("", (3, 4, 5))]
    assert records_shown(groups, strength, (0, 5), True) == [("", [2, 1, 0]), ("", [5, 4, 3])]


def test_of_many_records_those_are_shown_that_go_with_the_first():
    strength = {(k, k + 1): 5.0 + k for k in range(39)}  # a chain
    ((_, shown),) = records_shown([("", range(40))], strength, [20], False)
    assert sorted(shown) == list(range(20, 20 + MOST))
    assert shown == sorted(shown)


def test_long_values_are_cut_and_stay_inside():
    node = Node("x" * 200, "0.50", (("f" * 80, "word " * 100, True), ("g", "名" * 90, False)))
    svg = picture("One", [("", [node])], []).svg(NARROW)
    lines = re.findall(r"<tspan[^>]*>([^<]*)</tspan>", svg)
    assert max(map(len, lines)) < 60
    assert svg.count("<text") <= 8
    assert "…" in svg


def test_probabilities_are_never_told_as_certain():
    assert [probability(p) for p in (1.0, 0.996, 0.99, 0.5, 0.004)] == [
        "> 0.99", "> 0.99", "0.99", "0.50", "< 0.01",
    ]  # fmt: skip
