"""A Hive metastore for tests: the one whose jars PySpark has, with a Derby database in a folder."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from scripts import jdk

_OPENS = ("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent")
_SITE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/db;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "hive.async.log.enabled": "false",
}


@contextmanager
def running_metastore(folder: Path) -> Iterator[str]:
    """Start a metastore with its files in a folder, and yield its address."""
    properties = "".join(
        f"<property><name>{name}</name><value>{value.format(folder=folder)}</value></property>"
        for name, value in _SITE.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [f"{jdk.find()}/bin/java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]
    command += [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENS]
    command += [
        "-cp",
        f"{folder}:{jars}/*",
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        "-p",
        str(port),
    ]
    log = folder / "metastore.log"
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=folder, stdout=output, stderr=output) as process,
    ):
        try:
            _wait(port, process, log)
            yield f"thrift://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The metastore did not start: {log.read_text()[-4000:]}")
