"""Files in memory appear when they are closed, and by nothing else."""

from __future__ import annotations

import gc

import pytest

from drawstring.storage.memory import MemoryStorage
from drawstring.storage.streams import WholeFile
from tests.support.tables import new_address


def test_a_file_that_nobody_closes_does_not_appear_with_its_garbage() -> None:
    storage = MemoryStorage(new_address())

    def leave() -> None:
        file = storage.create("left/file")
        file.write(b"some")
        cycle: list[object] = [file]
        cycle.append(cycle)

    leave()
    gc.collect()
    assert not storage.exists("left/file")


def test_a_file_whose_closing_failed_is_not_closed_by_garbage_collection() -> None:
    closed: list[bytes] = []

    def fail(data: bytes) -> None:
        closed.append(data)
        raise OSError("no answer")

    file = WholeFile(fail)
    file.write(b"some")
    with pytest.raises(OSError, match="no answer"):
        file.close()
    del file
    gc.collect()
    assert closed == [b"some"]
