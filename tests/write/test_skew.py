"""A hot file group: most of a batch goes to it, and memory holds a part of it only."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from drawstring.filegroups.write.changes import Changes
from drawstring.testing import with_limits
from drawstring.write import placement
from drawstring.write.placement import in_pieces
from tests.support.limits import SetLimits
from tests.support.rows import WIDE, scanned, wide
from tests.support.tables import MOR, create, logs, table_types

ONE_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
PIECE_BYTES = 100_000


@pytest.fixture
def most_rows(monkeypatch: pytest.MonkeyPatch, limit: SetLimits) -> list[int]:
    """Bound the memory, and note how many rows are looked at together."""
    seen: list[int] = []

    def noting(function: Any) -> Any:
        def noted(rows: pa.Table, *others: Any) -> Changes:
            seen.append(rows.num_rows)
            changes: Changes = function(rows, *others)
            return changes

        return noted

    limit(piece_bytes_max=PIECE_BYTES)
    monkeypatch.setattr(placement, "acted", noting(placement.acted))
    monkeypatch.setattr(placement, "deletes", noting(placement.deletes))
    return seen


def stream(*tables: pa.Table) -> pa.RecordBatchReader:
    batches = [batch for table in tables for batch in table.to_batches(max_chunksize=500)]
    return pa.RecordBatchReader.from_batches(WIDE, batches)


@table_types
def test_a_hot_bucket_is_written_in_pieces(table_type: str, most_rows: list[int]) -> None:
    table = create(WIDE, table_type=table_type, properties=ONE_BUCKET)
    table.upsert(stream(wide(0, 5000, ts=2), wide(0, 5000, ts=1), wide(9000, 200, "oslo")))
    expected = {f"k{number:06}": 2 for number in range(5000)} | {f"k{n:06}": 1 for n in range(9000, 9200)}
    assert scanned(table, ["id", "ts"]) == sorted(expected.items())
    table.upsert(stream(wide(0, 5000, ts=3), wide(4000, 1500, ts=1), wide(0, 100, ts=4)))
    expected |= {f"k{number:06}": 3 for number in range(100, 5000)} | {f"k{n:06}": 4 for n in range(100)}
    expected |= {f"k{number:06}": 1 for number in range(5000, 5500)}
    assert scanned(table, ["id", "ts"]) == sorted(expected.items())
    table.delete(stream(wide(1000, 4500)))
    expected = {key: ts for key, ts in expected.items() if not "k001000" <= key < "k005500"}
    assert scanned(table, ["id", "ts"]) == sorted(expected.items())
    assert max(most_rows) < 1500
    assert len({each.file_id for each in table.inspect.files() if each.partition == "rome"}) == 1


def test_a_log_file_of_many_pieces_has_a_block_each(most_rows: list[int]) -> None:
    table = create(WIDE, table_type=MOR, properties=ONE_BUCKET)
    table.upsert(wide(0, 10))
    result = table.upsert(stream(wide(0, 5000, ts=2)))
    assert (result.files, result.updates) == (1, 5000)
    assert logs(table) == 1
    assert scanned(table, ["id", "ts"]) == [(f"k{number:06}", 2) for number in range(5000)]
    assert table.services.compact()
    assert scanned(table, ["id", "ts"]) == [(f"k{number:06}", 2) for number in range(5000)]
    assert max(most_rows) < 1500


def test_many_versions_of_few_records_are_combined(most_rows: list[int]) -> None:
    table = create(WIDE)
    table.upsert(wide(0, 50))
    table.upsert(stream(*(wide(0, 50, ts=number) for number in range(2, 102))))
    assert scanned(table, ["id", "ts"]) == [(f"k{number:06}", 101) for number in range(50)]
    assert max(most_rows) <= 500


def test_pieces_have_all_rows_of_a_key_in_their_order() -> None:
    batches = pa.table(
        {
            "_hoodie_record_key": [f"k{number % 700}" for number in range(7000)],
            "number": list(range(7000)),
        }
    ).to_batches(max_chunksize=300)
    with with_limits(piece_bytes_max=10_000):
        pieces = [piece.to_pydict() for piece in in_pieces(iter(batches))]
    assert len(pieces) > 20
    homes = {key: number for number, piece in enumerate(pieces) for key in piece["_hoodie_record_key"]}
    assert sum(len(set(piece["_hoodie_record_key"])) for piece in pieces) == len(homes) == 700
    assert all(piece["number"] == sorted(piece["number"]) for piece in pieces)
    assert len(list(in_pieces(iter(batches)))) == 1
