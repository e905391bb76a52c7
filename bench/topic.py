"""A Kafka topic full of records, from a broker on this machine that all peers of the suite of streams read.

The broker is the runner's child, so that its processor time is in no peer's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.scripts.streams import KAFKA, TOPIC
from scripts import kafka_broker

PARTITIONS = 4
POLL_EVERY = 10_000
QUEUE = {"queue.buffering.max.messages": 2_000_000, "queue.buffering.max.kbytes": 1_000_000, "linger.ms": 50}


@contextmanager
def filled(data: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Have the broker run, with all records in the topic, and tell the peers its address.

    Args:
        data: folder with `stream.json`.
        say: is told how it goes, also why no broker can run.
    """
    if reason := kafka_broker.reason_not_to_run():
        say(f"Kafka is left out: {reason}")
        yield
        return
    count = json.loads((data / "stream.json").read_text())["kafka_rows"]
    with kafka_broker.broker() as address:
        say(f"sending {count:,} records to a topic")
        _fill(address, count)
        os.environ[KAFKA] = address
        try:
            yield
        finally:
            del os.environ[KAFKA]


def _fill(address: str, count: int) -> None:
    """Send the records, in turn to the partitions."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": address, **QUEUE})
    for number in range(count):
        record = (
            f'{{"id":"id-{number:09}","part":"p{number % 4}","ts":{number},"amount":{number / 8},'
            f'"note":"note {number} of the topic"}}'
        )
        producer.produce(TOPIC, record, partition=number % PARTITIONS)
        if number % POLL_EVERY == 0:
            producer.flush()
    producer.flush()
