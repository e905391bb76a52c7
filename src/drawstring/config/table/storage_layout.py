"""The storage layout of a table: whether its base and log files are sorted by record key (RFC-103).

    default    files are in no particular order
    lsm_tree   each base and log file is sorted by record key, by UTF-8 bytes, and has each key once

A table gets the layout `lsm_tree` when it is created, or never, and can return to `default` at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Option
from drawstring.config.table_types import META_FIELDS, TableType
from drawstring.model.table_version import LogFormat, VersionRules

BASE_FORMAT: Final = "hoodie.table.base.file.format"
STORAGE_LAYOUT: Final = "hoodie.table.storage.layout"
LSM_TREE: Final = "lsm_tree"
DEFAULT_LAYOUT: Final = "default"

LAYOUT_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        STORAGE_LAYOUT,
        "Storage layout of a new table of version 10: `lsm_tree` sorts each base and log file of a"
        " MERGE_ON_READ table by record key. A COPY_ON_WRITE table is stored with `default`.",
        choices=(DEFAULT_LAYOUT, LSM_TREE),
        field="storage_layout",
        stored_as=STORAGE_LAYOUT,
    ),
    Option(
        BASE_FORMAT,
        "Format of the base files of a new table, and of its native log files (version 10). `lance` needs"
        " `pip install 'drawstring[lance]'`.",
        alternatives=("hoodie.base.file.format",),
        choices=("parquet", "orc", "hfile", "lance"),
        only=("PARQUET", "ORC", "LANCE"),
        field="base_file_format",
        stored_as=BASE_FORMAT,
    ),
)


def is_sorted(properties: Mapping[str, str]) -> bool:
    """Return whether the properties of a table ask for sorted files."""
    return properties.get(STORAGE_LAYOUT, "").lower() == LSM_TREE


def layout_property(
    properties: Mapping[str, str], record_key: Sequence[str], rules: VersionRules
) -> dict[str, str]:
    """Return the storage layout of a new table as a property; none if none was asked for.

    Args:
        properties: properties of the new table.
        record_key: its key columns.
        rules: of its version.

    Raises:
        InvalidError: the table cannot have the layout.
    """
    if STORAGE_LAYOUT not in properties:
        return {}
    if not is_sorted(properties) or properties["hoodie.table.type"] != TableType.MERGE_ON_READ:
        return {STORAGE_LAYOUT: DEFAULT_LAYOUT}
    needs = [
        (rules.log_format is LogFormat.NATIVE, "table version 10"),
        (bool(record_key), "key columns, by which its files are sorted"),
        (properties[META_FIELDS].lower() != "false", f"{META_FIELDS}=true"),
    ]
    for is_met, need in needs:
        if not is_met:
            raise InvalidError(f"{STORAGE_LAYOUT}={LSM_TREE} needs {need}. Change that, or drop the option.")
    return {STORAGE_LAYOUT: LSM_TREE}
