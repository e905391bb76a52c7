"""Choose the record merger of a table, and merge the versions of a key into one record.

    WholeMerger     the winning version as a whole (`record_version`)
    FieldMerger     partial updates: unset columns of the winner take older values
    CustomMerger    a user's function; round n merges the n-th version of every key, oldest first, into the
                    result of the previous rounds

Partial updates: a version may leave a column unset, by a null, a default or a marker value, or by lacking the
column. Hudi merges the versions of a key one by one, oldest first, into one record:

    newer wins (it leads)    a column that it leaves unset keeps the record's value
    newer loses (it is late) it fills the columns that are unset in the record
    delete that leads        drops the record; late versions after it are lost

A version leads if its ordering value is not below that of any earlier version. So no loop is needed. A column
has the value of the last leading version that sets it, or else of the first late version that does, or else
none. Only versions from the first leading record after the last leading delete count.

    ordering value   3    5    4    5    2
    leads            x    x         x
    column           a    .    b    .    c      a: the last leading version that sets the column
                     .    .    b    .    c      b: no leading version sets it, and b is the first late one
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.payload_classes import UNAVAILABLE_VALUE
from drawstring.config.table_config import MergeMode, PayloadRule, TableConfig
from drawstring.config.table_types import RecordMerger
from drawstring.merge.record_version import Array, Merger, Versions, combined_chunks, rank, winning_rows
from drawstring.schema.evolution import conform_table
from drawstring.schema.fields import IS_DELETED_COLUMN, META_COLUMNS


@dataclass(frozen=True, slots=True)
class CustomMerger:
    """Merges versions with a registered function.

    Attributes:
        function: merges two records into one, for whole tables of pairs.
        name: the name under which it is registered, for errors.
    """

    chooses_whole_records: ClassVar[bool] = False
    can_merge_logs_alone: ClassVar[bool] = False
    supports_cdc: ClassVar[bool] = False

    function: RecordMerger
    name: str

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one."""
        order = np.argsort(codes, kind="stable")
        firsts = np.searchsorted(codes[order], np.arange(distinct))
        counts = np.bincount(codes, minlength=distinct)
        pieces, held = [versions.rows], versions.rows.num_rows
        at, is_delete = order[firsts], versions.is_delete[order[firsts]]
        for number in range(1, int(counts.max(initial=1))):
            codes = np.flatnonzero(counts > number)
            newer = order[firsts[codes] + number]
            both = ~is_delete[codes] & ~versions.is_delete[newer]
            is_delete[codes], old = versions.is_delete[newer], at[codes]
            at[codes] = newer
            if both.any():
                table = pa.concat_tables(pieces)
                merged, gone = self._merged(
                    table.take(pa.array(old[both])), table.take(pa.array(newer[both]))
                )
                at[codes[both]] = held + np.arange(merged.num_rows)
                is_delete[codes[both]] = gone
                pieces.append(merged)
                held += merged.num_rows
        nothing = np.zeros(distinct, dtype=bool)
        rows = pa.concat_tables(pieces).take(pa.array(at))
        origin = np.where(at < versions.rows.num_rows, at, -1)
        keys = versions.keys.take(pa.array(order[firsts]))
        return Versions(rows, keys, (), is_delete, nothing, origin=origin)

    def _merged(self, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, Array]:
        """Return the function's results for pairs, and which of them are deletes."""
        try:
            merged = self.function(older, newer)
        except DrawstringError:
            raise
        except Exception as error:
            raise InvalidError(
                f"The merger {self.name!r} failed: {type(error).__name__}: {error}. Correct its function."
            ) from error
        if not isinstance(merged, pa.Table) or merged.num_rows != newer.num_rows:
            what = f"{merged.num_rows} rows" if isinstance(merged, pa.Table) else f"a {type(merged).__name__}"
            raise InvalidError(
                f"The merger {self.name!r} returned {what} for {newer.num_rows} pairs."
                " Return a pyarrow.Table with one row for each, in the same order."
            )
        gone = np.zeros(merged.num_rows, dtype=bool)
        if IS_DELETED_COLUMN in merged.column_names:
            gone = merged.column(IS_DELETED_COLUMN).fill_null(False).to_numpy()
        return self._fitted(merged, newer.schema), gone

    def _fitted(self, merged: pa.Table, schema: pa.Schema) -> pa.Table:
        present = {*merged.column_names}
        missing = [name for name in schema.names if name not in present]
        if missing:
            raise InvalidError(
                f"The merger {self.name!r} returned no column {', '.join(missing)}. Return all columns."
            )
        try:
            return conform_table(merged.select(schema.names), schema)
        except (InvalidError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InvalidError(
                f"The merger {self.name!r} returned columns of other types ({error}). Cast them back."
            ) from error


_NONE = -1


@dataclass(frozen=True, slots=True)
class FieldMerger:
    """Merges versions column by column.

    Attributes:
        ignores_nulls: whether null means unset.
        defaults: by column, the value that means unset instead of null; None if no value does.
        unavailable: the text that means unset in columns of text or bytes.
        late_fills: whether a late version fills unset columns of the winner.
        late_stamps: whether the record takes the meta columns of a late version that counts.
        ties_to_first: whether the earlier of two versions with equal ordering values wins.
    """

    chooses_whole_records: ClassVar[bool] = False
    can_merge_logs_alone: ClassVar[bool] = False
    supports_cdc: ClassVar[bool] = False

    ignores_nulls: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    unavailable: str | None = None
    late_fills: bool = True
    late_stamps: bool = False
    ties_to_first: bool = False

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one."""
        ranks = rank(versions.ordering) if versions.ordering else None
        fold = _FieldMerge.of(
            _Inputs(codes, ranks, versions.is_delete, versions.is_commit_time_ordering_delete),
            distinct,
            self.ties_to_first,
        )
        winners = versions.take(fold.winners)
        columns, unset, is_patched = [], dict(winners.unset), np.zeros(distinct, dtype=bool)
        for name in versions.rows.column_names:
            sources = self._sources(fold, versions, name)
            if sources is None:
                columns.append(winners.rows.column(name))
                continue
            columns.append(versions.rows.column(name).take(pa.array(sources)))
            is_patched |= sources != fold.winners
            if name in unset:
                unset[name] = versions.unset[name][sources]
        return Versions(
            pa.table(columns, schema=versions.rows.schema),
            winners.keys,
            winners.ordering,
            fold.is_delete,
            winners.is_commit_time_ordering_delete,
            unset,
            np.where(is_patched, _NONE, fold.winners),
        )

    def _sources(self, fold: _FieldMerge, versions: Versions, name: str) -> Array | None:
        """Return the row numbers that a column's values come from; None for the winners."""
        if self.late_stamps and name in META_COLUMNS:
            return fold.latest
        unset = self._unset(combined_chunks(versions.rows.column(name)), name)
        if name in versions.unset:
            unset = versions.unset[name] if unset is None else unset | versions.unset[name]
        if unset is None or not unset.any():
            return None
        return fold.sources(~unset, self.late_fills)

    def _unset(self, column: pa.Array, name: str) -> Array | None:
        """Return which values of a column mean unset; None if none does."""
        if self.unavailable is not None:
            is_text = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
            return _equal(column, self.unavailable) if is_text else None
        if not self.ignores_nulls:
            return None
        if name in self.defaults:
            value = self.defaults[name]
            return None if value is None or not _fits_type(column.type, value) else _equal(column, value)
        return _flags(column.is_null()) if column.null_count else None


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The properties of versions that decide a merge, one element per version."""

    codes: Array
    ranks: Array | None
    is_delete: Array
    is_commit_time_ordering_delete: Array

    def sorted(self) -> tuple[Array, _Inputs]:
        """Return the row number of each version sorted by key, oldest first, and the sorted versions."""
        order = np.argsort(self.codes, kind="stable")
        ranks = None if self.ranks is None else self.ranks[order]
        return order, _Inputs(
            self.codes[order], ranks, self.is_delete[order], self.is_commit_time_ordering_delete[order]
        )


@dataclass(frozen=True, slots=True)
class _FieldMerge:
    """The outcome of a merge by key; versions are sorted by key, oldest first.

    Attributes:
        order: row number of each version.
        codes: number of the key of each version.
        leads: whether a version wins over all earlier ones of its key.
        counts: whether a version is a record whose values may be used.
        winners: by key, the row number of the winner.
        latest: by key, the row number of the last version that counts; of the winner for deletes.
        is_delete: by key, whether the record is deleted.
    """

    order: Array
    codes: Array
    leads: Array
    counts: Array
    winners: Array
    latest: Array
    is_delete: Array

    @staticmethod
    def of(inputs: _Inputs, distinct: int, ties_to_first: bool) -> _FieldMerge:
        order, inputs = inputs.sorted()
        codes, is_delete = inputs.codes, inputs.is_delete
        numbers = np.arange(len(codes), dtype=np.int64)
        leads = _leads(inputs, ties_to_first)
        last_delete = _last(codes, numbers, leads & is_delete, distinct)
        begins = leads & ~is_delete & (numbers > last_delete[codes])
        first = _first(codes, numbers, begins, distinct)
        counts = ~is_delete & (first[codes] != _NONE) & (numbers >= first[codes])
        winners = _last(codes, numbers, leads, distinct)
        latest = _last(codes, numbers, counts, distinct)
        return _FieldMerge(
            order,
            codes,
            leads,
            counts,
            order[winners],
            order[np.where(latest == _NONE, winners, latest)],
            first == _NONE,
        )

    def sources(self, is_set: Array, late_fills: bool) -> Array:
        """Return, by key, the row number that a column's value comes from.

        Args:
            is_set: by row, whether the version sets the column.
            late_fills: whether late versions fill unset columns.
        """
        distinct = len(self.winners)
        numbers = np.arange(len(self.codes), dtype=np.int64)
        counts = self.counts & is_set[self.order]
        chosen = _last(self.codes, numbers, counts & self.leads, distinct)
        if late_fills:
            late = _first(self.codes, numbers, counts & ~self.leads, distinct)
            chosen = np.where(chosen == _NONE, late, chosen)
        return np.where(chosen == _NONE, self.winners, self.order[chosen])


def _leads(inputs: _Inputs, ties_to_first: bool) -> Array:
    """Return which versions win over all earlier ones of their key, back to its last commit-time delete."""
    codes = inputs.codes
    if inputs.ranks is None or not len(codes):
        return np.ones(len(codes), dtype=bool)
    starts = np.ones(len(codes), dtype=bool)
    starts[1:] = codes[1:] != codes[:-1]
    starts |= inputs.is_commit_time_ordering_delete
    distinct, dense = np.unique(inputs.ranks, return_inverse=True)
    dense = np.where(inputs.is_commit_time_ordering_delete, 0, dense + 1)
    heights = np.cumsum(starts) * (len(distinct) + 1) + dense
    highest = np.maximum.accumulate(heights)
    if not ties_to_first:
        return np.asarray(heights == highest)
    leads = starts.copy()
    leads[1:] |= heights[1:] > highest[:-1]
    return leads


def _last(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the number of the last flagged version."""
    last = np.full(distinct, _NONE, dtype=np.int64)
    last[codes[flags]] = numbers[flags]
    return last


def _first(codes: Array, numbers: Array, flags: Array, distinct: int) -> Array:
    """Return, by key, the number of the first flagged version."""
    first = np.full(distinct, _NONE, dtype=np.int64)
    first[codes[flags][::-1]] = numbers[flags][::-1]
    return first


def _fits_type(kind: pa.DataType, value: Any) -> bool:
    """Return whether a default is a possible value of a type; the column may have been widened since."""
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    return bool(pa.types.is_floating(kind) or (pa.types.is_integer(kind) and isinstance(value, int)))


def _equal(column: pa.Array, value: Any) -> Array:
    encoded = value.encode() if pa.types.is_binary(column.type) and isinstance(value, str) else value
    return _flags(pc.fill_null(pc.equal(column, pa.scalar(encoded, column.type)), False))


def _flags(column: pa.Array) -> Array:
    flags: Array = column.to_numpy(zero_copy_only=False)
    return flags


_EARLIER_UNAVAILABLE: Final = "hoodie.write.partial.update.custom.marker"
_CACHED: Final = range(-128, 128)
"""Integers in Java's boxing cache: the only ones that a version 9 table recognises as defaults."""


@dataclass(frozen=True, slots=True)
class WholeMerger:
    """Keeps the winning version as a whole (commit-time and event-time ordering)."""

    chooses_whole_records: ClassVar[bool] = True
    can_merge_logs_alone: ClassVar[bool] = True
    supports_cdc: ClassVar[bool] = True

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one."""
        if distinct == len(codes) and (codes == np.arange(distinct)).all():
            return versions  # as most log files have a key once
        winners = winning_rows(codes, distinct, versions.ordering, versions.is_commit_time_ordering_delete)
        by_code = np.empty(distinct, dtype=np.int64)
        by_code[codes[winners]] = winners
        return versions.take(by_code)


def check_mergeable(config: TableConfig) -> None:
    """Check that drawstring can merge the records of a table correctly.

    Raises:
        UnsupportedError: the table's merge mode is not supported.
    """
    merger_of(config)


def merger_of(config: TableConfig, *, is_partial: bool = False, schema_json: str | None = None) -> Merger:
    """Return the merger of a table.

    Args:
        config: configuration of the table.
        is_partial: whether some versions have only a part of the columns.
        schema_json: Avro schema of the records, which has the columns' defaults.

    Raises:
        UnsupportedError: the table's merge mode is not supported.
    """
    if config.merge_mode is MergeMode.CUSTOM or is_partial:
        return _partial_merger(config) if is_partial else _custom_merger(config)
    match config.partial_update_mode:
        case "IGNORE_DEFAULTS":
            return FieldMerger(
                ignores_nulls=True,
                defaults=column_defaults(schema_json, config.payload_rule) if schema_json else {},
                late_stamps=config.payload_rule is PayloadRule.LATE_STAMP,
            )
        case "FILL_UNAVAILABLE" | "IGNORE_MARKERS":
            properties = config.merge_properties
            return FieldMerger(
                unavailable=properties.get(UNAVAILABLE_VALUE) or properties.get(_EARLIER_UNAVAILABLE),
                late_fills=config.payload_rule is not PayloadRule.LATE_NEVER_FILLS,
            )
        case None | "KEEP_VALUES":
            is_first = config.payload_rule is PayloadRule.FIRST_OF_TIES
            return FieldMerger(ties_to_first=True) if is_first else WholeMerger()
    raise UnsupportedError(
        f"The table merges records with the partial update mode {config.partial_update_mode}"
        " (hoodie.table.partial.update.mode), which Apache Hudi does not define."
        " Read it with read_optimized, or compact it first."
    )


def _custom_merger(config: TableConfig) -> CustomMerger:
    names = config.merger_names
    if config.merger is None:
        raise UnsupportedError(
            f"The table merges records by {' or '.join(names) or 'code that it does not name'}. Call"
            f" drawstring.register_merger({names[0] if names else '...'!r}, merger) before opening the table,"
            " read it with read_optimized, or compact it with the writing engine first."
        )
    return CustomMerger(config.merger, names[0])


def takes_partial_blocks(config: TableConfig) -> bool:
    """Return whether Apache Hudi, too, defines how a table merges log blocks with a part of the columns."""
    is_plain = config.payload_rule is None and config.partial_update_mode in (None, "KEEP_VALUES")
    return is_plain and config.merge_mode is not MergeMode.CUSTOM and config.rules.has_partial_blocks


def _partial_merger(config: TableConfig) -> FieldMerger:
    other = config.payload_rule or config.partial_update_mode not in (None, "KEEP_VALUES")
    if other or config.merge_mode is MergeMode.CUSTOM:
        raise UnsupportedError(
            "A log file has blocks with only a part of the columns, and the table merges by"
            f" {config.partial_update_mode or config.payload_class or 'custom code'}."
            " Apache Hudi does not define this combination. Compact the table with the writing engine."
        )
    return FieldMerger()


def column_defaults(schema_json: str, payload_rule: PayloadRule | None) -> Mapping[str, Any]:
    """Return the default values, other than null, that count as "not set" (IGNORE_DEFAULTS).

    Hudi compares Java objects: a value is recognised as the default if both are the same object
    (version 9) or equal (the payload class), which never holds for texts and bytes.

    Args:
        schema_json: Avro schema of the records.
        payload_rule: the table's payload rule.

    Returns:
        The default by column; None if it is never recognised, so that every value of the column is set.
    """
    if payload_rule is PayloadRule.LATE_STAMP:
        return {}
    fields = json.loads(schema_json)["fields"]
    is_payload = payload_rule is not None
    return {
        column["name"]: _recognised(column["default"], is_payload)
        for column in fields
        if column.get("default") is not None
    }


def _recognised(value: Any, is_payload: bool) -> Any:
    if isinstance(value, bool) or (is_payload and isinstance(value, (int, float))):
        return value
    return value if isinstance(value, int) and value in _CACHED else None
