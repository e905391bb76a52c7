"""Events about completed actions, for logs and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """A completed write or table service.

    Attributes:
        table: root of the table.
        name: name of the table.
        operation: `upsert`, `compact`, `clean`, ...
        instant: requested time; of an archiving the newest archived instant.
        records: records in the new files, including those copied unchanged.
        inserts, updates, deletes: records inserted, updated and deleted.
        files: files written.
        bytes_written: bytes of the files written.
        files_deleted: files deleted.
        instants_archived: instants moved out of the active timeline.
        seconds: duration of the action.
        stages: seconds by stage: `plan` (wait for the lock, load the timeline), `write`, `commit`; empty
            for actions with one stage.
    """

    table: str
    name: str
    operation: str
    instant: str
    records: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files: int = 0
    bytes_written: int = 0
    files_deleted: int = 0
    instants_archived: int = 0
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        """Return the log line of the event."""
        counts = [
            f"{count:,} {what.format('' if count == 1 else 's')}"
            for count, what in (
                (self.records, "record{}"),
                (self.inserts, "inserted"),
                (self.updates, "updated"),
                (self.deletes, "deleted"),
                (self.files, "file{}"),
                (self.bytes_written, "byte{}"),
                (self.files_deleted, "file{} deleted"),
                (self.instants_archived, "instant{} archived"),
            )
            if count
        ]
        stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in self.stages.items())
        took = f"{self.seconds:.3f} s" + (f" ({stages})" if stages else "")
        return f"{self.operation} of {self.name} at {self.instant}: {', '.join((*counts, took))}"
