"""Whole journeys: each kind of file through every command that comes after `link`."""

import json
from contextlib import closing
from unittest import mock

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import bayeslink as bl
from bayeslink import checkpoints, threads
from bayeslink.checkpoints import Checkpoints
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.judging.labels import export_labels
from bayeslink.review.queues import Desk
from tests.journeys.kinds import COMMANDS, KINDS, RefusedError, call, told, write_labels

# Kinds that `make test` runs: draws beyond the candidates, defaults, the least, and other inputs.
SHORT = {"weak fields", "fields left out", "one record each", "labels given", "point", "pandas"}


def strict(text):
    """JSON as others read it, too: without NaN."""

    def no_number(word):
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=no_number)


def saved(folder, name="links"):
    return pq.read_table(folder / f"{name}.parquet")


def reopen(journey):
    """The run as it was: its summary, links, probabilities and every kept draw."""
    run = bl.open_run(journey.run, **journey.frames)
    summary = json.loads((journey.run / "run.json").read_text("utf-8"))
    assert run.summary().items() <= summary.items()
    again = journey.folder / "again"
    run.save(again)
    for path in journey.run.glob("*.parquet"):
        if path.stem != "reach" and not path.stem.startswith("input_"):
            assert saved(again, path.stem).equals(saved(journey.run, path.stem)), path.stem
    if journey.kind is KINDS["weak fields"]:
        assert max(saved(journey.run, "link_draws")["pair"].to_pylist()) >= summary["candidates"]
    if run.posterior is not None:
        twice = bl.open_run(again, **journey.frames).posterior
        for one, other in zip(run.posterior.kept, twice.kept, strict=True):
            assert all(map(np.array_equal, map(np.sort, one), map(np.sort, other)))


def report(journey):
    told("report", journey.run, *journey.moved)
    assert "</html>" in (journey.run / "report.html").read_text("utf-8")
    bare = journey.folder / "bare.html"
    words = ("--truth", journey.truth, "--disclosure", "5", "--no-values", *journey.moved)
    told("report", journey.run, "-o", bare, *words)
    assert bare.stat().st_size > 1000


def explain(journey):
    """A link, a candidate, and a pair that is perhaps neither."""
    run = bl.open_run(journey.run, **journey.frames)
    ends = [(0, 0), (run.pairs.n_a - 1, run.pairs.n_b - 1)]
    pairs = [[run.pairs.ids(side, np.int32([end[side]]))[0] for side in (0, 1)] for end in ends]
    for table in (run.table, run.candidates()):
        pairs += [[row["id_a"], row["id_b"]] for row in table.slice(0, 1).to_pylist()]
    for pair in pairs:
        words = ("explain", journey.run, *map(str, pair), *journey.moved)
        if (done := call(*words)).exit_code:  # it is outside the blocking key, and that is said
            assert "--block" in journey.kind.flags
            assert "outside the blocking key" in done.stderr
            continue
        found = strict(told(*words, "--json"))
        assert len(found["evidence"]) >= len(run.pairs.fields)


def judged(journey, *words, queue="open"):
    """Review the run as its page does, and judge all cases of a queue: first a link, then none."""
    seen = []

    def serve(material, *, ready, **_):
        ready("there", "there")
        with (
            closing(Judgements(material.folder / FILE)) as judgements,
            closing(Desk(material, judgements)) as desk,
        ):
            while (key := desk.next(queue, "r")) is not None and key not in seen:
                case = desk.case(key, "r")
                verdicts = ["unsure"] * len(case["verdicts"])
                verdicts[0] = "nonlink" if seen else "link"
                desk.judge(key, case["version"], "r", verdicts)
                seen.append(key)
                json.dumps([case, desk.evidence(key)], allow_nan=False)
            json.dumps([desk.state("r"), desk.overview("r")], allow_nan=False)

    with mock.patch("bayeslink.review.server.serve", serve):
        told("review", journey.run, "--no-browser", *words, *journey.moved)
    return seen


def review(journey):
    """What is judged is there for those who come after."""
    cases = judged(journey)
    export_labels(journey.run, journey.folder / "verdicts.parquet")
    verdicts = pq.read_table(journey.folder / "verdicts.parquet")["verdict"].to_pylist()
    assert verdicts.count("link") == min(1, len(cases))
    assert verdicts.count("nonlink") == max(0, len(cases) - 1)


def sample(journey):
    """A plan, a sample drawn and judged, and what it says of the run."""
    told("review", journey.run, "--plan")
    strict(told("review", journey.run, "--plan", "--json", "--of", "precision"))
    cases = judged(journey, "--draw", "6", queue="sample")
    assert cases
    told("evaluate", journey.run, "--labels")
    found = strict(told("evaluate", journey.run, "--labels", "--json"))
    assert sum(stratum["links"] + stratum["nonlinks"] for stratum in found["strata"]) >= 1


