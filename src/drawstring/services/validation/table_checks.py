"""The invariants of a table that its timeline and a listing tell, one function each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from drawstring.base.errors import REPAIR, DrawstringError
from drawstring.formats.metadata.commit import clustering_groups, decode_compaction_plan
from drawstring.model.files import (
    PARTITION_METADATA,
    BaseFile,
    FileStatus,
    LogFile,
    join_path,
    parse_data_file,
)
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.validation import Finding, Remedy, Severity
from drawstring.services.validation.inventory import Inventory
from drawstring.timeline.layout import parse_instant
from drawstring.txn.rollback.dependents import builds_on, what_was_lost
from drawstring.txn.rollback.lost_commits import kept_writes, may_be_completed, what_it_lacks
from drawstring.txn.rollback.plan_inputs import gone_input, what_is_gone

_PLANNED: Final = {
    Action.COMPACTION: decode_compaction_plan,
    Action.LOG_COMPACTION: decode_compaction_plan,
    Action.CLUSTERING: clustering_groups,
}
_NEXT_WRITE: Final = (
    "the next write (LAZY: a clean), or `repair`, takes it back, or completes it if its writer had decided so"
)

_MISSING_BASE: Final = f"the base file under log files of this write is missing: {REPAIR}"
_WITHOUT_WRITE: Final = (
    "log files of this write are on a base file whose own write is gone from the timeline: put that back from"
    " a backup"
)


def pending_actions(inventory: Inventory) -> Iterator[Finding]:
    """What is under way, or was when its process died, and whether its plan can be read."""
    for instant in inventory.timeline.pending():
        after = builds_on(inventory.commits.items(), instant)
        if after is not None:
            text = what_was_lost(instant, after)
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)
        elif _is_unmarked(inventory, instant):
            text = f"{what_it_lacks(instant)}: put that back; {_NEXT_WRITE}, and keeps its files"
            yield Finding(Severity.WARNING, "timeline", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action in WRITE_ACTIONS:
            text = f"a {instant.action} is pending; if its writer is dead, {_NEXT_WRITE}"
            yield Finding(Severity.NOTE, "pending", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action is Action.ROLLBACK:
            text = "a rollback was cut short; the next write, or `repair`, finishes it"
            yield Finding(Severity.WARNING, "rollback", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action is Action.RESTORE:
            text = "a restore was cut short: nobody can write until it is finished"
            yield Finding(Severity.ERROR, "restore", text, None, instant.requested)
        elif decode := _PLANNED.get(instant.action):
            yield from _planned(inventory, instant, decode)


def _is_unmarked(inventory: Inventory, instant: Instant) -> bool:
    return may_be_completed(inventory.storage, instant, inventory.data_files(), inventory.config.rules)


def kept(inventory: Inventory) -> Iterator[Finding]:
    """What was kept of writes that were rolled back though they may have been completed."""
    for folder in kept_writes(inventory.storage):
        text = (
            "a write was rolled back that may have been completed, and its files kept: delete the folder once"
            " nobody misses their rows"
        )
        yield Finding(Severity.NOTE, "kept", text, folder, folder.rpartition("/")[2])


def _planned(inventory: Inventory, instant: Instant, decode: object) -> Iterator[Finding]:
    try:
        assert callable(decode)
        decode(inventory.store.read_requested(instant))
    except DrawstringError as error:
        text = f"the plan of a pending {instant.action} cannot be read: {error.message}"
        yield Finding(Severity.ERROR, "plan", text, error.path, instant.requested)
        return
    gone = _gone_input(inventory, instant)
    if gone is not None:
        yield Finding(Severity.ERROR, "timeline", what_is_gone(instant), gone, instant.requested)
    else:
        text = f"a {instant.action} is planned and waits to be run"
        yield Finding(Severity.NOTE, "pending", text, None, instant.requested)


def _gone_input(inventory: Inventory, instant: Instant) -> str | None:
    made = (BaseFile.parse(status) for status in inventory.data_files())
    if not any(base is not None and base.instant == instant.requested for base in made):
        return None
    try:
        plan = inventory.store.read_requested(instant)
        return gone_input(inventory.view(), inventory.timeline, instant, plan)
    except DrawstringError:
        # What was replaced since cannot be read: that is a finding of its own.
        return None


def times(inventory: Inventory) -> Iterator[Finding]:
    """Each instant completed once, and not before it was requested."""
    layout = inventory.config.layout
    listed = inventory.storage.list_files(inventory.config.timeline_folder)
    found = [each for status in listed if (each := parse_instant(status.name, layout))]
    seen: dict[tuple[str, Action], str] = {}
    for instant in sorted(each for each in found if each.is_completed and each.completed):
        completed = instant.completed or ""
        if completed < instant.requested:
            text = f"a {instant.action} completed at {completed}, before it was requested"
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)
        earlier = seen.setdefault((instant.requested, instant.action), completed)
        if earlier != completed:
            text = (
                f"a {instant.action} completed twice, at {earlier} and {completed}: delete one of the files"
            )
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)


def named_files(inventory: Inventory) -> Iterator[Finding]:
    """The files that the latest slices consist of are there, with the sizes that commits say."""
    sizes = {each.path: each.size_bytes for each in inventory.data_files()}
    for instant, stat in inventory.live_stats():
        size = sizes.get(stat.path)
        if size is None:
            text = f"a data file of a committed write is missing: {REPAIR}"
            yield Finding(Severity.ERROR, "missing", text, stat.path, instant.requested)
        elif stat.size_bytes and not _fits(inventory, stat.path, size, stat.size_bytes):
            text = f"it has {size} bytes, and its commit says {stat.size_bytes}: {REPAIR}"
            yield Finding(Severity.ERROR, "size", text, stat.path, instant.requested)


def base_files_under_logs(inventory: Inventory) -> Iterator[Finding]:
    """The base files that the latest slices' log files were written onto are there, or newer ones."""
    bases: dict[tuple[str, str], str] = {}
    for status in inventory.data_files():
        base = BaseFile.parse(status)
        if base is not None and inventory.timeline.has_completed(base.instant):
            group = status.folder, base.file_id
            bases[group] = max(bases.get(group, ""), base.instant)
    pending = {instant.requested for instant in inventory.timeline.pending()}
    missing: set[str] = set()
    for instant, stat in inventory.live_stats():
        base = BaseFile.parse(FileStatus(join_path(stat.partition, stat.base_file or ""), 0))
        if base is None or base.instant in pending or base.status.path in missing:
            continue
        if bases.get((stat.partition, stat.file_id), "") < base.instant:
            missing.add(base.status.path)
            is_there = any(each.path == base.status.path for each in inventory.files.get(stat.partition, ()))
            text = _WITHOUT_WRITE if is_there else _MISSING_BASE
            yield Finding(Severity.ERROR, "missing", text, base.status.path, instant.requested)


