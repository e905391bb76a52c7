"""What records of a topic become rows: Avro with a schema registry, and change events of databases."""

from __future__ import annotations

import base64
import io
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.source_protocol import Reading, Rejected
from drawstring.plugins.debezium import MYSQL, POSTGRES, DebeziumValues
from drawstring.plugins.kafka import KafkaSource, Reset
from drawstring.plugins.schema_registry import AvroValues, SchemaRegistry, fetch_schema

NOTHING = pa.schema([])
RIDE = {
    "type": "record",
    "name": "Ride",
    "fields": [{"name": "id", "type": "int"}, {"name": "city", "type": ["null", "string"], "default": None}],
}
LATER = RIDE | {"fields": [*RIDE["fields"], {"name": "fare", "type": "double"}]}  # type: ignore[misc]
SCHEMAS = {1: RIDE, 2: LATER}


class Registry(BaseHTTPRequestHandler):
    """A schema registry with two schemas; asks for a password under /secret."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        other = f"http://localhost:{self.server.server_address[1]}"
        for start, server in (("/moved", other), ("/near", "")):
            if self.path.startswith(start):
                self.send_response(302)
                self.send_header("Location", f"{server}/secret{self.path.removeprefix(start)}")
                self.end_headers()
                return
        path = self.path.removeprefix("/secret")
        token = base64.b64encode(b"me:p@ss").decode()
        if path != self.path and self.headers.get("Authorization") != f"Basic {token}":
            self.send_error(401)
        elif path == "/subjects/rides-value/versions/latest":
            self._answer({"schema": json.dumps(LATER)})
        elif path == "/subjects/proto-value/versions/latest":
            self._answer({"schema": "syntax", "schemaType": "PROTOBUF"})
        elif path in ("/schemas/ids/1", "/schemas/ids/2"):
            self._answer({"schema": json.dumps(SCHEMAS[int(path[-1])])})
        else:
            self.send_error(404)

    def _answer(self, found: Mapping[str, str]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Registry.asked.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def framed(number: int, record: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMAS[number], record)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


class Rejecting(list[Rejected]):
    def reading(self, known: pa.Schema = NOTHING) -> Reading:
        return Reading(known, self.append)


def place(at: int) -> str:
    return f"t:0:{at}"


def test_records_of_several_schemas_become_rows_of_one(registry: str) -> None:
    values = AvroValues(SchemaRegistry.of_subject(f"{registry}/subjects/rides-value/versions/latest"))
    records = [framed(1, {"id": 1, "city": "oslo"}), framed(2, {"id": 2, "city": None, "fare": 1.5})] * 30
    parsed = values(records, Rejecting().reading(), place)
    assert parsed.kept is None
    assert parsed.rows.slice(0, 2).to_pylist() == [
        {"id": 1, "city": "oslo", "fare": None},
        {"id": 2, "city": None, "fare": 1.5},
    ]
    assert Registry.asked == ["/schemas/ids/1", "/schemas/ids/2"], "each is asked for once"


def test_records_that_do_not_fit_are_told_one_by_one(registry: str) -> None:
    good = framed(1, {"id": 1, "city": "oslo"})
    rejected = Rejecting()
    parsed = AvroValues(SchemaRegistry(registry))([good, good[:-2], b"{}", good], rejected.reading(), place)
    assert parsed.kept == [0, 3]
    assert [each.place for each in rejected] == ["t:0:1", "t:0:2"]
    assert "schema 1" in rejected[0].reason and "names no schema" in rejected[1].reason


def test_records_whose_schema_does_not_fit_what_is_known_are_told_if_that_is_wanted(registry: str) -> None:
    known = pa.schema({"id": pa.int64(), "fare": pa.bool_()})
    records = [framed(1, {"id": 1, "city": "oslo"}), framed(2, {"id": 2, "city": None, "fare": 1.5})]
    rejected = Rejecting()
    values = AvroValues(SchemaRegistry(registry))
    parsed = values(records, Reading(known, rejected.append, is_strict=True), place)
    assert parsed.kept == [0], "an int fits a long"
    assert [each.place for each in rejected] == ["t:0:1"]
    assert "schema 2 does not fit" in rejected[0].reason and "fare" in rejected[0].reason
    assert values(records, rejected.reading(known), place).kept is None


def test_a_registry_may_ask_for_a_password(registry: str) -> None:
    address = registry.replace("http://", "http://me:p%40ss@") + "/secret"
    assert json.loads(fetch_schema(f"{address}/subjects/rides-value/versions/latest")) == LATER
    with pytest.raises(InvalidError, match="401"):
        fetch_schema(f"{registry}/secret/schemas/ids/1")


def test_a_password_follows_a_redirect_to_the_same_server_alone(registry: str) -> None:
    address = registry.replace("http://", "http://me:p%40ss@")
    assert json.loads(fetch_schema(f"{address}/near/schemas/ids/1")) == RIDE
    other = registry.replace("127.0.0.1", "localhost")
    with pytest.raises(InvalidError) as told:
        fetch_schema(f"{address}/moved/schemas/ids/1")
    assert f"refuses {registry}/moved/schemas/ids/1: 401" in str(told.value)
    assert f"redirects to {other}/secret/schemas/ids/1, another server" in str(told.value)
    assert "give its address" in str(told.value)


@pytest.mark.parametrize(
    ("path", "kind", "says"),
    [
        ("/schemas/ids/9", InvalidError, "refuses .* 404"),
        ("/subjects/proto-value/versions/latest", InvalidError, "no Avro schema"),
    ],
)
def test_what_a_registry_does_not_have_is_told(
    registry: str, path: str, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        fetch_schema(registry + path)


def test_a_registry_that_does_not_answer_may_answer_later() -> None:
    with pytest.raises(UnavailableError, match="does not answer"):
        fetch_schema("http://127.0.0.1:9/schemas/ids/1")
    with pytest.raises(InvalidError, match="is no address"):
        fetch_schema("registry:8081/x")


def event(op: str, before: Any, after: Any, at: int, **source: Any) -> dict[str, Any]:
    about = {"name": "db", "ts_ms": at, "schema": "public", "txId": at, "lsn": at, "xmin": None, **source}
    return {"op": op, "ts_ms": at + 1, "before": before, "after": after, "source": about}


def rows_of(
    values: DebeziumValues, events: Sequence[Any], known: pa.Schema = NOTHING
) -> list[dict[str, Any]]:
    records = [json.dumps(each).encode() for each in events]
    rows: list[dict[str, Any]] = values(records, Rejecting().reading(), place).rows.to_pylist()
    return rows


EVENTS = [
    event("r", None, {"id": 1, "day": "2024-05-01"}, 10),
    event("c", None, {"id": 2, "day": None}, 11),
    event("u", {"id": 1, "day": "2024-05-01"}, {"id": 1, "day": "2024-05-02"}, 12),
    event("t", None, None, 13),
    event("d", {"id": 2, "day": "2024-05-01"}, None, 14),
]


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_events_of_postgres_become_rows_in_their_order(is_wrapped: bool) -> None:
    events = [{"schema": {"x": 1}, "payload": each} if is_wrapped else each for each in EVENTS]
    rows = rows_of(DebeziumValues(POSTGRES, None, False), events)
    assert [(each["_change_operation_type"], each["id"], each["_event_lsn"]) for each in rows] == [
        ("r", 1, 10),
        ("c", 2, 11),
        ("u", 1, 12),
        ("d", 2, 14),
    ]
    assert rows[2] == {
        "id": 1,
        "day": "2024-05-02",
        "_change_operation_type": "u",
        "_upstream_event_processed_ts_ms": 13,
        "db_shard_source_partition": "db",
        "_event_origin_ts_ms": 12,
        "db_schema_source_partition": "public",
        "_event_tx_id": 12,
        "_event_lsn": 12,
        "_event_xmin": None,
    }


def test_events_of_mysql_are_numbered_by_log_file_and_position() -> None:
    (row,) = rows_of(
        DebeziumValues(MYSQL, None, False), [event("c", None, {"id": 1}, 5, file="bin.000003", pos=154)]
    )
    assert (row["_event_bin_file"], row["_event_pos"], row["_event_seq"]) == ("bin.000003", 154, "000003.154")


def test_events_of_mysql_are_numbered_in_other_processes_too() -> None:
    sent = pickle.loads(pickle.dumps(DebeziumValues(MYSQL, None, False)))
    (row,) = rows_of(sent, [event("c", None, {"id": 1}, 5, file="bin.000003", pos=154)])
    assert row["_event_seq"] == "000003.154"


def test_deletes_are_marked_without_a_payload_class() -> None:
    rows = rows_of(DebeziumValues(POSTGRES, None, True), EVENTS)
    assert [each["_hoodie_is_deleted"] for each in rows] == [False, False, False, True]


def test_known_columns_give_images_their_types() -> None:
    known = pa.schema({"id": pa.int32(), "day": pa.date32()})
    values = DebeziumValues(POSTGRES, None, False)
    record = json.dumps(event("c", None, {"id": 1, "day": 19844}, 1)).encode()
    schema = values([record], Rejecting().reading(known), place).rows.schema
    assert schema.field("id").type == pa.int32()


def test_what_is_no_event_is_told() -> None:
    with pytest.raises(InvalidError, match="no change events of Debezium"):
        rows_of(DebeziumValues(POSTGRES, None, True), [{"id": 1}])
    with pytest.raises(InvalidError, match="REPLICA IDENTITY FULL"):
        rows_of(DebeziumValues(POSTGRES, None, True), [event("d", None, None, 1)])
    with pytest.raises(InvalidError, match=r"registry\.url"):
        DebeziumValues(POSTGRES, None, True)([b"\0\0\0\0\1x"], Rejecting().reading(), place)


class Topic:
    """Stands for a topic of one partition, with records that are there already."""

    name = "t"
    settings: Mapping[str, Any] = {}

    def __init__(self, records: Sequence[bytes]) -> None:
        self._records = records

    def bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        return {0: 0}, {0: len(self._records)}

    def read(self, ranges: Sequence[Any]) -> Iterator[list[Any]]:
        yield [Message(each) for each in self._records[ranges[0].start : ranges[0].stop]]

    def close(self) -> None:
        pass


class Message:
    def __init__(self, value: bytes) -> None:
        self.value: Callable[[], bytes] = lambda: value

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0


def ingest_events(folder: Path, more: Mapping[str, Any], marks: bool) -> list[tuple[Any, ...]]:
    topic: Any = Topic([json.dumps(each).encode() for each in EVENTS])
    source = KafkaSource(topic, DebeziumValues(POSTGRES, None, marks), 2, Reset.EARLIEST)
    options = {"hoodie.datasource.write.recordkey.field": "id", **more}
    result = drawstring.ingest(folder / "t", source, options=options)
    assert result.checkpoint == "t,0:5"
    rows = drawstring.open(folder / "t").scan(columns=["id", "day"]).to_arrow().to_pylist()
    return sorted(tuple(each.values()) for each in rows)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_becomes_what_the_database_has(tmp_path: Path, table_type: str, version: int) -> None:
    payload = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
    options = {
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.table.ordering.fields": "_event_lsn",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": version,
    }
    assert ingest_events(tmp_path, options, False) == [(1, "2024-05-02")]


def test_a_table_of_no_payload_class_becomes_the_same(tmp_path: Path) -> None:
    assert ingest_events(tmp_path, {"hoodie.table.ordering.fields": "_event_lsn"}, True) == [
        (1, "2024-05-02")
    ]


def test_a_topic_is_read_in_batches_from_its_checkpoint() -> None:
    topic: Any = Topic([b'{"id": 1}', b'{"id": 2}', b'{"id": 3}'])
    source = KafkaSource(topic, DebeziumValues(POSTGRES, None, True), 2)
    batch = source.after(Checkpoint("t,0:1"), None)
    assert batch is not None and (batch.size, batch.left, batch.checkpoint.key) == (2, 0, "t,0:3")
