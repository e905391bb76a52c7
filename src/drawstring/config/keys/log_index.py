"""Options of the index in log files, and checks of its requirements."""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option
from drawstring.config.table.config import TableConfig

CLIQUE_FILES: Final = 10
_ENABLE: Final = "hoodie.index.log.enable"

LOG_INDEX_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        _ENABLE,
        "Whether log files of a MERGE_ON_READ table contain an index of their keys, so that new records can "
        "go to the log files of small file groups. With BLOOM (the default then) and GLOBAL_BLOOM. Apache "
        "Hudi's own indexes of these types do not search log files: compact the table before Hudi upserts to"
        " it.",
        kind=Kind.FLAG,
        field="log_index",
        stored_as=_ENABLE,
    ),
    Option(
        "hoodie.index.log.clique.files",
        "Number of log files of a file group that share one key summary (a clique, RFC-06) in the index in "
        "log files; 10 when not given.",
        kind=Kind.NUMBER,
        field="log_index_clique_files",
        stored_as="hoodie.index.log.clique.files",
    ),
)


def log_index_cliques(enabled: bool | None, clique_files: int | None, config: TableConfig) -> int:
    """Return the number of log files of a clique (RFC-06), 0 for a table without an index in log files.

    Args:
        enabled: the write's `hoodie.index.log.enable`, None if it is not given.
        clique_files: the write's `hoodie.index.log.clique.files`, None if it is not given.
        config: configuration of the table.
    """
    stored = config.properties
    if enabled is None:
        enabled = stored.get(_ENABLE, "").strip().lower() == "true"
    if not enabled:
        return 0
    text = stored.get("hoodie.index.log.clique.files", "").strip()
    return clique_files or (int(text) if text.isdecimal() and int(text) else CLIQUE_FILES)


def check_log_index(kind: str | None, config: TableConfig) -> None:
    """Check that a table and its index support an index in log files.

    Args:
        kind: `hoodie.index.type` of the write, else of the table; None if neither has it.
        config: configuration of the table.

    Raises:
        InvalidError: the table has no log files, or another index type.
        UnsupportedError: the table has no meta columns.
    """
    if not config.is_merge_on_read:
        raise InvalidError(
            f"{_ENABLE} needs a MERGE_ON_READ table, but the table is {config.table_type}. Drop the option."
        )
    if kind not in (None, "BLOOM", "GLOBAL_BLOOM"):
        raise InvalidError(
            f"{_ENABLE} needs hoodie.index.type BLOOM or GLOBAL_BLOOM, but the index is {kind}. Drop one of"
            " the options."
        )
    if not config.populate_meta_fields:
        raise UnsupportedError(
            f"{_ENABLE} needs the meta columns of records, but the table has"
            " hoodie.populate.meta.fields=false. Drop the option."
        )
