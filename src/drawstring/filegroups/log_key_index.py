"""Store the key summaries of a slice's log files in the footer of the newest one (RFC-06), and look keys up.

    log files     1 2 3 4 5 6 7 8 9 10 │ 11 12 .. 20 │ 21 22
    footer of 22                                       key summaries of 22 and of 21
                  chain: [20, 19, .. 11], [10, 9, .. 1]

Files that share a footer are a clique. A lookup reads the footer of the newest log file, then the footers
that its chain names, and so gets the key summary of every file. It uses a summary only if name and size of
the file match. For a file of another writer, or of a clique that lost its last file in a compaction or a
rollback, it reads the file's own footer or its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import pyarrow as pa

from drawstring.base.resources import map_in_threads
from drawstring.filegroups.log_scanner import log_error_context, open_log, scan_log
from drawstring.formats.bloom_footer import StoredSummary
from drawstring.formats.log_files import block_deletes, block_rows
from drawstring.formats.log_index import FileRef, LogIndex, LogKeys, Member, read_log_index
from drawstring.formats.log_inline import BlockType, LogBlock
from drawstring.model.files import LogFile
from drawstring.schema.fields import KEY_ALONE, RECORD_KEY
from drawstring.storage.protocol import Storage


def summarise_log(storage: Storage, log: LogFile) -> tuple[StoredSummary, bool]:
    """Return the key summary of a log file without an index, and whether it has blocks besides records.

    The summary includes keys of writes that are not visible: a filter may have false positives.

    Args:
        storage: storage of the table.
        log: the log file; its records have meta columns.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    log_keys = LogKeys()
    is_opaque = False
    with open_log(storage, log) as file:
        for block in scan_log(storage, log, file):
            with log_error_context(log, block.instant):
                keys = _keys(file, block)
            for each in keys or []:
                log_keys.add(each.drop_null())
            is_opaque |= keys is None or bool(block.compacted_instants)
    return log_keys.summary(), is_opaque


def _keys(file: pa.NativeFile, block: LogBlock) -> list[pa.Array] | None:
    """Return the keys of a block; None for a command block or a torn block."""
    if block.kind.is_data:
        batches = list(block_rows(file, block, KEY_ALONE))
        if any(RECORD_KEY not in batch.schema.names for batch in batches):
            return None
        return [batch.column(RECORD_KEY).cast(pa.string()) for batch in batches]
    if block.kind is BlockType.DELETE:
        return [block_deletes(file, block).keys]
    return None


_READS_AT_ONCE: Final = 8


def logs_to_read(
    storage: Storage, logs: Sequence[LogFile], may_hold: Callable[[StoredSummary], bool]
) -> tuple[LogFile, ...]:
    """Return the log files of a slice that must be read to find certain keys.

    Args:
        storage: storage of the table.
        logs: the log files, in merge order.
        may_hold: returns whether a file with this key summary may contain one of the keys.
    """
    known = known_summaries(storage, logs)
    return tuple(log for log in logs if _is_read(known.get(_ref(log)), may_hold))


def known_summaries(storage: Storage, logs: Sequence[LogFile]) -> dict[FileRef, Member]:
    """Return the known key summaries of the log files of a slice; files without a summary are omitted.

    Args:
        storage: storage of the table.
        logs: the log files, in merge order.
    """
    ends = _FooterReader(storage)
    here = {_ref(log): log for log in logs}
    newest = ends.newest(logs)
    if newest is None:
        return {}
    named = [clique[0] for clique in newest[1].chain if clique and clique[0] in here]
    indexes = [newest, *ends.indexes([here[end] for end in named])]
    members = {member.file: member for each in indexes for member in _members(*each) if member.file in here}
    rest = [log for ref, log in here.items() if ref not in members]
    own = [_members(*each)[-1] for each in ends.indexes(rest)]
    return members | {member.file: member for member in own}


def next_index(
    storage: Storage, logs: Sequence[LogFile], name: str, own: StoredSummary, clique_files: int
) -> LogIndex:
    """Return the index that a new log file stores in its footer.

    Log files of other writers become members of its clique: their key summaries are built from their rows.

    Args:
        storage: storage of the table.
        logs: the slice's log files so far, in merge order.
        name: name of the new file.
        own: key summary of the new file.
        clique_files: maximum number of log files in a clique.

    Raises:
        CorruptTableError: a log file is missing or damaged.
    """
    ends = _FooterReader(storage)
    here = {_ref(log): log for log in logs}
    clique: list[Member] = []
    chain: tuple[tuple[FileRef, ...], ...] = ()
    if (newest := ends.newest(logs)) is not None:
        clique = [member for member in _members(*newest) if member.file in here]
        chain = _complete_cliques(newest[1].chain, here)
        covered = {member.file for member in clique} | {ref for each in chain for ref in each}
        if len(clique) >= clique_files:
            chain = (tuple(member.file for member in reversed(clique)), *chain)
            clique = []
    else:
        covered = set()
    clique += [ends.member(log) for ref, log in here.items() if ref not in covered]
    return LogIndex(name, own, tuple(clique), chain)


class _FooterReader:
    """Reads the footers of log files, several in parallel and each once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._read: dict[LogFile, LogIndex | None] = {}

    def newest(self, logs: Sequence[LogFile]) -> tuple[LogFile, LogIndex] | None:
        """Return the newest log file that has an index, usually the last one."""
        found = self.indexes(logs[-1:]) or self.indexes(logs[:-1])
        return found[-1] if found else None

    def indexes(self, logs: Sequence[LogFile]) -> list[tuple[LogFile, LogIndex]]:
        """Return the log files that have an index."""
        new = [log for log in logs if log not in self._read]
        self._read.update(zip(new, map_in_threads(self._index, new, _READS_AT_ONCE), strict=True))
        return [(log, index) for log in logs if (index := self._read[log]) is not None]

    def member(self, log: LogFile) -> Member:
        """Return the key summary of a file from its footer, or else from its rows."""
        for each in self.indexes([log]):
            return _members(*each)[-1]
        return Member(_ref(log), *summarise_log(self._storage, log))

    def _index(self, log: LogFile) -> LogIndex | None:
        with log_error_context(log):
            return read_log_index(self._storage, log.status.path)


def _members(log: LogFile, index: LogIndex) -> tuple[Member, ...]:
    """Return the key summaries that a log file stores: those of earlier files, then its own."""
    return (*index.clique, Member(_ref(log), index.own))


def _complete_cliques(
    chain: Sequence[Sequence[FileRef]], here: Collection[FileRef]
) -> tuple[tuple[FileRef, ...], ...]:
    """Return the cliques whose last file, which stores their summaries, is still in the slice."""
    return tuple(tuple(ref for ref in each if ref in here) for each in chain if each and each[0] in here)


def _is_read(member: Member | None, may_hold: Callable[[StoredSummary], bool]) -> bool:
    return member is None or member.is_opaque or (member.summary.rows > 0 and may_hold(member.summary))


def _ref(log: LogFile) -> FileRef:
    return (log.status.name, log.status.size_bytes)
