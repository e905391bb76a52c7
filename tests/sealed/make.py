"""Writes the sealed tables anew, into an empty folder: `python -m tests.sealed.make FOLDER`."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.table import Table
from tests.support.rows import SCHEMA, rides
from tests.support.tables import AVRO_LOGS, COW, MOR, WITHOUT_SERVICES, create

COLUMNS = pa.schema([*SCHEMA, ("note", pa.string())])
PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true", **WITHOUT_SERVICES}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
CDC = {"hoodie.table.cdc.enabled": "true"}


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, each, strict=True)) for each in values], COLUMNS)


def mor_with_logs_of_both_formats(path: Path) -> Table:
    """Inline and native log files, deletes, partial updates, a log compaction, late records."""
    table = create(COLUMNS, path=path, table_type=MOR, version=9, properties=BUCKET)
    table.insert(rows(*((key, "rome", 1, 1.0, "first") for key in "abcdef")), options=WITHOUT_SERVICES)
    avro = {**WITHOUT_SERVICES, **AVRO_LOGS}
    table.upsert(rows(("a", "rome", 5, 5.0, "inline"), ("b", "rome", 2, 2.0, "inline")), options=avro)
    table.upgrade(10)
    table.upsert(
        rows(("a", "rome", 4, 4.0, "late"), ("b", "rome", 3, 3.0, "native")), options=WITHOUT_SERVICES
    )
    table.delete(rides(("c", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    table.log_compact(min_blocks=2)
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


TABLES = {"v10_mor_logs_of_both_formats": mor_with_logs_of_both_formats, "v10_cow_cdc": cow_with_change_logs}


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


def listed(found: pa.Table) -> list[list[Any]]:
    return sorted(([*row.values()] for row in found.to_pylist()), key=str)


def make(folder: Path) -> None:
    """Write each table and what was read from it."""
    for name, create_table in TABLES.items():
        table = create_table(folder / name)
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted((folder / name).rglob("*")):
                packed.write(path, path.relative_to(folder))
        found = answers(drawstring.open(table.uri))
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
