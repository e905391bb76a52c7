"""Writes and services on a disk that fills up at any of their steps."""

from __future__ import annotations

from contextlib import suppress

import pytest

from drawstring.base.errors import UnavailableError
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.storage.local import data_files
from tests.support.simulation.checks import check_recovery
from tests.support.simulation.full_disks import FullDisk
from tests.support.simulation.life import KINDS
from tests.support.simulation.steps import take
from tests.support.simulation.world import Kind, Step, World

NAMES = ("v6-mor-simple", "v9-mor-bucket", "v9-cow-simple")
CHOSEN = [kind for kind in KINDS if str(kind) in NAMES]
LIFE = (
    Step("upsert", (1, 2, 3, 6)),
    Step("delete", (1, 4)),
    Step("insert_overwrite", (3, 7)),
    Step("delete_partition", city="oslo"),
    Step("plan_compaction"),
    Step("compact"),
    Step("cluster"),
    Step("upsert", (0, 5)),
    Step("clean"),
    Step("archive"),
)
WRITES = ("upsert", "delete", "insert_overwrite", "delete_partition")
BYTES = (*range(0, 4_000, 570), *range(4_000, 40_000, 4_300), *range(46_000, 160_000, 14_000))
"""What may be left on the disk when a step begins."""


def fill(world: World, step: Step, free_bytes: int) -> FullDisk:
    """Take a step on a disk with some bytes left; what it raises is that the disk is full."""
    disk = FullDisk(world.storage, free_bytes)
    try:
        take(world, step, disk)
    except UnavailableError as error:
        assert "disk is full" in str(error)
    return disk


def uncounted(world: World) -> list[str]:
    """Return the data files that no completed write made."""
    timeline = world.table().timeline
    files = [(each.path, parse_data_file(each)) for each in data_files(world.storage)]
    return [path for path, file in files if file is not None and not timeline.has_completed(file.instant)]


# pyarrow closes a writer whose file could not be written once more when it goes, and complains to nobody.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_a_full_disk_loses_nothing_and_fills_up_no_further(kind: Kind) -> None:
    world = World.create(kind)
    take(world, Step("insert", (0, 1, 2, 3, 4, 5)))
    for step in LIFE:
        after, before = world.copy(), dict(world.rows)
        take(after, step)
        for free_bytes in BYTES:
            copy = world.copy()
            disk = fill(copy, step, free_bytes)
            where = f"{kind}: {step} with {free_bytes} bytes left"
            copy.now_ms, copy.time, copy.moments = after.now_ms, after.time, list(world.moments)
            copy.settle()
            assert copy.rows in (before, after.rows), where
            if step.name in WRITES:
                assert uncounted(copy) == [], where
            check_recovery(copy, after, where)
            if not disk.refused:
                break
        else:
            raise AssertionError(f"{step} needs more than {BYTES[-1]} bytes")
        take(world, step)


@pytest.mark.parametrize("kind", CHOSEN, ids=str)
def test_what_a_killed_writer_left_goes_though_the_disk_is_full(kind: Kind) -> None:
    world = World.create(kind)
    take(world, Step("insert", (0, 1, 2, 3, 4, 5)))
    take(world, Step("die", (1, 2, 3)))
    assert world.table().timeline.pending_writes()
    disk = FullDisk(world.storage, 0)
    with suppress(UnavailableError):
        world.table(disk).services.clean()
    assert disk.free_bytes > 0 or disk.refused == 0
    assert uncounted(world) == []
    world.settle()
    check_recovery(world, world.copy(), str(kind))


def test_the_disk_counts_what_is_on_it() -> None:
    world = World.create(CHOSEN[0])
    disk = FullDisk(world.storage, 10)
    disk.put("a", b"12345678")
    with pytest.raises(UnavailableError, match="disk is full"):
        disk.put("a", b"123")
    with pytest.raises(OSError, match="space"), disk.create("b") as file:
        file.write(b"123")
    disk.put("c", b"")
    disk.delete(["a"])
    assert disk.free_bytes == 10
    assert FileStatus("c", 0).path in [each.path for each in disk.list_files("")]
