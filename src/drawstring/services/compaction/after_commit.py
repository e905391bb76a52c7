"""Compaction after a commit.

| option | effect when due |
|---|---|
| `hoodie.compact.inline` | the write plans a compaction and runs it; it runs pending ones in any case |
| `hoodie.datasource.compaction.async.enable` | the write plans one, and a thread of this process runs it |
| `hoodie.compact.schedule.inline` | the write plans one, and another process runs it |
| none of the three | the write plans one and runs pending ones, as Hudi's batch writes do by default |
"""

from __future__ import annotations

from drawstring.services.background import run_in_background
from drawstring.services.compaction.run import run_pending, schedule_compaction
from drawstring.services.compaction.strategies import is_to_be_planned
from drawstring.timeline.instants import instant_time
from drawstring.write.write_outcome import WriteOutcome


def compact_after_commit(written: WriteOutcome) -> None:
    """Plan a compaction that is due, and run what is pending, as the options of the write say.

    Args:
        written: a write after which a compaction is due (`services.maintenance_tasks.compaction_is_due`).
    """
    context, options = written.context, written.options
    compaction = options.compaction
    now = instant_time(context.clock.now_ms(), written.config.timezone)
    planned = is_to_be_planned(written.timeline, compaction, now)
    scheduled = schedule_compaction(context, options, when_due=True) if planned else None
    if compaction.inline:
        run_pending(context, options)
    elif compaction.background and scheduled is not None:
        run_in_background(context, options, run_pending)
