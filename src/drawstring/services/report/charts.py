"""Charts as SVG text: bars, with a title that a browser shows for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 920
_HEIGHT: Final = 150
_LEFT: Final = 70
_BOTTOM: Final = 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart.

    Attributes:
        value: its height.
        label: below the bar; empty for none.
        title: what a browser shows when the pointer is on it.
        kind: class of its colour.
    """

    value: float
    label: str
    title: str
    kind: str = "write"


def bars(name: str, values: Sequence[Bar], text: Callable[[float], str]) -> str:
    """Return a bar chart.

    Args:
        name: what it shows, for those who cannot see it.
        values: the bars, from left to right.
        text: returns a height as text, for the axis.
    """
    if not values:
        return '<p class="none">nothing yet</p>'
    top = max(each.value for each in values) or 1
    wide = (_WIDTH - _LEFT) / len(values)
    gap = min(3.0, wide / 5)
    drawn = "".join(_bar(each, _LEFT + number * wide, wide, gap, top) for number, each in enumerate(values))
    axis = (
        f'<text x="{_LEFT - 6}" y="12" class="axis">{escape(text(top))}</text>'
        f'<text x="{_LEFT - 6}" y="{_HEIGHT}" class="axis">0</text>'
        f'<line x1="{_LEFT}" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
    )
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT + _BOTTOM}"'
    return f'<svg role="img" aria-label="{escape(name)}" {size}>{axis}{drawn}</svg>'


def _bar(bar: Bar, x: float, wide: float, gap: float, top: float) -> str:
    high = max(bar.value / top * (_HEIGHT - 4), 1.0 if bar.value else 0.0)
    label = (
        f'<text x="{x + wide / 2:.1f}" y="{_HEIGHT + 15}" class="label">{escape(bar.label)}</text>'
        if bar.label
        else ""
    )
    return (
        f'<rect class="{bar.kind}" x="{x + gap / 2:.1f}" y="{_HEIGHT - high:.1f}"'
        f' width="{wide - gap:.1f}" height="{high:.1f}"><title>{escape(bar.title)}</title></rect>{label}'
    )
