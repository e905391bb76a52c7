"""Roll back a write that never completed (specification: Rollback).

    fence  take the claim of the failed instant: no process can complete it any more (`timeline.claims`)
    plan   the files of the failed instant, and in version 6 the file slices with its log blocks (pure)
    run    requested, inflight -> delete files, append rollback commands -> completed
           -> remove the failed instant from the timeline, and its markers

Each step is idempotent: the next writer resumes an interrupted rollback. On a full disk the files are
deleted first.

Log files: in versions 8 and 9 every log file belongs to one instant and is deleted. A log file of version 6
may hold blocks of several writes, so it stays. A rollback command block after the failed blocks says which
write's blocks readers ignore.

Dual writes: a failed write may have put log files into the buckets of a pending resizing. They are named
after the resizing (`filegroups.view.missing_files`), so markers and blocks say which write they belong to.
In layout 1 rollback commands invalidate their blocks as in all log files.

Inputs of pending plans are checked before files of an attempt are deleted. A compaction or clustering whose
completed file was lost looks like one whose process died. While its inputs exist, it can be run again or
unscheduled. Once a clean has deleted the inputs, the files of the seemingly dead attempt are the only copy
of the rows.

Temporary files of killed writers: no reader lists them, they only take up space. A failed write causes a
search of the table's own folders and the partitions that it wrote to; a clean searches those folders and
the partitions that it cleans; `validate` and `repair` search everywhere. Young files, and files whose
process is alive, are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from drawstring.base.clock import Clock, Ids, SystemIds
from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import FileGroupView, table_view
from drawstring.filegroups.view.missing_files import named_otherwise
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.log_inline.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.formats.metadata.rollback import decode_rollback_plan, encode_rollback, encode_rollback_plan
from drawstring.index.factory import STORED_INDEX_LIFECYCLE
from drawstring.metadata.table import METADATA_FOLDER
from drawstring.model.files import HOODIE_FOLDER, BaseFile, FileStatus, LogFile, join_path
from drawstring.model.instant import PLANNED_ACTIONS, WRITE_ACTIONS, Action, Instant, State
from drawstring.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RollbackStat
from drawstring.storage.local import data_files
from drawstring.storage.protocol import Storage, folders_above
from drawstring.timeline.claims import Fence
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline, instant_time, old_notes
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.holds import HOLD_FOLDER
from drawstring.txn.rollback.dependents import refuse_built_on
from drawstring.txn.rollback.file_owners import appended_logs, instants_in, is_named_by, own_logs
from drawstring.txn.rollback.lost_commits import keep_files, may_be_completed

_FIRST_TOKEN: Final = "1-0-1"


def append_command(storage: Storage, by: str, target: str, request: RollbackRequest) -> FileStatus:
    """Append a rollback command to a file slice, as a log file of its own; idempotent."""
    header = {
        HeaderKey.INSTANT_TIME: by,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    block = encode_block(BlockType.COMMAND, header, b"")
    logs = _logs_of(storage, request)
    for log in logs:
        if log.status.size_bytes == len(block) and storage.read(log.status.path) == block:
            return log.status
    version = max((log.version for log in logs), default=0) + 1
    token = logs[-1].write_token if logs else _FIRST_TOKEN
    name = LogFile.name_of(request.file_id, request.base_instant, version, token or _FIRST_TOKEN)
    path = join_path(request.partition, name)
    if not storage.put_if_absent(path, block):
        raise ConflictError(
            f"Another writer appends to the file slice {request.base_instant} of {request.file_id}, to which"
            f" the rollback {by} of {target} appends as well. Retry the write.",
            instant=target,
            path=path,
        )
    return FileStatus(path, len(block))


def _logs_of(storage: Storage, request: RollbackRequest) -> list[LogFile]:
    """Return the log files of a file slice of version 6 in order."""
    parsed = (LogFile.parse(status) for status in storage.list_files(request.partition))
    slice_key = (request.file_id, request.base_instant)
    logs = [log for log in parsed if log is not None and (log.file_id, log.instant) == slice_key]
    return sorted((log for log in logs if not log.is_cdc), key=lambda log: log.order)


AGE_MS: Final = 600_000
"""Least age of a temporary file that is taken for abandoned; in use they live until the lock is free."""

_log: Final = logging.getLogger("drawstring")


def own_folders(config: TableConfig) -> list[str]:
    """Return the folders of a table in which it writes metadata files by way of temporary files."""
    folders = (HOODIE_FOLDER, config.timeline_folder, config.history_folder, HEARTBEAT_FOLDER, HOLD_FOLDER)
    partitions = config.metadata_partitions
    of_metadata = (*partitions, config.timeline_folder) if partitions else ()
    return list(dict.fromkeys((*folders, *(join_path(METADATA_FOLDER, each) for each in of_metadata))))


def abandoned_files(storage: Storage, clock: Clock, folders: Iterable[str]) -> list[FileStatus]:
    """Return the temporary files directly in some folders that are old enough to be abandoned.

    Args:
        storage: the table's files.
        clock: the current time.
        folders: paths relative to the table.
    """
    before_ms = clock.now_ms() - AGE_MS
    files = (status for folder in dict.fromkeys(folders) for status in storage.list_unfinished(folder))
    return [status for status in files if status.modified_ms < before_ms]


def sweep_leftovers(storage: Storage, clock: Clock, folders: Iterable[str]) -> None:
    """Delete abandoned temporary files directly in some folders; files that cannot be deleted stay."""
    try:
        storage.drop_unfinished(status.path for status in abandoned_files(storage, clock, folders))
    except (DrawstringError, OSError) as error:
        _log.warning("Temporary files of a killed process could not be deleted and stay for now: %s", error)


def dual_write_files(
    storage: Storage, timeline: Timeline, write: Instant, files: Iterable[FileStatus], marked: Iterable[str]
) -> Iterator[str]:
    """Yield the paths of the dual-write log files of a write, in layout 2.

    Args:
        storage: the table's files.
        timeline: the current timeline.
        write: the write, not completed.
        files: all data files of the table.
        marked: paths that the write's markers name.
    """
    yield from (path for path in marked if named_otherwise(path, write.requested))
    resizings = {
        instant.requested
        for instant in timeline.instants
        if instant.action.completed_action is Action.REPLACE_COMMIT
        and instant.requested < write.requested
        and (not instant.is_completed or (instant.completed or "") > write.requested)
    }
    own = frozenset((write.requested,))
    for status in files if resizings else ():
        log = named_otherwise(status.path, write.requested)
        if log and log.instant in resizings and instants_in(storage, status.path) == own:
            yield status.path


def holds_blocks_of_others(storage: Storage, path: str, requested: str) -> bool:
    """Return whether a file is not a dual-write log file, or may hold blocks of other writes."""
    log = named_otherwise(path, requested)
    if log is None:
        return True
    if not storage.exists(path):
        return False
    instants = instants_in(storage, path)
    return instants is None or bool(instants - {requested})


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
    missing = missing_input(view, timeline, pending, store.read_requested(pending))
    if missing is not None:
        raise CorruptTableError(
            f"{missing_input_message(pending)} Nothing was deleted.", instant=pending.requested, path=missing
        )


def missing_input_message(pending: Instant) -> str:
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


def missing_input(view: FileGroupView, timeline: Timeline, pending: Instant, plan: bytes) -> str | None:
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


_WRITER_LIVES_MS: Final = 7 * 24 * 3_600_000
"""How long a writer may stall and then resume, at most: for so long rolled back instants are remembered."""


@dataclass(frozen=True, slots=True)
class RollbackContext:
    """What a rollback works with; the caller holds the table lock.

    Attributes:
        storage: the table's files.
        config: the table's settings.
        store: the table's timeline.
        clock: measures the duration and the age of heartbeats.
        ids: names the owners of leases.
        check: makes sure that the table lock is still held.
        tasks_may_outlive: whether tasks of a write that failed in this process may go on.
    """

    storage: Storage
    config: TableConfig
    store: TimelineStore
    clock: Clock
    ids: Ids = field(default_factory=SystemIds)
    check: Callable[[], None] = lambda: None
    tasks_may_outlive: bool = False


@dataclass(frozen=True, slots=True)
class RollbackFacts:
    """The state of a failed write on storage.

    Attributes:
        instant: requested time of the write.
        action: action of the write.
        files: all data files of the table.
        marked: paths of the data files that the write's markers name.
        appended: log files named after another instant that hold blocks of this one (version 6).
        copies: paths of log files named after a resizing with blocks of this instant alone (versions 8, 9).
    """

    instant: str
    action: Action
    files: tuple[FileStatus, ...]
    marked: tuple[str, ...] = ()
    appended: tuple[LogFile, ...] = ()
    copies: tuple[str, ...] = ()


def rollback_instant(context: RollbackContext, instant: Instant, *, by_name: bool = False) -> None:
    """Roll one pending write back, or complete it if its writer had already claimed the completion.

    Args:
        context: the table, locked.
        instant: the pending write.
        by_name: whether the user named this instant: then its files are deleted even if its markers are
            gone, and no copy of them is kept.

    Raises:
        InvalidError: the instant is completed, or its action cannot be rolled back.
        CorruptTableError: the write had been completed, and its files are needed.
    """
    if instant.is_completed:
        raise InvalidError("A completed write is final. Restore the table.", instant=instant.requested)
    if instant.action not in WRITE_ACTIONS:
        raise InvalidError(f"A {instant.action} is not rolled back. Run it.", instant=instant.requested)
    refuse_built_on(context.store, context.store.load(), instant)
    if not prevent_completion(context, instant):
        return
    facts = gather_facts(context, instant)
    plan = plan_rollback(facts)
    if not by_name and may_be_completed(context.storage, instant, facts.files, context.config.rules):
        keep_files(context.storage, context.store, instant, plan.paths())
    roll_back_files(context, instant, plan)


def prevent_completion(context: RollbackContext, instant: Instant) -> bool:
    """Prevent a pending instant from completing; False if its process had claimed that: it is complete now.

    Args:
        context: the table, locked.
        instant: pending; no process runs it again.
    """
    can_run_again = instant.action in PLANNED_ACTIONS
    fenced = context.store.fence(instant) if can_run_again else context.store.prevent_completion(instant)
    if isinstance(fenced, Instant):
        return False
    # If this process stalled before the fence, others may have completed the instant and archived it.
    context.check()
    context.store.note_rolled_back(instant)
    return True


def rollback_failed_write(context: RollbackContext, instant: Instant) -> None:
    """Undo a write that failed in this process; without a trace if it had begun no data file.

    A call whose rows turn out to be invalid before the first file is begun (a null record key, for example)
    leaves the table as it was, byte for byte. Every other failed write is rolled back. Where tasks may still
    begin a file, a note stays: without it a file that is older than the timeline would count as archived.

    Args:
        context: the table, locked since before the write began.
        instant: the instant of the write.
    """
    if instant.action in WRITE_ACTIONS and not Markers(context.storage, instant.requested).files():
        if context.tasks_may_outlive:
            context.store.note_rolled_back(instant)
        forget_instant(context, instant.requested, instant)
    else:
        rollback_instant(context, instant)


def plan_rollback(facts: RollbackFacts) -> RollbackPlan:
    """Plan the rollback of a failed write: one request per file to delete or file slice to append to."""
    statuses = (*facts.files, *(FileStatus(path, 0) for path in facts.marked))
    named = {status.path for status in statuses if is_named_by(status, facts.instant)}
    own = sorted(named | set(facts.copies))
    deletes = [RollbackRequest(_partition(path), files_to_delete=(path,)) for path in own]
    slices: dict[tuple[str, str, str], dict[str, int]] = {}
    for log in facts.appended:
        if log.status.path not in own:
            key = (log.status.folder, log.file_id, log.instant)
            slices.setdefault(key, {})[log.status.path] = log.status.size_bytes
    commands = [RollbackRequest(*key, log_blocks=logs) for key, logs in sorted(slices.items())]
    return RollbackPlan(facts.instant, facts.action, (*deletes, *commands))


def run_rollback(
    context: RollbackContext,
    rollback: Instant,
    plan: RollbackPlan,
    target: Instant | None,
    fence: Fence | None = None,
) -> None:
    """Carry out an inflight rollback, and complete it.

    Args:
        rollback: the instant of the rollback.
        plan: the rollback plan.
        target: the failed instant as it is on the timeline, None if it is gone.
        fence: the claim on the rollback, if another process began it.

    Raises:
        CorruptTableError: the plan would delete a file of another instant.
    """
    if target is not None and _is_cancelled(target):
        # First, so that no process runs a resizing without the records written to its new buckets.
        context.store.remove_pending(target)
        target = None
    metadata = carry_out(context, rollback, plan)
    context.store.complete(rollback, encode_rollback(metadata, table_root(context.storage)), fence)
    forget_instant(context, plan.instant, target)


def carry_out(context: RollbackContext, by: Instant, plan: RollbackPlan) -> RollbackMetadata:
    """Delete the files of a plan and append its rollback commands; idempotent.

    Args:
        by: the rollback or restore that carries the plan out.
        plan: the rollback plan.

    Raises:
        CorruptTableError: the plan would delete a file of another instant.
    """
    started_ms = context.clock.now_ms()
    paths = [path for request in plan.requests for path in request.files_to_delete]
    _check_paths(context, plan, paths)
    context.storage.delete(paths)
    commands = [
        append_command(context.storage, by.requested, plan.instant, request)
        for request in plan.requests
        if request.log_blocks
    ]
    # Before the instant leaves the timeline: deleted files that came back would count once it is archived.
    context.storage.sync(folders_above((*paths, *(status.path for status in commands))))
    return RollbackMetadata(
        started=by.requested,
        seconds=(context.clock.now_ms() - started_ms) / 1000,
        instant=plan.instant,
        action=plan.action,
        stats=_stats(plan, commands),
    )


def roll_back_files(context: RollbackContext, instant: Instant, plan: RollbackPlan) -> None:
    """Put the rollback of a pending instant on the timeline, and carry it out."""
    _log.info("Rolling back the pending %s %s.", instant.action, instant.requested)
    time = context.store.new_time(context.store.load())
    try:
        requested = _request(context, time, plan)
    except UnavailableError:
        _free_space(context, instant, plan)
        plan = plan_rollback(gather_facts(context, instant))
        requested = _request(context, time, plan)
    run_rollback(context, context.store.start(requested), plan, instant)


def _request(context: RollbackContext, time: str, plan: RollbackPlan) -> Instant:
    content = encode_rollback_plan(plan, table_root(context.storage))
    return context.store.request(Action.ROLLBACK, time, content)


def _free_space(context: RollbackContext, instant: Instant, plan: RollbackPlan) -> None:
    """Delete the files of a failed write before its rollback is on the timeline, to free a full disk.

    The instant can no longer complete, so its files never count. It stays pending with its markers, so any
    engine can begin again if this is interrupted.
    """
    paths = [path for request in plan.requests for path in request.files_to_delete]
    _check_paths(context, plan, paths)
    if context.config.rules.appends_rollbacks:
        paths += own_logs(context.storage, marked_files(context, instant), instant.requested)
    _log.info("Deleting the files of the pending %s before its rollback is planned.", instant.requested)
    context.storage.delete(paths)


def resume_rollback(context: RollbackContext, timeline: Timeline, rollback: Instant) -> str | None:
    """Finish an interrupted rollback; return the failed instant, or None if there was no plan yet."""
    plan = _read_plan(context, rollback)
    if plan is None:
        context.store.remove_pending(rollback)
        return None
    target = timeline.find(plan.instant)
    if target is not None and target.is_completed:
        raise UnsupportedError(
            f"Another engine began to roll back the completed write {plan.instant}. Finish that there, or, to"
            " keep the write, delete this rollback's files from the timeline.",
            instant=rollback.requested,
        )
    if target is not None:
        _refuse_needed(context, timeline, plan, target)
    fence = context.store.fence(rollback)
    if isinstance(fence, Instant):
        forget_instant(context, plan.instant, target)
        return plan.instant
    if target is not None and not _prevent_target_completion(context, target):
        context.store.remove_pending(rollback)
        return plan.instant
    context.store.revert_to_requested(rollback)
    run_rollback(context, context.store.start(rollback), plan, target, fence)
    return plan.instant


def _prevent_target_completion(context: RollbackContext, target: Instant) -> bool:
    """Make sure that the target of a rollback does not complete; a plan may be run again afterwards."""
    if target.action in PLANNED_ACTIONS and not _is_cancelled(target):
        return isinstance(context.store.fence(target), Fence)
    return prevent_completion(context, target)


def _refuse_needed(context: RollbackContext, timeline: Timeline, plan: RollbackPlan, target: Instant) -> None:
    """Refuse to delete files that are needed, as when a completed file was lost between two attempts."""
    if not any(
        request.log_blocks or any(map(context.storage.exists, request.files_to_delete))
        for request in plan.requests
    ):
        return
    refuse_built_on(context.store, timeline, target)
    if target.action in PLANNED_ACTIONS:
        refuse_inputs_gone(context.storage, context.config, context.store, timeline, target)


def _read_plan(context: RollbackContext, rollback: Instant) -> RollbackPlan | None:
    try:
        return decode_rollback_plan(context.store.read_requested(rollback), table_root(context.storage))
    except CorruptTableError:
        # The process that wrote it died before it deleted anything: a new plan will be made.
        return None


def gather_facts(context: RollbackContext, instant: Instant) -> RollbackFacts:
    """List the files and blocks that a failed write left."""
    files = tuple(data_files(context.storage))
    marked = tuple(status.path for status in marked_files(context, instant))
    facts = RollbackFacts(instant.requested, instant.action, files, marked)
    if context.config.rules.appends_rollbacks:
        return replace(facts, appended=tuple(appended_logs(context.storage, files, instant.requested)))
    copies = dual_write_files(context.storage, context.store.load(), instant, files, marked)
    return replace(facts, copies=tuple(copies))


def marked_files(context: RollbackContext, instant: Instant) -> list[FileStatus]:
    """Return the data files that the markers of an instant name."""
    return [FileStatus(path, 0) for path in Markers(context.storage, instant.requested).files()]


def _check_paths(context: RollbackContext, plan: RollbackPlan, paths: list[str]) -> None:
    appends = context.config.rules.appends_rollbacks
    for path in paths:
        if is_named_by(FileStatus(path, 0), plan.instant):
            continue
        if appends or holds_blocks_of_others(context.storage, path, plan.instant):
            raise CorruptTableError(
                "A rollback plan names a file of another write. Remove the plan from the timeline.",
                instant=plan.instant,
                path=path,
            )


def forget_old_rollbacks(context: RollbackContext) -> None:
    """Delete old notes of rolled back instants, and files that their stalled writers wrote since.

    Args:
        context: the table, locked.
    """
    storage, config = context.storage, context.config
    before = instant_time(context.clock.now_ms() - _WRITER_LIVES_MS, config.timezone)
    for time, note in old_notes(storage, config, before):
        instant = Instant(time, Action.DELTA_COMMIT, State.INFLIGHT)
        plan = plan_rollback(gather_facts(context, instant))
        if plan.requests:
            carry_out(context, instant, plan)
        storage.delete([note])


def _stats(plan: RollbackPlan, commands: list[FileStatus]) -> tuple[RollbackStat, ...]:
    partitions = sorted({request.partition for request in plan.requests})
    return tuple(_stat(partition, plan, commands) for partition in partitions)


def _stat(partition: str, plan: RollbackPlan, commands: list[FileStatus]) -> RollbackStat:
    requests = [request for request in plan.requests if request.partition == partition]
    written = [status for status in commands if status.folder == partition]
    return RollbackStat(
        partition=partition,
        deleted=tuple(path for request in requests for path in request.files_to_delete),
        command_files={status.path: status.size_bytes for status in written},
    )


def forget_instant(context: RollbackContext, requested: str, target: Instant | None) -> None:
    """Take the failed instant off the timeline; a plan of a table service returns to requested."""
    context.storage.delete([f"{HEARTBEAT_FOLDER}/{requested}"])
    if target is not None:
        # Before the markers: an inflight write without markers may be a completed one whose file was lost.
        context.store.revert_to_requested(target)
    Markers(context.storage, requested).remove()
    if target is not None:
        STORED_INDEX_LIFECYCLE.rolled_back(context.storage, target)
    if target is not None and (target.action not in PLANNED_ACTIONS or _is_cancelled(target)):
        context.store.remove_pending(target)


def _is_cancelled(target: Instant) -> bool:
    return target.action is Action.CLUSTERING and target.state is State.REQUESTED


def _partition(path: str) -> str:
    return path.rpartition("/")[0]


def table_root(storage: Storage) -> str:
    """Return the table's path as rollback plans and metadata put it before the paths of files."""
    return storage.local_path("") or storage.full_uri("")
