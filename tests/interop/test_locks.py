"""Hudi's own lock providers and ours exclude each other, with the same options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.config.keys.concurrency import HUDI_CLASSES, ProviderName
from drawstring.config.options.write_options import WriteOptions
from drawstring.plugins.dynamodb_lock import DynamoDbLock
from drawstring.storage import open_storage
from drawstring.storage.local import LocalStorage
from drawstring.txn.locks.storage_lock import LEASE_PATH, LeaseLock
from drawstring.txn.locks.table_lock import Lock, provider_lock
from scripts import jdk
from tests.support.contenders import JAVA, Contender, contender
from tests.support.dynamodb import dynamodb_client, dynamodb_settings
from tests.support.referee import NEWEST_JDK, PYTHON, ROOT, bundle
from tests.support.s3_server import S3Server
from tests.support.zookeeper import ZookeeperServer, zookeeper

LEASE_MS = 3000
CLASSES = {provider: name for name, provider in HUDI_CLASSES.items()}


@pytest.fixture(scope="module")
def java() -> str:
    home = jdk.find(newest=NEWEST_JDK)
    if home is None:
        pytest.skip(jdk.advice(newest=NEWEST_JDK))
    if not PYTHON.exists():
        pytest.skip("no .venv-referee: run `make interop`, which makes it")
    return f"{home}/bin/java"


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    with zookeeper() as server:
        yield server


def hudi_class_path() -> str:
    jars = next(PYTHON.parents[1].glob("lib/python3*/site-packages/pyspark/jars"))
    return f"{bundle()}:{jars}/*"


def hudi(
    java: str, options: Mapping[str, str], base: object, more_classes: object = ""
) -> AbstractContextManager[Contender]:
    """Run Hudi's lock provider with some options."""
    given = {**options, "hoodie.base.path": str(base), "hoodie.table.name": "rides"}
    arguments = [f"{key}={value}" for key, value in given.items()]
    class_path = f"{hudi_class_path()}:{more_classes}"
    return contender([java, "-cp", class_path, str(JAVA / "HudiContender.java"), *arguments])


def ours_with(options: Mapping[str, str], base: Path) -> Lock:
    settings = WriteOptions.parse(options).locking
    lock = provider_lock(LocalStorage(str(base)), SystemClock(), SystemIds(), settings)
    assert lock is not None
    return lock


def take_turns(ours: Lock, theirs: Contender) -> None:
    for _ in range(3):
        assert ours.try_acquire()
        assert not theirs.acquire(500)
        ours.check()
        ours.release()
        assert theirs.acquire(10_000)
        assert ours.is_held()
        assert not ours.try_acquire()
        assert ours.holder()
        ours.release()  # a place in the queue, if the lock has one
        theirs.release()
        assert not ours.is_held()


@pytest.mark.parametrize("provider", [ProviderName.ZOOKEEPER, ProviderName.ZOOKEEPER_IMPLICIT])
def test_with_zookeeper(java: str, server: ZookeeperServer, tmp_path: Path, provider: ProviderName) -> None:
    options = server.options(f"/{uuid.uuid4()}/rides", provider=CLASSES[provider])
    with hudi(java, options, tmp_path) as theirs:
        take_turns(ours_with(options, tmp_path), theirs)


def test_with_the_lock_file_of_the_file_system_provider(java: str, tmp_path: Path) -> None:
    options = {
        "hoodie.write.lock.provider": CLASSES[ProviderName.FILE_SYSTEM],
        "hoodie.write.lock.filesystem.expire": "0",
    }
    with hudi(java, options, tmp_path) as theirs:
        take_turns(ours_with(options, tmp_path), theirs)


def test_with_the_lease_on_s3(java: str, s3: S3Server, tmp_path: Path) -> None:
    """Hudi's provider decides; its requests come from a class of ours, since hudi-aws cannot be had."""
    source = str(JAVA / "S3StorageLockClient.java")
    compiler = str(Path(java).with_name("javac"))
    subprocess.run([compiler, "-cp", hudi_class_path(), "-d", str(tmp_path), source], check=True)
    base = f"s3://lake/{uuid.uuid4()}"
    storage = open_storage(base, s3.options)
    ours = LeaseLock(storage, SystemClock(), SystemIds())
    options = {
        "hoodie.write.lock.provider": CLASSES[ProviderName.STORAGE],
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
        "test.endpoint": s3.endpoint,
    }
    with hudi(java, options, base, tmp_path) as theirs:
        take_turns(ours, theirs)
        assert theirs.acquire(0) or theirs.acquire(5000)
        time.sleep(12)  # longer than a lease: they renew it
        assert not ours.try_acquire()
        assert set(json.loads(storage.read(LEASE_PATH))) == {"expired", "validUntil", "owner"}
    began = time.monotonic()
    while not ours.try_acquire():  # they are dead now
        time.sleep(0.2)
        assert time.monotonic() - began < 60
    ours.check()
    ours.release()


@pytest.fixture(scope="module")
def lock_client(java: str) -> str:
    """The class path of AWS's lock client, fetched when this machine does not have it."""
    command = [str(PYTHON), str(ROOT / "scripts/dynamodb_lock_client.py")]
    environment = {**os.environ, "JAVA_HOME": str(Path(java).parents[1])}
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, env=environment)
    if found.returncode:
        pytest.skip("AWS's lock client could not be fetched")
    return found.stdout.splitlines()[-1]


def test_with_dynamodb_and_the_lock_client_of_hudi(java: str, lock_client: str, s3: S3Server) -> None:
    table = f"locks-{uuid.uuid4()}"
    ours = DynamoDbLock(
        dynamodb_client(s3), "rides", SystemClock(), SystemIds(), dynamodb_settings(s3, table), LEASE_MS
    )
    assert not ours.is_held()  # the table is there now
    source = str(JAVA / "LockClientContender.java")
    command = [java, "-cp", lock_client, source, s3.endpoint, table, "rides", str(LEASE_MS)]
    with contender(command) as theirs:
        take_turns(ours, theirs)
        assert theirs.acquire(0)
        end = time.monotonic() + 2 * LEASE_MS / 1000
        while time.monotonic() < end:  # their heartbeats keep it
            assert not ours.try_acquire()
            time.sleep(0.2)
    seconds = 0.0
    while not ours.try_acquire():  # they are dead now
        time.sleep(0.2)
        seconds += 0.2
        assert seconds < 30
    ours.check()
    ours.release()
