"""A Kafka broker for tests, and topics in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from scripts import kafka_broker


@dataclass
class Broker:
    address: str
    _clients: list[Any] = field(default_factory=list)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        from confluent_kafka.admin import NewTopic

        self._admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()

    def send(self, topic: str, values: Sequence[bytes | None], partitions: int = 1) -> None:
        """Send records to the partitions in turn, each with its number as key."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5})
        for at, value in enumerate(values):
            producer.produce(topic, value, key=str(at), partition=at % partitions)
            producer.poll(0)
        producer.flush()

    def drop_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete the records of a partition before an offset, as the broker does with old ones."""
        from confluent_kafka import TopicPartition

        (done,) = self._admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        done.result()

    def committed(self, group: str, topic: str, partition: int) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group})
        found = consumer.committed([TopicPartition(topic, partition)], timeout=60)[0].offset
        consumer.close()
        return int(found)

    @property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if not self._clients:
            self._clients.append(AdminClient({"bootstrap.servers": self.address}))
        return self._clients[0]


@contextmanager
def kafka() -> Iterator[Broker]:
    """Run a broker; without what it needs the test is skipped, visibly."""
    if reason := kafka_broker.reason_not_to_run():
        pytest.skip(reason)
    with kafka_broker.broker() as address:
        yield Broker(address)
