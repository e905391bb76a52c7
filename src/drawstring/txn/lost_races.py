"""Messages about lost races: which instant of another writer is in conflict with which one of ours, and why.

The commit T2 of another writer was committed (upsert) while this write, T1, ran, and conflicts with it:
both changed the same file groups: rome/8c1f... Nothing of this write was committed. Write again, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import LostRaceError, OutrunError
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY
from drawstring.metadata.partitions import FILES, PARTITIONS_KEY
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Action, Instant
from drawstring.timeline.properties_store import PROPERTIES_PATH
from drawstring.timeline.timeline import Timeline
from drawstring.txn.reach import Groups, shown
from drawstring.txn.told import another_writer, told_commit
from drawstring.txn.transaction import LockedTable
from drawstring.txn.undone import undoing

_OF_WRITES: Final = frozenset((FILES, "record_index"))
"""Partitions of the metadata table that writes build."""

_SHOWN: Final = 5
"""How many instants a message names."""

_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_AGAIN: Final = f"Write again, or let writes run again more often with {_RETRIES}."
_AFTER_CLUSTERING: Final = (
    "Write again when the clustering is done: wait for the process that runs it, or run it if none does"
    f" (cluster). With {_RETRIES} a write waits for it."
)


@dataclass(frozen=True, slots=True)
class Clash:
    """Why a write is in conflict with another one.

    Attributes:
        why: the reason; with file groups, an introduction to their names.
        groups: the file groups concerned.
        by_services: whether there would be none without a clean or an archiver.
    """

    why: str
    groups: Groups = frozenset()
    by_services: bool = False

    def __str__(self) -> str:
        return f"{self.why}: {shown(self.groups)}" if self.groups else self.why


def rolled_back(locked: LockedTable, now: Timeline, own: str) -> LostRaceError:
    """Return the error of a write whose instant is gone from the timeline.

    Args:
        locked: the table.
        now: its timeline.
        own: requested time of the write.
    """
    undo = undoing(locked.store, now, own)
    how = "which left no instant" if undo is None else f"by the {undo.action} {undo.requested}"
    return LostRaceError(
        f"Another process rolled this write back, {own}, while it ran ({how}). It found"
        " the heartbeat of this write expired, because this process stood still for too long or the clocks of"
        " the two machines differ by minutes, or it does not look at heartbeats, as hudi-rs. Nothing of this"
        " write was committed. Write again.",
        instant=own,
    )


def files_deleted(began: Timeline, now: Timeline, own: str) -> OutrunError:
    """Return the error of a write that did not find files which it was to read.

    Args:
        began: the timeline with which the write began.
        now: the current one.
        own: requested time of the write.
    """
    since = [each for each in now.instants if each not in began.instants and each.requested != own]
    names = ", ".join(f"the {each.action} {each.requested}" for each in since[-_SHOWN:])
    return OutrunError(
        f"Others deleted files that this write, {own}, was to read, as a clean does; since it began, others"
        f" put on the timeline: {names}. Nothing of this write was committed. Write again.",
        instant=own,
    )


def other_first_write(own: str, first: Instant, metadata: CommitMetadata, why: str) -> LostRaceError:
    """Return the error of a first write that does not fit the first write of somebody else.

    Args:
        own: requested time of the write.
        first: the one that was committed.
        metadata: of that one.
        why: what does not fit.
    """
    return LostRaceError(
        f"{told_commit(first, metadata)} was committed while this write, {own}, ran, with files in"
        f" {shown(metadata.touched)}, and the table was empty before. They do not fit: {why} Nothing of"
        " this write was committed. Give all writers the same options, and write again.",
        instant=first.requested,
    )


def schema_race(own: str, other: Instant | None, metadata: CommitMetadata | None) -> OutrunError:
    """Return the error of a write that changes the schema as another one did meanwhile.

    Args:
        own: requested time of the write.
        other: the one that changed the schema; None if that is not known.
        metadata: of that one.
    """
    which, where = "Another writer", ""
    if other is not None and metadata is not None:
        which, where = told_commit(other, metadata), f" It wrote to {shown(metadata.touched)}."
    return OutrunError(
        f"{which} changed the schema of the table while this write, {own}, which changes it too, ran.{where}"
        " Nothing of this write was committed. Write again.",
        instant=own if other is None else other.requested,
    )


def changed_properties(began: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the keys of properties that changed in a way that matters to a write that is under way.

    Other writers build the metadata table, with the record index that a write asks for, or switch it off: a
    commit keeps what is there then.

    Args:
        began: the properties with which the write began.
        now: the current ones.
    """
    before, after = ({key: _significant(key, text) for key, text in each.items()} for each in (began, now))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _significant(key: str, text: str) -> object:
    """Return what of a property matters to a write; None for what does not count."""
    if key == DEFINITIONS_KEY:
        return None
    return frozenset(text.split(",")) - _OF_WRITES or None if key == PARTITIONS_KEY else text


