"""Show a table: `show`, `head`, and the groups `inspect` and `holds`.

drawstring show                 settings, columns, last write and size
drawstring head                 the first rows of a snapshot, or the plan of reading them
drawstring inspect files        the latest file slices
drawstring inspect partitions   partitions with their file groups, files and size
drawstring inspect metadata     the partitions and records of the metadata table
drawstring inspect timeline     the instants, oldest first
drawstring holds add, ...       positions of readers whose unread commits cleaning and archiving retain
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.base.text_format import pluralize
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    column_names,
    named_values,
    open_table,
)
from drawstring.cli.commands.indexes import print_unused
from drawstring.model.files import FileSlice
from drawstring.model.instant import Hold, InstantStatus
from drawstring.model.result import size_text
from drawstring.query.scan import Scan
from drawstring.schema.fields import without_meta
from drawstring.table import Table

OnePartition = Annotated[str | None, Parameter(name="--partition", help="Show only this partition path.")]


def files(
    path: TablePath,
    *,
    partition: OnePartition = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """List the files that a snapshot reads: each file group's base file and log files."""
    slices = list(open_table(path, storage_option).inspect.files())
    if partition is not None:
        slices = _of_partition(slices, partition, path)
    slices.sort(key=lambda part: (part.partition, part.file_id))
    if as_json:
        output.print_json([_as_dict(part) for part in slices])
        return
    output.print_grid(
        ("partition", "file group", "instant", "base file", "log files", "size"),
        (_row(part) for part in slices),
    )
    total = size_text(sum(part.size_bytes for part in slices))
    groups = pluralize(len(slices), "file group")
    output.print_line(f"{groups}, {total}")


def partitions(path: TablePath, *, as_json: AsJson = False, storage_option: StorageOptions = ()) -> None:
    """List the partitions that a snapshot reads, with their file groups, files and size."""
    rows = open_table(path, storage_option).inspect.partitions().to_pylist()
    if as_json:
        output.print_json(rows)
        return
    output.print_grid(
        ("partition", "file groups", "base files", "log files", "size"),
        ((*list(row.values())[:-1], size_text(row["size_bytes"])) for row in rows),
    )
    output.print_line(pluralize(len(rows), "partition"))


def _of_partition(slices: list[FileSlice], partition: str, table: str) -> list[FileSlice]:
    found = [part for part in slices if part.partition == partition.strip("/")]
    if not found:
        known = sorted({part.partition for part in slices})
        some = ", ".join(map(repr, known[:5])) + (", ..." if len(known) > 5 else "")
        raise InvalidError(
            f"There is no partition {partition!r}. "
            + (f"Use one of {some}." if known else "The table has none."),
            table=table,
        )
    return found


def _row(part: FileSlice) -> tuple[object, ...]:
    base = size_text(part.base.status.size_bytes) if part.base else "-"
    size = size_text(part.size_bytes)
    return part.partition, part.file_id, part.base_instant, base, len(part.logs), size


def _as_dict(part: FileSlice) -> dict[str, object]:
    return {
        "partition": part.partition,
        "file_id": part.file_id,
        "base_instant": part.base_instant,
        "base_file": part.base.status.path if part.base else None,
        "log_files": [log.status.path for log in part.logs],
        "size_bytes": part.size_bytes,
    }


Rows = Annotated[int, Parameter(name=("--rows", "-n"), validator=Number(gte=0), help="How many rows.")]
Columns = Annotated[
    tuple[str, ...],
    Parameter(name=("--columns", "-c"), negative="", help="Columns, separated by commas; may be repeated."),
]
Where = Annotated[str | None, Parameter(name=("--where", "-w"), help="SQL predicate that selects the rows.")]
AsOf = Annotated[str | None, Parameter(name="--as-of", help="As of an instant or a date-time.")]
ReadOptimized = Annotated[
    bool, Parameter(name="--read-optimized", negative="", help="Read base files only, without log files.")
]
Explain = Annotated[
    bool,
    Parameter(name="--explain", negative="", help="Show which files are read and skipped, instead of rows."),
]


