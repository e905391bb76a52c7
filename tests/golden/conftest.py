"""Golden tables, unpacked once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.storage import open_storage
from tests.support.golden import unpack


@pytest.fixture(scope="session")
def facts_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TableFacts]:
    """Open a golden table."""
    root = tmp_path_factory.mktemp("golden")

    @cache
    def open_table(name: str) -> TableFacts:
        return load_facts(open_storage(unpack(name, root / name)), SteppingClock())

    return open_table
