"""Damaged archives: instants, or an error that names the file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from drawstring.base.errors import CorruptTableError, DrawstringError
from drawstring.model.instant import Instant
from drawstring.storage import open_storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.properties import load_config
from tests.support.golden import unpack

FLIPS = 150


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[[str], Path]:
    def unpacked(name: str) -> Path:
        root = unpack(name, tmp_path)
        return root / load_config(open_storage(root)).history_folder

    return unpacked


def archived(folder: Path) -> list[Instant]:
    root = next(
        parent for parent in folder.parents if parent.name != ".hoodie" and (parent / ".hoodie").exists()
    )
    storage = open_storage(root)
    archive = open_archive(storage, load_config(storage))
    found = archive.completed("000")
    for instant in found:
        if instant.is_write:
            archive.commit_metadata(instant)
    return found


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("v6_cow_archived", ".commits_*"),
        ("v9_mor_archived", "*_1.parquet"),
        ("v9_mor_archived", "manifest_4"),
    ],
)
def test_flipped_bytes_end_in_instants_or_an_error_of_ours(
    name: str, pattern: str, folder_of: Callable[[str], Path]
) -> None:
    folder = folder_of(name)
    path = sorted(folder.glob(pattern))[0]
    whole = path.read_bytes()
    chance = random.Random(1)
    for _ in range(FLIPS):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :])
        try:
            archived(folder)
        except DrawstringError as error:
            assert error.path is not None or error.instant is not None


def test_a_torn_archive_of_version_6_counts_only_while_archives_are_merged(
    folder_of: Callable[[str], Path],
) -> None:
    folder = folder_of("v6_cow_archived")
    whole = archived(folder)
    path = sorted(folder.glob(".commits_*"))[-1]
    merged = folder / ".commits_.archive.9_1-0-1"
    merged.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptTableError, match=r"archive\.9"):
        archived(folder)
    (folder / "mergeArchivePlan").write_bytes(b"")
    assert archived(folder) == whole


def test_files_that_an_upgrade_by_hudi_named_by_their_last_instant_first_are_found(
    folder_of: Callable[[str], Path],
) -> None:
    folder = folder_of("v9_mor_archived")
    before = archived(folder)
    manifest = folder / f"manifest_{(folder / '_version_').read_text()}"
    for file in json.loads(manifest.read_text())["files"]:
        first, last, level = file["fileName"].split("_")
        turned = f"{last}_{first}_{level}"
        (folder / file["fileName"]).rename(folder / turned)
        manifest.write_text(manifest.read_text().replace(file["fileName"], turned))
    assert archived(folder) == before != []
    root = folder.parents[2]
    end = before[0].completed
    assert open_archive(open_storage(root), load_config(open_storage(root))).completed("000", end)
