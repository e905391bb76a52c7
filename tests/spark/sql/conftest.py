"""A database of its own for each test of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import settings_kept
from tests.support.sql import Ask


@pytest.fixture
def sql(session: SparkSession, tmp_path: Path) -> Iterator[Ask]:
    """Runs a statement in an empty database and returns its rows, sorted."""

    def ask(statement: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in session.sql(statement).collect()), key=repr)

    session.sql(f"CREATE DATABASE lake LOCATION '{tmp_path}/lake'")
    session.sql("USE lake")
    before = _views(session)
    with settings_kept(session):
        yield ask
    for view in _views(session) - before:
        session.catalog.dropTempView(view)
    session.sql("USE default")
    session.sql("DROP DATABASE lake CASCADE")


def _views(session: SparkSession) -> set[str]:
    return {row.viewName for row in session.sql("SHOW VIEWS").collect() if row.isTemporary}
