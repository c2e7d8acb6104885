"""Numbers as people read them."""

import re


def minus(shown: str) -> str:
    """A number in digits, with the true minus sign, if it is not nothing: no −0.0."""
    return re.sub(r"^-(?=0(\.0*)?$)", "", shown).replace("-", "−")


def signed(value: float, decimals: int = 1) -> str:
    """A number with its sign; what rounds to nothing has none."""
    rounded = round(value, decimals)
    return minus(f"{rounded:+.{decimals}f}") if rounded else f"{0:.{decimals}f}"
