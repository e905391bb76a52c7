"""Checkpoints of ingested sources in commits, where Hudi's own ingestion tool keeps them.

extraMetadata   streamer.checkpoint.key.v2          where the source goes on; of tables before version 8
                                                    deltastreamer.checkpoint.key
                streamer.checkpoint.reset.key.v2    the checkpoint that a user asked for; before version 8
                                                    deltastreamer.checkpoint.reset_key
                deltastreamer.checkpoint.ignore_key what a user said so that checkpoints before do not count
                _drawstring_ingest_state            what the source needs besides, None in Hudi's commits
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from drawstring.model.commit import CommitMetadata

_KEYS: Final = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
_RESET_KEYS: Final = ("streamer.checkpoint.reset.key.v2", "deltastreamer.checkpoint.reset_key")
_IGNORE_KEY: Final = "deltastreamer.checkpoint.ignore_key"
_STATE_KEY: Final = "_drawstring_ingest_state"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a source goes on.

    Attributes:
        key: the position in Hudi's form; empty for the beginning.
        state: what the source needs besides, empty for nothing.
        reset: the checkpoint from which the user asked to start.
        ignore: what the user said so that earlier checkpoints do not count.
    """

    key: str
    state: str = ""
    reset: str = ""
    ignore: str = ""

    def to_text(self) -> str:
        """Return the checkpoint as one text."""
        return json.dumps([self.key, self.state, self.reset, self.ignore])

    @staticmethod
    def of_text(text: str) -> Checkpoint:
        """Return the checkpoint of a text that `to_text` returned."""
        return Checkpoint(*json.loads(text))


@dataclass(frozen=True, slots=True)
class StreamerCheckpoints:
    """Keeps checkpoints in commits.

    Attributes:
        is_old: whether the table's version is older than Hudi's second kind of keys.
    """

    is_old: bool

    def entries(self, position: str) -> dict[str, str]:
        """Return the extra metadata of a commit that has a checkpoint, given as one text."""
        checkpoint = Checkpoint.of_text(position)
        kept = {
            _KEYS[self.is_old]: checkpoint.key,
            _RESET_KEYS[self.is_old]: checkpoint.reset,
            _IGNORE_KEY: checkpoint.ignore,
            _STATE_KEY: checkpoint.state,
        }
        return {key: value for key, value in kept.items() if value}

    def position_in(self, commit: CommitMetadata) -> str | None:
        """Return the checkpoint of a commit as one text; None without one."""
        extra = commit.extra
        key, reset = _first(extra, _KEYS), _first(extra, _RESET_KEYS)
        if not key and not reset:
            return None
        return Checkpoint(key, extra.get(_STATE_KEY) or "", reset, extra.get(_IGNORE_KEY) or "").to_text()


def _first(extra: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """Return the value of the newest kind of key that a commit has; empty without any."""
    return next((value for key in keys if (value := extra.get(key))), "")


def start_after(stored: Checkpoint | None, asked: str | None, ignored: str | None) -> Checkpoint | None:
    """Return the checkpoint to go on from, None for the beginning of the source.

    As in Hudi, a user's wish counts until a commit has it: a job that is restarted with the same arguments
    goes on where it stopped.

    Args:
        stored: the last one in the table.
        asked: the one to start from.
        ignored: any text; a new one lets stored checkpoints count no more.
    """
    if ignored and (stored is None or stored.ignore != ignored):
        return Checkpoint(asked) if asked else None
    if asked and (stored is None or stored.reset != asked):
        return Checkpoint(asked)
    return stored if stored is not None and stored.key else None
