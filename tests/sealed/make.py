"""Writes the sealed tables anew, into an empty folder: `python -m tests.sealed.make FOLDER`."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import drawstring
from drawstring.table import Table
from tests.support.rows import SCHEMA, rides
from tests.support.tables import AVRO_LOGS, COW, MOR, WITHOUT_SERVICES, create

COLUMNS = pa.schema([*SCHEMA, ("note", pa.string())])
PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true", **WITHOUT_SERVICES}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
LSM = {"hoodie.table.storage.layout": "lsm_tree"}
UNSORTED = {"hoodie.table.storage.layout": "default"}
COMMIT_TIME = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
PAYLOAD = "hoodie.compaction.payload.class"
FIELDS = {PAYLOAD: "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"}
OWN = "com.example.SumOfFares"
CUSTOM = {PAYLOAD: OWN}
BASE_FORMAT = "hoodie.table.base.file.format"
ORC, LANCE = {BASE_FORMAT: "orc"}, {BASE_FORMAT: "lance"}
CDC = {"hoodie.table.cdc.enabled": "true"}
LOGS_COMPACTED = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
}


def adds(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Merge two versions of records into one with the sum of their fares."""
    fares = pc.add(older["fare"], newer["fare"])
    return newer.set_column(newer.schema.get_field_index("fare"), "fare", fares)


drawstring.register_merger(OWN, adds)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, each, strict=True)) for each in values], COLUMNS)


