"""Names of timeline files in both layouts (specification: Timeline).

    state       layout 1 (version 6)         layout 2 (versions 8 and 9)
    requested   <T>.<action>.requested       the same
    inflight    <T>.<action>.inflight        the same; of a commit <T>.inflight in both
    completed   <T>.<action>                 <T>_<C>.<action>

T is the requested time, C the completion time. A completed compaction is called `commit`, a log
compaction `deltacommit`, a clustering `replacecommit`; layout 1 says `replacecommit` for a pending
clustering too. Files left in layout 2 by an upgrade may lack the completion time.
"""

from __future__ import annotations

import re

from drawstring.base.errors import InternalError
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import TimelineLayout

MOVED = "timeline.moved"
"""Stands in a timeline's folder while its files go, because another layout counts by now."""

_NAME = re.compile(r"(\d{14,})(?:_(\d{14,}))?(?:\.([a-z]+))?(?:\.(requested|inflight))?", re.ASCII)
_ACTIONS = {action.value: action for action in Action}


def parse_instant(file_name: str, layout: TimelineLayout) -> Instant | None:
    """Return the instant and state that a timeline file stands for, None for a foreign file.

    Args:
        file_name: name without its folder.
        layout: of the timeline.
    """
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    requested, completed, word, suffix = match.groups()
    if word == "inflight" and suffix is None:
        return None if completed else Instant(requested, Action.COMMIT, State.INFLIGHT)
    action = _ACTIONS.get(word)
    if action is None or (suffix == "inflight" and action is Action.COMMIT):
        return None
    if suffix is not None:
        return None if completed else Instant(requested, action, _pending_state(suffix))
    if completed is not None and not layout.has_completion_times:
        return None
    return Instant(requested, action, State.COMPLETED, completed)


def file_name(instant: Instant, layout: TimelineLayout) -> str:
    """Return the name of the file that brings an instant to its state.

    Args:
        instant: a completed one must be named by its completed action, such as `commit`.
        layout: of the timeline.

    Raises:
        InternalError: a completed instant is called by the action it had while pending.
    """
    word = layout.word(instant.action)
    if instant.state is State.REQUESTED:
        return f"{instant.requested}.{word}.requested"
    if instant.state is State.INFLIGHT:
        return f"{instant.requested}{'' if word == Action.COMMIT else '.' + word}.inflight"
    if instant.action is not instant.action.completed_action:
        raise InternalError(
            f"A completed {instant.action} is called {instant.action.completed_action}.",
            instant=instant.requested,
        )
    if not layout.has_completion_times or instant.completed is None:
        return f"{instant.requested}.{word}"
    return f"{instant.requested}_{instant.completed}.{word}"


def _pending_state(suffix: str) -> State:
    return State.REQUESTED if suffix == "requested" else State.INFLIGHT
