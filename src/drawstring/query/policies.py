"""Policies that a reader names."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from drawstring.base.errors import InvalidError

_Policy = TypeVar("_Policy", bound=StrEnum)


def policy_of(policies: type[_Policy], name: Any) -> _Policy:
    """Return the policy of a name, compared without case.

    Args:
        policies: those that there are.
        name: as the user gave it.

    Raises:
        InvalidError: there is no such policy.
    """
    for policy in policies:
        if isinstance(name, str) and policy.upper() == name.upper():
            return policy
    raise InvalidError(f"there is no policy {name!r}: choose {', '.join(policies)}")
