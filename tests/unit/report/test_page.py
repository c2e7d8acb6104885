"""The report and the plots: what they say, what they hide, and that hostile values stay text."""

import base64
import hashlib
import json
import math
import re
import xml.dom.minidom
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import plots
from bayeslink.cli import main
from bayeslink.errors import InputError
from bayeslink.number_format import minus, signed
from bayeslink.report import charts, curves
from bayeslink.report.certainty import how_sure
from bayeslink.report.fields import meanings
from bayeslink.report.patterns import in_words
from bayeslink.report.svg import escape, ticks
from bayeslink.runs.expected import expected_errors
from bayeslink.runs.opening import as_run
from bayeslink.runs.unlinkable import copy_weights

ORDER = [
    "compared", "fit", "fields", "unlinkable", "patterns", "prior", "w0", "blocks", "posterior",
    "probabilities", "thresholds", "diagnostics", "examples", "repeat",
]  # fmt: skip
HOSTILE = [
    "<script>document.title='run'</script>",
    "</script><img src=https://example.org/x onerror=alert(1)>",
    "{{7*7}}",
    "javascript:alert(1)",
    "\"><svg onload=alert(1)>",
    "=cmd|' /C calc'!A0",
    "+1", "-1", "@SUM(A1)", "\ttab", "a\u202eb\u200bc",
]  # fmt: skip


