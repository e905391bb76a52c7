"""Change events of Debezium to rows, as HoodieStreamer's Debezium sources make them.

    {"op": "u", "ts_ms": ..., "before": {...}, "after": {...}, "source": {...}}, maybe inside {"payload": ...}

A row has the columns of the table in the database, those of `before` if the record was deleted, and columns
about the event, which Hudi's payload classes for Debezium order by and find deletes with. The sources
`debezium-postgres` and `debezium-mysql` are plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.ingestion.file_sources import ParsedRecords, concat_rows, parse_records
from drawstring.ingestion.job import write_options
from drawstring.ingestion.source_protocol import (
    Reading,
    Source,
    SourceContext,
    SourceProvider,
    with_known_types,
)
from drawstring.plugins.kafka import topic_of, topic_source
from drawstring.plugins.schema_registry import MAGIC, AvroValues, avro_values, registry_of
from drawstring.schema.fields import IS_DELETED_COLUMN

_OP: Final = "_change_operation_type"
_DELETE: Final = "d"
_ROW_EVENTS: Final = ("c", "r", "u", _DELETE)
_NUMBER: Final = pa.int64()
_ALL: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    "db_shard_source_partition": ("name", pa.string()),
    "_event_origin_ts_ms": ("ts_ms", _NUMBER),
}
POSTGRES: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    **_ALL,
    "db_schema_source_partition": ("schema", pa.string()),
    "_event_tx_id": ("txId", _NUMBER),
    "_event_lsn": ("lsn", _NUMBER),
    "_event_xmin": ("xmin", _NUMBER),
}
"""Columns about an event of PostgreSQL: the field of `source` that each comes from, and its type."""

MYSQL: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    **_ALL,
    "_event_bin_file": ("file", pa.string()),
    "_event_pos": ("pos", _NUMBER),
    "_event_row": ("row", pa.int32()),
}
"""The same of MySQL."""


@dataclass(frozen=True, slots=True)
class DebeziumValues:
    """Makes rows of change events; see `kafka.Decode`.

    Attributes:
        columns: those about the event.
        avro: reads events in Avro; None without a registry.
        marks_deletes: whether rows of deleted records are marked by `_hoodie_is_deleted`; otherwise the
            payload class of the table knows them by the kind of event.
    """

    columns: Mapping[str, tuple[str, pa.DataType]]
    avro: AvroValues | None
    marks_deletes: bool

    def __call__(
        self, records: Sequence[bytes], reading: Reading, place: Callable[[int], str]
    ) -> ParsedRecords:
        """Return the rows of events."""
        if not records:
            return parse_records(records, reading, place)
        if records[0][:1] == MAGIC:
            if self.avro is None:
                raise InvalidError(
                    "The change events are in Avro. Set hoodie.streamer.schemaprovider.registry.url to the"
                    " address of their subject."
                )
            parsed = self.avro(records, reading, place)
        else:
            inner = _enveloped(reading.known, self.columns)
            parsed = parse_records(records, Reading(inner, reading.reject), place)
        return self._flat(parsed, reading)

    def _flat(self, parsed: ParsedRecords, reading: Reading) -> ParsedRecords:
        events = _opened(parsed.rows)
        if not events.num_rows:
            return parsed
        ops = events["op"]
        wanted = pc.is_in(ops, pa.array(_ROW_EVENTS))
        places = pa.array(range(events.num_rows), pa.int64())
        parts = []
        for image, is_of_image in (("before", pc.equal(ops, _DELETE)), ("after", pc.not_equal(ops, _DELETE))):
            chosen = pc.and_(wanted, is_of_image)
            if pc.any(chosen).as_py():
                rows = with_known_types(self._rows(events.filter(chosen), image), reading.known)
                parts.append(rows.append_column("", places.filter(chosen.combine_chunks())))
        if not parts:
            return ParsedRecords(pa.table({}), [])
        rows = concat_rows(parts).sort_by("")
        kept = [at if parsed.kept is None else parsed.kept[at] for at in rows[""].to_pylist()]
        return ParsedRecords(rows.drop_columns([""]), kept)

    def _rows(self, events: pa.Table, image: str) -> pa.Table:
        about = {_OP: events["op"], "_upstream_event_processed_ts_ms": _of(events, "ts_ms", _NUMBER)}
        source = events.select([name for name in events.column_names if name == "source"]).flatten()
        for name, (field, kind) in self.columns.items():
            found = f"source.{field}" in source.column_names
            about[name] = _of(source, f"source.{field}", kind) if found else pa.nulls(len(events), kind)
        if self.columns == MYSQL:
            about["_event_seq"] = _sequence(about["_event_bin_file"], about["_event_pos"])
        if self.marks_deletes:
            about[IS_DELETED_COLUMN] = pa.array([image == "before"] * len(events))
        if image not in events.column_names or not pt.is_struct(events.schema.field(image).type):
            raise InvalidError(
                f"Change events have no image {image!r} of their records. Let the database log it: in"
                " PostgreSQL with REPLICA IDENTITY FULL."
            )
        records = events.select([image]).flatten()
        records = records.rename_columns([name.removeprefix(f"{image}.") for name in records.column_names])
        for name, values in about.items():
            records = records.append_column(name, values)
        return records


def _enveloped(known: pa.Schema, columns: Mapping[str, tuple[str, pa.DataType]]) -> pa.Schema:
    """Return the known columns of events, given those of rows."""
    image = pa.struct([each for each in known if each.name not in columns and not each.name.startswith("_")])
    source = pa.struct([pa.field(field, kind) for field, kind in columns.values()])
    event = [("before", image), ("after", image), ("source", source), ("op", pa.string())]
    fields = [each for each in event if each[1] != pa.struct([])]
    return pa.schema([*fields, ("payload", pa.struct(fields))])


def _opened(rows: pa.Table) -> pa.Table:
    """Return events without what is around them."""
    if "payload" in rows.column_names and "op" not in rows.column_names:
        rows = rows.select(["payload"]).flatten()
        rows = rows.rename_columns([name.removeprefix("payload.") for name in rows.column_names])
    if rows.num_rows and "op" not in rows.column_names:
        raise InvalidError(
            "The records are no change events of Debezium: they have no op. Use the source kafka-json or"
            " kafka-avro."
        )
    return rows


def _of(rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return rows[name].cast(kind) if name in rows.column_names else pa.nulls(rows.num_rows, kind)


def _sequence(files: pa.ChunkedArray, positions: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the number of the log file and the position in it, as Hudi writes them."""
    numbers = pc.replace_substring_regex(files, r"^.*\.", "")
    return pc.binary_join_element_wise(numbers, positions.cast(pa.string()), ".")


class DebeziumPostgres(SourceProvider):
    """Changes of a PostgreSQL database: the source `debezium-postgres`."""

    def check(self, context: SourceContext) -> object:
        return topic_of(context)

    def make(self, context: SourceContext) -> Source:
        return topic_source(context, _change_events(context, POSTGRES))


class DebeziumMysql(SourceProvider):
    """Changes of a MySQL database: the source `debezium-mysql`."""

    def check(self, context: SourceContext) -> object:
        return topic_of(context)

    def make(self, context: SourceContext) -> Source:
        return topic_source(context, _change_events(context, MYSQL))


def _change_events(context: SourceContext, columns: Mapping[str, tuple[str, pa.DataType]]) -> DebeziumValues:
    payload = WriteOptions.parse(write_options(context.given)).payload_class or ""
    avro = None if registry_of(context) is None else avro_values(context)
    return DebeziumValues(columns, avro, "Debezium" not in payload)
