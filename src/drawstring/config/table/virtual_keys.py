"""Tables with virtual keys (no meta columns) or without partition columns in their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option
from drawstring.config.table_types import (
    ALL_META_FIELDS,
    META_FIELDS,
    META_FIELDS_MODE,
    NO_META_FIELDS,
    KeyGeneratorType,
    has_meta_fields,
    has_some_meta_fields,
)

DROPPED: Final = "hoodie.datasource.write.drop.partition.columns"

LEANER_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        META_FIELDS,
        "Whether records of a new table have the meta columns; true when not given. Also as"
        " `hoodie.meta.fields.mode` (Hudi's master): ALL or NONE.",
        kind=Kind.FLAG,
        alternatives=(META_FIELDS_MODE,),
        spellings=((ALL_META_FIELDS, "true"), (NO_META_FIELDS, "false")),
        field="populate_meta_fields",
        stored_as=META_FIELDS,
    ),
    Option(
        DROPPED,
        "Whether base files of a new table lack the partition columns.",
        kind=Kind.FLAG,
        field="drop_partition_columns",
        stored_as=DROPPED,
    ),
)

_PLAIN: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)
_PARSEABLE: Final = _PLAIN[:2]


def meta_field_properties(properties: Mapping[str, str], *, has_mode: bool) -> dict[str, str]:
    """Return the properties that say whether a table has the meta columns.

    Args:
        properties: those of the table, which has all meta columns or none.
        has_mode: whether its version stores a mode besides the flag.
    """
    is_all = has_meta_fields(properties)
    mode = {META_FIELDS_MODE: ALL_META_FIELDS if is_all else NO_META_FIELDS} if has_mode else {}
    return {META_FIELDS: str(is_all).lower(), **mode}


def check_leaner_files(
    properties: Mapping[str, str],
    record_key: Collection[str],
    partition_by: Collection[str],
    ordering: Collection[str],
) -> None:
    """Check that the other properties of a new table allow files without these columns.

    Args:
        properties: properties of the new table.
        record_key, partition_by, ordering: its columns.

    Raises:
        InvalidError: the properties contradict each other.
        UnsupportedError: this release cannot write such a table.
    """
    if has_some_meta_fields(properties):
        raise UnsupportedError(
            "A table cannot have some of the meta columns"
            f" ({META_FIELDS_MODE}={properties[META_FIELDS_MODE]})."
            f" Set {META_FIELDS_MODE} to {ALL_META_FIELDS} or {NO_META_FIELDS}, or drop it."
        )
    generator = properties["hoodie.table.keygenerator.type"]
    if properties[META_FIELDS].lower() == "false":
        if not record_key or generator not in _PLAIN:
            raise InvalidError(
                f"{META_FIELDS}=false needs key columns and a SIMPLE, COMPLEX or NON_PARTITION key generator,"
                " since record keys are computed from the columns on each read. Change these, or drop the"
                " option."
            )
        if properties["hoodie.table.cdc.enabled"].lower() == "true":
            raise InvalidError(
                f"{META_FIELDS}=false does not support change queries. Drop hoodie.table.cdc.enabled."
            )
    if properties[DROPPED].lower() != "true":
        return
    slashed = properties.get("hoodie.datasource.write.slash.separated.date.partitioning")
    if not partition_by or generator not in _PARSEABLE or slashed:
        raise InvalidError(
            f"{DROPPED} needs partition columns whose values follow from the path. Use a SIMPLE or COMPLEX"
            " key generator without slash-separated dates."
        )
    if lost := {*record_key, *ordering} & {*partition_by}:
        raise InvalidError(
            f"{DROPPED} would drop {', '.join(sorted(lost))}, which the record key or ordering needs."
            " Drop the option."
        )
