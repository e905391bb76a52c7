"""Which ways of merging log records this release knows."""

from __future__ import annotations

from drawstring.base.errors import UnsupportedError
from drawstring.config.table import MergeMode, TableConfig


def check_mergeable(config: TableConfig) -> None:
    """Check that the log records of a table can be merged rightly.

    Args:
        config: the table.

    Raises:
        UnsupportedError: they cannot, naming the way that the table merges.
    """
    if config.merge_mode is MergeMode.CUSTOM:
        raise UnsupportedError(
            f"the table merges records by {config.payload_class or 'a merger of its own'}, which is not"
            " available yet: read it with read_optimized, or compact it first"
        )
    if config.partial_update_mode:
        raise UnsupportedError(
            f"the table merges records with partial updates ({config.partial_update_mode}), which are not"
            " available yet: read it with read_optimized, or compact it first"
        )
