"""One row a person: which of its records' values it has."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.runs.people import Rows, people_of

TABLE = pa.table(
    {
        "id": ["1", "2", "3", "4", "5"],
        "name": ["Ann", "Anna", "Ann", "Bo", None],
        "town": ["", "NA", "Ulm", "Rom", "Bonn"],
        "age": [30, 31, 31, 50, None],
    }
)


def rows(missing=()):
    """Records 1, 2 and 3 are a person that 2 represents; 4 and 5 one that 5 represents."""
    return Rows(pa.array(["2", "2", "2", "5", "5"]), np.array([1, 1, 1, 4, 4]), missing)


@pytest.mark.parametrize(
    ("keep", "names", "towns", "ages"),
    [
        ("representative", ["Anna", None], ["NA", "Bonn"], [31, None]),
        ("longest", ["Anna", "Bo"], ["Ulm", "Bonn"], [31, 50]),
        ("most_frequent", ["Ann", "Bo"], ["Ulm", "Bonn"], [31, 50]),
    ],
)
def test_values_by_rule(keep, names, towns, ages):
    people = people_of(TABLE, rows(["", "NA"]), keep, "id")
    assert people.column_names == ["entity_id", "records", "id", "name", "town", "age"]
    assert people["entity_id"].to_pylist() == people["id"].to_pylist() == ["2", "5"]
    assert people["records"].to_pylist() == [3, 2]
    assert people["name"].to_pylist() == names
    assert people["town"].to_pylist() == towns
    assert people["age"].to_pylist() == ages
    assert people.schema.field("age").type == pa.int64()


def test_a_column_of_that_name_keeps_it():
    people = people_of(TABLE.append_column("Entity_ID", TABLE["id"]), rows(), "longest", "id")
    assert people.column_names[:2] == ["entity_id_", "records"]


def test_a_run_with_numbers_compared_is_opened(tmp_path):
    made = bl.simulate_duplicates(80, seed=4).a
    fields = [bl.name("gname"), bl.date("dob"), bl.numeric("age")]
    bl.dedupe(made, fields, draws=40, tune=40, chains=2).save(tmp_path / "run")
    told = bl.open_run(tmp_path / "run").provenance()["settings"]["fields"]
    assert told[2]["valid"] == [0, None]
