"""Tables that merge by partial update modes and payloads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import drawstring
from drawstring.table import Table
from tests.support.merge_histories import MARKER, SCHEMA, Rules

DELETED = "_hoodie_is_deleted"
COLUMNS = pa.schema([*list(SCHEMA)[1:], (DELETED, pa.bool_())])
PAYLOADS = "org.apache.hudi.common.model."
PARTIAL = "hoodie.table.partial.update.mode"
UNAVAILABLE = {
    PARTIAL: "FILL_UNAVAILABLE",
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": MARKER,
}


@dataclass(frozen=True)
class Kind:
    """How a table merges: its properties, and the rules of the model."""

    version: int
    properties: dict[str, str]
    rules: Rules
    deletes_always_win: bool = False
    block_deletes_always_win: bool = False


def by_payload(version: int, name: str) -> dict[str, str]:
    """Return the properties of a table that merges by a payload class of Hudi\'s."""
    mode = {} if version == 6 else {"hoodie.record.merge.mode": "CUSTOM"}
    strategy = {"hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000"}
    return {"hoodie.compaction.payload.class": PAYLOADS + name, **mode, **strategy}


KINDS = {
    "v9 ignore defaults": Kind(9, {PARTIAL: "IGNORE_DEFAULTS"}, Rules(ignores_nulls=True)),
    "v9 ignore defaults by commit time": Kind(
        9,
        {PARTIAL: "IGNORE_DEFAULTS", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
        Rules(ordered=False, ignores_nulls=True),
    ),
    "v9 unavailable": Kind(9, UNAVAILABLE, Rules(unavailable=MARKER)),
    "v6 partial update": Kind(
        6, by_payload(6, "PartialUpdateAvroPayload"), Rules(ignores_nulls=True), True, True
    ),
    "v8 non-defaults": Kind(
        8,
        by_payload(8, "OverwriteNonDefaultsWithLatestAvroPayload"),
        Rules(ordered=False, ignores_nulls=True),
        block_deletes_always_win=True,
    ),
    "v8 first value": Kind(
        8, by_payload(8, "FirstValueAvroPayload"), Rules(ties_to_first=True), block_deletes_always_win=True
    ),
}


def set_properties(root: Path, properties: dict[str, str]) -> Table:
    """Change the properties of a table behind its back and open it."""
    path = root / ".hoodie/hoodie.properties"
    kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in properties]
    path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in properties.items())]) + "\n")
    return drawstring.open(root)


@contextmanager
def table_of(kind: Kind, table_type: str) -> Iterator[Table]:
    """Create an empty table of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        drawstring.create(
            folder,
            COLUMNS,
            name="patched",
            table_type=table_type,
            record_key="key",
            ordering="ts",
            version=kind.version,
            properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
        )
        yield set_properties(Path(folder), kind.properties)


def timed(*rows: tuple[str, int | None, str | None]) -> pa.Table:
    """Return rows by key, time and name."""
    return pa.Table.from_pylist([{"key": key, "ts": ts, "name": name} for key, ts, name in rows], COLUMNS)


def names(table: Table) -> dict[str, str]:
    """Return the names in a table by key."""
    rows = table.scan(columns=["key", "name"]).to_arrow().to_pylist()
    return {row["key"]: row["name"] for row in rows}
