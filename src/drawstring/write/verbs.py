"""The write verbs, as rules: what each one looks up, combines and replaces."""

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
    """What an operation does.

    Attributes:
        operation: name in commit metadata.
        looks_up: whether existing keys are found and merged with.
        is_delete: whether the rows are keys to delete.
        replaces: `""`, or what is replaced: the touched `partitions` or the whole `table`.
        fills_files: whether rows that nobody looks up go to small files first.
        arranges: whether rows may be sorted before they are written.
        hashes: whether it goes with an index that fixes the file group of every key.
        merges_files: whether small files are merged after it, when enough came together.
        called: what the caller knows it by, where that is not the operation.
    """

    operation: WriteOperation
    looks_up: bool = False
    is_delete: bool = False
    replaces: str = ""
    fills_files: bool = False
    arranges: bool = False
    hashes: bool = True
    merges_files: bool = False
    called: str = ""

    @property
    def name(self) -> str:
        """What the caller knows it by."""
        return self.called or self.operation.lower()

    def action(self, config: TableConfig) -> Action:
        """The action of its instant."""
        if self.replaces:
            return Action.REPLACE_COMMIT
        return Action.DELTA_COMMIT if config.is_merge_on_read else Action.COMMIT

    def on(self, config: TableConfig, columns: Sequence[str]) -> Verb:
        """Return what the operation is on a table: one without key columns knows rows by their own keys only.

        Args:
            config: the table.
            columns: of the rows.

        Raises:
            InvalidError: rows to delete that do not say their keys.
        """
        if config.record_key_fields or not self.looks_up or RECORD_KEY in columns:
            return self
        if self.is_delete:
            raise InvalidError(
                f"the table has no key columns: to delete rows, hand over those of a scan, with {RECORD_KEY}"
            )
        return VERBS["insert"]


VERBS: Final = {
    "insert": Verb(WriteOperation.INSERT, fills_files=True),
    "upsert": Verb(WriteOperation.UPSERT, looks_up=True),
    "delete": Verb(WriteOperation.DELETE, looks_up=True, is_delete=True),
    "bulk_insert": Verb(WriteOperation.BULK_INSERT, arranges=True),
    # Hudi has no name for it in commits; what it does is what a bulk insert does.
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
        InvalidError: there is no such operation.
    """
    if operation.lower() == BOOTSTRAP.name:
        raise InvalidError("a bootstrap makes a table: call drawstring.bootstrap with the path of a new one")
    try:
        return VERBS[operation.lower()]
    except KeyError:
        raise InvalidError(
            f"there is no write operation {operation!r}: use one of {', '.join(VERBS)}"
        ) from None
