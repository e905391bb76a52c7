"""What a validation finds."""

from __future__ import annotations

from typing import Any

from drawstring.table import Table


def errors(table: Table) -> list[Any]:
    """Return the errors that a validation of a table finds."""
    return [each for each in table.services.validate().findings if each.severity == "error"]


def problems(table: Table) -> list[Any]:
    """Return the errors and warnings that a validation of a table finds."""
    return [each for each in table.services.validate().findings if each.severity != "note"]
