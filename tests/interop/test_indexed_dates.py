"""drawstring and real Hudi keep and use indexes of dates in texts that either of them built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from tests.support.expression_indexes import built, kept, without_origin
from tests.support.referee import Referee, RefereeError
from tests.support.tables import COW

METADATA = {"hoodie.metadata.enable": "true"}
SKIPPING = {**METADATA, "hoodie.enable.data.skipping": "true"}
GROUPS = {"hoodie.parquet.small.file.limit": "0"}
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "day", "written", "packed", "at")] + [("ts", pa.int64())]
)
THEIRS = {
    **METADATA,
    **GROUPS,
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.table.version": "9",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.index.expression.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}
LOCKED = {
    **METADATA,
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.metadata.index.column.stats.enable": "false",
}
CONDITIONS: dict[str, Callable[[int], bool]] = {
    "to_date(day) = date '2024-01-05'": lambda day: day == 5,
    "to_date(written, 'd.MM.yyyy') in (date '2024-01-07', date '2024-01-09')": lambda day: day in (7, 9),
    "to_date(packed, 'yyyyMMdd') = date '2024-01-06'": lambda day: day == 6,
}
"""Each on another column: Hudi 1.2.0 does not look at the function of an index that it uses."""


def rides(numbers: range, day: int) -> pa.Table:
    """Return rows of a day, which is in a text of each row in four ways."""
    ways = (f"2024-1-{day} 10:00", f"{day}.01.2024", f"202401{day:02}", f"2024-01-{day:02} 10:20:30")
    rows = [(f"k{number}", *ways, day) for number in numbers]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def test_both_keep_and_use_indexes_of_dates_in_texts(referee: Referee, tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    drawstring.create(path, SCHEMA, name="rides", table_type=COW, record_key="id", ordering="ts")
    days: dict[str, int] = {}

    def write(numbers: range, day: int, *, by_hudi: bool = False) -> None:
        rows = rides(numbers, day)
        if by_hudi:
            referee.write(path, rows, THEIRS)
        else:
            drawstring.open(path, options=METADATA).upsert(rows, options=GROUPS)
        days.update(dict.fromkeys(rows.column("id").to_pylist(), day))
        checked()

    def checked() -> None:
        table = drawstring.open(path, options=METADATA)
        for name in {each.name for each in table.indexes.list()}:
            assert without_origin(kept(table, name)) == without_origin(built(table, name)), name

    def indexed_by_hudi(name: str, what: str, options: str) -> None:
        referee.sql(
            path, f"CREATE INDEX {name} ON {{table}} USING {what} OPTIONS ({options})", options=LOCKED
        )

    write(range(10), 5)
    write(range(10, 20), 6)
    table = drawstring.open(path, options=METADATA)
    table.indexes.create("by_day", "day", using="column_stats", options={"expr": "to_date"})
    settings = {"expr": "to_date", "format": "yyyyMMdd", "numentries": "100"}
    table.indexes.create("by_packed", "packed", using="bloom_filters", options=settings)
    indexed_by_hudi("by_written", "column_stats(written)", "expr='to_date', format='d.MM.yyyy'")
    indexed_by_hudi("by_second", "column_stats(at)", "expr='unix_timestamp', format='yyyy-MM-dd HH:mm:ss'")
    checked()
    write(range(15, 25), 7)
    write(range(22, 30), 8, by_hudi=True)
    write(range(28, 35), 9)
    names = [f"expr_index_by_{each}" for each in ("day", "packed", "second", "written")]
    table = drawstring.open(path, options=METADATA)
    assert [each.name for each in table.indexes.list()] == names
    for where, matches in CONDITIONS.items():
        wanted = sorted(each for each, day in days.items() if matches(day))
        scan = table.scan(["id"], where=where)
        assert sorted(scan.to_arrow().column("id").to_pylist()) == wanted != []
        assert any(step.by in names and step.skipped for step in scan.explain().steps), where
        assert sorted(referee.read(path, SKIPPING, where=where).column("id").to_pylist()) == wanted, where
    with pytest.raises(RefereeError, match=r"Unsupported data type: ArrayType"):
        indexed_by_hudi("parts", "column_stats(written)", "expr='split', pattern='-'")
