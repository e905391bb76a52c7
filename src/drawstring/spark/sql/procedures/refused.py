"""Hudi's procedures that a table of drawstring has no use for, and what to call instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REFUSED: Final[Mapping[str, str]] = {
    "hdfs_parquet_import": (
        "hdfs_parquet_import is not supported: its tables do not store which columns are the key, and queries"
        " of Hudi find no rows in them. CALL run_bootstrap(..., selector_class =>"
        " 'FullRecordBootstrapModeSelector') copies a folder of Parquet files into a new table, and INSERT"
        " INTO ... SELECT * FROM parquet.`/folder` into one that is there."
    ),
    "repair_migrate_partition_meta": (
        "repair_migrate_partition_meta is not supported: writers here mark the folders of partitions by"
        " .hoodie_partition_metadata, which every reader knows. repair_add_partition_meta adds missing ones."
    ),
    "sync_validate": (
        "sync_validate is not supported: it counts rows through HiveServer2 by JDBC, and syncs here speak to"
        " the metastore. CALL hive_sync returns an error if the sync fails; to compare two tables, SELECT"
        " count(*) from each."
    ),
}
"""Why by name."""
