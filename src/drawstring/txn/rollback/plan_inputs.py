"""The check that the inputs of a pending plan still exist before files of its attempt are deleted.

A compaction or clustering whose completed file was lost looks like one whose process died. While its inputs
exist, it can be run again or unscheduled. Once a clean has deleted them, the files of the seemingly dead
attempt are the only copy of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.model.files import BaseFile, FileStatus, join_path
from drawstring.model.instant import PLANNED_ACTIONS, Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


def refuse_inputs_gone(
    storage: Storage, config: TableConfig, store: TimelineStore, timeline: Timeline, pending: Instant
) -> None:
    """Refuse to delete the output of a plan whose inputs are gone.

    Args:
        storage: the table's files.
        config: the table's settings.
        store: reads plans and commit metadata.
        timeline: the current timeline.
        pending: a compaction, log compaction or clustering with files.

    Raises:
        CorruptTableError: an input file is gone.
    """
    view = table_view(storage, config, timeline, store)
    missing = gone_input(view, timeline, pending, store.read_requested(pending))
    if missing is not None:
        raise CorruptTableError(
            f"{what_is_gone(pending)} Nothing was deleted.", instant=pending.requested, path=missing
        )


def what_is_gone(pending: Instant) -> str:
    """Say what happened and what to do, for an error message."""
    return (
        f"The {pending.action} {pending.requested} is pending, with files, but its input files are gone:"
        " either it had been completed and its completed file was lost from the timeline, or the table is"
        " damaged."
        " Its files may hold the only copy of their rows. Put what is missing back from a backup."
    )


def planned_inputs(store: TimelineStore, timeline: Timeline) -> set[str]:
    """Return the paths of the files that pending compactions and clusterings will read."""
    plans = ((each, store.read_requested(each)) for each in timeline.pending_of(*PLANNED_ACTIONS))
    inputs = (plan_input for pending, plan in plans for plan_input in _inputs(pending, plan))
    return {join_path(each.partition, name) for each in inputs for name in each.names}


def gone_input(view: FileGroupView, timeline: Timeline, pending: Instant, plan: bytes) -> str | None:
    """Return the path of a missing input file of a plan, None while the plan can be run.

    A missing file of a file group that was replaced or has a newer base file does not count: no reader needs
    it, and a clean may have deleted it.

    Args:
        view: of the table.
        timeline: of the table.
        pending: the compaction, log compaction or clustering.
        plan: content of its requested file.
    """
    inputs = _inputs(pending, plan)
    present = {
        folder: {status.name for status in view.listing.files(folder)}
        for folder in {plan_input.partition for plan_input in inputs}
    }
    for plan_input in inputs:
        missing = next((name for name in plan_input.names if name not in present[plan_input.partition]), None)
        if missing is not None and not _is_superseded(view, timeline, plan_input):
            return join_path(plan_input.partition, missing)
    return None


@dataclass(frozen=True, slots=True)
class _Input:
    """A file slice in a plan: its base file, empty for none, and its log files."""

    partition: str
    file_id: str
    base_file: str
    log_files: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.base_file, *self.log_files) if self.base_file else self.log_files


def _inputs(pending: Instant, plan: bytes) -> list[_Input]:
    return _clustering_inputs(plan) if pending.action is Action.CLUSTERING else _compaction_inputs(plan)


def _clustering_inputs(plan: bytes) -> list[_Input]:
    slices = (each for group in decode_clustering_plan(plan).groups for each in group.slices)
    return [_Input(each.partition, each.file_id, each.base_file, each.log_files) for each in slices]


def _compaction_inputs(plan: bytes) -> list[_Input]:
    return [
        _Input(each.partition, each.file_id, each.base_file or "", each.log_files)
        for each in decode_compaction_plan(plan).operations
    ]


def _is_superseded(view: FileGroupView, timeline: Timeline, plan_input: _Input) -> bool:
    """Return whether a file group was replaced, or has a committed base file newer than the plan's."""
    if (plan_input.partition, plan_input.file_id) in view.replaced_groups():
        return True
    plan_base = BaseFile.parse(FileStatus(plan_input.base_file, 0)) if plan_input.base_file else None
    bases = (BaseFile.parse(status) for status in view.listing.files(plan_input.partition))
    return any(
        base.file_id == plan_input.file_id
        and base.instant > (plan_base.instant if plan_base else "")
        and timeline.has_completed(base.instant)
        for base in bases
        if base is not None
    )
