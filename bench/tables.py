"""Tables in Markdown that also read well in a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its columns aligned."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [_line(head, widths), _rule(widths), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join([first, *others])} |"


def _rule(widths: Sequence[int]) -> str:
    first, *others = widths
    return "|".join(["", "-" * (first + 2), *(f"{'-' * (width + 1)}:" for width in others), ""])
