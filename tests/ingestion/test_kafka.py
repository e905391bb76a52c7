"""Records of a topic come into the table once; the broker is a real one."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.ingestion.file_sources import parse_records
from drawstring.ingestion.source_protocol import Reading
from drawstring.plugins.kafka import (
    KafkaSource,
    KafkaTopic,
    OffsetRange,
    Reset,
    client_settings,
    offsets_of,
    ranges_within,
)
from tests.support.kafka import Broker
from tests.support.processes import ROOT

KILLS = int(os.environ.get("INGEST_KILLS", "100"))


@pytest.fixture
def topic(request: pytest.FixtureRequest, broker: Broker) -> str:
    """A topic of this test, with two partitions."""
    name = "".join(each if each.isalnum() else "." for each in request.node.name)
    broker.create(name, 2)
    return name


def records(*ids: int) -> list[bytes]:
    return [json.dumps({"id": each, "ts": each, "city": "oslo"}).encode() for each in ids]


def options_of(broker: Broker, topic: str, more: Mapping[str, Any] = {}) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.address,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": topic,
        "hoodie.datasource.write.recordkey.field": "id",
        **more,
    }


def ingest(folder: Path, broker: Broker, topic: str, more: Mapping[str, Any] = {}, **keywords: Any) -> Any:
    options = options_of(broker, topic, more)
    return drawstring.ingest(folder / "t", "kafka-json", options=options, operation="insert", **keywords)


def ids(folder: Path) -> list[int]:
    return sorted(drawstring.open(folder / "t").scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_records_come_into_the_table_once(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, records(*range(10)), 2)
    result = ingest(tmp_path, broker, topic)
    assert (result.rows, result.checkpoint) == (10, f"{topic},0:5,1:5")
    assert not ingest(tmp_path, broker, topic)
    broker.send(topic, records(10))
    assert ingest(tmp_path, broker, topic).checkpoint == f"{topic},0:6,1:5"
    assert ids(tmp_path) == list(range(11))


def test_batches_take_from_all_partitions_up_to_the_limit(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, records(*range(10)), 2)
    progress: list[drawstring.IngestProgress] = []
    ingest(tmp_path, broker, topic, source_limit=4, on_progress=progress.append)
    told = [(each.checkpoint, each.left) for each in progress]
    assert told == [(f"{topic},0:2,1:2", 6), (f"{topic},0:4,1:4", 2), (f"{topic},0:5,1:5", 0)]
    assert ids(tmp_path) == list(range(10))


def test_deleted_values_and_records_that_are_no_objects_are_left_out(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.send(topic, [*records(1), None, b"nonsense", *records(2)])
    with pytest.raises(InvalidError, match=f"The record at {topic}:0:2 cannot be read"):
        ingest(tmp_path, broker, topic)
    result = ingest(tmp_path, broker, topic, {"hoodie.streamer.source.json.skip.invalid.records": "true"})
    assert (result.rows, result.rejected) == (2, 1)
    assert ids(tmp_path) == [1, 2]


def test_a_job_begins_with_what_comes_after_it_unless_told_otherwise(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.send(topic, records(1))
    schema = pa.schema({"id": pa.int64(), "ts": pa.int64(), "city": pa.string()})
    drawstring.create(tmp_path / "t", schema, record_key="id")
    latest = {"auto.offset.reset": "latest"}
    assert ingest(tmp_path, broker, topic, latest).checkpoint == f"{topic},0:1,1:0"
    broker.send(topic, records(2))
    assert ingest(tmp_path, broker, topic, latest).rows == 1
    assert ids(tmp_path) == [2]


def test_a_consumer_group_is_told_and_asked(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, records(1, 2), 2)
    group = {"group.id": topic, "hoodie.streamer.source.kafka.enable.commit.offset": "true"}
    ingest(tmp_path, broker, topic, group)
    assert broker.committed(topic, topic, 0) == 1
    broker.send(topic, records(3))
    (tmp_path / "other").mkdir()
    asked = {"group.id": topic, "auto.offset.reset": "group"}
    assert ingest(tmp_path / "other", broker, topic, asked).rows == 1


def test_records_that_are_gone_are_told_or_an_error(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, records(*range(6)), 2)
    ingest(tmp_path, broker, topic, source_limit=2)
    ingest_from = f"{topic},0:1,1:1"
    broker.drop_before(topic, 0, 2)
    fails = {"hoodie.streamer.source.kafka.enable.failOnDataLoss": "true"}
    with pytest.raises(InvalidError, match=r"are gone, in partitions 0:"):
        ingest(tmp_path, broker, topic, fails, checkpoint=ingest_from)
    (tmp_path / "other").mkdir()
    assert ingest(tmp_path / "other", broker, topic, checkpoint=ingest_from).rows == 3
    assert ids(tmp_path / "other") == [3, 4, 5]


def test_rows_may_say_where_they_were(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, records(1, 2, 3), 2)
    ingest(tmp_path, broker, topic, {"hoodie.streamer.source.kafka.append.offsets": "true"})
    names = ["id", *(f"_hoodie_kafka_source_{each}" for each in ("partition", "offset", "key"))]
    rows = drawstring.open(tmp_path / "t").scan(columns=names).to_arrow().sort_by("id")
    assert [tuple(each.values()) for each in rows.to_pylist()] == [
        (1, 0, 0, "0"),
        (2, 1, 0, "1"),
        (3, 0, 1, "2"),
    ]


def test_columns_of_records_are_found_and_added(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.send(topic, [b'{"id": 1, "fare": 1}', b'{"id": 2, "fare": 2.5, "at": {"x": null}}'])
    ingest(tmp_path, broker, topic)
    broker.send(topic, [b'{"id": 3, "tags": ["a"], "at": {"x": 1}}'])
    ingest(tmp_path, broker, topic)
    rows = drawstring.open(tmp_path / "t").scan(columns=["id", "fare", "tags"]).to_arrow().sort_by("id")
    assert rows.to_pylist() == [
        {"id": 1, "fare": 1.0, "tags": None},
        {"id": 2, "fare": 2.5, "tags": None},
        {"id": 3, "fare": None, "tags": ["a"]},
    ]


def test_what_is_missing_is_told(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="Topic nowhere cannot be read"):
        ingest(tmp_path, broker, "nowhere")
    with pytest.raises(InvalidError, match=r"Set bootstrap\.servers"):
        ingest(tmp_path, broker, "t", {"bootstrap.servers": ""})
    with pytest.raises(InvalidError, match=r"auto\.offset\.reset is 'never'"):
        ingest(tmp_path, broker, "t", {"auto.offset.reset": "never"})
    with pytest.raises(InvalidError, match="refuses its settings"):
        ingest(tmp_path, broker, "t", {"no.such.setting": "1"})


def test_a_broker_that_does_not_answer_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("drawstring.plugins.kafka._TIMEOUT_SECONDS", 0.5)
    with pytest.raises(UnavailableError, match=r"Kafka at 127\.0\.0\.1:1 does not answer about topic t"):
        ingest(tmp_path, Broker("127.0.0.1:1"), "t", retries=0)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.long)])
def test_a_job_that_is_killed_again_and_again(broker: Broker, topic: str, tmp_path: Path, kills: int) -> None:
    drawn = random.Random(int(os.environ.get("INGEST_SEED", "7")))
    options = [f"--option={key}={value}" for key, value in options_of(broker, topic).items()]
    command = [sys.executable, "-m", "drawstring", "ingest", str(tmp_path / "t"), "--source", "kafka-json"]
    command += ["--op", "insert", "--continuous", "--interval", "0.05", "--source-limit", "20", *options]
    sent = 0
    for _ in range(kills):
        broker.send(topic, records(*range(sent, sent + 400)), 2)
        sent += 400
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=ROOT, **quiet) as process:
            time.sleep(drawn.uniform(1, 3))
            assert process.poll() is None
            process.kill()
    ingest(tmp_path, broker, topic)
    assert ids(tmp_path) == list(range(sent))
    assert not drawstring.open(tmp_path / "t").services.validate().findings


def test_a_range_takes_evenly_and_new_partitions_from_their_beginning() -> None:
    assert ranges_within({0: 5, 1: 0}, {0: 6, 1: 100, 2: 3}, 10) == [
        OffsetRange(0, 5, 6),
        OffsetRange(1, 0, 6),
        OffsetRange(2, 0, 3),
    ]
    assert sum(each.count for each in ranges_within({}, {0: 1, 1: 1, 2: 1}, 2)) == 2
    assert ranges_within({0: 4}, {0: 4}, 9) == [OffsetRange(0, 4, 4)]


@pytest.mark.parametrize("text", ["topic", "topic,0", "other,0:1", "17000", "topic,a:b"])
def test_a_checkpoint_of_something_else_is_refused(text: str) -> None:
    assert offsets_of("topic,0:1,12:345", "topic") == {0: 1, 12: 345}
    with pytest.raises(InvalidError, match="is none of topic topic"):
        offsets_of(text, "topic")


def test_how_soon_more_is_fetched_is_the_users_to_say() -> None:
    options = {"bootstrap.servers": "localhost:9092"}
    assert client_settings(options)["fetch.queue.backoff.ms"] < 1000  # librdkafka's, a pause for each reader
    assert client_settings({**options, "fetch.queue.backoff.ms": 500})["fetch.queue.backoff.ms"] == 500


def test_records_that_do_not_fit_into_memory_are_read_once_and_in_order(broker: Broker, topic: str) -> None:
    broker.send(topic, [*records(*range(50)), b'{"id": 50, "ts": 50, "note": "late"}'], 1)
    client = KafkaTopic(topic, client_settings({"bootstrap.servers": broker.address}))
    source = KafkaSource(client, parse_records, 1000, Reset.EARLIEST, memory_bytes=0)
    batch = source.after(None, None)
    assert batch is not None
    rows = batch.read(Reading(pa.schema([]), pytest.fail)).read_all()
    source.close()
    assert rows["id"].to_pylist() == list(range(51))
    assert rows["note"].to_pylist() == [None] * 50 + ["late"]
