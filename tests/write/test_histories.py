"""Histories of writes against a plain dictionary: every query sees what the model says."""

from __future__ import annotations

import itertools
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.write.model import PLACES, Item, Kind, Pace, Step, Witness, pairwise

KINDS = [
    Kind(*values)
    for values in pairwise(
        list(
            itertools.product(
                (6, 8, 9),
                ("cow", "parquet", "avro"),
                ("SIMPLE", "BUCKET"),
                (True, False),
                (0, 1, 2),
                (True, False),
            )
        )
    )
]
EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples // 25
VERBS = ("upsert", "upsert", "upsert", "delete", "insert", "bulk_insert", "insert_overwrite", "compact")
CHANGES = ("update_where", "update_where", "delete_where")

items = st.lists(
    st.builds(
        Item,
        number=st.integers(0, 5),
        place=st.integers(0, len(PLACES) - 1),
        pace=st.sampled_from(Pace),
        deleted=st.sampled_from((False, False, False, True)),
    ),
    min_size=1,
    max_size=8,
).map(tuple)
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from((*VERBS, *CHANGES, "insert_overwrite_table")),
        items,
        st.sampled_from((False, False, True)),
        st.booleans(),
    ),
    min_size=3,
    max_size=7,
)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps, data=st.data())
def test_every_query_sees_what_the_model_says(kind: Kind, history: list[Step], data: st.DataObject) -> None:
    witness = Witness(kind, kind.create(f"memory://{uuid.uuid4()}"))
    witness.take(Step("insert", tuple(Item(number, number % 3) for number in range(6))))
    for step in history:
        if witness.take(step) is None:
            continue
        witness.check_snapshot()
        last = len(witness.commits) - 1
        witness.check_travel(data.draw(st.integers(0, last)))
        start = data.draw(st.integers(-1, last - 1))
        witness.check_incremental(start, data.draw(st.integers(start + 1, last)))
    for number in range(len(witness.commits)):
        witness.check_travel(number)
        witness.check_incremental(number - 1, len(witness.commits) - 1)
