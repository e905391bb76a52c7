"""`drawstring holds`: what readers asked cleaning to leave alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.model.hold import Hold

Place = Annotated[str | None, Parameter(name="--hold", help="Place a hold of this name, or move it.")]
Release = Annotated[str | None, Parameter(name="--release", help="Give the hold of this name up.")]
Position = Annotated[
    str | None, Parameter(name="--position", help="Where the reader of --hold stands; now by default.")
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
    """Show what readers hold; cleaning and archiving keep what was written after these positions."""
    table = open_table(path, storage_option)
    if position is not None and hold is None:
        raise InvalidError("--position needs --hold, the name of the reader")
    if release is not None and not table.release(release):
        raise InvalidError(f"there is no hold {release!r}")
    if hold is not None:
        table.hold(hold, position, hours=hours)
    found = [hold_fields(each) for each in table.holds()]
    if as_json:
        output.print_json(found)
    else:
        output.print_grid(("hold", "position", "until"), (tuple(each.values()) for each in found))


def hold_fields(hold: Hold) -> dict[str, str]:
    """Return what people and machines want to know of a hold."""
    until = datetime.fromtimestamp(hold.until_ms / 1000, UTC)
    return {"name": hold.name, "position": hold.position, "until": until.isoformat(timespec="seconds")}
