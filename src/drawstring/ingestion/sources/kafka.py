"""A Kafka topic as a source.

    checkpoint    topic,0:123,1:456, as Hudi's Kafka sources have it

A record that the broker deleted before it was read is a warning, or an error; only the partitions that lack
records go on at the oldest one that is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from drawstring.base.bounds import EXCHANGE_BYTES_MAX
from drawstring.base.errors import InvalidError
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.sources.columns import HeldRows
from drawstring.ingestion.sources.json_rows import ParsedRecords
from drawstring.ingestion.sources.kafka_client import KafkaTopic
from drawstring.ingestion.sources.kafka_offsets import (
    OffsetRange,
    Offsets,
    checkpoint_text,
    divided,
    offsets_of,
    ranges_within,
)
from drawstring.ingestion.sources.protocol import Found, Pieces, Reading, SourceBatch

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
        pieces = Pieces(divided(ranges), reader.look, reader.read)
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
        held = HeldRows(self.memory_bytes)
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

    def look(self, item: OffsetRange, reading: Reading) -> Found:
        rows = self.read(item, reading)
        return Found(self.topic, rows.schema, sum(batch.num_rows for batch in rows))

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
