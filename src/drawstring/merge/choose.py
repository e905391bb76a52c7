"""Which merger a table asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import MergeMode, PayloadRule, TableConfig
from drawstring.config.table.merging import UNAVAILABLE_VALUE
from drawstring.merge.custom import CustomMerger
from drawstring.merge.fields import FieldMerger
from drawstring.merge.order import Array, winning_rows
from drawstring.merge.versions import Merger, Versions

_EARLIER_UNAVAILABLE: Final = "hoodie.write.partial.update.custom.marker"
_CACHED: Final = range(-128, 128)
"""Whole numbers that Java boxes once: the ones that a version 9 table recognises as defaults."""


@dataclass(frozen=True, slots=True)
class WholeMerger:
    """Keeps the version that wins, whole."""

    chooses_whole_records: ClassVar[bool] = True
    can_merge_logs_alone: ClassVar[bool] = True
    supports_cdc: ClassVar[bool] = True

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Lay the versions of each key over each other."""
        kept = winning_rows(codes, distinct, versions.ordering, versions.is_commit_delete)
        by_code = np.empty(distinct, dtype=np.int64)
        by_code[codes[kept]] = kept
        return versions.take(by_code)


def check_mergeable(config: TableConfig) -> None:
    """Check that the versions of a table's records can be merged rightly.

    Raises:
        UnsupportedError: they cannot, naming the way that the table merges.
    """
    merger_of(config)


def merger_of(config: TableConfig, *, is_partial: bool = False, schema_json: str | None = None) -> Merger:
    """Return the merger of a table.

    Args:
        config: the table.
        is_partial: whether some versions hold only some of the columns.
        schema_json: Avro schema of the records, which tells the columns' defaults.

    Raises:
        UnsupportedError: it merges in a way that is not known.
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
                late_fills=config.payload_rule is not PayloadRule.LATE_IDLE,
            )
        case None | "KEEP_VALUES":
            is_first = config.payload_rule is PayloadRule.FIRST_OF_TIES
            return FieldMerger(ties_to_first=True) if is_first else WholeMerger()
    raise UnsupportedError(
        f"the table merges records with partial updates {config.partial_update_mode}"
        " (hoodie.table.partial.update.mode), which Apache Hudi does not define:"
        " read it with read_optimized, or compact it first"
    )


def _custom_merger(config: TableConfig) -> CustomMerger:
    asked = config.merger_names
    if config.merger is None:
        raise UnsupportedError(
            f"the table merges records by {' or '.join(asked) or 'code that it does not name'}: call"
            f" drawstring.register_merger({asked[0] if asked else '...'!r}, merger) before it is opened,"
            " read it with read_optimized, or compact it with the writing engine first"
        )
    return CustomMerger(config.merger, asked[0])


def takes_partial_blocks(config: TableConfig) -> bool:
    """Tell whether log blocks with some of the columns mean one thing in a table, to Apache Hudi too."""
    is_plain = config.payload_rule is None and config.partial_update_mode in (None, "KEEP_VALUES")
    return is_plain and config.merge_mode is not MergeMode.CUSTOM and config.rules.has_partial_blocks


def _partial_merger(config: TableConfig) -> FieldMerger:
    other = config.payload_rule or config.partial_update_mode not in (None, "KEEP_VALUES")
    if other or config.merge_mode is MergeMode.CUSTOM:
        raise UnsupportedError(
            "a log file has blocks with some of the columns only, in a table that merges by"
            f" {config.partial_update_mode or config.payload_class or 'code of its own'}:"
            " what Apache Hudi makes of that is not defined; compact it with the writing engine"
        )
    return FieldMerger()


def column_defaults(schema_json: str, payload_rule: PayloadRule | None) -> Mapping[str, Any]:
    """Return the default values, other than null, that say nothing when a record has them.

    Hudi compares objects of Java: a default is recognised where both sides are the same object
    (version 9) or equal (the payload class), which texts and bytes never are.

    Args:
        schema_json: Avro schema of the records.
        payload_rule: of the table.

    Returns:
        By column; None for a default that is never recognised: nothing in that column says nothing.
    """
    if payload_rule is PayloadRule.LATE_STAMP:
        return {}
    fields = json.loads(schema_json)["fields"]
    is_code = payload_rule is not None
    return {
        each["name"]: _recognised(each["default"], is_code)
        for each in fields
        if each.get("default") is not None
    }


def _recognised(value: Any, is_code: bool) -> Any:
    if isinstance(value, bool) or (is_code and isinstance(value, (int, float))):
        return value
    return value if isinstance(value, int) and value in _CACHED else None
