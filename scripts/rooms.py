"""Draw the rooms of `src/drawstring` and their imports (`make rooms`).

    python scripts/rooms.py > docs/rooms.svg

    pyproject.toml ── layers of the import contract ──> rows of rooms
    src/drawstring ── imports of the modules ─────────> arrows between the rooms

An arrow says that modules of a room import modules of another one. Arrows that follow from others are left
out: if `write` imports `query` and `query` imports `txn`, `write` has no arrow of its own to `txn`. Standard
library only.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "drawstring"
SOURCE = ROOT / "src" / PACKAGE
WIDTH, ROW, BOX_WIDTH, BOX_HEIGHT, MARGIN = 800, 50, 112, 28, 40


def layers() -> list[list[str]]:
    """Return the rooms of each row, from the ground up, as the import contract orders them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(each["layers"] for each in contracts if each["id"] == "layers")
    return [row.split(" | ") for row in reversed(rows)]


def imports(rooms: set[str]) -> dict[str, set[str]]:
    """Return the rooms that the modules of each room import."""
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in SOURCE.rglob("*.py"):
        room = module.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in rooms:
            found[room] |= {name for name in _imported(module) if name in rooms and name != room}
    return found


def _imported(module: Path) -> Iterator[str]:
    """Yield the second part of each name of the package that a module imports."""
    for node in ast.walk(ast.parse(module.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE and len(parts) > 1:
                yield parts[1]


def arrows(imported: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that do not follow from others."""
    return sorted(
        (room, other)
        for room, others in imported.items()
        for other in others
        if not any(other in _below(imported, between) for between in others - {other})
    )


def _below(imported: Mapping[str, set[str]], room: str) -> set[str]:
    """Return all rooms that a room reaches by imports."""
    found: set[str] = set()
    waiting = [room]
    while waiting:
        for other in imported[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return found


def _places(rows: list[list[str]], height: int) -> dict[str, tuple[int, int]]:
    """Return the middle of the upper edge of each room's box."""
    return {
        room: (
            MARGIN + (WIDTH - MARGIN) * place // (len(rooms) + 1),
            height - MARGIN - BOX_HEIGHT - ROW * (number - 1),
        )
        for number, rooms in enumerate(rows, 1)
        for place, room in enumerate(rooms, 1)
    }


def _way(start: tuple[int, int], end: tuple[int, int], rows: Mapping[int, list[int]]) -> str:
    """Return the points of an arrow, which passes the rows between its ends beside their boxes."""
    (x, y), (to_x, to_y) = start, end
    points = [f"{x} {y + BOX_HEIGHT}"]
    for top in sorted(row for row in rows if y < row < to_y):
        boxes = sorted(rows[top])
        gaps = [(a + b) // 2 for a, b in pairwise(boxes)]
        gaps += [boxes[0] - BOX_WIDTH * 2 // 3, boxes[-1] + BOX_WIDTH * 2 // 3]
        straight = x + (to_x - x) * (top - y) // (to_y - y)
        free = min(gaps, key=lambda gap: abs(gap - straight))
        points += [f"{free} {top}", f"{free} {top + BOX_HEIGHT}"]
    return " ".join([*points, f"{to_x} {to_y}"])


def drawing() -> str:
    """Return the picture as SVG."""
    rows = layers()
    height = 2 * MARGIN + ROW * len(rows) - (ROW - BOX_HEIGHT)
    places = _places(rows, height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        'font-family="sans-serif" font-size="13">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#777"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    columns = {places[rooms[0]][1]: [places[room][0] for room in rooms] for rooms in rows}
    for room, other in arrows(imports(set(places))):
        way = _way(places[room], places[other], columns)
        lines.append(f'<path d="M{way}" fill="none" stroke="#777" marker-end="url(#head)"/>')
    for room, (x, y) in places.items():
        lines.append(
            f'<rect x="{x - BOX_WIDTH // 2}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" '
            f'fill="#eef3f8" stroke="#445566"/><text x="{x}" y="{y + 19}" text-anchor="middle">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    sys.stdout.write(drawing())
