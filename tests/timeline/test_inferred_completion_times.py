"""Which completion times instants of layout 1 get for layout 2."""

from __future__ import annotations

import pytest

from drawstring.model.files import FileStatus
from drawstring.model.instant import Action, Instant, State
from drawstring.timeline.archive.writer import StateFile
from drawstring.timeline.migration import completion_times
from drawstring.timeline.timeline import epoch_ms_of


def at(millisecond: int) -> str:
    return f"20260101000000{millisecond:03d}"


def write(requested: int, modified: int, action: Action = Action.DELTA_COMMIT) -> list[StateFile]:
    """Return the requested file of a write, as old as it says, and the completed one."""
    states = ((State.REQUESTED, requested), (State.COMPLETED, modified))
    files = []
    for state, millisecond in states:
        modified_ms = epoch_ms_of(at(millisecond), "UTC")
        assert modified_ms is not None
        status = FileStatus(f".hoodie/{at(requested)}.{state.name}", 1, modified_ms)
        files.append(StateFile(Instant(at(requested), action, state), status))
    return files


def completions(*writes: list[StateFile], is_merge_on_read: bool = True) -> list[str]:
    files = [file for some in writes for file in some]
    return list(completion_times(files, "UTC", is_merge_on_read=is_merge_on_read).values())


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (write(10, 19), write(20, 29), [19, 29]),
        (write(10, 20), write(20, 29), [19, 29]),
        (write(10, 21), write(20, 29), [21, 29]),
        (write(10, 6), write(20, 16), [10, 20]),
        (write(10, 11), write(11, 12), [10, 12]),
        (write(10, 50), write(20, 30, Action.COMMIT), [19, 30]),
    ],
    ids=[
        "apart",
        "in the millisecond of the next request",
        "after the next request",
        "by a clock that is behind",
        "right after the request, in the millisecond of the next one",
        "after a compaction was planned",
    ],
)
def test_no_instant_completes_when_another_one_was_requested(
    first: list[StateFile], second: list[StateFile], expected: list[int]
) -> None:
    assert completions(first, second) == [at(millisecond) for millisecond in expected]


def test_several_requests_in_a_row_are_passed_over() -> None:
    writes = [write(10, 22), write(20, 29), write(21, 29), write(22, 29)]
    assert completions(*writes) == [at(19), at(29), at(29), at(29)]
