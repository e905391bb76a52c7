"""`drawstring expire-partitions`: delete expired partitions."""

from __future__ import annotations

from typing import Annotated, Final

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

_DAYS: Final = "hoodie.partition.ttl.strategy.days.retain"

RetainDays = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=0),
        help=f"Days to retain a partition after its last write; by default the value of --option {_DAYS}.",
    ),
]
Partitions = Annotated[
    tuple[str, ...], Parameter(negative="", help="Check only this partition path; may be repeated.")
]


def expire_partitions(
    path: TablePath,
    *,
    retain_days: RetainDays = None,
    partitions: Partitions = (),
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Delete the partitions without writes for a number of days, in one commit."""
    table, given = open_table(path, storage_option), named_values(option)
    if retain_days is None and _DAYS not in given:
        raise InvalidError("The retention is missing. Give a number of days, for example --retain-days 30.")
    only = list(partitions) or None
    if dry_run:
        found = table.plan_expiry(retain_days=retain_days, partitions=only, options=given)
        if as_json:
            output.print_json(found)
            return
        if found:
            output.print_grid(("partition to drop",), [(each,) for each in found])
        output.print_line(f"{counted(len(found), 'partition')}; nothing was dropped")
        return
    result = table.expire_partitions(retain_days=retain_days, partitions=only, options=given)
    if as_json:
        output.print_result(result)
    else:
        text = f"dropped old partitions at instant {result.instant}" if result else "no partition is that old"
        output.print_line(text)
