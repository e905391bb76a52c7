"""Values that objects compute once."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from drawstring.base.lazy import cached_property

WAIT_SECONDS = 10


@dataclass(frozen=True)
class Meeting:
    """Its place is known once two threads have asked, each for that of its own object."""

    barrier: threading.Barrier

    @cached_property
    def place(self) -> str:
        """Where it is."""
        return f"place {self.barrier.wait(WAIT_SECONDS) * 0}"


def test_a_value_is_computed_once() -> None:
    meeting = Meeting(threading.Barrier(1))
    first = meeting.place
    meeting.barrier.abort()
    assert meeting.place is first
    assert Meeting.place.__doc__ == "Where it is."


def test_threads_with_different_objects_do_not_wait_for_each_other() -> None:
    barrier, found = threading.Barrier(2), []
    threads = [threading.Thread(target=lambda: found.append(Meeting(barrier).place)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert found == ["place 0", "place 0"]
