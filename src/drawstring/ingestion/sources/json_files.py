"""Files of JSON objects, one a line, as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import EXCHANGE_BYTES_MAX
from drawstring.ingestion.sources.columns import HeldRows, optional, source_file
from drawstring.ingestion.sources.json_rows import parse_records
from drawstring.ingestion.sources.opened import opened
from drawstring.ingestion.sources.protocol import Reading
from drawstring.storage.protocol import Storage

JSON_LIMIT_BYTES: Final = 256 << 20
"""Default size of a batch: what columns it has is known after the last line."""

_CHUNK_BYTES: Final = 16 << 20


def read_json_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read files; see `ReadFiles`."""
    held = HeldRows(EXCHANGE_BYTES_MAX)
    for path in paths:
        for rows in _tables(storage, path, reading):
            held.add(path, rows)
    return held.reader()


def _tables(storage: Storage, path: str, reading: Reading) -> Iterator[pa.Table]:
    with source_file(path):
        first = 1
        for lines in _chunks(storage, path):
            at = [number for number, line in enumerate(lines, first) if line and not line.isspace()]
            records = [lines[number - first] for number in at]
            rows = parse_records(records, reading, [f"{path}:{number}" for number in at].__getitem__).rows
            first += len(lines)
            yield rows.select(optional(rows.schema).names)


def _chunks(storage: Storage, path: str) -> Iterator[list[bytes]]:
    """Yield the lines of a file, many at a time."""
    rest = b""
    with opened(storage, path) as file:
        while data := file.read(_CHUNK_BYTES):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            yield lines
    if rest:
        yield [rest]
