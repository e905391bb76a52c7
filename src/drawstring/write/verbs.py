"""Rules of the write operations: what each looks up, merges and replaces.

Every write that appends to a MERGE_ON_READ table is a delta commit, bulk inserts too, and an overwrite is a
replace commit. Then a commit on the timeline of such a table is always a compaction, and the number of delta
commits since the last one decides when the next one is due. Readers do not rely on it: Hudi's bulk insert is
a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action
from drawstring.schema.meta import RECORD_KEY


@dataclass(frozen=True, slots=True)
class Verb:
    """Rules of a write operation.

    Attributes:
        operation: name in commit metadata.
        looks_up: whether rows are tagged and merged with existing records.
        is_delete: whether the rows are keys to delete.
        replaces: `""`, or what is replaced: the `partitions` of the rows or the whole `table`.
        named: partition paths; these and the partitions below them are replaced, too, without any rows.
        fills_files: whether untagged rows fill small files first.
        arranges: whether rows may be sorted before they are written.
        hashes: whether it supports hashing indexes.
        merges_files: whether small files are merged after it when there are enough of them.
        called: name for the caller if it differs from `operation`.
    """

    operation: WriteOperation
    looks_up: bool = False
    is_delete: bool = False
    replaces: str = ""
    named: tuple[str, ...] = ()
    fills_files: bool = False
    arranges: bool = False
    hashes: bool = True
    merges_files: bool = False
    called: str = ""

    @property
    def name(self) -> str:
        """Name for the caller."""
        return self.called or self.operation.lower()

    @property
    def keeps_apart(self) -> bool:
        """Whether its rows go to new file groups, whatever the table has."""
        return not (self.looks_up or self.fills_files or self.replaces)

    def action(self, config: TableConfig) -> Action:
        """The action of its instant."""
        if self.replaces:
            return Action.REPLACE_COMMIT
        return Action.DELTA_COMMIT if config.is_merge_on_read else Action.COMMIT

    def on(self, config: TableConfig, columns: Sequence[str]) -> Verb:
        """Return the operation on a given table: without key columns, only meta column keys identify rows.

        Args:
            config: the table.
            columns: columns of the rows.

        Raises:
            InvalidError: rows to delete have no keys.
        """
        if config.record_key_fields or not self.looks_up or RECORD_KEY in columns:
            return self
        if self.is_delete:
            raise InvalidError(
                f"The table has no key columns. To delete rows, give those of a scan that includes"
                f" {RECORD_KEY}."
            )
        return VERBS["insert"]


VERBS: Final = {
    "insert": Verb(WriteOperation.INSERT, fills_files=True),
    "upsert": Verb(WriteOperation.UPSERT, looks_up=True),
    "delete": Verb(WriteOperation.DELETE, looks_up=True, is_delete=True),
    "bulk_insert": Verb(WriteOperation.BULK_INSERT, arranges=True),
    # Hudi has no such operation in commits; it equals a bulk insert.
    "append": Verb(WriteOperation.BULK_INSERT, hashes=False, merges_files=True, called="append"),
    "insert_overwrite": Verb(WriteOperation.INSERT_OVERWRITE, replaces="partitions"),
    "insert_overwrite_table": Verb(WriteOperation.INSERT_OVERWRITE_TABLE, replaces="table"),
}

UPDATE: Final = Verb(WriteOperation.UPSERT, looks_up=True, called="update")
MERGE: Final = Verb(WriteOperation.UPSERT, looks_up=True, called="merge")
BOOTSTRAP: Final = Verb(WriteOperation.BOOTSTRAP, arranges=True)


def verb_of(operation: str) -> Verb:
    """Return the rules of an operation.

    Raises:
        InvalidError: the operation is unknown.
    """
    if operation.lower() == BOOTSTRAP.name:
        raise InvalidError(
            "A bootstrap creates a table. Call drawstring.bootstrap with the path of a new table."
        )
    try:
        return VERBS[operation.lower()]
    except KeyError:
        raise InvalidError(
            f"There is no write operation {operation!r}. Use one of {', '.join(VERBS)}."
        ) from None
