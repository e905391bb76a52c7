"""Locks of a user's own, whose provider is an entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.clock import Clock, Ids, SystemClock, SystemIds
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.config.keys.concurrency import LOCK_PROVIDER, LockSettings
from drawstring.storage.protocol import Storage
from drawstring.txn.locks.file_lock import InProcessLock
from drawstring.txn.locks.table_lock import Lock, table_lock
from tests.support.distributions import installed
from tests.support.lock_providers import provided, settings_of
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.storages import memory

OWN_PROVIDER = """
class LogLock:
    taken = []

    def __init__(self, storage, clock, ids, settings):
        self.url = settings.given["hoodie.write.lock.mine.url"]

    def try_acquire(self):
        LogLock.taken.append(self.url)
        return True

    def is_held(self):
        return False

    def check(self):
        LogLock.taken.append("checked")

    def release(self):
        LogLock.taken.append("released")

    def holder(self):
        return "nobody"
"""


@pytest.fixture
def own_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install a distribution with an entry point."""
    entries = {"mine": "LogLock"}
    with installed(
        tmp_path / "site", monkeypatch, "mylocks", OWN_PROVIDER, "drawstring.lock_providers", entries
    ):
        yield "mine"


def test_a_provider_of_a_user_s_own_is_an_entry_point(own_provider: str) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id")
    given = {"hoodie.write.lock.provider": own_provider, "hoodie.write.lock.mine.url": "there"}
    table.upsert(rows, options=given)
    assert held(table) == [("a", "rome", 1, 1.0)]
    taken = sys.modules["mylocks"].LogLock.taken
    assert (taken[0], taken[-1]) == ("there", "released")
    assert "checked" in taken


@pytest.mark.parametrize("service", ["compact", "clean", "savepoints.create", "archive"])
def test_services_take_the_lock_that_their_options_name(own_provider: str, service: str) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(
        memory().spec.uri, rows.schema, record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.upsert(rows)
    table.upsert(rows)
    given = {"hoodie.write.lock.provider": own_provider, "hoodie.write.lock.mine.url": service}
    method(table, service)(options=given)
    taken = sys.modules["mylocks"].LogLock.taken
    assert (taken[0], taken[-1]) == (service, "released")


def test_a_provider_may_be_a_function(own_provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def provider(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> Lock:
        return InProcessLock(settings.provider)

    import mylocks  # type: ignore[import-not-found]

    monkeypatch.setattr(mylocks, "LogLock", provider)
    with table_lock(memory(), SystemClock(), SystemIds(), 0, settings_of("mine")) as lock:
        lock.check()
        assert InProcessLock("mine").is_held()
    assert not InProcessLock("mine").is_held()


def broken(error: Exception) -> Callable[..., Lock]:
    def provider(*_: object) -> Lock:
        raise error

    return provider


@pytest.mark.parametrize(
    ("provider", "text"),
    [
        (broken(KeyError("hoodie.write.lock.mine.url")), r"needs the option hoodie\.write\.lock\.mine\.url"),
        (broken(TypeError("no")), r"made no lock \(TypeError: no\)"),
        (lambda *_: object(), "without try_acquire, is_held, check, release, holder"),
        (None, r"cannot be imported \(AttributeError: .*LogLock"),
    ],
    ids=["option", "error", "methods", "import"],
)
def test_a_fault_of_a_user_s_provider_is_told_under_its_name(
    own_provider: str, monkeypatch: pytest.MonkeyPatch, provider: Any, text: str
) -> None:
    import mylocks

    if provider is None:
        monkeypatch.delattr(mylocks, "LogLock")
    else:
        monkeypatch.setattr(mylocks, "LogLock", provider)
    named = rf"lock provider 'mine', which is mylocks:LogLock, .*{text}.*name another one in {LOCK_PROVIDER}"
    with pytest.raises(InvalidError, match=named):
        provided(memory(), settings_of("mine"))


def test_an_error_of_drawstring_in_a_user_s_provider_stays_what_it_is(
    own_provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mylocks

    monkeypatch.setattr(mylocks, "LogLock", broken(UnavailableError("Consul is down.")))
    with pytest.raises(UnavailableError, match="Consul is down"):
        provided(memory(), settings_of("mine"))


def failing(monkeypatch: pytest.MonkeyPatch, method: str, error: Exception) -> None:
    """Let a method of the lock of the user's own provider fail with an error of its own."""
    import mylocks

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(mylocks.LogLock, method, fail)


@pytest.mark.parametrize(
    ("method", "kind", "text"),
    [
        ("try_acquire", UnavailableError, "could not take the lock"),
        ("check", ConflictError, "could not say whether .*counts as lost"),
    ],
)
@pytest.mark.parametrize("mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"])
def test_a_foreign_error_of_a_user_s_lock_is_told_with_provider_and_table(
    own_provider: str,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    method: str,
    kind: type[Exception],
    text: str,
) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id")
    failing(monkeypatch, method, ConnectionError("no route"))
    given = {
        "hoodie.write.lock.provider": own_provider,
        "hoodie.write.lock.mine.url": "there",
        "hoodie.write.concurrency.mode": mode,
    }
    named = rf"lock provider 'mine', which is mylocks:LogLock, {text}.* \(ConnectionError: no route\)"
    with pytest.raises(kind, match=named) as caught:
        table.upsert(rows, options=given)
    assert caught.value.table == table.uri  # type: ignore[attr-defined]
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert held(table) == []


def test_a_user_s_lock_that_cannot_be_released_or_name_its_holder_ends_no_write(
    own_provider: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(memory().spec.uri, rows.schema, record_key="id")
    given = {"hoodie.write.lock.provider": own_provider, "hoodie.write.lock.mine.url": "there"}
    failing(monkeypatch, "release", ConnectionError("no route"))
    failing(monkeypatch, "holder", ConnectionError("no name"))
    table.upsert(rows, options=given)
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert "could not release the lock (ConnectionError: no route)" in caplog.text
    monkeypatch.setattr(sys.modules["mylocks"].LogLock, "try_acquire", lambda _: False)
    with pytest.raises(ConflictError, match=r"Another writer holds the table .*ConnectionError: no name"):
        table.upsert(rows, options={**given, "hoodie.write.lock.wait_time_ms": "0"})
