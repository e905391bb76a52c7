"""A call that makes no sense, or a table that contradicts itself, ends in one of the six errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError
from tests.support.golden import unpack

Use = Callable[[Any], object]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for name in ("v9_mor_avro", "v6_mor_avro", "v6_mor_soft_delete"):
        unpack(name, folder)
    return folder


@pytest.fixture(scope="module")
def table(lake: Path) -> drawstring.Table:
    return drawstring.open(lake / "v9_mor_avro")


WRONG: dict[str, Use] = {
    "a number as column": lambda t: t.scan([1]),
    "nothing as column": lambda t: t.scan([None]),
    "a list as column": lambda t: t.scan([["id"]]),
    "a number as columns": lambda t: t.scan(5),
    "holes None": lambda t: t.incremental(holes=None),
    "holes 1": lambda t: t.changes(holes=1),
    "max_commits text": lambda t: t.follow(max_commits="1"),
    "max_commits 0": lambda t: t.follow(max_commits=0),
    "max_bytes -1": lambda t: t.follow(max_bytes=-1),
    "poll_seconds -1": lambda t: t.follow(poll_seconds=-1),
    "poll_seconds text": lambda t: t.follow(poll_seconds="1"),
    "on_cleaned None": lambda t: t.follow(on_cleaned=None),
    "follow an unknown column": lambda t: t.follow("latest", columns=["typo"]),
    "follow half a condition": lambda t: t.follow("latest", where="id ="),
    "follow no position": lambda t: t.follow("{}"),
    "an address with NUL": lambda t: drawstring.open("/tmp/\0"),
    "an address of bytes": lambda t: drawstring.open(b"/tmp"),  # type: ignore[arg-type]
    "an address that is a number": lambda t: drawstring.open(5),  # type: ignore[arg-type]
    "storage options in a list": lambda t: drawstring.open(t.uri, storage_options=["a"]),
    "options as text": lambda t: drawstring.open(t.uri, options="a"),
    "a number as engine": lambda t: drawstring.open(t.uri, engine=5),
    "a number as record key": lambda t: drawstring.create("memory://x", t.schema, record_key=5),
    "no table type": lambda t: drawstring.create("memory://x", t.schema, table_type=None),
    "a number as name": lambda t: drawstring.create("memory://x", t.schema, name=5),
    "a number as key of an option": lambda t: t.upsert(t.scan().to_arrow(), options={1: 2}),
    "a number as name of a hold": lambda t: t.holds.add(5),
    "a number as name of an index": lambda t: t.indexes.create(5),
    "a number as name of a stream": lambda t: t.stream(5),
    "an empty name of a stream": lambda t: t.stream(" "),
    "the last x instants": lambda t: t.inspect.instants(last="x"),
    "the last -1 instants": lambda t: t.inspect.instants(last=-1),
    "a restore to no instant": lambda t: t.savepoints.restore(None),
    "no address of a catalog": lambda t: drawstring.catalog(None),  # type: ignore[arg-type]
    "a number as listener": lambda t: drawstring.add_listener(5),  # type: ignore[arg-type]
    "a number as source": lambda t: drawstring.ingest("/none", 5),  # type: ignore[arg-type]
    "a text as transformers": lambda t: drawstring.ingest("/none", "csv", transformers="x y"),
    "a number as transformer": lambda t: drawstring.ingest("/none", "sql", transformers=[5]),  # type: ignore[list-item]
    "options of an ingestion in a list": lambda t: drawstring.ingest("/none", "csv", options=["a"]),  # type: ignore[arg-type]
    "progress that is no function": lambda t: drawstring.ingest("/none", "csv", on_progress=5),  # type: ignore[arg-type]
    "x retries": lambda t: drawstring.ingest("/none", "csv", retries="x"),  # type: ignore[arg-type]
    "a merger without a name": lambda t: drawstring.register_merger(5, max),  # type: ignore[arg-type]
    "parentheses without end": lambda t: t.scan(where="(" * 3000 + "id = 1" + ")" * 3000),
    "two thousand nots": lambda t: t.scan(where="not " * 2000 + "id = 1"),
    "a number without end": lambda t: t.scan(where="id > " + "9" * 90),
    "a sum beyond 38 digits": lambda t: t.scan(where="id + 1" + "0" * 38 + " > 1"),
}


@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_refused_at_once_in_one_line(use: Use, table: drawstring.Table) -> None:
    with pytest.raises(InvalidError) as caught:
        use(table)
    assert "\n" not in caught.value.message


def test_a_condition_of_a_thousand_alternatives_is_answered(table: drawstring.Table) -> None:
    ids = set(table.scan(["id"]).to_arrow().column("id").to_pylist())
    where = " or ".join(f"id = {number}" for number in range(3, 1003))
    found = table.scan(["id"], where=where).to_arrow().column("id").to_pylist()
    assert set(found) == {number for number in ids if number >= 3}
    where = " and ".join(f"id <> {number}" for number in range(3, 1003))
    found = table.scan(["id"], where=where).to_arrow().column("id").to_pylist()
    assert set(found) == {number for number in ids if number < 3}


def test_a_number_beyond_64_bits_compares(table: drawstring.Table) -> None:
    rows = table.scan().to_arrow().num_rows
    assert table.scan(where="id < 9223372036854775808").to_arrow().num_rows == rows
    assert table.scan(where="id > 9223372036854775808").to_arrow().num_rows == 0


@pytest.mark.parametrize("name", ["v9_mor_avro", "v6_mor_avro"])
def test_an_ordering_column_that_the_table_lacks_decides_nothing(
    name: str, lake: Path, tmp_path: Path
) -> None:
    """Releases of Hudi before 0.14 noted `ts` in tables that have no such column."""
    root = Path(shutil.copytree(lake / name, tmp_path / name))
    properties = root / ".hoodie/hoodie.properties"
    changed = [
        line.partition("=")[0] + "=nope"
        if line.startswith(("hoodie.table.ordering.fields", "hoodie.table.precombine.field"))
        else line
        for line in properties.read_text().splitlines()
    ]
    assert any(line.endswith("=nope") for line in changed)
    properties.write_text("\n".join(changed) + "\n")

    table = drawstring.open(root)
    expected = drawstring.open(lake / name).scan().to_arrow()
    found = table.scan().to_arrow()
    assert sorted(found.column("id").to_pylist()) == sorted(expected.column("id").to_pylist())
    assert table.changes("earliest").to_arrow().num_rows


def test_a_folder_outside_the_table_is_a_damaged_property(lake: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(lake / "v9_mor_avro", tmp_path / "t"))
    properties = root / ".hoodie/hoodie.properties"
    properties.write_text(
        properties.read_text().replace("hoodie.timeline.path=timeline", "hoodie.timeline.path=../../x")
    )

    with pytest.raises(CorruptTableError, match=r"hoodie.timeline.path is '../../x'") as caught:
        drawstring.open(root).scan()
    assert caught.value.message.lower().count("restore") == 1


def test_the_package_runs_as_a_program(lake: Path) -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "drawstring",
            "inspect",
            "files",
            str(lake / "v9_mor_avro"),
            "--partition",
            "x",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "There is no partition 'x'. Use one of 'p" in " ".join(said.stderr.split())


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ("id > '2024-01-01'", "string '2024-01-01' does not fit a column of type int"),
        ("id in ('x')", "string 'x'"),
        ("price = 'much'", "string 'much' does not fit a column of type double"),
        ("id > DATE '2024-01-01'", "type int32 with one of type date32"),
    ],
)
def test_a_number_is_not_compared_with_what_is_none(where: str, kinds: str, table: drawstring.Table) -> None:
    with pytest.raises(InvalidError, match=kinds):
        table.scan(where=where)


def test_a_number_in_quotes_is_a_number(table: drawstring.Table) -> None:
    known = table.scan(["id"]).to_arrow().column("id")[0].as_py()
    assert table.scan(["id"], where=f"id = '{known}'").to_arrow().column("id").to_pylist() == [known]
