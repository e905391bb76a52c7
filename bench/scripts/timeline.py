"""What a long timeline costs. usage: timeline.py DATA TABLE

A table of 20,000 rides is written, compacted and cleaned until its timeline repeats: five delta commits, a
compaction, a clean. That stretch is copied backwards in time until there are 10,000 instants, all of them
active. Each step is done three times, in a process that has loaded what it needs. Then all that may go is
archived, and the steps are done again.

    open              the table and its timeline
    plan              the tasks of a snapshot
    recent            the tasks of an incremental read of the last ten instants
    upsert            1,000 rides; cleaning is on, archiving off until the timeline is archived
    plan_clean        what a clean would delete
    schedule          a compaction onto the timeline; taken off again
    archive           how long it takes to move all but the newest
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from hudi_options import INDEXES, UNCOMPACTED
from ride import step
from soak import Soak, batch

import drawstring

INSTANTS = 10_000
REPEATS = 3
REAL_BATCHES = 40
PATTERN = "%Y%m%d%H%M%S%f"
NOT_ARCHIVED = {"hoodie.archive.automatic": "false"}


class LongTimeline:
    """The table and its steps."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._written = 0
        self._options: dict[str, str] = NOT_ARCHIVED
        Soak(path, INDEXES["bucket"] | {"hoodie.bucket.index.num.buckets": "1"})
        for _ in range(REAL_BATCHES):
            self.upsert()

    def upsert(self, **options: str) -> None:
        self._written += 1
        self.table().upsert(batch(self._written), options=self._options | options)

    def table(self) -> drawstring.Table:
        return drawstring.open(self._path)

    def lengthen(self, instants: int) -> None:
        """Copy a stretch of the timeline backwards until there are so many instants."""
        folder = Path(self._path, ".hoodie/timeline")
        files = [file for file in sorted(folder.iterdir()) if file.is_file()]
        compactions = [file.name[:17] for file in files if file.name.endswith("compaction.requested")]
        first, last = compactions[-2], compactions[-1]
        stretch = [(file, file.read_bytes()) for file in files if first <= file.name < last]
        each = len({file.name[:17] for file, _ in stretch})
        have = len({file.name[:17] for file in files})
        length = _time(last) - _time(first)
        behind = _time(first) - _time(files[0].name[:17])
        for number in range(1, (instants - have) // each + 1):
            back = behind + number * length
            for file, content in stretch:
                stem, dot, rest = file.name.partition(".")
                moved = "_".join(_text(_time(part) - back) for part in stem.split("_"))
                (folder / f"{moved}{dot}{rest}").write_bytes(content)

    def archive(self) -> int:
        """Move all that may go, and let writes archive from now on."""
        done = self.table().services.archive()
        self._options = {}
        return done.instants if done else 0

    def steps(self) -> dict[str, Callable[[], Any]]:
        return {
            "open": lambda: len(self.table().timeline.instants),
            "plan": lambda: len(self.table().scan().tasks()),
            "recent": self._recent,
            "upsert": lambda: self.upsert(**UNCOMPACTED),
            "plan_clean": lambda: self.table().services.plan_clean() and None,
            "schedule": lambda: self.table().services.schedule_compaction(),
        }

    def _recent(self) -> int:
        table = self.table()
        begin = table.timeline.instants[-10].completed
        return len(table.incremental(begin).tasks())

    def take_off_plan(self, requested: str) -> None:
        Path(self._path, f".hoodie/timeline/{requested}.compaction.requested").unlink()


def _time(text: str) -> datetime:
    return datetime.strptime(text + "000", PATTERN)


def _text(time: datetime) -> str:
    return time.strftime(PATTERN)[:17]


def measure(prefix: str, table: LongTimeline) -> None:
    """Do each step some times and tell."""
    for name, action in table.steps().items():
        for _ in range(REPEATS):
            result = step(f"{prefix}_{name}", action)
            if name == "schedule":
                table.take_off_plan(result)


def main(path: str) -> None:
    """Take a new table through both."""
    shutil.rmtree(path, ignore_errors=True)
    table = LongTimeline(path)
    table.lengthen(INSTANTS)
    measure("active", table)
    step("archive", table.archive)
    measure("archived", table)


if __name__ == "__main__":
    drawstring.use_allocator()
    main(sys.argv[2])
