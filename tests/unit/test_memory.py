"""The memory budget: what it parses, what it puts into files, when it refuses."""

import gc

import numpy as np
import pytest

from bayeslink import memory
from bayeslink.errors import OutputError, SettingsError
from bayeslink.memory import Memory, machine_memory, parse_memory, peak_memory


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8g", 8 * 10**9),
        ("500 MB", 5 * 10**8),
        ("1.5GiB", 3 * 2**29),
        ("123", 123),
        (10**9, 10**9),
        (None, None),
    ],
)
def test_sizes(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "8XB", "-1GB", "8 GB 2", "ib", "5iB", "nan"])
def test_what_is_no_size(text):
    with pytest.raises(SettingsError, match="8GB"):
        parse_memory(text)


def test_most_of_the_machine_unless_told():
    assert Memory().budget == int(0.8 * machine_memory())
    assert 2**28 < machine_memory() < 2**50
    assert peak_memory() > 10**7


def test_large_arrays_go_to_files_when_the_budget_is_used_up():
    room = Memory(memory.PROGRAM + 20 * 2**20)  # 7 MiB for arrays
    first, second, third = (room.empty(3 * 2**20, np.uint8) for _ in range(3))
    assert room.in_use == 6 * 2**20
    assert room.spilled == 3 * 2**20
    third[:] = np.arange(len(third)).astype(np.uint8)
    np.testing.assert_array_equal(third[:300], np.arange(300).astype(np.uint8))
    del first, second
    gc.collect()
    assert room.in_use == 0
    assert room.empty(2**20, np.uint8).base is None  # there is room again
    assert room.spilled == 3 * 2**20


def test_a_view_keeps_its_array_counted():
    room = Memory(memory.PROGRAM + 20 * 2**20)
    view = room.empty(2**20, np.int32)[5:10]
    gc.collect()
    assert room.in_use == 4 * 2**20
    del view
    gc.collect()
    assert room.in_use == 0


def test_small_arrays_are_never_spilled():
    room = Memory(1)
    assert room.empty(100, np.int64).base is None
    assert room.empty(0, np.int64).shape == (0,)
    assert (room.in_use, room.spilled) == (0, 0)


@pytest.mark.parametrize("budget", [1, 10**10])
def test_concatenate(budget):
    parts = [np.arange(n, dtype=np.int32) for n in (3, 0, 400_000, 1)]
    joined = Memory(budget).concatenate(parts, np.int32)
    np.testing.assert_array_equal(joined, np.concatenate(parts))
    assert joined.dtype == np.int32
    assert joined.flags.writeable


def test_what_must_stay_in_memory_is_refused_beyond_the_budget():
    room = Memory(10**9)
    assert room.most_listed(7) > 10**6
    with pytest.raises(SettingsError, match=r"memory budget is 1 GB.*--memory"):
        room.take("the records", 10**9)


def test_no_room_on_the_disk(monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with pytest.raises(OutputError, match="TMPDIR"):
        Memory(1).empty(2**21, np.uint8)
