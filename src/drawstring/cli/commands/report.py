"""Write and serve pages about tables: `drawstring inspect report` and `drawstring serve`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    named_values,
    open_table,
)
from drawstring.services.table_report import ServedTable, report_server

OutputFile = Annotated[
    Path | None, Parameter(name=("--output", "-o"), help="The HTML file to write; it stands alone.")
]


def report(
    path: TablePath,
    *,
    file: OutputFile = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Write a page about a table, with its timeline, files, partitions and the services that are due."""
    made = open_table(path, storage_option).inspect.report(options=named_values(option))
    if file is not None:
        file.write_text(made.to_html(), encoding="utf-8")
    if as_json:
        output.print_json(asdict(made.facts))
        return
    if file is None:
        due = [each for each in made.facts.due if each.is_due]
        if due:
            output.print_grid(("service", "why"), [(each.service, each.why) for each in due], title="due")
        else:
            output.print_line("no service is due")
        output.print_line("Give --output report.html for the whole report, or --json for its facts.")
        return
    output.print_line(f"The report is in {file}.")


def serve(
    path: TablePath,
    /,
    *more: str,
    host: Annotated[str, Parameter(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen at; 0 for a free one.")] = 8450,
    refresh: Annotated[int, Parameter(help="Seconds after which a page loads again.")] = 30,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Serve the reports of several tables to a browser, until it is interrupted; the pages refresh."""
    if refresh < 1 or not 0 <= port <= 65535:
        raise InvalidError("Give --refresh as seconds of at least 1, and --port as a number from 0 to 65535.")
    given = named_values(option)

    def served(root: str) -> ServedTable:
        table = open_table(root, storage_option)
        return ServedTable(table.uri, lambda: table.inspect.report(options=given).facts)

    with report_server([served(root) for root in (path, *more)], refresh, host, port) as server:
        output.print_line(f"The tables are at {server.address}. Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.print_line("The server has ended.")
