"""The storage that dies on demand."""

from __future__ import annotations

import pytest

from drawstring.storage import open_storage
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.storages import paths


def storage_that_dies_after(changes: int, name: str) -> FaultyStorage:
    inner = open_storage(f"memory://faults/{name}/{changes}")
    inner.delete_tree("")
    for path in ("a", "b"):
        inner.put(path, b"old")
    return FaultyStorage(inner, changes)


def test_changes_succeed_until_the_count_and_fail_ever_after() -> None:
    storage = storage_that_dies_after(2, "all")
    storage.put("c", b"new")
    assert storage.put_if_absent("d", b"new")
    for _ in range(2):
        with pytest.raises(InjectedFault, match="after 2 changes"):
            storage.put("a", b"new")
    assert storage.changes == 2
    assert storage.read("a") == b"old"
    assert paths(storage) == ["a", "b", "c", "d"]


def test_it_dies_in_the_middle_of_deletions() -> None:
    storage = storage_that_dies_after(1, "middle")
    with pytest.raises(InjectedFault):
        storage.delete(["a", "b"])
    assert paths(storage) == ["b"]


def test_every_kind_of_change_counts() -> None:
    storage = storage_that_dies_after(0, "kinds")
    for change in (
        lambda: storage.create("x"),
        lambda: storage.put("x", b""),
        lambda: storage.put_if_absent("x", b""),
        lambda: storage.put_if_match("x", b"", "v"),
        lambda: storage.delete(["a"]),
        lambda: storage.delete_tree(""),
    ):
        with pytest.raises(InjectedFault):
            change()
    assert paths(storage) == ["a", "b"]
