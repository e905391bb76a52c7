"""How much was written into a folder; standard library only."""

from __future__ import annotations

from pathlib import Path


class Written:
    """The files of a folder as they were when last asked."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._seen = self._files()

    def mb(self) -> float:
        """Return the megabytes of the files that are new or changed, checksum files of Hadoop left out.

        What was written and deleted again in between is not seen.
        """
        files = self._files()
        sizes = (size for name, (size, changed) in files.items() if self._seen.get(name) != (size, changed))
        total = sum(sizes)
        self._seen = files
        return round(total / 1e6, 3)

    def _files(self) -> dict[str, tuple[int, int]]:
        found = {}
        for file in self._folder.rglob("*"):
            if file.is_file() and file.suffix != ".crc":
                stat = file.stat()
                found[str(file)] = (stat.st_size, stat.st_mtime_ns)
        return found
