"""`drawstring files`: the latest file slices of a table."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from drawstring.base.counted import counted
from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.model.explanation import size_text
from drawstring.model.files import FileSlice

OnePartition = Annotated[str | None, Parameter(name="--partition", help="Show only this partition path.")]


def files(
    path: TablePath,
    *,
    partition: OnePartition = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """List the files that a snapshot reads: each file group's base file and log files."""
    slices = list(open_table(path, storage_option).file_slices())
    if partition is not None:
        slices = _of_partition(slices, partition, path)
    slices.sort(key=lambda part: (part.partition, part.file_id))
    if as_json:
        output.print_json([_as_dict(part) for part in slices])
        return
    output.print_grid(
        ("partition", "file group", "instant", "base file", "log files", "size"),
        (_row(part) for part in slices),
    )
    total = size_text(sum(part.size_bytes for part in slices))
    groups = counted(len(slices), "file group")
    output.print_line(f"{groups}, {total}")


def _of_partition(slices: list[FileSlice], partition: str, table: str) -> list[FileSlice]:
    found = [part for part in slices if part.partition == partition.strip("/")]
    if not found:
        known = sorted({part.partition for part in slices})
        some = ", ".join(map(repr, known[:5])) + (", ..." if len(known) > 5 else "")
        raise InvalidError(
            f"There is no partition {partition!r}. "
            + (f"Use one of {some}." if known else "The table has none."),
            table=table,
        )
    return found


def _row(part: FileSlice) -> tuple[object, ...]:
    base = size_text(part.base.status.size_bytes) if part.base else "-"
    size = size_text(part.size_bytes)
    return part.partition, part.file_id, part.base_instant, base, len(part.logs), size


def _as_dict(part: FileSlice) -> dict[str, object]:
    return {
        "partition": part.partition,
        "file_id": part.file_id,
        "base_instant": part.base_instant,
        "base_file": part.base.status.path if part.base else None,
        "log_files": [log.status.path for log in part.logs],
        "size_bytes": part.size_bytes,
    }
