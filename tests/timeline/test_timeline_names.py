from __future__ import annotations

import pytest

from drawstring.base.errors import InternalError
from drawstring.model.instant import Action, Instant, State
from drawstring.model.table_version import LAYOUT_1, LAYOUT_2, LAYOUTS, TimelineLayout
from drawstring.timeline.timeline import file_name, parse_instant

T = "20240131100000000"
C = "20240131100000777"

BOTH = {
    f"{T}.commit.requested": Instant(T, Action.COMMIT, State.REQUESTED),
    f"{T}.inflight": Instant(T, Action.COMMIT, State.INFLIGHT),
    f"{T}.deltacommit.inflight": Instant(T, Action.DELTA_COMMIT, State.INFLIGHT),
    f"{T}.compaction.requested": Instant(T, Action.COMPACTION, State.REQUESTED),
    f"{T}.compaction.inflight": Instant(T, Action.COMPACTION, State.INFLIGHT),
    f"{T}.rollback.requested": Instant(T, Action.ROLLBACK, State.REQUESTED),
    f"{T}.savepoint.inflight": Instant(T, Action.SAVEPOINT, State.INFLIGHT),
}
OLD = {
    f"{T}.commit": Instant(T, Action.COMMIT, State.COMPLETED),
    "20240131100000.deltacommit": Instant("20240131100000", Action.DELTA_COMMIT, State.COMPLETED),
}
NEW = {
    f"{T}_{C}.commit": Instant(T, Action.COMMIT, State.COMPLETED, C),
    f"{T}_{C}.replacecommit": Instant(T, Action.REPLACE_COMMIT, State.COMPLETED, C),
    f"{T}.clustering.inflight": Instant(T, Action.CLUSTERING, State.INFLIGHT),
    f"{T}.commit": Instant(T, Action.COMMIT, State.COMPLETED),
}


@pytest.mark.parametrize(
    ("layout", "name", "instant"),
    [(layout, *item) for layout in LAYOUTS for item in BOTH.items()]
    + [(LAYOUT_1, *item) for item in OLD.items()]
    + [(LAYOUT_2, *item) for item in NEW.items()],
)
def test_a_name_and_its_instant_turn_into_each_other(
    layout: TimelineLayout, name: str, instant: Instant
) -> None:
    assert parse_instant(name, layout) == instant
    assert file_name(instant, layout) == name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name",
    ["hoodie.properties", "hoodie.properties.backup", "12.commit", f"{T}", f"{T}.parquet", f"{T}.commit.crc",
     f".{T}.commit.crc", f"{T}.commit.inflight", f"{T}_{C}.commit.requested", f"{T}_{C}.inflight",
     f"{T}.schemacommit", f"{T}.requested", "table_lock.json", f"{T}.commit.requested.tmp", f"{T}.COMMIT",
     f"{T}.commit\n", "٢٠٢٤٠١٣١١٠٠٠٠٠٠٠٠.commit"],
)  # fmt: skip
def test_a_foreign_file_is_no_instant(name: str, layout: TimelineLayout) -> None:
    assert parse_instant(name, layout) is None


def test_layout_one_knows_no_completion_times() -> None:
    assert parse_instant(f"{T}_{C}.commit", LAYOUT_1) is None


def test_layout_one_names_a_pending_clustering_as_replace_commit() -> None:
    assert (
        file_name(Instant(T, Action.CLUSTERING, State.REQUESTED), LAYOUT_1) == f"{T}.replacecommit.requested"
    )


def test_a_completed_compaction_must_be_called_commit() -> None:
    with pytest.raises(InternalError, match="must have the action commit"):
        file_name(Instant(T, Action.COMPACTION, State.COMPLETED, C), LAYOUT_2)
