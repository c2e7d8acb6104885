"""What holds for every database: one SELECT, within bounds of time."""

from __future__ import annotations

from bayeslink.errors import InputError

SECONDS = 600  # that a query may take


def no_select(where: str) -> InputError:
    """That a query is not one SELECT."""
    return InputError(
        f"{where}: --table (table=) must be the name of a table or one SELECT query, and this "
        "is something else. Nothing of it was run. If the settings came from somebody else, "
        "ask what it is for."
    )


def too_late(where: str, seconds: float) -> InputError:
    """That a query takes too long."""
    return InputError(
        f"{where}: the query takes longer than {seconds} seconds and was stopped. Write its "
        "result to a table, and name that."
    )
