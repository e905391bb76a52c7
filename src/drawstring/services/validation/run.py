"""Validation: checks a whole table and reports what is wrong; changes nothing, and damage raises no errors.

properties ── timeline ── commits ── listing ── slices, key by key
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from drawstring.base.errors import DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.index.choose import declared_index, is_global_index
from drawstring.model.files import FileSlice
from drawstring.model.instant import FILE_ACTIONS
from drawstring.model.validation import Finding, Remedy, Severity, Validation
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY, with_meta
from drawstring.services.progress import Progress
from drawstring.services.validation import table_checks
from drawstring.services.validation.content_checks import ReadContent, check_contents
from drawstring.services.validation.inventory import Inventory, take_inventory
from drawstring.services.validation.metadata_checks import indexed_places, metadata_findings
from drawstring.timeline.change_detection import ATTEMPTS_MAX, digest
from drawstring.timeline.instants import instant_time, is_far_ahead
from drawstring.timeline.properties_store import PROPERTIES_PATH, load_config, problem_of_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.live_work import worked_on
from drawstring.txn.rollback.temporary_files import left_behind, own_folders
from drawstring.txn.table_context import TableContext

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
        inventory = replace(inventory, worked_on=worked_on(context, pending))
    except DrawstringError as error:
        finding = Finding(Severity.ERROR, "timeline", error.message, error.path, error.instant)
        return Validation((*findings, finding))
    findings += inventory.unreadable
    for check in table_checks.ALL:
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
        findings=table_checks.worst_first(findings),
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
        for each in left_behind(context.storage, context.clock, folders)
    ]
