"""What the demo prints: one line a step while it works, then results, timeline and files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

import drawstring

_WIDTH_WITHOUT_TERMINAL = 120
_NAME_WIDTH = 52


def console() -> Console:
    """Return the console; a pipe gets lines of a fixed width, without colours."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


@dataclass
class Step:
    """A step under way; the one who does it says how many rows it had."""

    name: str
    rows: int | None = None


class Steps:
    """Prints each step when it is done, and on a terminal what is being done."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._began = time.perf_counter()

    @contextmanager
    def step(self, name: str, file: Path | None = None) -> Iterator[Step]:
        """Time a step; the rows of `file` are the step's unless it says otherwise."""
        step = Step(name, pq.read_metadata(file).num_rows if file else None)
        start = time.perf_counter()
        if self._out.is_terminal:
            with self._out.status(f"{name.strip()} ..."):
                yield step
        else:
            yield step
        seconds = time.perf_counter() - start
        rows = f"{step.rows:>9,} rows" if step.rows is not None else " " * 14
        self._out.print(Text(f"{name:<{_NAME_WIDTH}} {rows} {seconds:7.2f} s"), soft_wrap=True)

    @property
    def seconds(self) -> float:
        """Seconds since the first step could begin."""
        return time.perf_counter() - self._began


def results(out: Console, rows: Sequence[tuple[str, str, str]], ok: bool) -> None:
    """Print what came out and whether it is right."""
    grid = Table(title="Results", title_justify="left", box=None, pad_edge=False)
    grid.add_column("what")
    grid.add_column("rows", justify="right")
    grid.add_column("against a plain computation over the source rows", style="green" if ok else "red")
    for row in rows:
        grid.add_row(*map(Text, row))
    out.print("")
    out.print(grid)


def timeline(out: Console, path: str) -> None:
    """Print a table's instants, oldest first."""
    grid = Table(title=f"Timeline of {Path(path).name}", title_justify="left", box=None, pad_edge=False)
    for name in ("requested", "completed", "action", "state"):
        grid.add_column(name)
    for instant in drawstring.open(path).timeline.instants:
        state = instant.state.name.lower()
        grid.add_row(_moment(instant.requested), _moment(instant.completed), str(instant.action), state)
    out.print("")
    out.print(grid)


def files(out: Console, path: str, *, with_names: bool) -> None:
    """Print how many files a table has by kind, and if wanted those of one file group."""
    kinds = {file: kind for file in sorted(Path(path).rglob("*")) if (kind := _kind(file, path))}
    count = Counter(kinds.values())
    told = ", ".join(f"{number} {kind} ({_megabytes(kinds, kind):.1f} MB)" for kind, number in count.items())
    partitions = {file.parent for file in kinds}
    out.print("")
    out.print(f"Files of {Path(path).name}: {len(partitions)} partitions, {told}.")
    if not with_names or not kinds:
        return
    group = _file_group(next(iter(kinds)))
    out.print("One file group:")
    for file in kinds:
        if _file_group(file) == group:
            out.print(f"  {file.relative_to(path)}  {file.stat().st_size / 1e3:,.0f} kB", soft_wrap=True)


def _megabytes(kinds: dict[Path, str], kind: str) -> float:
    return sum(file.stat().st_size for file, of_kind in kinds.items() if of_kind == kind) / 1e6


def _file_group(file: Path) -> tuple[str, str]:
    """Return the partition and the id before the first underscore; names of log files begin with a dot."""
    return file.parent.name, file.name.lstrip(".").partition("_")[0]


def _kind(file: Path, path: str) -> str | None:
    if not file.is_file() or ".hoodie" in file.relative_to(path).parts:
        return None
    if file.suffix == ".parquet":
        return "base files"
    return "log files" if ".log." in file.name else None


def _moment(instant: str | None) -> str:
    """Return an instant as a moment for people."""
    if not instant:
        return ""
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    return f"{day} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}.{instant[14:]}"
