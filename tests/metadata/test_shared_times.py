"""Two actions with one requested time, as a process that lost the table lock leaves them."""

from __future__ import annotations

import pytest

from drawstring.formats.metadata.plans import encode_clean_plan
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.instant import Action
from drawstring.model.plans import CleanPlan, CleanPolicy
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create

ROWS = [("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)]


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("is_begun", [False, True], ids=["requested", "inflight"])
def test_a_clean_at_the_time_of_a_commit_takes_nothing_of_it_out_of_the_metadata_table(
    table_type: str, is_begun: bool
) -> None:
    storage = context_of(create(table_type=table_type)).storage
    table = Table(TableContext(storage, uses_metadata=True))
    table.upsert(rides(*ROWS))
    written = table.upsert(rides(("c", "bern", 1, 1.0)))
    store = TimelineStore(storage, load_config(storage), context_of(table).clock)
    plan = CleanPlan(CleanPolicy.COMMITS, None, written.instant)
    clean = store.request(Action.CLEAN, written.instant, encode_clean_plan(plan, storage.full_uri("")))
    if is_begun:
        store.start(clean)
    table.upsert(rides(("d", "rome", 1, 1.0)))
    assert [row[0] for row in held(table)] == ["a", "b", "c", "d"]
    assert table.timeline.pending() == ()
    assert table.services.validate().findings == ()


def test_a_write_at_the_time_of_a_compaction_of_the_metadata_table_takes_back_none_of_its_files() -> None:
    """A clock that is behind the table gives the next write the time that the compaction has."""
    table = create(table_type=COW)
    table = Table(TableContext(context_of(table).storage, uses_metadata=True))
    writer = None
    while writer is None or not (compacted := writer.store.load().completed_of(Action.COMMIT)):
        table.upsert(rides(*ROWS))
        writer = MetadataWriter.of(context_of(table).storage, context_of(table).clock, context_of(table).ids)
    writer.begin(Action.DELTA_COMMIT, compacted[-1].requested)
    writer.roll_back(compacted[-1].requested)
    assert table.services.validate().findings == ()
    assert [row[0] for row in held(table)] == ["a", "b"]
