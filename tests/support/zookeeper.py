"""A ZooKeeper server for tests, and the options that name it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from drawstring.config.keys.concurrency import LockSettings
from drawstring.config.options.write_options import WriteOptions
from scripts import zookeeper_server


@dataclass(frozen=True)
class ZookeeperServer:
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def options(self, path: str, **more: object) -> dict[str, str]:
        """Return the options of Hudi's that name a lock in this server."""
        base_path, _, key = path.rpartition("/")
        named = {
            "provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
            "zookeeper.url": self.url,
            "zookeeper.base_path": base_path,
            "zookeeper.lock_key": key,
            "zookeeper.session_timeout_ms": 2000,
            "wait_time_ms_between_retry": 50,
            **more,
        }
        return {f"hoodie.write.lock.{name}": str(value) for name, value in named.items()}

    def settings(self, path: str, **more: object) -> LockSettings:
        return WriteOptions.parse(self.options(path, **more)).locking


@contextmanager
def zookeeper() -> Iterator[ZookeeperServer]:
    """Run a server; without what it needs the test is skipped, visibly."""
    if reason := zookeeper_server.reason_not_to_run():
        pytest.skip(reason)
    port = zookeeper_server.free_port()
    with zookeeper_server.server(port) as process:
        yield ZookeeperServer(port, process)
