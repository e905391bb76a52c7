"""One command ingests into several tables; what is wrong with one does not keep the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError
from drawstring.cli import app
from drawstring.ingestion.job import IngestResult
from drawstring.ingestion.tables import TableIngest, ingest_each, tables_in

Lake = Callable[..., list[str]]
TABLES = "hoodie.streamer.ingestion.tablesToBeIngested"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Put files of several tables in place; return the command that ingests them."""

    def make(**lines: str) -> list[str]:
        common = [f"{TABLES}={','.join(f'city.{name}' for name in lines)}"]
        for name, text in lines.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.json").write_text(text)
            own = tmp_path / f"{name}.properties"
            own.write_text(
                f"hoodie.streamer.source.dfs.root={tmp_path / name}\n"
                "hoodie.datasource.write.recordkey.field=id\n"
            )
            common.append(f"hoodie.streamer.ingestion.city.{name}.configFile={own}")
        (tmp_path / "common.properties").write_text("\n".join(common))
        props = str(tmp_path / "common.properties")
        return ["ingest", str(tmp_path / "lake"), "--source", "json", "--props", props]

    return make


def ids(root: Path) -> list[int]:
    return sorted(drawstring.open(root).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_each_table_goes_on_from_its_own_checkpoint(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = lake(rides='{"id": 1}\n{"id": 2}', drivers='{"id": 7}')
    assert app.run(command) == 0
    told = capsys.readouterr().out
    assert "city.rides: ingested 2 rows" in told and "city.drivers: ingested 1 row" in told
    assert (ids(tmp_path / "lake/city/rides"), ids(tmp_path / "lake/city/drivers")) == ([1, 2], [7])
    (tmp_path / "drivers/b.json").write_text('{"id": 8}')
    assert app.run(command) == 0
    told = capsys.readouterr().out
    assert "city.rides: nothing new" in told and "city.drivers: ingested 1 row" in told
    assert ids(tmp_path / "lake/city/drivers") == [7, 8]


def test_an_error_of_one_table_is_told_and_the_others_are_ingested(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = lake(rides='{"id": 1}', broken="nonsense", drivers='{"id": 7}')
    assert app.run([*command, "--json"]) == 2
    out, err = capsys.readouterr()
    assert "1 of 3 tables failed: city.broken." in err
    documents = [json.loads(each) for each in out.replace("}\n{", "}\0{").split("\0")]
    ends = {each["table"]: each for each in documents if "path" in each}
    assert ends["city.broken"]["error"]["kind"] == "InvalidError"
    assert ends["city.broken"]["result"] is None
    assert [ends[f"city.{each}"]["result"]["rows"] for each in ("rides", "drivers")] == [1, 1]
    assert [each["table"] for each in documents if "commit" in each] == ["city.rides", "city.drivers"]
    assert ids(tmp_path / "lake/city/drivers") == [7]
    (tmp_path / "broken/a.json").write_text('{"id": 3}')
    assert app.run(command) == 0
    assert ids(tmp_path / "lake/city/broken") == [3]


def test_options_of_a_table_win_over_common_ones_and_those_of_the_call_over_both(tmp_path: Path) -> None:
    (tmp_path / "default_rides_config.properties").write_text(
        "hoodie.table.name=own\nhoodie.streamer.csv.sep=;\nhoodie.streamer.ingestion.targetBasePath=/else/rides"
    )
    (tmp_path / "city_cabs_config.properties").write_text("")
    common = {TABLES: "rides,city.cabs", "hoodie.table.name": "common", "hoodie.streamer.csv.sep": "#"}
    rides, cabs = tables_in("/lake/", common, {"hoodie.streamer.csv.sep": "|"}, str(tmp_path))
    assert (rides.name, rides.uri) == ("default.rides", "/else/rides")
    assert rides.options == {"hoodie.table.name": "own", "hoodie.streamer.csv.sep": "|"}
    assert (cabs.name, cabs.uri) == ("city.cabs", "/lake/city/cabs")
    assert cabs.options["hoodie.table.name"] == "common"


def test_what_is_missing_is_told_before_anything_is_ingested(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"Set hoodie\.streamer\.ingestion\.default\.rides\.configFile"):
        tables_in("/lake", {TABLES: "rides"}, {}, None)
    with pytest.raises(InvalidError, match=r"There is no file .*default_rides_config"):
        tables_in("/lake", {TABLES: "rides"}, {}, str(tmp_path))
    (tmp_path / "default_rides_config.properties").write_text("")
    with pytest.raises(InvalidError, match="Several tables have the root /lake/default/rides"):
        tables_in("/lake", {TABLES: "rides,default.rides"}, {}, str(tmp_path))
    with pytest.raises(InvalidError, match="names several tables"):
        drawstring.ingest(tmp_path / "t", "json", options={TABLES: "rides"})


def test_tables_are_looked_at_again_and_again_if_that_is_wanted() -> None:
    tables = [TableIngest(name, name, {}) for name in ("a", "b")]

    def run(table: TableIngest) -> IngestResult:
        if table.name == "a":
            raise InvalidError("wrong")
        return IngestResult(1, 1, 0, "1", 0.0)

    outcomes = ingest_each(tables, run, SteppingClock(), 5.0)
    told = [next(outcomes) for _ in range(4)]
    assert [(each.table.name, each.error is not None) for each in told] == [("a", True), ("b", False)] * 2
