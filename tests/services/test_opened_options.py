"""Options with which a table is opened: defaults of all its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.model.instant import Action

RIDES = pa.table({"id": ["a"], "city": ["rome"], "ts": [0]})


def opened(
    path: Path, options: dict[str, Any] | None = None, table_type: str = "COPY_ON_WRITE"
) -> drawstring.Table:
    if not path.exists():
        drawstring.create(
            path, RIDES.schema, record_key="id", partition_by="city", ordering="ts", table_type=table_type
        )
    return drawstring.open(path, options=options)


def upserts(table: drawstring.Table, count: int = 6, **options: Any) -> None:
    for number in range(count):
        rows = RIDES.set_column(2, "ts", [[number]])
        table.upsert(rows, options=options or None)


def base_files(path: Path) -> list[Path]:
    return sorted(each for each in (path / "rome").iterdir() if each.suffix == ".parquet")


def test_a_table_opened_without_cleaning_keeps_all_files(tmp_path: Path) -> None:
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }
    table = opened(tmp_path / "kept", few | {"hoodie.clean.automatic": False})
    upserts(table)
    assert len(base_files(tmp_path / "kept")) == 6
    upserts(table, 1, **{"hoodie.cleaner.commits.retained": 3, "hoodie.clean.automatic": "true"})
    assert len(base_files(tmp_path / "kept")) == 3, "options of the call win, under whatever key"
    assert table.services.clean().files == 2
    upserts(opened(tmp_path / "cleaned", few))
    assert len(base_files(tmp_path / "cleaned")) == 2
    archived = opened(tmp_path / "cleaned").timeline
    assert len(archived.writes()) <= 4


def test_codec_index_and_compaction_of_an_opened_table_hold_for_its_writes(tmp_path: Path) -> None:
    options = {
        "hoodie.parquet.compression.codec": "gzip",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": 2,
    }
    table = opened(tmp_path / "t", options, "MERGE_ON_READ")
    upserts(table, 4)
    assert table.timeline.completed_of(Action.COMMIT), "it was compacted"
    footers = [pq.ParquetFile(file).metadata for file in base_files(tmp_path / "t")]
    columns = range(footers[0].num_columns)
    codecs = {each.row_group(0).column(n).compression for each in footers for n in columns}
    assert "GZIP" in codecs and "ZSTD" not in codecs
    assert table.update("id = 'a'", {"ts": "7"}).updates == 1
    assert table.delete(where="id = 'a'").deletes == 1


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"hoodie.parquet.compression.codec": "lzma"}, InvalidError, "Choose one of"),
        ({"hoodie.clean.automatic": "maybe"}, InvalidError, "true or false"),
        ({"hoodie.clean.automatc": "false"}, InvalidError, "Did you mean 'hoodie.clean.automatic'"),
        ({"hoodie.datasource.write.operation": "insert"}, InvalidError, "belongs to single calls"),
        ({"hoodie.datasource.write.recordkey.field": "city"}, InvalidError, "the table has"),
        ({"hoodie.rollback.instant.backup.enabled": "true"}, UnsupportedError, "backup"),
        ({"as.of.instant": "2026-01-01"}, InvalidError, "Give it to the query"),
        ({"hoodie.anything.else": "1", "drawstring.options.unknown": "error"}, InvalidError, "no option"),
    ],
)
def test_what_no_call_would_take_is_refused_when_the_table_is_opened(
    tmp_path: Path, options: dict[str, str], kind: type[Exception], text: str
) -> None:
    opened(tmp_path / "t")
    with pytest.raises(kind, match=text):
        drawstring.open(tmp_path / "t", options=options)
