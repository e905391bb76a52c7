"""What an action on a table did, for logs and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """A completed write or service.

    Attributes:
        table: root of the table.
        name: of the table.
        operation: what it was: `upsert`, `compact`, `clean`, ...
        instant: requested time; the newest one that an archiving moved.
        records: records in the new files, copied ones included.
        inserts, updates, deletes: records by what happened to them.
        files: files written.
        bytes_written: bytes of them.
        files_deleted: files deleted.
        instants_archived: instants that left the active timeline.
        seconds: from begin to end.
        stages: seconds by stage: `plan` (wait for the lock, look at the table), `write`, `commit`; empty
            where there is only one.
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
        """Return the line that the log has of it."""
        counts = [
            f"{count:,} {what}"
            for count, what in (
                (self.records, "records"),
                (self.inserts, "inserted"),
                (self.updates, "updated"),
                (self.deletes, "deleted"),
                (self.files, "files"),
                (self.bytes_written, "bytes"),
                (self.files_deleted, "files deleted"),
                (self.instants_archived, "instants archived"),
            )
            if count
        ]
        stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in self.stages.items())
        took = f"{self.seconds:.3f} s" + (f" ({stages})" if stages else "")
        return f"{self.operation} of {self.name} at {self.instant}: {', '.join((*counts, took))}"
