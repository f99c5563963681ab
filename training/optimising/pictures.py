"""Line charts as SVG, without a library: one panel for each curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 360
HEIGHT: Final = 200
COLUMNS: Final = 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 26, 24
_STYLE: Final = (
    "text{font:11px sans-serif;fill:#444}.t{font-weight:600;fill:#111}"
    ".l{fill:none;stroke:#2563eb;stroke-width:1.5}.a{stroke:#bbb}.p{fill:#2563eb}"
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A curve with its name."""

    name: str
    points: Sequence[tuple[float, float]]


def draw(panels: Sequence[Panel]) -> str:
    """All panels, two in a row. Values that are no number are left out."""
    rows = max(1, math.ceil(len(panels) / COLUMNS))
    width, height = WIDTH * COLUMNS, HEIGHT * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}"><style>{_STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
    ]
    for index, panel in enumerate(panels):
        x, y = WIDTH * (index % COLUMNS), HEIGHT * (index // COLUMNS)
        parts.append(f'<g transform="translate({x},{y})">{_panel(panel)}</g>')
    return "".join(parts) + "</svg>\n"


def _panel(panel: Panel) -> str:
    points = [(x, y) for x, y in panel.points if math.isfinite(x) and math.isfinite(y)]
    title = f'<text class="t" x="{_LEFT}" y="16">{escape(panel.name)}</text>'
    if not points:
        return title + f'<text x="{_LEFT}" y="60">nothing was measured</text>'
    (x0, x1), (y0, y1) = (_range([p[axis] for p in points]) for axis in (0, 1))
    across, down = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> str:
        return (
            f"{_LEFT + across * (x - x0) / (x1 - x0):.1f},"
            f"{_TOP + down * (1 - (y - y0) / (y1 - y0)):.1f}"
        )

    floor = HEIGHT - _BOTTOM
    parts = [
        title,
        f'<path class="a" d="M{_LEFT} {_TOP}V{floor}H{WIDTH - _RIGHT}" fill="none"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{_number(y1)}</text>',
        f'<text x="{_LEFT - 4}" y="{floor}" text-anchor="end">{_number(y0)}</text>',
        f'<text x="{_LEFT}" y="{HEIGHT - 8}">{_number(x0)}</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{_number(x1)}</text>',
    ]
    if len(points) == 1:
        x, y = place(*points[0]).split(",")
        return "".join(parts) + f'<circle class="p" cx="{x}" cy="{y}" r="3"/>'
    line = " ".join(place(x, y) for x, y in points)
    return "".join(parts) + f'<polyline class="l" points="{line}"/>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        return low - margin, high + margin
    return low, high


def _number(value: float) -> str:
    return f"{value:.3g}"
