"""The properties of new tables, against those that real Hudi writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, MergeMode, TableType, table_config
from tests.support.table_configs import new_table, properties_of

OURS = {
    "hoodie.table.precombine.field",  # for releases that know no other key
    "hoodie.archivelog.folder",
    "hoodie.table.timeline.timezone",
}

PAYLOAD = "hoodie.datasource.write.payload.class"


@pytest.mark.parametrize(
    ("name", "version", "extra"),
    [
        ("v6_mor_avro", 6, {}),
        ("v9_mor_avro", 9, {}),
        ("v6_mor_commit_time", 6, {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}),
        ("v8_mor_commit_time", 8, {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}),
        ("v6_mor_payload_partial", 6, {PAYLOAD: "x.PartialUpdateAvroPayload"}),
        ("v8_mor_payload_partial", 8, {PAYLOAD: "x.PartialUpdateAvroPayload"}),
        ("v9_mor_payload_dms", 9, {PAYLOAD: "x.AWSDmsAvroPayload", "hoodie.record.merge.mode": "CUSTOM"}),
    ],
)
def test_a_new_table_has_the_keys_of_a_real_one(name: str, version: int, extra: dict[str, str]) -> None:
    ours, real = new_table(name=name, version=version, extra=extra), properties_of(name)
    assert {key for key in ours.keys() | real.keys() if ours.get(key) != real.get(key)} <= OURS


@pytest.mark.parametrize("version", [6, 8, 9, 10])
@pytest.mark.parametrize("table_type", list(TableType))
@pytest.mark.parametrize("partition_by", [(), ("a",), ("a", "b")])
@pytest.mark.parametrize("ordering", [(), ("ts",), ("ts", "seq")])
def test_a_new_table_reads_back_as_what_was_asked(
    version: int, table_type: TableType, partition_by: tuple[str, ...], ordering: tuple[str, ...]
) -> None:
    config = table_config(
        new_table(
            version=version,
            table_type=table_type,
            partition_by=partition_by,
            ordering=ordering,
            schema_json='{"type":"record"}',
        )
    )
    assert (config.name, config.version, config.table_type) == ("t", version, table_type)
    assert (config.partition_fields, config.ordering_fields) == (partition_by, ordering)
    event_time = MergeMode.EVENT_TIME_ORDERING
    assert config.merge_mode is (event_time if ordering else MergeMode.COMMIT_TIME_ORDERING)
    assert config.timezone == "UTC"
    assert config.create_schema == '{"type":"record"}'
    kinds = (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX)
    assert config.key_generator is kinds[len(partition_by)]


def test_a_table_without_ordering_has_no_merge_strategy_that_hudi_rs_refuses() -> None:
    assert "hoodie.table.record.merge.strategy" not in new_table(ordering=[])


def test_properties_that_a_table_stores_are_kept() -> None:
    config = table_config(
        new_table(
            extra={
                "hoodie.database.name": "db",
                "hoodie.datasource.write.hive_style_partitioning": "true",
                "hoodie.index.type": "BUCKET",
                "hoodie.bucket.index.num.buckets": "4",
                "hoodie.compaction.payload.class": "x.OverwriteWithLatestAvroPayload",
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
                "hoodie.table.checksum": "nonsense",
            }
        )
    )
    assert (config.database, config.hive_style) == ("db", True)
    assert (config.index_type, config.bucket_count) == ("BUCKET", 4)
    assert config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert config.key_generator is KeyGeneratorType.COMPLEX


@pytest.mark.parametrize(
    ("payload", "ordering", "more"),
    [
        ("OverwriteWithLatestAvroPayload", "ts", {}),
        ("EventTimeAvroPayload", "ts", {}),
        ("PartialUpdateAvroPayload", "ts", {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}),
        (
            "debezium.MySqlDebeziumAvroPayload",
            "_event_bin_file,_event_pos",
            {
                "hoodie.record.merge.property.hoodie.payload.delete.field": "_change_operation_type",
                "hoodie.record.merge.property.hoodie.payload.delete.marker": "d",
            },
        ),
    ],
)
def test_version_9_says_by_properties_what_a_payload_class_means(
    payload: str, ordering: str, more: dict[str, str]
) -> None:
    stored = new_table(extra={PAYLOAD: f"com.vendor.{payload}"})
    assert stored["hoodie.table.legacy.payload.class"] == f"org.apache.hudi.common.model.{payload}"
    assert stored["hoodie.table.ordering.fields"] == ordering
    about = ("hoodie.table.partial", "hoodie.record.merge.property")
    assert {key: value for key, value in stored.items() if key.startswith(about)} == more
    assert "hoodie.compaction.payload.class" not in stored


@pytest.mark.parametrize("version", [6, 8, 9, 10])
def test_a_payload_class_with_a_registered_merger_is_stored_for_it(version: int) -> None:
    drawstring.register_merger("test.creation.OwnPayload", lambda older, newer: newer)
    stored = new_table(version=version, extra={PAYLOAD: "test.creation.OwnPayload"})
    assert stored["hoodie.compaction.payload.class"] == "test.creation.OwnPayload"
    assert stored["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"
    assert table_config(stored).merge_mode is MergeMode.CUSTOM


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"name": ""}, InvalidError, "is not a valid table name"),
        ({"name": "a/b"}, InvalidError, "is not a valid table name"),
        ({"version": 11}, UnsupportedError, "version 11"),
        (
            {"ordering": [], "extra": {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}},
            InvalidError,
            "needs an ordering field",
        ),
        ({"extra": {"hoodie.record.merge.mode": "CUSTOM"}}, UnsupportedError, "CUSTOM"),
        ({"extra": {"hoodie.record.merge.mode": "NEWEST"}}, InvalidError, "NEWEST"),
        (
            {"extra": {"hoodie.compaction.payload.class": "com.example.OwnPayload"}},
            UnsupportedError,
            r"register_merger\('OwnPayload'",
        ),
        (
            {"ordering": [], "extra": {"hoodie.compaction.payload.class": "x.PartialUpdateAvroPayload"}},
            InvalidError,
            "needs an ordering field",
        ),
        (
            {"partition_by": ["a", "b"], "extra": {"hoodie.table.keygenerator.type": "SIMPLE"}},
            InvalidError,
            "Use COMPLEX",
        ),
    ],
)
def test_what_cannot_be_a_table_says_why(changes: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        new_table(**changes)


def test_none_as_columns_of_a_new_table_means_no_columns() -> None:
    schema = pa.schema({"id": pa.string()})
    config = drawstring.create(
        "memory://none", schema, record_key=None, partition_by=None, ordering=None
    ).config
    assert (config.record_key_fields, config.partition_fields, config.ordering_fields) == ((), (), ())
