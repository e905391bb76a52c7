"""The staff of the bank, each in a process of its own; run as a module.

    python -m tests.support.bank.staff ROLE JOB

JOB is the JSON of a `Job`. Each member of staff prints a line before and after everything that it does; the
first word of it is one of `WORDS`. The log is printed as well. What is wrong ends the process with a
traceback.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.model.instant import time_of
from drawstring.table import Table
from drawstring.txn.locks import table_lock
from drawstring.txn.locks.storage_lock import LeaseLock
from tests.support.bank.accounts import ACCOUNTS, OPTIONS, Transfer, ledger, table_of, transfer
from tests.support.methods import method

BEGINS, DONE, REFUSED = "begins", "done", "refused"
WORDS = (BEGINS, DONE, REFUSED)
RUNS_AGAIN = "was in conflict and runs again"
"""What the log says of an attempt of a write that lost."""

LEASE_MS = 4000
AMOUNT_MAX = 100
ATTEMPTS_MAX = 1000
CLERK_SECONDS, JANITOR_SECONDS, AUDITOR_SECONDS = 0.2, 1.0, 1.0
"""Pauses: of clerks after a transfer that was refused, of the others after everything that they do."""
GONE = ("cleaned away", "archived")
"""What queries as of an instant are told that is too old by now."""


@dataclass(frozen=True)
class Job:
    """What a member of staff is told.

    Attributes:
        uri: of the table.
        storage_options: of the table's storage.
        name: of the member; transfers have it in their numbers.
        seed: draws what it does.
        transfers: how many a clerk makes.
        closing: a file that is there when everybody but the clerks may go home.
        options: beside those of all staff.
        services: what a janitor does.
    """

    uri: str
    storage_options: dict[str, str]
    name: str
    seed: int
    transfers: int
    closing: str
    options: dict[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = ()

    def encode(self) -> str:
        """Return the job as a word of a command line."""
        return json.dumps(asdict(self))


def clerk(job: Job, table: Table, draw: random.Random) -> None:
    """Make transfers. A transfer that is refused is not made, says the error; another one is made instead."""
    done = 0
    for number in range(1, ATTEMPTS_MAX):
        if done == job.transfers:
            return
        giver, taker = draw.sample(sorted(ACCOUNTS), 2)
        order = Transfer(f"{job.name}-{number}", giver, taker, draw.randint(1, AMOUNT_MAX))
        if _tell(order.number, partial(transfer, table, order, {**OPTIONS, **job.options})):
            done += 1
        else:
            time.sleep(CLERK_SECONDS)
    raise AssertionError(f"only {done} of {job.transfers} transfers were made")


def janitor(job: Job, table: Table, draw: random.Random) -> None:
    """Run services, one after the other, until the bank is closed."""
    while not Path(job.closing).exists():
        service = draw.choice(job.services)
        options = {**OPTIONS, **job.options}
        if service == "cluster":  # what is sorted in another way already is clustered once more
            options["hoodie.clustering.plan.strategy.sort.columns"] = draw.choice(["id", "balance", "ts"])
        _tell(service, partial(method(table, service), options=options))
        time.sleep(JANITOR_SECONDS)


def auditor(job: Job, table: Table, draw: random.Random) -> None:
    """Check snapshots, new ones and old ones, until the bank is closed; no transfer ever goes again."""
    seen: set[str] = set()
    while not Path(job.closing).exists():
        newest = _audit(table)
        assert newest is None or seen <= newest, f"these transfers are gone: {seen - newest}"
        seen |= newest or set()
        times = [time_of(each) for each in table.timeline.writes()]
        old = _audit(table, draw.choice(times)) if times else None
        seen |= old or set()
        time.sleep(AUDITOR_SECONDS)


def _audit(table: Table, as_of: str | None = None) -> set[str] | None:
    """Check a snapshot; None if it is there no more, or others cleaned faster than it could be read."""
    what = "newest" if as_of is None else as_of
    _say(BEGINS, what)
    try:
        found = ledger(table.scan(as_of=as_of).to_arrow())
    except UnavailableError as error:
        _say(REFUSED, what, _line(error))
        return None
    except InvalidError as error:
        if as_of is None or not any(text in str(error) for text in GONE):
            raise
        _say(REFUSED, what, _line(error))
        return None
    _say(DONE, what)
    return found


def _tell(what: str, act: Callable[[], Any]) -> bool:
    """Do something that others may refuse, and tell; return whether it was done."""
    _say(BEGINS, what)
    try:
        act()
    except ConflictError as error:
        _say(REFUSED, what, _line(error))
        return False
    _say(DONE, what)
    return True


def _say(*words: str) -> None:
    sys.stdout.write(f"{' '.join(words)}\n")  # at once: threads print their log between
    sys.stdout.flush()


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


ROLES: dict[str, Callable[[Job, Table, random.Random], None]] = {
    "clerk": clerk,
    "janitor": janitor,
    "auditor": auditor,
}


def main(role: str, text: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    job = Job(**json.loads(text))
    # Leases on object stores end sooner than a process is stopped for.
    table_lock.LeaseLock = partial(LeaseLock, lease_ms=LEASE_MS, renew_seconds=0.3)  # type: ignore
    ROLES[role](job, table_of(job.uri, job.storage_options), random.Random(job.seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
