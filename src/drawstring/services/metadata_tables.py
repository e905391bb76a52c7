"""The metadata table of a table, made and deleted on request; writes make and keep one by themselves."""

from __future__ import annotations

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.metadata.partitions import METADATA_FOLDER
from drawstring.txn.foreign_features import switch_off_metadata_table
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table, recover


def metadata_address(context: TableContext) -> str:
    """Return the address of the metadata table of a table."""
    return f"{context.storage.spec.uri}/{METADATA_FOLDER}"


def create_metadata_table(context: TableContext, options: WriteOptions) -> None:
    """Build the metadata table of a table that has none.

    Args:
        context: the table.
        options: of writes: lock, policy for failed writes.

    Raises:
        ConflictError: another writer holds the table, or pending actions are in the way.
        InvalidError: the table has one.
    """
    with lock_table(context, options.locking) as locked:
        if locked.config.metadata_partitions:
            raise InvalidError(
                f"The table has one already: {metadata_address(context)}. Delete it first to build it anew."
            )
        locked = recover(locked, options.failed_writes)
        if not locked.keeper.build(locked.config):
            raise ConflictError(
                "Actions are pending, so the metadata table cannot be built now. Run them or roll them back"
                " first."
            )


def delete_metadata_table(context: TableContext, options: WriteOptions) -> bool:
    """Delete the metadata table of a table, with its indexes; the next write that keeps one builds it anew.

    Args:
        context: the table.
        options: of writes: lock.

    Returns:
        Whether the table had one.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        return switch_off_metadata_table(context.storage, locked.config, context.clock) is not None
