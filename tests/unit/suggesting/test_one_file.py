"""What `suggest` proposes for one file."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError


@pytest.fixture(scope="module")
def frame():
    return bl.simulate_duplicates(400, seed=6).a.to_pandas()


def compared(proposal):
    return [field.name for field in proposal.fields]


def test_columns_are_compared_as_they_are_in_two_files(frame):
    found = bl.suggest(frame)
    assert found.id == "id"
    assert "id" not in compared(found)
    kinds = {field.name: field.kind for field in found.fields}
    assert (kinds["gname"], kinds["dob"], kinds["sex"]) == ("name", "date", "exact")
    assert found.labels == ("pandas.DataFrame",)
    assert "bayeslink init --explain" in found.in_one_line()


def test_init_of_one_file_writes_what_dedupe_compares(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("staff.csv", index=False)
    done = CliRunner().invoke(main, ["init", "staff.csv"])
    assert done.exit_code == 0, done.output
    assert "bayeslink dedupe --config dedupe.toml -o out" in done.output
    few = ["--draws", "20", "--tune", "10", "--chains", "2"]
    done = CliRunner().invoke(main, ["dedupe", "--config", "dedupe.toml", "-o", "out", *few])
    assert done.exit_code == 0, done.output
    proposed = [field.settings for field in bl.suggest("staff.csv").fields]
    assert [field.settings for field in bl.open_run("out").settings.fields] == proposed
    done = CliRunner().invoke(main, ["init", "staff.csv"])
    assert done.exit_code == 4
    assert "dedupe.toml exists" in done.output


def test_rows_in_another_order_change_nothing(frame, monkeypatch):
    monkeypatch.setattr("bayeslink.suggesting.profiles.SAMPLE", 150)  # of the rows
    turned = frame.sample(frac=1, random_state=1)
    assert [*bl.suggest(frame).explained()] == [*bl.suggest(turned).explained()]


def test_numbers_of_records_and_of_clusters_are_left_out(frame):
    rows = np.arange(len(frame))
    more = frame.assign(row_id=rows + 7, cluster=rows // 2, entity_id=rows // 2, visit_id=rows // 2)
    found = bl.suggest(more)
    assert not {"row_id", "cluster", "entity_id", "visit_id"} & {*compared(found)}
    assert {left.column for left in found.left_out} >= {"row_id", "cluster", "entity_id"}


def test_a_number_of_the_person_is_compared_and_told(frame):
    truth = bl.simulate_duplicates(400, seed=6).truth.to_pandas()
    numbered = frame.drop(columns="id").assign(
        person_id=truth["entity_id"].rank(method="dense").astype(int) * 7919 + 10**6
    )
    found = bl.suggest(numbered)
    assert "person_id" in compared(found)
    assert any("number of the person" in note for note in found.notes)


def test_dates_of_visits_are_left_out(frame):
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, len(frame)), "D")
    found = bl.suggest(frame.assign(admission=days.strftime("%Y-%m-%d")))
    assert "admission" not in compared(found)
    assert "dob" in compared(found)


def test_nothing_to_tell_people_apart_is_refused():
    with pytest.raises(InputError, match="tells people apart"):
        bl.suggest(pd.DataFrame({"id": ["1", "2"], "same": ["x", "x"]}))
