"""Writer of CDC logs: the change of each record in a rewritten base file, in the log format of the table.

| mode | fields of a CDC record |
|---|---|
| OP_KEY_ONLY | `op`, `record_key` |
| DATA_BEFORE | `op`, `record_key`, `before` |
| DATA_BEFORE_AFTER | `op`, `ts_ms`, `before`, `after` |

New file groups and log files of MERGE_ON_READ tables have no CDC log: readers derive their changes from the
files themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.formats.log_native import write_change_file
from drawstring.model.files import FileSlice, LogFile, NativeLog, TaskContext, join_path
from drawstring.model.table_version import LogFormat
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import META_COLUMNS, RECORD_KEY
from drawstring.storage.protocol import Storage

_INSERT: Final = "i"
_UPDATE: Final = "u"
_DELETE: Final = "d"


@dataclass(frozen=True, slots=True)
class _Part:
    """Changes of one operation: keys, and the rows before and after if there are any."""

    operation: str
    keys: pa.Array
    before: pa.RecordBatch | None
    after: pa.RecordBatch | None


class ChangeLog:
    """Collects the changes of one file group; holds as many rows in memory as the write has for it.

    Args:
        settings: settings of the write.
    """

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._schema_json = change_schema(settings.config.cdc_mode, settings.avro_schema)
        self._parts: list[_Part] = []

    def updated(self, before: pa.RecordBatch, after: pa.RecordBatch) -> None:
        """Add updated records; the two batches have the same keys row by row."""
        self._note(_UPDATE, before.column(RECORD_KEY), before, after)

    def deleted(self, before: pa.RecordBatch) -> None:
        """Add deleted records."""
        self._note(_DELETE, before.column(RECORD_KEY), before, None)

    def inserted(self, after: pa.RecordBatch) -> None:
        """Add inserted records."""
        self._note(_INSERT, after.column(RECORD_KEY), None, after)

    def write(self, storage: Storage, target: FileSlice, context: TaskContext) -> dict[str, int]:
        """Write the CDC log file.

        Args:
            storage: storage of the table.
            target: the rewritten slice.
            context: the task attempt.

        Returns:
            The size of the file in bytes by its path; empty if nothing changed.
        """
        if not self._parts:
            return {}
        settings = self._settings
        name_of, write = _FORMATS[settings.config.rules.log_format]
        place = (target.file_id, settings.instant, context.write_token, settings.config.base_extension)
        path = join_path(target.partition, name_of(*place))
        markers = settings.markers(storage)
        markers.create(path, "CREATE")
        header = {HeaderKey.INSTANT_TIME: settings.instant, HeaderKey.SCHEMA: self._schema_json}
        batches = [self._rows(part) for part in self._parts]
        size_bytes = write(storage, path, batches, self._schema_json, header, settings.compression)
        markers.confirm(path, "CREATE")
        return {path: size_bytes}

    def _note(
        self, operation: str, keys: pa.Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None
    ) -> None:
        if len(keys):
            self._parts.append(_Part(operation, keys, before, after))

    def _rows(self, part: _Part) -> pa.RecordBatch:
        schema = avro_to_arrow(self._schema_json)
        count = len(part.keys)
        columns = {
            "op": lambda: pa.repeat(part.operation, count),
            "record_key": lambda: part.keys.cast(pa.string()),
            "ts_ms": lambda: pa.repeat(self._settings.instant, count),
            "before": lambda: _image(part.before, schema.field("before").type, count),
            "after": lambda: _image(part.after, schema.field("after").type, count),
        }
        return pa.RecordBatch.from_arrays([columns[name]() for name in schema.names], schema=schema)


def _inline_name(file_id: str, instant: str, write_token: str, _extension: str) -> str:
    return f"{LogFile.name_of(file_id, instant, 1, write_token)}.cdc"


def _native_name(file_id: str, instant: str, write_token: str, extension: str) -> str:
    return LogFile.native_name_of(file_id, instant, 1, write_token, NativeLog.CDC, extension)


def _write_inline(
    storage: Storage,
    path: str,
    batches: Sequence[pa.RecordBatch],
    schema_json: str,
    header: Mapping[HeaderKey, str],
    _compression: str,
) -> int:
    rows = pa.Table.from_batches(batches).combine_chunks()
    content = encode_block(BlockType.CDC_DATA, header, encode_datums(rows.to_batches()[0], schema_json))
    storage.put(path, content)
    return len(content)


_FORMATS: Final = {
    LogFormat.INLINE: (_inline_name, _write_inline),
    LogFormat.NATIVE: (_native_name, write_change_file),
}
"""How a CDC log file is named and written in each log format."""


def _image(rows: pa.RecordBatch | None, kind: pa.StructType, count: int) -> pa.Array:
    """Return rows as one struct column."""
    if rows is None:
        return pa.nulls(count, kind)
    fields = pa.schema(list(kind))
    return pa.StructArray.from_arrays(conform(rows.select(fields.names), fields).columns, fields=list(kind))


def change_schema(mode: str, avro_schema: str) -> str:
    """Return the Avro schema of a CDC log.

    Args:
        mode: `hoodie.table.cdc.supplemental.logging.mode`.
        avro_schema: Avro schema of the records, with or without meta columns.
    """
    if mode == "OP_KEY_ONLY":
        text = ["string", "null"]
        fields: list[dict[str, Any]] = [{"name": name, "type": text} for name in ("op", "record_key")]
        return json.dumps({"type": "record", "name": "Record", "fields": fields}, separators=(",", ":"))
    record = json.loads(avro_schema)
    namespace = record.pop("namespace", "hoodie")
    record["fields"] = [field for field in record["fields"] if field["name"] not in META_COLUMNS]
    second = "record_key" if mode == "DATA_BEFORE" else "ts_ms"
    fields = [_nullable("op", "string"), _nullable(second, "string"), _nullable("before", record)]
    if mode != "DATA_BEFORE":
        fields.append(_nullable("after", record["name"]))
    schema = {"type": "record", "name": "CDC", "namespace": namespace, "fields": fields}
    return json.dumps(schema, separators=(",", ":"))


def _nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": "", "default": None}


def taken(rows: pa.RecordBatch | pa.Table, numbers: Any) -> pa.RecordBatch:
    """Return the rows with the given numbers as one batch."""
    chosen = rows.take(pa.array(numbers))
    return chosen.combine_chunks().to_batches()[0] if isinstance(chosen, pa.Table) else chosen
