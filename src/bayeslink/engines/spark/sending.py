"""Work as bytes; large arrays, and what is `Shared`, are left out of them and sent once.

The sender gives each such object a name and publishes it (Spark: as a broadcast). Whoever does the
work keeps it by that name: arrays in files of the machine, mapped into memory, so that all of its
processes share them.
"""

from __future__ import annotations

import io
import os
import pickle
import uuid
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

from bayeslink.threads import Shared

_LARGE = 1 << 18  # bytes from which an array is sent by itself
_OBJECTS, _ARRAYS = 4, 200  # shared objects and arrays that a process keeps
_FORGOTTEN = 500  # names that are told to have gone

Parcels = Mapping[str, Any]  # by name; `.value` of one is an array, or the bytes of an object


class Sender:
    """Turns work into bytes.

    Parameters
    ----------
    publish
        Makes a parcel, which has a `value`, of an array or bytes.
    withdraw
        Is told of parcels that are needed no more.
    """

    def __init__(
        self, publish: Callable[[Any], Any], withdraw: Callable[[Any], None] = lambda parcel: None
    ) -> None:
        self._publish, self._withdraw = publish, withdraw
        self._names: dict[int, str] = {}  # by identity of the object
        self._parcels: dict[str, Any] = {}
        self._uses: dict[str, set[str]] = {}  # parcels that one speaks of, itself included
        self._unused: deque[str] = deque()  # whose objects are gone
        self.gone: deque[str] = deque(maxlen=_FORGOTTEN)
        self._run, self._numbers = uuid.uuid4().hex[:12], count()

    def dumps(self, work: Any) -> tuple[bytes, Parcels]:
        """The work, and the parcels that it speaks of."""
        self._clear()
        text, used = self._pickled(work, None)
        return text, {name: self._parcels[name] for name in used}

    def _pickled(self, thing: Any, root: Any) -> tuple[bytes, set[str]]:
        from pyspark.cloudpickle import CloudPickler

        used: set[str] = set()
        named, uses = self._named, self._uses

        class Pickler(CloudPickler):
            def persistent_id(self, found: Any) -> str | None:
                large = isinstance(found, np.ndarray) and found.nbytes >= _LARGE
                if found is root or not (large or isinstance(found, Shared)):
                    return None
                name = named(found)
                used.update(uses[name])
                return name

        out = io.BytesIO()
        pickler: Any = Pickler
        pickler(out, protocol=5).dump(thing)
        return out.getvalue(), used

    def _named(self, found: Any) -> str:
        """The name of an object that is sent by itself, now or before."""
        if name := self._names.get(id(found)):
            return name
        name = f"bayeslink-{self._run}-{next(self._numbers)}"
        content: Any
        if isinstance(found, np.ndarray):
            content, used = np.ascontiguousarray(found).view(np.ndarray), set[str]()
        else:
            content, used = self._pickled(found, found)
        self._names[id(found)], self._uses[name] = name, used | {name}
        self._parcels[name] = self._publish(content)
        weakref.finalize(found, self._forget, id(found), name)
        return name

    def _forget(self, identity: int, name: str) -> None:
        """Called when the object is gone: another may have its identity next."""
        if self._names.get(identity) == name:
            del self._names[identity]
            self._unused.append(name)

    def _clear(self) -> None:
        while self._unused:
            name = self._unused.popleft()
            if name in self._parcels:
                self._withdraw(self._parcels.pop(name))
                self.gone.append(name)


# --- where the work is done -----------------------------------------------------------------------

Kept = OrderedDict[str, Any]  # by name, the last used last
_kept: tuple[Kept, Kept] = (OrderedDict(), OrderedDict())  # objects, arrays


def loads(text: bytes, parcels: Parcels, folder: str, gone: Iterable[str] = ()) -> Any:
    """The work; what it speaks of is kept by this process, arrays in files of `folder`."""
    for name in gone:
        for kept in _kept:
            kept.pop(name, None)
        with suppress(FileNotFoundError):  # another process may be about the same
            os.unlink(os.path.join(folder, f"{name}.npy"))

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Any:
            for kept in _kept:
                if name in kept:
                    kept.move_to_end(name)
                    return kept[name]
            path = os.path.join(folder, f"{name}.npy")
            if not os.path.exists(path):
                value = _taken(parcels[name])
                if isinstance(value, bytes):
                    return _keep(0, name, Unpickler(io.BytesIO(value)).load(), _OBJECTS)
                _write(path, value)
            # Copy on write, as compiled code wants arrays that may be written to; none is.
            return _keep(1, name, np.load(path, mmap_mode="c").view(np.ndarray), _ARRAYS)

    return Unpickler(io.BytesIO(text)).load()


def _keep(kind: int, name: str, found: Any, most: int) -> Any:
    kept = _kept[kind]
    kept[name] = found
    while len(kept) > most:
        kept.popitem(last=False)
    return found


def _taken(parcel: Any) -> Any:
    """The content of a parcel, of which Spark then keeps none in memory."""
    value = parcel.value
    if getattr(parcel, "_path", None) is not None and hasattr(parcel, "_value"):
        del parcel._value
    return value


def _write(path: str, array: np.ndarray[Any, Any]) -> None:
    """Whole or not at all: another process may be about the same."""
    scratch = f"{path}.{os.getpid()}"
    with open(scratch, "wb") as file:
        np.save(file, array)
    os.replace(scratch, path)
