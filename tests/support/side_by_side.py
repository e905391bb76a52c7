"""What real Hudi and drawstring write to one table at the same time.

Every write of a key has a time of its own, and the newest one wins, so that the order of the writes does not
matter.
"""

from __future__ import annotations

from tests.support.histories import History, Row, row, table_of
from tests.support.interop import hudi_options
from tests.support.referee import Referee, RefereeError

KEYS = 60
NEW_KEYS = 3
"""Each write of either engine adds so many new keys."""

OURS, SHARED, THEIRS = range(3)
"""Keys of one remainder by 3 are in one partition: one of each engine, and one that both write to."""

ATTEMPTS = 20
COMPACTING = {"hoodie.compact.inline.max.delta.commits": "1"}
LOST = ("HoodieWriteConflictException", "HoodieClusteringUpdateException", "clustering file group")
"""What Hudi says of a write that lost against another one, or that meets a pending clustering."""

OPTIMISTIC, NON_BLOCKING = "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
WITHOUT_SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
"""Only one engine runs a kind of service: both take a plan that they find for one of a process that died."""

LAZY = {
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.enable": "false",
    **WITHOUT_SERVICES,
}


def batch(number: int, own: int, *, shared: bool) -> list[Row]:
    """Return rows of an engine: updates in its own partition, new keys, and updates of shared keys.

    Args:
        number: of the batch; with the engine it gives the time of the rows.
        own: the engine's remainder.
        shared: whether to update shared keys.
    """
    ts = 1000 + 2 * number + own // 2
    at = 3 * (7 * number % (KEYS // 3))
    new = [KEYS + 3 * (number * NEW_KEYS + each) + own for each in range(NEW_KEYS)]
    numbers = [at + own, *new, *([(at + 3 * each + SHARED) % KEYS for each in range(5)] if shared else ())]
    return [row(each, ts) for each in numbers]


def hudi_writes(referee: Referee, history: History, rows: list[Row], options: dict[str, str]) -> int:
    """Let Hudi upsert rows, again as long as it loses against another writer; return how often it lost."""
    for lost in range(ATTEMPTS):
        try:
            referee.write(history.path, table_of(rows), {**hudi_options(history.case), **options})
        except RefereeError as error:
            if not any(each in str(error) for each in LOST):
                raise
        else:
            return lost
    raise AssertionError(f"Hudi lost {ATTEMPTS} times")


def by_time(history: History, batches: list[list[Row]]) -> None:
    """Let the model take batches of both engines, whose order does not matter."""
    for rows in sorted(batches, key=lambda rows: int(rows[0]["ts"])):
        history.model.upsert(rows)
