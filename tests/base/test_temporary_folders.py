"""Temporary folders of killed processes go with the next process that makes one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drawstring.base import resources
from drawstring.base.resources import TemporaryFolder

DIES = {
    "lance": """
from drawstring.plugins.lance import LanceEncoder
kept = LanceEncoder(pa.BufferOutputStream(), rows.schema)
kept.write(rows)
""",
    "spill": """
from drawstring.engine.spill import SpillingTables
kept = SpillingTables(0)
kept.add(pa.Table.from_batches([rows]))
""",
}


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """A folder with temporary folders, which nobody has looked at."""
    return tmp_path


def make_old(*folders: Path) -> None:
    for folder in folders:
        os.utime(folder, (0, 0))


@pytest.mark.parametrize("purpose", DIES)
def test_a_killed_process_leaves_a_folder_that_the_next_one_deletes(purpose: str, above: Path) -> None:
    script = f"""
import os, signal
import pyarrow as pa
rows = pa.record_batch({{"id": ["a"]}})
{DIES[purpose]}
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(above)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = above.iterdir()
    assert left.name.startswith(f"drawstring-temporary-{purpose}-")
    make_old(left)
    TemporaryFolder("test", str(above)).drop()
    assert not list(above.iterdir())


def test_folders_that_are_young_in_use_or_of_others_stay(
    above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use = TemporaryFolder("spill", str(above))
    monkeypatch.setattr(resources, "_folders_checked", set())
    young, link = above / "drawstring-temporary-spill-young", above / "drawstring-temporary-link"
    others = [above / name for name in ("old-of-others", "drawstring-rides", "drawstring-spill-rides")]
    for each in (young, *others):
        each.mkdir()
    link.symlink_to(others[0])
    make_old(Path(in_use.path), *others)
    os.utime(link, (0, 0), follow_symlinks=False)
    TemporaryFolder("test", str(above)).drop()
    assert sorted(above.iterdir()) == sorted([Path(in_use.path), young, link, *others])


def test_a_folder_goes_with_its_owner(above: Path) -> None:
    folder = TemporaryFolder("test", str(above))
    Path(folder.path, "file").write_bytes(b"x")
    del folder
    assert not list(above.iterdir())
