"""What a query reads, what it skips, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final

PARTITIONS: Final = "partitions"
SLICES: Final = "file slices"
_UNIT_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a plan leaves out.

    Attributes:
        unit: `partitions` or `file slices`.
        by: what rules them out: `listed` for the first step, `path`, `bucket`, `record key`, or the
            name of an index in the metadata table.
        skipped: number left out by this step.
        kept: number left.
        note: why an index that could leave something out is not used, and what to do; empty if it is.
    """

    unit: str
    by: str
    skipped: int
    kept: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How a plan came to its file slices.

    Attributes:
        listing: where names of files came from: `storage` or `metadata table`.
        steps: what was left out, in order; file slices of skipped partitions are not counted.
        bytes_listed: size of all file slices in partitions that were not skipped.
        where: the condition; None for all rows.
    """

    listing: str
    steps: tuple[Step, ...]
    bytes_listed: int
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query reads, what it skips, and why. Shows itself as a table, in notebooks too.

    Attributes:
        table: root of the table.
        listing: where names of files came from: `storage` or `metadata table`.
        where: the condition; None for all rows.
        steps: what was left out, in order.
        file_slices, base_files, log_files: number to read.
        bytes_to_read: size of these files; columns and row groups that are not needed are not read from them.
        bytes_skipped: size of the skipped files in partitions that are read.
    """

    table: str
    listing: str
    where: str | None
    steps: tuple[Step, ...]
    file_slices: int
    base_files: int
    log_files: int
    bytes_to_read: int
    bytes_skipped: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield the rows of the table: unit, step, number skipped, number kept."""
        for step in self.steps:
            if not step.note:
                yield step.unit, step.by, step.skipped, step.kept
        yield "files", "base files", 0, self.base_files
        yield "files", "log files", 0, self.log_files

    @property
    def notes(self) -> tuple[str, ...]:
        """Which indexes are not used, why, and what to do."""
        return tuple(f"{step.by} is not used. {step.note}" for step in self.steps if step.note)

    @property
    def summary(self) -> str:
        """One line: what is read, of what, and where names of files come from."""
        listed = next((step.kept for step in self.steps if step.unit == SLICES), self.file_slices)
        read, skipped = size_text(self.bytes_to_read), size_text(self.bytes_to_read + self.bytes_skipped)
        condition = "" if self.where is None else f", where {self.where}"
        return (
            f"{self.file_slices:,} of {listed:,} file slices, {read} of {skipped}, listed by the"
            f" {self.listing}{condition}"
        )

    def __str__(self) -> str:
        """Return the table as text."""
        return "\n".join([f"{self.table}: {self.summary}", *aligned(_HEAD, self.rows()), *self.notes])

    def _repr_html_(self) -> str:
        lines = ((escape(str(value)) for value in row) for row in self.rows())
        cells = "".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in lines)
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        summary = f"<p>{escape(self.table)}: {escape(self.summary)}</p>"
        return f"{summary}<table><tr>{head}</tr>{cells}</table>{notes}"


_HEAD: Final = ("", "step", "skipped", "kept")


def aligned(head: Sequence[str], rows: Iterator[tuple[str, str, int, int]]) -> list[str]:
    """Return lines of columns; a unit is shown in its first row only."""
    lines, before = [tuple(head)], ""
    for unit, by, skipped, kept in rows:
        lines.append(("" if unit == before else unit, by, f"{skipped:,}" if skipped else "", f"{kept:,}"))
        before = unit
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return [
        f"  {line[0]:{widths[0]}}  {line[1]:{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]:>{widths[3]}}"
        for line in lines
    ]


def size_text(size_bytes: int) -> str:
    """Return a size with its unit, as in `1.5 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _UNIT_BYTES:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _UNIT_BYTES
    return f"{size:.1f} TiB"
