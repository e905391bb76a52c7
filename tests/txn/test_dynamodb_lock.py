from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.clock import Clock, SteppingClock, SystemClock, SystemIds
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.plugins import dynamodb_lock
from drawstring.plugins.dynamodb_lock import DynamoDbLock
from drawstring.plugins.path_hash import address_hash
from drawstring.testing import context_of
from drawstring.txn.locks.table_lock import provider_lock, table_lock
from tests.support.dynamodb import dynamodb_client, dynamodb_options, dynamodb_settings
from tests.support.rows import held, rides
from tests.support.s3_server import S3Server
from tests.support.storages import memory

LEASE_MS = 60_000
RIDES = {"key": {"S": "rides"}}


@pytest.fixture
def locks() -> str:
    return f"locks-{uuid.uuid4()}"


def lock_of(
    s3: S3Server, locks: str, clock: Clock | None = None, lease_ms: int = LEASE_MS, **more: object
) -> DynamoDbLock:
    settings = dynamodb_settings(s3, locks, **more)
    client = dynamodb_client(s3)
    return DynamoDbLock(client, "rides", clock or SystemClock(), SystemIds(), settings, lease_ms)


def stored(s3: S3Server, locks: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = dynamodb_client(s3).get_item(TableName=locks, Key=RIDES).get("Item")
    return found


def put(s3: S3Server, locks: str, **item: str) -> None:
    """Put an item the way the JVM's client does."""
    attributes = {name: {"S": value} for name, value in item.items()}
    dynamodb_client(s3).put_item(TableName=locks, Item={**RIDES, **attributes})


def test_one_holds_it_until_it_lets_go(s3: S3Server, locks: str) -> None:
    first, second = lock_of(s3, locks), lock_of(s3, locks)
    assert not first.is_held()
    assert first.try_acquire()
    assert not second.try_acquire()
    assert second.is_held()
    assert "drawstring, process" in second.holder()
    assert "counts as dead if it gives no sign of life for" in second.holder()
    first.check()
    first.release()
    assert stored(s3, locks) is None
    assert second.try_acquire()
    second.release()


def test_the_item_has_the_form_of_the_jvm(s3: S3Server, locks: str) -> None:
    lock = lock_of(s3, locks)
    assert lock.try_acquire()
    item = stored(s3, locks)
    assert item is not None
    assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
    assert item["leaseDuration"] == {"S": "60000"}
    uuid.UUID(item["recordVersionNumber"]["S"])
    lock.check()
    later = stored(s3, locks)
    assert later is not None
    assert later["recordVersionNumber"] != item["recordVersionNumber"]
    assert later["ownerName"] == item["ownerName"]
    lock.release()


@pytest.mark.parametrize("mode", ["PAY_PER_REQUEST", "PROVISIONED"])
def test_the_table_is_made_as_hudi_makes_it(s3: S3Server, locks: str, mode: str) -> None:
    lock = lock_of(s3, locks, **{"dynamodb.billing_mode": mode, "dynamodb.read_capacity": 7})
    assert lock.try_acquire()
    lock.release()
    made = dynamodb_client(s3).describe_table(TableName=locks)["Table"]
    assert made["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert made["AttributeDefinitions"] == [{"AttributeName": "key", "AttributeType": "S"}]
    units = made["ProvisionedThroughput"]
    assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (
        (7, 10) if mode == "PROVISIONED" else (0, 0)
    )


def test_a_live_holder_of_the_jvm_keeps_the_lock_and_a_dead_one_loses_it(s3: S3Server, locks: str) -> None:
    clock = SteppingClock()
    lock = lock_of(s3, locks, clock)
    assert not lock.is_held()
    for _ in range(5):  # heartbeats
        put(s3, locks, ownerName="jvm", leaseDuration="60000", recordVersionNumber=str(uuid.uuid4()))
        assert not lock.try_acquire()
        clock.sleep(40)
        assert not lock.try_acquire()
    clock.sleep(19)
    assert not lock.try_acquire()
    clock.sleep(2)
    assert lock.try_acquire()
    lock.check()
    lock.release()


def test_an_item_that_the_jvm_released_but_kept_is_taken(s3: S3Server, locks: str) -> None:
    lock = lock_of(s3, locks)
    assert not lock.is_held()
    put(s3, locks, ownerName="jvm", leaseDuration="60000", recordVersionNumber="v", isReleased="1")
    assert not lock.is_held()
    assert lock.try_acquire()
    item = stored(s3, locks)
    assert item is not None
    assert "isReleased" not in item
    lock.release()


def test_what_a_process_saw_counts_in_its_next_wait(s3: S3Server, locks: str) -> None:
    clock = SteppingClock()
    assert not lock_of(s3, locks, clock).is_held()
    put(s3, locks, ownerName="dead", leaseDuration="60000", recordVersionNumber="v")
    assert not lock_of(s3, locks, clock).try_acquire()
    clock.sleep(61)
    lock = lock_of(s3, locks, clock)
    assert lock.try_acquire()
    lock.release()


def test_a_holder_that_stood_still_finds_its_lock_lost(s3: S3Server, locks: str) -> None:
    clock = SteppingClock()
    slow, quick = lock_of(s3, locks, clock), lock_of(s3, locks, clock)
    assert slow.try_acquire()
    slow._renewal.stop()
    assert not quick.try_acquire()
    clock.sleep(61)
    assert quick.try_acquire()
    with pytest.raises(ConflictError, match=r"item rides of the DynamoDB table .* was lost"):
        slow.check()
    slow.release()
    quick.check()
    quick.release()


def test_the_holder_sends_heartbeats(s3: S3Server, locks: str) -> None:
    clock = SteppingClock(step_ms=0)
    lock, other = lock_of(s3, locks, lease_ms=150), lock_of(s3, locks, clock)
    assert lock.try_acquire()
    for _ in range(4):
        assert not other.try_acquire()
        before = stored(s3, locks)
        give_up = time.monotonic() + 30
        while stored(s3, locks) == before:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        clock.sleep(0.16)  # longer than the lease, but there was a heartbeat
        assert not other.try_acquire()
        clock.sleep(0.14)
    lock.release()
    assert other.try_acquire()
    other.release()


@pytest.mark.parametrize("kind", ["lost", "busy"])
def test_a_lost_answer_loses_no_lock(s3: S3Server, locks: str, kind: str) -> None:
    lock = lock_of(s3, locks)
    assert not lock.is_held()
    s3.fail("", kind)
    assert lock.try_acquire()
    s3.fail(kind)
    lock.check()
    lock.check()
    s3.fail(kind)
    lock.release()
    assert stored(s3, locks) is None


def test_a_lock_that_was_taken_without_an_answer_is_given_back(s3: S3Server, locks: str) -> None:
    lock = lock_of(s3, locks)
    assert not lock.is_held()
    s3.fail("", "lost", *["busy"] * 10)
    with pytest.raises(UnavailableError, match="Try again later"):
        lock.try_acquire()
    s3.fail()
    assert stored(s3, locks) is not None
    lock.release()
    assert stored(s3, locks) is None


def test_a_table_is_written_under_the_lock(s3: S3Server, locks: str) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id", name="rides")
    other = lock_of(s3, locks)
    assert other.try_acquire()
    options = dynamodb_options(s3, locks, wait_time_ms=50)
    with pytest.raises(ConflictError, match=rf"item rides of the DynamoDB table {locks}.*wait_time_ms"):
        table.upsert(rows, options=options)
    other.release()
    table.upsert(rows, options=options)
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert stored(s3, locks) is None


def test_the_key_is_the_name_of_the_table_or_the_hash_of_its_address(s3: S3Server, locks: str) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id", name="trips")
    settings = dynamodb_settings(s3, locks, **{"dynamodb.partition_key": ""})
    named = provider_lock(context_of(table).storage, SystemClock(), SystemIds(), settings)
    assert isinstance(named, DynamoDbLock)
    assert named._place == (locks, "trips")
    implicit = dynamodb_settings(s3, locks, provider="dynamodb_implicit")
    by_address = provider_lock(context_of(table).storage, SystemClock(), SystemIds(), implicit)
    assert isinstance(by_address, DynamoDbLock)
    assert by_address._place == (locks, address_hash(table.uri))


def test_a_dead_holder_is_noticed_within_one_wait(
    s3: S3Server, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SteppingClock()
    assert not lock_of(s3, locks).is_held()
    put(s3, locks, ownerName="dead", leaseDuration="60000", recordVersionNumber="v")
    monkeypatch.setattr(dynamodb_lock.Renewal, "start", lambda _: None)
    settings = dynamodb_settings(s3, locks)
    with table_lock(memory(), clock, SystemIds(), settings.wait_ms, settings) as lock:
        lock.check()


def test_a_table_of_locks_is_needed() -> None:
    settings = WriteOptions.parse({"hoodie.write.lock.provider": "dynamodb"}).locking
    with pytest.raises(InvalidError, match=r"needs hoodie\.write\.lock\.dynamodb\.table"):
        provider_lock(memory(), SystemClock(), SystemIds(), settings)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"hoodie.write.lock.dynamodb.region": "eu central"}, r"'eu central'.*lock\.dynamodb\.region"),
        ({"hoodie.write.lock.dynamodb.endpoint_url": "htp:/x"}, r"endpoint_url=htp:/x is no address"),
        ({"hoodie.write.lock.dynamodb.endpoint_url": "http://h:p"}, r"endpoint_url=http://h:p is no address"),
        ({"hoodie.aws.access.key": "k"}, r"access\.key is given without hoodie\.aws\.secret\.key"),
        ({"hoodie.aws.secret.key": "s"}, r"secret\.key is given without hoodie\.aws\.access\.key"),
        ({"hoodie.aws.session.token": "t"}, r"session\.token is given without hoodie\.aws\.access\.key"),
    ],
)
def test_options_that_make_no_client_are_named(given: dict[str, str], text: str) -> None:
    known = {"hoodie.write.lock.provider": "dynamodb_implicit", "hoodie.write.lock.dynamodb.table": "locks"}
    settings = WriteOptions.parse({**known, **given}).locking
    with pytest.raises(InvalidError, match=text):
        provider_lock(memory(), SystemClock(), SystemIds(), settings)


def test_without_credentials_the_error_says_what_to_set(
    s3: S3Server, locks: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    dynamodb_lock._client.cache_clear()
    given = {**dynamodb_options(s3, locks), "hoodie.aws.access.key": "", "hoodie.aws.secret.key": ""}
    lock = provider_lock(memory(), SystemClock(), SystemIds(), WriteOptions.parse(given).locking)
    dynamodb_lock._client.cache_clear()
    assert lock is not None
    with pytest.raises(InvalidError, match=rf"No credentials .* table {locks}.*Set hoodie\.aws\."):
        lock.try_acquire()
    lock.release()


def test_a_table_with_another_key_is_refused(s3: S3Server, locks: str) -> None:
    dynamodb_client(s3).create_table(
        TableName=locks,
        KeySchema=[{"AttributeName": "other", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "other", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(InvalidError, match=rf"table {locks} .*Name another table in .*dynamodb\.table"):
        lock_of(s3, locks).try_acquire()


def test_without_boto3_the_error_says_what_to_install(
    s3: S3Server, locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb_lock._client.cache_clear()
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InvalidError, match=r"pip install 'drawstring\[dynamodb\]'"):
        provider_lock(memory(), SystemClock(), SystemIds(), dynamodb_settings(s3, locks))
