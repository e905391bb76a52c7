"""The demo on a few rows, and its comparison on rows that are wrong."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from demo import check, landing
from demo.flights import main
from demo.source import read_flights
from demo.tables import DELAYS, FLIGHTS

SHARE = 0.01


def words_for(folder: Path, batches: int) -> list[str]:
    shorter = ["--rows-share", str(SHARE), "--batches", str(batches)]
    return ["--engine", "local", *shorter, "--keep", str(folder / "demo")]


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return read_flights(SHARE)


def test_the_main_job_comes_out_right_on_the_embedded_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_for(tmp_path, batches=3)
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.count("equal, row by row") == 3
    assert "log files" in shown
    assert "All results are right" in shown


def test_the_demo_fails_when_a_table_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_short(flights: pa.Table) -> pa.Table:
        return right(flights).slice(1)

    right = check.flights_at_last
    monkeypatch.setattr(check, "flights_at_last", one_short)
    words = words_for(tmp_path, batches=2)
    assert main(words) == 1
    assert "rows too many: 1" in capsys.readouterr().out


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["--engine", "local", "--keep", str(tmp_path)]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_the_landing_zone_has_late_and_duplicate_events(tmp_path: Path, flights: pa.Table) -> None:
    staged = landing.stage(flights, tmp_path, 3)
    assert len(staged.batches) == 3
    assert pq.read_metadata(staged.schedule).num_rows == flights.num_rows
    assert sum(pq.read_metadata(file).num_rows for file in staged.batches) == staged.events
    assert staged.late > 0
    assert staged.duplicates > 0
    assert pq.read_metadata(staged.cancelled).num_rows == flights["dep_time"].null_count


def test_a_replay_of_the_landing_zone_gives_what_the_check_expects(tmp_path: Path, flights: pa.Table) -> None:
    staged = landing.stage(flights, tmp_path, 3)
    newest: dict[tuple[object, ...], dict[str, object]] = {}
    for file in (staged.schedule, *staged.batches):
        for row in pq.read_table(file).to_pylist():
            key = tuple(row[name] for name in FLIGHTS.record_key)
            if key not in newest or row["event_time"] >= newest[key]["event_time"]:
                newest[key] = row
    flown = [row for row in newest.values() if row["status"] != "scheduled"]
    replayed = pa.Table.from_pylist(flown, FLIGHTS.schema)
    assert check.difference(FLIGHTS, replayed, check.flights_at_last(flights)) is None
    assert check.difference(DELAYS, check.delays_of(replayed), check.delays_at_last(flights)) is None


def test_a_changed_cell_is_found_and_named(flights: pa.Table) -> None:
    right = check.flights_at_last(flights)
    at = right.schema.get_field_index("dep_delay")
    values = right["dep_delay"].to_pylist()
    wrong = right.set_column(at, "dep_delay", pa.array([values[0] + 1, *values[1:]], pa.int32()))
    assert "dep_delay differs, rows: 1" in (check.difference(FLIGHTS, wrong, right) or "")


def test_a_key_that_is_there_twice_is_found(flights: pa.Table) -> None:
    right = check.flights_at_last(flights)
    twice = pa.concat_tables([right, right.slice(0, 1)])
    assert "keys with several rows: 1" in (check.difference(FLIGHTS, twice, right) or "")


def test_a_null_instead_of_a_value_is_found(flights: pa.Table) -> None:
    right = check.flights_at_last(flights)
    at = right.schema.get_field_index("arr_delay")
    nulls = pc.if_else(pc.equal(right["month"], 7), pa.scalar(None, pa.int32()), right["arr_delay"])
    wrong = right.set_column(at, "arr_delay", nulls)
    assert "arr_delay differs" in (check.difference(FLIGHTS, wrong, right) or "")
