"""Which blocks of a slice's log files are merged, and in which order (specification: Log Format). Pure.

all blocks, files in order
  - torn stretches, blocks of instants that do not count
  - blocks taken back by a rollback command further on
  - blocks that a log compaction rewrote; its block takes the place of the newest of them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drawstring.filegroups.read.tasks import InstantRange
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
    rolled_back: set[str] = set()
    alive: list[PlacedBlock] = []
    for placed in reversed(list(blocks)):
        target = placed.block.rolls_back
        if target is not None:
            rolled_back.add(target)
        elif placed.holds_records and placed.instant not in rolled_back and instants.admits(placed.instant):
            alive.append(placed)
    return _with_log_compactions(alive[::-1])


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
    finals = _finals(blocks, rewritten_by)
    newest_place = {final: place for place, final in enumerate(finals) if final != blocks[place].instant}
    by_instant: dict[str, list[PlacedBlock]] = {}
    for placed in blocks:
        by_instant.setdefault(placed.instant, []).append(placed)
    merged: list[PlacedBlock] = []
    for place, (placed, final) in enumerate(zip(blocks, finals, strict=True)):
        if newest_place.get(final) == place:
            merged += by_instant.get(final, ())
        elif final not in newest_place:
            merged.append(placed)
    return merged


def _finals(blocks: Sequence[PlacedBlock], rewritten_by: Mapping[str, str]) -> list[str]:
    """Return the instant whose blocks stand for each block, following log compactions of log compactions."""
    known: dict[str, str] = {}
    for placed in blocks:
        instant: str | None = placed.instant
        path: dict[str, None] = {}
        while instant is not None and instant not in known and instant not in path:
            path[instant] = None
            instant = rewritten_by.get(instant)
        last = next(reversed(path), placed.instant)
        known |= dict.fromkeys(path, last if instant is None else known.get(instant, last))
    return [known[placed.instant] for placed in blocks]
