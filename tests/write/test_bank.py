"""A bank: processes move money between accounts while others compact, cluster, clean and archive the table.

Some of them are killed or stopped at random moments. In every snapshot the balances are what the ledger says,
every acknowledged transfer is there, none that was refused, and none twice.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from drawstring.base.errors import InvalidError
from drawstring.model.instant import time_of
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.bank.accounts import HEARTBEAT_MS, OPTIONS, Kind, Transfer, ledger, open_bank, transfer
from tests.support.bank.day import Day, Member, mishaps, work
from tests.support.bank.staff import GONE, LEASE_MS, Job
from tests.support.metadata_tables import listed
from tests.support.methods import method
from tests.support.storages import data_files
from tests.support.store_server import StoreServer
from tests.support.tables import COW, MOR, WITHOUT_SERVICES
from tests.support.validation import errors

BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}
KINDS = (
    Kind(COW, 9, "SIMPLE"),
    Kind(COW, 6, "BLOOM"),
    Kind(MOR, 9, "SIMPLE", ordering=()),
    Kind(MOR, 6, "SIMPLE"),
    Kind(MOR, 9, "BUCKET", properties=BUCKETS),
    Kind(MOR, 6, "BUCKET", properties=BUCKETS),
    Kind(COW, 9, "SIMPLE", by_metadata=True),
    Kind(MOR, 8, "SIMPLE", by_metadata=True),
    Kind(MOR, 9, "BUCKET", properties=BUCKETS, by_metadata=True),
)
IN_STORES = (
    Kind(COW, 9, "SIMPLE"),
    Kind(MOR, 9, "SIMPLE"),
    Kind(MOR, 6, "BUCKET", properties=BUCKETS),
    Kind(MOR, 9, "SIMPLE", by_metadata=True),
)
KILL, STOP = signal.SIGKILL, signal.SIGSTOP
LOOKS_MAX = 100


def services_of(kind: Kind) -> tuple[str, ...]:
    merging = ("compact",) if kind.table_type == MOR else ()
    return ("clean", "archive", *merging, *(() if kind.index == "BUCKET" else ("cluster",)))


def staff_of(first: Job, kind: Kind, draw: random.Random, sizes: Mapping[str, int]) -> list[Member]:
    """Return a member of each role as often as it is wanted; every other clerk runs services as well."""
    staff = []
    for role, count in sizes.items():
        for number in range(count):
            job = Job(
                first.uri,
                first.storage_options,
                f"{role}-{number}",
                draw.randrange(1 << 30),
                first.transfers if role == "clerk" else 0,
                first.closing,
                WITHOUT_SERVICES if role == "clerk" and number % 2 else {},
                services_of(kind) if role == "janitor" else (),
            )
            kinds = {KILL: (number + 1) % 2, STOP: number % 2} if role != "auditor" else {}
            staff.append(Member(role, job, mishaps(draw, max(2, first.transfers - 1), kinds)))
    return staff


def settle(table: Table, kind: Kind) -> None:
    """Finish what killed processes left, once their heartbeats and leases have expired."""
    for _ in range(LOOKS_MAX):
        for service in services_of(kind):
            method(table, service)(options=OPTIONS)
        if table.timeline.pending() == ():
            return
        time.sleep(HEARTBEAT_MS / 4000)
    raise AssertionError(f"these instants stay pending: {table.timeline.pending()}")


def check(table: Table, day: Day) -> None:
    """Compare the table with what the clerks said, and look at all snapshots that are there."""
    assert day.failures == [], "\n".join(day.failures)
    found = ledger(table.scan().to_arrow())
    assert day.done <= found, f"acknowledged, but not there: {day.done - found}"
    assert found <= day.done | day.unknown, f"refused, but there: {found - day.done - day.unknown}"
    read = 0
    for write in table.timeline.writes():
        try:
            assert ledger(table.scan(as_of=time_of(write)).to_arrow()) <= found
            read += 1
        except InvalidError as error:
            assert any(text in str(error) for text in GONE), str(error)
    assert read > 0
    assert table.timeline.pending() == ()
    assert errors(table) == []
    if context_of(table).uses_metadata and table.config.version > 6:
        assert listed(table) == data_files(context_of(table).storage)


def spend_a_day(
    uri: str, kind: Kind, tmp_path: Path, sizes: Mapping[str, int], transfers: int, options: dict[str, str]
) -> Day:
    table = open_bank(uri, kind, options)
    closing = tmp_path / "closing"
    first = Job(uri, options, "", 0, transfers, str(closing))
    stop_seconds = 1.5 * (LEASE_MS if options else HEARTBEAT_MS) / 1000
    staff = staff_of(first, kind, random.Random(str(kind)), sizes)
    day = work(staff, closing, stop_seconds)
    print(kind, day.told(), flush=True)
    settle(table, kind)
    check(table, day)
    account, other = "account-1", "account-2"
    transfer(table, Transfer("last", account, other, 1), {})  # by a single writer
    assert "last" in ledger(table.scan().to_arrow())
    return day


@pytest.mark.parametrize(
    "by_metadata", [True, pytest.param(False, marks=pytest.mark.long)], ids=["by-metadata", "listed"]
)
def test_money_is_neither_made_nor_lost(tmp_path: Path, *, by_metadata: bool) -> None:
    sizes = {"clerk": 3, "janitor": 1, "auditor": 1}
    kind = Kind(MOR, 9, "SIMPLE", by_metadata=by_metadata)
    day = spend_a_day(str(tmp_path / "bank"), kind, tmp_path, sizes, 3, {})
    assert len(day.done) == 9


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_money_is_neither_made_nor_lost_in_a_long_day(tmp_path: Path, kind: Kind) -> None:
    sizes = {"clerk": 8, "janitor": 2, "auditor": 2}
    day = spend_a_day(str(tmp_path / "bank"), kind, tmp_path, sizes, 4, {})
    assert len(day.done) == 32
    assert day.audits > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", IN_STORES, ids=str)
def test_money_is_neither_made_nor_lost_in_a_store(store: StoreServer, tmp_path: Path, kind: Kind) -> None:
    sizes = {"clerk": 8, "janitor": 1, "auditor": 1}
    day = spend_a_day(store.address(f"banks/{kind}"), kind, tmp_path, sizes, 2, store.options)
    assert len(day.done) == 16
