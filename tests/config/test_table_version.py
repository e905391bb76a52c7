"""A table version is one entry of rules: nothing else has to know that it exists."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.table_config import table_config
from drawstring.filegroups.view.slicing import slicer_of
from drawstring.formats.metadata import commit
from drawstring.formats.metadata import commit as metadata
from drawstring.model.table_version import (
    LAYOUTS,
    VERSION_RULES,
    WRITABLE_VERSIONS,
    ArchiveFormat,
    CommitEncoding,
    LogFileAssignment,
    VersionRules,
    writable_rules,
)
from drawstring.timeline import migration as relayout
from drawstring.timeline.archive import reader as archived
from drawstring.timeline.archive import writer as archive_writer

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())])
NEXT = 11


@pytest.mark.parametrize("number", VERSION_RULES)
def test_rules_are_found_by_their_number(number: int) -> None:
    assert VERSION_RULES[number].number == number
    assert VERSION_RULES[number].layout in LAYOUTS


def test_no_two_versions_that_are_written_have_the_same_rules() -> None:
    def told(rules: VersionRules) -> list[Any]:
        return [getattr(rules, each.name) for each in fields(rules) if each.name != "number"]

    found = [told(VERSION_RULES[number]) for number in WRITABLE_VERSIONS]
    assert [each for each in found if found.count(each) > 1] == []


def test_layouts_are_told_apart_by_their_folder() -> None:
    assert len({each.folder("timeline") for each in LAYOUTS}) == len(LAYOUTS)


@pytest.mark.parametrize("version", [0, 1, 2, 5, 7, 11, True])
def test_other_versions_are_not_written(version: int) -> None:
    assert writable_rules(version) is None


@pytest.mark.parametrize(
    ("functions", "kinds"),
    [
        (metadata._ENCODERS, CommitEncoding),
        (commit._CONVERTERS, CommitEncoding),
        (archived._ARCHIVES, ArchiveFormat),
        (archive_writer._PREPARING, ArchiveFormat),
        (relayout._ARCHIVERS, ArchiveFormat),
    ],
)
def test_a_room_has_a_function_for_each_kind(functions: Mapping[Enum, object], kinds: Iterable[Enum]) -> None:
    assert functions.keys() == set(kinds)


def test_files_are_sliced_in_each_way_there_is() -> None:
    assert len({slicer_of(each) for each in LogFileAssignment}) == len(LogFileAssignment)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("like", WRITABLE_VERSIONS)
def test_a_version_that_is_added_is_created_written_and_read(
    monkeypatch: pytest.MonkeyPatch, like: int, table_type: str
) -> None:
    """Version 11 is one more entry, with the rules of another one here."""
    monkeypatch.setitem(VERSION_RULES, NEXT, replace(VERSION_RULES[like], number=NEXT))  # type: ignore[arg-type]
    table = drawstring.create(
        f"memory://{uuid.uuid4()}",
        SCHEMA,
        record_key="id",
        ordering="ts",
        version=NEXT,
        table_type=table_type,
    )
    table.upsert(pa.table({"id": ["a", "b"], "ts": [1, 1], "fare": [1.0, 2.0]}, SCHEMA))
    table.upsert(pa.table({"id": ["b"], "ts": [2], "fare": [3.0]}, SCHEMA))
    found = drawstring.open(table.uri)
    assert found.config.version == NEXT
    assert found.config.rules == table_config(found.config.properties).rules
    rows = found.scan(columns=["id", "fare"]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["fare"]) for row in rows] == [("a", 1.0), ("b", 3.0)]
    if table_type == "MERGE_ON_READ":
        assert found.services.compact() is not None
        assert drawstring.open(table.uri).scan().to_arrow().num_rows == 2
