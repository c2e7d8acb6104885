"""Numbers as people read them."""


def minus(shown: str) -> str:
    """A number in digits, with the true minus sign."""
    return shown.replace("-", "−")


def signed(value: float, decimals: int = 1) -> str:
    """A number with its sign; what rounds to nothing has none."""
    rounded = round(value, decimals)
    return minus(f"{rounded:+.{decimals}f}") if rounded else f"{0:.{decimals}f}"
