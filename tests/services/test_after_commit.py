"""A write that is committed stands, whatever goes wrong in what follows it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from drawstring.base.errors import ConflictError
from drawstring.services import clustering, compaction, table_services
from drawstring.services import compaction as run
from tests.support.rows import held, rides
from tests.support.tables import MOR, create


@pytest.mark.parametrize("error", [ConflictError("somebody else was there"), ValueError("unknown")])
@pytest.mark.parametrize(
    ("room", "step", "options"),
    [
        (table_services, "is_due", {"hoodie.compact.inline.max.delta.commits": "1"}),
        (compaction, "schedule_compaction", {"hoodie.compact.inline.max.delta.commits": "1"}),
        (run, "log_compact", {"hoodie.log.compaction.inline": "true"}),
        (clustering, "commits_since_clustering", {"hoodie.clustering.inline": "true"}),
    ],
)
def test_an_upsert_stands_when_a_step_after_it_fails(
    room: Any,
    step: str,
    options: dict[str, str],
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = create(table_type=MOR)
    table.upsert(rides(("a", "oslo", 1, 1.0)))

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(room, step, fail)
    with caplog.at_level(logging.WARNING, "drawstring"):
        table.upsert(rides(("a", "oslo", 2, 2.0)), options=options)
    assert held(table) == [("a", "oslo", 2, 2.0)]
    assert "The write is committed" in caplog.text
    assert str(error) in caplog.text
