"""Offsets of a Kafka topic, as checkpoints and as ranges to read.

checkpoint    topic,0:123,1:456    by partition the offset of the next record
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from drawstring.base.errors import InvalidError

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


def divided(ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return ranges with records as pieces of a size that fits in the memory of a task."""
    return [
        OffsetRange(each.partition, start, min(start + _PIECE_RECORDS, each.stop))
        for each in ranges
        for start in range(each.start, each.stop, _PIECE_RECORDS)
    ]
