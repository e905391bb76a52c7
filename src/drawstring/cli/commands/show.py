"""`drawstring show`: settings, columns, last write and size of a table."""

from __future__ import annotations

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.cli.commands.holds import hold_fields
from drawstring.model.explanation import size_text
from drawstring.model.instant_status import InstantStatus
from drawstring.table import Table


def show(path: TablePath, *, as_json: AsJson = False, storage_option: StorageOptions = ()) -> None:
    """Show the settings, columns, last write and size of a table."""
    table = open_table(path, storage_option)
    settings, content = _settings(table), _content(table)
    columns, comments = {field.name: str(field.type) for field in table.schema}, table.comments
    if as_json:
        holds = [hold_fields(each) for each in table.holds()]
        last = _last_write(table)
        pending = [_pending_fields(each) for each in _pending(table)]
        facts = {**settings, **content, "last_write": last, "pending": pending}
        output.print_json({**facts, "columns": columns, "comments": comments, "holds": holds})
        return
    people = {**settings, **content, "last_write": output.instant_text(_last_write(table))}
    people["pending"] = [_pending_text(each) for each in _pending(table)]
    people["size"] = size_text(content["size_bytes"])
    del people["size_bytes"]
    output.print_facts((name.replace("_", " "), _joined(value)) for name, value in people.items())
    if comments:
        told = ((name, kind, comments.get(name, "")) for name, kind in columns.items())
        output.print_grid(("column", "type", "comment"), told, title="\ncolumns")
        return
    output.print_grid(("column", "type"), columns.items(), title="\ncolumns")


def _settings(table: Table) -> dict[str, object]:
    config = table.config
    return {
        "name": config.name,
        "type": str(config.table_type),
        "version": config.version,
        "storage_layout": config.storage_layout,
        "record_key": list(config.record_key_fields),
        "partition_by": list(config.partition_fields),
        "ordering": list(config.ordering_fields),
        "merge_mode": str(config.merge_mode),
    }


def _content(table: Table) -> dict[str, int]:
    slices = table.file_slices()
    return {
        "writes": len(table.timeline.writes()),
        "partitions": len({part.partition for part in slices}),
        "file_groups": len(slices),
        "base_files": sum(part.base is not None for part in slices),
        "log_files": sum(len(part.logs) for part in slices),
        "size_bytes": sum(part.size_bytes for part in slices),
    }


def _last_write(table: Table) -> str | None:
    latest = table.timeline.latest_write()
    return latest.requested if latest else None


def _pending(table: Table) -> list[InstantStatus]:
    """Return the writes and services that have begun and are not completed."""
    return [each for each in table.instants() if not each.instant.is_completed]


def _pending_fields(status: InstantStatus) -> dict[str, object]:
    instant = status.instant
    return {
        "requested": instant.requested,
        "action": str(instant.action),
        "state": instant.state.name,
        "is_worked_on": status.is_worked_on,
    }


def _pending_text(status: InstantStatus) -> str:
    work = {True: ", a process is at work", False: ", no process is at work", None: ""}[status.is_worked_on]
    return f"{status.instant.action} {status.instant.requested} ({status.instant.state.name.lower()}{work})"


def _joined(value: object) -> object:
    return ", ".join(map(str, value)) or "(none)" if isinstance(value, list) else value
