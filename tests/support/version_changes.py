"""Tables before and after a change of their version."""

from __future__ import annotations

from drawstring.model.table_version import LAYOUT_1
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.timeline.timeline import parse_instant
from tests.support.copies import copied
from tests.support.rows import rides
from tests.support.tables import BUCKETS, MOR, WITHOUT_SERVICES, create

SHORT_HISTORY = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.beyond.savepoint": "true",
}


@copied
def table_with_history(table_type: str, version: int, writes: int = 10) -> Table:
    """Make a table with archived instants, a savepoint, cleans and replaced file groups."""
    table = create(table_type=table_type, version=version, properties=BUCKETS)
    for number in range(6 - writes, 6):
        table.upsert(rides(("a", "rome", number, 1.0), ("b", "oslo", number, 1.0)), options=SHORT_HISTORY)
        if table_type == MOR and number % 2 == 0:
            table.services.compact(options=SHORT_HISTORY)
    table.savepoints.create(comments="before it changes")
    table.insert_overwrite(rides(("c", "rome", 6, 6.0), ("d", "rome", 6, 6.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "oslo", 7, 7.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("c", "rome", 8, 8.0), ("e", "bern", 8, 8.0)), options=WITHOUT_SERVICES)
    return table


def files_of_other_layout(storage: Storage, layout: int) -> list[str]:
    """Files of a timeline in a layout that does not count."""
    folders = (".hoodie", ".hoodie/archived") if layout == 1 else (".hoodie/timeline",)
    listed = [
        *(storage.list_files(folders[0]) if layout == 1 else []),
        *(status for folder in folders[layout == 1 :] for status in storage.list_tree(folder)),
    ]
    return [
        each.path
        for each in listed
        if layout == 2 or each.folder != ".hoodie" or parse_instant(each.name, LAYOUT_1)
    ]


def change_version(table: Table, version: int) -> None:
    """Upgrade or downgrade a table."""
    down = version < table.config.version or version == 6
    (table.versions.downgrade if down else table.versions.upgrade)(version)
