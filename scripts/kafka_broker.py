"""Install and run a Kafka broker for tests, on the loopback device.

    python scripts/kafka_broker.py install   # the jars, by the resolver inside PySpark, unless they are there
    python scripts/kafka_broker.py           # run it; prints its address

Needs a JDK 17 or later.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts import jdk

VERSION = "4.2.0"
COORDINATES = f"org.apache.kafka:kafka_2.13:{VERSION}"
FOLDER = Path(__file__).parents[1] / ".tools" / "kafka"
MADE_FROM = FOLDER / "made-from"
START_SECONDS = 120


def reason_not_to_run() -> str | None:
    """Say what is missing; None if a broker can run."""
    if jdk.find() is None:
        return jdk.advice()
    if find_spec("confluent_kafka") is None:
        return "no Kafka client: pip install confluent-kafka"
    return None if MADE_FROM.exists() else "no Kafka: run python scripts/kafka_broker.py install"


def install() -> int:
    """Fetch the jars unless they are there; a failure is told and leaves nothing."""
    if jdk.find() is None or (MADE_FROM.exists() and MADE_FROM.read_text() == COORDINATES):
        return 0
    print("setup: Kafka into .tools/kafka")
    shutil.rmtree(FOLDER, ignore_errors=True)
    command = [sys.executable, __file__, "fetch"]
    fetched = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if fetched.returncode:
        last = (fetched.stdout.strip().splitlines() or ["no message"])[-1]
        print(f"Kafka could not be fetched, so that its tests are skipped: {last}", file=sys.stderr)
        shutil.rmtree(FOLDER, ignore_errors=True)
        return 0
    MADE_FROM.write_text(COORDINATES)
    return 0


def _fetch() -> int:
    """Let the resolver that spark-submit uses for --packages put the jars into the folder."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    os.environ["JAVA_HOME"] = str(jdk.find())
    gateway = launch_gateway(SparkConf())
    try:
        resolver = gateway.jvm.org.apache.spark.util.MavenUtils
        option, out = gateway.jvm.scala.Option, gateway.jvm.java.lang.System.err
        settings = resolver.buildIvySettings(option.apply(None), option.apply(str(FOLDER)), True, out)
        exclusions = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
        resolver.resolveMavenCoordinates(
            COORDINATES, settings, option.apply(None), True, exclusions, False, out
        )
    finally:
        gateway.shutdown()
    return 0


def _class_path() -> str:
    """Return the jars, and Scala's library, which the resolver leaves out because Spark has it."""
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    scala = next((Path(spark.origin).parent / "jars").glob("scala-library-2.13*.jar"))
    return f"{FOLDER}/jars/*:{scala}"


def _java(*arguments: str) -> list[str]:
    flags = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [f"{jdk.find()}/bin/java", *flags, "-cp", _class_path(), *arguments]


def _free_ports(count: int) -> list[int]:
    listeners = [socket.socket() for _ in range(count)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


@contextmanager
def broker() -> Iterator[str]:
    """Run a broker with no topics; yields its address."""
    port, controller = _free_ports(2)
    with tempfile.TemporaryDirectory(prefix="kafka-") as folder:
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": f"{folder}/data",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        config = Path(folder) / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        log = Path(folder) / "log"
        with log.open("w") as output:
            told = {"stdout": output, "stderr": output, "cwd": folder}
            command = _java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(config))
            subprocess.run(command, check=True, **told)
            process = subprocess.Popen(_java("kafka.Kafka", str(config)), **told)
        with process:
            try:
                _wait_for(process, port, log)
                yield f"127.0.0.1:{port}"
            finally:
                process.kill()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    deadline = time.monotonic() + START_SECONDS
    client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if client.list_topics(timeout=1).brokers:
                return
        except KafkaException:
            time.sleep(0.1)
    raise RuntimeError(f"Kafka did not start: {log.read_text()[-4000:]}")


def main(arguments: list[str]) -> int:
    """Run the command line."""
    if arguments == ["install"]:
        return install()
    if arguments == ["fetch"]:
        return _fetch()
    if reason := reason_not_to_run():
        print(reason, file=sys.stderr)
        return 1
    with broker() as address:
        print(address, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
