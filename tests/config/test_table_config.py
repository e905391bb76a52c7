"""What the properties of tables say, real ones first."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, MergeMode, TableConfig, TableType, table_config
from drawstring.model.table_version import LAYOUT_1, LAYOUT_2
from tests.support.table_configs import properties_of

COMMIT_TIME, EVENT_TIME = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
PAYLOADS = "org.apache.hudi.common.model."


def config_of(name: str) -> TableConfig:
    return table_config(properties_of(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "v6_mor_avro",
            {
                "version": 6,
                "layout": LAYOUT_1,
                "table_type": TableType.MERGE_ON_READ,
                "merge_mode": EVENT_TIME,
                "record_key_fields": ("id",),
                "partition_fields": ("part",),
                "ordering_fields": ("ts",),
                "key_generator": KeyGeneratorType.SIMPLE,
                "timeline_folder": ".hoodie",
                "history_folder": ".hoodie/history",
                "timezone": "LOCAL",
                "payload_class": PAYLOADS + "DefaultHoodieRecordPayload",
                "bucket_hash_fields": ("id",),
            },
        ),
        ("v6_mor_commit_time", {"merge_mode": COMMIT_TIME, "ordering_fields": ("ts",)}),
        ("v6_mor_payload_partial", {"merge_mode": EVENT_TIME, "partial_update_mode": "IGNORE_DEFAULTS"}),
        ("v6_cow_nonpart", {"key_generator": KeyGeneratorType.NON_PARTITION, "partition_fields": ()}),
        ("v8_mor_commit_time", {"merge_mode": COMMIT_TIME, "version": 8, "layout": LAYOUT_2}),
        ("v8_mor_payload_partial", {"merge_mode": EVENT_TIME, "partial_update_mode": "IGNORE_DEFAULTS"}),
        ("v8_cow_timestamp_keygen", {"key_generator": KeyGeneratorType.TIMESTAMP}),
        (
            "v9_mor_avro",
            {
                "version": 9,
                "layout": LAYOUT_2,
                "merge_mode": EVENT_TIME,
                "timeline_folder": ".hoodie/timeline",
                "history_folder": ".hoodie/timeline/history",
                "payload_class": None,
                "populate_meta_fields": True,
                "metadata_partitions": (),
            },
        ),
        (
            "v9_mor_payload_dms",
            {
                "merge_mode": COMMIT_TIME,
                "merge_properties": {
                    "hoodie.payload.delete.field": "Op",
                    "hoodie.payload.delete.marker": "D",
                },
                "payload_class": PAYLOADS + "AWSDmsAvroPayload",
            },
        ),
        (
            "v9_cow_custom_keygen",
            {
                "key_generator": KeyGeneratorType.CUSTOM,
                "partition_fields": ("name", "created"),
                "partition_types": ("SIMPLE", "TIMESTAMP"),
            },
        ),
        (
            "v9_cow_keyless",
            {"key_generator": KeyGeneratorType.AUTO, "record_key_fields": (), "merge_mode": COMMIT_TIME},
        ),
        (
            "v9_cow_multi_hive",
            {
                "hive_style": True,
                "partition_fields": ("year", "month"),
                "record_key_fields": ("id", "sub"),
                "key_generator": KeyGeneratorType.COMPLEX,
            },
        ),
        (
            "v9_mdt_cow",
            {"metadata_partitions": ("bloom_filters", "column_stats", "files", "partition_stats")},
        ),
    ],
)
def test_real_tables_say_what_they_are(name: str, expected: dict[str, Any]) -> None:
    config = config_of(name)
    assert {field: getattr(config, field) for field in expected} == expected
    assert config.name == name


def test_a_schema_from_create_table_is_unescaped() -> None:
    schema = config_of("v8_evo_on_read_cow").create_schema
    assert schema is not None and schema.startswith('{"type":"record","name":')


def test_a_config_travels_between_processes() -> None:
    config = config_of("v9_mor_payload_dms")
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(config_of("v9_mor_payload_dms"))


BARE = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}


@pytest.mark.parametrize(
    ("version", "stored", "mode"),
    [
        ("6", {}, COMMIT_TIME),
        ("6", {"hoodie.table.precombine.field": "ts"}, EVENT_TIME),
        (
            "6",
            {
                "hoodie.table.precombine.field": "ts",
                "hoodie.compaction.payload.class": PAYLOADS + "OverwriteWithLatestAvroPayload",
                "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            },
            COMMIT_TIME,
        ),
        (
            "8",
            {
                "hoodie.table.precombine.field": "ts",
                "hoodie.compaction.payload.class": PAYLOADS + "OverwriteWithLatestAvroPayload",
                "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            },
            EVENT_TIME,
        ),
        ("6", {"hoodie.compaction.payload.class": "com.example.OwnPayload"}, MergeMode.CUSTOM),
        ("9", {"hoodie.record.merge.mode": "CUSTOM"}, MergeMode.CUSTOM),
        (
            "9",
            {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.table.ordering.fields": "ts"},
            COMMIT_TIME,
        ),
        ("9", {"hoodie.table.ordering.fields": "a,b"}, EVENT_TIME),
        ("9", {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, COMMIT_TIME),
        ("6", {"hoodie.compaction.payload.class": PAYLOADS + "DefaultHoodieRecordPayload"}, COMMIT_TIME),
    ],
)
def test_the_merge_mode_follows_from_what_the_version_stores(
    version: str, stored: dict[str, str], mode: MergeMode
) -> None:
    assert table_config({**BARE, "hoodie.table.version": version, **stored}).merge_mode is mode


@pytest.mark.parametrize(
    ("version", "stored", "ordering", "rule"),
    [
        ("6", {"hoodie.compaction.payload.class": "x.MySqlDebeziumAvroPayload"}, ("_event_seq",), "PLAIN"),
        ("8", {"hoodie.compaction.payload.class": "x.FirstValueAvroPayload",
               "hoodie.record.merge.mode": "CUSTOM", "hoodie.table.ordering.fields": "ts"},
         ("ts",), "FIRST_OF_TIES"),
        ("9", {"hoodie.compaction.payload.class": "x.FirstValueAvroPayload",
               "hoodie.record.merge.mode": "CUSTOM", "hoodie.table.ordering.fields": "ts"},
         ("ts",), "FIRST_OF_TIES"),
        ("9", {"hoodie.table.legacy.payload.class": "x.PartialUpdateAvroPayload",
               "hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "ts",
               "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
         ("ts",), None),
    ],
)  # fmt: skip
def test_the_code_of_a_payload_class_counts_where_the_table_runs_it(
    version: str, stored: dict[str, str], ordering: tuple[str, ...], rule: str | None
) -> None:
    config = table_config({**BARE, "hoodie.table.version": version, **stored})
    assert (config.merge_mode, config.ordering_fields) == (EVENT_TIME, ordering)
    assert config.payload_rule == rule


def test_a_debezium_payload_fixes_ordering_and_deletes() -> None:
    payload = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
    config = table_config({**BARE, "hoodie.compaction.payload.class": payload})
    assert config.ordering_fields == ("_event_lsn",)
    assert config.partial_update_mode == "FILL_UNAVAILABLE"
    assert config.merge_properties["hoodie.payload.delete.marker"] == "d"


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}, "COMPLEX"),
        ({"hoodie.table.keygenerator.class": "com.example.Own"}, "USER_PROVIDED"),
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, "SIMPLE"),
        ({}, "NON_PARTITION"),
        ({"hoodie.table.partition.fields": "p"}, "SIMPLE"),
        ({"hoodie.table.partition.fields": "p,q"}, "COMPLEX"),
    ],
)
def test_key_generators_go_by_type_class_or_columns(keys: dict[str, str], kind: str) -> None:
    assert table_config({**BARE, "hoodie.table.recordkey.fields": "id", **keys}).key_generator == kind


def test_an_index_is_named_in_upper_case() -> None:
    assert table_config({**BARE, "hoodie.index.type": "bloom"}).index_type == "BLOOM"
    assert table_config({**BARE, "hoodie.index.type": "BUCKET"}).index_type == "BUCKET"
    assert table_config(BARE).index_type is None


@pytest.mark.parametrize(
    ("version", "advice"), [("11", "Upgrade drawstring"), ("42", "Upgrade drawstring"), ("1", "Apache Hudi")]
)
def test_an_unknown_version_is_named(version: str, advice: str) -> None:
    with pytest.raises(UnsupportedError, match=f"version {version},.*{advice}"):
        table_config({**BARE, "hoodie.table.version": version})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"hoodie.table.name": ""}, "no hoodie.table.name"),
        ({"hoodie.table.type": ""}, "no hoodie.table.type"),
        ({"hoodie.table.version": ""}, "no hoodie.table.version"),
        ({"hoodie.table.version": "nine"}, "'nine'.*whole number"),
        ({"hoodie.table.type": "COPY_ON_READ"}, "COPY_ON_WRITE or MERGE_ON_READ"),
        ({"hoodie.timeline.layout.version": "2"}, "layout 2 does not fit table version 6"),
        ({"hoodie.table.checksum": "1"}, "hoodie.table.checksum is '1'"),
        ({"hoodie.record.merge.mode": "NEWEST"}, "NEWEST"),
        ({"hoodie.bucket.index.num.buckets": "many"}, "whole number"),
    ],
)
def test_damaged_properties_say_what_is_wrong(change: dict[str, str], text: str) -> None:
    with pytest.raises(CorruptTableError, match=text):
        table_config({**BARE, **change})


def test_more_buckets_than_a_table_can_use_are_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="buckets"):
        table_config(BARE | {"hoodie.bucket.index.num.buckets": "2000000000"})
