"""What cannot come together is refused and leaves the table's files as they were; the page tells of all."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from tests.contract.catalogue import README, catalogue
from tests.support.contract.cells import EVERY, NO_OPERATIONS, NO_TABLES, Refusal
from tests.support.contract.kinds import DIMENSIONS, Kind
from tests.support.contract.model import Model
from tests.support.contract.steps import Both, Item, Step
from tests.support.storages import files_below

ROWS = tuple(Item(number, 0) for number in range(3))


def examples(refusal: Refusal) -> list[Kind]:
    """Return kinds that nothing else speaks against, one for each index and one for each of the files."""
    others = [each for each in NO_TABLES if each is not refusal]
    kinds = [Kind(*values) for values in itertools.product(*DIMENSIONS.values())]
    alone = [kind for kind in kinds if refusal.holds(kind) and not any(each.holds(kind) for each in others)]
    found = {kind.index: kind for kind in alone} | {kind.files: kind for kind in alone}
    return list(dict.fromkeys(found.values()))


@pytest.mark.parametrize("refusal", NO_TABLES, ids=lambda refusal: refusal.what.replace(" ", "_"))
def test_no_table_of_such_a_kind_takes_rows(refusal: Refusal, tmp_path: Path) -> None:
    assert examples(refusal)
    for number, kind in enumerate(examples(refusal)):
        with pytest.raises((InvalidError, UnsupportedError), match=refusal.why):
            Both(kind, kind.create(str(tmp_path / str(number))), Model(kind)).take(Step("insert", ROWS))


@pytest.mark.parametrize(
    ("refusal", "operation"),
    [
        pytest.param(each, name, id=f"{name}-{number}")
        for number, each in enumerate(NO_OPERATIONS)
        for name in each.operations
    ],
)
def test_no_table_of_such_a_kind_takes_the_operation(
    refusal: Refusal, operation: str, tmp_path: Path
) -> None:
    found = {kind.index: kind for kind in EVERY if refusal.holds(kind)}
    for kind in found.values():
        path = str(tmp_path / str(kind))
        both = Both(kind, kind.create(path), Model(kind))
        both.take(Step("insert", ROWS))
        before = files_below(path)
        with pytest.raises((InvalidError, UnsupportedError), match=refusal.why):
            both.take(Step(operation, (Item(0, 0), Item(5, 1))))
        assert files_below(path) == before


def test_the_page_tells_what_is_run() -> None:
    assert README.read_text() == catalogue(), "run: python -m tests.contract.catalogue"
