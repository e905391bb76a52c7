"""Records that cannot be taken are in the error table once, and the others in the table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.cli import app
from drawstring.ingestion.job import IngestResult
from tests.support.kafka import Broker


def arrive(tmp_path: Path, name: str, second: int, lines: Iterable[str]) -> Path:
    path = tmp_path / "in" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    os.utime(path, (second, second))
    return path


def options_of(tmp_path: Path) -> dict[str, str]:
    return {
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.errortable.enable": "true",
        "hoodie.errortable.base.path": str(tmp_path / "bad"),
        "hoodie.errortable.target.table.name": "bad_rides",
    }


def ingest(
    tmp_path: Path, more: Mapping[str, str] = {}, source: str = "json", **keywords: Any
) -> IngestResult:
    options = {**options_of(tmp_path), **more}
    return drawstring.ingest(tmp_path / "t", source, options=options, **keywords)


def ids(tmp_path: Path) -> list[int]:
    return sorted(drawstring.open(tmp_path / "t").scan(columns=["id"]).to_arrow()["id"].to_pylist())


def bad(tmp_path: Path) -> list[dict[str, str]]:
    return drawstring.open(tmp_path / "bad").scan().to_arrow().sort_by("source_position").to_pylist()


def texts(tmp_path: Path) -> list[str]:
    return sorted(each["data_record"] for each in bad(tmp_path))


def test_lines_that_are_no_objects_are_in_the_error_table(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}', "nonsense", '{"id": 2}', '{"id": '])
    result = ingest(tmp_path)
    assert (result.rows, result.rejected, result.checkpoint) == (2, 2, "1000")
    assert ids(tmp_path) == [1, 2]
    first, second = bad(tmp_path)
    assert (first["data_record"], second["data_record"]) == ("nonsense", '{"id": ')
    assert (first["source"], first["source_table_base_path"]) == ("json", str(tmp_path / "t"))
    assert first["source_position"].endswith("a.json:2")
    assert first["error"] == "JSON parse error: Invalid value."
    assert drawstring.open(tmp_path / "bad").config.name == "bad_rides"


def test_values_that_do_not_fit_the_table_are_in_the_error_table(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1, "fare": 2.5, "at": {"x": 1}}'])
    ingest(tmp_path)
    wrong = ['{"id": 2, "fare": "dear"}', '{"id": "x", "fare": 1}', '{"id": 4, "at": {"x": "far"}}']
    arrive(tmp_path, "b.json", 2, [*wrong, '{"id": 5, "fare": 3}', '{"id": 6, "new": "column"}'])
    assert ingest(tmp_path).rejected == 3
    assert ids(tmp_path) == [1, 5, 6]
    assert texts(tmp_path) == sorted(wrong)
    newest = drawstring.open(tmp_path / "t").timeline.writes()[0]
    assert {each["base_table_commited_instant_time"] for each in bad(tmp_path)} == {newest.requested}


def test_rows_without_a_key_are_in_the_error_table(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = pa.table({"id": ["a", None, "", None], "fare": [1.0, 2.0, 3.0, 2.0]})
    pq.write_table(rows, tmp_path / "in/a.parquet")
    result = ingest(tmp_path, source="parquet")
    assert (result.rows, result.rejected) == (4, 3)
    assert drawstring.open(tmp_path / "t").scan("id").to_arrow()["id"].to_pylist() == ["a"]
    null, empty = {"id": None, "fare": 2.0}, {"id": "", "fare": 3.0}
    assert texts(tmp_path) == sorted(map(json.dumps, [null, null, empty])), "equal records count each"
    more = {"hoodie.errortable.validate.recordcreation.enable": "false"}
    with pytest.raises(InvalidError, match="record key column id is null"):
        ingest(tmp_path, more, "parquet", ignore_checkpoint="again")


def test_records_that_are_read_again_are_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}'])
    ingest(tmp_path)
    arrive(tmp_path, "b.json", 2, ['{"id": 2}', "nonsense", '{"id": null}', '{"id": null}'])
    refuse = {
        "hoodie.precommit.validators": (
            "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
        ),
        "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#0",
    }
    with pytest.raises(InvalidError, match="Validator fails"):
        ingest(tmp_path, refuse)
    assert len(bad(tmp_path)) == 3, "bad records are written before the commit"
    assert ids(tmp_path) == [1]
    arrive(tmp_path, "c.json", 3, ["more nonsense"])
    assert ingest(tmp_path).rejected == 4
    assert ids(tmp_path) == [1, 2]
    assert len(bad(tmp_path)) == 4


def test_a_batch_of_bad_records_only_is_passed_over(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ["nonsense"])
    first = ingest(tmp_path)
    assert (first.batches, first.rejected) == (0, 1)
    assert not (tmp_path / "t").exists()
    arrive(tmp_path, "b.json", 2, ['{"id": 1}'])
    assert ingest(tmp_path).rows == 1
    arrive(tmp_path, "c.json", 3, ["rubbish"])
    last = ingest(tmp_path, transformers=["SELECT id FROM <SRC>"])
    assert (last.batches, last.rejected, last.checkpoint) == (1, 1, "3000")
    assert (texts(tmp_path), ids(tmp_path)) == (["nonsense", "rubbish"], [1])


def test_an_error_table_that_cannot_be_written_fails_the_batch_unless_told_otherwise(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}', "nonsense"])
    wrong = {"hoodie.errortable.writeconfig.hoodie.cleaner.policy": "NEVER_HEARD_OF"}
    with pytest.raises(DrawstringError, match="NEVER_HEARD_OF"):
        ingest(tmp_path, wrong)
    result = ingest(tmp_path, {**wrong, "hoodie.errortable.write.failure.strategy": "LOG_ERROR"})
    assert (result.rows, result.rejected, ids(tmp_path)) == (1, 1, [1])
    with pytest.raises(InvalidError, match=r"Set hoodie\.errortable\.base\.path"):
        ingest(tmp_path, {"hoodie.errortable.base.path": ""})


def test_the_command_counts_bad_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}', "nonsense"])
    given = [f"--option={key}={value}" for key, value in options_of(tmp_path).items()]
    assert app.run(["ingest", str(tmp_path / "t"), "--source", "json", "--json", *given]) == 0
    batch, end = capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")
    assert (json.loads(batch)["rejected"], json.loads(end)["rejected"]) == (1, 1)


def test_bad_records_of_a_topic_are_in_the_error_table(broker: Broker, tmp_path: Path) -> None:
    broker.create("bad.rides", 1)
    broker.send("bad.rides", [b'{"id": 1, "ts": 1}', b"\xff\xfe", b'{"ts": 2}', b'{"id": 2, "ts": 2}'])
    options = {
        **options_of(tmp_path),
        "bootstrap.servers": broker.address,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": "bad.rides",
    }
    result = drawstring.ingest(tmp_path / "t", "kafka-json", options=options)
    assert (result.rejected, result.checkpoint, ids(tmp_path)) == (2, "bad.rides,0:4", [1, 2])
    places = {each["source_position"]: each["data_record"] for each in bad(tmp_path)}
    assert places["bad.rides:0:1"] == r"\xff\xfe"
    assert len(places) == 2
    broker.send("bad.rides", [b'{"id": 3, "ts": "late"}', b'{"id": 4, "ts": 4}'])
    assert drawstring.ingest(tmp_path / "t", "kafka-json", options=options).rejected == 1
    assert (len(bad(tmp_path)), ids(tmp_path)) == (3, [1, 2, 4])


@pytest.mark.parametrize("path", ["t", "t/bad", ".", "other/../t/", "link/bad"])
def test_an_error_table_in_the_table_or_above_it_is_refused_before_anything_is_written(
    tmp_path: Path, path: str
) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}', "nonsense"])
    (tmp_path / "link").symlink_to(tmp_path / "t")
    with pytest.raises(InvalidError, match=r"Set hoodie\.errortable\.base\.path to a folder of its own"):
        ingest(tmp_path, {"hoodie.errortable.base.path": f"{tmp_path}/{path}"})
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "link"]


def test_values_that_contradict_each_other_before_there_is_a_table_ask_for_one(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1, "ts": 1}', '{"id": 2, "ts": "late"}'])
    says = r"'ts' has values of int64 and of string in the source.* create the table first"
    with pytest.raises(InvalidError, match=says):
        ingest(tmp_path)


def test_files_of_another_kind_than_the_source_ask_for_another_source(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}'])
    with pytest.raises(InvalidError, match=r"use the source \(--source\) of its format"):
        ingest(tmp_path, source="parquet")


def test_the_same_line_of_the_same_file_in_another_folder_is_another_record(tmp_path: Path) -> None:
    for folder in ("one", "two", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / "a.json"
        path.write_text('nonsense\n{"id": 1}')
        os.utime(path, (1, 1))
        ingest(
            tmp_path,
            {"hoodie.streamer.source.dfs.root": f"{tmp_path}/{folder}/"},
            ignore_checkpoint=f"{folder} {len(list(tmp_path.iterdir()))}",
        )
    assert texts(tmp_path) == ["nonsense", "nonsense"]


def test_without_an_error_table_the_error_about_a_missing_key_names_it(tmp_path: Path) -> None:
    arrive(tmp_path, "a.json", 1, ['{"id": 1}', '{"city": "oslo"}'])
    with pytest.raises(InvalidError, match=r"id is null or empty.*hoodie\.errortable\.enable=true"):
        ingest(tmp_path, {"hoodie.errortable.enable": "false"})
