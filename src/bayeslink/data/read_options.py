"""How a file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bayeslink.errors import SettingsError
from bayeslink.plain import plain, texts


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file. `missing` adds to the blank cells, which are always missing; `multiline`
    says that quoted cells may hold lines that look like records.

    Options that mean the same are equal: `missing` is kept as texts without space around them,
    each once, the blank first.
    """

    encoding: str | None = None
    delimiter: str | None = None
    skip_lines: int = 0
    quarantine: str | Path | None = None
    missing: Sequence[str] = ("",)
    table: str | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        try:
            " ".encode(self.encoding or "utf-8")
        except (LookupError, TypeError, ValueError):
            raise SettingsError(
                f"encoding {self.encoding!r} is not known. Use a name that Python knows, such as "
                "utf-8, cp1252, latin-1 or utf-16."
            ) from None
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n\0 '
        ):
            raise SettingsError(
                f"delimiter must be one character such as , ; | or a tab, got {self.delimiter!r}."
            )
        lines = plain(self.skip_lines)
        if not isinstance(lines, int) or isinstance(lines, bool) or not 0 <= lines < 2**31:
            raise SettingsError(
                f"skip_lines must be a whole number from 0 to 2^31, got {self.skip_lines!r}."
            )
        if not isinstance(self.multiline, bool):
            raise SettingsError(f"multiline must be true or false, got {self.multiline!r}.")
        words = None if isinstance(self.missing, str) else texts(self.missing)
        if words is None:
            raise SettingsError("missing must be a list of texts, such as ['NA', '999'].")
        object.__setattr__(self, "skip_lines", lines)
        object.__setattr__(self, "missing", (*dict.fromkeys(["", *(w.strip() for w in words)]),))
