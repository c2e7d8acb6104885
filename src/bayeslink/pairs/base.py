"""What every source of pairs shares: how it is shown, and that it cannot be pickled."""

from __future__ import annotations

from typing import Any

from bayeslink.notebook_html import html_table


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
