"""Table properties of one version as another version has them: what Hudi 1.2.0 made of the same tables."""

from __future__ import annotations

import pytest

from drawstring.config.table_config import MergeMode, table_config
from drawstring.services.upgrade import obstacles, properties_of_version

MODEL = "org.apache.hudi.common.model."
COMMIT_TIME = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
BY_PAYLOAD = "00000000-0000-0000-0000-000000000000"
DELETES = "hoodie.record.merge.property.hoodie.payload.delete."
UNAVAILABLE = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"

V6 = {
    "hoodie.table.name": "rides",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    "hoodie.record.merge.strategy.id": EVENT_TIME,
    "hoodie.table.ordering.fields": "ts",
}
COW = {"hoodie.table.type": "COPY_ON_WRITE"}


def v6(payload: str, **more: str) -> dict[str, str]:
    changed = {**V6, "hoodie.compaction.payload.class": MODEL + payload}
    del changed["hoodie.record.merge.strategy.id"]
    return {**changed, **more}


def about_merging(properties: dict[str, str]) -> dict[str, str]:
    words = ("merge", "payload", "partial", "ordering", "precombine")
    return {key: value for key, value in properties.items() if any(word in key for word in words)}


def test_an_upgrade_to_8_says_by_mode_and_class_what_version_6_implied() -> None:
    assert properties_of_version(V6, 8) == V6 | {
        "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.table.initial.version": "6",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    }


@pytest.mark.parametrize(
    ("properties", "payload", "mode", "strategy"),
    [
        (
            v6("OverwriteWithLatestAvroPayload"),
            "DefaultHoodieRecordPayload",
            "EVENT_TIME_ORDERING",
            EVENT_TIME,
        ),
        (
            v6("OverwriteWithLatestAvroPayload", **COW),
            "OverwriteWithLatestAvroPayload",
            "COMMIT_TIME_ORDERING",
            COMMIT_TIME,
        ),
        (v6("EventTimeAvroPayload"), "DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING", EVENT_TIME),
        (
            v6("EventTimeAvroPayload", **COW),
            "OverwriteWithLatestAvroPayload",
            "COMMIT_TIME_ORDERING",
            COMMIT_TIME,
        ),
        (v6("PartialUpdateAvroPayload"), "PartialUpdateAvroPayload", "CUSTOM", BY_PAYLOAD),
        (v6("FirstValueAvroPayload"), "FirstValueAvroPayload", "CUSTOM", BY_PAYLOAD),
    ],
)
def test_an_upgrade_to_8_finds_the_merge_mode_of_a_payload_class(
    properties: dict[str, str], payload: str, mode: str, strategy: str
) -> None:
    then = properties_of_version(properties, 8)
    assert then["hoodie.compaction.payload.class"] == MODEL + payload
    assert then["hoodie.record.merge.mode"] == mode
    assert then["hoodie.record.merge.strategy.id"] == strategy


def test_a_table_without_payload_class_goes_by_event_time_from_8_on() -> None:
    bare = {key: value for key, value in V6.items() if "payload" not in key and "merge" not in key}
    then = properties_of_version(bare | COW, 8)
    assert then["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert then["hoodie.compaction.payload.class"] == f"{MODEL}DefaultHoodieRecordPayload"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            "PartialUpdateAvroPayload",
            {
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.record.merge.strategy.id": EVENT_TIME,
                "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
            },
        ),
        (
            "AWSDmsAvroPayload",
            {
                "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
                "hoodie.record.merge.strategy.id": COMMIT_TIME,
                f"{DELETES}field": "Op",
                f"{DELETES}marker": "D",
            },
        ),
        (
            "debezium.PostgresDebeziumAvroPayload",
            {
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.record.merge.strategy.id": EVENT_TIME,
                "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
                "hoodie.table.ordering.fields": "_event_lsn",
                f"{DELETES}field": "_change_operation_type",
                f"{DELETES}marker": "d",
                UNAVAILABLE: "__debezium_unavailable_value",
            },
        ),
    ],
)
def test_version_9_says_by_properties_what_a_well_known_payload_class_did(
    payload: str, expected: dict[str, str]
) -> None:
    before = properties_of_version(v6(payload), 8)
    then = properties_of_version(before, 9)
    assert about_merging(then) == {
        "hoodie.table.ordering.fields": "ts",
        "hoodie.table.legacy.payload.class": MODEL + payload,
        **expected,
    }
    back = properties_of_version(then, 8)
    assert about_merging(back) == {
        "hoodie.table.precombine.field": expected.get("hoodie.table.ordering.fields", "ts"),
        "hoodie.compaction.payload.class": MODEL + payload,
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": BY_PAYLOAD,
    }


def test_version_9_drops_the_strategy_of_a_mode_and_8_has_it_again() -> None:
    then = properties_of_version(V6, 9)
    assert about_merging(then) == {
        "hoodie.table.ordering.fields": "ts",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.legacy.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    }
    assert about_merging(properties_of_version(then, 8)) == {
        "hoodie.table.precombine.field": "ts",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.record.merge.strategy.id": EVENT_TIME,
        "hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    }


def test_version_6_knows_how_records_merge_by_a_payload_class_alone() -> None:
    then = properties_of_version(properties_of_version(V6, 9), 6)
    assert about_merging(then) == {
        "hoodie.table.precombine.field": "ts",
        "hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload",
    }
    assert then["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.SimpleKeyGenerator"
    assert (then["hoodie.table.version"], then["hoodie.timeline.layout.version"]) == ("6", "1")
    config = table_config(then)
    assert (config.merge_mode, config.ordering_fields) == (MergeMode.EVENT_TIME_ORDERING, ("ts",))
    without = {key: value for key, value in properties_of_version(V6, 9).items() if "legacy" not in key}
    by_commit_time = without | {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    payload = properties_of_version(by_commit_time, 6)["hoodie.compaction.payload.class"]
    assert payload == f"{MODEL}OverwriteWithLatestAvroPayload"


def test_the_bootstrap_index_is_named_by_type_from_8_on() -> None:
    index = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
    then = properties_of_version(V6 | {"hoodie.bootstrap.index.class": index}, 8)
    assert then["hoodie.bootstrap.index.type"] == "HFILE"
    back = properties_of_version(then, 6)
    assert back["hoodie.bootstrap.index.class"] == index
    assert "hoodie.bootstrap.index.type" not in back


@pytest.mark.parametrize(
    ("more", "version", "named"),
    [
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, 8, "hoodie.table.partial.update.mode"),
        ({f"{DELETES}field": "gone"}, 8, f"{DELETES}field"),
        ({f"{DELETES}field": "gone"}, 6, f"{DELETES}field"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, 6, "CUSTOM"),
        ({"hoodie.table.base.file.format": "lance"}, 6, "Lance base files"),
    ],
)
def test_what_a_lower_version_has_no_words_for_is_named(
    more: dict[str, str], version: int, named: str
) -> None:
    plain = {key: value for key, value in properties_of_version(V6, 9).items() if "legacy" not in key}
    assert obstacles(plain, version) == []
    found = obstacles(plain | more, version)
    assert len(found) == 1 and named in found[0]


def test_keys_without_their_columns_name_do_not_go_to_version_9() -> None:
    bare = properties_of_version(V6, 8) | {"hoodie.write.complex.keygen.new.encoding": "true"}
    assert "hoodie.write.complex.keygen.new.encoding" in obstacles(bare, 9)[0]
    assert obstacles(bare, 6) == []
