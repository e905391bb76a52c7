"""The server of reports, asked by HTTP requests, by its command, and by a real browser."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import UnavailableError
from drawstring.cli.app import run
from drawstring.plugins.report_server import ReportPages, ReportServer
from drawstring.services.table_report import ServedTable
from drawstring.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REFRESH_SECONDS = 60


def rides(count: int, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(range(count)), "ts": [ts] * count}, SCHEMA)


def made(path: Path, name: str) -> Table:
    table = drawstring.create(
        path / name.replace("<b>", "b"), SCHEMA, name=name, record_key="id", ordering="ts"
    )
    table.upsert(rides(10))
    return table


@pytest.fixture
def tables(tmp_path: Path) -> list[Table]:
    return [made(tmp_path, "trips"), made(tmp_path, "fares <b>")]


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def server(tables: list[Table], clock: SteppingClock) -> Iterator[ReportServer]:
    served = [ServedTable(table.uri, lambda table=table: table.inspect.report().facts) for table in tables]  # type: ignore[misc]
    with ReportServer(ReportPages(served, REFRESH_SECONDS, clock), "127.0.0.1", 0) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening
        finally:
            listening.shutdown()
            thread.join()


def ask(server: ReportServer, path: str, verb: str = "GET") -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request(verb, path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


def test_the_list_links_to_the_report_of_each_table(server: ReportServer, tables: list[Table]) -> None:
    status, text, headers = ask(server, "/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' in text
    assert "fares &lt;b&gt;" in text and tables[1].uri in text
    links = re.findall(r'href="(/table/\d)"', text)
    assert links == ["/table/1", "/table/2"]
    for link, table in zip(links, tables, strict=True):
        status, text, _ = ask(server, link)
        assert status == 200 and table.uri in text and text.count("<svg") == 4


def test_facts_are_there_as_json(server: ReportServer, tables: list[Table]) -> None:
    _, text, headers = ask(server, "/tables.json?now")
    assert headers["Content-Type"] == "application/json"
    first = json.loads(text)[0]
    assert (first["name"], first["file_groups"], first["last_operation"]) == ("trips", 1, "upsert")
    _, text, _ = ask(server, "/table/2.json")
    assert json.loads(text)["commits"][0]["inserts"] == 10


def test_a_report_is_made_anew_once_it_is_old(
    server: ReportServer, tables: list[Table], clock: SteppingClock
) -> None:
    def commits() -> int:
        return len(json.loads(ask(server, "/table/1.json")[1])["commits"])

    assert commits() == 1
    tables[0].upsert(rides(3, ts=2))
    assert commits() == 1
    clock.sleep(REFRESH_SECONDS)
    assert commits() == 2


def test_a_table_that_cannot_be_read_says_so_and_the_others_are_shown(
    server: ReportServer, tables: list[Table]
) -> None:
    shutil.rmtree(tables[0].uri)
    status, text, _ = ask(server, "/")
    assert status == 200 and "fares" in text and "This is not a Hudi table" in text
    status, text, _ = ask(server, "/table/1")
    assert status == 503 and tables[0].uri in text
    assert "problem" in json.loads(ask(server, "/tables.json")[1])[0]


@pytest.mark.parametrize(
    "path", ["/table/0", "/table/3", "/table/1/", "/table/x", "/../../etc/passwd", "/table/99999999999"]
)
def test_other_addresses_are_no_pages(server: ReportServer, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_requests_read_only(server: ReportServer) -> None:
    assert ask(server, "/", "POST")[0] == 501
    status, text, headers = ask(server, "/", "HEAD")
    assert (status, text) == (200, "") and int(headers["Content-Length"]) > 100
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_port_that_is_taken_is_told(server: ReportServer) -> None:
    with pytest.raises(UnavailableError, match=r"cannot listen at 127\.0\.0\.1.*--port"):
        ReportServer(server.pages, "127.0.0.1", server.server_address[1])


def test_the_command_serves_until_it_is_interrupted(tables: list[Table]) -> None:
    command = [sys.executable, "-m", "drawstring", "serve", *(table.uri for table in tables), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert found is not None
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            connection.request("GET", "/tables.json")
            assert [each["name"] for each in json.loads(connection.getresponse().read())] == [
                "trips",
                "fares <b>",
            ]
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
        assert "ended" in process.stdout.read()
    assert process.returncode == 0


@pytest.mark.parametrize("wrong", [["--refresh", "0"], ["--port", "70000"]])
def test_wrong_arguments_are_refused(
    tables: list[Table], wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", tables[0].uri, *wrong]) == 2
    assert "--refresh" in capsys.readouterr().err


def test_what_is_no_table_is_refused_before_anything_is_served(
    tables: list[Table], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", tables[0].uri, str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed; the pages are tested by requests")
def test_a_browser_shows_the_list_and_a_report(server: ReportServer, tmp_path: Path) -> None:
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]

    def dom(path: str) -> str:
        shown = [*command, "--dump-dom", f"{server.address}{path}"]
        return subprocess.run(shown, capture_output=True, text=True, timeout=120, check=True).stdout

    assert "<h1>Tables</h1>" in dom("") and 'href="/table/2"' in dom("")
    assert dom("table/1").count("<svg") == 4
