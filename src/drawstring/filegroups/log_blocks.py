"""Which blocks of a slice's log files are merged, and in which order (specification: Log Format). Pure.

all blocks, files in order
  - torn stretches, blocks of instants that do not count
  - blocks taken back by a rollback command further on
  - blocks that a log compaction rewrote; its block takes the place of the newest of them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drawstring.filegroups.tasks import InstantRange
from drawstring.formats.log_inline import BlockType, LogBlock
from drawstring.model.files import LogFile


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block and the log file that it is in."""

    file: LogFile
    block: LogBlock

    @property
    def instant(self) -> str:
        """Requested time of the write that made it."""
        return self.block.instant or self.file.instant

    @property
    def holds_records(self) -> bool:
        """Whether it changes records."""
        return self.block.kind.is_data or self.block.kind is BlockType.DELETE


def blocks_to_merge(blocks: Iterable[PlacedBlock], instants: InstantRange) -> list[PlacedBlock]:
    """Return the data and delete blocks that count, in the order of merging.

    Args:
        blocks: all blocks of a slice, file by file.
        instants: which instants count.
    """
    alive: list[PlacedBlock] = []
    for placed in blocks:
        target = placed.block.rolls_back
        if target is not None:
            alive = [each for each in alive if each.instant != target]
        elif placed.holds_records and instants.admits(placed.instant):
            alive.append(placed)
    return _with_log_compactions(alive)


def torn_blocks(blocks: Iterable[PlacedBlock]) -> list[PlacedBlock]:
    """Return the torn stretches that no rollback command further on accounts for.

    Args:
        blocks: all blocks of a slice, file by file.
    """
    torn: list[PlacedBlock] = []
    for placed in blocks:
        if placed.block.rolls_back is not None:
            torn = []
        elif placed.block.kind is BlockType.CORRUPT:
            torn.append(placed)
    return torn


def _with_log_compactions(blocks: list[PlacedBlock]) -> list[PlacedBlock]:
    """Put the blocks of log compactions where the newest block that they rewrote stands."""
    rewritten_by = {
        original: placed.instant
        for placed in reversed(blocks)
        for original in placed.block.compacted_instants
    }
    if not rewritten_by:
        return blocks
    finals = [_final(placed.instant, rewritten_by) for placed in blocks]
    newest_place = {final: place for place, final in enumerate(finals) if final != blocks[place].instant}
    return [
        kept
        for place, (placed, final) in enumerate(zip(blocks, finals, strict=True))
        for kept in _blocks_at(place, placed, final, blocks, newest_place)
    ]


def _blocks_at(
    place: int,
    placed: PlacedBlock,
    final: str,
    blocks: Sequence[PlacedBlock],
    newest_place: Mapping[str, int],
) -> list[PlacedBlock]:
    if newest_place.get(final) == place:
        return [each for each in blocks if each.instant == final]
    return [placed] if final not in newest_place else []


def _final(instant: str, rewritten_by: Mapping[str, str]) -> str:
    """Follow log compactions of log compactions."""
    seen = {instant}
    while (successor := rewritten_by.get(instant)) is not None and successor not in seen:
        seen.add(successor)
        instant = successor
    return instant
