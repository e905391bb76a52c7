"""Queries that take all names of files from the metadata table, and what happens if it cannot be trusted."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError, MetadataTableError
from drawstring.config.options.read_options import ReadOptions
from drawstring.metadata.file_listing import NamedFiles, named_files
from drawstring.model.files import FileStatus
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.spark.reading.dataframe import scan_at
from drawstring.storage import open_storage
from drawstring.storage.local import LocalStorage
from tests.support.golden import WITH_METADATA, Case, cases_of, unpack, wanted
from tests.support.golden_rows import in_order, rows_of

LISTED = {"hoodie.metadata.enable": "false"}
FactsOf = Callable[[str], TableFacts]


class Unlisted(LocalStorage):
    """A storage that lists nothing outside of `.hoodie`."""

    def list_files(self, folder: str) -> list[FileStatus]:
        assert folder.startswith(".hoodie")
        return super().list_files(folder)

    def list_folders(self, folder: str) -> list[str]:
        assert folder.startswith(".hoodie")
        return super().list_folders(folder)

    def list_tree(self, folder: str) -> list[FileStatus]:
        assert folder.startswith(".hoodie")
        return super().list_tree(folder)


@pytest.fixture(scope="module")
def unlisted(tmp_path_factory: pytest.TempPathFactory) -> FactsOf:
    root = tmp_path_factory.mktemp("unlisted")

    @cache
    def load(name: str) -> TableFacts:
        return load_facts(Unlisted(unpack(name, root / name)), SteppingClock(), uses_metadata=True)

    return load


@pytest.mark.parametrize(
    "case",
    [case for name in WITH_METADATA for case in cases_of(name)],
    ids=lambda case: f"{case.table} {case.name}",
)
def test_queries_return_the_same_rows_without_a_listing(case: Case, unlisted: FactsOf) -> None:
    table = case.scan(unlisted(case.table)).to_arrow()
    assert in_order(rows_of(table, case.shown(table))) == in_order(wanted(case))


@pytest.mark.parametrize("name", WITH_METADATA)
def test_it_names_the_partitions_and_files_that_are_stored(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    named = named_files(facts.storage, facts.config, facts.timeline, SteppingClock())
    assert named.partitions() == facts.view.listing.partitions()
    for partition in named.partitions():
        stored = [
            (s.path, s.size_bytes) for s in facts.view.listing.files(partition) if "_metadata" not in s.name
        ]
        assert [(s.path, s.size_bytes) for s in named.files(partition)] == stored
    assert named.files("no such partition") == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unpack("v9_mdt_cow", tmp_path)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelno == logging.WARNING]


def both_ways(root: Path) -> tuple[list[str], list[str]]:
    tables = (drawstring.open(root, options=LISTED), drawstring.open(root))
    listed, by_metadata = (in_order(rows_of(table.scan().to_arrow())) for table in tables)
    return listed, by_metadata


def test_a_healthy_one_is_used_without_a_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    listed, by_metadata = both_ways(root)
    assert listed == by_metadata
    assert warnings_of(caplog) == []


def test_files_it_does_not_name_are_not_read(root: Path) -> None:
    """So the option is what decides: a file in storage alone does not show."""
    folder = root / "p0"
    latest = max(folder.glob("*.parquet"))
    shutil.copy(latest, folder / latest.name.replace(latest.name[:8], "00000000"))
    listed, by_metadata = both_ways(root)
    assert len(listed) > len(by_metadata)


def test_a_damaged_one_is_passed_over_with_a_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    next(root.glob(".hoodie/metadata/files/*.hfile")).unlink()
    listed, by_metadata = both_ways(root)
    assert listed == by_metadata
    (warning,) = warnings_of(caplog)
    assert warning.startswith(
        "The storage is listed instead of the metadata table: The metadata table is damaged"
    )


def test_one_that_lacks_a_write_is_passed_over_with_a_warning(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    newest = max(root.glob(".hoodie/metadata/.hoodie/timeline/*_*.deltacommit"))
    newest.unlink()
    listed, by_metadata = both_ways(root)
    assert listed == by_metadata
    (warning,) = warnings_of(caplog)
    assert f"it lacks the commit {newest.name[:17]}" in warning


def test_a_pending_write_is_not_seen_though_it_is_in_the_metadata_table(root: Path) -> None:
    max(root.glob(".hoodie/timeline/*_*.commit")).unlink()
    listed, by_metadata = both_ways(root)
    assert listed == by_metadata


def test_writes_before_it_was_built_are_in_it(root: Path) -> None:
    """As of a table that was written to before: the metadata table does not have its first instant."""
    first = min(root.glob(".hoodie/timeline/*_*.commit"))
    built = min(root.glob(".hoodie/metadata/.hoodie/timeline/000*_*.deltacommit")).name
    requested = first.name.partition("_")[0]
    for path in root.glob(f".hoodie/metadata/.hoodie/timeline/{requested}*"):
        path.unlink()
    facts = load_facts(open_storage(root), SteppingClock())
    with pytest.raises(MetadataTableError, match="it lacks the commit"):
        named_files(facts.storage, facts.config, facts.timeline, SteppingClock())
    completed = built.partition("_")[2].partition(".")[0]
    first.rename(first.with_name(f"{requested}_{completed}.commit"))
    facts = load_facts(open_storage(root), SteppingClock())
    assert named_files(facts.storage, facts.config, facts.timeline, SteppingClock()).partitions() == [
        "p0",
        "p1",
        "p2",
    ]


def test_a_table_without_one_is_listed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    listed, by_metadata = both_ways(unpack("v9_cow_ops", tmp_path))
    assert listed == by_metadata
    assert warnings_of(caplog) == []


def test_only_this_option_is_taken_by_a_table(root: Path) -> None:
    with pytest.raises(InvalidError, match=r"as\.of\.instant cannot be given when a table is opened"):
        drawstring.open(root, options={"as.of.instant": "20200101000000"})
    with pytest.raises(InvalidError, match=r"hoodie\.metadata\.enable"):
        drawstring.open(root, options={"hoodie.metadata.enable": "perhaps"})


def test_writes_go_on_as_before(root: Path) -> None:
    table = drawstring.open(root)
    keys = table.scan().to_arrow().column("id").to_pylist()
    table.delete(where=f"id = {keys[0]}")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == sorted(keys[1:])


def test_spark_reads_hand_the_option_on(root: Path) -> None:
    folder = root / "p0"
    latest = max(folder.glob("*.parquet"))
    shutil.copy(latest, folder / latest.name.replace(latest.name[:8], "00000000"))
    both = (ReadOptions.parse(options) for options in (LISTED, {}))
    listed, by_metadata = (scan_at(str(root), {}, options).to_arrow().num_rows for options in both)
    assert listed > by_metadata


def metadata_findings(root: Path) -> list[tuple[str, str | None]]:
    findings = drawstring.open(root).services.validate(quick=True).findings
    return [(each.what.partition(".")[0], each.path) for each in findings if each.check == "metadata"]


@pytest.mark.parametrize("name", WITH_METADATA)
def test_validate_finds_nothing_in_those_of_real_hudi(name: str, tmp_path: Path) -> None:
    assert metadata_findings(unpack(name, tmp_path)) == []


def test_validate_finds_files_that_are_missing_or_that_no_commit_names(root: Path) -> None:
    first, latest = sorted((root / "p0").glob("*.parquet"))[::2]
    stray = latest.with_name(latest.name.replace(latest.name[:8], "00000000"))
    shutil.copy(latest, stray)
    first.unlink()
    assert metadata_findings(root) == [
        ("The metadata table has this file, which does not exist", f"p0/{first.name}")
    ]
    found = drawstring.open(root).services.validate(quick=True).findings
    assert f"p0/{stray.name}" in {each.path for each in found if each.check == "orphan"}


def test_validate_finds_a_file_that_the_metadata_table_lacks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = max((root / "p0").glob("*.parquet"))
    named = NamedFiles.files

    def without_latest(self: NamedFiles, partition: str) -> list[FileStatus]:
        return [each for each in named(self, partition) if each.name != latest.name]

    monkeypatch.setattr(NamedFiles, "files", without_latest)
    assert metadata_findings(root) == [
        ("The metadata table lacks this file: engines that read it miss rows", f"p0/{latest.name}")
    ]


def test_validate_finds_other_sizes_and_damage(root: Path) -> None:
    latest = max((root / "p0").glob("*.parquet"))
    latest.write_bytes(latest.read_bytes() + b"more")
    found = drawstring.open(root).services.validate(quick=True).findings
    assert {(each.check, each.path) for each in found} >= {("size", f"p0/{latest.name}")}
    assert metadata_findings(root) == []
    next(root.glob(".hoodie/metadata/files/*.hfile")).unlink()
    ((what, _),) = metadata_findings(root)
    assert what.startswith("The metadata table is damaged")
