"""Files of the archived timeline of layout 2: Parquet, a row an instant (specification: Timeline, archived).

instantTime, completionTime, action   texts; the action as it is called when completed
metadata                              bytes of the completed file
plan                                  bytes of the requested file of services and replacing writes
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
    """Return a file of instants, which come sorted by requested time."""
    given = list(rows)
    columns = [
        pa.array([row.requested for row in given], pa.string()),
        pa.array([row.completed for row in given], pa.string()),
        pa.array([row.action for row in given], pa.string()),
        pa.array([row.metadata for row in given], pa.binary()),
        pa.array([row.plan for row in given], pa.binary()),
        pa.array([_VERSION] * len(given), pa.int32()),
    ]
    return _encode(pa.Table.from_arrays(columns, schema=_SCHEMA))


def decode_history(data: bytes) -> list[HistoryRow]:
    """Return the instants of a file.

    Raises:
        CorruptTableError: it is damaged, or lacks what a file has.
    """
    try:
        table = pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names[:-1])
    except (pa.ArrowException, KeyError) as error:
        raise CorruptTableError(
            f"A file of the archived timeline is damaged ({error}); restore it from a backup."
        ) from error
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [HistoryRow(row[0], row[1], row[2], row[3] or b"", row[4]) for row in rows]


def merge_history(files: Iterable[bytes]) -> bytes:
    """Return one file with the instants of several, each once, by requested time."""
    merged = pa.concat_tables([pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names) for data in files])
    first: dict[tuple[str, ...], int] = {}
    for number, key in enumerate(zip(*(merged[name].to_pylist() for name in _KEY), strict=True)):
        first.setdefault(key, number)
    return _encode(merged.cast(_SCHEMA).take(pa.array([first[key] for key in sorted(first)], pa.int64())))


def _encode(table: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(table, target, compression="gzip", store_schema=False)
    return bytes(target.getvalue())
