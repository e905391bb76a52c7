"""The same on Spark, on few cells, so chosen that each index, layout and operation is among them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.combinations import others_long
from tests.support.contract.cells import BARE_SPARK_CELLS, SPARK_CELLS, Cell
from tests.support.contract.model import Model
from tests.support.contract.steps import FIRST, NUMBERS, PLACES, Both, Item, Pace, Step
from tests.support.contract.witness import Witness
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SHORT = (*SPARK_CELLS[:2], BARE_SPARK_CELLS[0])
"""A table without logs, one with them, and one with columns of records in them; the others are long."""


def _history(cell: Cell) -> list[Step]:
    rng = random.Random(str(cell))

    def items(count: int) -> tuple[Item, ...]:
        return tuple(
            Item(
                rng.randrange(NUMBERS), rng.randrange(len(PLACES)), rng.choice(list(Pace)), rng.random() < 0.2
            )
            for _ in range(count)
        )

    names = rng.sample(cell.operations, len(cell.operations))
    sure = [Step("merge", FIRST.items)] if cell.kind.is_bare else []
    return [FIRST, *sure, *(Step(name, items(6), rng.random() < 0.3, rng.random() < 0.5) for name in names)]


@pytest.mark.spark
@pytest.mark.parametrize("cell", others_long(SPARK_CELLS, SHORT), ids=str)
def test_spark_writes_what_the_model_says(cell: Cell, tmp_path: Path) -> None:
    import drawstring.spark
    from drawstring.spark.workers.rows import spark_schema

    spark = spark_session()

    def give(rows: pa.Table) -> DataFrame:
        listed = [tuple(row.values()) for row in rows.to_pylist()]
        return spark.createDataFrame(listed, spark_schema(rows.schema)).coalesce(1)

    path = str(tmp_path / "rides")
    cell.kind.create(path)
    witness = Witness(Both(cell.kind, drawstring.spark.table(spark, path), Model(cell.kind), give))
    for step in _history(cell):
        if witness.take(step):
            witness.check_snapshot()
    assert (witness.patched > 0) == (cell in BARE_SPARK_CELLS)
    last = len(witness.commits) - 1
    for number in range(last + 1):
        witness.check_travel(number)
    witness.check_incremental(-1, last)
    witness.check_changes(-1, last)
    read = drawstring.spark.read(spark, path, columns=["id", "value"]).collect()
    expected = [(row["id"], row["value"]) for row in witness.both.model.state.values()]
    assert sorted(map(tuple, read), key=str) == sorted(expected, key=str)
