"""Which tables this release can write to."""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.merge.record_mergers import check_mergeable, merger_of
from drawstring.storage.protocol import Storage

SCHEMA_HISTORY: Final = ".hoodie/.schema"


def check_writable(storage: Storage, config: TableConfig) -> None:
    """Refuse tables with features that a write of this release would break.

    Args:
        storage: the table's files.
        config: the table's settings.

    Raises:
        UnsupportedError: the table has such a feature, which the message names with its table property, or
            an old version.
    """
    if not config.rules.is_writable:
        raise UnsupportedError(
            f"The table has version {config.version}, which this release only reads. Upgrade it to version 6"
            " with Apache Hudi 0.14 or 0.15 first, then write to it.",
            table=storage.spec.uri,
        )
    try:
        check_mergeable(config)
    except UnsupportedError as error:
        raise error.at(table=storage.spec.uri) from error
    refusals = [
        (
            config.cdc_enabled and not merger_of(config).supports_cdc,
            "logs changes (hoodie.table.cdc.enabled) and merges records column by column",
        ),
        (
            config.drop_partition_columns and config.is_merge_on_read,
            "is MERGE_ON_READ and drops its partition columns from the files",
        ),
        (config.base_file_format != "PARQUET", f"has {config.base_file_format} base files"),
        (
            config.has_several_base_formats,
            "may have base files of several formats (hoodie.table.multiple.base.file.formats.enable)",
        ),
        (
            bool(storage.list_files(SCHEMA_HISTORY)),
            "had its schema changed on read (hoodie.schema.on.read.enable)",
        ),
    ]
    for refused, feature in refusals:
        if refused:
            raise UnsupportedError(
                f"This release cannot write to a table that {feature}; it can only read it. Write to it with"
                " Apache Hudi.",
                table=storage.spec.uri,
            )
