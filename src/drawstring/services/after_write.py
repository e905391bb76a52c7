"""What a write does for its table once it is committed.

| option | what happens when it is due |
|---|---|
| `hoodie.log.compaction.inline` | the write makes one log file of many where there are |
| `hoodie.compact.inline` | the write plans a compaction, and runs it; what is pending it runs in any case |
| `hoodie.datasource.compaction.async.enable` | it plans one, and a thread of this process runs it |
| `hoodie.compact.schedule.inline` | it plans one, and another process runs it |
| `hoodie.clustering.inline` | the write plans a clustering, and runs it |
| `hoodie.clustering.async.enabled` | it plans one, and a thread of this process runs it |
| `hoodie.clustering.schedule.inline` | it plans one, and another process runs it |
"""

from __future__ import annotations

from drawstring.config.options import WriteOptions
from drawstring.config.table import TableConfig
from drawstring.services.background import run_in_background
from drawstring.services.committed import write_stands
from drawstring.services.compaction import log_compact, run_pending, schedule_compaction
from drawstring.services.inline_clustering import cluster_when_due
from drawstring.txn.state import TableState


def look_after(state: TableState, config: TableConfig, options: WriteOptions) -> None:
    """Do what is due after a write; the write stands whatever becomes of it.

    Args:
        state: the table; its lock is free.
        config: of the table.
        options: of the write.
    """
    _compact(state, config, options)
    cluster_when_due(state, config, options)


def _compact(state: TableState, config: TableConfig, options: WriteOptions) -> None:
    asked = options.compaction
    compacts = asked.inline or asked.background or asked.schedule_inline
    if not config.is_merge_on_read or not (compacts or asked.log_inline):
        return
    with write_stands("the compaction", "run it again"):
        if asked.log_inline:
            log_compact(state, options)
        if not compacts:
            return
        scheduled = schedule_compaction(state, options, when_due=True)
        if asked.inline:
            run_pending(state, options)
        elif asked.background and scheduled is not None:
            run_in_background(state, options, run_pending)
