"""Check and repair a table, restore it, and change its version: the commands of an administrator.

drawstring services rollback             roll back one pending instant
drawstring services validate, repair     check the invariants of a table, and repair it
drawstring savepoints create, ...        retain the state of the table after a write, and return to it
drawstring versions upgrade, ...         change the table version or the storage layout
drawstring inspect locks                 holders of the lock, waiters, and workers on pending instants
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.base.text_format import pluralize
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    DryRun,
    HudiOptions,
    StorageOptions,
    TablePath,
    named_values,
    open_table,
)
from drawstring.cli.output import progress_bar
from drawstring.model.result import (
    Finding,
    LockState,
    PendingWork,
    PlannedRollback,
    RollbackResult,
    Validation,
    VersionPlan,
    VersionResult,
)
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.services.rollback import instants_to_roll_back
from drawstring.table import Table

Pending = Annotated[
    str | None,
    Parameter(
        help="Requested time of the pending instant, see `drawstring inspect timeline`; the newest write by"
        " default. Required for plans."
    ),
]


def rollback(
    path: TablePath,
    instant: Pending = None,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Roll back a failed write, or the plan of a compaction or clustering.

    Committed rows stay. To undo completed instants, see `drawstring savepoints restore`.
    """
    table, given = open_table(path, storage_option), named_values(option)
    result = (table.services.plan_rollback if dry_run else table.services.rollback)(instant, options=given)
    if as_json:
        _print_for_machines(result)
    elif not result:
        output.print_line("no write is pending")
    elif isinstance(result, RollbackResult):
        files = pluralize(result.files, "file")
        output.print_line(f"rolled back the {result.action} {result.instant}: {files}")
    else:
        output.print_grid(("file to delete",), [(each,) for each in result.files])
        files = pluralize(len(result.files), "file")
        output.print_line(f"the {result.action} {result.instant}, {files}; nothing was rolled back")
    if not as_json:
        for each in instants_to_roll_back(table.timeline):
            if not result or each.requested != result.instant:
                text = f"also pending, to be rolled back by name: the {each.action} {each.requested}"
                output.print_line(text)


def _print_for_machines(result: RollbackResult | PlannedRollback | None) -> None:
    if isinstance(result, RollbackResult):
        output.print_result(result)
    else:
        output.print_json(asdict(result) if result else None)


WriteInstant = Annotated[
    str | None, Parameter(name="--instant", help="Requested time of the write; the newest by default.")
]
Comments = Annotated[str, Parameter(name="--comments", help="Reason for the savepoint.")]
User = Annotated[str, Parameter(name="--user", help="Who makes the savepoint.")]
SavedInstant = Annotated[str, Parameter(help="Requested time of the write whose savepoint is deleted.")]
Instant = Annotated[
    str, Parameter(help="Requested time of a write with a savepoint, or whose files still exist.")
]


