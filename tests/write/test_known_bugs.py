"""Bugs of writers beside each other that are put back, to show that the simulation notices them.

The seeds are those at which it notices them now. The product may change what a seed leads to, so some more
are tried.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.combinations import others_long
from tests.support.simulation.writers.known_bugs import BUGS
from tests.support.simulation.writers.plans import KINDS, MORE_KINDS, Kind, Plan
from tests.support.simulation.writers.simulation import simulate

COW9, MOR9, MOR6, MOR9_BUCKETS, COW6_BUCKETS = KINDS
NAMED = {str(kind): kind for kind in MORE_KINDS}
SEEDS_MAX = 100
"""Of so many seeds one has to notice a bug."""

LINGERS = {"stalled_writers_commit": "put_if_match .hoodie/.locks/2"}
"""The calls before which processes often stand still, for bugs that hardly anything else shows."""

OPERATIONS = {
    "stalled_writers_commit": 15,  # it shows in one of fifty short simulations only
    "readers_unchecked": 3,
    "restores_forgotten": 9,
    "overtaken_unchecked": 4,
    "buckets_unchecked": 4,
    "clusterings_go_first": 4,
    "last_gives_way": 4,
    "global_keys_unchecked": 4,
    "cleans_unlisted": 4,
}
"""How many operations each actor does, where it is not two."""

FOLLOWED, RESTORED = {"follows": True}, {"restores": True}
WORLDS: dict[str, dict[str, Any]] = {
    "reservations_ignored": {"retries": ("1",)},
    "followed_by_request": FOLLOWED,
    "holds_ignored": FOLLOWED,
    "overwrites_unchecked": {"favours": ("overwrite", "insert")},
    "savepoints_ignored": RESTORED,
    "restored_beside_writers": RESTORED,
    "restores_forgotten": RESTORED,
    "last_gives_way": {"retries": ("1",)},
    "cleans_unlisted": {"by_metadata": True},
}
"""Who takes part besides, and what they do most, for bugs that hardly anybody meets otherwise."""

FOUND: dict[str, tuple[Kind, int, bool]] = {
    "candidates_by_time": (COW9, 2, True),
    "no_check": (COW9, 1, False),
    "stalled_writers_commit": (MOR9, 277, True),
    "live_writers_rolled_back": (COW9, 0, False),
    "inserts_unchecked": (MOR9_BUCKETS, 5, False),
    "readers_unchecked": (COW6_BUCKETS, 45, False),
    "overwrites_unchecked": (COW9, 33, False),
    "plans_unchecked": (MOR6, 0, False),
    "no_lock_at_commit": (COW9, 1, True),
    "dead_writers_stay": (COW9, 3, True),
    "reservations_ignored": (COW9, 21, False),
    "retries_unchecked": (COW9, 21, False),
    "followed_by_request": (MOR9_BUCKETS, 39, False),
    "holds_ignored": (COW9, 0, False),
    "savepoints_ignored": (COW9, 0, False),
    "restored_beside_writers": (MOR9, 9, False),
    "restores_forgotten": (COW9, 7, True),
    "logs_by_instant": (NAMED["mor9-nonblocking-ordered"], 1, False),
    "overtaken_unchecked": (NAMED["mor9-nonblocking"], 5, False),
    "buckets_unchecked": (MOR9_BUCKETS, 43, True),
    "clusterings_go_first": (NAMED["cow9-preferring"], 5, False),
    "last_gives_way": (NAMED["cow9-early"], 17, False),
    "global_keys_unchecked": (NAMED["cow9-global-simple"], 29, False),
    "moves_leave_rows": (NAMED["cow9-global-simple"], 1, False),
    "cleans_unlisted": (COW9, 0, False),
    "moves_unindexed": (NAMED["cow9-record-index"], 5, False),
}
"""The kind of table, the first seed, and whether there are faults."""


LONG = {
    "stalled_writers_commit",
    "restores_forgotten",
    "overtaken_unchecked",
    "buckets_unchecked",
    "clusterings_go_first",
    "last_gives_way",
    "global_keys_unchecked",
    "cleans_unlisted",
    "moves_unindexed",
}
"""Bugs whose simulations take longest; `make test-long` has them."""


def is_noticed(bug: str, plan: Plan) -> bool:
    """Tell whether a simulation fails once a bug is put back.

    A bug that no longer fits the product is an error of the test, and is not noticed by a `TypeError`.
    """
    with BUGS[bug]():
        try:
            simulate(plan)
        except AssertionError as error:
            if isinstance(error.__cause__, TypeError):
                raise error.__cause__ from error
            return True
    return False


@pytest.mark.parametrize("bug", others_long(BUGS, BUGS.keys() - LONG))
def test_a_bug_that_is_put_back_is_noticed(bug: str) -> None:
    kind, first, has_faults = FOUND[bug]
    plans = (
        Plan(
            kind,
            seed,
            OPERATIONS.get(bug, 2),
            has_faults=has_faults,
            lingers_at=LINGERS.get(bug, ""),
            **WORLDS.get(bug, {}),
        )
        for seed in range(first, first + SEEDS_MAX)
    )
    found = next((plan for plan in plans if is_noticed(bug, plan)), None)
    assert found is not None
    assert simulate(found).commits > 0, "without the bug all is well"