def properties_race(own: str, began: Mapping[str, str], now: Mapping[str, str], who: str) -> OutrunError:
    """Return the error of a write while which the properties of the table changed.

    Args:
        own: requested time of the write.
        began: the properties with which it began.
        now: the current ones.
        who: the process that changed them; empty if the file does not tell.
    """
    names = ", ".join(changed_properties(began, now))
    return OutrunError(
        f"Another process{f' ({who})' if who else ''} changed the properties of the table ({names}) while"
        f" this write, {own}, ran. Nothing of this write was committed. Write again.",
        instant=own,
        path=PROPERTIES_PATH,
    )


def lost_race(
    own: str, other: Instant, what: str, clash: Clash, metadata: CommitMetadata | None = None
) -> LostRaceError:
    """Return the error of a write that may not commit because of another instant.

    Args:
        own: requested time of the write.
        other: the instant of another writer.
        what: what became of that instant.
        clash: why that is a conflict.
        metadata: of that instant, if it was committed.
    """
    which = f"The {other.action} {other.requested} of another writer"
    return _lost(own, other, f"{told_commit(other, metadata) if metadata else which} {what}", clash, _AGAIN)


def lost_to_plan(own: str, plan: Instant, groups: Groups, who: str) -> LostRaceError:
    """Return the error of a write that may not commit because others are about to rewrite its file groups.

    Args:
        own: requested time of the write.
        plan: a pending compaction or clustering that was planned since the write began.
        groups: the file groups in the plan and the write.
        who: the process that runs the plan; empty if none does.
    """
    runner = f", which {who} runs," if who else ""
    which = f"The {plan.action} {plan.requested} of another writer{runner} was planned"
    clash = Clash("it is going to rewrite file groups that this write changed", groups)
    # A compaction does not keep a new attempt from writing, as a clustering does.
    advice = _AFTER_CLUSTERING if plan.action is Action.CLUSTERING else _AGAIN
    return _lost(own, plan, which, clash, advice)


def lost_to_clustering(locked: LockedTable, requested: str, groups: Groups) -> LostRaceError:
    """Return the error of a write that was to end a clustering, which has completed meanwhile.

    Args:
        locked: the table.
        requested: requested time of the clustering.
        groups: the file groups in its plan and the write.
    """
    done = locked.store.load().write_at(requested)
    who = another_writer(locked.store.commit_metadata(done)) if done else "another process"
    return LostRaceError(
        f"The clustering {requested} of {who} has completed meanwhile and replaced file groups that this"
        f" write changed: {shown(groups)}. Nothing of this write was committed. Write again.",
        instant=requested,
    )


def _lost(own: str, other: Instant, what: str, clash: Clash, advice: str) -> LostRaceError:
    kind = OutrunError if clash.by_services else LostRaceError
    return kind(
        f"{what} while this write, {own}, ran, and conflicts with it: {clash}. Nothing of this write was"
        f" committed. {advice}",
        instant=other.requested,
    )
