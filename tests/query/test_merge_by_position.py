"""Queries that find the rows which log files change by position, and those that go by keys instead."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.record_positions import encode_bitmap
from drawstring.table import Table
from tests.support.engines import ENGINES, start_engine
from tests.support.positions import check_positions, relabel
from tests.support.rows import WIDE, arrow_rows, held, rides, scanned
from tests.support.seeds import SHORT_AND_LONG, scaled_steps
from tests.support.tables import MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create

USE = "hoodie.merge.use.record.positions"
INSTANT = HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS
SIMPLE = {"hoodie.index.type": "SIMPLE"}
LOGGED = WITHOUT_SERVICES | NEW_FILE_GROUPS


def positions(*numbers: int) -> dict[HeaderKey, str]:
    return {HeaderKey.RECORD_POSITIONS: encode_bitmap(np.array(numbers))}


def logged(path: Path, *changed: tuple[Any, ...], ordering: Any = "ts") -> Table:
    """Return a table with four rows in a base file and one block of changes."""
    table = create(path=path, table_type=MOR, properties=SIMPLE, ordering=ordering)
    table.insert(rides(*((key, "rome", 5, float(number)) for number, key in enumerate("abcd"))))
    table.upsert(rides(*changed), options=LOGGED)
    return table


def by(path: Path, *, position: bool) -> Table:
    return drawstring.open(path, options={USE: str(position).lower()})


@pytest.mark.parametrize("ordering", ["ts", ()], ids=["event", "commit"])
@pytest.mark.parametrize("where", [None, "fare >= 0"])
def test_no_key_is_compared_where_positions_are_known(tmp_path: Path, ordering: Any, where: Any) -> None:
    logged(tmp_path, ("c", "rome", 6, 9.0), ordering=ordering)
    relabel(tmp_path / "rome", positions(0))  # a wrong one shows by what rows are found
    others = [("b", "rome", 5, 1.0), ("c", "rome", 6, 9.0), ("d", "rome", 5, 3.0)]
    assert held(by(tmp_path, position=True), where=where) == sorted([("c", "rome", 5, 2.0), *others])
    assert held(by(tmp_path, position=False), where=where) == [("a", "rome", 5, 0.0), *others]
    assert held(drawstring.open(tmp_path), where=where) == held(by(tmp_path, position=True), where=where)


def test_a_late_record_loses_against_the_row_at_its_position(tmp_path: Path) -> None:
    logged(tmp_path, ("c", "rome", 4, 9.0), ("d", "rome", 6, 8.0))
    expected = [("a", "rome", 5, 0.0), ("b", "rome", 5, 1.0), ("c", "rome", 5, 2.0), ("d", "rome", 6, 8.0)]
    for position in (True, False):
        assert held(by(tmp_path, position=position)) == expected
        assert held(by(tmp_path, position=position), where="fare > 1.5") == expected[2:]


@pytest.mark.parametrize(
    "header",
    [
        positions(0, 1) | {INSTANT: "20200101000000000"},
        positions(0, 1) | {INSTANT: ""},
        positions(0),
        positions(0, 1, 2),
        positions(1, 4),
    ],
    ids=["another base file", "no base file", "too few", "too many", "beyond the end"],
)
def test_keys_are_compared_where_positions_do_not_fit(tmp_path: Path, header: dict[HeaderKey, str]) -> None:
    logged(tmp_path, ("c", "rome", 6, 9.0), ("d", "rome", 6, 8.0))
    relabel(tmp_path / "rome", header)
    expected = [("a", "rome", 5, 0.0), ("b", "rome", 5, 1.0), ("c", "rome", 6, 9.0), ("d", "rome", 6, 8.0)]
    assert held(by(tmp_path, position=True)) == expected


def test_keys_are_compared_if_one_log_file_has_no_positions(tmp_path: Path) -> None:
    table = logged(tmp_path, ("c", "rome", 6, 9.0))
    relabel(tmp_path / "rome", positions(0))
    table.upsert(rides(("d", "rome", 6, 8.0)), options=LOGGED | {"hoodie.write.record.positions": "false"})
    assert held(by(tmp_path, position=True)) == held(by(tmp_path, position=False))


def test_keys_are_compared_if_two_log_files_have_a_key_at_different_positions(tmp_path: Path) -> None:
    table = logged(tmp_path, ("c", "rome", 6, 9.0))
    relabel(tmp_path / "rome", positions(0))
    table.upsert(rides(("c", "rome", 7, 8.0)), options=LOGGED)
    assert held(by(tmp_path, position=True)) == held(by(tmp_path, position=False))


def test_damaged_positions_are_reported_unless_keys_are_compared(tmp_path: Path) -> None:
    logged(tmp_path, ("c", "rome", 6, 9.0))
    relabel(tmp_path / "rome", {HeaderKey.RECORD_POSITIONS: "AAAA"})
    with pytest.raises(CorruptTableError, match="positions of a log block are damaged") as caught:
        by(tmp_path, position=True).scan().to_arrow()
    assert ".log." in str(caught.value)
    assert len(by(tmp_path, position=False).scan().to_arrow()) == 4


def test_a_compaction_compares_keys(tmp_path: Path) -> None:
    table = logged(tmp_path, ("c", "rome", 6, 9.0))
    relabel(tmp_path / "rome", positions(0))
    before = held(by(tmp_path, position=False))
    assert table.services.compact()
    assert held(by(tmp_path, position=True)) == before


def _change(table: Table, dice: random.Random, model: dict[str, tuple[Any, ...]], ordered: bool) -> None:
    """Carry out an operation drawn by lot, on the table and on a dictionary."""
    known = sorted(model)
    keys = dice.sample(known, min(len(known), dice.randint(1, 6)))
    kind = dice.choice(["upsert"] * 4 + ["delete", "merge", "new", "compact", "plan"])
    if kind == "upsert":
        rows = [(key, "rome", dice.randint(0, 12), str(dice.random())) for key in keys]
        table.upsert(arrow_rows(WIDE, *rows), options=LOGGED)
        model |= {row[0]: row for row in rows if not ordered or row[2] >= model[row[0]][2]}
    elif kind == "delete" and len(known) > 10:
        table.delete(pa.table({"id": keys, "city": ["rome"] * len(keys)}), options=LOGGED)
        for key in keys:
            del model[key]
    elif kind == "merge":
        source = arrow_rows(WIDE, *((key, "rome", 0, f"merged {dice.random()}") for key in keys))
        options = LOGGED | {"hoodie.spark.sql.merge.into.partial.updates": "true"}
        merge = table.merge(source, "target.id = source.id and target.city = source.city", options=options)
        merge.when_matched_update({"note": "source.note"}).when_not_matched_insert_all().execute()
        notes = dict(zip(keys, source.column("note").to_pylist(), strict=True))
        model |= {key: (*model[key][:3], notes[key]) for key in keys}
    elif kind == "new":
        rows = [(f"n{dice.random()}", "rome", 5, "new") for _ in range(3)]
        table.upsert(arrow_rows(WIDE, *rows), options=LOGGED)
        model |= {row[0]: row for row in rows}
    elif kind == "compact":
        table.services.compact()
    elif kind == "plan":
        table.services.schedule_compaction()


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize("ordering", ["ts", ()], ids=["event", "commit"])
def test_a_random_history_is_the_same_by_positions_and_by_keys(
    tmp_path: Path, seed: int, version: int, ordering: Any
) -> None:
    _check_history(tmp_path, "local", seed, version, ordering, scaled_steps(24))


@pytest.mark.parametrize("engine", [each for each in ENGINES if each != "local"])
def test_a_random_history_on_spark_is_the_same_by_positions_and_by_keys(tmp_path: Path, engine: str) -> None:
    _check_history(tmp_path, engine, 5, 9, "ts", 5)


def _check_history(path: Path, engine: str, seed: int, version: int, ordering: Any, steps: int) -> None:
    dice = random.Random(f"{seed} {version} {ordering}")
    started, _ = start_engine(engine)
    index = {"hoodie.index.type": dice.choice(["SIMPLE", "BLOOM"])}
    create(WIDE, path, table_type=MOR, version=version, ordering=ordering, properties=index)
    table = drawstring.open(path, engine=started)
    model = {f"k{number:02}": (f"k{number:02}", "rome", 5, "first") for number in range(30)}
    table.insert(arrow_rows(WIDE, *dice.sample(sorted(model.values()), len(model))))
    for _ in range(steps):
        _change(table, dice, model, bool(ordering))
        expected = sorted(model.values())
        for position in ("true", "false"):
            opened = drawstring.open(path, engine=started, options={USE: position})
            assert scanned(opened, WIDE.names) == expected
            late = scanned(opened, WIDE.names, where="ts > 5")
            assert late == [row for row in expected if row[2] > 5]
    assert any(each.base is not None for each in check_positions(table))