def head(
    path: TablePath,
    *,
    rows: Rows = 10,
    columns: Columns = (),
    where: Where = None,
    as_of: AsOf = None,
    read_optimized: ReadOptimized = False,
    explain: Explain = False,
    option: HudiOptions = (),
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Print the first rows of a table."""
    table = open_table(path, storage_option, named_values(option))
    scan = partial(table.scan, where=where, as_of=as_of, read_optimized=read_optimized)
    if explain:
        _explain(scan(), as_json=as_json)
        return
    names = column_names(columns, "--columns") or without_meta(scan().schema).names
    shown = _first_rows(scan(columns=names), rows)
    if as_json:
        output.print_json(shown)
    else:
        output.print_grid(names, ([row[name] for name in names] for row in shown))


def _explain(scan: Scan, *, as_json: bool) -> None:
    explanation = scan.explain()
    if as_json:
        output.print_json(explanation.to_dict())
    else:
        output.print_line(explanation.summary)
        output.print_grid(("", "step", "skipped", "kept"), explanation.rows())
        for note in explanation.notes:
            output.print_line(note)


def _first_rows(scan: Scan, count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for batch in scan.to_batches():
        found += batch.slice(0, min(count - len(found), batch.num_rows)).to_pylist(maps_as_pydicts="lossy")
        if len(found) >= count:
            break
    return found


HoldName = Annotated[str, Parameter(help="Name of the hold, as of its reader.")]
Position = Annotated[str | None, Parameter(name="--position", help="Position of the reader; now by default.")]
Hours = Annotated[float, Parameter(name="--hours", help="Hours that the hold lasts.")]


def add_hold(
    path: TablePath,
    name: HoldName,
    *,
    position: Position = None,
    hours: Hours = 24.0,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Place a hold, or move it: cleaning and archiving retain all files written after its position."""
    table = open_table(path, storage_option)
    table.holds.add(name, position, hours=hours)
    _print_holds(table, as_json=as_json)


def release_hold(
    path: TablePath, name: HoldName, *, as_json: AsJson = False, storage_option: StorageOptions = ()
) -> None:
    """Release a hold."""
    table = open_table(path, storage_option)
    table.holds.release(name)
    _print_holds(table, as_json=as_json)


def list_holds(path: TablePath, *, as_json: AsJson = False, storage_option: StorageOptions = ()) -> None:
    """List the holds of readers; cleaning and archiving retain all files written after their positions."""
    _print_holds(open_table(path, storage_option), as_json=as_json)


def _print_holds(table: Table, *, as_json: bool) -> None:
    found = [hold_fields(each) for each in table.holds.list()]
    if as_json:
        output.print_json(found)
    elif not found:
        output.print_line("no reader holds a position")
    else:
        output.print_grid(("hold", "position", "until"), (tuple(each.values()) for each in found))


def hold_fields(hold: Hold) -> dict[str, str]:
    """Return the fields of a hold to print."""
    until = datetime.fromtimestamp(hold.until_ms / 1000, UTC)
    return {"name": hold.name, "position": hold.position, "until": until.isoformat(timespec="seconds")}


MetadataPartition = Annotated[
    str | None, Parameter(help="Partition of the metadata table; all are listed without.")
]
Keys = Annotated[
    tuple[str, ...],
    Parameter(
        name="--key",
        negative="",
        help="Show only a record key of record_index, a value of a secondary index, a column of statistics"
        " or a partition of files; may be repeated.",
    ),
]


def metadata(
    path: TablePath,
    partition: MetadataPartition = None,
    /,
    *,
    key: Keys = (),
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Show the partitions of the metadata table, or the records of one: files, statistics, keys."""
    table = open_table(path, storage_option)
    rows = table.inspect.metadata(partition, keys=key or None)
    if as_json:
        output.print_json(rows.to_pylist())
        return
    titles = [name.replace("_", " ") for name in rows.column_names]
    output.print_grid(titles, (list(row.values()) for row in rows.to_pylist()))
    output.print_line(pluralize(rows.num_rows, "partition" if partition is None else "record"))
    with suppress(CorruptTableError):  # `drawstring services validate` tells
        print_unused([each for each in table.indexes.list() if partition in (None, each.name)])


def show(path: TablePath, *, as_json: AsJson = False, storage_option: StorageOptions = ()) -> None:
    """Show the settings, columns, last write and size of a table."""
    table = open_table(path, storage_option)
    settings, content = _settings(table), _content(table)
    columns, comments = {field.name: str(field.type) for field in table.schema}, table.columns.comments
    if as_json:
        holds = [hold_fields(each) for each in table.holds.list()]
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
    slices = table.inspect.files()
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
    return [each for each in table.inspect.instants() if not each.instant.is_completed]


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


LastInstants = Annotated[
    int | None,
    Parameter(
        name=("--last", "-n"), validator=Number(gte=0), help="Show only this many of the newest instants."
    ),
]


def timeline(
    path: TablePath,
    *,
    last: LastInstants = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """List the instants of a table with action and times, oldest first."""
    states = open_table(path, storage_option).inspect.instants(last=last)
    if as_json:
        output.print_json(
            [
                {
                    "requested": instant.requested,
                    "completed": instant.completed,
                    "action": str(instant.action),
                    "state": instant.state.name,
                    "rolled_back": list(each.rolled_back),
                    "is_worked_on": each.is_worked_on,
                }
                for each in states
                for instant in (each.instant,)
            ]
        )
        return
    if not states:
        output.print_line("no instant")
        return
    output.print_grid(
        ("instant", "action", "state", "requested", "completed", "note"),
        (
            (
                instant.requested,
                str(instant.action),
                instant.state.name.lower(),
                output.instant_text(instant.requested),
                output.instant_text(instant.completed),
                _note(each),
            )
            for each in states
            for instant in (each.instant,)
        ),
    )


def _note(status: InstantStatus) -> str:
    """Return what a rollback or restore undid, and whether a process works on a pending action."""
    verb = "undid" if status.instant.is_completed else "undoes"
    notes = [f"{verb} {', '.join(status.rolled_back)}"] if status.rolled_back else []
    if status.is_worked_on is not None:
        notes.append("a process is at work" if status.is_worked_on else "no process is at work")
    return "; ".join(notes)
