"""Options of a service that somebody calls, checked against the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drawstring.base.errors import InvalidError
from drawstring.config.options.agreement import check_against
from drawstring.config.options.write_options import WriteOptions, check_call
from drawstring.config.table.config import TableConfig
from drawstring.config.table.version_changes import leads_elsewhere


def service_options(config: TableConfig, given: Mapping[str, Any]) -> WriteOptions:
    """Return the options of a service.

    Args:
        config: of the table.
        given: options by Hudi's keys. What they say of the table has to be what the table says itself, as
            for a write.

    Raises:
        InvalidError: they say otherwise, or make no sense.
    """
    check_call(given)
    options = WriteOptions.parse(given)
    check_against(options, config)
    return options


def check_direction(config: TableConfig, version: int, *, lower: bool) -> None:
    """Refuse to upgrade a table to a lower version, or to downgrade it to a higher one.

    Args:
        config: of the table.
        version: the table version that was asked for.
        lower: whether the call is `downgrade`.

    Raises:
        InvalidError: the other call leads there.
    """
    current = config.version
    if leads_elsewhere(current, version, lower=lower):
        verb, other = ("downgrade", "upgrade") if lower else ("upgrade", "downgrade")
        raise InvalidError(
            f"The table has version {current}, so {verb} does not lead to {version}. Use {other}."
        )
