from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock, SystemClock, SystemIds
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError, UnsupportedError
from drawstring.config.keys.concurrency import HUDI_CLASSES, ProviderName
from drawstring.metadata.table import xxh64
from drawstring.plugins.dynamodb_lock import DynamoDbLock
from drawstring.plugins.path_hash import address_hash
from drawstring.plugins.zookeeper_lock import ZookeeperLock
from drawstring.storage.local import LocalStorage
from drawstring.testing import context_of
from drawstring.txn.locks.file_lock import FileLock, HudiFileLock, InProcessLock
from drawstring.txn.locks.storage_lock import LEASE_MS, LEASE_PATH, Lease, LeaseLock
from drawstring.txn.locks.table_lock import provider_lock, table_lock
from tests.support.lock_providers import provided, settings_of
from tests.support.rows import rides
from tests.support.storages import memory

KINDS = {
    ProviderName.IN_PROCESS: InProcessLock,
    ProviderName.FILE_SYSTEM: HudiFileLock,
    ProviderName.STORAGE: LeaseLock,
    ProviderName.ZOOKEEPER: ZookeeperLock,
    ProviderName.ZOOKEEPER_IMPLICIT: ZookeeperLock,
    ProviderName.DYNAMODB: DynamoDbLock,
    ProviderName.DYNAMODB_IMPLICIT: DynamoDbLock,
}
COMPLETE = {
    "zookeeper.url": "localhost",
    "zookeeper.base_path": "/hudi",
    "zookeeper.lock_key": "rides",
    "dynamodb.table": "locks",
    "dynamodb.partition_key": "rides",
}


@pytest.mark.parametrize("name", [*KINDS, *HUDI_CLASSES, "x.StorageBasedLockProvider", "DynamoDB"])
def test_a_provider_has_a_short_name_and_the_name_of_hudi_s_class(name: str, tmp_path: Path) -> None:
    of_its_own = {key: COMPLETE[key] for key in COMPLETE if key.partition(".")[0] in name.lower()}
    settings = settings_of(name, **of_its_own)
    assert settings.known_provider is not None
    assert type(provided(LocalStorage(tmp_path), settings)) is KINDS[settings.known_provider]


def test_every_provider_of_hudi_has_one_of_ours() -> None:
    assert set(HUDI_CLASSES.values()) | {ProviderName.OWN} == set(ProviderName)


@pytest.mark.parametrize("given", ["", "own"])
def test_the_default_is_the_table_s_own_lock(given: str, tmp_path: Path) -> None:
    clock, ids = SystemClock(), SystemIds()
    assert provider_lock(LocalStorage(tmp_path), clock, ids, settings_of(given)) is None
    assert isinstance(provider_lock(memory(), clock, ids, settings_of(given)), LeaseLock)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        (
            "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            UnsupportedError,
            "would not",
        ),
        ("org.apache.hudi.client.transaction.lock.NoopLockProvider", UnsupportedError, "would not"),
        ("consul", InvalidError, "There is no lock provider 'consul'. Use one of dynamodb"),
        ("zookeper", InvalidError, "There is no lock provider 'zookeper'. Did you mean 'zookeeper'?"),
        (
            "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvidr",
            InvalidError,
            "Did you mean 'org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider'?",
        ),
    ],
)
def test_a_provider_that_is_not_there_is_refused_before_anything_is_written(
    name: str, kind: type[Exception], text: str
) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id")
    with pytest.raises(kind, match=text):
        table.upsert(rows, options={"hoodie.write.lock.provider": name})
    assert context_of(table).storage.list_files(".hoodie/timeline") == []


@pytest.mark.parametrize("name", [ProviderName.IN_PROCESS, ProviderName.FILE_SYSTEM, ProviderName.STORAGE])
def test_a_lock_excludes_and_tells_when_it_is_lost(name: str, tmp_path: Path) -> None:
    storage, settings = LocalStorage(tmp_path), settings_of(name)
    first, second = provided(storage, settings), provided(storage, settings)
    assert not first.is_held()
    assert first.try_acquire()
    first.check()
    assert second.is_held()
    assert not second.try_acquire()
    assert second.holder()
    with pytest.raises(ConflictError):
        second.check()
    second.release()
    first.check()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()


@pytest.mark.parametrize("name", [ProviderName.IN_PROCESS, ProviderName.FILE_SYSTEM, ProviderName.STORAGE])
def test_threads_never_hold_a_table_together(name: str, tmp_path: Path) -> None:
    storage, settings = LocalStorage(tmp_path), settings_of(name)
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(5):
            with table_lock(storage, SystemClock(), SystemIds(), 60_000, settings) as lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                lock.check()
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]


