"""The type of the fixture `limit` (`tests/conftest.py`)."""

from __future__ import annotations

from typing import Protocol


class SetLimits(Protocol):
    """Sets limits of this process (`drawstring.base.limits`) until the end of the test."""

    def __call__(self, **limits: float) -> None: ...
