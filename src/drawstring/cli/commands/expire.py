"""`drawstring expire`: drop the partitions whose time is over."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

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

_DAYS: Final = "hoodie.partition.ttl.strategy.days.retain"

Days = Annotated[
    int | None,
    Parameter(
        name="--days",
        validator=Number(gte=0),
        help=f"Days that a partition lives after its last write; what --hoodie {_DAYS} says by default.",
    ),
]


def expire(
    path: TablePath,
    *,
    days: Days = None,
    dry_run: DryRun = False,
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Drop the partitions that nobody wrote to for some days, as one commit."""
    table, given = open_table(path, option), named_values(hoodie)
    if days is not None:
        given[_DAYS] = str(days)
    if _DAYS not in given:
        raise InvalidError("say how many days a partition lives: --days 30, for instance")
    if dry_run:
        partitions = table.plan_expiry(**given)
        if as_json:
            output.print_json(partitions)
            return
        output.print_grid(("partition to drop",), [(each,) for each in partitions])
        output.print_line(f"{len(partitions)} partitions; nothing was dropped")
        return
    result = table.expire_partitions(**given)
    if as_json:
        output.print_json(asdict(result) if result else None)
    else:
        text = f"dropped old partitions at instant {result.instant}" if result else "no partition is that old"
        output.print_line(text)
