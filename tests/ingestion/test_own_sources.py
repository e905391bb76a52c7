"""Sources of a user's own, whose provider is an entry point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.cli import app
from tests.support.distributions import installed

OWN_SOURCES = """
import pyarrow as pa
from drawstring import InvalidError, UnavailableError
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.source_protocol import SourceBatch


class Numbers:
    unit = "numbers"

    def __init__(self, stop):
        self.stop = stop

    def after(self, checkpoint, limit):
        start = 0 if checkpoint is None else int(checkpoint.key)
        if start == self.stop:
            return None
        rows = pa.table({"id": range(start, self.stop)})
        return SourceBatch(Checkpoint(str(self.stop)), len(rows), 0, lambda _: rows.to_reader())

    def committed(self, checkpoint):
        pass

    def close(self):
        pass


class NumbersProvider:
    def check(self, context):
        if "numbers.stop" not in context.given:
            raise InvalidError("Set numbers.stop.")

    def make(self, context):
        return Numbers(int(context.given["numbers.stop"]))


class Empty(NumbersProvider):
    def make(self, context):
        return "nothing"


class Down(NumbersProvider):
    def make(self, context):
        raise UnavailableError("The numbers are down.")


class NoMake:
    def check(self, context):
        pass
"""
ENTRIES = {
    "numbers": "NumbersProvider",
    "org.example.Numbers": "NumbersProvider",
    "parquet": "NumbersProvider",
    "kafka-json": "NumbersProvider",
    "empty": "Empty",
    "down": "Down",
    "no-make": "NoMake",
    "no-class": "NoClass",
}
OPTIONS = {"hoodie.datasource.write.recordkey.field": "id"}


@pytest.fixture(autouse=True)
def own_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with installed(tmp_path / "site", monkeypatch, "mysources", OWN_SOURCES, "drawstring.sources", ENTRIES):
        yield


def test_a_source_of_a_user_s_own_is_an_entry_point(tmp_path: Path) -> None:
    first = drawstring.ingest(tmp_path / "t", "numbers", options={**OPTIONS, "numbers.stop": 3})
    assert (first.rows, first.checkpoint) == (3, "3")
    more = drawstring.ingest(tmp_path / "t", "org.example.Numbers", options={**OPTIONS, "numbers.stop": 5})
    assert more.rows == 2
    assert sorted(drawstring.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_the_command_takes_a_source_of_a_user_s_own(tmp_path: Path) -> None:
    command = ["ingest", str(tmp_path / "t"), "--source", "numbers", "--option", "numbers.stop=3"]
    assert app.run([*command, "--option", "hoodie.datasource.write.recordkey.field=id"]) == 0
    assert drawstring.open(tmp_path / "t").scan().to_arrow().num_rows == 3


def test_an_own_source_checks_its_options_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"^Set numbers\.stop"):
        drawstring.ingest(tmp_path / "t", "numbers", options=OPTIONS)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("name", "says"), [("parquet", "no folder"), ("kafka-json", "no topic"), ("JsonKafkaSource", "no topic")]
)
def test_sources_of_drawstring_come_before_others_with_their_names(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        drawstring.ingest(tmp_path / "t", name, options=OPTIONS)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("empty", "Empty", "made 'nothing', which lacks the methods of a source"),
        ("no-make", "NoMake", r"failed in make \(AttributeError: .*make"),
        ("no-class", "NoClass", r"cannot be imported \(AttributeError: .*NoClass"),
        ("numbers", "NumbersProvider", r"failed in make \(ValueError: .*'three'"),
    ],
)
def test_a_fault_of_an_own_source_is_reported_under_its_name(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    named = f"source '{name}', which is mysources:{value}, {says}.*choose another source"
    with pytest.raises(InvalidError, match=named):
        drawstring.ingest(tmp_path / "t", name, options={**OPTIONS, "numbers.stop": "three"})


def test_an_error_of_drawstring_in_an_own_source_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"^The numbers are down"):
        drawstring.ingest(tmp_path / "t", "down", options={**OPTIONS, "numbers.stop": 3})


def test_an_unknown_source_is_answered_with_all_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no source 'number'") as caught:
        drawstring.ingest(tmp_path / "t", "number", options=OPTIONS)
    names = str(caught.value).split("Use one of ")[1].rstrip(".").split(", ")
    known = {"numbers", "parquet", "kafka-json", "JsonKafkaSource", "debezium.MysqlDebeziumSource"}
    assert known <= set(names)
