from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

import drawstring
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.config.keys.concurrency import LockSettings
from drawstring.config.options.write_options import WriteOptions
from drawstring.plugins import zookeeper_lock
from drawstring.plugins.zookeeper_lock import ZookeeperLock
from drawstring.testing import context_of
from drawstring.txn.locks.table_lock import Lock, provider_lock, table_lock
from scripts import zookeeper_server
from tests.support.contenders import JAVA, contender
from tests.support.rows import held, rides
from tests.support.storages import memory
from tests.support.zookeeper import ZookeeperServer, zookeeper

HOLDER = """
import json, sys, time
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.config.options.write_options import WriteOptions
from drawstring.storage.memory import MemoryStorage
from drawstring.txn.locks.table_lock import provider_lock

settings = WriteOptions.parse(json.loads(sys.argv[1])).locking
lock = provider_lock(MemoryStorage("memory://t"), SystemClock(), SystemIds(), settings)
print(lock.try_acquire(), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    with zookeeper() as server:
        yield server


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return f"/hudi/{re.sub('[^a-z_]', '', request.node.name)[:60]}"


@pytest.fixture
def settings(server: ZookeeperServer, path: str) -> LockSettings:
    return server.settings(path)


def lock_of(settings: LockSettings) -> Lock:
    lock = provider_lock(memory(), SystemClock(), SystemIds(), settings)
    assert lock is not None
    return lock


def nodes(settings: LockSettings, path: str = "") -> list[str]:
    client = KazooClient(settings.zookeeper_url)
    client.start()
    names: list[str] = client.get_children(
        path or f"{settings.zookeeper_base_path}/{settings.zookeeper_lock_key}"
    )
    client.stop()
    client.close()
    return names


def expire(lock: Lock) -> None:
    """End the session the way the server does: with another client of the same session that says good-bye."""
    assert isinstance(lock, ZookeeperLock)
    assert lock._session is not None
    other = KazooClient(lock._settings.zookeeper_url, client_id=lock._session.client_id)
    other.start()
    other.stop()
    other.close()


def test_one_holds_it_and_the_others_get_it_in_their_order(settings: LockSettings) -> None:
    first, second, third = (lock_of(settings) for _ in range(3))
    assert [lock.try_acquire() for lock in (first, second, third)] == [True, False, False]
    assert first.is_held()
    first.check()
    assert "drawstring, process" in third.holder()
    first.release()
    assert not third.try_acquire()
    assert second.try_acquire()
    second.release()
    assert third.try_acquire()
    third.release()
    assert not third.is_held()
    assert nodes(settings) == []


def test_a_node_is_named_as_curator_names_it(settings: LockSettings) -> None:
    lock = lock_of(settings)
    assert lock.try_acquire()
    (name,) = nodes(settings)
    assert re.fullmatch(r"_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}", name)
    lock.release()


def test_curator_and_we_exclude_each_other(server: ZookeeperServer, path: str) -> None:
    ours = lock_of(server.settings(path))
    source = str(JAVA / "CuratorContender.java")
    with contender(zookeeper_server.java(source, server.url, path)) as curator:
        for _ in range(3):
            assert ours.try_acquire()
            assert not curator.acquire(300)
            ours.release()
            assert curator.acquire(10_000)
            assert not ours.try_acquire()
            curator.release()
            assert ours.try_acquire()
            ours.release()
        assert curator.acquire(10_000)
        assert not ours.try_acquire()  # from now on in the queue, before Curator's next request
        curator.release()
        curator.send("acquire 20000")
        assert ours.try_acquire()
        ours.check()
        ours.release()
        assert curator.answer() == "true"


def test_whoever_gives_up_leaves_the_queue(settings: LockSettings) -> None:
    holder = lock_of(settings)
    assert holder.try_acquire()
    expected = pytest.raises(ConflictError, match=r"Another writer holds the table \(application_id=.*100 ms")
    with expected, table_lock(memory(), SystemClock(), SystemIds(), 100, settings):
        pass
    assert len(nodes(settings)) == 1
    holder.release()


def test_a_lost_session_loses_the_lock(settings: LockSettings) -> None:
    ours, other = lock_of(settings), lock_of(settings)
    assert ours.try_acquire()
    expire(ours)
    with pytest.raises(ConflictError, match="session with ZooKeeper ended"):
        ours.check()
    assert other.try_acquire()
    ours.release()
    other.check()
    other.release()


def test_a_waiter_whose_session_ended_takes_a_new_place(settings: LockSettings) -> None:
    waiter = lock_of(settings)
    holder = lock_of(settings)
    assert holder.try_acquire()
    assert not waiter.try_acquire()
    expire(waiter)
    assert not waiter.try_acquire()
    assert len(nodes(settings)) == 2
    holder.release()
    assert waiter.try_acquire()
    waiter.check()
    waiter.release()


def test_the_lock_of_a_killed_process_ends_with_its_session(server: ZookeeperServer, path: str) -> None:
    command = [sys.executable, "-c", HOLDER, json.dumps(server.options(path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "True\n"
        process.kill()
    wait_ms = 30_000  # half of the time that a session is good for by default
    with table_lock(memory(), SystemClock(), SystemIds(), wait_ms, server.settings(path)) as lock:
        lock.check()


def test_a_server_that_stands_still_for_longer_than_a_session_loses_the_lock(path: str) -> None:
    with zookeeper() as server:
        lock = lock_of(server.settings(path, **{"zookeeper.session_timeout_ms": 1000}))
        assert lock.try_acquire()
        os.kill(server.process.pid, signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # until all its threads have stopped
        with pytest.raises(ConflictError, match="session with ZooKeeper ended"):
            lock.check()
        with pytest.raises(UnavailableError, match="Check that it runs"):
            lock.is_held()
        with pytest.raises(UnavailableError, match="Check that it runs"):
            lock.release()


def test_a_server_that_is_not_there_is_named(path: str) -> None:
    server = ZookeeperServer(zookeeper_server.free_port(), None)  # type: ignore[arg-type]
    short = server.settings(path, **{"zookeeper.connection_timeout_ms": 300})
    with pytest.raises(UnavailableError, match=rf"{server.url} did not answer for 300 ms"):
        lock_of(short).try_acquire()


@pytest.mark.parametrize(("wait_ms", "patience_ms"), [(2000, 2000), (0, 1000), (60_000, 15_000)])
def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_for_the_lock(
    wait_ms: int, patience_ms: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def start(_: KazooClient, timeout: float) -> None:
        waits.append(timeout)
        raise KazooTimeoutError("nobody there")

    monkeypatch.setattr(KazooClient, "start", start)
    given = {
        "provider": "zookeeper",
        "zookeeper.url": "zk",
        "zookeeper.base_path": "/b",
        "zookeeper.port": 77,
    }
    named = {f"hoodie.write.lock.{key}": value for key, value in {**given, "wait_time_ms": wait_ms}.items()}
    settings = replace(WriteOptions.parse(named).locking, zookeeper_lock_key="k")
    text = rf"ZooKeeper at zk:77 did not answer for {patience_ms} ms.*connection_timeout_ms"
    with pytest.raises(UnavailableError, match=text):
        lock_of(settings).try_acquire()
    assert waits == [patience_ms / 1000]


def test_failed_connections_are_told_by_the_error_alone() -> None:
    call = """
