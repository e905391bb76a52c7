"""Which merger a table gets, and what its columns' defaults say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.errors import UnsupportedError
from drawstring.config.table_config import MergeMode, PayloadRule, TableConfig, TableType
from drawstring.merge.record_merger import FieldMerger, WholeMerger, column_defaults, merger_of

PLAIN = TableConfig("rides", TableType.MERGE_ON_READ, 9)
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "rides",
        "fields": [
            {"name": "null", "type": ["null", "long"], "default": None},
            {"name": "none", "type": "long"},
            {"name": "zero", "type": ["long", "null"], "default": 0},
            {"name": "large", "type": "long", "default": 1000},
            {"name": "half", "type": "double", "default": 0.5},
            {"name": "no", "type": "boolean", "default": False},
            {"name": "empty", "type": "string", "default": ""},
        ],
    }
)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (None, {"zero": 0, "large": None, "half": None, "no": False, "empty": None}),
        (PayloadRule.PLAIN, {"zero": 0, "large": 1000, "half": 0.5, "no": False, "empty": None}),
        (PayloadRule.LATE_STAMP, {}),
    ],
)
def test_defaults_that_java_recognises_say_nothing(rule: PayloadRule | None, found: dict[str, Any]) -> None:
    assert column_defaults(SCHEMA, rule) == found


def test_a_table_that_keeps_winners_whole_does_so_until_a_block_is_partial() -> None:
    assert merger_of(PLAIN) == WholeMerger()
    assert merger_of(PLAIN, is_partial=True) == FieldMerger()


@pytest.mark.parametrize(
    ("config", "is_partial"),
    [
        (replace(PLAIN, partial_update_mode="FILL_DEFAULTS"), False),
        (replace(PLAIN, partial_update_mode="IGNORE_DEFAULTS"), True),
        (replace(PLAIN, payload_rule=PayloadRule.PLAIN), True),
        (replace(PLAIN, merge_mode=MergeMode.CUSTOM), True),
        (replace(PLAIN, merge_mode=MergeMode.CUSTOM), False),
    ],
)
def test_what_hudi_does_not_define_is_refused(config: TableConfig, is_partial: bool) -> None:
    with pytest.raises(UnsupportedError, match="merges"):
        merger_of(config, is_partial=is_partial)
