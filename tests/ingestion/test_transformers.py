"""Rows are changed on their way into the table, by SQL, by Python and by chains of both."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.transformers import shouted

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "city": ["oslo", "rome", None],
        "at": [{"x": 1.0, "in": {"y": 2}}, {"x": 3.0, "in": {"y": 4}}, None],
    }
)
CLASS = "hoodie.streamer.transformer.class"
SQL = "hoodie.streamer.transformer.sql"
PACKAGE = "org.apache.hudi.utilities.transform."


def ingested(
    folder: Path, options: Mapping[str, Any] = {}, transformers: Any = (), rows: pa.Table = ROWS
) -> list[dict[str, Any]]:
    (folder / "in").mkdir()
    pq.write_table(rows, folder / "in/a.parquet")
    given = {
        "hoodie.streamer.source.dfs.root": str(folder / "in"),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    drawstring.ingest(folder / "t", "parquet", options=given | dict(options), transformers=transformers)
    table = drawstring.open(folder / "t")
    names = [name for name in table.schema.names if not name.startswith("_hoodie")]
    found: list[dict[str, Any]] = table.scan(columns=names).to_arrow().sort_by("id").to_pylist()
    return found


def test_a_query_in_sparks_dialect_makes_the_rows(tmp_path: Path) -> None:
    query = "SELECT id, nvl(city, 'none') AS city, CAST(id AS STRING) AS text FROM <SRC> WHERE id > 1"
    assert ingested(tmp_path, {SQL: query}) == [
        {"id": 2, "city": "rome", "text": "2"},
        {"id": 3, "city": "none", "text": "3"},
    ]


def test_a_chain_runs_in_the_order_in_which_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT id, city FROM <SRC> WHERE city = 'OSLO'")
    options = {
        CLASS: f"first:{PACKAGE}SqlQueryBasedTransformer,tests.support.transformers:shouted,"
        "last:SqlFileBasedTransformer",
        f"{SQL}.first": "SELECT id, city FROM <SRC>",
        f"{SQL}.file.last": str(tmp_path / "q.sql"),
    }
    assert ingested(tmp_path, options) == [{"id": 1, "city": "OSLO"}]


def test_functions_and_queries_are_given_in_python(tmp_path: Path) -> None:
    steps = [shouted, "SELECT id, city || '!' AS city FROM <SRC>"]
    assert [each["city"] for each in ingested(tmp_path, transformers=steps)] == ["OSLO!", "ROME!", None]


def test_structs_are_flattened_as_hudi_does(tmp_path: Path) -> None:
    rows = ingested(tmp_path, {CLASS: f"{PACKAGE}FlatteningTransformer"})
    assert rows[0] == {"id": 1, "city": "oslo", "at_x": 1.0, "at_in_y": 2}
    assert rows[2] == {"id": 3, "city": None, "at_x": None, "at_in_y": None}


def test_the_result_gets_the_columns_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "s.avsc").write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"},'
        ' {"name": "city", "type": ["null", "string"]}, {"name": "n", "type": ["null", "double"]}]}'
    )
    options = {
        SQL: "SELECT *, 1 AS n FROM <SRC>",
        "hoodie.streamer.schemaprovider.target.schema.file": str(tmp_path / "s.avsc"),
    }
    assert ingested(tmp_path, options)[0] == {"id": 1, "city": "oslo", "n": 1.0}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({CLASS: "SqlQueryBasedTransformer"}, "has no query. Set hoodie.streamer.transformer.sql"),
        ({SQL: "SELECT nothing FROM <SRC>"}, "failed: Binder Error"),
        ({SQL: "SELECT ("}, "failed: "),
        ({SQL: "SELECT 1 AS id; SELECT 2 AS id"}, "is one query, not 2"),
        ({CLASS: "com.acme.Mine"}, "There is no transformer|cannot be imported"),
        ({CLASS: "no.such:thing"}, "cannot be imported"),
        ({CLASS: "json:nothing"}, "There is no transformer 'json:nothing'"),
    ],
)
def test_a_transformer_that_cannot_work_is_told(
    tmp_path: Path, options: Mapping[str, str], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        ingested(tmp_path, options)
    assert not (tmp_path / "t").exists()


def test_an_error_in_sql_has_no_terminal_codes(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        ingested(tmp_path, {}, transformers=["SELECT FROM WHERE ("])
    assert "\x1b" not in str(caught.value)


def dividing(rows: pa.RecordBatchReader) -> pa.Table:
    table = rows.read_all()
    return table.append_column("share", pa.array([1 // len(table.column("city")[0].as_py()[4:])]))


def number(rows: pa.RecordBatchReader) -> int:
    return 5


def late(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows
        raise KeyError("gone")

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (
            [dividing],
            r"dividing failed with ZeroDivisionError: .*transformers\.py, line \d+, in dividing: ",
        ),
        ([late], r"late failed with KeyError: 'gone' \(.*in batches: raise KeyError"),
        ([late, shouted], "late failed with KeyError: 'gone'"),
        ([lambda rows: None], "returned None. Return the changed rows"),
        ([number], "result of the transformer number cannot be taken. Rows cannot be read from int. Give"),
        (["tests.support.transformers:broken"], r"transformers:broken failed with ValueError: no \("),
        (["tests.support.broken_transformers:any"], "cannot be imported .RuntimeError: not today"),
    ],
)
def test_an_error_of_a_users_function_names_it_its_lines_and_the_batch(
    tmp_path: Path, steps: Any, says: str
) -> None:
    with pytest.raises(InvalidError, match=says) as caught:
        ingested(tmp_path, transformers=steps)
    if "imported" not in says:
        assert re.search("in the batch at the beginning, up to [0-9]+", str(caught.value)) or "None" in says
        assert caught.value.table == str(tmp_path / "t")
    assert not (tmp_path / "t").exists() or not drawstring.open(tmp_path / "t").timeline.writes()


def test_the_next_batch_is_named_by_its_checkpoint_and_read_again(tmp_path: Path) -> None:
    ingested(tmp_path)
    pq.write_table(ROWS, tmp_path / "in/b.parquet")
    os.utime(tmp_path / "in/b.parquet", (2_000_000_000, 2_000_000_000))
    options = {
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    with pytest.raises(InvalidError, match=r"in the batch behind checkpoint \d+, up to 2000000000000"):
        drawstring.ingest(tmp_path / "t", "parquet", options=options, transformers=[dividing])
    assert drawstring.ingest(tmp_path / "t", "parquet", options=options).rows == 3


def test_errors_of_the_source_are_not_those_of_a_function_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1, "city": "oslo"}\n{"id": ')
    options = {
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    with pytest.raises(InvalidError, match=r"a\.json:2 cannot be read"):
        drawstring.ingest(tmp_path / "t", "json", options=options, transformers=[shouted])