def create_savepoint(
    path: TablePath,
    *,
    instant: WriteInstant = None,
    comments: Comments = "",
    user: User = "",
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Retain the files of a write in cleaning and archiving, so that a restore can return to it."""
    table, given = open_table(path, storage_option), named_values(option)
    created = table.savepoints.create(instant, comments=comments, user=user, options=given)
    if as_json:
        output.print_json({"instant": created})
    else:
        output.print_line(f"saved {created}")


def delete_savepoint(
    path: TablePath,
    instant: SavedInstant,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Delete a savepoint; cleaning and archiving may then delete the files of its write."""
    open_table(path, storage_option).savepoints.delete(instant, options=named_values(option))
    if as_json:
        output.print_json({"instant": instant})
    else:
        output.print_line(f"deleted the savepoint of {instant}")


def list_savepoints(path: TablePath, *, as_json: AsJson = False, storage_option: StorageOptions = ()) -> None:
    """List the savepoints of a table."""
    saved = open_table(path, storage_option).savepoints.list()
    if as_json:
        output.print_json(saved)
    elif not saved:
        output.print_line("no savepoint")
    else:
        rows = [(instant, output.instant_text(instant)) for instant in saved]
        output.print_grid(("savepoint", "of the write of"), rows)


def restore(
    path: TablePath,
    instant: Instant,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Undo all changes after a write. This cannot be reverted: check with --dry-run first."""
    table, given = open_table(path, storage_option), named_values(option)
    if dry_run:
        plan = table.savepoints.plan_restore(instant)
        if as_json:
            output.print_json(asdict(plan))
            return
        rows = [(time, action, output.instant_text(time)) for time, action in plan.instants]
        output.print_grid(("instant to undo", "action", "requested"), rows)
        output.print_line(f"{pluralize(len(rows), 'instant')}; nothing was undone")
        return
    result = table.savepoints.restore(instant, options=given)
    if as_json:
        output.print_result(result)
    elif not result:
        output.print_line("nothing to undo")
    else:
        instants, files = pluralize(len(result.rolled_back), "instant"), pluralize(result.files, "file")
        undone = f"undid {instants}, deleted {files}"
        text = f"{undone}: the table is as of {result.restored_to}, in {result.seconds:.1f} s"
        output.print_line(text)


Quick = Annotated[
    bool, Parameter(negative="", help="Compare names and sizes only, without reading the files.")
]
GlobalKeys = Annotated[
    bool,
    Parameter(negative="", help="Require unique keys across partitions, even if the table names no index."),
]
Apply = Annotated[bool, Parameter(negative="", help="Apply the repairs; otherwise only show them.")]
Only = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Repair: metadata, orphan, partition-metadata, properties, rollback or temporary; may be"
        " repeated.",
    ),
]


def validate(
    path: TablePath,
    *,
    quick: Quick = False,
    global_keys: GlobalKeys = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Check the invariants of a table, key by key; the exit code is 2 if there is an error."""
    table = open_table(path, storage_option)
    with progress_bar(table.config.name) as began:
        reading = began(f"reading {table.config.name}")
        found = table.services.validate(quick=quick, global_keys=global_keys, progress=reading)
    if as_json:
        output.print_json({"sound": found.is_sound, **asdict(found)})
    else:
        _show(found.findings)
        output.print_line(_summary(found))
    if not found.is_sound:
        errors = sum(1 for each in found.findings if each.severity == "error")
        raise CorruptTableError(
            f"The table has {pluralize(errors, 'error')}. See each finding above.", table=path
        )


def repair(
    path: TablePath,
    *,
    apply: Apply = False,
    only: Only = (),
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Show the repairs that need no decision, and apply them with --apply."""
    done = open_table(path, storage_option).services.repair(
        only=only, apply=apply, options=named_values(option)
    )
    if as_json:
        output.print_json([asdict(each) for each in done])
        return
    _show(done)
    if not done:
        output.print_line(
            "nothing to repair without a decision; drawstring services validate tells whether anything else"
            " is wrong"
        )
    elif apply:
        output.print_line(f"{pluralize(len(done), 'repair')} applied")
    else:
        output.print_line(f"{pluralize(len(done), 'repair')} found; apply them with --apply")


def _show(findings: Sequence[Finding]) -> None:
    if findings:
        rows = [(each.severity, each.check, each.path, each.instant, each.what) for each in findings]
        output.print_grid(("severity", "check", "where", "instant", "what"), rows)


def _summary(found: Validation) -> str:
    looked = [
        pluralize(found.instants, "instant"),
        pluralize(found.partitions, "partition"),
        pluralize(found.file_groups, "file group"),
        pluralize(found.files, "file"),
    ]
    if found.records is not None:
        looked.append(pluralize(found.records, "record"))
    return f"{'sound' if found.is_sound else 'not sound'}: looked at {', '.join(looked)}"


UpgradeVersion = Annotated[int, Parameter(name="--to", help="Table version to upgrade to: 8, 9 or 10.")]
DowngradeVersion = Annotated[int, Parameter(name="--to", help="Table version to downgrade to: 6, 8 or 9.")]
Layout = Annotated[str, Parameter(name="--to", help="Storage layout: default.")]


def upgrade(
    path: TablePath,
    *,
    to: UpgradeVersion = DEFAULT_VERSION,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Upgrade a table to a higher version, by default to 9. First stop writers without support."""
    table = open_table(path, storage_option)
    _change(
        table, table.versions.upgrade, to, "upgrading", named_values(option), dry_run=dry_run, as_json=as_json
    )


def downgrade(
    path: TablePath,
    *,
    to: DowngradeVersion,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Downgrade a table to a lower version, for older readers and writers."""
    table = open_table(path, storage_option)
    _change(
        table,
        table.versions.downgrade,
        to,
        "downgrading",
        named_values(option),
        dry_run=dry_run,
        as_json=as_json,
    )


def set_layout(
    path: TablePath,
    *,
    to: Layout,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Return a table with sorted files (lsm_tree) to the default storage layout; no file is rewritten."""
    table = open_table(path, storage_option)
    changed = table.versions.set_storage_layout(to, options=named_values(option))
    if as_json:
        output.print_json({"layout": table.config.storage_layout, "changed": changed})
        return
    text = "has the storage layout" if changed else "already had the storage layout"
    output.print_line(f"the table {text} {table.config.storage_layout}")


def _change(
    table: Table,
    change: Callable[..., VersionResult],
    to: int,
    running: str,
    options: dict[str, str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change the version of a table under a progress bar, or show what would change."""
    if dry_run:
        _show_plan(table.versions.plan(to), as_json)
        return
    name = table.config.name
    with progress_bar(name) as began:
        result = change(to, progress=began(f"{running} {name}"), options=options)
    _show_version(result, as_json)


def _show_plan(plan: VersionPlan, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(plan))
        return
    if plan.properties:
        rows = [(key, before, after) for key, (before, after) in plan.properties.items()]
        output.print_grid(("table property", "now", "then"), rows)
    timeline = "; its timeline moves to another layout" if plan.moves_timeline else ""
    text = f"version {plan.old} to {plan.new}{timeline}; nothing was changed"
    output.print_line(text)


def _show_version(result: VersionResult, as_json: bool) -> None:
    if as_json:
        output.print_result(result)
        return
    if result.old == result.new:
        text = f"the table has version {result.new} already"
        if result.instants:
            text += f"; deleted {pluralize(result.instants, 'file')} of an interrupted change"
    else:
        moved = (
            f", {pluralize(result.instants + result.archived, 'instant')} moved" if result.instants else ""
        )
        folded = f", compacted at {result.compacted}" if result.compacted else ""
        text = f"version {result.old} is {result.new} now{folded}{moved}, in {result.seconds:.1f} s"
    output.print_line(text)


Audit = Annotated[
    Literal["on", "off", "check", "clean"] | None,
    Parameter(
        name="--audit",
        help="Have the leases of the lock on object stores recorded, or no longer; check the record; or"
        " delete old records.",
    ),
]
AgeDays = Annotated[
    int | None,
    Parameter(
        name="--age-days",
        validator=Number(gte=1),
        help="For --audit clean: age in days beyond which a record goes; 7 by default.",
    ),
]
_SHOWN = 3
_AGE_DAYS = 7


def locks(
    path: TablePath,
    *,
    audit: Audit = None,
    age_days: AgeDays = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Show who holds the lock of a table or waits for it, and who works on its pending instants."""
    if audit != "clean" and (age_days is not None or dry_run):
        given = "--dry-run" if age_days is None else "--age-days"
        raise InvalidError(f"{given} is for --audit clean. Add that, or leave {given} out.")
    if audit == "clean":
        _clean(open_table(path, storage_option), age_days or _AGE_DAYS, is_dry=dry_run, as_json=as_json)
        return
    if audit is not None:
        _audit(open_table(path, storage_option), audit, as_json=as_json)
        return
    found = open_table(path, storage_option).inspect.locks(options=named_values(option))
    if as_json:
        held = [_lock_fields(each) for each in found.locks]
        output.print_json({"locks": held, "pending": [_fields(each) for each in found.pending]})
        return
    for lock in found.locks:
        output.print_line(_lock_text(lock))
    if not found.pending:
        output.print_line("nothing is pending")
        return
    output.print_grid(
        ("instant", "action", "state", "process", "at work", "goes first in", "file groups"),
        (_cells(each) for each in found.pending),
    )
    for each in found.pending:
        output.print_line(f"{each.instant.action} {each.instant.requested}: {each.advice}")


def _audit(table: Table, act: str, *, as_json: bool) -> None:
    if act != "check":
        table.services.record_leases(act == "on")
    found = table.inspect.lease_audit()
    if as_json:
        output.print_json(asdict(found))
        return
    state = "recorded" if found.enabled else "not recorded"
    output.print_line(f"leases are {state}; {pluralize(found.leases, 'lease')} on record")
    if table._context.storage.local_path("") is not None:
        output.print_line(
            "the table is in local files: of its own lock nothing is recorded, only of writers with"
            " hoodie.write.lock.provider=storage"
        )
    for one, other in found.overlaps:
        output.print_line(f"{one} overlaps with {other}: two writers held the lock at once")
    for name in found.unended:
        output.print_line(f"{name} was not released: its process died, or still holds it")
    for name in found.unreadable:
        output.print_line(f"{name} is no record of a lease")


def _clean(table: Table, age_days: int, *, is_dry: bool, as_json: bool) -> None:
    files = table.services.clean_lease_audit(age_days=age_days, apply=not is_dry)
    if as_json:
        output.print_json({"changed": bool(files) and not is_dry, "files": list(files)})
        return
    found, done = pluralize(len(files), "record"), "would be deleted" if is_dry else "deleted"
    output.print_line(f"{found} of leases older than {pluralize(age_days, 'day')} {done}")


def _lock_fields(lock: LockState) -> Mapping[str, object]:
    waiters = None if lock.waiters is None else list(lock.waiters)
    return {"provider": lock.provider, "holder": lock.holder or None, "waiters": waiters}


def _lock_text(lock: LockState) -> str:
    held = f"held by {lock.holder}" if lock.holder else "free"
    if lock.waiters is None:
        waiting = "; who waits is not known" if lock.holder else ""
    else:
        waiting = f"; waiting: {', '.join(lock.waiters)}" if lock.waiters else ""
    return f"lock ({lock.provider}): {held}{waiting}"


def _fields(work: PendingWork) -> Mapping[str, object]:
    instant = work.instant
    return {
        "requested": instant.requested,
        "action": str(instant.action),
        "state": instant.state.name,
        "process": work.process or None,
        "is_alive": work.is_alive,
        "heartbeat_age_ms": work.heartbeat_age_ms,
        "heartbeat_left_ms": work.heartbeat_left_ms,
        "reserves_table": work.reserves_table,
        "reserved_partitions": list(work.reserved_partitions),
        "file_groups": list(work.file_groups),
        "advice": work.advice,
    }


def _cells(work: PendingWork) -> tuple[str, ...]:
    instant, more = work.instant, len(work.file_groups) - _SHOWN
    first = "the whole table" if work.reserves_table else ", ".join(work.reserved_partitions)
    groups = ", ".join(work.file_groups[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return (
        instant.requested,
        str(instant.action),
        instant.state.name.lower(),
        work.process,
        _liveness(work),
        first,
        groups,
    )


def _liveness(work: PendingWork) -> str:
    """Return whether a process is at work, and how old its heartbeat is."""
    life = {True: "yes", False: "no", None: ""}[work.is_alive]
    if work.heartbeat_age_ms is None or work.heartbeat_left_ms is None:
        return life
    beat = f"heartbeat {work.heartbeat_age_ms // 1000} s ago"
    if work.heartbeat_left_ms < 0:
        beat = f"heartbeat expired {-work.heartbeat_left_ms // 1000} s ago"
    return f"{life}, {beat}" if life else beat
