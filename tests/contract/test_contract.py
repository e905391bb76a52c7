"""Every operation on every kind of table, in histories drawn at random: queries see what a dictionary holds.

README.md here has the cells, and what is left out of them.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.combinations import others_long
from tests.support.contract.cells import (
    BARE_CELLS,
    CELLS,
    FORMAT_CELLS,
    PATCHES,
    SHORT_CELLS,
    Cell,
    operations_of,
)
from tests.support.contract.model import Model
from tests.support.contract.steps import FIRST, NUMBERS, PLACES, Both, Item, Pace, Step
from tests.support.contract.witness import Witness
from tests.support.tables import new_address

EXAMPLES = max(1, settings.get_profile(settings.get_current_profile_name()).max_examples // 50)

items = st.lists(
    st.builds(
        Item,
        number=st.integers(0, NUMBERS - 1),
        place=st.integers(0, len(PLACES) - 1),
        pace=st.sampled_from(Pace),
        deleted=st.sampled_from((False, False, False, True)),
    ),
    min_size=2,
    max_size=8,
).map(tuple)
is_wide = st.sampled_from((False, False, True))


@st.composite
def histories(draw: st.DrawFn, cell: Cell) -> list[Step]:
    """Draw the operations of a cell in some order, and two more of any kind.

    The simplest history that there is, which is drawn first, does not count as an example.
    """
    assume(draw(st.integers(0, 1000)))
    more = draw(st.lists(st.sampled_from(operations_of(cell.kind)), min_size=2, max_size=2))
    names = draw(st.permutations([*cell.operations, *more]))
    return [
        Step(name, draw(items), draw(st.sampled_from((False, False, True))), draw(st.booleans()))
        for name in names
    ]


@pytest.mark.parametrize("cell", others_long([*CELLS, *FORMAT_CELLS], SHORT_CELLS), ids=str)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_query_sees_what_the_model_says(cell: Cell, data: st.DataObject) -> None:
    _run(_begun(cell), data, data.draw(histories(cell)))


@pytest.mark.parametrize("cell", others_long(BARE_CELLS, SHORT_CELLS), ids=str)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_query_lays_columns_of_log_blocks_over_their_records(cell: Cell, data: st.DataObject) -> None:
    witness = _begun(cell)
    sure = Step(data.draw(st.sampled_from(PATCHES)), FIRST.items[: data.draw(st.integers(1, NUMBERS))])
    _run(witness, data, [sure, *data.draw(histories(cell))])
    assert witness.patched > 0


def _begun(cell: Cell) -> Witness:
    kind = cell.kind
    witness = Witness(Both(kind, kind.create(new_address()), Model(kind)))
    witness.take(FIRST)
    return witness


def _run(witness: Witness, data: st.DataObject, history: list[Step]) -> None:
    """Take the steps of a history, and compare after each and in the end."""
    for step in history:
        if not witness.take(step):
            continue
        witness.check_snapshot()
        last = len(witness.commits) - 1
        witness.check_travel(data.draw(st.integers(0, last)))
        start = data.draw(st.integers(-1, last - 1))
        witness.check_incremental(start, last)
        witness.check_changes(last - 1, last)
    for number in range(len(witness.commits)):
        witness.check_travel(number)
    witness.check_incremental(-1, len(witness.commits) - 1)
    witness.check_changes(-1, len(witness.commits) - 1)