def _fits(inventory: Inventory, path: str, size: int, stated: int) -> bool:
    """Compare sizes; other writes may have appended to a log file of version 6 since."""
    may_grow = inventory.config.shares_log_files and LogFile.parse(FileStatus(path, 0)) is not None
    return size == stated or (may_grow and size > stated)


def unmatched(inventory: Inventory) -> Iterator[Finding]:
    """Base files that log files need and that do not count, and data files that nobody needs."""
    needed = list(base_files_under_logs(inventory))
    yield from needed
    yield from _orphans(inventory, {finding.path for finding in needed if finding.path})


def _orphans(inventory: Inventory, needed: Collection[str]) -> Iterator[Finding]:
    """Data files that no write accounts for: readers pass over them, or would not if they counted.

    Args:
        inventory: the table.
        needed: paths of those that log files were written onto all the same.
    """
    timeline = inventory.timeline
    pending = {instant.requested for instant in timeline.pending()}
    commits = {instant.requested: commit for instant, commit in inventory.commits.items()}
    named = {
        path for commit in commits.values() for stat in commit.stats for path in (stat.path, *stat.cdc_files)
    }
    named.update(needed)
    unreadable = {finding.instant for finding in inventory.unreadable}
    for status in inventory.data_files():
        file = parse_data_file(status)
        if file is None or file.instant in pending or file.instant in unreadable or status.path in named:
            continue
        if not timeline.has_completed(file.instant):
            text = "no committed or pending write made this file; readers pass over it"
        elif file.instant in commits and _says_all(inventory, status):
            text = "the write that made this file does not count it: a failed attempt left it"
        else:
            continue
        yield Finding(Severity.WARNING, "orphan", text, status.path, file.instant, Remedy.ORPHAN)


def _says_all(inventory: Inventory, status: FileStatus) -> bool:
    """Tell whether the write in a file's name says of all its files.

    Log files of version 6 bear another's, and so do those in buckets that were being resized.
    """
    if BaseFile.parse(status) is not None:
        return True
    log = LogFile.parse(status)
    named = None if log is None else inventory.timeline.write_at(log.instant)
    is_resizing = named is not None and named.action is Action.REPLACE_COMMIT
    return not inventory.config.shares_log_files and not is_resizing


def partition_metadata(inventory: Inventory) -> Iterator[Finding]:
    """Folders with committed data files are partitions, which a file in them says."""
    for folder, statuses in sorted(inventory.files.items()):
        if any(status.name.startswith(PARTITION_METADATA) for status in statuses):
            continue
        if any(_counts(inventory, status) for status in statuses):
            text = "a folder with data files lacks its partition metadata, so readers pass over its rows"
            yield Finding(Severity.ERROR, "partition", text, folder or ".", None, Remedy.PARTITION_METADATA)


def _counts(inventory: Inventory, status: FileStatus) -> bool:
    file = parse_data_file(status)
    return file is not None and inventory.timeline.has_completed(file.instant)


ALL: Final = (pending_actions, kept, times, named_files, unmatched, partition_metadata)
"""In the order in which a reader of findings wants them."""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by severity; else they keep their order."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda each: order.index(each.severity)))
