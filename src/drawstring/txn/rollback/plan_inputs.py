"""Whether what a plan reads is still there: if not, the plan had been completed, and its files are the rows.

A compaction or clustering whose completed file was lost looks like one that a dead process left. While its
inputs are there, it can be run again, or taken back. Once a clean took them, what looks like the files of a
dead attempt is the only copy of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.model.files import BaseFile, FileStatus, join_path
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


def refuse_inputs_gone(
    storage: Storage, config: TableConfig, store: TimelineStore, timeline: Timeline, pending: Instant
) -> None:
    """Refuse to delete what a plan made when what it was made of is gone.

    Args:
        storage: the table's files.
        config: its settings.
        store: reads plans and commits.
        timeline: as it is.
        pending: a compaction, log compaction or clustering with files.

    Raises:
        CorruptTableError: a file that it reads is gone.
    """
    view = table_view(storage, config, timeline, store)
    gone = gone_input(view, timeline, pending, store.read_requested(pending))
    if gone is not None:
        raise CorruptTableError(
            f"{what_is_gone(pending)} Nothing was deleted.", instant=pending.requested, path=gone
        )


def what_is_gone(pending: Instant) -> str:
    """Say what happened, and what to do."""
    return (
        f"the {pending.action} {pending.requested} is pending, with files, but what it reads is gone:"
        " it had been completed, and the file that says so was lost from the timeline, or the table is"
        " damaged. Its files may hold the only copy of their rows: put back from a backup what is missing."
    )


def gone_input(view: FileGroupView, timeline: Timeline, pending: Instant, plan: bytes) -> str | None:
    """Return the path of a file that a plan reads and that is gone, None while it can be run.

    What was replaced since, or has a newer base file, nobody reads any more: a clean may have taken it.

    Args:
        view: of the table.
        timeline: of the table.
        pending: the compaction, log compaction or clustering.
        plan: what it was requested with.
    """
    inputs = _clustered(plan) if pending.action is Action.CLUSTERING else _compacted(plan)
    there = {
        folder: {status.name for status in view.listing.files(folder)}
        for folder in {each.partition for each in inputs}
    }
    for each in inputs:
        gone = next((name for name in each.names if name not in there[each.partition]), None)
        if gone is not None and not _is_past(view, timeline, each):
            return join_path(each.partition, gone)
    return None


@dataclass(frozen=True, slots=True)
class _Input:
    """A file slice that a plan reads: its base file, empty for none, and its log files."""

    partition: str
    file_id: str
    base_file: str
    log_files: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.base_file, *self.log_files) if self.base_file else self.log_files


def _clustered(plan: bytes) -> list[_Input]:
    slices = (each for group in decode_clustering_plan(plan).groups for each in group.slices)
    return [_Input(each.partition, each.file_id, each.base_file, each.log_files) for each in slices]


def _compacted(plan: bytes) -> list[_Input]:
    return [
        _Input(each.partition, each.file_id, each.base_file or "", each.log_files)
        for each in decode_compaction_plan(plan).operations
    ]


def _is_past(view: FileGroupView, timeline: Timeline, needed: _Input) -> bool:
    """Tell whether a file group was replaced, or has a committed base file newer than the one of a plan."""
    if (needed.partition, needed.file_id) in view.replaced_groups():
        return True
    named = BaseFile.parse(FileStatus(needed.base_file, 0)) if needed.base_file else None
    bases = (BaseFile.parse(status) for status in view.listing.files(needed.partition))
    return any(
        base.file_id == needed.file_id
        and base.instant > (named.instant if named else "")
        and timeline.has_completed(base.instant)
        for base in bases
        if base is not None
    )
