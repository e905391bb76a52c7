"""Files that arrive in a folder come into the table once, whatever their format."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError, OvertakenError
from drawstring.ingestion.job import IngestResult
from tests.support.tables import store_of

Arriving = Callable[..., Path]
HUDI_KEY, OLD_KEY = "streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key"
WHOLE = {"hoodie.streamer.csv.header": "true"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "arriving").mkdir()
    return tmp_path / "arriving"


@pytest.fixture
def arrive(folder: Path) -> Arriving:
    """Put a file with rows into the folder, as of a second."""

    def put(name: str, second: int, *ids: int, **more: Any) -> Path:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        rows = pa.table({"id": list(ids), "ts": [second] * len(ids), **more})
        write(path, rows)
        os.utime(path, (second, second))
        return path

    return put


def write(path: Path, rows: pa.Table) -> None:
    records = rows.to_pylist()
    match path.name.lstrip(".").partition(".")[2]:
        case "parquet":
            pq.write_table(rows, path)
        case "csv":
            lines = [",".join(rows.column_names), *(",".join(map(str, each.values())) for each in records)]
            path.write_text("\n".join(lines) + "\n")
        case "json":
            path.write_text("\n".join(map(json.dumps, records)))
        case "json.gz":
            path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
        case "avro":
            fields = [{"name": name, "type": ["null", "long"]} for name in rows.column_names]
            schema = {"type": "record", "name": "r", "fields": fields}
            with path.open("wb") as file:
                fastavro.writer(file, schema, records, codec="deflate")


def ingest(
    folder: Path, source: str = "parquet", options: Mapping[str, Any] = {}, **more: Any
) -> IngestResult:
    given = {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
        **WHOLE,
        **options,
    }
    return drawstring.ingest(folder.parent / "t", source, options=given, **{"operation": "insert", **more})


def table_of(folder: Path) -> drawstring.Table:
    return drawstring.open(folder.parent / "t")


def ids(folder: Path) -> list[int]:
    return sorted(table_of(folder).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def extras(folder: Path) -> list[Mapping[str, str]]:
    store = store_of(table_of(folder))
    return [store.commit_metadata(each).extra for each in store.load().writes()]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "json.gz", "avro"])
def test_files_of_a_format_come_into_the_table_once(folder: Path, arrive: Arriving, ending: str) -> None:
    source = ending.partition(".")[0]
    arrive(f"a.{ending}", 1, 1, 2)
    arrive(f"day/b.{ending}", 2, 3)
    assert ingest(folder, source).rows == 3
    assert not ingest(folder, source), "a second run finds nothing new"
    arrive(f"c.{ending}", 3, 4)
    result = ingest(folder, source)
    assert (result.rows, result.checkpoint) == (1, "3000")
    assert ids(folder) == [1, 2, 3, 4]
    assert table_of(folder).schema.field("ts").type == pa.int64()


@pytest.mark.parametrize(("version", "key"), [(6, OLD_KEY), (8, HUDI_KEY), (9, HUDI_KEY)])
def test_the_checkpoint_is_where_hoodie_streamer_keeps_it(
    folder: Path, arrive: Arriving, version: int, key: str
) -> None:
    arrive("a.parquet", 7, 1)
    ingest(folder, options={"hoodie.write.table.version": version})
    assert [each.get(key) for each in extras(folder)] == ["7000"]


@pytest.mark.parametrize("key", [OLD_KEY, HUDI_KEY])
def test_it_goes_on_where_hoodie_streamer_stopped(folder: Path, arrive: Arriving, key: str) -> None:
    arrive("a.parquet", 1, 1)
    arrive("b.parquet", 2, 2)
    table = drawstring.create(
        folder.parent / "t", pa.schema({"id": pa.int64(), "ts": pa.int64()}), record_key="id"
    )
    from drawstring.config.options.write_options import WriteOptions
    from drawstring.write.executor import write as write_rows

    context, rows = table._rows_of(pa.table({"id": [1], "ts": [1]}))
    write_rows(
        context,
        "insert",
        rows,
        WriteOptions.parse({"hoodie.datasource.write.operation": "insert"}),
        {key: "1000"},
    )
    assert ingest(folder, options={"hoodie.table.ordering.fields": ""}).rows == 1
    assert ids(folder) == [1, 2]


def test_batches_are_bounded_and_files_of_one_moment_stay_together(folder: Path, arrive: Arriving) -> None:
    for name, second in (("a", 1), ("b", 1), ("c", 2), ("d", 3)):
        arrive(f"{name}.parquet", second, ord(name))
    seen: list[tuple[int, str]] = []
    result = ingest(
        folder, source_limit=1, on_progress=lambda told: seen.append((told.commit.inserts, told.checkpoint))
    )
    assert seen == [(2, "1000"), (1, "2000"), (1, "3000")]
    assert result.batches == 3


def test_a_file_that_arrives_later_with_the_time_of_the_checkpoint_is_seen(
    folder: Path, arrive: Arriving
) -> None:
    arrive("a.parquet", 1, 1)
    ingest(folder)
    arrive("b.parquet", 1, 2)
    assert ingest(folder).rows == 1
    assert not ingest(folder)
    assert ids(folder) == [1, 2]


def test_hidden_empty_and_young_files_wait(folder: Path, arrive: Arriving) -> None:
    arrive("_tmp/a.parquet", 1, 1)
    arrive(".b.parquet", 1, 1)
    (folder / "c.parquet").touch()
    assert not ingest(folder)
    pq.write_table(pa.table({"id": [1], "ts": [1]}), folder / "young.parquet")
    patient = {"drawstring.ingest.files.min_age_ms": 3_600_000}
    assert not ingest(folder, options=patient)
    assert ingest(folder).rows == 1


def test_columns_come_and_go(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 1)
    arrive("b.parquet", 2, 2, fare=[1.5])
    ingest(folder)
    arrive("c.parquet", 3, 3, city=["oslo"])
    ingest(folder)
    arrive("d.parquet", 4, 4)
    ingest(folder)
    rows = table_of(folder).scan(columns=["id", "fare", "city"]).to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": 1, "fare": None, "city": None},
        {"id": 2, "fare": 1.5, "city": None},
        {"id": 3, "fare": None, "city": "oslo"},
        {"id": 4, "fare": None, "city": None},
    ]


def test_text_takes_the_types_of_the_table(folder: Path) -> None:
    (folder / "a.csv").write_text("id,zip,at\n1,0150,2024-05-01T10:00:00\n")
    schema = pa.schema({"id": pa.int64(), "zip": pa.string(), "at": pa.timestamp("us", "UTC")})
    drawstring.create(folder.parent / "t", schema, record_key="id")
    given = {"hoodie.table.ordering.fields": ""}
    ingest(folder, "csv", given)
    (folder / "a.csv").unlink()
    (folder / "a.json").write_text('{"id": 2, "zip": "0250", "at": "2024-05-01 11:00:00.5"}')
    ingest(folder, "json", given)
    rows = table_of(folder).scan(columns=["zip", "at"]).to_arrow().sort_by("zip")
    assert rows["zip"].to_pylist() == ["0150", "0250"]
    assert [each.isoformat() for each in rows["at"].to_pylist()] == [
        "2024-05-01T10:00:00+00:00",
        "2024-05-01T11:00:00.500000+00:00",
    ]


@pytest.mark.parametrize("numbers", [(1, 2.5, 3), (1.5, 2, 3)])
def test_numbers_of_a_new_table_have_fractions_where_one_file_has_them(
    folder: Path, numbers: tuple[float, ...]
) -> None:
    for at, number in enumerate(numbers):
        (folder / f"{at}.json").write_text(
            f'{{"id": {at}, "ts": 1, "n": {number}, "in": [{{"x": {number}}}]}}'
        )
    ingest(folder, "json")
    rows = table_of(folder).scan(columns=["n", "in"]).to_arrow().sort_by("n").to_pylist()
    assert [each["n"] for each in rows] == sorted(numbers)
    assert [each["in"][0]["x"] for each in rows] == sorted(numbers)


def test_json_text_that_looks_like_a_time_stays_text(folder: Path) -> None:
    (folder / "a.json").write_text('{"id": 1, "ts": 1, "at": "2024-05-01", "in": {"at": "2024-05-01"}}')
    ingest(folder, "json")
    schema = table_of(folder).schema
    assert schema.field("at").type == pa.string()
    assert schema.field("in").type.field("at").type == pa.string()


def test_csv_without_a_header_has_the_names_of_spark(folder: Path) -> None:
    (folder / "a.csv").write_text("1;x;\n2;;5\n")
    options = {
        "hoodie.streamer.csv.header": "false",
        "hoodie.streamer.csv.sep": ";",
        "hoodie.datasource.write.recordkey.field": "_c0",
        "hoodie.table.ordering.fields": "",
    }
    ingest(folder, "csv", options)
    rows = table_of(folder).scan(columns=["_c0", "_c1", "_c2"]).to_arrow().sort_by("_c0").to_pylist()
    assert rows == [{"_c0": 1, "_c1": "x", "_c2": None}, {"_c0": 2, "_c1": None, "_c2": 5}]


def test_a_schema_in_a_file_decides_columns_and_types(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s.avsc").write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"},'
        ' {"name": "ts", "type": "long"}, {"name": "fare", "type": ["null", "double"], "default": null}]}'
    )
    (folder / "a.json").write_text('{"id": "7", "ts": 1, "fare": 3, "more": true}')
    ingest(folder, "json", {"hoodie.streamer.schemaprovider.source.schema.file": str(tmp_path / "s.avsc")})
    table = table_of(folder)
    assert table.scan(columns=["id", "ts", "fare"]).to_arrow().to_pylist() == [
        {"id": "7", "ts": 1, "fare": 3.0}
    ]
    assert "more" not in table.schema.names


def test_lines_that_are_no_objects_are_an_error_or_left_out(folder: Path) -> None:
    (folder / "a.json").write_text('{"id": 1, "ts": 1}\nnonsense\n\n{"id": 2, "ts": 1}\n[3]\n')
    with pytest.raises(InvalidError, match=r"The record at a\.json:2 cannot be read"):
        ingest(folder, "json")
    result = ingest(folder, "json", {"hoodie.streamer.source.json.skip.invalid.records": "true"})
    assert (result.rows, result.rejected) == (2, 2)
    assert ids(folder) == [1, 2]


def test_a_damaged_file_is_named(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 1).write_bytes(b"PAR1 or so")
    with pytest.raises(InvalidError, match="of another format") as caught:
        ingest(folder)
    assert caught.value.path == "a.parquet"


def test_a_checkpoint_that_is_asked_for_counts_once(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 1)
    arrive("b.parquet", 2, 2)
    ingest(folder, operation="upsert")
    assert ingest(folder, checkpoint="1000", operation="upsert").rows == 1
    assert not ingest(folder, checkpoint="1000")
    assert ingest(folder, ignore_checkpoint="again", operation="upsert").rows == 2
    assert not ingest(folder, ignore_checkpoint="again")
    with pytest.raises(InvalidError, match="no modification time"):
        ingest(folder, checkpoint="topic,0:1")


def test_of_two_jobs_one_is_told(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 1)
    ingest(folder)
    arrive("b.parquet", 2, 2)
    arrive("c.parquet", 3, 3)

    def other(_: object) -> None:
        ingest(folder)

    with pytest.raises(OvertakenError):
        ingest(folder, source_limit=1, transformers=[lambda rows: other(rows) or rows])
    assert ids(folder) == [1, 2, 3]


def test_a_batch_of_which_nothing_is_left_is_not_read_again(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 1)
    ingest(folder)
    arrive("b.parquet", 2, 2)
    nothing = ["SELECT * FROM <SRC> WHERE id < 0"]
    assert ingest(folder, transformers=nothing).batches == 1
    assert not ingest(folder, transformers=nothing)
    assert [each.get(HUDI_KEY) for each in extras(folder)] == ["1000", "2000"]


def test_a_folder_that_is_not_there_is_an_error_and_an_empty_one_has_nothing(tmp_path: Path) -> None:
    options = {
        "hoodie.streamer.source.dfs.root": str(tmp_path / "arriving"),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    with pytest.raises(InvalidError, match=r"arriving, which hoodie\.streamer\.source\.dfs\.root names"):
        drawstring.ingest(tmp_path / "t", "json", options=options)
    (tmp_path / "arriving").mkdir()
    assert drawstring.ingest(tmp_path / "t", "json", options=options).batches == 0


@pytest.mark.parametrize(("more", "says"), [({}, "csv.header=true"), (WHOLE, "csv.sep")])
def test_csv_whose_key_is_not_found_names_the_options_of_its_form(
    folder: Path, tmp_path: Path, more: Mapping[str, str], says: str
) -> None:
    (folder / "a.csv").write_text("id;ts\n1;2\n")
    options = {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    with pytest.raises(InvalidError, match=f"names a column id .*{says}"):
        drawstring.ingest(tmp_path / "t", "csv", options={**options, **more})


def test_a_folder_of_files_that_has_the_table_in_it_is_refused(folder: Path, arrive: Arriving) -> None:
    arrive("a.parquet", 1, 7)
    options = {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.datasource.write.recordkey.field": "id",
    }
    for table in (folder, folder / "tables" / "t"):
        with pytest.raises(InvalidError, match="would read the files of the table"):
            drawstring.ingest(table, "parquet", options=options)
    assert not (folder / ".hoodie").exists() and not (folder / "tables").exists()
    options["hoodie.streamer.source.dfs.root"] = f"{folder}/../{folder.name}"
    assert drawstring.ingest(f"{folder}s", "parquet", options=options).rows == 1
