"""`drawstring report`: a page about a table: its timeline, files, partitions, and services that are due."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    named_values,
    open_table,
)

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
    made = open_table(path, storage_option).report(options=named_values(option))
    if file is not None:
        file.write_text(made.to_html(), encoding="utf-8")
    if as_json:
        output.print_json(asdict(made.facts))
        return
    if file is None:
        due = [each for each in made.facts.due if each.is_due]
        output.print_grid(("service", "why"), [(each.service, each.why) for each in due], title="due")
        output.print_line("Give --output report.html for the whole report, or --json for its facts.")
        return
    output.print_line(f"The report is in {file}.")
