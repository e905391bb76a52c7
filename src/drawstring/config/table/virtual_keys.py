"""Tables whose files hold less: without meta columns, without partition columns; what goes with that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option
from drawstring.config.table.kinds import KeyGeneratorType, TableType

META_FIELDS: Final = "hoodie.populate.meta.fields"
DROPPED: Final = "hoodie.datasource.write.drop.partition.columns"

LEANER_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        META_FIELDS,
        "Whether records of a new table carry the meta columns; true when not given.",
        kind=Kind.FLAG,
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
_TELLING: Final = _PLAIN[:2]


def check_leaner_files(
    properties: Mapping[str, str],
    record_key: Collection[str],
    partition_by: Collection[str],
    ordering: Collection[str],
) -> None:
    """Refuse new tables that nobody could read or write.

    Args:
        properties: of the new table.
        record_key, partition_by, ordering: its columns.

    Raises:
        InvalidError: things that do not go together.
        UnsupportedError: what this release does not write.
    """
    generator = properties["hoodie.table.keygenerator.type"]
    if properties[META_FIELDS].lower() == "false":
        if not record_key or generator not in _PLAIN:
            raise InvalidError(
                f"{META_FIELDS}=false needs key columns and a SIMPLE, COMPLEX or NON_PARTITION key generator:"
                " keys are made anew from the columns whenever they are needed"
            )
        if properties["hoodie.table.cdc.enabled"].lower() == "true":
            raise InvalidError(f"{META_FIELDS}=false leaves change queries nothing to go by: log no changes")
    if properties[DROPPED].lower() != "true":
        return
    if properties["hoodie.table.type"] == TableType.MERGE_ON_READ:
        raise UnsupportedError(f"{DROPPED} is written for COPY_ON_WRITE tables only: leave it out")
    slashed = properties.get("hoodie.datasource.write.slash.separated.date.partitioning")
    if not partition_by or generator not in _TELLING or slashed:
        raise InvalidError(
            f"{DROPPED} needs partition columns, and paths that tell their values: use a SIMPLE or COMPLEX"
            " key generator without slash-separated dates"
        )
    if lost := {*record_key, *ordering} & {*partition_by}:
        raise InvalidError(
            f"{DROPPED} would drop {', '.join(sorted(lost))}, which records are known or ordered by:"
            " leave it out"
        )
