"""How the figures look: readable in grey, axes labelled, the data named on every one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayeslink.errors import OutputError, SettingsError

# Told apart by lightness and mark as well as by colour.
STYLES: list[dict[str, Any]] = [
    {"color": "#111111", "marker": "o", "linestyle": "-"},
    {"color": "#c1440e", "marker": "s", "linestyle": "--"},
    {"color": "#3f7fbf", "marker": "^", "linestyle": "-."},
    {"color": "#9a9a9a", "marker": "D", "linestyle": ":"},
    {"color": "#d9a400", "marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#7fbf7f", "marker": "P", "linestyle": (0, (1, 1))},
    {"color": "#b090c0", "marker": "X", "linestyle": (0, (3, 3))},
    {"color": "#5c3a1e", "marker": "<", "linestyle": (0, (4, 2, 1, 2))},
]


@contextmanager
def figure(path: Path, source: str, size: tuple[float, float], *shape: int) -> Iterator[Any]:
    """Axes to draw on, in a grid of `shape`; saved as `path` with the source of the data."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise SettingsError(
            "the experiments draw with Matplotlib, which is not installed. Install it with "
            "pip install 'bayeslink[experiments]'."
        ) from None
    mpl.use("agg")
    import matplotlib.pyplot as plt

    settings: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9,
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "lines.markersize": 4,
        "lines.linewidth": 1.2,
    }
    with plt.rc_context(settings):
        drawn, axes = plt.subplots(*(shape or (1, 1)), figsize=size, layout="constrained")
        yield axes
        drawn.supxlabel(source, x=0.995, ha="right", fontsize=7, color="0.35")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn.savefig(path, dpi=110, metadata={"Software": None})
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}.") from error
        finally:
            plt.close(drawn)


def table(header: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table; floats to four digits, missing ones as –."""
    lines = [header, ["---"] * len(header), *([_cell(x) for x in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(x: Any) -> str:
    if x is None or (isinstance(x, float) and x != x):
        return "–"
    if isinstance(x, float):
        return f"{x:,.1f}" if abs(x) >= 1000 else f"{x:.4g}"
    return f"{x:,}" if isinstance(x, int) else str(x)
