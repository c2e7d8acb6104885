"""state.npz of a run directory: what `link` worked out, so that a run can be opened again.

Dataclasses of arrays and plain values become arrays in a zip file and one JSON text that says how
they go together. Only the classes named here are made from it, so that a file from elsewhere can
bring in data but no code.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.checkpoints import Arrays
from bayeslink.errors import InputError
from bayeslink.linkage.assignment import Assignment
from bayeslink.linkage.decisions import Decision
from bayeslink.linkage.penalized import Mode, PenalizedFit
from bayeslink.linkage.posthoc import Blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.linkage.rivals import Rivals
from bayeslink.model.dependence import Dependence, Together, Tree
from bayeslink.model.error_counts import ErrorLaw, ErrorPriors
from bayeslink.model.structure import Dependent, Structure
from bayeslink.model.weights import Parameters, Priors
from bayeslink.pairs.source import LevelCounts, Pairs, PairSource, Scope
from bayeslink.sampling.fit_checks import FitChecks
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.weight_bands import Band
from bayeslink.sampling.within_files import WithinFiles

FILE = "state.npz"
_CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Assignment, Band, Blocks, Decision, Dependence, Dependent, ErrorLaw, ErrorPriors,
        FitChecks, LevelCounts, Mode, Overlap, Pairs, Parameters, Penalty, PenalizedFit, Posterior,
        Priors, Rivals, Scope, Structure, Together, Tree, WithinFiles,
    )
}  # fmt: skip
# Of a posterior, what draws.parquet, link_draws.parquet and run.json hold.
_DRAWN = ("n_links", "log_posterior", "m", "u", "kept", "seconds")
# `searches` depends on the memory there was; a fit that is read has done none.
_LEFT_OUT: dict[str, tuple[str, ...]] = {"Posterior": _DRAWN, "PenalizedFit": ("searches",)}


def write_state(values: Mapping[str, Any], path: Path) -> None:
    """Write values by name; a PairSource among them is only told of, not written."""
    packing = _Packing()
    told = {name: packing.pack(value) for name, value in values.items()}
    text = json.dumps({"values": told})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_entry("state.json"), text, compresslevel=1)
        for number, array in enumerate(packing.arrays):
            with archive.open(_entry(f"{number}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def _entry(name: str) -> zipfile.ZipInfo:
    """A file in the archive, without the time, so that the same run gives the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class _Packing:
    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._number: dict[tuple[Any, ...], int] = {}  # by content

    def pack(self, value: Any) -> Any:
        """A value as JSON has it; arrays are put aside, each once."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return {"array": self._aside(value)}
        if isinstance(value, pa.Array):
            whole = pa.concat_arrays([value.cast(pa.large_string())])  # without an offset
            _, ends, letters = whole.buffers()
            ends = np.frombuffer(ends, np.int64, len(whole) + 1)
            letters = np.frombuffer(letters or b"", np.uint8)[: ends[-1]]
            return {"texts": [self._aside(ends), self._aside(letters)]}
        if isinstance(value, tuple | list):
            return [self.pack(part) for part in value]
        if isinstance(value, Mapping):
            return {"map": {key: self.pack(part) for key, part in value.items()}}
        if type(value).__name__ in _CLASSES:
            without = _LEFT_OUT.get(type(value).__name__, ())
            names = [f.name for f in fields(value) if f.name not in without]
            parts = {name: self.pack(getattr(value, name)) for name in names}
            return {"class": type(value).__name__, "with": parts}
        if isinstance(value, PairSource):
            return {"pairs": True}
        raise TypeError(f"a {type(value).__name__} is not written")

    def _aside(self, array: Any) -> int:
        content = np.ascontiguousarray(array)
        content_hash = blake2b(content.reshape(-1).view(np.uint8).data).digest()
        key = (content.dtype.str, content.shape, content_hash)
        if key not in self._number:
            self._number[key] = len(self.arrays)
            self.arrays.append(array)
        return self._number[key]


class State:
    """What `write_state` wrote, read again value by value."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                told = json.loads(archive.read("state.json"))
                self._arrays = [
                    np.lib.format.read_array(archive.open(f"{k}.npy"), allow_pickle=False)
                    for k in range(len(archive.namelist()) - 1)
                ]
            self._values = told["values"]
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise self._refused(str(error).splitlines()[0]) from None

    def read(self, name: str, pairs: Any = None, drawn: Mapping[str, Any] | None = None) -> Any:
        """A value; `pairs` stands in for the PairSource, `drawn` is the rest of a posterior."""
        try:
            return _read(self._values[name], self._arrays, pairs, drawn)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self._refused(f"{name}: {error}") from None

    def _refused(self, reason: str) -> InputError:
        return InputError(
            f"cannot read {self._path}: {reason}. Give a run directory as this version of "
            "bayeslink writes it, whole; or link the files again."
        )


def _read(told: Any, arrays: Sequence[Any], pairs: Any, drawn: Mapping[str, Any] | None) -> Any:
    """What `_Packing` made of a value, as the value."""
    if isinstance(told, list):
        return tuple(_read(part, arrays, pairs, drawn) for part in told)
    if not isinstance(told, dict):
        return told
    if "array" in told:
        return arrays[told["array"]]
    if "texts" in told:
        ends, letters = (pa.py_buffer(arrays[k]) for k in told["texts"])
        n = len(arrays[told["texts"][0]]) - 1
        texts = pa.LargeStringArray.from_buffers(n, ends, letters)
        texts.validate(full=True)
        return texts
    if "map" in told:
        return {key: _read(part, arrays, pairs, drawn) for key, part in told["map"].items()}
    if "pairs" in told:
        return pairs
    parts = {key: _read(part, arrays, pairs, drawn) for key, part in told["with"].items()}
    if told["class"] == "Posterior":
        parts.update(drawn or {})
    if told["class"] == "PenalizedFit":
        parts["searches"] = 0
    return _CLASSES[told["class"]](**parts)


def as_arrays(value: Any) -> Arrays:
    """A value as a checkpoint holds it."""
    packing = _Packing()
    told = np.array(json.dumps(packing.pack(value)))
    return {"told": told, **{str(k): array for k, array in enumerate(packing.arrays)}}


def from_arrays(arrays: Arrays, pairs: PairSource) -> Any:
    """A value from what `as_arrays` made of it."""
    laid = [arrays[str(k)] for k in range(len(arrays) - 1)]
    return _read(json.loads(str(arrays["told"])), laid, pairs, None)
