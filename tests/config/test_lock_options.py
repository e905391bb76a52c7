"""Options of locks and of concurrency: what they would promise in vain is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.concurrency import without_provider
from drawstring.config.options.read_options import ReadOptions
from drawstring.config.options.write_options import WriteOptions
from drawstring.storage.local import LocalStorage
from drawstring.txn.locks.table_lock import provider_lock
from tests.support.storages import memory

LOCK = "hoodie.write.lock."


@pytest.mark.parametrize(
    "key",
    ["hoodie.write.concurrency.retries", f"{LOCK}consul.url", "hoodie.write.conflict.resolution.strategy"],
)
def test_what_promises_protection_has_to_be_an_option(key: str) -> None:
    for parse in (WriteOptions.parse, ReadOptions.parse):
        with pytest.raises(InvalidError, match=f"no option '{key}'"):
            parse({key: "9"})


def test_only_hudi_s_own_classes_may_be_named_for_early_conflict_detection() -> None:
    key = "hoodie.write.concurrency.early.conflict.detection.strategy"
    own = "org.apache.hudi.client.transaction.SimpleTransactionDirectMarkerBasedDetectionStrategy"
    assert WriteOptions.parse({key: own}) == WriteOptions.parse({})
    with pytest.raises(UnsupportedError, match=key):
        WriteOptions.parse({key: "com.acme.Detection"})


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
    ],
)
def test_a_lock_that_is_described_has_to_be_chosen(key: str, provider: str) -> None:
    text = f"{LOCK}{key} describes a lock.*Set {LOCK}provider={provider}"
    with pytest.raises(InvalidError, match=text):
        WriteOptions.parse({f"{LOCK}{key}": "1", "hoodie.write.concurrency.mode": "SINGLE_WRITER"})
    assert WriteOptions.parse({f"{LOCK}{key}": "1", f"{LOCK}provider": "own"}).locking.provider == "own"
    ReadOptions.parse({f"{LOCK}{key}": "1"})


@pytest.mark.parametrize("chosen", [{}, {f"{LOCK}provider": "zookeeper"}])
def test_a_lock_that_only_hudi_can_take_is_not_advised(chosen: dict[str, str]) -> None:
    with pytest.raises(
        InvalidError, match=r"describes a lock.* cannot take it at all: choose another"
    ) as caught:
        WriteOptions.parse({f"{LOCK}hivemetastore.database": "rides", **chosen})
    assert "HiveMetastoreBasedLockProvider" not in str(caught.value)
    own = {f"{LOCK}hivemetastore.database": "rides", f"{LOCK}provider": "own"}
    assert WriteOptions.parse(own).locking.provider == "own"


@pytest.mark.parametrize(
    ("chosen", "key", "provider"),
    [
        ("storage", "zookeeper.url", "zookeeper"),
        ("zookeeper_implicit", "dynamodb.table", "dynamodb"),
        ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", "filesystem.path", "file_system"),
    ],
)
def test_a_lock_that_is_described_beside_another_one_is_refused(chosen: str, key: str, provider: str) -> None:
    with pytest.raises(InvalidError, match=f"{key} describes .*provider={chosen}.*provider={provider}"):
        WriteOptions.parse({f"{LOCK}provider": chosen, f"{LOCK}{key}": "z:1"})


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.write.concurrency.mode": "SINGLE_WRITER"},
        {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"},
        {"hoodie.clean.failed.writes.policy": "EAGER"},
    ],
)
def test_early_detection_is_refused_where_it_does_nothing(given: dict[str, str]) -> None:
    early = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
    with pytest.raises(InvalidError, match=r"does nothing with .*OPTIMISTIC_CONCURRENCY_CONTROL"):
        WriteOptions.parse({**given, **early})
    assert WriteOptions.parse(early).concurrency.detects_early


@pytest.mark.parametrize(("chosen", "is_told"), [("", True), ("in_process", True), ("storage", False)])
def test_options_of_leases_that_do_nothing_are_told(
    chosen: str, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock = {f"{LOCK}provider": chosen} if chosen else {}
    settings = WriteOptions.parse({**lock, f"{LOCK}storage.validity.timeout.secs": "60"}).locking
    for _ in range(2):
        provider_lock(LocalStorage(str(tmp_path)), SystemClock(), SystemIds(), settings)
    assert caplog.text.count("hoodie.write.lock.storage.* do nothing") == is_told
    provider_lock(memory(), SystemClock(), SystemIds(), WriteOptions.parse(dict(settings.given)).locking)
    assert caplog.text.count("do nothing on memory:") == (chosen == "in_process")


def test_beside_an_old_table_only_options_of_the_own_lock_are_left() -> None:
    own = {f"{LOCK}wait_time_ms": "5", f"{LOCK}storage.validity.timeout.secs": "60", "hoodie.table.name": "t"}
    others = {f"{LOCK}provider": "consul", f"{LOCK}consul.url": "there", f"{LOCK}zookeeper.url": "a"}
    assert without_provider({**own, **others}) == own
