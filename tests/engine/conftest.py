"""The engines that the contract is checked on."""

from __future__ import annotations

import pytest

from tests.support.engines import ENGINES, Started, start_engine


@pytest.fixture(params=ENGINES)
def started(request: pytest.FixtureRequest) -> Started:
    return start_engine(request.param)
