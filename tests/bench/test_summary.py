"""The short tables: each number is one of the run's, and the README has a place for them."""

from __future__ import annotations

from pathlib import Path

from bench import data, report, summary
from bench.peers import BY_NAME
from bench.results import Measured, Results

ROOT = Path(data.__file__).parents[1]


def run_of(*steps: tuple[str, str, float, float | None]) -> Results:
    return Results(
        {}, [Measured(peer, step, seconds, 500, None, used) for peer, step, seconds, used in steps]
    )


def test_seconds_of_each_peer_come_into_its_column() -> None:
    shown = summary.text(
        run_of(
            ("drawstring-spark-mor", "bulk_insert", 9.87, 17.64),
            ("drawstring-spark-mor", "point", 0.444, 0.6),
            ("drawstring-spark-cow", "upsert_1", 4.2, 7.0),
            ("hudi-cow-bloom", "upsert_1", 25.0, 40.0),
            ("hudi-mor-bucket", "bulk_insert", 41.55, None),
        ),
        data.Size(),
    )
    head, _, load, upsert, point = shown.splitlines()
    assert [cell.strip() for cell in head.split("|")][1:4] == [
        "On Spark, merge on read",
        "drawstring",
        "Hudi 1.2.0",
    ]
    assert [cell.strip() for cell in load.split("|")][2:4] == ["9.9", "41.5"]
    assert [cell.strip() for cell in upsert.split("|")][1:4] == ["the same, copy on write", "4.2", "25.0"]
    assert [cell.strip() for cell in point.split("|")][2:4] == ["0.44", ""]


def test_peers_that_did_not_run_have_no_column() -> None:
    shown = summary.text(run_of(("delta-rs", "bulk_insert", 1.2, 2.0)), data.Size(rows=2000))
    assert shown.splitlines()[0].count("|") == 3
    assert "| load 2,000 rows |      1.2 |" in shown
    assert "| peak memory, MB |      500 |" in shown


def test_only_peers_that_exist_have_columns() -> None:
    names = {name for table in summary.TABLES for both in table.columns.values() for name in both}
    assert names - {""} <= BY_NAME.keys()
    steps = {step for table in summary.TABLES for _, step, _ in table.rows}
    assert steps - {summary.PEAK} <= set(report.STEPS)


def test_the_readme_and_the_page_have_places_for_the_tables() -> None:
    readme, page = (ROOT / "README.md").read_text(), (ROOT / "docs/benchmarks.md").read_text()
    assert readme.index("<!-- comparison -->") < readme.index("<!-- end of comparison -->")
    assert page.index("<!-- results -->") < page.index("<!-- end of results -->")
