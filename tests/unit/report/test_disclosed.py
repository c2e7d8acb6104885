"""What a report must not tell: small counts, record ids, where files lie; and who may read it."""

import copy
import dataclasses
import html
import math
import re
import stat

import numpy as np
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.report import charts
from bayeslink.report.charts import Counts
from bayeslink.report.disclosed import disclosed_page
from bayeslink.report.material import gather
from bayeslink.runs.opening import as_run

K = 10
FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]
# Numbers in the words of the page, which are there whatever the counts are.
WORDS = {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.01", "0.99", "1", "0"}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Small runs, each saved, with its truth."""
    folder, made = tmp_path_factory.mktemp("runs"), []
    for seed, (n, overlap) in enumerate([(23, 0.9), (31, 0.2), (60, 0.7), (45, 0.5), (12, 1.0)]):
        files = bl.simulate(n, overlap=overlap, errors=2, seed=seed)
        bl.write_simulation(files, folder / f"files{seed}")
        a, b = (folder / f"files{seed}" / f"{side}.csv" for side in "ab")
        run = bl.link(a, b, FIELDS, draws=40, tune=20, chains=2, point=seed == 3)
        run.save(folder / f"out{seed}")
        made.append((folder / f"out{seed}", files.truth, run))
    return made


COORDINATES = "x|y|x1|y1|x2|y2|r|cx|cy|width|height|viewBox|points|tabindex|xmlns"


def told(page):
    """What a page says to eyes, to pointers and to screen readers; weights and settings aside."""
    body = page.split("</style>")[1].split("<script>")[0]
    body = re.sub(r'<section id="repeat">.*', "", body, flags=re.S)
    body = re.sub(r'<figure data-chart="weights">.*?</figure>', "", body, flags=re.S)
    body = re.sub(rf' ({COORDINATES})="[^"]*"', "", body)
    body = re.sub(r"\d+ chains of \d+ draws were run, each after \d+|and \d+ more", "", body)
    return html.unescape(re.sub(r"</?\w+|m\[\w+, \d\]|u\[\w+, \d\]", " ", body))


def test_no_number_on_the_page_is_a_count_that_was_not_rounded(simulated, tmp_path):
    for folder, truth, _ in simulated:
        written = as_run(folder).report(tmp_path / "r.html", truth=truth, disclosure=K)
        text = told(written.read_text("utf-8"))
        found = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
        wrong = [n for n in found if n not in WORDS and float(n.replace(",", "")) % K]
        assert not wrong, wrong
        assert len(found) > 20


def test_other_small_counts_make_the_same_page(simulated):
    """Whatever rounds alike is told alike, to the last coordinate."""
    folder = simulated[2][0]
    material, rng = gather(as_run(folder)), np.random.default_rng(0)

    def jittered(n):
        middle = K * math.floor(n / K + 0.5)
        low, high = (0, K - 1) if n < K else (max(K, middle - K / 2), middle + K / 2 - 0.001)
        return float(rng.uniform(low, high))

    page = disclosed_page(material, Counts(K))
    for _ in range(20):
        s = copy.deepcopy(material.summary)
        for key in ("n_a", "n_b", "n_links", "links_mean", "expected_false_links"):
            s[key] = jittered(s[key])
        s["links_interval"] = [jittered(n) for n in s["links_interval"]]
        s["theta"], s["n_pairs"] = s["theta"] + rng.random(), s["n_pairs"] + int(rng.integers(99))
        for part in s["inputs"]:
            part["records"] = jittered(part["records"])
        for f in s["fields"]:
            for key in ("missing", "distinct", "invalid"):
                f[key] = [jittered(n) for n in f[key]]
        for d in s["diagnostics"]:
            d["mean"] += rng.random()
        other = dataclasses.replace(
            material, summary=s, draws=material.draws.slice(0, 5), path=None
        )
        # Weights rest on n_links: those of levels near the limit may come and go.
        other = dataclasses.replace(other, parameters=material.parameters)
        strip = re.compile(r'<section id="fields">.*?<table', re.S)
        assert strip.sub("", disclosed_page(other, Counts(K))[1]) == strip.sub("", page[1])


def test_a_bar_does_not_give_a_hidden_count_away():
    hidden = charts.tally("t", [("few", 3), ("none", 0), ("many", 502)], "pairs", Counts(10))
    other = charts.tally("t", [("few", 9), ("none", 7), ("many", 497)], "pairs", Counts(10))
    assert hidden.svg() == other.svg()
    assert "500" in hidden.svg()


def test_no_page_says_where_files_lie(simulated, tmp_path):
    for folder, truth, run in simulated[:2]:
        for source in (folder, run):
            for options in ({}, {"disclosure": K}, {"values": False}):
                path = as_run(source).report(tmp_path / "r.html", truth=truth, **options)
                text = path.read_text("utf-8")
                assert str(folder.parent) not in text
                assert "files0/" not in text
                assert "a.csv" in text


def test_a_file_that_is_gone_is_told_without_its_folder(tmp_path):
    files = bl.simulate(15, seed=1)
    bl.write_simulation(files, tmp_path / "files")
    bl.link(*(tmp_path / "files" / f"{s}.csv" for s in "ab"), FIELDS, point=True).save(
        tmp_path / "out"
    )
    (tmp_path / "files" / "a.csv").unlink()
    text = as_run(tmp_path / "out").report().read_text("utf-8")
    assert "cannot be shown" in text
    assert str(tmp_path) not in text


def test_without_values_there_is_no_id(simulated, tmp_path):
    for folder, _, run in simulated:
        text = as_run(folder).report(tmp_path / "r.html", values=False).read_text("utf-8")
        assert 'id="examples"' in text
        assert not re.search(r"[AB]\d{6}", text)
        with_ids = as_run(folder).report(tmp_path / "r.html").read_text("utf-8")
        assert run.n_links == 0 or re.search(r"[AB]\d{6}", with_ids)


@pytest.mark.parametrize("shared", [False, True])
def test_only_the_owner_may_read_a_run_unless_it_is_shared(simulated, tmp_path, shared):
    a, b = (getattr(simulated[0][2].settings, side) for side in "ab")
    words = ["link", a, b, "--on", "fname", "--point", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*words, *(["--group-readable"] if shared else [])])
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    as_run(out).report()
    with Judgements(out / FILE) as judgements:
        judgements.add(case="1", version="1", reviewer="x", verdicts={("1", "2"): "link"})
    assert stat.S_IMODE(out.stat().st_mode) == (0o750 if shared else 0o700)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()}
    assert {"report.html", FILE, "run.json"} <= modes.keys()
    assert set(modes.values()) == {0o640 if shared else 0o600}


def test_rows_set_aside_are_their_owners(tmp_path):
    for side in "ab":
        (tmp_path / f"{side}.csv").write_text(f"id,name\n1,x\n2,y\n3,{side}\n4\n")
    read = [bl.ReadOptions(quarantine=tmp_path / f"{side}.txt") for side in "ab"]
    bl.link(*(tmp_path / f"{s}.csv" for s in "ab"), [bl.exact("name")], point=True, read=(*read,))
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


def test_a_name_in_braces_is_not_filled_in(tmp_path):
    paths = [tmp_path / "{script}.csv", tmp_path / "{body}.csv"]
    for path in paths:
        path.write_text(f"id,name\n1,x\n2,y\n3,{path.stem}\n")
    run = bl.link(*paths, [bl.exact("name")], point=True)
    text = run.report(tmp_path / "r.html").read_text("utf-8")
    assert "<title>2 links between {script}.csv and {body}.csv</title>" in text
