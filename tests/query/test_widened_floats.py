"""Floats of before their column became a double are read by their texts, as Hudi reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.table import Table
from tests.support.tables import WITHOUT_SERVICES


def schema(kind: pa.DataType) -> pa.Schema:
    inner = pa.struct([("y", kind)])
    return pa.schema([("id", pa.int64()), ("x", kind), ("at", inner), ("ts", pa.int64())])


def rows(kind: pa.DataType, *values: tuple[int, float, int]) -> pa.Table:
    content = [{"id": id, "x": x, "at": {"y": x}, "ts": ts} for id, x, ts in values]
    return pa.Table.from_pylist(content, schema(kind))


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["statistics", "no statistics"])
def table(tmp_path_factory: pytest.TempPathFactory, kind: str, request: pytest.FixtureRequest) -> Table:
    return widened(tmp_path_factory.mktemp("t") / "t", kind, has_statistics=request.param)


def widened(path: Path, kind: str, *, has_statistics: bool) -> Table:
    statistics = {"hoodie.metadata.index.column.stats.enable": str(has_statistics).lower()}
    options = {**WITHOUT_SERVICES, **statistics, "hoodie.parquet.small.file.limit": "0"}
    single, double = pa.float32(), pa.float64()
    table = drawstring.create(path, schema(single), record_key="id", ordering="ts", table_type=kind)
    table.insert(rows(single, (1, 1.1, 1), (2, 2.2, 1), (3, 3.3, 1)), options=options)
    table.upsert(rows(single, (2, 4.4, 2)), options=options)
    table.insert(rows(double, (4, 5.5, 2)), options=options)
    table.upsert(rows(single, (5, 6.6, 2)), options=options)
    return table


@pytest.mark.parametrize("column", ["x", "at.y"])
@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("{} = 1.1", [1]),
        ("{} <= 1.1", [1]),
        ("{} > 1.1", [2, 3, 4, 5]),
        ("{} = 4.4", [2]),
        ("{} > 3.3 AND {} < 4.4", []),
        ("{} IN (1.1, 5.5, 6.6)", [1, 4, 5]),
    ],
)
def test_conditions_find_them(table: Table, column: str, condition: str, ids: list[int]) -> None:
    found = table.scan(columns="id", where=condition.replace("{}", column)).to_arrow()
    assert sorted(found.column("id").to_pylist()) == ids


def test_values_are_those_of_the_texts_also_after_services(tmp_path: Path, kind: str) -> None:
    table = widened(tmp_path / "t", kind, has_statistics=False)
    expected = [(1, 1.1), (2, 4.4), (3, 3.3), (4, 5.5), (5, 6.6)]

    def held() -> list[tuple[int, float]]:
        found = table.scan(columns=["id", "x", "at"]).to_arrow().to_pylist()
        assert all(row["at"]["y"] == row["x"] for row in found)
        return sorted((row["id"], row["x"]) for row in found)

    assert held() == expected
    if kind == "MERGE_ON_READ":
        assert table.services.compact()
        assert held() == expected
    table.upsert(rows(pa.float64(), (1, 7.7, 9)), options=WITHOUT_SERVICES)
    expected[0] = (1, 7.7)
    assert held() == expected
    assert table.services.cluster()
    assert held() == expected
