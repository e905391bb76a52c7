"""`drawstring locks`: who holds the lock of a table or waits for it, and who works on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.counted import counted
from drawstring.base.errors import InvalidError
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
from drawstring.model.table_locks import LockState, PendingWork
from drawstring.table import Table

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
    found = open_table(path, storage_option).locks(options=named_values(option))
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
        table.record_leases(act == "on")
    found = table.lease_audit()
    if as_json:
        output.print_json(asdict(found))
        return
    state = "recorded" if found.enabled else "not recorded"
    output.print_line(f"leases are {state}; {counted(found.leases, 'lease')} on record")
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
    files = table.clean_lease_audit(age_days=age_days, apply=not is_dry)
    if as_json:
        output.print_json({"changed": bool(files) and not is_dry, "files": list(files)})
        return
    found, done = counted(len(files), "record"), "would be deleted" if is_dry else "deleted"
    output.print_line(f"{found} of leases older than {counted(age_days, 'day')} {done}")


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
        _life(work),
        first,
        groups,
    )


def _life(work: PendingWork) -> str:
    """Return whether a process is at work, and how old its heartbeat is."""
    life = {True: "yes", False: "no", None: ""}[work.is_alive]
    if work.heartbeat_age_ms is None or work.heartbeat_left_ms is None:
        return life
    beat = f"heartbeat {work.heartbeat_age_ms // 1000} s ago"
    if work.heartbeat_left_ms < 0:
        beat = f"heartbeat expired {-work.heartbeat_left_ms // 1000} s ago"
    return f"{life}, {beat}" if life else beat
