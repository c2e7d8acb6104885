"""What sources of pairs share: how they are shown, and what one over another takes from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.notebook_html import html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from bayeslink.pairs.source import Description, Ints, PairSource, Scope


class Held:
    """Shown by its size and fields."""

    fields: Any
    n_a: Any
    n_b: Any
    n_pairs: Any
    one_file: bool
    files: Any = None

    def __repr__(self) -> str:
        return "\n".join([self._told(), *(f"  {field!r}" for field in self.fields)])

    def _repr_html_(self) -> str:
        rows = [[f.name, f.kind, ", ".join(f.labels)] for f in self.fields]
        return html_table(self._told(), ["field", "comparison", "levels, worst first"], rows)

    def _told(self) -> str:
        if self.files is not None:
            names = ", ".join(self.files.names)
            return f"{self.n_a:,} records of {names}; {self.n_pairs:,} pairs in scope"
        if self.one_file:
            return f"{self.n_a:,} records of one file, {self.n_pairs:,} pairs in scope"
        return f"{self.n_a:,} records of A, {self.n_b:,} of B, {self.n_pairs:,} pairs in scope"


class HeldHere(Held):
    """The same for a source that holds files and threads of this process."""

    def __reduce__(self) -> Any:
        raise TypeError(
            "pairs cannot be copied or pickled, nor what rests on them: they hold files of this "
            "process. Save the run with run.save(…) and open it with bl.open_run(…)."
        )


class Over(HeldHere):
    """A source over another one: what it does not say itself is the other's."""

    def __init__(self, inner: PairSource) -> None:
        self.inner = inner
        self.fields = inner.fields
        self.scope: Scope = inner.scope
        self.one_file, self.files = inner.one_file, inner.files
        self.workers, self.memory = inner.workers, inner.memory
        self.closed, self.remote = inner.closed, inner.remote
        self.tie_keys, self.kind, self.id_types = inner.tie_keys, inner.kind, inner.id_types

    @property
    def copies(self) -> tuple[Ints, Ints] | None:
        return self.inner.copies

    @property
    def n_a(self) -> int:
        return self.inner.n_a

    @property
    def n_b(self) -> int:
        return self.inner.n_b

    @property
    def n_pairs(self) -> int:
        return self.scope.n_pairs

    def join_sizes(self) -> Ints:
        return self.inner.join_sizes()

    def together(self, rows: tuple[Ints, Ints]) -> PairSource | None:
        return self.inner.together(rows)

    def ids(self, side: int, rows: NDArray[np.int32]) -> pa.Array:
        return self.inner.ids(side, rows)

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        return self.inner.cells(side, rows)

    def describe(self) -> Description:
        return self.inner.describe()
