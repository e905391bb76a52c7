"""The ZooKeeper providers: the lock of Hudi's, which is Curator's `InterProcessMutex`.

    <base path>/<lock key>/_c_<uuid>-lock-<10 digits>     one ephemeral node for each holder and waiter

The digits count up. Whoever has the node with the lowest ones holds the lock; the others keep their nodes and
look again. A node ends with the session of its process. Curator sorts nodes by the text after the last
`lock-`, and so do we; kazoo's own recipe names its nodes otherwise, so Curator would sort them after all of
its own and not wait for them.

Each lock has a session of its own, from its first request until it is released.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError, not_installed
from drawstring.base.resources import this_process
from drawstring.config.keys.concurrency import LOCK_PROVIDER, LockSettings, ProviderName
from drawstring.plugins.path_hash import address_hash
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_SEPARATOR: Final = "lock-"
_IMPLICIT_KEY: Final = "lock_key"
_PATIENCE_MS_MIN: Final = 1000
"""A connection takes its time, even for a write that does not wait for the lock."""
_log: Final = logging.getLogger("drawstring.zookeeper")
_log.addHandler(logging.NullHandler())  # each failed attempt of kazoo's is a warning; our error says it once


class ZookeeperLock:
    """A place in the queue for one path.

    Args:
        path: of the lock in ZooKeeper.
        ids: names the node.
        settings: servers, timeouts and retries.
    """

    def __init__(self, path: str, ids: Ids, settings: LockSettings) -> None:
        self._path = "/" + "/".join(part for part in path.split("/") if part)
        self._ids = ids
        self._settings = settings
        self._node = ""
        self._session: KazooClient | None = None

    def try_acquire(self) -> bool:
        """Take a place in the queue, if there is none yet, and return whether it is the first.

        Raises:
            UnavailableError: ZooKeeper does not answer.
        """
        try:
            if self._node not in (waiting := self._waiting() if self._node else []):
                self._node = self._enter()  # new, or its session ended while it waited
                waiting = self._waiting()
        except _failures() as error:
            raise self._unavailable(error) from error
        return waiting[:1] == [self._node]

    def is_held(self) -> bool:
        """Return whether any process holds the lock.

        Raises:
            UnavailableError: ZooKeeper does not answer.
        """
        try:
            return bool(self._waiting())
        except _failures() as error:
            raise self._unavailable(error) from error
        finally:
            self._end_unless_waiting()

    def check(self) -> None:
        """Make sure that the session lives and its node is the first.

        Raises:
            ConflictError: the session has ended, or ZooKeeper did not answer for as long as it may live.
        """
        try:
            self._ask(lambda client: client.sync_async(self._path))
            is_first = bool(self._node) and self._waiting()[:1] == [self._node]
        except _failures() as error:
            raise self._lost() from error
        if not is_first:
            raise self._lost()

    def release(self) -> None:
        """Leave the queue, and end the session: with it the node goes, if it cannot be deleted."""
        from kazoo.exceptions import NoNodeError

        node, self._node = self._node, ""
        try:
            if node:
                with suppress(NoNodeError):
                    self._ask(lambda client: client.delete_async(f"{self._path}/{node}"))
        except _failures() as error:
            raise self._unavailable(error) from error
        finally:
            self._end_unless_waiting()

    def holder(self) -> str:
        """Describe the first in the queue, as it described itself."""
        try:
            first = next(iter(self._waiting()), None)
            if first is None:
                return "a process that has just released it"
            data, _ = self._ask(lambda client: client.get_async(f"{self._path}/{first}"))
        except _failures():
            return "a process that ZooKeeper knows"
        finally:
            self._end_unless_waiting()
        return f"{data.decode('utf-8', 'replace')}, node {self._path}/{first} in ZooKeeper"

    def _enter(self) -> str:
        """Create our node, once, even if the answer of ZooKeeper gets lost."""
        from kazoo.exceptions import NoNodeError

        prefix = f"_c_{self._ids.uuid()}-{_SEPARATOR}"
        named = self._settings.application_id or f"drawstring, {this_process()}"
        tried = False

        def create(client: KazooClient) -> Any:
            nonlocal tried
            if tried and (made := [name for name in client.get_children(self._path) if prefix in name]):
                return _Known(f"{self._path}/{made[0]}")
            tried = True
            return client.create_async(
                f"{self._path}/{prefix}", f"application_id={named}".encode(), ephemeral=True, sequence=True
            )

        while True:
            self._ask(lambda client: client.ensure_path_async(self._path))
            with suppress(NoNodeError):  # the last waiter left, and ZooKeeper deleted the empty folder
                return str(self._ask(create)).rpartition("/")[2]

    def _waiting(self) -> list[str]:
        """Return the names of all nodes in the order in which they get the lock."""
        from kazoo.exceptions import NoNodeError

        try:
            names: list[str] = self._ask(lambda client: client.get_children_async(self._path))
        except NoNodeError:
            return []
        return sorted(names, key=_order)

    def _ask(self, request: Callable[[KazooClient], Any]) -> Any:
        """Send a request, again after a lost connection or session, for as long as a session may live."""
        from kazoo.retry import KazooRetry

        settings = self._settings
        alive_seconds = settings.zookeeper_session_ms / 1000
        if not self._node:  # nothing can be lost yet, and nobody waits for longer than was asked for
            alive_seconds = min(alive_seconds, _patience_ms(settings) / 1000)
        retry = KazooRetry(
            max_tries=settings.retries + 1,
            delay=settings.retry_ms / 1000,
            max_delay=settings.retry_ms_max / 1000,
            deadline=alive_seconds,
        )
        if self._session is None:
            self._session = _begin_session(settings)
        client = self._session
        return retry(lambda: request(client).get(timeout=alive_seconds))

    def _end_unless_waiting(self) -> None:
        if self._session is not None and not self._node:
            session, self._session = self._session, None
            with suppress(Exception):
                session.stop()
                session.close()

    def _lost(self) -> ConflictError:
        return ConflictError(
            "The session with ZooKeeper ended, and the table lock with it. Retry the write.", path=self._path
        )

    def _unavailable(self, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"ZooKeeper at {_address(self._settings)} failed ({type(error).__name__}: {error}). Check that it"
            " runs and can be reached, then try again.",
            path=self._path,
        )


class _Known:
    """The answer of a request that had been carried out already."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def get(self, timeout: float) -> str:
        return self._answer


