"""Compaction after a commit.

| option | what happens when it is due |
|---|---|
| `hoodie.compact.inline` | the write plans a compaction, and runs it; what is pending it runs in any case |
| `hoodie.datasource.compaction.async.enable` | it plans one, and a thread of this process runs it |
| `hoodie.compact.schedule.inline` | it plans one, and another process runs it |
| none of these three | it plans one, and runs what is pending: Hudi's batch writes compact by default |
"""

from __future__ import annotations

from drawstring.services.background import run_in_background
from drawstring.services.compaction.run import run_pending, schedule_compaction
from drawstring.services.compaction.strategies import is_due, is_to_be_planned
from drawstring.timeline.instants import instant_time
from drawstring.write.committed import Committed


def compact_after_commit(written: Committed) -> None:
    """Plan a compaction that is due, and run what is pending, as the options of the write say.

    Whether one is due is known from the timeline in hand: no lock and no listing for that.
    """
    state, options, timeline = written.state, written.options, written.timeline
    asked = options.compaction
    now = instant_time(state.clock.now_ms(), written.config.timezone)
    planned = is_to_be_planned(timeline, asked, now)
    scheduled = schedule_compaction(state, options, when_due=True) if planned else None
    if asked.inline and (not asked.by_default or is_due(timeline, asked, now)):
        run_pending(state, options)
    elif asked.background and scheduled is not None:
        run_in_background(state, options, run_pending)
