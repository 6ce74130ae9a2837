"""A chart of lines on two logarithmic axes, as SVG without a library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 380
"""Of a panel, in pixels, with its margins."""
LEFT, RIGHT, TOP, BOTTOM = 56, 40, 60, 44
LEGEND_LINE = 18
_TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'


@dataclass(frozen=True)
class Line:
    """Points of positive numbers, in the order in which they are joined."""

    label: str
    colour: str
    dashed: bool
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Panel:
    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Scale:
    """Whole decades onto pixels."""

    low: int
    high: int
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    @property
    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def line_chart(panels: Sequence[Panel], x_label: str, y_label: str) -> str:
    """Panels side by side on the same axes, with one legend below."""
    lines = [line for panel in panels for line in panel.lines]
    points = [point for line in lines for point in line.points]
    x = _scale([x for x, _ in points], LEFT, WIDTH - RIGHT)
    y = _scale([y for _, y in points], HEIGHT - BOTTOM, TOP)
    legend = list({(line.label, line.colour, line.dashed): line for line in lines}.values())
    width = WIDTH * len(panels)
    height = HEIGHT + LEGEND_LINE * math.ceil(len(legend) / 2) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts.append(f'<g transform="translate({number * WIDTH} 0)">')
        parts += _axes(panel.title, x, y, x_label, y_label)
        parts += [_drawn(line, x, y) for line in panel.lines]
        parts.append("</g>")
    parts += _legend(legend, width)
    return "\n".join([*parts, "</svg>", ""])


def _scale(values: Sequence[float], begin: float, end: float) -> Scale:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(low, max(high, low + 1), begin, end)


def _axes(title: str, x: Scale, y: Scale, x_label: str, y_label: str) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="24" font-weight="bold" {_TEXT}>{escape(title)}</text>'
    for value in x.decades:
        yield _rule(x(value), y.begin, x(value), y.end)
        yield _word(f"{value:,.0f}", x(value), y.begin + 16, "middle")
    for value in y.decades:
        yield _rule(x.begin, y(value), x.end, y(value))
        yield _word(f"{value:,g}", x.begin - 6, y(value) + 4, "end")
    yield _word(x_label, (x.begin + x.end) / 2, y.begin + 34, "middle")
    yield _word(y_label, x.begin, y.end - 10, "start")


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#ddd"/>'


def _word(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_TEXT}>{escape(text)}</text>'


def _drawn(line: Line, x: Scale, y: Scale) -> str:
    path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in line.points)
    return f'<path d="M{path}" {_stroke(line)}/>'


def _stroke(line: Line) -> str:
    dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
    return f'fill="none" stroke="{line.colour}" stroke-width="2"{dashes}'


def _legend(lines: Sequence[Line], width: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        left = LEFT + (number % 2) * (width - LEFT) / 2
        top = HEIGHT + LEGEND_LINE * (number // 2) + 8
        yield f'<path d="M{left:.1f} {top}h30" {_stroke(line)}/>'
        yield _word(line.label, left + 38, top + 4, "start")
