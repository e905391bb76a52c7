"""Files that another tool registered in the table without rewriting them.

    commit      2024/part-0.parquet_20240105180000000_hudiext
    storage     2024/part-0.parquet

Such files have no name of Hudi's and no meta columns. Apache Hudi finds them by its metadata table only, so a
table that has them must keep it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.model.commit import WriteStat

_SUFFIX: Final = "_hudiext"


def refuse_external_file(path: str, instant: str | None = None) -> None:
    """Refuse a file that another tool registered.

    Args:
        path: as a commit names it.
        instant: requested time of that commit.

    Raises:
        UnsupportedError: it is one.
    """
    if path.endswith(_SUFFIX):
        raise UnsupportedError(
            "The commit names a data file that another tool (Apache XTable, for example) registered in the"
            " table without rewriting it. This release does not read such files: read the table with Apache"
            " Hudi, or the files with the tool that wrote them.",
            instant=instant,
            path=path,
        )


def refuse_external_files(stats: Iterable[WriteStat], instant: str) -> None:
    """Refuse a commit that names files that another tool registered; see `refuse_external_file`."""
    for stat in stats:
        refuse_external_file(stat.path, instant)
