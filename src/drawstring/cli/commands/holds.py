"""`drawstring holds`: positions of readers whose files cleaning retains."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.model.hold import Hold

Place = Annotated[str | None, Parameter(name="--hold", help="Place a hold of this name, or move it.")]
Release = Annotated[str | None, Parameter(name="--release", help="Release the hold of this name.")]
Position = Annotated[
    str | None, Parameter(name="--position", help="Position of the reader of --hold; now by default.")
]
Hours = Annotated[float, Parameter(name="--hours", help="Hours that --hold lasts.")]


def holds(
    path: TablePath,
    *,
    hold: Place = None,
    position: Position = None,
    hours: Hours = 24.0,
    release: Release = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Show the holds of readers; cleaning and archiving retain all files written after their positions."""
    table = open_table(path, storage_option)
    if position is not None and hold is None:
        raise InvalidError("--position needs --hold. Give the name of the reader with --hold.")
    if release is not None and not table.release(release):
        raise InvalidError(f"There is no hold {release!r}. List the holds with drawstring holds.")
    if hold is not None:
        table.hold(hold, position, hours=hours)
    found = [hold_fields(each) for each in table.holds()]
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
