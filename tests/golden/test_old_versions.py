"""Tables of versions 2 to 5 are read as Hudi 1.2.0 reads them, like version 6, and never written to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import DrawstringError, UnsupportedError
from drawstring.query.table_state import load_facts
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.golden import cases_of, unpack
from tests.support.golden_rows import in_order, rows_of
from tests.support.rows import rides
from tests.support.tables import create, listing

FIRST_WITH_CHECKSUM = 4
NEWER = (
    "hoodie.record.merge.",
    "hoodie.table.format",
    "hoodie.table.initial.version",
    "hoodie.table.keygenerator.type",
    "hoodie.timeline.history.path",
    "hoodie.timeline.path",
)
"""Keys that releases of that time did not write."""

TABLES = [
    "v6_cow_ops",
    "v6_mor_event_time",
    "v6_mor_archived",
    "v6_cow_clustered",
    "v6_mor_compaction_pending",
]


def of_version(root: Path, version: int) -> Path:
    """Make a table of version 6 look like one that an older release of Hudi wrote."""
    path = root / ".hoodie/hoodie.properties"
    gone = ("#", *NEWER, *(("hoodie.table.checksum",) if version < FIRST_WITH_CHECKSUM else ()))
    lines = [line for line in path.read_text().splitlines() if not line.startswith(gone)]
    assert "hoodie.table.version=6" in lines
    as_old = [line.replace("hoodie.table.version=6", f"hoodie.table.version={version}") for line in lines]
    # The name under which those releases stored the ordering column.
    stored = [
        line.replace("hoodie.table.ordering.fields", "hoodie.table.precombine.field") for line in as_old
    ]
    path.write_text("\n".join([*stored, ""]))
    return root


def files_of(root: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(root.rglob("*")):
        # A writer's lock file is no part of the table.
        if path.is_file() and ".locks" not in path.parts:
            yield str(path.relative_to(root)), path.read_bytes()


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("name", TABLES)
def test_every_query_has_the_rows_of_version_6(name: str, version: int, tmp_path: Path) -> None:
    root = of_version(unpack(name, tmp_path), version)
    facts = load_facts(open_storage(str(root)), context_of(drawstring.open(root)).clock)
    assert facts.config.version == version
    for case in cases_of(name):
        table = case.scan(facts).to_arrow()
        assert in_order(rows_of(table, case.shown(table))) == in_order(case.rows()), case.name


CALLS: dict[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(rides(("a", "rome", 1, 1.0))),
    "delete": lambda table: table.delete(where="true"),
    "compact": lambda table: table.services.compact(),
    "clean": lambda table: table.services.clean(),
    "rollback": lambda table: table.services.rollback("20260101000000000"),
    "upgrade": lambda table: table.versions.upgrade(),
    "upgrade to 6": lambda table: table.versions.upgrade(6),
    "downgrade": lambda table: table.versions.downgrade(6),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_every_write_is_refused_and_changes_nothing(call: Callable[[Table], object], tmp_path: Path) -> None:
    root = of_version(unpack("v6_mor_event_time", tmp_path), 5)
    before = list(files_of(root))
    with pytest.raises(UnsupportedError, match="has version 5, which this release only reads"):
        call(drawstring.open(root))
    assert list(files_of(root)) == before


@pytest.mark.parametrize("version", [0, 1, 7, 11])
def test_other_versions_are_refused(version: int, tmp_path: Path) -> None:
    root = of_version(unpack("v6_cow_ops", tmp_path), version)
    with pytest.raises(
        DrawstringError, match=f"version {version}, but this release reads only versions 2 to 6, 8, 9 and 10"
    ):
        drawstring.open(root)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_rows_without_a_partition_value_are_found_in_the_old_default_partition(
    version: int, tmp_path: Path
) -> None:
    """Before version 5 null went to the partition `default`, as the text did."""
    root = tmp_path / "rides"
    table = listing(create(path=root, version=6))
    table.insert(rides(("a", None, 1, 1.0)))
    table.insert(rides(("b", "default", 1, 1.0), ("c", "oslo", 1, 1.0)))
    new, old = (root / name for name in ("__HIVE_DEFAULT_PARTITION__", "default"))
    for file in new.iterdir():
        if not file.name.startswith("."):
            file.rename(old / file.name)
    shutil.rmtree(new)
    for commit in (root / ".hoodie").glob("*.commit"):
        commit.write_text(commit.read_text().replace(new.name, old.name))
    found = drawstring.open(of_version(root, version))
    expected = {"city IS NULL": ["a"], "city = 'default'": ["b"], "city = 'oslo'": ["c"]}
    for where, keys in expected.items():
        assert found.scan(where=where, columns=["id"]).to_arrow().column("id").to_pylist() == keys, where
    rows = found.scan(columns=["id", "city"]).to_arrow().to_pylist()
    assert {row["id"]: row["city"] for row in rows} == {"a": None, "b": "default", "c": "oslo"}
