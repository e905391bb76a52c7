"""A Kafka topic, read by librdkafka (`confluent_kafka`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import Any, Final

import numpy as np

from drawstring.base.errors import InvalidError, UnavailableError, not_installed
from drawstring.ingestion.sources.kafka_offsets import OffsetRange

_TIMEOUT_SECONDS: Final = 30.0
_STALLED_SECONDS: Final = 60
"""For how long no record of a range may arrive, though the broker said that there are some."""

_POLL_SECONDS: Final = 1.0
_AT_ONCE: Final = 10_000
"""Fewer messages than librdkafka holds back before it fetches more, so that it never runs dry."""
_CRITICAL: Final = 2
"""Level of the client's own log, which is standard error: many lines a second while no broker answers."""

_FETCH: Final = {"fetch.queue.backoff.ms": 10}
"""How long librdkafka waits once it holds enough: with its own default of a second a reader waits as well."""

_GROUP: Final = "drawstring"
_OURS: Final = ("hoodie.", "drawstring.")
_OF_JAVA: Final = ("key.deserializer", "value.deserializer", "auto.offset.reset", "schema.registry.url")


def client_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the client among options: those that are neither Hudi's nor drawstring's.

    Raises:
        InvalidError: the address of the broker is missing.
    """
    given = {
        key: value for key, value in options.items() if not key.startswith(_OURS) and key not in _OF_JAVA
    }
    if not given.get("bootstrap.servers"):
        raise InvalidError("The source has no broker. Set bootstrap.servers, as in host:9092.")
    quiet = {"log_level": _CRITICAL}
    own = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error"}
    return {"group.id": _GROUP, **quiet, **_FETCH, **given, **own}


class KafkaTopic:
    """A topic.

    Args:
        name: of the topic.
        settings: of the client, by librdkafka's names.

    Raises:
        InvalidError: the client is not installed, or a setting is wrong.
    """

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        try:
            import confluent_kafka
        except ImportError as error:
            raise not_installed("Kafka needs confluent-kafka", "kafka") from error
        self.name = name
        self.settings = settings
        self._kafka: Any = confluent_kafka
        try:
            self._consumer: Any = confluent_kafka.Consumer(dict(settings))
        except confluent_kafka.KafkaException as error:
            raise InvalidError(f"Kafka's client refuses its settings: {error}. Correct them.") from error

    def bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return by partition the offsets of the oldest record and behind the newest one.

        Raises:
            InvalidError: there is no such topic.
            UnavailableError: the broker does not answer.
        """
        with self._answers():
            topic = self._consumer.list_topics(self.name, timeout=_TIMEOUT_SECONDS).topics[self.name]
            if topic.error is not None:
                raise InvalidError(f"Topic {self.name} cannot be read: {topic.error.str()}. Check its name.")
            found = {
                partition: self._consumer.get_watermark_offsets(
                    self._kafka.TopicPartition(self.name, partition), timeout=_TIMEOUT_SECONDS
                )
                for partition in topic.partitions
            }
        return {at: low for at, (low, _) in found.items()}, {at: high for at, (_, high) in found.items()}

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offsets that the consumer group committed; without those of which there are none."""
        with self._answers():
            found = self._consumer.committed(self._at(dict.fromkeys(partitions, 0)), timeout=_TIMEOUT_SECONDS)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets for the consumer group."""
        with self._answers():
            self._consumer.commit(offsets=self._at(offsets), asynchronous=False)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[list[Any]]:
        """Yield the records of ranges, those of a partition in order, many at a time.

        Raises:
            UnavailableError: the broker does not answer, or does not send records that it has.
        """
        stops = {each.partition: each.stop for each in ranges if each.count}
        with self._answers():
            self._consumer.assign(self._at({each.partition: each.start for each in ranges if each.count}))
        idle, rest = 0.0, sum(each.count for each in ranges)
        while stops:
            with self._answers():
                messages = self._consumer.consume(max(1, min(_AT_ONCE, rest)), _POLL_SECONDS)
            rest -= len(messages)
            idle = 0.0 if messages else idle + _POLL_SECONDS
            if idle >= _STALLED_SECONDS:
                raise UnavailableError(
                    f"Partitions {sorted(stops)} of topic {self.name} send nothing. Try again."
                )
            if records := self._within(messages, stops):
                yield records
        self._consumer.unassign()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _within(self, messages: list[Any], stops: dict[int, int]) -> list[Any]:
        """Return the records that are before the stops, and forget partitions that are done."""
        ends: list[Any] = []
        kind = self._kafka.Message
        if any(map(kind.error, messages)):
            ends = [each for each in messages if each.error() is not None]
            messages = [each for each in messages if each.error() is None]
        at = np.fromiter(map(kind.partition, messages), np.int64, len(messages))
        offsets = np.fromiter(map(kind.offset, messages), np.int64, len(messages))
        is_wanted = np.zeros(len(messages), bool)
        reached = {self._end_of(each): each.offset() for each in ends}
        for partition, stop in list(stops.items()):
            of_partition = at == partition
            is_wanted |= of_partition & (offsets < stop)
            seen = 1 + int(offsets[of_partition].max(initial=-1))
            if max(seen, reached.get(partition, 0)) >= stop:
                self._forget(partition, stops)
        return messages if is_wanted.all() else list(compress(messages, is_wanted.tolist()))

    def _end_of(self, message: Any) -> int:
        """Return the partition of which a message tells that there is no more for now.

        Raises:
            UnavailableError: the message tells of an error.
        """
        error = message.error()
        if error.code() != self._kafka.KafkaError._PARTITION_EOF:
            raise UnavailableError(f"Topic {self.name} cannot be read: {error.str()}. Try again.")
        return int(message.partition())

    def _forget(self, partition: int, stops: dict[int, int]) -> None:
        """Read no more of a partition."""
        del stops[partition]
        with self._answers():
            self._consumer.incremental_unassign(self._at({partition: 0}))

    def _at(self, offsets: Mapping[int, int]) -> list[Any]:
        return [self._kafka.TopicPartition(self.name, at, offset) for at, offset in offsets.items()]

    @contextmanager
    def _answers(self) -> Iterator[None]:
        """Translate errors of the client."""
        try:
            yield
        except self._kafka.KafkaException as error:
            told = error.args[0].str() if error.args else error
            raise UnavailableError(
                f"Kafka at {self.settings['bootstrap.servers']} does not answer about topic {self.name}"
                f" ({told}). Check bootstrap.servers and the broker."
            ) from error