class Page(HTMLParser):
    """Elements, text, and tables of a page."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.sections = [], [], []
        self.text, self.rows, self.open = "", [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes.append(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(attrs["id"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text += data + "\n"
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    bl.write_simulation(bl.simulate(300, seed=3), folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def run(files):
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]
    return bl.link(files / "a.csv", files / "b.csv", fields, draws=100, tune=50, chains=2)


@pytest.fixture(scope="module")
def saved(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "out"
    run.save(folder)
    return folder


def text_of(source, tmp_path, **options):
    path = as_run(source).report(tmp_path / "report.html", **options)
    return path.read_text("utf-8")


# --- the page ---------------------------------------------------------------------------------


def test_sections_come_in_the_order_of_reading(saved, tmp_path):
    text = text_of(saved, tmp_path)
    assert Page(text).sections == ORDER
    assert len(text) < 1_000_000


def test_each_pattern_has_a_pair_to_open(run, saved, files, tmp_path):
    text = text_of(saved, tmp_path)
    viewer = text.split('class="viewer"')[1].split("</section>")[0]
    table = plots.patterns(run).table.to_pylist()[:20]
    assert viewer.count('class="pattern"') == len(table)
    for row in table:
        assert escape(row["id_a"]) in viewer
        assert f"{escape(row['agreement'])}: {signed(row['match_weight'])} bits" in viewer
    bare = text_of(saved, tmp_path, values=False).split('class="viewer"')[1].split("</section>")[0]
    assert bare.count('class="pattern"') == len(table)
    assert not [row for row in table if row["id_a"] in bare or row["id_b"] in bare]
    cell = (files / "a.csv").read_text("utf-8").splitlines()[1].split(",")[1]
    assert cell not in bare


def test_thresholds_and_records_that_say_too_little_are_told(run, saved, files, tmp_path):
    page = Page(text_of(saved, tmp_path))
    table = plots.thresholds(run).table.to_pylist()
    (half,) = [row for row in table if row["threshold"] == 0.5]
    told = [f"{half['expected_precision']:.3f}", f"{half['expected_recall']:.3f}"]
    assert [row[3:] for row in page.rows if row[:2] == ["0.5", f"{half['pairs']:,}"]] == [told]
    a, b = copy_weights(run).shares_below(copy_weights(run).needed)
    assert f"{100 * a:.1f} % of the records of A and {100 * b:.1f} % of those of B" in page.text
    moved = files.parent / "moved"
    files.rename(moved)
    try:
        assert "This is left out: the input files are not there" in text_of(saved, tmp_path)
    finally:
        moved.rename(files)


def test_the_report_goes_into_the_run_directory_by_default(run, tmp_path):
    run.save(tmp_path / "out")
    assert bl.open_run(tmp_path / "out").report() == tmp_path / "out" / "report.html"
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    with pytest.raises(bl.SettingsError, match="name the file"):
        run.report()


def test_a_run_and_its_directory_make_the_same_report(run, saved, tmp_path):
    here, there = (Page(text_of(source, tmp_path)) for source in (run, saved))
    charts_of = [
        [a["data-chart"] for a in page.attributes if "data-chart" in a] for page in (here, there)
    ]
    assert "path" in charts_of[0]
    assert charts_of[0] == charts_of[1]
    assert here.rows == there.rows


def test_the_headline_is_that_of_the_run(run, saved, tmp_path):
    s, text = run.summary(), Page(text_of(saved, tmp_path)).text
    low, high = s["links_interval"]
    assert f"{s['n_links']:,} links between a.csv and b.csv" in text
    people = f"{s['links_mean']:,.0f} people are in both files"
    assert f"About {people} (95 % interval {low:,} to {high:,});" in text
    false = s["expected_false_links"]
    missed = run.posterior.n_links.mean() - (s["n_links"] - false)
    assert f"about {false:,.1f} of the links are wrong and {missed:,.1f} are missing." in text


def test_the_picture_of_how_sure_holds_every_link_once(run, saved, tmp_path):
    p = run.table["link_probability"].to_numpy()
    counts = [int((p >= 0.99).sum()), int(((p >= 0.9) & (p < 0.99)).sum()), int((p < 0.9).sum())]
    assert min(counts) >= 0
    assert sum(counts) == run.n_links
    chart = how_sure(p, (5, 400), 320.0)
    words = ", ".join(
        f"{n:,} of probability {name}"
        for n, name in zip(counts, ("≥ 0.99", "≥ 0.9", "< 0.9"), strict=True)
    )
    assert chart.alt == f"{words}; 5 to 400 people in both files"
    marks = xml.dom.minidom.parseString(chart.svg()).getElementsByTagName("rect")
    widths = [float(m.getAttribute("width")) for m in marks if m.getAttribute("height") == "22"]
    shown = [n for n in counts if n]
    assert widths == pytest.approx([max(1, n * 716 / 400) for n in shown], abs=0.1)
    assert 'data-chart="sure"' in text_of(saved, tmp_path)
    assert how_sure(np.array([]), (0, 0)).svg()


def test_notes_are_grouped_and_columns_left_out_have_their_reason(files, tmp_path):
    run = bl.link(files / "a.csv", files / "b.csv", draws=60, tune=30, chains=2)
    assert {column.column for column in run.settings.left_out} == {"id", "age"}
    run.save(tmp_path / "out")
    for source in (run, tmp_path / "out"):
        text = text_of(source, tmp_path)
        rows = Page(text).rows
        assert ["Left out", "Why"] in rows
        assert ["age (A and B)", "follows from the year of dob"] in rows
        head, details = text.split("<h2>Details</h2>")
        assert head.index("<h2>To do</h2>") < head.index("<h2>To know</h2>")
        known = head.split("<h2>To know</h2>")[1]
        assert "look swapped in" in known
        assert details.count("<details><summary><h2>") == len(ORDER) - 1
    with_notes = [escape(note) for note in run.warnings]
    assert all(note in head for note in with_notes)


def test_the_row_of_figures_has_no_hole(run, files, tmp_path):
    point = bl.link(files / "a.csv", files / "b.csv", [bl.exact("dob")], point=True)
    loss = bl.link(
        files / "a.csv",
        files / "b.csv",
        ["gname", "dob"],
        draws=50,
        tune=30,
        chains=2,
        loss=bl.Loss(reject=0.1),
    )
    assert loss.summary()["review_records"]
    for source, n in ((run, 6), (point, 3), (loss, 6)):
        assert text_of(source, tmp_path).count("<dt>") == n


def test_patterns_add_up(run, saved, tmp_path):
    rows = Page(text_of(saved, tmp_path)).rows
    start = next(i for i, row in enumerate(rows) if row[-3:-2] == ["Candidates"])
    table = [r for r in rows[start + 1 :] if len(r) == len(rows[start])]
    end = next(i for i, r in enumerate(table) if r[0].endswith("more")) + 1
    numbers = [[float(c.replace(",", "")) for c in r[-3:]] for r in table[:end]]
    candidates, expected, links = np.sum(numbers, axis=0)
    assert candidates == run.posterior.blocks.n_candidates
    assert links == run.n_links
    assert expected == pytest.approx(run.posterior.probability.sum(), abs=0.05 * end)


def test_patterns_and_levels_are_told_in_words(saved, tmp_path):
    levels = {"x": ["missing", "different", "equal"], "y": ["missing", "far", "near", "equal"]}
    assert in_words(levels, {"x": 2, "y": 3}) == "full agreement"
    assert in_words(levels, {"x": 0, "y": 2}) == "x missing; y near"
    assert in_words(levels, {"x": 0, "y": 0}) == "x, y missing"
    page = Page(text_of(saved, tmp_path))
    start = next(i for i, row in enumerate(page.rows) if row[-3:-2] == ["Candidates"])
    assert all(re.search("[a-z]{3}", row[0]) for row in page.rows[start + 1 : start + 10])
    assert "0.25 is one letter in four" in page.text
    assert "letter" not in meanings(["different", "equal"])
    assert "letter" not in meanings(["distance > 5 km", "distance ≤ 5 km"])


def test_weights_have_their_intervals(run, saved, tmp_path):
    """Of the draws of log2(m/u), and around the weight."""
    text = text_of(saved, tmp_path)
    weight = run.parameters.log_weights[0, 1:] / math.log(2)
    found = re.findall(
        r'aria-label="gname, [^"]*?: ([+−]?[\d.]+) bits, [^"]*; 95 % interval '
        r'([+−]?[\d.]+) to ([+−]?[\d.]+) bits"',
        text,
    )
    numbers = [[float(x.replace("−", "-")) for x in row] for row in found]
    assert [row[0] for row in numbers] == pytest.approx(
        [w for w in weight[::-1] if w][: len(numbers)], abs=0.051
    )
    assert all(low - 0.05 <= w <= high + 0.05 for w, low, high in numbers)
    assert all(low < high for _, low, high in numbers)
    assert len(numbers) >= 3


def test_minus_is_a_minus_and_nothing_has_no_sign(run, saved, tmp_path):
    assert signed(-1.26) == "−1.3"
    assert signed(0.04) == signed(-0.04) == signed(0.0) == "0.0"
    assert signed(-0.4, 0) == "0"
    assert [minus(x) for x in ("-0.0", "-0", "-0.00", "-0.01", "-10", "1e-05")] == [
        "0.0", "0", "0.00", "−0.01", "−10", "1e−05"
    ]  # fmt: skip
    text = text_of(saved, tmp_path, values=False)  # marks take the hyphens of dates apart
    words = Page(text.split('<section id="repeat">')[0] + "</main></body></html>").text
    said = words + " ".join(re.findall(r'aria-label="([^"]*)"', text))
    assert not re.findall(r"(?<![\w.-])-\d[^\n]*", said)
    assert not re.findall(r"[+−]0(?:\.0+)?(?![\d.])", said)


def test_differing_letters_are_marked_as_in_a_review(saved, tmp_path):
    a = pa.table({"id": ["1", "2"], "x": ["Jenkins", "Smith"], "y": ["p", "q"]})
    b = pa.table({"id": ["1", "2"], "x": ["jenkyns", "Smith"], "y": ["p", "q"]})
    run = bl.link(a, b, [bl.levenshtein("x"), bl.exact("y")], draws=20, tune=5, chains=2)
    text = text_of(run, tmp_path)
    assert '<bdi>jenk<mark class="other">y</mark>ns</bdi>' in text  # case is evened out: not marked
    assert "<bdi>Jenkins</bdi>" in text


def test_doubtful_pairs_come_with_what_to_do(run, saved, tmp_path):
    p = run.candidates()["link_probability"].to_numpy()
    doubtful = int(((p > 0.1) & (p < 0.9)).sum())
    text = text_of(saved, tmp_path)
    assert doubtful
    assert f"<dt>Doubtful pairs</dt><dd>{doubtful:,}<" in text
    assert "<code>bayeslink review OUT</code>" in text
    assert "Left to review" not in text


def test_nothing_is_fetched_and_only_our_own_script_may_run(saved, tmp_path):
    text = text_of(saved, tmp_path)
    page = Page(text)
    for attributes in page.attributes:
        for name in ("src", "href", "action", "srcset", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    policy = next(a["content"] for a in page.attributes if "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_with_the_truth_it_says_how_well_it_went(run, saved, files, tmp_path):
    text = text_of(saved, tmp_path, truth=files / "truth.csv")
    result = bl.evaluate(run.table, bl.simulate(300, seed=3).truth)
    assert f"Precision {result.precision:.4f}, recall {result.recall:.4f}" in text
    errors = result.false_links + result.missed
    expected = sum(expected_errors(json.loads((saved / "run.json").read_text())))
    assert f": {errors:,} errors, where {expected:,.1f} were expected." in text
    assert 'data-chart="calibration"' in text


def test_a_point_estimate_has_a_report_without_probabilities(files, tmp_path):
    run = bl.link(files / "a.csv", files / "b.csv", [bl.exact("dob")], point=True)
    page = Page(text_of(run, tmp_path))
    assert page.sections == [
        "compared", "fit", "fields", "unlinkable", "patterns", "prior", "examples", "repeat"
    ]  # fmt: skip
    assert "point estimate: it says nothing about how sure" in page.text


@pytest.mark.parametrize(
    ("prior", "data", "words"),
    [
        (
            bl.Overlap(np.float64(2.5), np.int64(7)),
            {"kind": "overlap", "alpha": 2.5, "beta": 7.0},
            "Beta(2.5, 7) prior, with a mean of 26%",
        ),
        (
            bl.Penalty(np.float32(6.5)),
            {"kind": "penalty", "theta": 6.5},
            "Each link costs θ = 6.50",
        ),
    ],
)
def test_the_prior_is_stored_as_data_and_told_by_the_report(prior, data, words, tmp_path):
    files = bl.simulate(60, seed=1)
    fields = [bl.exact("gname"), bl.exact("fname"), bl.exact("dob")]
    run = bl.link(files.a, files.b, fields, prior=prior, point=True)
    run.save(tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["prior"] == data == run.summary()["prior"]
    for source in (run, tmp_path / "run"):
        assert words in as_run(source).report(tmp_path / "report.html").read_text()
    earlier = {key: value for key, value in summary.items() if key != "format"}
    without = {key: value for key, value in summary.items() if key not in ("fit", "structure")}
    for wrong, words in (
        (earlier, "an earlier version of bayeslink"),
        ({**summary, "format": summary["format"] + 1}, "another version of bayeslink"),
        ({**summary, "prior": repr(prior)}, "prior is missing, or not as bayeslink"),
        (without, "structure is missing"),
    ):
        (tmp_path / "run" / "run.json").write_text(json.dumps(wrong))
        with pytest.raises(InputError, match=words):
            bl.open_run(tmp_path / "run")


def test_a_run_within_a_blocking_key(files, tmp_path):
    fields = [bl.levenshtein("gname"), bl.exact("dob")]
    run = bl.link(
        files / "a.csv", files / "b.csv", fields, block=[("sex", "sex")], draws=20, tune=5, chains=2
    )
    run.save(tmp_path / "out")
    page = Page(text_of(tmp_path / "out", tmp_path))
    assert "within the blocking key" in page.text
    assert "path" in [a.get("data-chart") for a in page.attributes]


def test_no_links_is_a_report_that_says_so(tmp_path):
    a = pa.table({"id": ["1", "2"], "x": ["p", "q"]})
    b = pa.table({"id": ["1", "2"], "x": ["r", "s"]})
    run = bl.link(a, b, [bl.exact("x")], theta=9.0, w0=8.0, draws=20, tune=5, chains=2)
    page = Page(text_of(run, tmp_path))
    assert "No pair was good enough to be linked" in page.text
    assert page.sections == ORDER


def test_the_section_on_fit_is_that_of_the_run(run, saved, tmp_path):
    page, found = Page(text_of(saved, tmp_path)), run.checks
    start = page.rows.index(["Match weight, bits", "Pairs", "expected", "of which links"]) + 1
    rows = page.rows[start : start + len(found.bands)]
    assert found.bands
    assert [row[1:] for row in rows] == [
        [f"{b.observed:,}", f"{b.expected:,.1f}", f"{b.from_links:,.1f}"] for b in found.bands
    ]
    assert ("checks found no problem" in page.text) == (not found.warnings)
    for warning in found.warnings:
        assert warning in page.text


def test_disclosure_must_be_a_count(saved, tmp_path):
    with pytest.raises(bl.SettingsError, match="disclosure must be"):
        bl.open_run(saved).report(tmp_path / "x.html", disclosure=0)


def test_values_can_be_left_out(run, saved, tmp_path):
    cells = run.pairs.cells(0, range(run.pairs.n_a))
    names = {cell["gname"] for cell in cells if cell["gname"] and len(cell["gname"]) > 3}
    shown = Page(text_of(saved, tmp_path)).text
    assert any(name in shown for name in names)
    hidden = Page(text_of(saved, tmp_path, values=False)).text
    assert not [name for name in names if name in hidden]
    assert "left out, as asked" in hidden


def test_files_that_are_gone_or_changed_leave_values_out(files, tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    fields = [bl.exact("dob"), bl.exact("fname")]
    run = bl.link(tmp_path / "a.csv", tmp_path / "b.csv", fields, draws=20, tune=5, chains=2)
    run.save(tmp_path / "out")
    with (tmp_path / "a.csv").open("a") as file:
        file.write((files / "a.csv").read_text("utf-8").splitlines()[1].replace("A", "Z") + "\n")
    text = text_of(tmp_path / "out", tmp_path)
    assert "have changed since the run" in text
    assert "Links of the penalized-likelihood estimate over" in text  # which the run has kept
    (tmp_path / "a.csv").unlink()
    text = text_of(tmp_path / "out", tmp_path)
    assert "values cannot be shown" in text


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(bl.InputError, match=r"run\.json"):
        bl.open_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"name": "other"}))
    with pytest.raises(bl.InputError, match="not written by bayeslink"):
        bl.open_run(tmp_path)


def test_a_report_that_cannot_be_written_leaves_nothing(saved, tmp_path):
    with pytest.raises(bl.OutputError, match="cannot write"):
        bl.open_run(saved).report(tmp_path / "none" / "x.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(bl.OutputError, match="cannot write"):
        bl.open_run(saved).report(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_the_command_writes_what_the_function_writes(saved, files, tmp_path):
    given = ["--truth", files / "truth.csv", "--disclosure", 5, "--no-values"]
    path = tmp_path / "cli.html"
    result = CliRunner().invoke(main, list(map(str, ["report", saved, "-o", path, *given])))
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(path)
    options = {"truth": files / "truth.csv", "disclosure": 5, "values": False}
    assert path.read_text("utf-8") == text_of(saved, tmp_path, **options)
    assert CliRunner().invoke(main, ["report", str(tmp_path)]).exit_code == 3
    assert CliRunner().invoke(main, ["report", str(saved), "--disclosure", "0"]).exit_code == 2


def test_runs_posteriors_and_fits_show_themselves_in_notebooks(run, tmp_path):
    run.report(tmp_path / "report.html", values=False)
    assert "left out, as asked" in (tmp_path / "report.html").read_text("utf-8")
    for shown, words in (
        (run, f"{run.n_links:,} links"),
        (run.posterior, f"95 % interval {run.posterior.interval()[0]:,} to"),
        (run.fit, f"{run.fit.n_links:,} links at θ"),
    ):
        page = Page(shown._repr_html_())
        assert words in page.text
        assert "svg" in page.tags
        assert "script" not in page.tags


# --- hostile values ---------------------------------------------------------------------------


def hostile_run(**options):
    """A run with hostile values, ids and field names."""
    n = len(HOSTILE)
    name = HOSTILE[0]
    a = pa.table({"id": HOSTILE, name: HOSTILE, "y": [str(i) for i in range(n)]})
    b = a.take(list(range(n))[::-1])
    fields = [bl.exact(name), bl.exact("y")]
    return bl.link(a, b, fields, draws=40, tune=10, chains=2, **options)


def test_hostile_values_headers_and_ids_stay_text(tmp_path):
    text = text_of(hostile_run(), tmp_path)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert not {"img", "iframe", "object", "form"} & set(page.tags)
    assert not any(k.startswith("on") for attributes in page.attributes for k in attributes)
    assert HOSTILE[0] in page.text
    assert "{{7*7}}" in page.text
    assert "49" not in page.rows[0]


def test_what_cannot_be_seen_is_spelt_out():
    assert escape("a\u202eb\u200bc\td") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0009⟩d"
    assert escape("Zoë\u00a0<&\"'") == "Zoë &lt;&amp;&quot;&#x27;"


def test_hostile_names_make_sound_svg(tmp_path):
    for chart in (plots.weights(hostile_run()), charts.tally("]]>", [("\x00<b>", 1.0)], "&")):
        chart.save(tmp_path / "x.svg")
        document = xml.dom.minidom.parse(str(tmp_path / "x.svg"))
        assert not document.getElementsByTagName("script")


# --- pictures ---------------------------------------------------------------------------------


def test_every_plot_is_a_picture(run, files, tmp_path):
    post = run.posterior
    row = run.table.slice(0, 1).to_pylist()[0]
    path = bl.penalty_path(run.pairs, [4.0, 8.0])
    made = {
        "+": plots.weights(run),
        "−": plots.weights(run.fit),
        "bits": plots.weights(post),
        "95 % interval": plots.links(post),
        "0.99 to 1": plots.probabilities(post),
        "1 pair": plots.blocks(post),
        "2 pairs": plots.blocks(run.blocks),
        "chain 2": plots.trace(post, "log_posterior"),
        "cost of a link": plots.path(path),
        "share of true pairs": plots.calibration(post, files / "truth.csv"),
        "Penalty(6)": plots.sensitivity(bl.sensitivity(post, [bl.Penalty(6.0)])),
        "a link costs": plots.waterfall(run.explain(row["id_a"], row["id_b"])),
    }
    for words, chart in made.items():
        chart.save(tmp_path / "x.svg")
        svg = xml.dom.minidom.parse(str(tmp_path / "x.svg")).documentElement
        written = [t.firstChild.data for t in svg.getElementsByTagName("text") if t.firstChild]
        assert any(words in w for w in written), (words, written)
        assert svg.getAttribute("role") == "img"
        assert svg.getAttribute("aria-label").startswith(chart.title)
        assert chart._repr_svg_() in chart._repr_html_()


def test_charts_are_saved_as_svg(tmp_path):
    chart = charts.tally("t", [("one", 1)], "pairs")
    with pytest.raises(bl.SettingsError, match=r"x\.svg"):
        chart.save(tmp_path / "x.pdf")
    with pytest.raises(bl.OutputError, match="cannot write"):
        chart.save(tmp_path / "none" / "x.svg")


def test_bars_have_the_length_of_their_numbers():
    svg = charts.tally("t", [("x", 100), ("y", 25)], "pairs").svg()
    marks = xml.dom.minidom.parseString(svg).getElementsByTagName("rect")
    x, y = (float(m.getAttribute("width")) for m in marks if m.getAttribute("class") == "full")
    assert y == pytest.approx(x / 4, abs=0.1)


def test_a_waterfall_ends_where_the_weights_sum():
    svg = charts.waterfall([("a", 4.0, "equal"), ("b", -1.0, "different")], 2.0).svg()
    rects = xml.dom.minidom.parseString(svg).getElementsByTagName("rect")
    shown = {m.getAttribute("class"): m for m in rects}
    start, width = (float(shown["hollow"].getAttribute(k)) for k in ("x", "width"))
    total = shown["sum"]
    end = float(total.getAttribute("x")) + float(total.getAttribute("width"))
    assert start == pytest.approx(end, abs=0.2)  # 4 − 1: the hollow bar runs back to the sum
    assert width == pytest.approx(float(shown["full"].getAttribute("width")) / 4, abs=0.2)


def test_classes_hold_every_pair_once():
    p = np.array([0.0, 0.005, 0.01, 0.5, 0.99, 0.995, 1.0])
    found = dict(charts.probability_classes(p))
    assert sum(found.values()) == len(p)
    assert found["0.99 to 1"] == 3
    assert found["0 to 0.01"] == 2
    sizes = np.array([1, 1, 2, 3, 4, 5, 8, 9])
    assert [n for _, n in charts.block_sizes(sizes)] == [2, 1, 2, 2, 1]
    assert charts.block_sizes(np.array([], int)) == []


def test_reliability_is_the_share_of_true_pairs_with_wilsons_interval():
    p = np.array([0.75] * 10 + [0.05] * 4)
    true = np.array([True] * 8 + [False] * 6)
    low, high = curves.reliability(p, true)
    assert (low.probability, low.share, low.pairs) == (pytest.approx(0.05), 0.0, 4)
    assert (high.share, high.pairs) == (0.8, 10)
    assert (high.low, high.high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))


def test_ticks_are_round_and_inside():
    assert ticks(0, 10, 5) == [0, 2, 4, 6, 8, 10]
    assert ticks(3, 3) == [3]
    for low, high in [(-5.4, 13.8), (980, 1037), (1e-5, 3e-5), (-1e6, 5e6)]:
        found = ticks(low, high)
        assert 2 <= len(found) <= 7
        assert low - 1e-9 * abs(low) <= found[0]
        assert found[-1] <= high + 1e-9 * abs(high)
        assert math.isclose(found[1] - found[0], found[-1] - found[-2])


def test_a_level_that_no_pair_has_gets_no_weight(tmp_path):
    """One column has letters in A and digits in B: it never agrees, and says so."""
    files = bl.simulate(150, errors=1, seed=2)
    a = files.a.append_column("code", pa.array([f"{chr(97 + k % 9)}x" for k in range(150)]))
    b = files.b.append_column("code", pa.array([f"{k % 9}9" for k in range(150)]))
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("code")]
    run = bl.link(a, b, fields, draws=50, tune=30, chains=2)
    run.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    (row,) = re.findall(r"<tr>(?:(?!</tr>).)*never seen.*?</tr>", page, re.DOTALL)
    assert "code" in row
    assert "equal" in row
    assert not re.search(r"[+−]\d", row)
    for source in (run, run.fit, run.posterior):
        assert "equal –" in plots.weights(source).alt
