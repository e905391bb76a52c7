"""Options of the index in log files, and which writes go with it."""

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
        "Whether log files of a MERGE_ON_READ table carry an index of their keys, and new records go to the "
        "log files of small file groups. With BLOOM and GLOBAL_BLOOM, and BLOOM where no index is named. "
        "Apache Hudi's own indexes of these types do not look into log files: compact before it upserts.",
        kind=Kind.FLAG,
        field="log_index",
        stored_as=_ENABLE,
    ),
    Option(
        "hoodie.index.log.clique.files",
        "Log files of a file group that tell of their keys together (a clique), with the index in log files; "
        "10 when not given.",
        kind=Kind.NUMBER,
        field="log_index_clique_files",
        stored_as="hoodie.index.log.clique.files",
    ),
)


def log_index_cliques(asked: bool | None, clique_files: int | None, config: TableConfig) -> int:
    """Return how many log files make a clique, 0 for a table without an index in log files.

    Args:
        asked: whether the write asks for the index, None where it leaves that to the table.
        clique_files: what the write says about cliques, None likewise.
        config: the table.
    """
    stored = config.properties
    if asked is None:
        asked = stored.get(_ENABLE, "").strip().lower() == "true"
    if not asked:
        return 0
    text = stored.get("hoodie.index.log.clique.files", "").strip()
    return clique_files or (int(text) if text.isdecimal() and int(text) else CLIQUE_FILES)


def check_log_index(kind: str | None, config: TableConfig) -> None:
    """Make sure that an index in log files goes with a table and its index.

    Args:
        kind: `hoodie.index.type` of the write, else of the table; None where nobody says.
        config: the table.

    Raises:
        InvalidError: it has no log files, or finds keys in another way.
        UnsupportedError: its records have no key column.
    """
    if not config.is_merge_on_read:
        raise InvalidError(
            f"{_ENABLE} needs a MERGE_ON_READ table, and this one is {config.table_type}: leave it out"
        )
    if kind not in (None, "BLOOM", "GLOBAL_BLOOM"):
        raise InvalidError(
            f"{_ENABLE} goes with hoodie.index.type BLOOM or GLOBAL_BLOOM, not with {kind}: leave one of them"
            " out"
        )
    if not config.populate_meta_fields:
        raise UnsupportedError(
            f"{_ENABLE} needs the meta columns of records, and the table has"
            " hoodie.populate.meta.fields=false"
        )
