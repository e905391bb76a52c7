"""A table that is written again and again looks after itself: nothing about it grows.

The benchmark's soak (`bench/scripts/soak.py`) does the same for thousands of batches, and times them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create

WRITES, SETTLED = 120, 60
"""By the second the first instants are archived, and old files cleaned away."""
ARCHIVE_FILES = 10
"""As many as come together before they are merged; the metadata table has an archive of its own."""
CITIES = ("bern", "oslo")
OPERATIONS = (
    "list_files",
    "list_names",
    "list_folders",
    "list_tree",
    "read",
    "open",
    "exists",
    "put",
    "put_if_absent",
    "create",
)


@dataclass
class Seen:
    """What was seen after each write."""

    files: list[int] = field(default_factory=list)
    instants: list[int] = field(default_factory=list)
    operations: list[int] = field(default_factory=list)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is asked of the storage."""
    counted: Counter[str] = Counter()

    def count(name: str) -> None:
        real = getattr(MemoryStorage, name)

        def call(*args: Any) -> Any:
            counted[name] += 1
            return real(*args)

        monkeypatch.setattr(MemoryStorage, name, call)

    for name in OPERATIONS:
        count(name)
    return counted


def soak(table: Table, done: Counter[str]) -> Seen:
    """Upsert a new row and one that is there, delete the oldest, and so on: there are never more rows."""
    seen = Seen()
    table.upsert(rides(*(row(number, 0) for number in range(4))))
    for write in range(1, WRITES + 1):
        done.clear()
        oldest = (write - 1) // 2
        if write % 2:
            rows = rides(row(oldest + 4, write), row(oldest + 1, write))
            table.upsert(rows)
        else:
            table.delete(rides(row(oldest, write)))
        seen.operations.append(done.total())
        seen.files.append(len(context_of(table).storage.list_tree("")))
        seen.instants.append(len(table.timeline.instants))
    return seen


def row(number: int, ts: int) -> tuple[Any, ...]:
    return f"key-{number}", CITIES[number % 2], ts, float(ts)


@pytest.mark.parametrize(("table_type", "index"), [(MOR, "BUCKET"), (COW, "SIMPLE")])
def test_files_instants_and_the_work_of_a_write_do_not_grow(
    table_type: str, index: str, done: Counter[str]
) -> None:
    one_bucket = {"hoodie.bucket.index.num.buckets": "1"} if index == "BUCKET" else {}
    table = create(table_type=table_type, properties={"hoodie.index.type": index, **one_bucket})
    seen = soak(table, done)
    early, late = slice(SETTLED // 2, SETTLED), slice(SETTLED, None)
    assert max(seen.files[late]) <= max(seen.files[early]) + 3 * ARCHIVE_FILES
    assert max(seen.instants[late]) <= max(seen.instants[early])
    assert max(seen.operations[late]) <= max(seen.operations[early]) + 5 * ARCHIVE_FILES
    assert len(held(table)) == 4
