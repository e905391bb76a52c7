"""Footers of native log files are read once in a process, and files that they leave out are not opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drawstring.filegroups import log_scanner
from drawstring.formats import log_files
from drawstring.formats.log_native import FooterCache, NativeBlock
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.rows import held, rides
from tests.support.sorted_tables import LSM
from tests.support.tables import MOR, WITHOUT_SERVICES, create

KEYS = [f"{number:03}" for number in range(20)]
ONE_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


@pytest.fixture(params=[LSM, {}], ids=["lsm_tree", "default"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A slice with a base file and ten log files, of two keys each."""
    properties = {**ONE_BUCKET, **request.param}
    table = create(path=tmp_path / "t", table_type=MOR, version=10, properties=properties)
    table.bulk_insert(rides(*((key, "rome", 1, 0.0) for key in KEYS)), options=WITHOUT_SERVICES)
    for ts in range(10):
        some = KEYS[2 * ts : 2 * ts + 2]
        table.upsert(rides(*((key, "rome", 2 + ts, float(ts)) for key in some)), options=WITHOUT_SERVICES)
    return table


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> FooterCache:
    memory = FooterCache()
    monkeypatch.setattr(log_scanner, "FOOTER_CACHE", memory)
    return memory


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the log files whose footers are read."""
    return noted(monkeypatch, log_scanner, "log_blocks", lambda file, log, local: log.status.name)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the log files that are opened."""
    return noted(monkeypatch, log_scanner, "open_log", lambda storage, log: log.status.path)


def noted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, noun: Callable[..., str]) -> list[str]:
    seen: list[str] = []
    original = getattr(module, name)

    def call(*given: Any) -> Any:
        seen.append(noun(*given))
        return original(*given)

    monkeypatch.setattr(module, name, call)
    return seen


def test_footers_are_read_by_the_first_query_alone(
    table: Table, memory: FooterCache, scanned: list[str], opened: list[str]
) -> None:
    assert held(table, where="id = '007'") == [("007", "rome", 5, 3.0)]
    assert len(set(scanned)) == len(scanned) == 10
    opened.clear()
    assert held(table, where="id = '012'") == [("012", "rome", 8, 6.0)]
    assert len(scanned) == 10
    assert len(opened) == 1


def test_the_footer_of_a_new_log_file_is_read(table: Table, memory: FooterCache, scanned: list[str]) -> None:
    held(table, where="id = '007'")
    table.upsert(rides(("007", "rome", 20, 20.0)), options=WITHOUT_SERVICES)
    scanned.clear()
    assert held(table, where="id = '007'") == [("007", "rome", 20, 20.0)]
    assert len(scanned) == 1


def test_footers_of_tables_in_memory_are_read_again(memory: FooterCache, scanned: list[str]) -> None:
    table = create(table_type=MOR, version=10, properties=ONE_BUCKET)
    for ts in (1, 2):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=WITHOUT_SERVICES)
    for _ in range(2):
        scanned.clear()
        assert held(table, where="id = 'a'") == [("a", "rome", 2, 1.0)]
        assert scanned


def test_more_footers_than_there_is_room_for_are_forgotten(tmp_path: Path, table: Table) -> None:
    log, storage = table.inspect.files()[0].logs[0], context_of(table).storage
    with storage.open(log.status.path) as file:
        (block,) = log_files.log_blocks(file, log)
    assert isinstance(block, NativeBlock)
    memory = FooterCache(bytes_max=16 * 20_000)
    logs = [replace(log, status=replace(log.status, modified_ms=number)) for number in range(40)]
    for each in logs:
        memory.keep(storage, each, block)
    known = [memory.recall(storage, each) is block for each in logs]
    assert known == sorted(known)
    assert 16 <= sum(known) < 40
    assert memory.recall(LocalStorage(tmp_path / "other"), logs[-1]) is None


def test_a_file_of_another_size_than_listed_is_not_kept(table: Table) -> None:
    log, storage = table.inspect.files()[0].logs[0], context_of(table).storage
    with storage.open(log.status.path) as file:
        (block,) = log_files.log_blocks(file, log)
    assert isinstance(block, NativeBlock)
    memory, longer = (
        FooterCache(),
        replace(log, status=replace(log.status, size_bytes=log.status.size_bytes + 1)),
    )
    memory.keep(storage, longer, block)
    assert memory.recall(storage, longer) is None
