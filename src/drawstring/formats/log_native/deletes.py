"""Content of native log files of deletes: a row for each deleted record.

    _hoodie_record_key     the record key
    <ordering field>...    its ordering values, with the types of the table; all null for none

A delete without ordering values wins over everything written before it. RFC-103 as first proposed has the
partition path as well, which the folder tells.
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
        ordering_fields: names of the columns that order the versions of a record.
    """
    stored = [name for name in ordering_fields if name in table.names]
    fields = [table.field(name).remove_metadata().with_nullable(True) for name in stored]
    kinds = {field["name"]: field["type"] for field in json.loads(avro_schema)["fields"]}
    avro: list[dict[str, Any]] = [{"name": RECORD_KEY, "type": "string"}]
    avro += [{"name": name, "type": _nullable(kinds[name]), "default": None} for name in stored]
    record = {"type": "record", "name": _RECORD, "fields": avro}
    key = pa.field(RECORD_KEY, pa.string(), nullable=False)
    return DeleteLog(pa.schema([key, *fields]), json.dumps(record, separators=(",", ":")))


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
