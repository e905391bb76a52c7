"""Run a Kafka broker with a topic of records until the input ends. usage: streams_topic.py DATA

Prints the broker's address when all records are there; an empty line where no broker can run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from streams import TOPIC, no_kafka

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts import kafka_broker

PARTITIONS = 4
POLL_EVERY = 10_000
QUEUE = {"queue.buffering.max.messages": 2_000_000, "queue.buffering.max.kbytes": 1_000_000, "linger.ms": 50}


def fill(address: str, count: int) -> None:
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


def main(data: str) -> None:
    """Run the broker."""
    if reason := kafka_broker.reason_not_to_run():
        no_kafka(reason)
        print(flush=True)
        return
    with kafka_broker.broker() as address:
        fill(address, json.loads(Path(data, "stream.json").read_text())["kafka_rows"])
        print(address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
