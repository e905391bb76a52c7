"""What a validation finds."""

from __future__ import annotations

from typing import Any

from drawstring.table import Table


def errors(table: Table) -> list[Any]:
    return [each for each in table.validate().findings if each.severity == "error"]


def problems(table: Table) -> list[Any]:
    return [each for each in table.validate().findings if each.severity != "note"]
