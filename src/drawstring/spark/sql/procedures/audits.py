"""Procedures of the record of a table's leases (`hoodie.write.lock.provider` on object stores)."""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.services.validation.lock_audit import clean_lock_audit, has_lock_audit, lock_audit
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.lock_audit import AUDIT_FOLDER, AUDIT_SWITCH, is_audited, switch_audit

_STATES: Final = {"enabled": True, "disabled": False}


def set_audit_lock(call: Call) -> Rows:
    """Have the leases on a table recorded, or no longer.

    Raises:
        InvalidError: the state is neither.
    """
    state = call.needed("state").lower()
    if state not in _STATES:
        raise InvalidError(f"state is {' or '.join(_STATES)}, not {state!r}.")
    switch_audit(_storage(call), _STATES[state])
    return [(_shown(call), state, f"Lock audit logging successfully {state}")]


def show_audit_lock_status(call: Call) -> Rows:
    """Return whether leases are recorded, and where."""
    storage = _storage(call)
    paths = storage.full_uri(AUDIT_SWITCH), storage.full_uri(AUDIT_FOLDER)
    return [(_shown(call), is_audited(storage), *paths)]


def validate_audit_lock(call: Call) -> Rows:
    """Check the recorded leases: whether two overlap, and whether each was released."""
    storage, name = _storage(call), _shown(call)
    if not has_lock_audit(storage):
        return [(name, "PASSED", 0, 0, "No audit folder found - nothing to validate")]
    found = lock_audit(storage)
    if not found.leases:
        return [(name, "FAILED", 0, len(found.unreadable), "Failed to parse any audit files")]
    errors = [f"[ERROR] {one} => overlaps with {other}" for one, other in found.overlaps]
    warnings = [
        f"[WARNING] {each} => transaction did not end gracefully. This could be due to driver OOM or"
        " non-graceful shutdown."
        for each in found.unended
    ]
    result = "FAILED" if errors else "WARNING" if warnings else "PASSED"
    details = ", ".join(errors + warnings) or "All audit lock transactions validated successfully"
    return [(name, result, found.leases, len(errors) + len(warnings), details)]


def cleanup_audit_lock(call: Call) -> Rows:
    """Delete old records of leases."""
    storage, name = _storage(call), _shown(call)
    days, is_dry = call.number("age_days") or 0, call.flag("dry_run")
    clock = call.table._context.clock
    has_records = has_lock_audit(storage)
    cleaned = len(clean_lock_audit(storage, clock, age_days=days, apply=not is_dry))
    if not has_records:
        return [(name, 0, is_dry, days, "No audit folder found - nothing to cleanup")]
    if not cleaned:
        message = f"No audit files older than {days} days found"
    elif is_dry:
        message = f"Dry run: Would delete {cleaned} audit files older than {days} days"
    else:
        message = f"Successfully deleted {cleaned} audit files older than {days} days"
    return [(name, cleaned, is_dry, days, message)]


def _storage(call: Call) -> Storage:
    return call.table._context.storage


def _shown(call: Call) -> str:
    """Return the table as the call names it."""
    return call.text("table") or call.needed("path")


PROCEDURES: Final = (
    Procedure(
        "set_audit_lock",
        "table STRING, path STRING, state STRING!",
        "table STRING, audit_state STRING, message STRING",
        set_audit_lock,
    ),
    Procedure(
        "show_audit_lock_status",
        "table STRING, path STRING",
        "table STRING, audit_enabled BOOLEAN, config_path STRING, audit_folder_path STRING",
        show_audit_lock_status,
    ),
    Procedure(
        "validate_audit_lock",
        "table STRING, path STRING",
        "table STRING, validation_result STRING, transactions_validated INT, issues_found INT,"
        " details STRING",
        validate_audit_lock,
    ),
    Procedure(
        "cleanup_audit_lock",
        "table STRING, path STRING, dry_run BOOLEAN=false, age_days INT=7",
        "table STRING, files_cleaned INT, dry_run BOOLEAN, age_days INT, message STRING",
        cleanup_audit_lock,
    ),
)
"""`CALL`: Hudi's procedures, by their names, parameters and columns."""
