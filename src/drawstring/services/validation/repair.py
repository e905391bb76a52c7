"""Put right what `validate` found, as far as nobody has to decide anything.

| remedy | what is done |
|---|---|
| `properties` | the backup of the properties is put in their place |
| `partition-metadata` | the file that makes a folder a partition is put there |
| `rollback` | dead writes are rolled back, and rollbacks that were cut short finished |
| `temporary` | temporary files that killed writers left are deleted |
| `orphan` | data files that no write accounts for are deleted |
"""

from __future__ import annotations

from collections.abc import Collection

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.write.base_writer import ensure_partition
from drawstring.model.files import parse_data_file
from drawstring.model.validation import Finding, Remedy
from drawstring.services.validation import table_checks
from drawstring.services.validation.inventory import Inventory, take_inventory
from drawstring.services.validation.run import leftover_findings, properties_findings
from drawstring.storage.paths import folders_above
from drawstring.timeline.properties_store import load_config, renew_properties
from drawstring.txn.metadata_table import switch_off_metadata_table
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover

EVERYTHING = frozenset(Remedy)


def repair(
    state: TableContext, options: WriteOptions, *, apply: bool, remedies: Collection[Remedy] = EVERYTHING
) -> tuple[Finding, ...]:
    """Repair a table, or say what there is to repair.

    Args:
        state: the table.
        options: of writes: lock wait.
        apply: whether to do it.
        remedies: which kinds of it.

    Returns:
        The findings that were, or would be, put right.

    Raises:
        ConflictError: another writer holds the table, or shows signs of life.
        InvalidError: there is no table.
        CorruptTableError: the properties and their backup are gone, or the timeline makes no sense.
    """
    with lock_table(state, options.lock_wait_ms) as session:
        findings = _repairable(session, remedies)
        if apply and findings:
            _apply(session, findings)
        return tuple(findings)


def remedies_of(names: Collection[str]) -> Collection[Remedy]:
    """Return the remedies that are called by name, all of them for no name.

    Raises:
        InvalidError: there is none of that name.
    """
    try:
        return frozenset(map(Remedy, names)) or EVERYTHING
    except ValueError as error:
        raise InvalidError(f"{error}: choose {', '.join(Remedy)}") from None


def _repairable(session: LockedTable, remedies: Collection[Remedy]) -> list[Finding]:
    inventory = take_inventory(session.state.storage, session.config, session.store)
    found = properties_findings(session.state)
    for check in table_checks.ALL:
        found += check(inventory)
    found += leftover_findings(session.state, inventory)
    return [each for each in found if each.remedy in remedies]


def _apply(session: LockedTable, findings: list[Finding]) -> None:
    """Do what the findings ask for, the deletions last and after a look at the table as it is then."""
    asked = {finding.remedy for finding in findings}
    storage = session.state.storage
    if Remedy.PROPERTIES in asked:
        renew_properties(storage, session.state.clock)
    if Remedy.ROLLBACK in asked:
        session = recover(session)
    inventory = take_inventory(storage, session.config, session.store)
    if Remedy.PARTITION_METADATA in asked:
        for finding in table_checks.partition_metadata(inventory):
            _mark_partition(inventory, (finding.path or "").strip("."))
    if Remedy.TEMPORARY in asked:
        storage.drop_unfinished(
            each.path for each in findings if each.remedy is Remedy.TEMPORARY and each.path
        )
    if Remedy.ORPHAN in asked:
        found = (each for each in table_checks.unmatched(inventory) if each.remedy is Remedy.ORPHAN)
        orphans = [each.path for each in found if each.path]
        if orphans:
            # One that was made by listing lists them too.
            switch_off_metadata_table(storage, load_config(storage), session.state.clock)
        storage.delete(orphans)
        storage.sync(folders_above(orphans))


def _mark_partition(inventory: Inventory, partition: str) -> None:
    """Put the partition's file, dated by the first write that has a file there."""
    times = [
        file.instant
        for status in inventory.files[partition]
        if (file := parse_data_file(status)) and inventory.timeline.has_completed(file.instant)
    ]
    ensure_partition(inventory.storage, partition, min(times))
    inventory.storage.sync([partition])
