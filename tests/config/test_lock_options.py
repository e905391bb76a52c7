"""Options of locks and of concurrency: what they would promise in vain is refused."""

from __future__ import annotations

import logging

import pytest

from drawstring.base.errors import InvalidError
from drawstring.config.keys.locks import without_provider
from drawstring.config.options.read_options import ReadOptions
from drawstring.config.options.write_options import WriteOptions

LOCK = "hoodie.write.lock."


@pytest.mark.parametrize(
    "key",
    ["hoodie.write.concurrency.retries", f"{LOCK}consul.url", "hoodie.write.conflict.resolution.strategy"],
)
def test_what_promises_protection_has_to_be_an_option(key: str) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse):
        with pytest.raises(InvalidError, match=f"no option '{key}'"):
            parse({key: "9"})


def test_options_of_hudi_s_conflict_detection_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    key = "hoodie.write.concurrency.early.conflict.detection.strategy"
    with caplog.at_level(logging.INFO):
        WriteOptions.parse({key: "x.SimpleTransactionDirectMarkerBasedDetectionStrategy"})
    assert f"Ignored options: {key}" in caplog.text


def test_a_lock_provider_of_a_user_s_own_has_options_of_its_own() -> None:
    given = {f"{LOCK}Provider": "consul", f"{LOCK}consul.url": "there"}
    assert WriteOptions.parse(given).locking.given[f"{LOCK}consul.url"] == "there"
    ReadOptions.parse(given)
    with pytest.raises(InvalidError, match="wait_time_ms"):
        WriteOptions.parse({**given, f"{LOCK}waittime_ms": "5"})


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("zookeeper.url", "zookeeper"),
        ("zookeeper.lock_key", "zookeeper"),
        ("dynamodb.table", "dynamodb"),
        ("filesystem.expire", "file_system"),
        ("hivemetastore.uris", "org.apache.hudi.hive"),
    ],
)
def test_a_lock_that_is_described_has_to_be_chosen(key: str, provider: str) -> None:
    text = f"{LOCK}{key} describes a lock.*Set {LOCK}provider={provider}"
    with pytest.raises(InvalidError, match=text):
        WriteOptions.parse({f"{LOCK}{key}": "1", "hoodie.write.concurrency.mode": "SINGLE_WRITER"})
    assert WriteOptions.parse({f"{LOCK}{key}": "1", f"{LOCK}provider": "own"}).locking.provider == "own"
    ReadOptions.parse({f"{LOCK}{key}": "1"})


def test_beside_an_old_table_only_options_of_the_own_lock_are_left() -> None:
    own = {f"{LOCK}wait_time_ms": "5", f"{LOCK}storage.validity.timeout.secs": "60", "hoodie.table.name": "t"}
    others = {f"{LOCK}provider": "consul", f"{LOCK}consul.url": "there", f"{LOCK}zookeeper.url": "a"}
    assert without_provider({**own, **others}) == own
