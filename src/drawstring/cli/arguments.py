"""Arguments that several commands share, and their parsing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.read import is_storage_key
from drawstring.storage import is_object_store
from drawstring.table import Table

TablePath = Annotated[str, Parameter(help="Root of the table: a folder, or an address (s3://bucket/table).")]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON for machines.")]
StorageOptions = Annotated[
    tuple[str, ...],
    Parameter(
        name="--storage-option", negative="", help="Option of the storage as NAME=VALUE; may be repeated."
    ),
]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", negative="", help="Show what would be done without doing it.")
]
HudiOptions = Annotated[
    tuple[str, ...],
    Parameter(
        name="--option",
        negative="",
        help="Option by Hudi's key as NAME=VALUE, for example hoodie.clean.policy=...; may be repeated.",
    ),
]


def open_table(path: str, options: tuple[str, ...], of_queries: Mapping[str, str] | None = None) -> Table:
    """Open the table of a command.

    Args:
        path: its root.
        options: options of the storage, as NAME=VALUE.
        of_queries: options of its queries by Hudi's keys.

    Raises:
        InvalidError: there is no table, an option is not of the form NAME=VALUE, or the table is not in
            an object store.
    """
    try:
        given = storage_options(options)
        of_stores = [name for name in given if not is_storage_key(name)]
        if of_stores and not is_object_store(path):
            raise InvalidError(f"{path} is not in an object store. Remove --storage-option {of_stores[0]}.")
        return drawstring.open(path, storage_options=given or None, options=of_queries)
    except DrawstringError as error:
        raise error.at(table=path) from error.__cause__


def storage_options(options: tuple[str, ...]) -> dict[str, str]:
    """Return `NAME=VALUE` arguments as a dictionary."""
    return _pairs(options, "A storage option")


def named_values(options: tuple[str, ...]) -> dict[str, str]:
    """Return options by Hudi's keys, given as `NAME=VALUE` arguments, as a dictionary."""
    return _pairs(options, "An option")


def column_names(columns: Sequence[str], flag: str) -> list[str] | None:
    """Return the columns of a flag; None if it was not given.

    Args:
        columns: columns, or several columns separated by commas, maybe with a trailing comma.
        flag: for the error.

    Raises:
        InvalidError: a name is empty.
    """
    names = [name.strip() for each in columns for name in each.removesuffix(",").split(",")]
    if not all(names):
        raise InvalidError(
            f"{flag} {','.join(columns)!r} has an empty name. Separate columns by single commas."
        )
    return names or None


def _pairs(options: tuple[str, ...], what: str) -> dict[str, str]:
    pairs = [option.partition("=") for option in options]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InvalidError(f"{what} must have the form NAME=VALUE, not {name!r}.")
    return {name: value for name, _, value in pairs}
