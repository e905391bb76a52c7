"""For all tests of the simulation: the store that their tables lie in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.simulation.stores import place_of_tables


@pytest.fixture(scope="session", autouse=True)
def store() -> Iterator[None]:
    with place_of_tables():
        yield
