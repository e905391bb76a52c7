"""Catalogs of a user's own, whose provider is an entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from tests.support.distributions import installed

OWN_CATALOG = """
TABLES = {}
PARTITIONS = {}


class Book:
    has_partitions = True

    def properties(self, table):
        return TABLES[table.full_name].properties if table.full_name in TABLES else None

    def create(self, table, *, with_database):
        TABLES[table.full_name] = table

    alter = lambda self, table: self.create(table, with_database=False)

    def partitions(self, table):
        return set(PARTITIONS)

    def add(self, table, partitions):
        PARTITIONS.update({each.values: each.location for each in partitions})

    def drop(self, table, values):
        pass

    def databases(self):
        return ["lake"]

    def table_names(self, database):
        return [name.split(".")[1] for name in TABLES if name.startswith(database + ".")]

    def location(self, database, name):
        found = TABLES.get(f"{database}.{name}")
        return found and found.location

    def close(self):
        pass


class BookProvider:
    def for_sync(self, settings):
        return Book()

    def at_address(self, address):
        if address != "book+https://book.example":
            raise ValueError("no page")
        return Book()
"""
ENTRIES = {
    "BookSyncTool": "BookProvider",
    "org.example.LastTool": "BookProvider",
    "book": "BookProvider",
    "broken": "NoClass",
    "glue": "BookProvider",
}
TOOL = "hoodie.meta.sync.client.tool.class"
ROWS = pa.table({"id": [1, 2], "city": ["oslo", "rome"]})


@pytest.fixture(autouse=True)
def own_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with installed(tmp_path / "site", monkeypatch, "mybook", OWN_CATALOG, "drawstring.catalogs", ENTRIES):
        yield


def upsert_and_sync(folder: Path, tool: str) -> None:
    table = drawstring.create(folder / "t", ROWS.schema, record_key="id", partition_by="city", name="rides")
    sync = {"hoodie.datasource.meta.sync.enable": "true", TOOL: tool}
    table.upsert(ROWS, options={**sync, "hoodie.datasource.hive_sync.database": "lake"})


@pytest.mark.parametrize("tool", ["BookSyncTool", "org.other.BookSyncTool", "org.example.LastTool"])
def test_an_own_catalog_is_told_about_a_commit_and_opens_its_table(tmp_path: Path, tool: str) -> None:
    upsert_and_sync(tmp_path, tool)
    assert {*sys.modules["mybook"].PARTITIONS} == {("oslo",), ("rome",)}
    with drawstring.catalog("book+https://book.example") as catalog:
        assert (catalog.databases(), catalog.tables("lake")) == (["lake"], ["rides"])
        assert catalog.table("lake.rides").scan().to_arrow().num_rows == 2


def test_an_unknown_tool_is_answered_with_all_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    upsert_and_sync(tmp_path, "org.example.BookletSyncTool")
    assert "Sync by org.example.BookletSyncTool is not supported. Use one of" in caplog.text
    assert "AwsGlueCatalogSyncTool, BookSyncTool, DataHubSyncTool, HiveSyncTool" in caplog.text


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("book://elsewhere", r"catalog 'book', which is mybook:BookProvider, .*\(ValueError: no page\)"),
        ("broken://here", r"catalog 'broken', which is mybook:NoClass, cannot be imported"),
    ],
)
def test_a_fault_of_an_own_catalog_is_reported_under_its_name(address: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        drawstring.catalog(address)


def test_catalogs_of_drawstring_come_before_others_with_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(InvalidError, match="AWS Glue cannot be reached"):
        drawstring.catalog("glue")


def test_datahub_opens_no_tables_by_name() -> None:
    with pytest.raises(UnsupportedError, match="DataHub opens no tables by name"):
        drawstring.catalog("DataHubSyncTool://server")
