"""Validate a whole table and report what is wrong; change nothing, and raise no errors for damage.

    properties ── timeline ── commits ── listing ── slices, key by key

Each check of an invariant is one function: it gets the timeline and a listing of the table, and returns
findings. `validate_content` checks the record keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError
from drawstring.base.text_format import pluralize
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats.metadata.commit import clustering_groups, decode_compaction_plan
from drawstring.index.factory import declared_index, is_global_index
from drawstring.model.files import (
    PARTITION_METADATA,
    BaseFile,
    FileSlice,
    FileStatus,
    LogFile,
    join_path,
    parse_data_file,
)
from drawstring.model.instant import FILE_ACTIONS, WRITE_ACTIONS, Action, Instant
from drawstring.model.result import Finding, Remedy, Severity, Validation
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY, with_meta
from drawstring.services.progress import Progress
from drawstring.services.validate_content import ReadContent, check_contents
from drawstring.services.validation.inventory import Inventory, take_inventory
from drawstring.services.validation.metadata_checks import indexed_places, metadata_findings
from drawstring.timeline.change_detection import ATTEMPTS_MAX, digest
from drawstring.timeline.properties import PROPERTIES_PATH, load_config, problem_of_properties
from drawstring.timeline.schema import LOST_TIMELINE, table_schema, with_history
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import instant_time, is_far_ahead, parse_instant
from drawstring.txn.heartbeat import active_instants
from drawstring.txn.rollback.dependents import builds_on, describe_loss
from drawstring.txn.rollback.lost_commits import describe_missing, kept_writes, may_be_completed
from drawstring.txn.rollback.rollback import (
    abandoned_files,
    missing_input,
    missing_input_message,
    own_folders,
)
from drawstring.txn.table_context import TableContext

_PLANNED: Final = {
    Action.COMPACTION: decode_compaction_plan,
    Action.LOG_COMPACTION: decode_compaction_plan,
    Action.CLUSTERING: clustering_groups,
}
_NEXT_WRITE: Final = (
    "the next write (LAZY: a clean), or `repair`, rolls it back, or completes it if its writer claimed that"
)

_MISSING_BASE: Final = f"The base file under log files of this write is missing: {REPAIR}."
_WITHOUT_WRITE: Final = (
    "Log files of this write are on a base file whose own write is gone from the timeline. Put that write's"
    " file back from a backup."
)


def pending_actions(inventory: Inventory) -> Iterator[Finding]:
    """Find pending actions, running or dead, and plans that cannot be read."""
    for instant in inventory.timeline.pending():
        dependent = builds_on(inventory.commits.items(), instant)
        if dependent is not None:
            text = describe_loss(instant, dependent)
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)
        elif instant.requested in inventory.worked_on:
            text = f"A process is at work on this {instant.action}. It needs nothing."
            yield Finding(Severity.NOTE, "pending", text, None, instant.requested)
        elif _may_be_completed(inventory, instant):
            text = (
                f"{describe_missing(instant)} Put that file back from a backup; otherwise {_NEXT_WRITE}, and"
                " keeps copies of its files."
            )
            yield Finding(Severity.WARNING, "timeline", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action in WRITE_ACTIONS:
            text = (
                f"A {instant.action} is pending, and no process shows that it is at work on it. Unless its"
                f" engine has no heartbeats, {_NEXT_WRITE}."
            )
            yield Finding(Severity.NOTE, "pending", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action is Action.ROLLBACK:
            text = "A rollback was interrupted. The next write, or `repair`, finishes it."
            yield Finding(Severity.WARNING, "rollback", text, None, instant.requested, Remedy.ROLLBACK)
        elif instant.action is Action.RESTORE:
            text = "A restore was interrupted. The table cannot be written until the restore is finished."
            yield Finding(Severity.ERROR, "restore", text, None, instant.requested)
        elif decode := _PLANNED.get(instant.action):
            yield from _plan_findings(inventory, instant, decode)


def _may_be_completed(inventory: Inventory, instant: Instant) -> bool:
    return may_be_completed(inventory.storage, instant, inventory.data_files(), inventory.config.rules)


def preserved_files(inventory: Inventory) -> Iterator[Finding]:
    """Find copies of files of rolled back writes that may have been completed."""
    for folder in kept_writes(inventory.storage):
        text = (
            "A write was rolled back that may have been completed, and copies of its files were kept. Delete"
            " the folder if their rows are not needed."
        )
        yield Finding(Severity.NOTE, "kept", text, folder, folder.rpartition("/")[2])


def _plan_findings(inventory: Inventory, instant: Instant, decode: object) -> Iterator[Finding]:
    try:
        assert callable(decode)
        decode(inventory.store.read_requested(instant))
    except DrawstringError as error:
        text = f"The plan of a pending {instant.action} cannot be read: {error.message}"
        yield Finding(Severity.ERROR, "plan", text, error.path, instant.requested)
        return
    missing = _gone_input(inventory, instant)
    if missing is not None:
        yield Finding(Severity.ERROR, "timeline", missing_input_message(instant), missing, instant.requested)
    else:
        text = f"A {instant.action} is planned and waits to be run."
        yield Finding(Severity.NOTE, "pending", text, None, instant.requested)


def _gone_input(inventory: Inventory, instant: Instant) -> str | None:
    bases = (BaseFile.parse(status) for status in inventory.data_files())
    if not any(base is not None and base.instant == instant.requested for base in bases):
        return None
    try:
        plan = inventory.store.read_requested(instant)
        return missing_input(inventory.view(), inventory.timeline, instant, plan)
    except DrawstringError:
        # An unreadable replace commit is a finding of another check.
        return None


def times(inventory: Inventory) -> Iterator[Finding]:
    """Check that each instant completed once, and not before it was requested."""
    layout = inventory.config.layout
    listed = inventory.storage.list_files(inventory.config.timeline_folder)
    instants = [each for status in listed if (each := parse_instant(status.name, layout))]
    seen: dict[tuple[str, Action], str] = {}
    for instant in sorted(each for each in instants if each.is_completed and each.completed):
        completed = instant.completed or ""
        if completed < instant.requested:
            text = f"A {instant.action} completed at {completed}, before it was requested."
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)
        earlier = seen.setdefault((instant.requested, instant.action), completed)
        if earlier != completed:
            text = (
                f"A {instant.action} completed twice, at {earlier} and {completed}. Delete one of the files."
            )
            yield Finding(Severity.ERROR, "timeline", text, None, instant.requested)


def named_files(inventory: Inventory) -> Iterator[Finding]:
    """Check that the files of the latest slices exist, with the sizes in their commits."""
    sizes = {each.path: each.size_bytes for each in inventory.data_files()}
    for instant, stat in inventory.live_stats():
        size = sizes.get(stat.path)
        if size is None:
            text = f"A data file of a committed write is missing: {REPAIR}."
            yield Finding(Severity.ERROR, "missing", text, stat.path, instant.requested)
        elif stat.size_bytes and not _has_expected_size(inventory, stat.path, size, stat.size_bytes):
            text = f"The file has {size} bytes, but {stat.size_bytes} by its commit: {REPAIR}."
            yield Finding(Severity.ERROR, "size", text, stat.path, instant.requested)


def base_files_under_logs(inventory: Inventory) -> Iterator[Finding]:
    """Check that the base files under the log files of the latest slices exist, or newer ones."""
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
            exists = any(each.path == base.status.path for each in inventory.files.get(stat.partition, ()))
            text = _WITHOUT_WRITE if exists else _MISSING_BASE
            yield Finding(Severity.ERROR, "missing", text, base.status.path, instant.requested)


def _has_expected_size(inventory: Inventory, path: str, size: int, stated: int) -> bool:
    """Compare sizes; other writes may have appended to a log file of version 6 since."""
    may_grow = inventory.config.shares_log_files and LogFile.parse(FileStatus(path, 0)) is not None
    return size == stated or (may_grow and size > stated)


def unmatched(inventory: Inventory) -> Iterator[Finding]:
    """Find base files that log files need but that do not count, and data files that no write needs."""
    needed_findings = list(base_files_under_logs(inventory))
    yield from needed_findings
    yield from _orphans(inventory, {finding.path for finding in needed_findings if finding.path})


def _orphans(inventory: Inventory, needed: Collection[str]) -> Iterator[Finding]:
    """Find data files that no write lists.

    Args:
        inventory: the table.
        needed: paths of base files under log files, which are not orphans.
    """
    timeline = inventory.timeline
    if not timeline.instants:
        yield from _without_timeline(inventory)
        return
    pending = {instant.requested for instant in timeline.pending()}
    commits = {instant.requested: commit for instant, commit in inventory.commits.items()}
    known_paths = {
        path for commit in commits.values() for stat in commit.stats for path in (stat.path, *stat.cdc_files)
    }
    known_paths.update(needed)
    unreadable = {finding.instant for finding in inventory.unreadable}
    for status in inventory.data_files():
        file = parse_data_file(status)
        if (
            file is None
            or file.instant in pending
            or file.instant in unreadable
            or status.path in known_paths
        ):
            continue
        if not timeline.has_completed(file.instant):
            text = "No committed or pending write made this file. Readers ignore it."
        elif file.instant in commits and _lists_all_files(inventory, status):
            text = "The write that made this file does not list it: a failed attempt left it."
        else:
            continue
        yield Finding(Severity.WARNING, "orphan", text, status.path, file.instant, Remedy.ORPHAN)


def _without_timeline(inventory: Inventory) -> Iterator[Finding]:
    """Find a timeline that is lost: each write has an instant before its first file, and some stay."""
    files = sum(1 for _ in inventory.data_files())
    if files:
        text = (
            f"The table has {pluralize(files, 'data file')}, but no instant: its timeline was deleted."
            f" {LOST_TIMELINE}"
        )
        yield Finding(Severity.ERROR, "timeline", text, inventory.config.timeline_folder)


def _lists_all_files(inventory: Inventory, status: FileStatus) -> bool:
    """Return whether the commit of the instant in a file's name lists all files with that name.

    Log files of version 6, and of buckets being resized, may be named after the instant of another write.
    """
    if BaseFile.parse(status) is not None:
        return True
    log = LogFile.parse(status)
    named_write = None if log is None else inventory.timeline.write_at(log.instant)
    is_resizing = named_write is not None and named_write.action is Action.REPLACE_COMMIT
    return not inventory.config.shares_log_files and not is_resizing


def partition_metadata(inventory: Inventory) -> Iterator[Finding]:
    """Check that folders with committed data files have partition metadata."""
    for folder, statuses in sorted(inventory.files.items()):
        if any(status.name.startswith(PARTITION_METADATA) for status in statuses):
            continue
        if any(_counts(inventory, status) for status in statuses):
            text = "A folder with data files lacks its partition metadata, so readers ignore its rows."
            yield Finding(Severity.ERROR, "partition", text, folder or ".", None, Remedy.PARTITION_METADATA)


def _counts(inventory: Inventory, status: FileStatus) -> bool:
    file = parse_data_file(status)
    return file is not None and inventory.timeline.has_completed(file.instant)


def schema_versions(inventory: Inventory) -> Iterator[Finding]:
    """Find files that are older than the versions of the schema, in a table that evolved it on read."""
    try:
        config = with_history(inventory.config, inventory.storage, inventory.store, inventory.timeline)
        files = (parse_data_file(status) for status in inventory.data_files())
        for instant in sorted({file.instant for file in files if file is not None}):
            config.renames(instant)
    except CorruptTableError as error:
        yield Finding(Severity.ERROR, "schema", error.message, error.path, error.instant)


CHECKS: Final = (
    pending_actions,
    preserved_files,
    schema_versions,
    times,
    named_files,
    unmatched,
    partition_metadata,
)
"""In the order of the report."""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by severity, otherwise in the given order."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda each: order.index(each.severity)))


_KEYS_OF_SLICE = pa.schema(
    [(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string()), ("file_id", pa.string()), ("gone", pa.bool_())]
)


def validate(
    context: TableContext,
    *,
    contents: bool = True,
    global_keys: bool = False,
    progress: Progress | None = None,
) -> Validation:
    """Check the invariants of a table; check again if there are errors and the table changed meanwhile.

    Args:
        context: the open table.
        contents: whether to read the keys of all records, in addition to file names and sizes.
        global_keys: whether a key is unique in the whole table, as with a global index in the table
            properties.
        progress: called after each file group.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: the properties and their backup cannot be read.
    """
    for _ in range(ATTEMPTS_MAX):
        digest_before = _digest(context)
        validation = _validate(context, contents=contents, global_keys=global_keys, progress=progress)
        is_sound = all(each.severity is not Severity.ERROR for each in validation.findings)
        if is_sound or digest_before is None or digest_before == _digest(context):
            break
    return validation


def _digest(context: TableContext) -> str | None:
    """Return a digest of the timeline, None if it cannot be read."""
    try:
        return digest(TimelineStore(context.storage, load_config(context.storage), context.clock).load())
    except DrawstringError:
        return None


def _validate(
    context: TableContext, *, contents: bool, global_keys: bool, progress: Progress | None
) -> Validation:
    """Check the invariants of a table once; see `validate`."""
    config = load_config(context.storage)
    findings = properties_findings(context)
    store = TimelineStore(context.storage, config, context.clock)
    try:
        inventory = take_inventory(context.storage, config, store)
        pending = inventory.timeline.pending_of(*FILE_ACTIONS)
        inventory = replace(inventory, worked_on=active_instants(context, pending))
    except DrawstringError as error:
        finding = Finding(Severity.ERROR, "timeline", error.message, error.path, error.instant)
        return Validation((*findings, finding))
    findings += inventory.unreadable
    for check in CHECKS:
        findings += check(inventory)
    findings += future_findings(context, inventory)
    findings += leftover_findings(context, inventory)
    findings += metadata_findings(inventory, context.clock, findings, indexes=contents)
    slices: Sequence[FileSlice] = ()
    records = None
    try:
        slices = list(inventory.view().all_slices())
        places = indexed_places(inventory, context.clock)
        if contents:
            is_global = global_keys or is_global_index(config.index_type, config)
            is_global = is_global or (places is not None and places.is_global)
            task = _task(context, inventory, config)
            content_findings, records = check_contents(
                context.engine, task, slices, progress, is_global=is_global, places=places
            )
            findings += content_findings
        elif places is not None and places.unused is not None:
            text = f"Queries do not use the record index. {places.unused}"
            findings.append(Finding(Severity.WARNING, "metadata", text, "."))
    except DrawstringError as error:
        findings.append(Finding(Severity.ERROR, "slices", error.message, error.path, error.instant))
    return Validation(
        findings=worst_first(findings),
        instants=len(inventory.timeline.instants),
        partitions=len({each.partition for each in slices}),
        file_groups=len(slices),
        files=sum(1 for _ in inventory.data_files()),
        records=records,
    )


def _task(context: TableContext, inventory: Inventory, config: TableConfig) -> ReadContent:
    timeline = inventory.timeline
    schema = with_meta(table_schema(context.storage, inventory.store, timeline, config))
    instants = InstantRange.of(timeline)
    keys = ReadKeys(context.storage.spec, config, schema, instants, _KEYS_OF_SLICE)
    return ReadContent(keys, declared_index(config, context.storage, timeline))


def unused_index_findings(context: TableContext, inventory: Inventory) -> list[Finding]:
    """Return a finding for a record index that is not used although no key is repeated any more.

    Reads the keys of all records if the index is not used, and nothing otherwise.
    """
    places = indexed_places(inventory, context.clock)
    if places is None or places.unused is None:
        return []
    slices = list(inventory.view().all_slices())
    task = _task(context, inventory, inventory.config)
    found, _ = check_contents(context.engine, task, slices, None, is_global=places.is_global, places=places)
    return [each for each in found if each.remedy is Remedy.METADATA]


def properties_findings(context: TableContext) -> list[Finding]:
    """Return a finding for a damaged properties file."""
    problem = problem_of_properties(context.storage)
    if problem is None:
        return []
    text = f"The table properties are damaged: {problem}. Their backup is used; `repair` restores it."
    return [Finding(Severity.ERROR, "properties", text, PROPERTIES_PATH, None, Remedy.PROPERTIES)]


def future_findings(context: TableContext, inventory: Inventory) -> list[Finding]:
    """Return a finding for each instant that is more than a day in the future."""
    now = instant_time(context.clock.now_ms(), inventory.config.timezone)
    text = (
        "This instant is more than a day in the future: the clock of its writer was wrong, or that of this"
        " machine is. Check both. Until then new instants get times right after it, and ages, as in cleaning"
        " by hours, are wrong. To undo it, restore the table to the write before it."
    )
    return [
        Finding(Severity.WARNING, "timeline", text, None, each.requested)
        for each in inventory.timeline.instants
        if is_far_ahead(each.requested, now)
    ]


def leftover_findings(context: TableContext, inventory: Inventory) -> list[Finding]:
    """Return a finding for each temporary file of a killed writer."""
    text = "A killed process left this temporary file. `repair` deletes it."
    folders = (*own_folders(inventory.config), *inventory.files)
    return [
        Finding(Severity.NOTE, "temporary", text, each.path, None, Remedy.TEMPORARY)
        for each in abandoned_files(context.storage, context.clock, folders)
    ]
