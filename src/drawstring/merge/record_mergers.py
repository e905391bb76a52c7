"""Choice of the record merger by the table's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import MergeMode, PayloadRule, TableConfig
from drawstring.config.table.merge_rules import UNAVAILABLE_VALUE
from drawstring.merge.custom import CustomMerger
from drawstring.merge.order import Array, winning_rows
from drawstring.merge.partial_update import FieldMerger
from drawstring.merge.versions import Merger, Versions

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
