"""Content of native log files of deletes: a row for each deleted record.

    _hoodie_record_key     the record key
    <ordering field>...    its ordering values, with the types of the table; all null for none

A delete without ordering values wins over everything written before it. Those of the n-th ordering field
(from 0) that is nested in a column are in `_hoodie_ordering_<n>`, as was proposed for Apache Hudi: readers go
by the order of the columns, not by their names. RFC-103 as first proposed has the partition path as well,
which the folder tells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.log_inline import DeleteRecords
from drawstring.schema.fields import field_path, type_at
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

_RECORD: Final = "hudi_delete_log_record"


@dataclass(frozen=True, slots=True)
class DeleteLog:
    """What the files of deletes of a table look like.

    Attributes:
        schema: key and ordering columns.
        avro_schema: the same as Avro JSON.
    """

    schema: pa.Schema
    avro_schema: str

    def rows(self, keys: pa.Array, ordering: Sequence[pa.Array] | None) -> pa.RecordBatch:
        """Return deletes as rows of a file.

        Args:
            keys: record keys.
            ordering: their ordering values by column; None if they have none.
        """
        fields = list(self.schema)[1:]
        columns = [each.cast(field.type) for each, field in zip(ordering or (), fields, strict=False)]
        columns = columns or [pa.nulls(len(keys), field.type) for field in fields]
        return pa.RecordBatch.from_arrays([keys.cast(pa.string()), *columns], schema=self.schema)


def deletes_schema(table: pa.Schema, avro_schema: str, ordering_fields: Sequence[str]) -> DeleteLog:
    """Return what the files of deletes of a table look like.

    Args:
        table: columns of the table.
        avro_schema: the same as Avro JSON.
        ordering_fields: what orders the versions of a record: columns, and fields of structs as `a.k`.
    """
    stored = {
        name if name in table.names else f"_hoodie_ordering_{number}": (name, kind)
        for number, name in enumerate(ordering_fields)
        if (kind := type_at(name, table)) is not None
    }
    fields = [pa.field(column, kind) for column, (_, kind) in stored.items()]
    record_type = json.loads(avro_schema)
    avro: list[dict[str, Any]] = [{"name": RECORD_KEY, "type": "string"}]
    avro += [
        {"name": column, "type": _nullable(_avro_type(record_type, field_path(table, name))), "default": None}
        for column, (name, _) in stored.items()
    ]
    record = {"type": "record", "name": _RECORD, "fields": avro}
    key = pa.field(RECORD_KEY, pa.string(), nullable=False)
    return DeleteLog(pa.schema([key, *fields]), json.dumps(record, separators=(",", ":")))


def _avro_type(kind: Any, path: Sequence[str]) -> Any:
    """Return the Avro type at a path of fields."""
    if not path:
        return kind
    branches = kind if isinstance(kind, list) else [kind]
    record = next(each for each in branches if isinstance(each, dict) and each.get("type") == "record")
    inner = next(field["type"] for field in record["fields"] if field["name"] == path[0])
    return _avro_type(inner, path[1:])


def _nullable(kind: Any) -> Any:
    """Return an Avro type as a union that begins with null, so that null can be its default."""
    kinds = kind if isinstance(kind, list) else [kind]
    return ["null", *(each for each in kinds if each != "null")]


def deletes_of(rows: pa.Table) -> DeleteRecords:
    """Return the deletes in the rows of a file: the key column and the ordering columns, in their order.

    Raises:
        CorruptTableError: there is no key column, or a delete has no key.
    """
    if RECORD_KEY not in rows.column_names or rows.column(RECORD_KEY).null_count:
        raise CorruptTableError(f"A log file of deletes lacks record keys: {REPAIR}.")
    keys = rows.column(RECORD_KEY).combine_chunks().cast(pa.string())
    names = [name for name in rows.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    columns = [rows.column(name).combine_chunks() for name in names]
    if not columns:
        return DeleteRecords(keys, None, pa.repeat(pa.scalar(True), len(keys)))
    absent = reduce(pc.and_, [pc.is_null(each) for each in columns])
    several = [str(number) for number in range(len(columns))]
    ordering = columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, names=several)
    return DeleteRecords(keys, ordering, absent)
