"""Table 1 as a picture: lying bars with their intervals, published ones grey. Plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from training.evaluation.table import OURS, Row

_WIDTH, _LEFT, _TOP, _ROW = 680, 230, 44, 22
_SPACE = _WIDTH - _LEFT - 60
_COLOURS = {OURS: "#1f77b4"}
_GREY = "#c4c4c4"
_NAME_CHARS = 34


def picture(rows: Sequence[Row]) -> bytes:
    """Rows with a rate, in their order. The same bytes for the same rows."""
    shown = [row for row in rows if row.asr is not None]
    high = _TOP + len(shown) * _ROW + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {high}"'
        f' width="{_WIDTH}" height="{high}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        '<text x="10" y="18" font-size="14" font-weight="bold">'
        "Strict success rate, by who measured it</text>",
        f'<rect x="{_LEFT}" y="26" width="10" height="10" fill="{_GREY}"/>',
        f'<text x="{_LEFT + 14}" y="35">paper (its 75 problems)</text>',
        f'<rect x="{_LEFT + 160}" y="26" width="10" height="10" fill="{_COLOURS[OURS]}"/>',
        f'<text x="{_LEFT + 174}" y="35">ours, with 95 % intervals</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + share * _SPACE
        parts.append(f'<path d="M{x:.1f} {_TOP}V{high - 24}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{high - 10}" text-anchor="middle">{share:.0%}</text>')
    for place, row in enumerate(shown):
        parts += _bar(row, _TOP + place * _ROW)
    return "\n".join([*parts, "</svg>\n"]).encode()


def _bar(row: Row, y: float) -> list[str]:
    assert row.asr is not None
    long = row.asr * _SPACE
    name = row.model if len(row.model) <= _NAME_CHARS else row.model[: _NAME_CHARS - 1] + "…"
    parts = [
        f'<text x="{_LEFT - 6}" y="{y + 14}" text-anchor="end">{escape(_plain(name))}</text>',
        f'<rect x="{_LEFT}" y="{y + 4}" width="{long:.1f}" height="{_ROW - 8}"'
        f' fill="{_COLOURS.get(row.harness, _GREY)}"/>',
    ]
    end = long
    if row.low is not None and row.high is not None:
        low, end = row.low * _SPACE, max(long, row.high * _SPACE)
        middle = y + _ROW / 2
        parts.append(
            f'<path d="M{_LEFT + low:.1f} {middle}H{_LEFT + row.high * _SPACE:.1f}" stroke="#222"/>'
        )
    parts.append(f'<text x="{_LEFT + end + 4:.1f}" y="{y + 14}">{100 * row.asr:.1f}</text>')
    return parts


def _plain(text: str) -> str:
    """XML takes no control characters, escaped or not."""
    return "".join(c if c.isprintable() else "�" for c in text)
