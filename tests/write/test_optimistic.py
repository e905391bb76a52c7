"""Writers side by side under optimistic concurrency control."""

from __future__ import annotations

import pytest

from drawstring.base.errors import DrawstringError
from tests.support.faults import spaced
from tests.support.interleavings import OPTIMISTIC, interleave
from tests.support.tables import BUCKETS, COW, MOR
from tests.support.writer_pairs import ACTS, PAIRS, prepared

KINDS = [(COW, 9, {}), (MOR, 9, {}), (MOR, 6, {}), (MOR, 9, BUCKETS), (COW, 6, BUCKETS)]
kinds = pytest.mark.parametrize(
    ("table_type", "version", "how"), KINDS, ids=["cow9", "mor9", "mor6", "mor9-buckets", "cow6-buckets"]
)
EVERY = 13
"""Of so many storage calls one is tried; `make sim` tries all."""


def is_possible(table_type: str, how: dict[str, str], act: str) -> bool:
    return not (act == "compact" and table_type == COW) and not (act == "cluster" and how)


@pytest.mark.scaled
@kinds
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_what_two_writers_leave_is_what_one_after_the_other_leaves(
    table_type: str, version: int, how: dict[str, str], first: str, second: str
) -> None:
    if not is_possible(table_type, how, second):
        with pytest.raises(DrawstringError):
            ACTS[second](prepared(table_type, version, how), OPTIMISTIC)
        return
    offset = (len(first) + len(second) + version) % EVERY
    outcomes = interleave(
        prepared(table_type, version, how), ACTS[first], ACTS[second], every=spaced(EVERY), offset=offset
    )
    assert outcomes
