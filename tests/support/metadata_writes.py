"""Adds delta commits to the metadata table of an unpacked golden table, as another engine would."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from drawstring.formats import schemas
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, encode_deletes
from tests.support.hfiles import hfile_of

_SCHEMA = fastavro.parse_schema(schemas.load("metadata_record"))
_NAMESPACE = "org.apache.hudi.avro.model"


def wrapped(kind: str, value: Any) -> tuple[str, dict[str, Any]]:
    """Return a bound of statistics in the wrapper of a kind, such as `Int`."""
    return f"{_NAMESPACE}.{kind}Wrapper", {"value": value}


@dataclass(frozen=True)
class Addition:
    """What a delta commit adds to one file group.

    Attributes:
        partition: of the metadata table.
        file_id: the file group.
        records: records by key, without the key.
        deletes: keys in a delete block.
    """

    partition: str
    file_id: str
    records: Mapping[str, Mapping[str, Any]]
    deletes: Sequence[str] = ()


def add_delta_commit(root: Path, instant: str, additions: Sequence[Addition]) -> None:
    """Add a delta commit that the timeline of the table does not know.

    Args:
        root: root of a table of version 9.
        instant: its requested time.
        additions: its log files.
    """
    metadata = root / ".hoodie/metadata"
    timeline = metadata / ".hoodie/timeline"
    for each in additions:
        header = {
            HeaderKey.INSTANT_TIME: instant,
            HeaderKey.SCHEMA: json.dumps(schemas.load("metadata_record")),
        }
        entries = {key: _encoded(record) for key, record in each.records.items()}
        blocks = [encode_block(BlockType.HFILE_DATA, header, hfile_of(entries))] if entries else []
        if each.deletes:
            content = encode_deletes(pa.array(each.deletes), each.partition)
            blocks.append(encode_block(BlockType.DELETE, header, content))
        path = metadata / each.partition / f".{each.file_id}_{instant}.log.1_0-0-0"
        path.write_bytes(b"".join(blocks))
    completed = max(timeline.glob("2*_*.deltacommit"))
    for name in (f"{instant}.deltacommit.requested", f"{instant}.deltacommit.inflight"):
        (timeline / name).touch()
    (timeline / f"{instant}_{int(instant) + 1}.deltacommit").write_bytes(completed.read_bytes())


def _encoded(record: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _SCHEMA, {"key": "", **record})
    return out.getvalue()