def zookeeper_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> ZookeeperLock:
    """Return the lock at the path that the options name, or that follows from the table's address.

    Raises:
        InvalidError: an option is missing or names no server, or kazoo is not installed.
    """
    _check_installed(settings)
    if settings.known_provider is ProviderName.ZOOKEEPER_IMPLICIT:
        settings.require(zookeeper__url=settings.zookeeper_url)
        _check_servers(settings)
        return ZookeeperLock(f"/tmp/{address_hash(storage.spec.uri)}/{_IMPLICIT_KEY}", ids, settings)
    settings.require(zookeeper__url=settings.zookeeper_url, zookeeper__base_path=settings.zookeeper_base_path)
    _check_servers(settings)
    key = settings.zookeeper_lock_key or load_config(storage).name
    return ZookeeperLock(f"{settings.zookeeper_base_path}/{key}", ids, settings)


def _check_installed(settings: LockSettings) -> None:
    try:
        import kazoo  # noqa: F401
    except ImportError as error:
        raise not_installed(f"{LOCK_PROVIDER}={settings.provider} needs kazoo", "zookeeper") from error


def _check_servers(settings: LockSettings) -> None:
    """Refuse addresses that kazoo cannot take apart, which it does only when it connects."""
    from kazoo.hosts import collect_hosts

    url, port = settings.zookeeper_url, settings.zookeeper_port
    try:
        collect_hosts(_servers("localhost", port))
    except ValueError as error:
        raise InvalidError(
            f"hoodie.write.lock.zookeeper.port={port} is no port. Give one from 1 to 65535."
        ) from error
    try:
        collect_hosts(_servers(url, port))
    except ValueError as error:
        raise InvalidError(
            f"hoodie.write.lock.zookeeper.url={url} is no list of servers ({error}). Give it as"
            " host:port,host:port."
        ) from error


def _order(name: str) -> str:
    """Return what Curator sorts the name of a node by."""
    return name.rpartition(_SEPARATOR)[2]


def _begin_session(settings: LockSettings) -> KazooClient:
    """Return a new session with the servers.

    Raises:
        UnavailableError: no server answered in time.
    """
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import KazooTimeoutError

    pauses = {"delay": settings.retry_ms / 1000, "max_delay": settings.retry_ms_max / 1000}
    client = KazooClient(
        _address(settings),
        timeout=settings.zookeeper_session_ms / 1000,
        connection_retry={"max_tries": -1, **pauses},
        logger=_log,
    )
    wait_ms = min(settings.zookeeper_connection_ms, _patience_ms(settings))
    try:
        client.start(wait_ms / 1000)
    except KazooTimeoutError as error:
        with suppress(Exception):
            client.close()
        raise UnavailableError(
            f"ZooKeeper at {_address(settings)} did not answer for {wait_ms} ms. Check that the servers run"
            " and hoodie.write.lock.zookeeper.url names them; a longer wait needs"
            " hoodie.write.lock.zookeeper.connection_timeout_ms and hoodie.write.lock.wait_time_ms."
        ) from error
    return client


def _patience_ms(settings: LockSettings) -> int:
    """Return how long to wait for ZooKeeper at most before the lock is asked for."""
    return max(settings.wait_ms, _PATIENCE_MS_MIN)


def _address(settings: LockSettings) -> str:
    """Return the servers, each with its port, and the folder that the whole path is below, if any."""
    return _servers(settings.zookeeper_url, settings.zookeeper_port)


def _servers(url: str, port: int) -> str:
    hosts, slash, folder = url.partition("/")
    with_ports = (host.strip() if ":" in host else f"{host.strip()}:{port}" for host in hosts.split(","))
    return ",".join(with_ports) + slash + folder


def _failures() -> tuple[type[Exception], ...]:
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError
    from kazoo.retry import RetryFailedError

    return KazooException, KazooTimeoutError, RetryFailedError
