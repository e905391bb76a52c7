"""Checks of the options of a clustering against the table's index and schema."""

from __future__ import annotations

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.clustering import RESIZING, Layout, bare
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT
from drawstring.filegroups.read.key_order import is_key_order
from drawstring.index.existing_writes import has_rings, is_bucketed, refuse_undeclared_bucket_index
from drawstring.services.clustering.plan import parameters
from drawstring.services.clustering.row_order import RowOrder
from drawstring.services.service_files import file_settings
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


def check_clustering(locked: LockedTable, timeline: Timeline, options: WriteOptions) -> None:
    """Refuse a clustering that the table's index does not allow, or that sorts by missing columns."""
    _check_index(locked, timeline, options)
    _check_sorted_files(locked, options)
    if timeline.latest_write() is not None:
        order = RowOrder.of(parameters(options.clustering), options.clustering)
        order.check(file_settings(locked, timeline, "", options)[0].full_schema)


def _check_sorted_files(locked: LockedTable, options: WriteOptions) -> None:
    """Refuse another order than that of the record keys, if the table's files are sorted by them."""
    config, columns = locked.config, options.clustering.cluster_by
    is_linear = len(columns) < 2 or options.clustering.layout.upper() == Layout.LINEAR
    if config.has_sorted_files and not (is_linear and is_key_order(columns, config.record_key_fields)):
        how = "" if is_linear else f" along a curve ({options.clustering.layout})"
        raise InvalidError(
            f"The files of the table are sorted by record key ({STORAGE_LAYOUT}={LSM_TREE}), so they cannot"
            f" be sorted by {', '.join(columns)}{how}. Leave the sort columns out.",
            table=locked.context.storage.spec.uri,
        )


def _check_index(locked: LockedTable, timeline: Timeline, options: WriteOptions) -> None:
    """Refuse a plan that would move keys to file groups where the index does not look for them."""
    kind, strategy = locked.config.index_type or options.index_type, bare(options.clustering.plan_strategy)
    table, rings = locked.context.storage.spec.uri, has_rings(locked.context.storage)
    if rings and strategy not in ("", RESIZING):
        raise InvalidError(
            f"{strategy} does not fit a consistent hashing index. Leave the strategy out.", table=table
        )
    if strategy == RESIZING and not rings:
        raise InvalidError(
            f"{strategy} needs a consistent hashing index. Leave the strategy out.", table=table
        )
    if rings or timeline.latest_write() is None:
        return
    if kind is None:
        refuse_undeclared_bucket_index(
            locked.store, timeline, "Such a table cannot be clustered. Compact it instead"
        )
    elif kind == "BUCKET" and (locked.config.index_type or is_bucketed(locked.store, timeline)):
        raise UnsupportedError(
            "A table with a simple bucket index cannot be clustered, since the key determines the file group"
            " of a record. Compact it instead.",
            table=table,
        )
    elif kind == "BUCKET":
        raise InvalidError(
            "hoodie.index.type is BUCKET, but the file groups of the table are not buckets. Leave the option"
            " out.",
            table=table,
        )
