"""Versions of records, and the protocol of the mergers that merge them.

An ordering field may be inside a column (`event.seq`): `ordering_columns` returns the columns to read,
`ordering_of` and `stored_ordering` take the values out of them. A delete is a row with nulls when it is
compared, its ordering values in structs of nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import MergeMode, TableConfig
from drawstring.config.table.merge_rules import MYSQL_SEQUENCE
from drawstring.merge.order import Array
from drawstring.schema.fields import top_level, type_at, values_of

_SEQUENCE = r"^(?P<file>[0-9]+)\.(?P<position>[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of records, older ones of a key before newer ones.

    Attributes:
        rows: the columns read; in deletes all but the key and ordering columns are null.
        keys: record key of each row.
        ordering: ordering columns, the most significant first; empty for commit-time ordering.
        is_delete: whether a row deletes its key.
        is_commit_time_ordering_delete: whether it deletes all earlier versions regardless of their ordering
            values.
        unset: by column, which rows do not set it; columns that all rows set are absent.
        origin: of merged versions, the number of the row that each equals; -1 if it combines several.
    """

    rows: pa.Table
    keys: pa.Array
    ordering: tuple[pa.Array, ...]
    is_delete: Array
    is_commit_time_ordering_delete: Array
    unset: Mapping[str, Array] = field(default_factory=dict)
    origin: Array | None = None

    def take(self, numbers: Array) -> Versions:
        """Return some of the versions, by row number."""
        taken = pa.array(numbers)
        return Versions(
            self.rows.take(taken),
            self.keys.take(taken),
            tuple(column.take(taken) for column in self.ordering),
            self.is_delete[numbers],
            self.is_commit_time_ordering_delete[numbers],
            {name: rows[numbers] for name, rows in self.unset.items()},
        )

    def slice(self, offset: int, length: int) -> Versions:
        """Return some of the versions, without a copy."""
        end = offset + length
        return Versions(
            self.rows.slice(offset, length),
            self.keys.slice(offset, length),
            tuple(column.slice(offset, length) for column in self.ordering),
            self.is_delete[offset:end],
            self.is_commit_time_ordering_delete[offset:end],
            {name: rows[offset:end] for name, rows in self.unset.items()},
            None if self.origin is None else self.origin[offset:end],
        )

    def followed_by(self, newer: Versions) -> Versions:
        """Return these versions followed by newer ones, with the columns of these."""
        names = self.rows.column_names
        old_flags, new_flags = np.zeros(len(self.keys), dtype=bool), np.zeros(len(newer.keys), dtype=bool)
        return Versions(
            pa.concat_tables([self.rows, _typed(newer.rows.select(names), self.rows.schema)]),
            pa.concat_arrays([self.keys, newer.keys]),
            tuple(
                pa.concat_arrays([old.cast(new.type), new])
                for old, new in zip(self.ordering, newer.ordering, strict=True)
            ),
            np.concatenate([self.is_delete, newer.is_delete]),
            np.concatenate([self.is_commit_time_ordering_delete, newer.is_commit_time_ordering_delete]),
            {
                name: np.concatenate([self.unset.get(name, old_flags), newer.unset.get(name, new_flags)])
                for name in {*self.unset, *newer.unset}
                if name in names
            },
        )


class Merger(Protocol):
    """Makes one version of several, and says what callers may take for granted about it.

    A capability that is not claimed costs time, never rows: the caller then reads all columns, or refuses.
    """

    @property
    def chooses_whole_records(self) -> bool:
        """Whether the merged version is one of those given, word for word: the one of `order.winning_rows`.

        Callers then pick it by keys, ordering values and delete flags, without reading the other columns.
        """
        ...

    @property
    def can_merge_logs_alone(self) -> bool:
        """Whether log records may be merged among themselves, and stored, before newer ones are known.

        Merging the stored result with newer versions then gives what merging all of them at once gives.
        """
        ...

    @property
    def supports_cdc(self) -> bool:
        """Whether a change can be logged as the row before and the row after it."""
        ...

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one.

        Args:
            versions: versions of records, older ones of a key before newer ones.
            codes: number of the key of each version, from 0.
            distinct: number of distinct keys.

        Returns:
            One version for each key, in the order of the numbers; deletes are among them.
        """
        ...


def ordering_fields(config: TableConfig) -> tuple[str, ...]:
    """Return the ordering fields of a table, nested ones as `a.k`; none for commit-time ordering."""
    return config.ordering_fields if config.merge_mode is MergeMode.EVENT_TIME_ORDERING else ()


def stored_ordering_fields(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Return the ordering fields that a schema has."""
    names = schema.names
    fields = ordering_fields(config)
    return tuple(name for name in fields if name in names or type_at(name, schema) is not None)


def ordering_columns(config: TableConfig, schema: pa.Schema) -> list[str]:
    """Return the columns of a schema that the ordering fields are in, each once."""
    names, fields = schema.names, stored_ordering_fields(config, schema)
    return list(fields) if all(name in names for name in fields) else top_level(fields, schema)


def stored_ordering(rows: pa.Table | pa.RecordBatch, config: TableConfig) -> list[pa.Array]:
    """Return the values of the ordering fields that rows have, as they are stored."""
    names, fields = rows.schema.names, stored_ordering_fields(config, rows.schema)
    return [flat(rows.column(name) if name in names else values_of(rows, name)) for name in fields]


def ordering_of(
    rows: pa.Table | pa.RecordBatch, config: TableConfig, numbers: Array | None = None
) -> tuple[pa.Array, ...]:
    """Return the ordering columns of rows, the most significant first; empty for commit-time ordering.

    As in Hudi, an ordering field that the table lacks is ignored: old releases set `ts` by default.

    Args:
        rows: rows with the ordering columns of the table.
        config: configuration of the table.
        numbers: row numbers to return; None for all.
    """
    columns = stored_ordering(rows, config)
    if numbers is not None:
        columns = [column.take(pa.array(numbers)) for column in columns]
    return comparable(columns, config)


def comparable(columns: Sequence[pa.Array], config: TableConfig) -> tuple[pa.Array, ...]:
    """Return ordering columns in comparable form: unchanged, except a text that holds two numbers."""
    if config.payload_rule is not None and ordering_fields(config) == (MYSQL_SEQUENCE,) and columns:
        return _sequence(columns[0])
    return tuple(columns)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _sequence(column: pa.Array) -> tuple[pa.Array, ...]:
    """Split `<binlog file>.<position>` into numbers; other texts become null."""
    parts: Sequence[pa.Array] = pc.extract_regex(column, _SEQUENCE).flatten()
    return tuple(part.cast(pa.int64()) for part in parts)


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the types of a schema; columns of the right type are not cast.

    Arrow cannot cast a null struct with required fields, not even to its own type.
    """
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
