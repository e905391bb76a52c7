"""Tables, scans, timelines and results show themselves in notebooks and terminals."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import drawstring
from drawstring.base.text_format import Grid
from drawstring.model.result import CommitResult
from tests.support.faults import dead_write
from tests.support.rows import SCHEMA, rides
from tests.support.tables import A, B, C, create, filled

HOSTILE = "<script>\x1b[31m"


class Cells(HTMLParser):
    """The texts of the cells of each row of an HTML table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


class Printer:
    """IPython's printer of its terminal."""

    def __init__(self) -> None:
        self.shown = ""

    def text(self, text: str) -> None:
        self.shown += text


def terminal(shown: Any) -> str:
    printer = Printer()
    shown._repr_pretty_(printer, False)
    return printer.shown


def test_a_table_shows_what_it_is() -> None:
    table = filled()
    rows = {row[0]: row[1] for row in Cells(table._repr_html_()).rows}
    assert (rows["record key"], rows["partitioned by"], rows["ordering"]) == ("id", "city", "ts")
    assert rows["columns"] == "id string, city string, ts int64, fare double"
    assert table.timeline.writes()[-1].requested in rows["last commit"]
    assert terminal(table) == str(table)
    assert str(table).splitlines()[0] == f"Table rides at {table.uri}"
    assert "\n" not in repr(table)


def test_an_empty_table_shows_that_nothing_was_committed() -> None:
    assert "last commit     none" in str(create())


def test_a_scan_shows_its_first_rows_in_a_notebook_and_its_columns_in_a_terminal() -> None:
    table = filled()
    shown = Cells(table.scan(SCHEMA.names, where="city = 'pisa'")._repr_html_()).rows
    assert shown == [["id", "city", "ts", "fare"], ["c", "pisa", "1", "3.0"]]
    assert repr(table.scan(["id", "fare"])).splitlines()[1:] == [
        "  column  type",
        "  id      string",
        "  fare    double",
    ]


def test_a_long_scan_shows_ten_rows_and_says_so() -> None:
    table = create()
    table.upsert(rides(*((f"k{number:02}", "rome", 1, 1.0) for number in range(30))))
    html = table.scan(["id"])._repr_html_()
    assert len(Cells(html).rows) == 11 and "the first 10 rows" in html


def test_a_timeline_shows_its_newest_instants() -> None:
    table = create()
    for number in range(22):
        table.upsert(rides(("a", "rome", number, 1.0)), options={"hoodie.clean.automatic": "false"})
    instants = table.timeline.instants
    shown = Cells(table.timeline._repr_html_()).rows
    assert shown[0] == ["requested", "action", "state", "completed"]
    assert [row[0] for row in shown[1:]] == [each.requested for each in instants[-20:]]
    assert repr(table.timeline) == str(table.timeline) == terminal(table.timeline)
    assert repr(table.timeline).splitlines()[-1] == f"  and {len(instants) - 20} earlier ones"


def test_a_result_shows_what_was_done() -> None:
    table = create()
    result = table.upsert(rides(A, B, C))
    rows = dict(Cells(result._repr_html_()).rows)
    assert (rows["operation"], rows["inserts"], rows["instant"]) == ("upsert", "3", result.instant)
    assert "deletes" not in rows
    assert str(result).splitlines()[0] == "CommitResult"
    assert "There was nothing to do." in str(CommitResult.nothing("upsert"))
    assert eval(repr(result), {"CommitResult": CommitResult}) == result


def test_values_are_shown_as_text() -> None:
    table = create()
    table.upsert(rides((HOSTILE, "rome", 1, 1.0)))
    assert "script" not in Cells(table.scan(["id"])._repr_html_()).tags
    assert "\x1b" not in Grid(HOSTILE, (HOSTILE,), [(HOSTILE,)], HOSTILE).text()


def test_what_a_platform_engineer_asks_for_is_shown_as_a_table(tmp_path: Path) -> None:
    table = create(path=tmp_path / "t")
    table.upsert(rides(A))
    assert str(table.services.validate()).splitlines()[0] == "The table is sound"
    assert str(table.inspect.locks()).splitlines()[-1].strip() == "Nothing is pending."
    assert "Leases are not recorded; 0 on record" in table.inspect.lease_audit()._repr_html_()
    (file,) = (tmp_path / "t" / A[1]).glob("*.parquet")
    file.unlink()
    dead = dead_write(table)
    found = Cells(drawstring.open(table.uri).services.validate()._repr_html_()).rows
    assert found[0] == ["severity", "check", "where", "instant", "what"]
    assert f"{A[1]}/{file.name}" in [row[2] for row in found]
    work = Cells(table.inspect.locks()._repr_html_()).rows[-1]
    assert dead.requested in work[0] and "Nothing is pending." not in table.inspect.locks()._repr_html_()
