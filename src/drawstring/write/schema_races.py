"""The schema of a write beside which others committed: who changes it, and who loses (RFC-82)."""

from __future__ import annotations

from drawstring.timeline.table_schema import table_schema_json, with_history
from drawstring.timeline.timeline import Timeline
from drawstring.txn.lost_races import schema_race
from drawstring.write.facts import WriteFacts


def resolved_schema(facts: WriteFacts, schema_json: str, now: Timeline) -> str:
    """Return the table schema for the commit metadata of a write.

    Args:
        facts: the table when the write began.
        schema_json: the schema with which the write wrote its files.
        now: the timeline under the table lock, with further writes.

    Raises:
        LostRaceError: this write and another one changed the schema, or its files seem to have columns that
            another one has renamed.
    """
    locked = facts.locked
    began, current = (
        table_schema_json(locked.context.storage, locked.store, timeline, locked.config)
        for timeline in (facts.timeline, now)
    )
    altered = _altered_since(facts, now)
    if altered is not None and altered > facts.time and schema_json == began:
        return schema_json  # readers look for its columns by the version that its files were written with
    if altered is None and schema_json in (began, current):
        return current or schema_json  # this write changes nothing, or what the other one changed too
    # The schema of a table is that of the write with the greatest requested time.
    is_latest = all(write.requested < facts.time for write in now.writes())
    if altered is None and is_latest and current == began:
        return schema_json
    since = [each for each in now.writes() if facts.timeline.write_at(each.requested) is None]
    written = [(each, locked.store.commit_metadata(each)) for each in since]
    others = (each for each in written if each[1].schema_json not in (None, began))
    raise schema_race(facts.time, *next(others, (None, None)))


def _altered_since(facts: WriteFacts, now: Timeline) -> str | None:
    """Return the instant that gave the schema another version since a write began, None without one."""
    locked = facts.locked
    began, current = (
        with_history(locked.config, locked.context.storage, locked.store, timeline).history
        for timeline in (facts.timeline, now)
    )
    if current is None or (began is not None and began.requested == current.requested):
        return None
    return str(current.requested)
