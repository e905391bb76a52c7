"""Files of the archived timeline, layout 2: Parquet, one row per instant (specification: Timeline, archived).

instantTime, completionTime, action   texts; the action of the completed state
metadata                              bytes of the completed file
plan                                  bytes of the requested file of table services and replace commits
version                               1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.errors import CorruptTableError

_SCHEMA: Final = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_KEY: Final = ("instantTime", "completionTime", "action")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """An archived instant."""

    requested: str
    completed: str
    action: str
    metadata: bytes
    plan: bytes | None


def encode_history(rows: Iterable[HistoryRow]) -> bytes:
    """Return a file with instants, which have to be sorted by requested time."""
    instants = list(rows)
    columns = [
        pa.array([row.requested for row in instants], pa.string()),
        pa.array([row.completed for row in instants], pa.string()),
        pa.array([row.action for row in instants], pa.string()),
        pa.array([row.metadata for row in instants], pa.binary()),
        pa.array([row.plan for row in instants], pa.binary()),
        pa.array([_VERSION] * len(instants), pa.int32()),
    ]
    return _encode(pa.Table.from_arrays(columns, schema=_SCHEMA))


def decode_history(data: bytes) -> list[HistoryRow]:
    """Return the instants of a file.

    Raises:
        CorruptTableError: the file is damaged, or lacks columns.
    """
    try:
        table = pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names[:-1])
    except (pa.ArrowException, KeyError) as error:
        raise CorruptTableError(
            f"A file of the archived timeline is damaged ({error}). Restore the file from a backup."
        ) from error
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [HistoryRow(row[0], row[1], row[2], row[3] or b"", row[4]) for row in rows]


def merge_history(files: Iterable[bytes]) -> bytes:
    """Return one file with the distinct instants of several files, sorted by requested time."""
    merged = pa.concat_tables([pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names) for data in files])
    first: dict[tuple[str, ...], int] = {}
    for number, key in enumerate(zip(*(merged[name].to_pylist() for name in _KEY), strict=True)):
        first.setdefault(key, number)
    return _encode(merged.cast(_SCHEMA).take(pa.array([first[key] for key in sorted(first)], pa.int64())))


def _encode(table: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(table, target, compression="gzip", store_schema=False)
    return bytes(target.getvalue())