import sys
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import UnavailableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.storage.memory import MemoryStorage
from drawstring.txn.locks.table_lock import provider_lock
given = {"provider": "zookeeper_implicit", "zookeeper.url": "127.0.0.1:" + sys.argv[1], "wait_time_ms": 1}
settings = WriteOptions.parse({"hoodie.write.lock." + key: given[key] for key in given}).locking
try:
    provider_lock(MemoryStorage("memory://t"), SystemClock(), SystemIds(), settings).try_acquire()
except UnavailableError as error:
    print("told:", error)
"""
    port = str(zookeeper_server.free_port())
    done = subprocess.run([sys.executable, "-c", call, port], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("told: ZooKeeper at")
    assert done.stderr == ""


def test_a_table_is_written_under_the_lock(server: ZookeeperServer, path: str) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id", name="rides")
    other = lock_of(server.settings(path))
    assert other.try_acquire()
    options = server.options(path, wait_time_ms=50)
    with pytest.raises(ConflictError, match=r"node /hudi/.*wait_time_ms"):
        table.upsert(rows, options=options)
    other.release()
    table.upsert(rows, options=options)
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert nodes(server.settings(path)) == []


def test_the_name_of_the_table_is_the_key_when_none_is_given(server: ZookeeperServer) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id", name="trips")
    settings = server.settings("/base/", **{"zookeeper.lock_key": ""})
    lock = provider_lock(context_of(table).storage, SystemClock(), SystemIds(), settings)
    assert lock is not None
    assert lock.try_acquire()
    assert nodes(settings, "/base") == ["trips"]
    lock.release()


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"provider": "zookeeper"}, r"zookeeper.url and hoodie\.write\.lock\.zookeeper.base_path"),
        ({"provider": "zookeeper", "zookeeper.url": "h"}, "zookeeper.base_path"),
        ({"provider": "zookeeper_implicit"}, "zookeeper.url"),
    ],
)
def test_an_option_that_is_missing_is_named(given: dict[str, str], missing: str) -> None:
    settings = WriteOptions.parse({f"hoodie.write.lock.{key}": value for key, value in given.items()}).locking
    with pytest.raises(InvalidError, match=rf"needs hoodie\.write\.lock\.{missing}"):
        lock_of(settings)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"zookeeper.url": "127.0.0.1:abc"}, "zookeeper.url=127.0.0.1:abc"),
        ({"zookeeper.url": "127.0.0.1:99999"}, "zookeeper.url=127.0.0.1:99999"),
        ({"zookeeper.url": "a,"}, "zookeeper.url=a,"),
        ({"zookeeper.url": ","}, "zookeeper.url=,"),
        ({"zookeeper.url": "a", "zookeeper.port": "99999"}, "zookeeper.port=99999"),
    ],
)
@pytest.mark.parametrize("provider", ["zookeeper", "zookeeper_implicit"])
def test_an_address_that_names_no_server_is_refused(provider: str, given: dict[str, str], named: str) -> None:
    options = {"provider": provider, "zookeeper.base_path": "/b", "zookeeper.lock_key": "k", **given}
    settings = WriteOptions.parse({f"hoodie.write.lock.{key}": options[key] for key in options}).locking
    with pytest.raises(InvalidError, match=rf"hoodie\.write\.lock\.{named} is no"):
        lock_of(settings)


def test_without_kazoo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", None)
    settings = WriteOptions.parse({"hoodie.write.lock.provider": "zookeeper"}).locking
    with pytest.raises(InvalidError, match=r"pip install 'drawstring\[zookeeper\]'"):
        lock_of(settings)


@pytest.mark.parametrize(
    ("url", "port", "servers"),
    [
        ("a,b:1", 2181, "a:2181,b:1"),
        ("a:3/chroot", 2181, "a:3/chroot"),
        ("a, b/deep/root", 77, "a:77,b:77/deep/root"),
    ],
)
def test_servers_without_a_port_get_the_one_of_the_options(url: str, port: int, servers: str) -> None:
    assert zookeeper_lock._servers(url, port) == servers
