"""The report about a table: facts that are checked against what was done, and a page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.cli.app import run
from drawstring.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<script>document.title='broken'</script>"
NO_SERVICES = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = drawstring.create(
        tmp_path / "t",
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
    )
    made.upsert(rides(10, "oslo"), options=NO_SERVICES)
    made.upsert(rides(4, HOSTILE), options=NO_SERVICES)
    for number in range(5):
        made.upsert(rides(3, "oslo", ts=number + 2), options=NO_SERVICES)
    return made


def rides(count: int, city: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(range(count)), "city": [city] * count, "ts": [ts] * count}, SCHEMA)


def test_facts_are_what_was_done(table: Table) -> None:
    facts = table.inspect.report().facts
    assert [(each.inserts, each.updates) for each in facts.commits] == [(10, 0), (4, 0)] + [(0, 3)] * 5
    assert all(each.seconds is not None and each.seconds >= 0 for each in facts.commits)
    slices = table.inspect.files()
    assert sum(each.base_bytes + each.log_bytes for each in facts.slices) == sum(x.size_bytes for x in slices)
    assert sorted(each.logs for each in facts.slices) == [0, 5]
    assert {each.path for each in facts.partitions} == {each.partition for each in slices}
    assert [each.small_files for each in facts.partitions] == [1, 1]
    assert facts.rows_rewritten == 1.0
    assert facts.read_amplification is not None and facts.read_amplification > 1
    assert facts.write_amplification == 1.0


def test_services_that_are_due_say_why_and_no_longer_once_they_ran(table: Table) -> None:
    due = {each.service: each for each in table.inspect.report().facts.due}
    assert due["compaction"].is_due
    assert due["compaction"].why == "7 delta commits since the last one, due at 5; 5 log files"
    assert not due["clean"].is_due and not due["clustering"].is_due
    planned = str(table.services.schedule_compaction())
    (pending,) = [each for each in table.inspect.report().facts.due if "not completed" in each.why]
    assert planned in pending.why
    table.services.compact()
    after = table.inspect.report().facts
    assert not any(each.is_due for each in after.due if each.service == "compaction")
    assert after.commits[-1].is_service and after.write_amplification is not None
    assert after.write_amplification > 1 and after.read_amplification == 1.0


def test_the_command_writes_the_page_and_the_facts(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    assert run(["inspect", "report", table.uri, "-o", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    facts = json.loads(json.dumps(asdict(table.inspect.report().facts)))
    assert told.keys() == facts.keys()
    for name in ("commits", "slices", "due", "read_amplification"):
        assert told[name] == facts[name]
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run(["inspect", "report", table.uri]) == 0
    assert "compaction" in capsys.readouterr().out


class Page(HTMLParser):
    """What a page has, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_alone_and_shows_names_as_text(table: Table) -> None:
    text = table.inspect.report().to_html()
    page = Page(text)
    assert page.tags.count("svg") == 4 and page.tags.count("rect") > 2 * 7
    assert page.loaded == [] and "script" not in page.tags
    assert "&lt;script&gt;" in text


def test_a_table_without_commits_has_a_report(tmp_path: Path) -> None:
    empty = drawstring.create(tmp_path / "e", SCHEMA, record_key="id").inspect.report()
    assert empty.facts.commits == () and "nothing yet" in empty.to_html()


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed; the page is tested as text only")
def test_a_browser_shows_the_page(table: Table, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(table.inspect.report().to_html(), encoding="utf-8")
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    address = (tmp_path / "report.html").as_uri()
    dom = subprocess.run(
        [*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    title = re.search("<title>(.*?)</title>", dom)
    assert title is not None and title[1].startswith("t: report of")
    assert dom.count("<rect") > 14 and "<script" not in dom
    picture = tmp_path / "report.png"
    subprocess.run(
        [*command, "--window-size=1000,1600", f"--screenshot={picture}", address],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert picture.stat().st_size > 20_000, "a page that shows nothing is smaller"
