"""Entries of the metadata of commits that a commit takes over from earlier ones."""

from __future__ import annotations

from collections.abc import Mapping

from drawstring.config.keys.rolling_metadata import RollingMetadata
from drawstring.model.instant import time_of
from drawstring.timeline.store import TimelineStore


def rolled_entries(
    store: TimelineStore, rolling: RollingMetadata, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the entries that a commit takes over: those of the newest commits that have them.

    Args:
        store: the table's timeline.
        rolling: which entries, and in how many commits they are looked for.
        extra: the entries that the commit has already; empty ones are taken over as well.
    """
    missing = {key for key in rolling.keys if not extra.get(key)}
    found: dict[str, str] = {}
    if not missing:
        return found
    newest = sorted(store.load().writes(), key=time_of, reverse=True)[: rolling.lookback]
    for write in newest:
        entries = store.commit_metadata(write).extra
        found |= {key: entries[key] for key in missing - found.keys() if entries.get(key)}
        if len(found) == len(missing):
            break
    return found
