"""Names of timeline files in both layouts (specification: Timeline).

    state       layout 1 (version 6)         layout 2 (versions 8 and 9)
    requested   <T>.<action>.requested       the same
    inflight    <T>.<action>.inflight        the same; of a commit <T>.inflight in both
    completed   <T>.<action>                 <T>_<C>.<action>

T is the requested time, C the completion time. A completed compaction is named `commit`, a log
compaction `deltacommit`, a clustering `replacecommit`; layout 1 uses `replacecommit` for a pending
clustering too. Files that an upgrade left in layout 2 may lack the completion time.
"""

from __future__ import annotations

import re

from drawstring.base.errors import InternalError
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import TimelineLayout

MOVED = "timeline.moved"
"""Name of a file in the folder of a timeline that is being deleted, since the other layout counts now."""

_NAME = re.compile(r"(\d{14,})(?:_(\d{14,}))?(?:\.([a-z]+))?(?:\.(requested|inflight))?", re.ASCII)
_ACTIONS = {action.value: action for action in Action}


def parse_instant(file_name: str, layout: TimelineLayout) -> Instant | None:
    """Return the instant and state of a timeline file, None for a foreign file.

    Args:
        file_name: name without its folder.
        layout: of the timeline.
    """
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    requested, completed, action_name, suffix = match.groups()
    if action_name == "inflight" and suffix is None:
        return None if completed else Instant(requested, Action.COMMIT, State.INFLIGHT)
    action = _ACTIONS.get(action_name)
    if action is None or (suffix == "inflight" and action is Action.COMMIT):
        return None
    if suffix is not None:
        return None if completed else Instant(requested, action, _pending_state(suffix))
    if completed is not None and not layout.has_completion_times:
        return None
    return Instant(requested, action, State.COMPLETED, completed)


def file_name(instant: Instant, layout: TimelineLayout) -> str:
    """Return the name of the file of an instant's state.

    Args:
        instant: a completed one must be named by its completed action, such as `commit`.
        layout: of the timeline.

    Raises:
        InternalError: a completed instant has the action name of a pending one.
    """
    action_name = layout.word(instant.action)
    if instant.state is State.REQUESTED:
        return f"{instant.requested}.{action_name}.requested"
    if instant.state is State.INFLIGHT:
        return f"{instant.requested}{'' if action_name == Action.COMMIT else '.' + action_name}.inflight"
    if instant.action is not instant.action.completed_action:
        raise InternalError(
            f"A completed {instant.action} must have the action {instant.action.completed_action}.",
            instant=instant.requested,
        )
    if not layout.has_completion_times or instant.completed is None:
        return f"{instant.requested}.{action_name}"
    return f"{instant.requested}_{instant.completed}.{action_name}"


def _pending_state(suffix: str) -> State:
    return State.REQUESTED if suffix == "requested" else State.INFLIGHT
