"""Seeds of random histories: one in `make test`, the others in `make test-long`."""

from __future__ import annotations

from typing import Final

import pytest

SHORT_AND_LONG: Final = (0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3)))
