"""`hoodie.meta.fields.mode`, by which tables of version 10 say which meta columns records have."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table
from tests.support.merge_tables import set_properties
from tests.support.rows import rides
from tests.support.tables import create

FLAG, MODE = "hoodie.populate.meta.fields", "hoodie.meta.fields.mode"
ROWS = rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 7.0))


def made(path: Path, version: int = 10, **properties: str) -> Table:
    table = create(path=path, version=version, properties=properties)
    table.insert(ROWS)
    return table


def stored(table: Table) -> tuple[str | None, str | None]:
    properties = drawstring.open(table.uri).config.properties
    return properties.get(FLAG), properties.get(MODE)


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [
        (9, {}, ("true", None)),
        (9, {FLAG: "false"}, ("false", None)),
        (10, {}, ("true", "ALL")),
        (10, {FLAG: "false"}, ("false", "NONE")),
        (9, {MODE: "NONE"}, ("false", None)),
        (10, {MODE: "none"}, ("false", "NONE")),
        (10, {MODE: "ALL", FLAG: "true"}, ("true", "ALL")),
    ],
)
def test_a_new_table_stores_the_mode_that_its_version_knows(
    tmp_path: Path, version: int, given: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    assert stored(made(tmp_path / "t", version, **given)) == expected


@pytest.mark.parametrize(("flag", "mode"), [("true", "ALL"), ("false", "NONE")])
def test_an_upgrade_adds_the_mode_and_a_downgrade_restates_the_flag(
    tmp_path: Path, flag: str, mode: str
) -> None:
    table = made(tmp_path / "t", 9, **{FLAG: flag})
    table.versions.upgrade(10)
    assert stored(table) == (flag, mode)
    drawstring.open(table.uri).versions.downgrade(9)
    assert stored(table) == (flag, None)


def test_the_mode_counts_before_the_flag(tmp_path: Path) -> None:
    """Hudi's flag is true where it is not stored, so a table may have the mode alone."""
    table = made(tmp_path / "t", **{FLAG: "false"})
    changed = set_properties(tmp_path / "t", {FLAG: "true", MODE: "NONE"})
    assert not changed.config.populate_meta_fields
    changed.upsert(rides(("a", "rome", 2, 5.0)))
    assert sorted(changed.scan(["id", "fare"]).to_arrow()["fare"].to_pylist()) == [5.0, 7.0]
    assert table.services.validate().is_sound


def test_a_table_with_some_meta_columns_is_read_and_not_written(tmp_path: Path) -> None:
    """Without the column that the mode names, its incremental queries would lose what a write adds."""
    made(tmp_path / "t", **{FLAG: "false"})
    table = set_properties(tmp_path / "t", {MODE: "COMMIT_TIME_ONLY"})
    assert table.scan(["id"]).to_arrow().num_rows == 2
    with pytest.raises(UnsupportedError, match=MODE):
        table.upsert(ROWS)
    with pytest.raises(UnsupportedError, match=MODE):
        table.versions.downgrade(9)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({MODE: "COMMIT_TIME_ONLY"}, "Give ALL or NONE"),
        ({MODE: "NONE", FLAG: "true"}, "are the same option but differ"),
    ],
)
def test_a_mode_that_cannot_be_is_told(tmp_path: Path, properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        create(path=tmp_path / "t", properties=properties)
