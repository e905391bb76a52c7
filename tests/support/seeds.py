"""Random histories: one seed and half of the steps in `make test`, the others in `make test-long`."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.faults import stride

SHORT_AND_LONG: Final = (0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3)))


def scaled_steps(count: int) -> int:
    """Return how many steps of so many a history takes; its test is marked as scaled."""
    return count if stride() == 1 else (count + 1) // 2
