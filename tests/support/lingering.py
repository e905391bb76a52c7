"""Tasks that go on when the driver of their write is dead: they wait at a file until a test lets them go.

    before   before the marker of the file
    marked   behind the marker, before the file
    dies     the same, and dies as soon as the file is there, before it looks whether its write is over

Each process ends when it is through with that file. What they do is told in files of a folder that all see.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from drawstring.base.errors import ConflictError
from drawstring.filegroups.write.markers import Markers

_SECONDS = 120


def install(folder: Path, is_task: Callable[[], bool] = lambda: True) -> None:
    """Let the first tasks that begin a file wait, each in its way.

    Args:
        folder: where it is told what they do.
        is_task: whether the caller is a task.
    """
    create, confirm = Markers.create, Markers.confirm
    kinds = (folder / "kinds").read_text().split()
    ours: dict[str, int] = {}

    def create_and_wait(markers: Markers, path: str, io_type: str) -> None:
        number = _taken(folder, len(kinds)) if is_task() else None
        if number is None:
            create(markers, path, io_type)
            return
        ours[path] = number
        if kinds[number] != "before":
            create(markers, path, io_type)
        (folder / f"waits{number}").touch()
        until((folder / "go").exists)
        if kinds[number] == "before":
            create(markers, path, io_type)

    def confirm_and_tell(markers: Markers, path: str, io_type: str, **how: Any) -> None:
        number = ours.get(path)
        if number is None:
            confirm(markers, path, io_type, **how)
            return
        what = "died"
        if kinds[number] != "dies":
            try:
                confirm(markers, path, io_type, **how)
                what = "stays"
            except ConflictError:
                what = "refused"
        _tell(folder, number, what)
        os._exit(9)  # it would go on with its other files

    Markers.create = create_and_wait  # type: ignore[method-assign]
    Markers.confirm = confirm_and_tell  # type: ignore[assignment]


def _taken(folder: Path, count: int) -> int | None:
    """Take the next place of a task that waits, if there is one."""
    for number in range(count):
        try:
            os.close(os.open(folder / f"taken{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
    return None


def _tell(folder: Path, number: int, what: str) -> None:
    (folder / f"told{number}").write_text(what)
    (folder / f"told{number}").rename(folder / f"ended{number}")


def until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


class Lingering:
    """What tasks wait for, and where they tell what became of it.

    Args:
        folder: an empty folder that all processes see.
        kinds: how the first tasks that begin a file wait.
    """

    def __init__(self, folder: Path, kinds: Sequence[str]) -> None:
        self.folder = folder
        self._numbers = range(len(kinds))
        (folder / "kinds").write_text(" ".join(kinds))

    def until_they_wait(self) -> None:
        until(lambda: all((self.folder / f"waits{each}").exists() for each in self._numbers))

    def let_go(self) -> list[str]:
        """Let the tasks go on; return what became of each in the end."""
        (self.folder / "go").touch()
        until(lambda: all((self.folder / f"ended{each}").exists() for each in self._numbers))
        return [(self.folder / f"ended{each}").read_text() for each in self._numbers]
