"""Small pieces of SVG, and `Chart`: a picture that can be drawn to any width.

Plain SVG needs no library in the browser: a report stays small, prints as it looks, and obeys a
content-security policy without exceptions. Text is escaped here and nowhere else.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from bayeslink.errors import OutputError, SettingsError
from bayeslink.number_format import minus

WIDE, NARROW = 736, 360
CHARACTER = 7.4  # generous mean width at 12 px


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and what it says in words. Notebooks show it; `save` writes an SVG or PNG file.

    `table` has the numbers that it is drawn from, where they make a table.
    """

    title: str
    alt: str  # for those who cannot see it
    _draw: Callable[[int], tuple[float, list[str]]] = field(repr=False)  # height, marks
    table: Any = field(default=None, repr=False)

    def svg(self, width: int = WIDE) -> str:
        """The picture, for a page that has the charts' style sheet."""
        return self._svg(width)

    def _repr_svg_(self) -> str:
        style = asset("charts.css") + ".bl-chart { background: #fff; }"
        return self._svg(WIDE, f"<style>{style}</style>")

    def _repr_html_(self) -> str:
        return f"<figure>{self._repr_svg_()}</figure>"

    def save(self, path: str | Path) -> None:
        """Write the picture as an SVG file, or as PNG, by the ending of its name."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in (".svg", ".png"):
            raise SettingsError(
                f"charts are saved as SVG or PNG: name the file {target.stem}.svg or .png."
            )
        content = (self._repr_svg_() + "\n").encode("utf-8") if kind == ".svg" else self._png()
        try:
            target.write_bytes(content)
        except OSError as error:
            raise OutputError(
                f"cannot write {target}: {error.strerror}. Check the permissions and the space "
                "left, or choose another place."
            ) from None

    def _png(self) -> bytes:
        """The picture in points, two for each pixel."""
        try:
            import resvg_py
        except ImportError:
            raise SettingsError(
                "a PNG file needs resvg. Install it with pip install 'bayeslink[png]', or save the "
                "chart as SVG, which needs nothing."
            ) from None
        style = _without_variables(asset("charts.css"))
        drawn = self._svg(WIDE, f"<style>{style}</style>")
        return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=2, background="#ffffff"))

    def _svg(self, width: int, style: str = "") -> str:
        height, marks = self._draw(width)
        return tag(
            "svg",
            style + tag("g", "".join(marks)),
            xmlns="http://www.w3.org/2000/svg",
            cls="bl-chart",
            viewBox=f"0 0 {width} {number(height)}",
            width=width,
            height=number(height),
            role="img",
            aria_label=f"{self.title}. {self.alt}",
        )


def _without_variables(style: str) -> str:
    """A style sheet for those who know no variables, and drop a rule that has some."""
    defined = re.compile(r"(--\w+):\s*([^;]+);")
    values = dict(defined.findall(style))
    return re.sub(r"var\((--\w+)\)", lambda found: values[found[1]], defined.sub("", style))


def notebook(lines: Sequence[str], *charts: Chart) -> str:
    """Sentences and charts, for a notebook."""
    said = "".join(tag("p", escape(line)) for line in lines)
    return tag("div", said + "".join(chart._repr_html_() for chart in charts))


def asset(name: str) -> str:
    """A file of this package, as text."""
    return files("bayeslink.report").joinpath(name).read_text("utf-8")


# --- text -------------------------------------------------------------------------------------


def escape(text: object) -> str:
    """Text that stays text: markup is inert, and characters that cannot be seen are spelt out."""
    return html.escape("".join(map(_visible, str(text))), quote=True)


def _visible(character: str) -> str:
    if character.isprintable() or character == " ":
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return f"⟨U+{ord(character):04X}⟩"


def shorten(text: str, width: float) -> str:
    """Text cut to about this many pixels."""
    room = max(3, int(width / CHARACTER))
    return text if len(text) <= room else text[: room - 1] + "…"


def number(value: float) -> str:
    """A coordinate, without needless digits."""
    return f"{value:.1f}".removesuffix(".0")


# --- marks ------------------------------------------------------------------------------------


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element. `content` is markup; attributes are escaped."""
    given = "".join(
        f' {"class" if key == "cls" else key.replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>"


def text(x: float, y: float, words: str, cls: str | None = None, anchor: str | None = None) -> str:
    return tag("text", escape(words), x=number(x), y=number(y), cls=cls, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, cls: str) -> str:
    return tag(
        "rect",
        x=number(x),
        y=number(y),
        width=number(max(width, 0)),
        height=number(height),
        cls=cls,
    )


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    return tag("line", x1=number(x1), y1=number(y1), x2=number(x2), y2=number(y2), cls=cls)


def polyline(points: Sequence[tuple[float, float]], cls: str) -> str:
    return tag("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), cls=cls)


def dot(x: float, y: float, radius: float, cls: str) -> str:
    return tag("circle", cx=number(x), cy=number(y), r=number(radius), cls=cls)


def hover(words: str, *marks: str) -> str:
    """Marks that say something when pointed at."""
    return tag("g", tag("title", escape(words)) + "".join(marks), cls="bl-mark")


_SAMPLES: dict[str, Callable[[float], str]] = {
    "full": lambda x: rect(x, 4, 18, 8, "full"),
    "hollow": lambda x: rect(x, 4, 18, 8, "hollow"),
    "curve": lambda x: line(x, 8, x + 18, 8, "curve"),
    "other": lambda x: line(x, 8, x + 18, 8, "other"),
    "zero": lambda x: line(x, 8, x + 18, 8, "zero"),
    "limit": lambda x: line(x + 9, 2, x + 9, 14, "limit"),
    "guide": lambda x: line(x, 8, x + 18, 8, "guide"),
    "whisker": lambda x: line(x + 9, 2, x + 9, 14, "whisker") + dot(x + 9, 8, 4, "full"),
}


def legend(right: float, items: Sequence[tuple[str, str]]) -> str:
    """Samples of marks and what they stand for, 16 pixels high, up to the right edge."""
    marks: list[str] = []
    for kind, words in reversed(items):
        right -= len(words) * 6.6
        marks += [text(right, 12, words, "soft"), _SAMPLES[kind](right - 23)]
        right -= 37
    return "".join(marks)


# --- scales -----------------------------------------------------------------------------------


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """The straight line that takes low to start and high to end."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_label(value: float, step: float) -> str:
    """A tick's number with as many decimals as its step needs."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    return "0" if value == 0 else minus(f"{value:,.{decimals}f}")


def axis_below(
    low: float, high: float, x: Callable[[float], float], y: float, about: float, title: str
) -> list[str]:
    """An axis with its numbers and its title, 34 pixels high; numbers end 14 pixels beyond it."""
    at = ticks(low, high, max(4, int(about)))
    step = at[1] - at[0] if len(at) > 1 else 1.0
    marks = []
    for value in at:
        label = tick_label(value, step)
        middle = min(x(value), x(high) + 14 - len(label) * CHARACTER / 2)
        marks.append(line(x(value), y, x(value), y + 4, "zero"))
        marks.append(text(middle, y + 16, label, "soft", "middle"))
    marks.append(text((x(low) + x(high)) / 2, y + 31, title, "soft", "middle"))
    return marks
