"""Find the winning versions of records, by commit time or event time (specification: Merge Modes).

The versions of a record are in log order, oldest first. Each is merged with the result of the earlier ones:

    commit-time ordering   the newer version wins
    event-time ordering    the version with the greater ordering value wins, the newer one on a tie
    commit-time delete     wins over everything before it and loses to everything after it

Merging one by one is equivalent to the following steps, which need no loop (`winners`). Drop all versions
before a key's last commit-time delete. Give that delete the lowest ordering value. Take the last version with
the greatest value. A null ordering value is lower than any other.

This holds among versions that are merged together. Log records are merged first and their winner then with
the base record, as in Hudi. A merged log record keeps whether it came after a commit-time delete. Such a
record wins over the base record, whatever its ordering value.

Ordering fields may be inside a column (`event.seq`): `ordering_columns` returns the columns to read,
`ordering_of` and `stored_ordering` take the values out of them. A delete is a row with nulls when it is
compared, its ordering values in structs of nulls.

`Merger` is the protocol of record mergers; `record_merger` has its implementations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.payload_classes import MYSQL_SEQUENCE
from drawstring.config.table_config import MergeMode, TableConfig
from drawstring.schema.fields import top_level, type_at, values_of

Array: TypeAlias = "np.ndarray[Any, Any]"

_LOWEST = np.iinfo(np.int64).min


def winners(
    keys: pa.Array | pa.ChunkedArray,
    ordering: Sequence[pa.Array | pa.ChunkedArray] | None = None,
    is_commit_time_ordering_delete: Array | None = None,
) -> Array:
    """Return the winning row of each key.

    Args:
        keys: record key of each row, in log order.
        ordering: ordering columns, the most significant first; None for commit-time ordering.
        is_commit_time_ordering_delete: for each row, whether it is a delete without ordering value; None if
            none is.

    Returns:
        int64 row numbers, ascending.
    """
    codes, distinct = number_keys(keys)
    return winning_rows(codes, distinct, ordering, is_commit_time_ordering_delete)


def winning_rows(
    codes: Array,
    distinct: int,
    ordering: Sequence[pa.Array | pa.ChunkedArray] | None = None,
    is_commit_time_ordering_delete: Array | None = None,
) -> Array:
    """Return the winning rows, like `winners`.

    Args:
        codes: number of each row's key, in log order.
        distinct: number of distinct keys.
        ordering, is_commit_time_ordering_delete: as in `winners`.
    """
    rows = np.arange(len(codes), dtype=np.int64)
    if ordering:
        candidates = _greatest(codes, distinct, rows, rank(ordering), is_commit_time_ordering_delete)
        codes, rows = codes[candidates], rows[candidates]
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = rows
    return np.sort(last)


def repeated_deletes(codes: Array, is_of_block: Array, is_commit_time_ordering_delete: Array) -> Array:
    """Return which deletes of delete blocks follow a commit-time delete, which remains in effect.

    Args:
        codes: number of each row's key, in log order.
        is_of_block: for each row, whether it belongs to a delete block.
        is_commit_time_ordering_delete: for each row, whether it is a delete without ordering value.
    """
    dated = is_of_block & ~is_commit_time_ordering_delete
    if not (dated.any() and is_commit_time_ordering_delete.any()):
        return np.zeros(len(codes), dtype=bool)
    order = np.argsort(codes, kind="stable")
    numbers = np.arange(len(codes), dtype=np.int64)
    sorted_codes = codes[order]
    others = np.where(dated[order], -1, numbers)
    others[np.searchsorted(sorted_codes, sorted_codes)] = numbers[np.searchsorted(sorted_codes, sorted_codes)]
    meets = order[np.maximum.accumulate(others)]
    repeated = np.zeros(len(codes), dtype=bool)
    repeated[order] = dated[order] & is_commit_time_ordering_delete[meets]
    return repeated


def wins_over(newer: Sequence[pa.Array], older: Sequence[pa.Array]) -> Array:
    """Return, for each pair of versions, whether the newer one wins by event time.

    Args:
        newer, older: ordering columns of the two sides, row by row.

    Returns:
        One bool for each row.
    """
    both = [pa.concat_arrays([new, old.cast(new.type)]) for new, old in zip(newer, older, strict=True)]
    ranks = rank(both)
    rows = len(ranks) // 2
    return np.asarray(ranks[:rows] >= ranks[rows:])


def rank(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Array:
    """Return numbers in the order of the tuples of the columns' values.

    Args:
        columns: the most significant first; null is lower than any value.

    Returns:
        int64, one for each row; only ranks of the same call are comparable.
    """
    ranks = _rank_of(columns[0])
    for column in columns[1:]:
        finer = _dense(_rank_of(column))
        ranks = _dense(ranks) * (int(finer.max(initial=0)) + 1) + finer
    return ranks


def number_keys(keys: pa.Array | pa.ChunkedArray, *, in_order: bool = False) -> tuple[Array, int]:
    """Return a number from 0 for each row, equal for equal keys, and the number of distinct keys.

    Args:
        keys: the keys.
        in_order: whether greater keys have greater numbers.
    """
    encoded = pc.dictionary_encode(_flat(keys))
    codes: Array = encoded.indices.to_numpy(zero_copy_only=False)
    return (_places(encoded.dictionary)[codes] if in_order else codes), len(encoded.dictionary)


def _greatest(
    codes: Array, distinct: int, rows: Array, ranks: Array, is_commit_time_ordering_delete: Array | None
) -> Array:
    """Return the rows with the greatest rank of their key."""
    alive = np.ones(len(rows), dtype=bool)
    if is_commit_time_ordering_delete is not None and is_commit_time_ordering_delete.any():
        since = np.zeros(distinct, dtype=np.int64)
        since[codes[is_commit_time_ordering_delete]] = rows[is_commit_time_ordering_delete]
        alive = rows >= since[codes]
        ranks = np.where(is_commit_time_ordering_delete, _LOWEST, ranks)
    greatest = np.full(distinct, _LOWEST, dtype=np.int64)
    np.maximum.at(greatest, codes[alive], ranks[alive])
    return np.flatnonzero(alive & (ranks == greatest[codes]))


def _rank_of(column: pa.Array | pa.ChunkedArray) -> Array:
    """Map the values of a column to int64 in their order, null to the lowest."""
    values = _flat(column)
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _filled(values.cast(pa.int64()))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _filled(values.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_temporal(kind):
        return _filled(values.cast(pa.int64()))
    if pa.types.is_floating(kind):
        return _float_rank(values)
    if pa.types.is_null(kind):
        return np.full(len(values), _LOWEST, dtype=np.int64)
    return _compared(values)


def _filled(values: pa.Array) -> Array:
    numbers: Array = values.fill_null(int(_LOWEST)).to_numpy(zero_copy_only=False)
    return numbers


def _float_rank(values: pa.Array) -> Array:
    """Order floats as Java does: -0.0 before 0.0, NaN after everything."""
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    ranks = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    ranks[values.is_null().to_numpy(zero_copy_only=False)] = _LOWEST
    return np.asarray(ranks)


def _compared(values: pa.Array) -> Array:
    """Order text, bytes and decimals by sorting their distinct values."""
    encoded = pc.dictionary_encode(values)
    places = _places(encoded.dictionary)
    ranks = np.full(len(values), _LOWEST, dtype=np.int64)
    present = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    ranks[present] = places[encoded.indices.drop_null().to_numpy(zero_copy_only=False)]
    return ranks


def _places(distinct: pa.Array) -> Array:
    """Return the place of each of some distinct values in their order."""
    places = np.empty(len(distinct), dtype=np.int64)
    places[pc.sort_indices(distinct).to_numpy(zero_copy_only=False)] = np.arange(len(distinct))
    return places


def _dense(ranks: Array) -> Array:
    return np.unique(ranks, return_inverse=True)[1].astype(np.int64)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.cast(flat.type.value_type) if pa.types.is_dictionary(flat.type) else flat


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
    return [combined_chunks(rows.column(name) if name in names else values_of(rows, name)) for name in fields]


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


def combined_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
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
