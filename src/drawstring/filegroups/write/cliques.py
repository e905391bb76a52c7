r"""Cliques: what the log files of a slice tell of their keys, and what the next one is going to tell.

    log files     1 2 3 4 5 6 7 8 9 10 │ 11 12 .. 20 │ 21 22
    told by 22                                         its own keys, those of 21 beside them
            22    chain: [20, 19, .. 11], [10, 9, .. 1]

A look at a slice reads the end of its newest log file, then the ends that its chain names, and knows the
keys of every file. Only what is told of a file by name and size counts: a file of another writer, or one
whose clique lost its last file in a compaction or a rollback, tells for itself or is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from drawstring.base.threads import at_once
from drawstring.filegroups.read.log_records import about_log
from drawstring.filegroups.write.log_summary import summarise_log
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.formats.log_index import FileRef, LogIndex, Member, read_log_index
from drawstring.model.files import LogFile
from drawstring.storage.protocol import Storage

_READS_AT_ONCE: Final = 8


def logs_to_read(
    storage: Storage, logs: Sequence[LogFile], may_hold: Callable[[StoredSummary], bool]
) -> tuple[LogFile, ...]:
    """Return the log files of a slice that have to be read to find some keys.

    Args:
        storage: the table's files.
        logs: the log files, in merge order.
        may_hold: tells whether a file with such keys may have one of those looked for.
    """
    known = known_members(storage, logs)
    return tuple(log for log in logs if _is_read(known.get(_ref(log)), may_hold))


def known_members(storage: Storage, logs: Sequence[LogFile]) -> dict[FileRef, Member]:
    """Return what is told of the log files of a slice; those that nothing is told of are missing.

    Args:
        storage: the table's files.
        logs: the log files, in merge order.
    """
    ends = _Ends(storage)
    here = {_ref(log): log for log in logs}
    newest = ends.newest(logs)
    if newest is None:
        return {}
    named = [clique[0] for clique in newest[1].chain if clique and clique[0] in here]
    told = [newest, *ends.indexes([here[end] for end in named])]
    members = {member.file: member for each in told for member in _members(*each) if member.file in here}
    rest = [log for ref, log in here.items() if ref not in members]
    own = [_members(*each)[-1] for each in ends.indexes(rest)]
    return members | {member.file: member for member in own}


def next_index(
    storage: Storage, logs: Sequence[LogFile], name: str, own: StoredSummary, clique_files: int
) -> LogIndex:
    """Return what a new log file is going to tell.

    Log files of other writers become members of its clique: their keys are worked out from their rows.

    Args:
        storage: the table's files.
        logs: the slice's log files so far, in merge order.
        name: of the new file.
        own: its keys.
        clique_files: log files of a clique.

    Raises:
        CorruptTableError: a log file is gone or damaged.
    """
    ends = _Ends(storage)
    here = {_ref(log): log for log in logs}
    clique: list[Member] = []
    chain: tuple[tuple[FileRef, ...], ...] = ()
    if (newest := ends.newest(logs)) is not None:
        clique = [member for member in _members(*newest) if member.file in here]
        chain = _still_there(newest[1].chain, here)
        covered = {member.file for member in clique} | {ref for each in chain for ref in each}
        if len(clique) >= clique_files:
            chain = (tuple(member.file for member in reversed(clique)), *chain)
            clique = []
    else:
        covered = set()
    clique += [ends.member(log) for ref, log in here.items() if ref not in covered]
    return LogIndex(name, own, tuple(clique), chain)


class _Ends:
    """Reads the ends of log files, several at once and each once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read: dict[LogFile, LogIndex | None] = {}

    def newest(self, logs: Sequence[LogFile]) -> tuple[LogFile, LogIndex] | None:
        """Return the newest log file that has an index; most often it is the last one."""
        found = self.indexes(logs[-1:]) or self.indexes(logs[:-1])
        return found[-1] if found else None

    def indexes(self, logs: Sequence[LogFile]) -> list[tuple[LogFile, LogIndex]]:
        """Return the log files that have an index."""
        new = [log for log in logs if log not in self._read]
        self._read.update(zip(new, at_once(self._index, new, _READS_AT_ONCE), strict=True))
        return [(log, index) for log in logs if (index := self._read[log]) is not None]

    def member(self, log: LogFile) -> Member:
        """Return what a file tells of itself, else what its rows do."""
        for each in self.indexes([log]):
            return _members(*each)[-1]
        return Member(_ref(log), *summarise_log(self._storage, log))

    def _index(self, log: LogFile) -> LogIndex | None:
        with about_log(log):
            return read_log_index(self._storage, log.status.path)


def _members(log: LogFile, index: LogIndex) -> tuple[Member, ...]:
    """Return what a log file tells of itself and the files before it, itself last."""
    return (*index.clique, Member(_ref(log), index.own))


def _still_there(
    chain: Sequence[Sequence[FileRef]], here: Collection[FileRef]
) -> tuple[tuple[FileRef, ...], ...]:
    """Return the cliques whose last file, which tells of them, was neither compacted nor rolled back."""
    return tuple(tuple(ref for ref in each if ref in here) for each in chain if each and each[0] in here)


def _is_read(member: Member | None, may_hold: Callable[[StoredSummary], bool]) -> bool:
    return member is None or member.is_opaque or (member.summary.rows > 0 and may_hold(member.summary))


def _ref(log: LogFile) -> FileRef:
    return (log.status.name, log.status.size_bytes)
