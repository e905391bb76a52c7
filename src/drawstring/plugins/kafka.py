"""Ingest a Kafka topic.

    checkpoint    topic,0:123,1:456    by partition the offset of the next record, as Hudi's Kafka sources
                                       have it

The sources `kafka-json` and `kafka-avro` are plug-ins. librdkafka (`confluent_kafka`) reads the topic. If the
broker deleted a record before it was read, the source warns or fails. Only the partitions that lack records
go on at their oldest record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import compress
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError, UnavailableError, not_installed
from drawstring.base.resources import EXCHANGE_BYTES_MAX
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.file_sources import ParsedRecords, parse_records
from drawstring.ingestion.source_protocol import (
    BufferedRows,
    InspectedPiece,
    Pieces,
    Reading,
    Source,
    SourceBatch,
    SourceContext,
    SourceProvider,
)
from drawstring.plugins.schema_registry import avro_values

_PIECE_RECORDS: Final = 250_000

Offsets: TypeAlias = Mapping[int, int]
"""By partition the offset of the next record."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of a partition.

    Attributes:
        partition: number of the partition.
        start: offset of the first record.
        stop: offset behind the last one.
    """

    partition: int
    start: int
    stop: int

    @property
    def count(self) -> int:
        """The number of offsets; a topic that is compacted has fewer records."""
        return self.stop - self.start


def checkpoint_text(topic: str, offsets: Offsets) -> str:
    """Return offsets as Hudi's checkpoint."""
    return ",".join([topic, *(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))])


def offsets_of(text: str, topic: str) -> dict[int, int]:
    """Return the offsets of a checkpoint.

    Raises:
        InvalidError: it is none of this topic.
    """
    name, *parts = text.split(",")
    try:
        offsets = {int(partition): int(offset) for partition, offset in (part.split(":") for part in parts)}
    except ValueError:
        offsets = {}
    if name != topic or not offsets:
        raise InvalidError(
            f"The checkpoint {text!r} is none of topic {topic}, as in {topic},0:123,1:456: the rows came from"
            " elsewhere. Give checkpoint, or ignore_checkpoint to begin as auto.offset.reset says."
        )
    return offsets


