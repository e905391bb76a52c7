"""Run scripts in one session, which `set_up` makes: `python run_scripts.py FOLDER ANSWERS SCRIPT...`."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path

from set_up import spark

FAILED = "failed"


def text_of(value):
    """Return a value as text; PySpark's releases have different types for binaries."""
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)


def run(script, folder):
    """Run a script in a database of its own; return what it showed, and the error that ended it."""
    answers = []

    def answer(name, rows):
        found = rows if isinstance(rows, list) else rows.collect()
        answers.append([name, sorted([text_of(value) for value in row] for row in found)])

    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    spark.sql(f"CREATE DATABASE of_{script.stem} LOCATION '{folder}/{script.stem}'")
    spark.sql(f"USE of_{script.stem}")
    try:
        module.main(spark, f"{folder}/{script.stem}", answer)
    except Exception:
        answers.append([FAILED, [[traceback.format_exc()[:6000]]]])
    spark.sql("USE default")
    for table in spark.catalog.listTables():
        if table.isTemporary:  # its name would hide a table of the next script
            spark.catalog.dropTempView(table.name)
    return answers


if __name__ == "__main__":
    FOLDER, ANSWERS, *SCRIPTS = sys.argv[1:]
    found = {}
    for each in map(Path, SCRIPTS):
        found[each.stem] = run(each, FOLDER)
        Path(ANSWERS).write_text(json.dumps(found))
