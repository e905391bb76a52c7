"""Repair of what `validate` found, as far as no decision of the user is needed.

| remedy | effect |
|---|---|
| `properties` | the properties file is restored from its backup |
| `partition-metadata` | the missing partition metadata file of a folder is written |
| `rollback` | failed writes are rolled back, and interrupted rollbacks finished |
| `temporary` | temporary files of killed writers are deleted |
| `orphan` | data files that no write lists are deleted |
| `metadata` | the metadata table is built again |
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from drawstring.base.errors import CorruptTableError, DrawstringError, InvalidError
from drawstring.config.keys.concurrency import DEFAULT_FAILED_WRITES, FailedWrites
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.base_file_writer import ensure_partition_metadata
from drawstring.metadata.definitions import definitions, reason_not_used, undefine
from drawstring.metadata.table import FILES, METADATA_FOLDER
from drawstring.model.files import parse_data_file
from drawstring.model.instant import FILE_ACTIONS
from drawstring.model.result import Finding, Remedy
from drawstring.services import validate
from drawstring.services.validate import leftover_findings, properties_findings, unused_index_findings
from drawstring.services.validation.inventory import Inventory, take_inventory
from drawstring.services.validation.metadata_checks import indexed_places, metadata_findings, read_indexes
from drawstring.storage.protocol import folders_above
from drawstring.timeline.properties import load_config, renew_properties
from drawstring.timeline.store import TimelineStore
from drawstring.txn.foreign_features import switch_off_metadata_table
from drawstring.txn.heartbeat import active_instants
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover

EVERYTHING = frozenset(Remedy)
_log = logging.getLogger("drawstring")


def repair(
    context: TableContext, options: WriteOptions, *, apply: bool, remedies: Collection[Remedy] = EVERYTHING
) -> tuple[Finding, ...]:
    """Repair a table, or return what there is to repair.

    Args:
        context: the open table.
        options: of writes: lock wait.
        apply: whether to repair.
        remedies: the remedies to apply.

    Returns:
        The findings that were, or would be, repaired.

    Raises:
        ConflictError: another writer holds the table, or has a live heartbeat.
        InvalidError: there is no table.
        CorruptTableError: the properties and their backup are gone, or the timeline cannot be read.
    """
    read = _read_beside_others(context) if Remedy.METADATA in remedies else _IndexesRead()
    with lock_table(context, options.locking) as locked:
        pending = locked.store.load().pending_of(*FILE_ACTIONS)
        live = active_instants(context, pending, options.failed_writes, holds_lock=True)
        findings = _repairable(locked, remedies, live, read)
        if apply and findings:
            _apply(locked, findings, options.failed_writes if live else DEFAULT_FAILED_WRITES)
        return tuple(findings)


def remedies_of(names: Collection[str]) -> Collection[Remedy]:
    """Return the remedies with the given names, all of them for no names.

    Raises:
        InvalidError: there is no remedy with a name.
    """
    try:
        return frozenset(map(Remedy, names)) or EVERYTHING
    except ValueError:
        wrong = next(each for each in names if each not in list(Remedy))
        raise InvalidError(f"There is no repair {wrong!r}. Choose among {', '.join(Remedy)}.") from None


@dataclass(frozen=True, slots=True)
class _IndexesRead:
    """What was read of the indexes, and of keys, before the table lock was taken.

    Attributes:
        are_sound: whether all records of the indexes can be read.
        unused: a finding if the record index is not used although no key is repeated; None if that is not
            known. Should one be repeated since, the index that is built anew says so.
    """

    are_sound: bool = False
    unused: Sequence[Finding] | None = None


def _read_beside_others(context: TableContext) -> _IndexesRead:
    """Read the indexes, and all keys if need be, while others write; what goes wrong is left to the lock."""
    storage, clock, are_sound = context.storage, context.clock, False
    try:
        config = load_config(storage)
        store = TimelineStore(storage, config, clock)
        if FILES not in config.metadata_partitions:
            return _IndexesRead()
        read_indexes(storage, config, store.load(), clock)
        are_sound = True
        if reason_not_used(definitions(storage)) is None:
            return _IndexesRead(are_sound, ())
        unused = unused_index_findings(context, take_inventory(storage, config, store))
        return _IndexesRead(are_sound, unused)
    except (DrawstringError, OSError) as error:
        _log.info("The indexes of %s are read under the table lock: %s", storage.spec.uri, error)
        return _IndexesRead(are_sound)


def _repairable(
    locked: LockedTable, remedies: Collection[Remedy], live: frozenset[str], read: _IndexesRead
) -> list[Finding]:
    """Return what there is to repair; actions that live processes work on are left to them."""
    inventory = take_inventory(locked.context.storage, locked.config, locked.store)
    inventory = replace(inventory, worked_on=live)
    findings = properties_findings(locked.context)
    for check in validate.CHECKS:
        findings += check(inventory)
    findings += leftover_findings(locked.context, inventory)
    are_doubtful = Remedy.METADATA in remedies and not read.are_sound
    findings += metadata_findings(inventory, locked.context.clock, findings, indexes=are_doubtful)
    if Remedy.METADATA in remedies and all(each.remedy is not Remedy.METADATA for each in findings):
        findings += _unused_index(locked, inventory, read)
    return [each for each in findings if each.remedy in remedies]


def _unused_index(locked: LockedTable, inventory: Inventory, read: _IndexesRead) -> Sequence[Finding]:
    """Return what `unused_index_findings` does; what was read before counts while the index is the same."""
    if read.unused is None:
        return unused_index_findings(locked.context, inventory)
    places = indexed_places(inventory, locked.context.clock) if read.unused else None
    return () if places is None or places.unused is None else read.unused


def _apply(locked: LockedTable, findings: list[Finding], failed: FailedWrites) -> None:
    """Apply the remedies of the findings; deletions last, after taking the inventory again."""
    remedies = {finding.remedy for finding in findings}
    storage = locked.context.storage
    partitions = locked.config.metadata_partitions
    if Remedy.PROPERTIES in remedies:
        renew_properties(storage, locked.context.clock)
    if Remedy.ROLLBACK in remedies:
        locked = recover(locked, failed)
    inventory = take_inventory(storage, locked.config, locked.store)
    if Remedy.PARTITION_METADATA in remedies:
        for finding in validate.partition_metadata(inventory):
            _mark_partition(inventory, (finding.path or "").strip("."))
    if Remedy.TEMPORARY in remedies:
        storage.drop_unfinished(
            finding.path for finding in findings if finding.remedy is Remedy.TEMPORARY and finding.path
        )
    if Remedy.ORPHAN in remedies:
        orphan_findings = (
            finding for finding in validate.unmatched(inventory) if finding.remedy is Remedy.ORPHAN
        )
        orphans = [finding.path for finding in orphan_findings if finding.path]
        if orphans:
            # A metadata table that was built from a listing has them, too.
            switch_off_metadata_table(storage, load_config(storage), locked.context.clock)
        storage.delete(orphans)
        storage.sync(folders_above(orphans))
    if partitions and remedies & {Remedy.ORPHAN, Remedy.METADATA}:
        _rebuild_metadata_table(locked, partitions)


def _rebuild_metadata_table(locked: LockedTable, partitions: Collection[str]) -> None:
    """Switch the metadata table off, and build it again with its partitions where this release can."""
    storage, clock, keeper = locked.context.storage, locked.context.clock, locked.keeper
    switch_off_metadata_table(storage, load_config(storage), clock)
    undefine(storage, ())  # a damaged file, which would be in the way
    try:
        if keeper.build(load_config(storage)):
            keeper.add_again({*partitions} - {FILES})
    except CorruptTableError as error:
        switch_off_metadata_table(storage, load_config(storage), clock)
        storage.delete_tree(METADATA_FOLDER)
        _log.warning("The metadata table stays off until nothing is missing: %s", error)


def _mark_partition(inventory: Inventory, partition: str) -> None:
    """Write the partition metadata, dated by the first write with a file in the partition."""
    times = [
        file.instant
        for status in inventory.files[partition]
        if (file := parse_data_file(status)) and inventory.timeline.has_completed(file.instant)
    ]
    ensure_partition_metadata(inventory.storage, partition, min(times))
    inventory.storage.sync([partition])