def test_on_local_files_the_own_lock_is_held_beside_a_provider_s(tmp_path: Path) -> None:
    storage, settings = LocalStorage(tmp_path), settings_of("file_system")
    with table_lock(storage, SystemClock(), SystemIds(), 0, settings) as lock:
        lock.check()
        assert (tmp_path / ".hoodie/lock").exists()
        expected = pytest.raises(ConflictError, match="Another writer holds the table")
        with expected, table_lock(storage, SteppingClock(), SystemIds(), 10):
            pass
        os.unlink(tmp_path / ".hoodie/.locks/drawstring.lock")
        with pytest.raises(ConflictError, match="lost"):
            lock.check()
    assert not (tmp_path / ".hoodie/lock").exists()


def test_where_files_cannot_be_locked_a_provider_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: FileLock) -> bool:
        raise UnavailableError("The table cannot be locked.")

    monkeypatch.setattr(FileLock, "try_acquire", refuse)
    storage = LocalStorage(tmp_path)
    with table_lock(storage, SystemClock(), SystemIds(), 0, settings_of("storage")) as lock:
        lock.check()
        assert storage.exists(LEASE_PATH)
    expected = pytest.raises(UnavailableError, match="cannot be locked")
    with expected, table_lock(storage, SystemClock(), SystemIds(), 0, settings_of("own")):
        pass


def test_the_lock_file_of_hudi_is_in_the_folder_of_the_options(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "t")
    for folder in (f"{tmp_path}/locks", f"file://{tmp_path}/others"):
        lock = provided(storage, settings_of("file_system", **{"filesystem.path": folder}))
        assert lock.try_acquire()
        assert Path(folder.removeprefix("file://"), "lock").exists()
        lock.release()


def test_an_empty_lock_file_of_the_jvm_is_respected_until_it_expires(tmp_path: Path) -> None:
    storage, clock = LocalStorage(tmp_path), SystemClock()
    path = tmp_path / ".hoodie/lock"
    path.parent.mkdir()
    path.touch()
    for_ever = provided(storage, settings_of("file_system"))
    expiring = provided(storage, settings_of("file_system", **{"filesystem.expire": 1}))
    assert not for_ever.try_acquire()
    assert not expiring.try_acquire()
    assert "left no name, by the file" in expiring.holder()
    old = clock.now_ms() / 1000 - 61
    os.utime(path, (old, old))
    assert for_ever.is_held()
    assert not for_ever.try_acquire()
    assert expiring.try_acquire()
    expiring.check()
    assert [each.name for each in path.parent.iterdir()] == ["lock"]
    expiring.release()


def test_a_lock_file_that_the_jvm_deleted_or_replaced_is_lost_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".hoodie/lock"
    lock = provided(LocalStorage(tmp_path), settings_of("file_system"))
    assert lock.try_acquire()
    path.unlink()
    with pytest.raises(ConflictError, match="deleted or replaced"):
        lock.check()
    path.touch()
    with pytest.raises(ConflictError, match="deleted or replaced"):
        lock.check()
    lock.release()
    assert path.exists()


def test_a_lock_file_needs_a_file_system() -> None:
    with pytest.raises(InvalidError, match=r"in an object store\. Use the provider storage"):
        provided(memory(), settings_of("file_system"))


@pytest.mark.parametrize(
    ("given", "valid_ms"),
    [
        ({"storage.validity.timeout.secs": 300}, 300_000),
        ({"storage.heartbeat.poll.secs": 30}, 300_000),
        ({"storage.validity.timeout.secs": 100, "storage.renew.interval.secs": 5}, 100_000),
        ({}, LEASE_MS),
    ],
)
def test_options_set_the_validity_of_a_lease(given: dict[str, int], valid_ms: int) -> None:
    storage, clock = memory(), SteppingClock(step_ms=0)
    lock = provided(storage, settings_of("storage", **given), clock)
    assert lock.try_acquire()
    assert Lease.decode(storage.read(LEASE_PATH)).valid_until_ms == clock.now_ms() + valid_ms
    lock.release()


def test_addresses_are_hashed_as_hudi_hashes_them() -> None:
    # What ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath of Hudi 1.2.0 returns, below /tmp.
    assert address_hash("/tmp/t") == "FB88BAF128102D93"
    assert address_hash("s3://bucket/lake/rides") == "876872787E77E0F0"
    long = "a-rather-long-path/that/has/more/than/thirty-two/bytes"
    assert address_hash(f"s3a://b/{long}") == address_hash(f"s3://b/{long}") == "6B714E10EB72A97E"
    assert address_hash("é") == "2D46439220E9B5D2"
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