def ranges_within(start: Offsets, stop: Offsets, limit: int) -> list[OffsetRange]:
    """Return what is read of each partition, evenly and at most so many records.

    Args:
        start: where each partition goes on; a new partition from its beginning.
        stop: where each partition ends.
        limit: largest number of records.
    """
    waiting = {partition: max(0, end - start.get(partition, 0)) for partition, end in sorted(stop.items())}
    taken = dict.fromkeys(waiting, 0)
    rest = min(limit, sum(waiting.values()))
    while rest:
        open_ones = [partition for partition, count in waiting.items() if taken[partition] < count]
        share = max(1, rest // len(open_ones))
        for partition in open_ones[:rest]:
            more = min(share, waiting[partition] - taken[partition])
            taken[partition] += more
            rest -= more
    return [
        OffsetRange(partition, start.get(partition, 0), start.get(partition, 0) + count)
        for partition, count in taken.items()
    ]


def split_ranges(ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return ranges with records as pieces of a size that fits in the memory of a task."""
    return [
        OffsetRange(each.partition, start, min(start + _PIECE_RECORDS, each.stop))
        for each in ranges
        for start in range(each.start, each.stop, _PIECE_RECORDS)
    ]


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
_HUDI_PREFIXES: Final = ("hoodie.", "drawstring.")
_JAVA_SETTINGS: Final = ("key.deserializer", "value.deserializer", "auto.offset.reset", "schema.registry.url")


def client_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the client among options: those that are neither Hudi's nor drawstring's.

    Raises:
        InvalidError: the address of the broker is missing.
    """
    given = {
        key: value
        for key, value in options.items()
        if not key.startswith(_HUDI_PREFIXES) and key not in _JAVA_SETTINGS
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


Decode: TypeAlias = Callable[[Sequence[bytes], Reading, Callable[[int], str]], ParsedRecords]
"""Makes rows of the values of records; told where each is."""

_log: Final = logging.getLogger("drawstring")
_PLACES: Final = pa.schema(
    {
        "_hoodie_kafka_source_offset": pa.int64(),
        "_hoodie_kafka_source_partition": pa.int32(),
        "_hoodie_kafka_source_timestamp": pa.int64(),
        "_hoodie_kafka_source_key": pa.string(),
    }
)


class Reset(StrEnum):
    """Where a topic without a checkpoint begins (`auto.offset.reset`)."""

    LATEST = "latest"
    EARLIEST = "earliest"
    GROUP = "group"


@dataclass(slots=True)
class KafkaSource:
    """Records of a topic.

    Attributes:
        topic: the topic.
        decode: makes rows of records.
        limit: default number of records in a batch.
        reset: where it begins without a checkpoint.
        fails_on_loss: whether records that are gone are an error.
        commits: whether the broker is told what was read.
        appends_offsets: whether rows have columns that say where each record was.
        memory_bytes: bytes of rows that are kept in memory until the columns of all are known.
    """

    topic: KafkaTopic
    decode: Decode
    limit: int
    reset: Reset = Reset.LATEST
    fails_on_loss: bool = False
    commits: bool = False
    appends_offsets: bool = False
    memory_bytes: int = EXCHANGE_BYTES_MAX
    unit: str = "records"
    _began: Offsets | None = field(default=None, init=False)

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        oldest, end = self.topic.bounds()
        is_first = checkpoint is None and self._began is None
        start = self._start(checkpoint, oldest, end)
        ranges = ranges_within({**oldest, **start}, end, self.limit if limit is None else limit)
        size = sum(each.count for each in ranges)
        if not size and not is_first:
            return None
        reached = {**start, **{each.partition: each.stop for each in ranges}}
        left = sum(end.values()) - sum(reached[each] for each in end)
        read = partial(self._read, ranges)
        reader = _RangeReader(self.topic.name, self.topic.settings, self.decode, self.appends_offsets)
        pieces = Pieces(split_ranges(ranges), reader.look, reader.read)
        return SourceBatch(Checkpoint(checkpoint_text(self.topic.name, reached)), size, left, read, pieces)

    def committed(self, checkpoint: Checkpoint) -> None:
        if self.commits:
            self.topic.commit(offsets_of(checkpoint.key, self.topic.name))

    def close(self) -> None:
        self.topic.close()

    def _start(self, checkpoint: Checkpoint | None, oldest: Offsets, end: Offsets) -> Offsets:
        if checkpoint is not None:
            return self._there(offsets_of(checkpoint.key, self.topic.name), oldest, end)
        if self._began is None:
            if self.reset is Reset.EARLIEST:
                self._began = oldest
            else:
                known = self.topic.committed(list(end)) if self.reset is Reset.GROUP else {}
                self._began = {**end, **known}
        return self._began

    def _there(self, offsets: Offsets, oldest: Offsets, end: Offsets) -> Offsets:
        """Return the offsets of a checkpoint, those of records that are gone replaced.

        Raises:
            InvalidError: records are gone, and that is an error.
        """
        lost = {
            each: oldest.get(each, 0)
            for each, offset in offsets.items()
            if not oldest.get(each, 0) <= offset <= end.get(each, -1)
        }
        if not lost:
            return offsets
        message = (
            f"Records of topic {self.topic.name} that were not read yet are gone, in partitions"
            f" {', '.join(map(str, sorted(lost)))}: they were deleted, or the topic was created anew."
        )
        if self.fails_on_loss:
            raise InvalidError(
                f"{message} To go on with those that are there, set"
                " hoodie.streamer.source.kafka.enable.failOnDataLoss=false."
            )
        _log.warning("%s Those that are there are read.", message)
        kept = {each: offset for each, offset in offsets.items() if each in end}
        return {**kept, **{each: offset for each, offset in lost.items() if each in end}}

    def _read(self, ranges: Sequence[OffsetRange], reading: Reading) -> pa.RecordBatchReader:
        held = BufferedRows(self.memory_bytes)
        if any(each.count for each in ranges):
            for messages in self.topic.read(ranges):
                held.add(self.topic.name, self._rows(messages, reading))
        return held.reader(reading.known)

    def _rows(self, messages: list[Any], reading: Reading) -> pa.Table:
        """Return the rows of records, without those that have no value."""
        values = [each.value() for each in messages]
        if None in values:
            messages = [each for each, value in zip(messages, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]

        def place(at: int) -> str:
            return f"{self.topic.name}:{messages[at].partition()}:{messages[at].offset()}"

        parsed = self.decode(values, reading, place)
        if not self.appends_offsets or not parsed.rows.num_rows:
            return parsed.rows
        kept = messages if parsed.kept is None else [messages[at] for at in parsed.kept]
        places = zip(*map(_place_of, kept), strict=True)
        for column, found in zip(_PLACES, places, strict=True):
            rows = parsed.rows.append_column(column, pa.array(found, column.type))
            parsed = ParsedRecords(rows, parsed.kept)
        return parsed.rows


@dataclass(frozen=True, slots=True)
class _RangeReader:
    """Reads ranges of a topic in other processes.

    Attributes:
        topic: name of the topic.
        settings: of the client.
        decode, appends_offsets: see `KafkaSource`.
    """

    topic: str
    settings: Mapping[str, Any]
    decode: Decode
    appends_offsets: bool

    def look(self, item: OffsetRange, reading: Reading) -> InspectedPiece:
        rows = self.read(item, reading)
        return InspectedPiece(self.topic, rows.schema, sum(batch.num_rows for batch in rows))

    def read(self, item: OffsetRange, reading: Reading) -> pa.RecordBatchReader:
        source = KafkaSource(
            KafkaTopic(self.topic, self.settings), self.decode, 0, appends_offsets=self.appends_offsets
        )
        try:
            return source._read([item], reading)
        finally:
            source.close()


def _place_of(message: Any) -> tuple[int, int, int, str | None]:
    key = message.key()
    text = key.decode(errors="replace") if key is not None else None
    return message.offset(), message.partition(), message.timestamp()[1], text


class KafkaJson(SourceProvider):
    """Records that are JSON objects: the source `kafka-json`."""

    def check(self, context: SourceContext) -> object:
        return topic_of(context)

    def make(self, context: SourceContext) -> Source:
        return topic_source(context, parse_records)


class KafkaAvro(SourceProvider):
    """Records in Avro, with a schema registry: the source `kafka-avro`."""

    def check(self, context: SourceContext) -> object:
        return topic_of(context)

    def make(self, context: SourceContext) -> Source:
        return topic_source(context, avro_values(context))


def topic_of(context: SourceContext) -> tuple[str, Reset]:
    """Return the topic that the options name, and where to begin in it.

    Raises:
        InvalidError: they name none, or no such place.
    """
    topic = context.options.kafka_topic
    if not topic:
        raise InvalidError("The source has no topic. Set hoodie.streamer.source.kafka.topic.")
    reset = str(context.given.get("auto.offset.reset", Reset.LATEST)).lower()
    if reset not in list(Reset):
        raise InvalidError(f"auto.offset.reset is {reset!r}. Choose one of {', '.join(Reset)}.")
    return topic, Reset(reset)


def topic_source(context: SourceContext, decode: Decode) -> KafkaSource:
    """Return the source of a topic.

    Args:
        context: what it is made of.
        decode: makes rows of its records.

    Raises:
        InvalidError: an option is missing or wrong, or the client is not installed.
    """
    options, (topic, reset) = context.options, topic_of(context)
    return KafkaSource(
        KafkaTopic(topic, client_settings(context.given)),
        decode,
        options.kafka_max_events,
        reset,
        options.kafka_fails_on_loss,
        options.kafka_commits,
        options.kafka_appends_offsets,
    )
