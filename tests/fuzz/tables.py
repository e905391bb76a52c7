"""Whole tables, one file of which is damaged: every query gives rows or an error that names the file."""

from __future__ import annotations

from pathlib import Path
from random import Random

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError
from drawstring.query.incremental import RangeSpec, incremental_scan
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import load_facts
from drawstring.storage import open_storage
from tests.fuzz.damage import damaged
from tests.support.golden import unpack

NAMES = (
    "v9_evo_add_mor",
    "v6_mor_avro",
    "v9_mor_parquet_log",
    "v6_mor_rollback",
    "v9_mor_log_compaction",
    "v9_cow_clustered",
    "v8_mor_compaction_pending",
    "v6_mor_soft_delete",
)


class DamagedTables:
    """Golden tables to damage.

    Args:
        folder: where to unpack them.
    """

    def __init__(self, folder: Path) -> None:
        self._files: list[tuple[Path, Path]] = []
        for name in NAMES:
            root = unpack(name, folder / name)
            self._files += [
                (root, path)
                for path in sorted(root.rglob("*"))
                if path.is_file() and path.suffix != ".crc" and "/.hoodie/metadata/" not in str(path)
            ]

    def query_one(self, rng: Random) -> None:
        """Damage a file, query its table, and mend it."""
        root, path = rng.choice(self._files)
        sound = path.read_bytes()
        path.write_bytes(damaged(sound, rng))
        try:
            _query(root)
        except CorruptTableError as error:
            if error.path is None:
                raise AssertionError(f"{path} is damaged, and the error names no file: {error}") from error
            raise
        finally:
            path.write_bytes(sound)


def _query(root: Path) -> None:
    facts = load_facts(open_storage(root), SteppingClock())
    snapshot_scan(facts, threads=1).to_arrow()
    incremental_scan(facts, RangeSpec("earliest"), threads=1).to_arrow()
