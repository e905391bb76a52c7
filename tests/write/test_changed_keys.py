"""What the writer of a rewritten base file says of the keys that came and went."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.model.commit import CommitMetadata, WriterFacts
from drawstring.model.instant import Instant
from drawstring.table import Table
from drawstring.txn.foreign_features import MetadataTableGuard
from tests.support.limits import SetLimits
from tests.support.rows import rides
from tests.support.tables import COW, create


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[WriterFacts | None]:
    """What was held for each file that was committed."""
    held: list[WriterFacts | None] = []
    content_of = MetadataTableGuard.content_of

    def noted(self: MetadataTableGuard, instant: Instant, metadata: CommitMetadata) -> bytes:
        held.extend(each.held for each in metadata.stats)
        return content_of(self, instant, metadata)

    monkeypatch.setattr(MetadataTableGuard, "content_of", noted)
    return held


def changed(held: WriterFacts | None) -> set[tuple[Any, ...]] | None:
    keys = None if held is None else held.changed_keys
    return None if keys is None else {tuple(row.values()) for row in keys.to_pylist()}


def written(table_type: str = COW) -> Table:
    table = create(table_type=table_type)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    return table


def test_a_rewritten_file_tells_its_new_and_its_deleted_keys(told: list[WriterFacts | None]) -> None:
    table = written()
    assert changed(told.pop()) is None
    table.upsert(rides(("a", "rome", 2, 2.0), ("c", "rome", 2, 2.0), ("d", "rome", 2, 2.0)))
    assert changed(told.pop()) == {("c", False), ("d", False)}
    table.delete(rides(("a", "rome", 3, 3.0), ("nobody", "rome", 3, 3.0)))
    assert changed(told.pop()) == {("a", True)}
    table.upsert(rides(("b", "rome", 4, 4.0)))
    assert changed(told.pop()) == set()


def test_many_keys_are_not_told(told: list[WriterFacts | None], limit: SetLimits) -> None:
    limit(changed_keys_max=2)
    table = written()
    table.upsert(rides(*((key, "rome", 2, 2.0) for key in "cd")))
    assert changed(told.pop()) == {("c", False), ("d", False)}
    table.upsert(rides(*((key, "rome", 2, 2.0) for key in "efg")))
    assert changed(told.pop()) is None
    table.delete(rides(*((key, "rome", 3, 2.0) for key in "abc")))
    assert changed(told.pop()) is None
