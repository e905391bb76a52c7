"""Power cuts during every step of a table on local files; `make sim` tries more of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from drawstring.config.options.write_options import options_of
from drawstring.formats.metadata.archive import ArchivedInstantRow
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from drawstring.timeline.archive.lsm import LsmTimeline, LsmTimelineWriter
from tests.support.combinations import others_long
from tests.support.faults import stride
from tests.support.faulty_storage import FaultyStorage
from tests.support.simulation.life import CHOSEN, KINDS
from tests.support.simulation.power_cut_lives import CUT_LIFE, QUICK, Effort, Lost, live_through_cuts
from tests.support.simulation.power_cuts import CUTS, FOLDER, Call, Cut, Disk, Recorder, random_cuts
from tests.support.simulation.steps import STEPS
from tests.support.simulation.world import Kind, Step, World

SHORT = (
    Step("insert", (0, 1, 2, 3, 4, 5)),
    Step("upsert", (0, 1, 2)),
    Step("upsert", (3, 4, 5)),
    Step("upsert", (0, 1, 2)),
    Step("archive"),
    Step("upsert", (0, 1, 2, 3)),
    Step("upsert", (0, 4, 5)),
    Step("archive"),
)
MANY = Effort(seeds=2, cuts=25)
EARLY_ARCHIVING = replace(KINDS[-2], uses_metadata=False)
"""With a metadata table nothing is archived before that is compacted."""

ARCHIVING = Effort(seeds=16, cuts=100, first=7)
"""From where on instants are archived, whose files have to go in an order."""


class WithoutSync(Recorder):
    """Storage of a table that was opened with `drawstring.storage.sync=false`."""

    def __init__(self, root: str) -> None:
        super().__init__(root, sync=False)


class WithoutFolders(Recorder):
    """Flushes files, and no names."""

    def flush_folder(self, path: str) -> None:
        pass


class WithoutDataFolders(Recorder):
    """Flushes names, but not those of data files."""

    def flush_folder(self, path: str) -> None:
        if ".hoodie" in path:
            super().flush_folder(path)


class WithoutFiles(Recorder):
    """Flushes names, and what no file holds."""

    def _note(self, call: Call, path: str, **about: object) -> None:
        if call is not Call.FLUSH_FILE:
            super()._note(call, path, **about)


class WithoutCompletedFiles(Recorder):
    """Acknowledges commits whose completed file is not flushed."""

    def _note(self, call: Call, path: str, **about: object) -> None:
        if call is not Call.FLUSH_FILE or "commit" not in path:
            super()._note(call, path, **about)


class WithoutDeletions(Recorder):
    """Flushes new names, and goes on deleting where a deletion should be flushed first."""

    def flush_folder(self, path: str) -> None:
        own = [each for each in self.events if each.folder == path and each.call is Call.NAMES]
        own = [each for each in own if not each.names[0][0].endswith(".tmp")]
        if not own or not own[-1].is_deletion:
            super().flush_folder(path)


def test_the_life_has_every_step() -> None:
    assert {step.name for step in CUT_LIFE} == {*STEPS, "change_version"}


@pytest.mark.scaled
@pytest.mark.parametrize("kind", others_long(CHOSEN, CHOSEN[-1:]), ids=str)
def test_a_power_cut_takes_nothing_back_that_was_acknowledged(kind: Kind, tmp_path: Path) -> None:
    effort = QUICK if stride() == 1 else replace(QUICK, cuts=1)
    assert live_through_cuts(kind, CUT_LIFE, tmp_path, effort) > effort.cuts * len(CUT_LIFE) * 2 / 3


OLD, NEW = KINDS[0], KINDS[-2]
WITHOUT_A_FLUSH = [
    (kind, recorder)
    for kind in (OLD, NEW)
    for recorder in (WithoutSync, WithoutFolders, WithoutDataFolders, WithoutFiles, WithoutCompletedFiles)
]
FOUND_SOON = [
    (NEW, WithoutSync),
    (OLD, WithoutFolders),
    (NEW, WithoutDataFolders),
    (NEW, WithoutFiles),
    (OLD, WithoutCompletedFiles),
]


@pytest.mark.parametrize(
    ("kind", "recorder"),
    others_long(WITHOUT_A_FLUSH, FOUND_SOON),
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_the_model_finds_what_is_lost_without_a_flush(
    kind: Kind, recorder: Callable[[str], Recorder], tmp_path: Path
) -> None:
    with pytest.raises(Lost):
        live_through_cuts(kind, SHORT, tmp_path, MANY, recorder)


def test_the_model_finds_what_is_lost_where_deletions_lack_an_order(tmp_path: Path) -> None:
    with pytest.raises(Lost):
        live_through_cuts(EARLY_ARCHIVING, SHORT, tmp_path, ARCHIVING, WithoutDeletions)


def test_a_power_cut_leaves_no_manifest_without_its_files(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "table"))
    storage = LocalStorage(tmp_path / "table", files=recorder)
    row = ArchivedInstantRow("20240101000000000", "20240101000000001", "commit", b"", None)
    LsmTimelineWriter(storage, "history", options_of("upsert", {}).archiving).write([row], lambda: None)
    disk, copy, read = Disk(recorder.root), tmp_path / "copy", []
    for number, event in enumerate(recorder.events):
        disk.play(event)
        for cut in random_cuts(number, 20):
            disk.write(disk.after(cut), copy)
            read.append([each for rows in LsmTimeline(LocalStorage(copy), "history").rows() for each in rows])
    assert [] in read
    assert [row] in read
    assert all(rows in ([], [row]) for rows in read)


def _left(recorder: Recorder, cut: Cut) -> dict[str, bytes | None]:
    disk = Disk(recorder.root)
    for event in recorder.events:
        disk.play(event)
    there = disk.after(cut)
    return {Path(path).name: None if number == FOLDER else data for path, (number, data) in there.items()}


def test_the_model_loses_names_and_bytes_until_they_are_flushed(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), sync=False)
    storage = LocalStorage(tmp_path, files=recorder)
    storage.put("a/one", b"1234")
    everything, nothing, empty, half = CUTS[:4]
    assert _left(recorder, everything) == {"a": None, "one": b"1234"}
    assert _left(recorder, empty) == {"a": None, "one": b""}
    assert _left(recorder, half) == {"a": None, "one": b"12"}
    recorder.sync = True
    storage.put("a/two", b"56")
    assert _left(recorder, empty) == {"a": None, "one": b"", "two": b"56"}
    storage.sync(["a"])
    assert _left(recorder, nothing) == {}
    storage.sync([""])
    assert _left(recorder, nothing) == {"a": None, "one": b"", "two": b"56"}


def test_the_model_brings_back_what_was_deleted_until_that_is_flushed(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    storage = LocalStorage(tmp_path, files=recorder)
    for name in ("one", "two"):
        storage.put(name, b"1")
    storage.sync([""])
    storage.delete(["one"])
    storage.put("three", b"3")
    assert set(_left(recorder, Cut("deletions alone", 0, 1))) == {"two"}
    assert set(_left(recorder, Cut("new names alone", 1, 0))) == {"one", "two", "three"}
    storage.sync([""])
    assert set(_left(recorder, CUTS[1])) == {"two", "three"}


def recorded(kind: str, root: Path) -> tuple[World, Table, Recorder]:
    """Create a table whose calls of the file system are noted."""
    files = Recorder(str(root))
    storage = FaultyStorage(LocalStorage(root, files=files), 1 << 60)
    world = World.create(next(each for each in KINDS if str(each) == kind), storage.spec.uri)
    return world, world.table(storage), files


@pytest.mark.parametrize("version", [6, 9])
def test_a_commit_is_flushed_before_the_metadata_table_is_compacted(version: int, tmp_path: Path) -> None:
    """Otherwise a power cut could take the commit back, and the new base file would list its files."""
    world, table, files = recorded(f"v{version}-cow-simple", tmp_path / "table")
    for key in range(4):
        world.write(table, "upsert", (key,), **{"hoodie.metadata.compact.max.delta.commits": "2"})
    timeline = f"{files.root}/{table.config.timeline_folder}"
    completed, flushed, compactions = -1, -1, 0
    for at, event in enumerate(files.events):
        names = [path.rpartition("/")[2] for path, number in event.names if number is not None]
        if event.folder == timeline:
            flushed = at if event.call is Call.FLUSH_FOLDER else flushed
            completed = at if any(name.endswith(".commit") for name in names) else completed
        elif any(name.endswith(".compaction.requested") for name in names):
            compactions += 1
            assert completed < flushed
    assert compactions


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_is_flushed_in_the_metadata_table_before_files_of_it(
    version: int, tmp_path: Path
) -> None:
    """It runs again at its instant after a power cut, and a file of the first run must not count then."""
    world, table, files = recorded(f"v{version}-mor-bucket", tmp_path / "table")
    world.write(table, "upsert", (0, 1))
    world.write(table, "upsert", (0, 1))
    before = len(files.events)
    assert table.services.compact(options=dict(world.kind.options))
    listed = f"{files.root}/.hoodie/metadata/files"
    begun, flushed, written = -1, -1, 0
    for at, event in enumerate(files.events[before:]):
        names = [path.rpartition("/")[2] for path, number in event.names if number is not None]
        if f"{files.root}/.hoodie/metadata/.hoodie" in event.folder:
            flushed = at if event.call is Call.FLUSH_FOLDER else flushed
            begun = at if any(name.endswith(".deltacommit.inflight") for name in names) else begun
        elif event.folder == listed and any(".log." in name for name in names):
            written += 1
            assert begun < flushed
    assert written