def join(journey):
    n_links = saved(journey.run)["decision"].to_pylist().count("link")
    rows = {}
    for how, end in (("inner", "csv"), ("left", "parquet"), ("right", "csv"), ("outer", "csv")):
        words = ("--how", how, "-o", journey.folder / f"{how}.{end}", "--json", *journey.moved)
        rows[how] = strict(told("join", journey.run, *words))["rows"]
    n_a, n_b = len(journey.files.a), len(journey.files.b)
    assert rows == {"inner": n_links, "left": n_a, "right": n_b, "outer": n_a + n_b - n_links}


def draws(journey):
    words = ("--draws", "5", "-o", journey.folder / "drawn.parquet", "--json", *journey.moved)
    rows = strict(told("join", journey.run, *words))["rows"]
    table = pq.read_table(journey.folder / "drawn.parquet")
    assert len(table) == rows
    assert set(table["draw"].to_pylist()) <= {1, 2, 3, 4, 5}


def population(journey):
    found = strict(told("population", journey.run, "--json"))
    assert found["low"] <= found["median"] <= found["high"]
    told("population", journey.run)


def truth(journey):
    found = strict(told("evaluate", journey.run, "--truth", journey.truth, "--json"))
    assert found["true_links"] + found["missed"] == len(journey.files.truth)
    told("evaluate", journey.run, "--truth", journey.truth)


def update(journey):
    """A new batch of B, linked to what is left of A."""
    n_left = len(journey.files.a) - saved(journey.run)["decision"].to_pylist().count("link")
    out = journey.folder / "updated"
    if journey.inputs:
        frames = journey.frames
        batch = journey.kind.frames(journey.files.batch)
        bl.update(journey.run, batch, a=frames["a"], draws=60, tune=40).save(out, keep_inputs=True)
    elif not n_left:
        done = call("link", "--update", journey.run, journey.batch, "-o", out)
        assert (done.exit_code, "nothing left to link to" in done.stderr) == (3, True), done.output
        return
    else:
        told("link", "--update", journey.run, journey.batch, "-o", out)
    run = bl.open_run(out)
    assert (run.pairs.n_a, run.pairs.n_b) == (n_left, len(journey.files.batch))
    old = set(saved(journey.run).filter(pc.field("decision") == "link")["id_a"].to_pylist())
    assert not old & set(saved(out)["id_a"].to_pylist())


def resume(journey):
    """Interrupted half way, a run goes on to the same links; a finished one has nothing to do."""
    config = (*journey.inputs, "--config", journey.run / "link.toml")
    count = [0]

    def save(self, name, arrays, save=Checkpoints.save):
        save(self, name, arrays)
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt

    out = journey.folder / "resumed"
    with (
        mock.patch.object(Checkpoints, "save", save),
        mock.patch.object(checkpoints, "EVERY", 0.0),
        mock.patch.object(threads, "SECONDS", 0.0),
    ):
        stopped = call("link", *config, "-o", out)
    assert stopped.exit_code == 130, stopped.output
    assert not out.exists()
    told("resume", out)
    assert saved(out).equals(saved(journey.run))
    done = call("resume", out)
    assert (done.exit_code, "no interrupted run" in done.stderr) == (3, True), done.output


def changes(journey):
    """Linked again with labels, a run says what these changed."""
    labels = write_labels(journey, journey.folder / "judged.csv")
    config = (*journey.inputs, "--config", journey.run / "link.toml")
    out = journey.folder / "labelled"
    assert "What the labels changed" in told("link", *config, "--labels", labels, "-o", out)
    bl.open_run(out, **journey.frames)
    between = bl.changes(journey.run, out)
    assert between.kept + len(between.added) == saved(out)["decision"].to_pylist().count("link")


def relink(journey):
    again = bl.relink(journey.run, **journey.frames)
    again.save(journey.folder / "relinked")
    for name in ("links", "parameters"):
        assert saved(journey.folder / "relinked", name).equals(saved(journey.run, name))


def repeat(journey):
    out = journey.folder / "repeated"
    told("link", *journey.inputs, "--config", journey.run / "link.toml", "-o", out)
    for path in journey.run.glob("*.parquet"):
        if not path.stem.startswith("input_"):
            one, other = (saved(folder, path.stem).to_pylist() for folder in (out, journey.run))
            assert one == other, path.stem


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in SHORT else pytest.mark.full) for kind in KINDS]
)
def test_journey(kind, command, journey):
    words = KINDS[kind].refused.get(command)
    if words is None:
        globals()[command](journey)
        return
    with pytest.raises(RefusedError) as refusal:  # in words, with an exit code of its own
        globals()[command](journey)
    assert words in str(refusal.value)
    assert refusal.value.code in (2, 3)
