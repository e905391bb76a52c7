"""Policies of a query, parsed from their names."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from drawstring.base.errors import InvalidError


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
