"""Pictures of the statistics: bars as plain SVG, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _TOP, _BAR, _FOOT = 640, 46, 44, 160, 30
_COLOURS = ("#1f77b4", "#c4c4c4")


@dataclass(frozen=True, slots=True)
class Series:
    """A name and one number for each label."""

    name: str
    values: Sequence[int]


def bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> bytes:
    """Groups of upright bars, each series as shares of its own total in per cent."""
    shares = [
        [100 * v / total if (total := sum(one.values)) else 0.0 for v in one.values]
        for one in series
    ]
    top = max(10.0, *(share for one in shares for share in one))
    slot = (_WIDTH - _LEFT - 10) / len(labels)
    wide = slot * 0.8 / len(series)
    parts = [_title(title), *_legend(series)]
    for step in range(5):
        y = _TOP + _BAR * (1 - step / 4)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - 10}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{top * step / 4:.0f} %", anchor="end"))
    for place, label in enumerate(labels):
        left = _LEFT + place * slot + slot * 0.1
        for number, one in enumerate(shares):
            high = _BAR * one[place] / top
            parts.append(
                f'<rect x="{left + number * wide:.1f}" y="{_TOP + _BAR - high:.1f}"'
                f' width="{wide:.1f}" height="{high:.1f}" fill="{_COLOURS[number % 2]}">'
                f"<title>{escape(series[number].name)} {escape(label)}: "
                f"{series[number].values[place]}</title></rect>"
            )
        middle = _LEFT + (place + 0.5) * slot
        parts.append(_text(middle, _TOP + _BAR + 16, label, anchor="middle"))
    return _svg(_TOP + _BAR + _FOOT, parts)


def steps(title: str, rows: Sequence[tuple[str, int]]) -> bytes:
    """Lying bars of one series, each with its number: a funnel."""
    top = max([1, *(value for _, value in rows)])
    parts = [_title(title)]
    for place, (label, value) in enumerate(rows):
        y = _TOP + place * 24
        long = (_WIDTH - 240) * value / top
        parts.append(_text(140, y + 12, label, anchor="end"))
        parts.append(f'<rect x="150" y="{y}" width="{long:.1f}" height="16" fill="{_COLOURS[0]}"/>')
        parts.append(_text(156 + long, y + 12, f"{value:,}"))
    return _svg(_TOP + len(rows) * 24 + 10, parts)


def _legend(series: Sequence[Series]) -> list[str]:
    parts = []
    for number, one in enumerate(series):
        x = _WIDTH - 220 + number * 110
        parts.append(f'<rect x="{x}" y="9" width="10" height="10" fill="{_COLOURS[number % 2]}"/>')
        parts.append(_text(x + 14, 18, f"{one.name} ({sum(one.values):,})"))
    return parts


def _title(title: str) -> str:
    return f'<text x="10" y="18" font-size="14" font-weight="bold">{escape(title)}</text>'


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> bytes:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}"'
        f' width="{_WIDTH}" height="{height:.0f}" font-family="sans-serif" font-size="11">'
        '<rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>\n"]).encode()
