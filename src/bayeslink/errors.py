"""The exceptions of bayeslink, each with the exit code the command line gives it.

A message has three parts: what was wrong, what is allowed, what to do next.
It may name a file, a line and a column, never the contents of a cell.
"""


class BayeslinkError(Exception):
    """Base of every error that bayeslink raises on purpose."""

    exit_code = 1


class SettingsError(BayeslinkError, ValueError):
    """A setting, option or argument is not one of the allowed ones."""

    exit_code = 2


class InputError(BayeslinkError, ValueError):
    """A file or table cannot be used as it is."""

    exit_code = 3


class NoColumnError(InputError):
    """A file or table lacks a column that was asked for."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


class ChangedInputError(InputError):
    """A file or table is not what it was when the run first read it."""


class OutputError(BayeslinkError, OSError):
    """Results could not be written; what was there before is untouched."""

    exit_code = 4


class TooManyPairsError(BayeslinkError):
    """A threshold so low that the pairs above it do not fit in memory."""

    exit_code = 2


class FitError(BayeslinkError):
    """An estimate that is no number: what the pairs say contradicts itself."""


def check_interval(interval: float) -> None:
    """Refuse what is no probability of an interval."""
    if not 0 < interval < 1:
        raise SettingsError(
            f"interval must be between 0 and 1, got {interval!r}. It is the probability that the "
            "interval holds; write 95 % as 0.95."
        )


def reason_of(error: BaseException) -> str:
    """What a system or a library says went wrong, in a line."""
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(told).splitlines()[0].rstrip(".")
