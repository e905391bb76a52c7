"""Batches of streams, each written once with the position behind it, whatever happens to the writer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, OvertakenError
from drawstring.engine.local import LocalEngine
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage
from tests.support.tables import store_of

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
POSITIONS = "_hudi_streaming_sink_checkpoint"
ONCE = {"hoodie.datasource.write.streaming.retry.count": 1}
FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [1] * len(ids)}, SCHEMA)


def source(position: str | None) -> Iterator[tuple[pa.Table, str]]:
    """Yield ten batches of two rows, from a position on."""
    for number in range(int(position or 0), 10):
        yield rows(2 * number, 2 * number + 1), str(number + 1)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return drawstring.create(tmp_path / "t", SCHEMA, record_key="id", version=request.param)


def test_a_source_is_written_once_though_its_writer_dies_at_every_step(tmp_path: Path) -> None:
    drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    for step in (1, 3, 5, 8, 11, 13, 21, 34, 40):
        dying = FaultyStorage(open_storage(str(tmp_path / "t")), step)
        table = Table(TableContext(dying, LocalEngine(1)))
        with pytest.raises(Exception):  # noqa: B017 - the storage is gone, whatever it says
            table.stream("s", operation="insert", options=ONCE).run(source)
    table = drawstring.open(tmp_path / "t")
    written = table.stream("s", operation="insert").run(source)
    assert ids(table) == list(range(20))
    assert written < 10, "no batch had been committed before"


def test_the_position_is_in_the_commit_as_hudi_has_it(table: Table) -> None:
    stream = table.stream("orders")
    assert stream.position is None
    stream.write(rows(1), "a")
    stream.write(rows(1, 2), "b")
    store = store_of(table)
    extras = [store.commit_metadata(each).extra[POSITIONS] for each in store.load().writes()]
    assert [json.loads(each) for each in extras] == [{"orders": "a"}, {"orders": "b"}]
    assert stream.position == table.stream("orders").position == "b"
    assert table.stream("returns").position is None


def test_a_batch_without_rows_writes_nothing(table: Table) -> None:
    stream = table.stream("s")
    assert not stream.write(rows(), "a")
    assert stream.position is None and not table.inspect.instants()
    assert stream.write(rows(1), "b")


def test_the_position_is_found_in_the_archive(table: Table) -> None:
    table.stream("s").write(rows(1), "a")
    table.stream("s").write(rows(2), "b")
    for number in range(10, 20):
        table.upsert(rows(number), options=FEW)
    store = store_of(table)
    assert not any(POSITIONS in store.commit_metadata(each).extra for each in store.load().writes())
    assert table.stream("s").position == "b"


def test_a_restore_takes_the_position_back(table: Table) -> None:
    stream = table.stream("s", operation="insert")
    first = stream.write(rows(1), "a")
    assert first.instant is not None
    table.savepoints.create(first.instant)
    stream.write(rows(2), "b")
    table.savepoints.restore(first.instant)
    again = table.stream("s", operation="insert")
    assert again.position == "a"
    with pytest.raises(OvertakenError):
        stream.write(rows(3), "c")
    again.write(rows(2), "b")
    assert ids(table) == [1, 2]


def test_of_two_writers_of_a_stream_one_is_told(table: Table) -> None:
    one, other = (table.stream("s", operation="insert") for _ in range(2))
    one.write(rows(1), "a")
    assert not other.write(rows(1), "a"), "the same batch"
    one.write(rows(2), "b")
    with pytest.raises(OvertakenError, match="Another process writes the stream"):
        other.write(rows(3), "c")
    assert ids(table) == [1, 2]
    assert isinstance(OvertakenError("x"), ConflictError)


@pytest.mark.parametrize(
    "operation", ["insert", "append"]
)  # reads the rows before and while it holds an instant
def test_a_writer_that_stood_still_does_not_double_the_batch(table: Table, operation: str) -> None:
    slow, quick = (table.stream("s", operation=operation) for _ in range(2))

    def meanwhile() -> Iterator[pa.RecordBatch]:
        yield from rows(1).to_batches()
        quick.write(rows(1), "a")

    assert not slow.write(pa.RecordBatchReader.from_batches(SCHEMA, meanwhile()), "a")
    assert ids(table) == [1]
    assert slow.position == "a"


def test_positions_of_hudi_count(table: Table) -> None:
    extra = {POSITIONS: '{"default_single_writer":"17"}'}
    table._write_rows("upsert", LocalEngine().rows(SCHEMA, rows(1).to_batches()), {}, extra)
    assert table.stream("default_single_writer").position == "17"


def test_what_is_refused(table: Table) -> None:
    with pytest.raises(InvalidError, match="cannot bootstrap"):
        table.stream("s", operation="bootstrap")
    stream = table.stream("s")
    stream.write(rows(1), "a")
    for position in ("", "a"):
        with pytest.raises(InvalidError, match="must differ"):
            stream.write(rows(2), position)
    damaged: dict[str, Any] = {POSITIONS: "17"}
    table._write_rows("upsert", LocalEngine().rows(SCHEMA, rows(1).to_batches()), {}, damaged)
    with pytest.raises(CorruptTableError, match="positions of streams"):
        table.stream("s")


def test_what_a_source_yields_has_a_position(table: Table) -> None:
    stream = table.stream("s")
    for source in (lambda position: [rows(1)], lambda position: [(rows(1), "a", 1)], lambda position: [7]):
        with pytest.raises(InvalidError, match="Yield pairs of rows and the position"):
            stream.run(source)
    unfit: Any = [(rows(1), "a")]
    with pytest.raises(InvalidError, match="Give a function"):
        stream.run(unfit)
    assert stream.position is None and not table.timeline.writes()
    assert stream.run(lambda position: [[rows(1), "a"]]) == 1
