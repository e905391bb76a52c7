"""The properties of a table replaced as a whole, to repair them, and its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import table_config
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT, is_sorted
from drawstring.timeline.properties_store import save_properties
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table

_NAME: Final = "hoodie.table.name"
_STAY: Final = ("hoodie.table.version", _NAME, "hoodie.table.type", "hoodie.timeline.path")


def overwrite_properties(
    context: TableContext, properties: Mapping[str, str], options: WriteOptions
) -> Mapping[str, str]:
    """Replace all properties of a table.

    Args:
        context: the table.
        properties: the new ones.
        options: of writes: lock.

    Returns:
        The properties before.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: the new ones are no properties of a table, or those of another table.
    """
    with lock_table(context, options.locking) as locked:
        old = dict(locked.config.properties)
        try:
            table_config(properties)
        except (CorruptTableError, UnsupportedError) as error:
            raise InvalidError(f"The new properties cannot be those of a table: {error.message}") from error
        for key in _STAY:
            if properties.get(key) != old.get(key):
                raise InvalidError(
                    f"{key} is {old.get(key)!r} and would become {properties.get(key)!r}, which the files of"
                    " the table are not. Correct the new properties."
                )
        if is_sorted(properties) and not locked.config.has_sorted_files:
            raise InvalidError(
                f"{STORAGE_LAYOUT} would become {LSM_TREE}, but the files of the table are not sorted by"
                " record key. Leave it out of the new properties."
            )
        locked.lock.check()
        save_properties(context.storage, properties, context.clock)
    return old


def rename(context: TableContext, name: str, options: WriteOptions) -> None:
    """Give a table another name (`hoodie.table.name`).

    Args:
        context: the table.
        name: the new one.
        options: of writes: lock.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        locked.lock.check()
        save_properties(context.storage, {**locked.config.properties, _NAME: name}, context.clock)
