"""A reader that follows a table by the times at which writes complete, from where it stopped."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

from drawstring.table import Table
from tests.support.simulation.writers.history import COLUMNS, History, Rows
from tests.support.simulation.writers.plans import Kind

NAME = "follower"


class Follower:
    """Holds what it saw, with the position up to which it saw it; both survive its process.

    Args:
        history: says what the table held when.
        kind: of the table. Among the new rows of ordered tables are late ones, which lose against base files
            (as in Hudi), so that only changes add up.
        seed: draws whether it reads every change or the new rows, and how much at once.
    """

    def __init__(self, history: History, kind: Kind, seed: int) -> None:
        draw = random.Random(f"{seed} follower's")
        self._history = history
        self._sees_deletes = draw.random() < 0.6 or kind.is_ordered
        self._commits_max = draw.choice((None, 1, 2))
        self._rows: Rows = {}
        self._position: str | None = None

    def go_on(self, table: Table) -> None:
        """Read what is new, batch by batch.

        Raises:
            AssertionError: what was seen so far does not add up to what the table held then.
        """
        columns = None if self._sees_deletes else COLUMNS
        for batch in table.follow(
            self._position,
            columns=columns,
            changes=self._sees_deletes,
            poll_seconds=None,
            max_commits=self._commits_max,
            hold=NAME,
        ):
            self._see(batch.rows.to_arrow())
            self._position = batch.position
            self._check(self._history.rows_at(json.loads(batch.position)["time"]), batch.position)

    def check_all(self) -> None:
        """Make sure that everything was seen."""
        self._check(self._history.states[-1], "at the end")

    def _see(self, found: pa.Table) -> None:
        if not self._sees_deletes:
            self._rows |= {(row["city"], row["id"]): row["value"] for row in found.to_pylist()}
            return
        for change in found.to_pylist():
            self._rows.pop(_at(change["before"]), None)
            if change["op"] != "d":
                after = json.loads(change["after"])
                self._rows[after["city"], after["id"]] = after["value"]

    def _check(self, held: Rows, where: str) -> None:
        seen = self._rows
        if not self._sees_deletes:
            seen = {at: value for at, value in seen.items() if at in held}
        assert seen == held, f"a follower saw {seen} up to {where}, of {held}"


def _at(image: Any) -> tuple[str, str]:
    row = json.loads(image) if image else {"city": "", "id": ""}
    return row["city"], row["id"]