def mor_with_logs_of_both_formats(path: Path) -> Table:
    """Inline and native log files, deletes, partial updates, a log compaction, late records."""
    table = create(COLUMNS, path=path, table_type=MOR, version=9, properties=BUCKET)
    table.insert(rows(*((key, "rome", 1, 1.0, "first") for key in "abcdef")), options=WITHOUT_SERVICES)
    avro = {**WITHOUT_SERVICES, **AVRO_LOGS}
    table.upsert(rows(("a", "rome", 5, 5.0, "inline"), ("b", "rome", 2, 2.0, "inline")), options=avro)
    table.versions.upgrade(10)
    table.upsert(
        rows(("a", "rome", 4, 4.0, "late"), ("b", "rome", 3, 3.0, "native")), options=WITHOUT_SERVICES
    )
    table.delete(rides(("c", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    table.services.log_compact(min_blocks=2)
    source = rides(("d", "rome", 7, 70.0), ("n", "rome", 7, 70.0))
    merge = table.merge(source, on=["id", "city"], options=PARTIAL)
    merge = merge.when_matched_update({"fare": "source.fare", "ts": "source.ts"})
    merge.when_not_matched_insert({name: f"source.{name}" for name in SCHEMA.names}).execute()
    table.upsert(rows(("e", "rome", 8, 8.0, "last")), options=WITHOUT_SERVICES)
    return table


def cow_with_change_logs(path: Path) -> Table:
    """Native files of change images."""
    table = create(COLUMNS, path=path, table_type=COW, version=10, properties=CDC)
    table.insert(rows(*((key, "rome", 1, 1.0, "first") for key in "abc")), options=WITHOUT_SERVICES)
    table.upsert(rows(("a", "rome", 2, 2.0, "new"), ("n", "rome", 2, 2.0, None)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    return table


def with_runs(path: Path, **how: Any) -> Table:
    """A base file, log files of several writes, deletes, one merged run, in either layout.

    Keys come unsorted and twice, some records late, and keys that are not ASCII sort by their bytes.
    """
    table = create(COLUMNS, path=path, table_type=MOR, version=10, properties={**BUCKET, **LSM, **how})
    keys = ("e", "Ä", "b", "a", "\U0001f600", "c", "z", "d")
    table.bulk_insert(rows(*((key, "rome", 1, 1.0, "first") for key in keys)), options=WITHOUT_SERVICES)
    table.upsert(
        rows(("c", "rome", 5, 5.0, "c5"), ("a", "rome", 4, 4.0, "a4"), ("a", "rome", 3, 3.0, "a3")),
        options=WITHOUT_SERVICES,
    )
    table.upsert(rows(("a", "rome", 2, 2.0, "late"), ("Ä", "rome", 2, 2.0, None)), options=WITHOUT_SERVICES)
    if PAYLOAD not in how:  # log records that merge alone
        table.services.log_compact(min_blocks=2)
    table.delete(rides(("b", "rome", 9, 0.0), ("c", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    table.upsert(
        rows(("n", "oslo", 7, 7.0, "new"), ("e", "rome", 6, 6.0, "e6"), ("b", "rome", 8, 8.0, "again")),
        options=WITHOUT_SERVICES,
    )
    return table


def lsm_with_partial_updates(path: Path, **how: Any) -> Table:
    """Sorted files of partial updates between two compactions."""
    table = with_runs(path, **how)
    table.services.compact()
    source = rides(("d", "rome", 7, 70.0), ("a", "rome", 1, 10.0), ("m", "rome", 7, 70.0))
    merge = table.merge(source, on=["id", "city"], options=PARTIAL)
    merge = merge.when_matched_update({"fare": "source.fare", "ts": "source.ts"})
    merge.when_not_matched_insert({name: f"source.{name}" for name in SCHEMA.names}).execute()
    table.upsert(rows(("d", "rome", 6, 6.0, "late"), ("m", "rome", 8, 8.0, "m8")), options=WITHOUT_SERVICES)
    return table


def cow_in_lance(path: Path) -> Table:
    """Lance base files, rewritten, and native files of change images."""
    properties = {**CDC, **LANCE}
    table = create(COLUMNS, path=path, table_type=COW, version=10, properties=properties)
    table.insert(rows(*((key, "rome", 1, 1.0, "first") for key in "abc")), options=WITHOUT_SERVICES)
    table.upsert(rows(("a", "rome", 2, 2.0, "new"), ("n", "rome", 2, 2.0, None)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    return table


def with_native_metadata_logs(path: Path, index: tuple[str, ...], **how: str) -> Table:
    """Log files of the metadata table: of records, of removals and of a log compaction, and a base file.

    The table has a record index and another one; records and a partition go.
    """
    table = create(COLUMNS, path=path, table_type=MOR, version=10, properties=how)
    seldom = {**WITHOUT_SERVICES, "hoodie.metadata.compact.max.delta.commits": "7"}
    indexed = {**seldom, "hoodie.index.type": "RECORD_INDEX", **LOGS_COMPACTED}
    first = rows(
        *((key, city, 1, 1.0, "first") for key, city in (("a", "rome"), ("c", "rome"), ("Ä", "oslo")))
    )
    table.insert(first, options=seldom)
    table.indexes.create("record_index")
    table.indexes.create(*index)
    for ts in range(2, 6):
        changed = rows(("a", "rome", ts, 1.0, f"a{ts}"), (f"n{ts}", "rome", ts, 1.0, None))
        table.upsert(changed, options=indexed)
    table.delete(rides(("c", "rome", 9, 0.0), ("n2", "rome", 9, 0.0)), options=indexed)
    table.delete_partition("oslo", options=indexed)
    table.upsert(rows(("c", "rome", 10, 2.0, "again"), ("Ä", "bern", 10, 2.0, "moved")), options=indexed)
    return table


TABLES: dict[str, Callable[[Path], Table]] = {
    "v10_mor_logs_of_both_formats": mor_with_logs_of_both_formats,
    "v10_cow_cdc": cow_with_change_logs,
    "v10_lsm_event_time": with_runs,
    "v10_lsm_commit_time": partial(with_runs, **COMMIT_TIME),
    "v10_lsm_partial_updates": lsm_with_partial_updates,
    "v10_mor_commit_time": partial(with_runs, **COMMIT_TIME, **UNSORTED),
    "v10_lsm_fields": partial(with_runs, **FIELDS),
    "v10_mor_fields": partial(with_runs, **FIELDS, **UNSORTED),
    "v10_lsm_custom_merger": partial(with_runs, **CUSTOM),
    "v10_mor_custom_merger": partial(with_runs, **CUSTOM, **UNSORTED),
    "v10_mor_orc": partial(with_runs, **ORC, **UNSORTED),
    "v10_lsm_orc": partial(lsm_with_partial_updates, **ORC),
    "v10_mor_lance": partial(lsm_with_partial_updates, **LANCE, **UNSORTED),
    "v10_lsm_lance": partial(with_runs, **LANCE),
    "v10_cow_lance": cow_in_lance,
    "v10_mor_metadata_logs": partial(with_native_metadata_logs, index=("by_note", "note")),
    "v10_lsm_metadata_logs": partial(with_native_metadata_logs, index=("column_stats",), **LSM),
}


def answers(table: Table) -> dict[str, Any]:
    """Return what queries read from a table."""
    times = [write.requested for write in table.timeline.writes()]
    changes = table.changes("earliest").to_arrow().to_pylist()
    return {
        "version": table.config.version,
        "snapshot": listed(table.scan().to_arrow()),
        "as of": {time: listed(table.scan(as_of=time).to_arrow()) for time in times},
        "incremental": listed(table.incremental("earliest").to_arrow()),
        "changes": sorted(([*row.values()] for row in changes), key=str),
    }


def metadata(table: Table) -> dict[str, list[list[Any]]]:
    """Return what the metadata table of a table holds, by partition."""
    partitions = table.inspect.metadata().column("partition").to_pylist()
    return {each: listed(table.inspect.metadata(each)) for each in partitions}


def listed(found: pa.Table) -> list[list[Any]]:
    return sorted(([*row.values()] for row in found.to_pylist()), key=str)


def make(folder: Path) -> None:
    """Write each table and what was read from it."""
    for name, create_table in TABLES.items():
        table = create_table(folder / name)
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted((folder / name).rglob("*")):
                packed.write(path, path.relative_to(folder))
        made = drawstring.open(table.uri)
        found = answers(made) | ({"metadata": metadata(made)} if name.endswith("metadata_logs") else {})
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1, default=str) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
