"""Run a ZooKeeper server for tests, on the loopback device: `python scripts/zookeeper_server.py [PORT]`.

PySpark brings ZooKeeper's jars along, with all that a server needs, so nothing has to be fetched. Prints the
port once the server answers, and runs until it is killed. Needs a JDK.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts import jdk

MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
TICK_MS = 200
"""Sessions may be as short as two ticks."""

START_SECONDS = 60


def jars() -> Path | None:
    """Return the folder of PySpark's jars, None without PySpark."""
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    return folder if folder and any(folder.glob("zookeeper-3*.jar")) else None


def reason_not_to_run() -> str | None:
    """Say what is missing; None if a server can run."""
    if jdk.find() is None:
        return jdk.advice()
    return None if jars() else "no ZooKeeper: PySpark, which brings it along, is not installed"


def java(*arguments: str) -> list[str]:
    """Return the command line of a Java program with PySpark's jars."""
    home, folder = jdk.find(), jars()
    assert home and folder, reason_not_to_run()
    return [f"{home}/bin/java", "-Xmx128m", "-cp", f"{folder}/*", *arguments]


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server with an empty store."""
    with tempfile.TemporaryDirectory(prefix="zookeeper-") as folder:
        settings = {
            "dataDir": folder,
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": TICK_MS,
            "minSessionTimeout": 2 * TICK_MS,
            "maxSessionTimeout": 60_000,
            "admin.enableServer": "false",
        }
        config = Path(folder) / "zoo.cfg"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(java(MAIN, str(config)), stdout=log, stderr=log, cwd=folder)
        with process:
            try:
                _wait_for(process, port)
                yield process
            finally:
                process.kill()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"srvr")
            if b"Mode: standalone" in connection.makefile("rb").read():
                return
        time.sleep(0.1)
    raise RuntimeError("ZooKeeper did not start")


def main() -> int:
    """Run the command line."""
    if reason := reason_not_to_run():
        print(reason, file=sys.stderr)
        return 1
    port = int(sys.argv[1]) if len(sys.argv) > 1 else free_port()
    with server(port) as process:
        print(port, flush=True)
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
