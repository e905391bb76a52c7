"""Every action completes its instant through one function: `timeline.completion` holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.instant import Action, Instant
from drawstring.model.table_version import VERSION_RULES, TimelineLayout
from drawstring.storage.local import LocalStorage
from drawstring.timeline.store import Completion
from drawstring.timeline.timeline import parse_instant
from drawstring.txn.foreign_features import MetadataTableGuard
from drawstring.txn.transaction import Transaction

PUTS = ("put", "put_if_absent", "put_if_match", "create")
ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"], "ts": [1, 1]})


class Completed:
    """The completed files that are put, inside of the one function and elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, layout: TimelineLayout) -> None:
        self.inside: list[Instant] = []
        self.outside: list[str] = []
        self.hooks: list[tuple[str, str]] = []
        self._layout = layout
        self._depth = 0
        for name in PUTS:
            monkeypatch.setattr(LocalStorage, name, self._noting(getattr(LocalStorage, name)))
        monkeypatch.setattr(Completion, "_put", self._entering(Completion._put))
        monkeypatch.setattr(MetadataTableGuard, "completing", self._hooked(MetadataTableGuard.completing))

    def _noting(self, put: Callable[..., Any]) -> Callable[..., Any]:
        def noted(storage: LocalStorage, path: str, *args: Any) -> Any:
            in_timeline = path.startswith(".hoodie/") and ".aux" not in path and "metadata/" not in path
            instant = parse_instant(path.rpartition("/")[2], self._layout) if in_timeline else None
            if instant is not None and instant.is_completed:
                if self._depth:
                    self.inside.append(instant)
                else:
                    self.outside.append(path)
            return put(storage, path, *args)

        return noted

    def _entering(self, put: Callable[..., bool]) -> Callable[..., bool]:
        def entered(completion: Completion, completed: Instant, content: bytes) -> bool:
            self._depth += 1
            try:
                return put(completion, completed, content)
            finally:
                self._depth -= 1

        return entered

    def _hooked(self, completing: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def hooked(guard: MetadataTableGuard, instant: Instant, content: bytes) -> Iterator[None]:
            self.hooks.append(("before", instant.requested))
            with completing(guard, instant, content):
                yield
            self.hooks.append(("after", instant.requested))

        return hooked


def _fail(*_: object) -> Instant:
    raise OSError("The disk is gone.")


@pytest.mark.parametrize("version", [6, 8, 9])
def test_every_action_completes_its_instant_through_one_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    completed = Completed(monkeypatch, VERSION_RULES[version].layout)
    table = drawstring.create(
        tmp_path / "t",
        ROWS.schema,
        record_key="id",
        ordering="ts",
        partition_by="part",
        table_type="MERGE_ON_READ",
        version=version,
    )
    table.insert(ROWS)
    first = table.upsert(ROWS).instant
    table.savepoints.create(first)
    table.upsert(ROWS)
    if version > 6:
        table.services.log_compact(min_blocks=2)
    table.upsert(ROWS)
    table.services.compact()
    table.services.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": 1 << 30})
    table.delete_partition("y")
    table.savepoints.delete(first)
    for _ in range(3):
        table.upsert(ROWS)
        table.services.compact()
    table.services.clean(retain_commits=1)
    with monkeypatch.context() as failing, pytest.raises(OSError):
        failing.setattr(Transaction, "commit", _fail)
        table.upsert(ROWS)
    saved = table.upsert(ROWS).instant
    table.savepoints.create(saved)
    table.upsert(ROWS)
    table.savepoints.restore(saved)
    assert completed.outside == []
    seen = {instant.action for instant in completed.inside}
    assert seen >= {
        Action.DELTA_COMMIT,
        Action.COMMIT,
        Action.REPLACE_COMMIT,
        Action.CLEAN,
        Action.SAVEPOINT,
        Action.RESTORE,
        Action.ROLLBACK,
    }
    told = [instant.requested for instant in completed.inside]
    assert completed.hooks == [(when, time) for time in told for when in ("before", "after")]
