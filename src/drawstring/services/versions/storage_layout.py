"""The return of a table from the storage layout `lsm_tree` to `default`: one put of the properties."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.storage_layout import DEFAULT_LAYOUT, LSM_TREE, STORAGE_LAYOUT
from drawstring.timeline.properties_store import properties_version, save_properties
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table


def set_storage_layout(context: TableContext, layout: str, options: WriteOptions) -> bool:
    """Change the storage layout of a table; its files stay as they are.

    Writers that began before may still write sorted files, which both layouts allow.

    Args:
        context: the open table.
        layout: `default`; `lsm_tree` only if the table has it.
        options: lock wait.

    Returns:
        Whether it changed.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: the table does not have sorted files, or there is no such layout.
    """
    wanted = layout.strip().lower()
    if wanted not in (DEFAULT_LAYOUT, LSM_TREE):
        raise InvalidError(f"There is no storage layout {layout!r}. Use {DEFAULT_LAYOUT} or {LSM_TREE}.")
    with lock_table(context, options.locking) as locked:
        config = locked.config
        if wanted == config.storage_layout:
            return False
        if wanted == LSM_TREE:
            raise InvalidError(
                f"The files of the table are not sorted, so {STORAGE_LAYOUT} cannot become {LSM_TREE}. Create"
                " another table with this property, and copy the rows."
            )
        storage = context.storage
        version = properties_version(storage)
        locked.lock.check()
        properties = {**config.properties, STORAGE_LAYOUT: DEFAULT_LAYOUT}
        save_properties(storage, properties, context.clock, version)
    return True
