"""Batches of ORC and Lance files: no more rows of them are decoded at once than fit into a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter
from pyarrow import orc

from drawstring.formats.data_file import Selection, base_footer, open_sink, read_base
from drawstring.formats.file_format import FileSpec
from drawstring.schema.avro import arrow_to_avro
from drawstring.storage import open_storage
from drawstring.testing import with_limits

BATCH_BYTES = 1 << 20
ROWS = 30_000


def rows(text: str = "x" * 1_000) -> pa.Table:
    """Return rows that take 30 MB in memory, and next to nothing in a file."""
    return pa.table({"number": range(ROWS), "text": pa.array([text] * ROWS), "half": [0.5] * ROWS})


def write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".orc":
        orc.write_table(table, path, compression="zstd")
        assert orc.ORCFile(path).nstripes == 1
        return
    with LanceFileWriter(str(path), table.schema, version="2.0") as writer:
        writer.write_batch(table)


def batches_of(path: Path, *columns: str) -> list[pa.RecordBatch]:
    with with_limits(batch_bytes=BATCH_BYTES):
        return list(read_base(open_storage(path.parent), path.name, Selection(columns)))


@pytest.mark.parametrize("ending", ["orc", "lance"])
def test_wide_rows_come_in_small_batches(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    write(path, rows())
    found = batches_of(path, "text", "number")
    assert pa.Table.from_batches(found).equals(rows().select(["text", "number"]))
    assert max(batch.nbytes for batch in found) <= BATCH_BYTES / 2
    narrow = batches_of(path, "number")
    assert pa.Table.from_batches(narrow).equals(rows().select(["number"]))
    assert len(narrow) < len(found) / 4
    assert sum(batch.num_rows for batch in batches_of(path)) == ROWS


def test_a_stripe_with_all_rows_is_not_decoded_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    write(path, rows())

    def most_bytes() -> int:
        before, most = pa.total_allocated_bytes(), 0
        for batch in read_base(open_storage(tmp_path), "a.orc", Selection(["text", "number"])):
            most = max(most, pa.total_allocated_bytes() - before)
            assert batch.num_rows
        return most

    with with_limits(batch_bytes=BATCH_BYTES):
        # The least of three: threads that other tests left may allocate meanwhile.
        assert 0 < min(most_bytes() for _ in range(3)) <= 3 * BATCH_BYTES


@pytest.mark.parametrize("ending", ["orc", "lance"])
def test_the_footer_tells_how_much_memory_the_rows_take(ending: str, tmp_path: Path) -> None:
    storage, schema = open_storage(tmp_path), rows().schema
    form = FileSpec(schema, arrow_to_avro(schema, "row", "hoodie"), "zstd", 0.0)
    sink = open_sink(storage, f"a.{ending}", form)
    for batch in rows().to_batches():
        sink.write(batch)
    assert sink.close() < rows().nbytes / 50
    footer = base_footer(storage, f"a.{ending}")
    assert (footer.rows, footer.columns) == (ROWS, 3)
    assert rows().nbytes <= footer.decoded_bytes() <= 2 * rows().nbytes
