"""Accounts and the ledger of a bank, in one table, and what must be true of every snapshot of it.

    account row    balance: changes with every transfer
    ledger row     giver, taker, amount of one transfer; its key is the number of the transfer

A transfer is one merge: it adds to two balances and inserts a row into the ledger. The merge reads the
balances in the same attempt that writes them, so under optimistic concurrency control it conflicts with every
write that came in between, and is run again. An upsert of balances that were read before the call is no
transfer: the table cannot know that they were read, and the money of a transfer in between would be lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.engine.local import LocalEngine
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import load_config
from drawstring.txn.table_context import TableContext

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("ts", pa.int64()),
        pa.field("balance", pa.int64()),
        pa.field("giver", pa.string()),
        pa.field("taker", pa.string()),
        pa.field("amount", pa.int64()),
    ]
)
_TOLD = [SCHEMA.field(name) for name in SCHEMA.names if name != "balance"]
ORDERS = pa.schema([*_TOLD, pa.field("change", pa.int64())])
"""What a transfer merges into the table: `change` is added to a balance."""

LEDGER = "ledger"
BRANCHES = ("bern", "lima", "oslo", "rome")
ACCOUNTS = {f"account-{number}": BRANCHES[number % 4] for number in range(8)}
FIRST_BALANCE = 1000
SUM = FIRST_BALANCE * len(ACCOUNTS)
HEARTBEAT_MS = 2000
OPTIONS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.client.heartbeat.interval_in_ms": str(HEARTBEAT_MS // 2),
    "hoodie.client.heartbeat.tolerable.misses": "2",
    "hoodie.write.lock.wait_time_ms": "120000",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.commits.retained": "6",
    "hoodie.keep.min.commits": "8",
    "hoodie.keep.max.commits": "12",
}
"""For all staff: every insert makes a file group, so that there is something to cluster."""


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    table_type: str
    version: int
    index: str
    ordering: tuple[str, ...] = ("ts",)
    properties: Mapping[str, str] = field(default_factory=dict)
    by_metadata: bool = False
    """Whether it has a metadata table, by which all staff plan."""

    def __str__(self) -> str:
        short = "cow" if self.table_type == "COPY_ON_WRITE" else "mor"
        more = "" if self.ordering else "-unordered"
        return f"{short}{self.version}-{self.index.lower()}{more}{'-metadata' * self.by_metadata}"


@dataclass(frozen=True)
class Transfer:
    """Money that goes from one account to another."""

    number: str
    giver: str
    taker: str
    amount: int

    def rows(self) -> pa.Table:
        """Return what is merged into the table."""
        accounts = [(self.giver, -self.amount), (self.taker, self.amount)]
        rows: list[dict[str, Any]] = [
            {"id": account, "branch": ACCOUNTS[account], "ts": 1, "change": change}
            for account, change in accounts
        ]
        told = {"giver": self.giver, "taker": self.taker, "amount": self.amount}
        rows.append({"id": self.number, "branch": LEDGER, "ts": 1, "change": 0, **told})
        return pa.Table.from_pylist(rows, ORDERS)


def open_bank(uri: str, kind: Kind, storage_options: Mapping[str, str]) -> Table:
    """Create the table; the accounts of two branches are in different file groups."""
    table = drawstring.create(
        uri,
        SCHEMA,
        name="bank",
        table_type=kind.table_type,
        record_key="id",
        partition_by="branch",
        ordering=kind.ordering,
        version=kind.version,
        properties={"hoodie.index.type": kind.index, **kind.properties},
        storage_options=dict(storage_options),
    )
    first = {"ts": 1, "balance": FIRST_BALANCE}
    rows = [{"id": account, "branch": branch, **first} for account, branch in ACCOUNTS.items()]
    if kind.by_metadata:
        table = Table(replace(context_of(table), uses_metadata=True))
    table.insert(pa.Table.from_pylist(rows, SCHEMA), options=OPTIONS)
    return table


def table_of(uri: str, storage_options: Mapping[str, str]) -> Table:
    """Open the table with one thread: its staff are many. They plan by its metadata table if it has one."""
    storage = open_storage(uri, dict(storage_options))
    has_metadata = bool(load_config(storage).metadata_partitions)
    return Table(TableContext(storage, LocalEngine(1), uses_metadata=has_metadata))


def transfer(table: Table, order: Transfer, options: Mapping[str, str]) -> str:
    """Move the money in one commit; return its instant."""
    merge = table.merge(order.rows(), options=options)
    merge = merge.when_matched_update({"balance": "target.balance + source.change", "ts": "target.ts + 1"})
    inserted = {name: f"source.{name}" for name in SCHEMA.names if name != "balance"}
    return merge.when_not_matched_insert({**inserted, "balance": "source.change"}).execute().instant


def ledger(rows: pa.Table) -> set[str]:
    """Return the numbers of the transfers of a snapshot, after a check that the snapshot is sound."""
    found = rows.select(SCHEMA.names).to_pylist()
    twice = [key for key, count in Counter(row["id"] for row in found).items() if count > 1]
    assert twice == [], f"these keys are there more than once: {twice}"
    balances = {row["id"]: row["balance"] for row in found if row["branch"] != LEDGER}
    assert {row["id"]: row["branch"] for row in found if row["branch"] != LEDGER} == ACCOUNTS
    transfers = [row for row in found if row["branch"] == LEDGER]
    expected = dict.fromkeys(ACCOUNTS, FIRST_BALANCE)
    for row in transfers:
        expected[row["giver"]] -= row["amount"]
        expected[row["taker"]] += row["amount"]
    assert sum(balances.values()) == SUM, f"the sum is {sum(balances.values())} instead of {SUM}"
    assert balances == expected, f"{balances} instead of {expected} after {len(transfers)} transfers"
    return {row["id"] for row in transfers}
