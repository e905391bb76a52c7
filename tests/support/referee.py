"""The tests' side of `referee.py`: asks real Apache Hudi to read, write and compact tables."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-referee/bin/python"

NEWEST_JDK = 21
"""Spark 3.5 does not start on later ones."""

PROGRAM = ROOT / "tests/interop/referee.py"
NO_OPTIONS: Mapping[str, str] = {}


class RefereeError(Exception):
    """Real Hudi refused or failed; the text is its own."""


class Referee:
    """A running referee process.

    Args:
        python: interpreter of the environment that has PySpark 3.5.
        jar: Hudi's Spark bundle; further jars may follow, after commas.
        log: file that takes what the JVM prints.
        options: of every write and service, where the test gives no other value.
    """

    def __init__(self, python: str, jar: str, log: Path, options: Mapping[str, str] = NO_OPTIONS) -> None:
        self._log = log
        self._options = options
        self._scratch = tempfile.TemporaryDirectory(prefix="referee-")
        with log.open("w") as noise:
            self._process = subprocess.Popen(
                [python, str(PROGRAM), jar],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=noise,
                text=True,
                cwd=self._scratch.name,
            )
        self._count = 0
        self._answer()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._scratch.cleanup()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop Hudi during a block of code, wherever it is."""
        process = psutil.Process(self._process.pid)
        processes = [process, *process.children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.suspend()
        try:
            yield
        finally:
            for each in processes:
                with suppress(psutil.NoSuchProcess):
                    each.resume()

    def read(
        self,
        table: str,
        options: Mapping[str, str] = NO_OPTIONS,
        columns: Sequence[str] = (),
        where: str = "",
    ) -> pa.Table:
        """Return the rows that real Hudi reads, those of a condition if one is given."""
        folder = self._fresh("read")
        asked = {"options": dict(options), "columns": list(columns), "where": where}
        self._ask(do="read", table=table, to=str(folder), **asked)
        return pa.concat_tables([pq.read_table(part) for part in sorted(folder.glob("*.parquet"))])

    def write(self, table: str, rows: pa.Table, options: Mapping[str, str]) -> None:
        """Write rows to a table with real Hudi."""
        file = self._fresh("rows.parquet")
        pq.write_table(rows, file, store_schema=False)
        self._ask(do="write", table=table, rows=str(file), options={**self._options, **options})

    def stream(
        self, table: str, source: str, columns: str, checkpoint: str, options: Mapping[str, str]
    ) -> None:
        """Stream the files of a folder into a table with real Hudi, one a batch, until all are written."""
        self._ask(
            do="stream",
            table=table,
            source=source,
            columns=columns,
            checkpoint=checkpoint,
            options={**self._options, **options},
        )

    def sql(self, table: str, *statements: str, options: Mapping[str, str] = NO_OPTIONS) -> None:
        """Run statements of SQL, in which the table is `{table}`, with real Hudi."""
        given = {**self._options, **options}
        self._ask(do="sql", table=table, statements=list(statements), options=given)

    def timeline(self, table: str) -> list[tuple[str, str | None, str, str]]:
        """Return requested time, completion time, action and state of all instants."""
        return [tuple(instant) for instant in self._ask(do="timeline", table=table)["instants"]]

    def files(self, table: str) -> dict[str, dict[str, int]]:
        """Return the sizes of files by name, by partition, as Hudi reads them from the metadata table."""
        found: dict[str, dict[str, int]] = self._ask(do="files", table=table)["files"]
        return found

    def compact(self, table: str, options: Mapping[str, str] = NO_OPTIONS) -> str | None:
        """Schedule and run a compaction; return its instant, None when there was nothing to do."""
        answer = self._ask(do="compact", table=table, options={**self._options, **options})
        instant: str | None = answer["instant"]
        return instant

    def service(
        self,
        table: str,
        what: str,
        options: Mapping[str, str] = NO_OPTIONS,
        *,
        instant: str | None = None,
        run: bool = True,
    ) -> str | None:
        """Run a table service, or only plan it; return its instant, None when there was nothing to do."""
        given = {**self._options, **options}
        answer = self._ask(do="service", table=table, what=what, options=given, instant=instant, run=run)
        found: str | None = answer["instant"]
        return found

    def change_version(self, table: str, to: int, options: Mapping[str, str] = NO_OPTIONS) -> None:
        """Upgrade or downgrade a table."""
        self._ask(do="change_version", table=table, to=to, options={**self._options, **options})

    def _fresh(self, name: str) -> Path:
        self._count += 1
        return Path(self._scratch.name) / f"{self._count}-{name}"

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RefereeError("the referee ended:\n" + self._log.read_text()[-4000:])
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise RefereeError(answer["error"])
        return answer


def bundle() -> str:
    """Return the path of Hudi's Spark bundle, fetched when this machine does not have it."""
    found = _printed_by("hudi_bundle.py")
    if found is None:
        pytest.skip("Apache Hudi's bundle could not be fetched; HUDI_BUNDLE_JAR may name the file")
    return found


def lance_jars() -> str:
    """Return the paths of the jars by which Hudi reads Lance files, fetched when they are not there."""
    found = _printed_by("lance_spark.py")
    if found is None:
        pytest.skip("Lance's connector for Spark could not be fetched")
    return found


def _printed_by(script: str) -> str | None:
    """Return the last line that a script prints; None if it fails."""
    found = subprocess.run(
        [str(PYTHON), str(ROOT / "scripts" / script)], stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    )
    return None if found.returncode else found.stdout.split("\n")[-2]
