"""Policies of a query, parsed from their names."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar

from drawstring.base.errors import InvalidError

NEWEST: Final = "newest"
"""As the start of a range: the newest commit up to its end alone."""


def start_of(start: Any) -> Any:
    """Return the start of a range, None for the newest commit alone.

    Args:
        start: as the caller gave it.

    Raises:
        InvalidError: it is None, as the completion time of what has none.
    """
    if start is None:
        raise InvalidError(
            "The start is None, which is no time: a result of an action with nothing to do has no time, nor"
            " has an instant that is pending or, in table version 6, any. Pass a time, its `requested` in"
            " version 6, or 'earliest'; leave the start out for the newest commit alone."
        )
    return None if start == NEWEST else start


class Holes(StrEnum):
    """Treatment of a hole in a version 6 table: a pending write before a completed one."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


class OnCleaned(StrEnum):
    """What a follower does when the changes of commits after its position were archived or cleaned away."""

    FAIL = "fail"
    SNAPSHOT = "snapshot"
    EARLIEST = "earliest"


_Policy = TypeVar("_Policy", bound=StrEnum)


def policy_of(policies: type[_Policy], name: Any) -> _Policy:
    """Return the policy with a name, in upper or lower case.

    Args:
        policies: the existing policies.
        name: the name as the caller gave it.

    Raises:
        InvalidError: there is no such policy.
    """
    for policy in policies:
        if isinstance(name, str) and policy.upper() == name.upper():
            return policy
    raise InvalidError(f"There is no policy {name!r}. Choose one of {', '.join(policies)}.")
