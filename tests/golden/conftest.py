"""Golden tables, unpacked once."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import cache

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.query.facts import TableFacts, load_facts
from drawstring.storage import open_storage
from tests.golden.cases import TABLES


@pytest.fixture(scope="session")
def facts_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TableFacts]:
    """Open a golden table."""
    root = tmp_path_factory.mktemp("golden")

    @cache
    def open_table(name: str) -> TableFacts:
        with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
            packed.extractall(root / name)
        return load_facts(open_storage(root / name / name), SteppingClock())

    return open_table
