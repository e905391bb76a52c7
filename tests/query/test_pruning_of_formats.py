"""What queries leave out of ORC and Lance files: stripes by statistics, files by their keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import orc

from drawstring.formats.data_file import Selection, read_base
from drawstring.formats.file_format import format_of
from drawstring.plugins.orc import reader as orc_read
from drawstring.storage import open_storage
from drawstring.table import Table
from tests.support.rows import held, rides
from tests.support.sorted_tables import sorted_table
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create

BASE_FORMAT = "hoodie.table.base.file.format"
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
STRIPE_ROWS, STRIPES = 1_024, 20
DAY = date(1969, 12, 1)


def stored() -> pa.Table:
    """Return rows whose values grow, but for some nulls; those of one stripe are all null."""
    numbers = range(STRIPE_ROWS * STRIPES)
    gone = range(5 * STRIPE_ROWS, 6 * STRIPE_ROWS)
    columns = {
        "number": [None if at % 7 == 0 or at in gone else at - 9_000 for at in numbers],
        "text": [None if at in gone else f"{'é' if at > 10_000 else 'e'}{at:06}" for at in numbers],
        "day": [DAY + timedelta(days=at // 200) for at in numbers],
        "share": [at / 3 for at in numbers],
    }
    types = [("number", pa.int64()), ("text", pa.string()), ("day", pa.date32()), ("share", pa.float64())]
    return pa.table(columns, schema=pa.schema(types))


@pytest.fixture(scope="module", params=["uncompressed", "zlib", "snappy", "zstd"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(tmp_path_factory.mktemp("orc") / "a.orc")
    # A stripe ends when its writer has compressed some of it.
    noise = pa.array([random.Random(at).randbytes(256) for at in range(STRIPE_ROWS * STRIPES)])
    how = {"stripe_size": 1, "batch_size": STRIPE_ROWS, "compression": request.param}
    orc.write_table(stored().append_column("noise", noise), path, **how)
    assert orc.ORCFile(path).nstripes == STRIPES
    return path


@contextmanager
def rows_decoded() -> Iterator[list[int]]:
    """Note the numbers of rows in the batches of ORC files that are decoded."""
    decoded: list[int] = []

    def batches(*given: Any) -> Iterator[pa.RecordBatch]:
        for batch in original(*given):
            decoded.append(batch.num_rows)
            yield batch

    original = orc_read._batches
    with patch.object(orc_read, "_batches", batches):
        yield decoded


def found(path: Path, where: pc.Expression, **how: Any) -> tuple[pa.Table, int]:
    """Return the rows that a condition finds, and how many stripes are read for it."""
    selection = Selection(stored().schema.names, where, **how)
    with rows_decoded() as decoded:
        batches = list(read_base(open_storage(path.parent), path.name, selection))
    assert sum(decoded) % STRIPE_ROWS == 0
    return pa.Table.from_batches(batches, stored().schema), sum(decoded) // STRIPE_ROWS


NUMBER, TEXT = pc.field("number"), pc.field("text")


@pytest.mark.parametrize(
    ("where", "stripes"),
    [
        (NUMBER == 0, 1),
        (NUMBER < -8_000, 1),
        ((NUMBER > 11_000) & (pc.field("share") > 6_700), 1),
        (TEXT == "e000100", 1),
        (TEXT > "é", 11),
        ((TEXT == "e000001") | (NUMBER == 11_000), 2),
        (pc.field("day") == date(1970, 1, 1), 1),
        (TEXT.is_null(), 1),
        (TEXT.is_valid(), STRIPES - 1),
        (NUMBER > 1_000_000, 0),
        (pc.field("share") < 0, STRIPES),
        (pc.field("missing") == 1, STRIPES),
    ],
    ids=str,
)
def test_stripes_that_cannot_match_are_not_read(file: Path, where: pc.Expression, stripes: int) -> None:
    rows, read = found(file, where)
    present = "missing" not in str(where)
    assert rows.equals(stored().filter(where) if present else stored().slice(0, 0))
    assert read == stripes


def test_any_condition_finds_what_a_filter_of_all_rows_finds(file: Path) -> None:
    everything = stored()
    for seed in range(12):
        picked = random.Random(seed)
        parts = []
        for name in picked.sample(["number", "text", "day", "share"], picked.randint(1, 3)):
            column, value = pc.field(name), picked.choice(everything.column(name).drop_null())
            parts.append(picked.choice([column == value, column < value, column >= value, column.is_null()]))
        where = reduce(picked.choice([and_, or_]), parts)
        assert found(file, where)[0].equals(everything.filter(where)), (seed, where)


def test_statistics_of_a_column_with_another_value_in_the_table_do_not_count(file: Path) -> None:
    rows, read = found(file, NUMBER == 1_000_000, constants={"number": pa.scalar(1_000_000)})
    assert (rows.num_rows, read) == (STRIPES * STRIPE_ROWS, STRIPES)


def test_times_of_chosen_stripes_are_in_their_own_zones(tmp_path: Path) -> None:
    numbers = list(range(STRIPE_ROWS * 3))
    times = pa.array([at * 10**6 for at in numbers], pa.timestamp("us"))
    path = tmp_path / "a.orc"
    table = pa.table({"number": numbers, "at": times})
    orc.write_table(table, path, stripe_size=1, batch_size=STRIPE_ROWS, compression="uncompressed")
    content = path.read_bytes()
    assert content.count(b"\x1a\x03GMT") == 3
    place = content.rindex(b"\x1a\x03GMT")
    path.write_bytes(content[:place] + b"\x1a\x03CET" + content[place + 5 :])
    types = pa.schema([("number", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    for first, hours in ((STRIPE_ROWS, 0), (2 * STRIPE_ROWS, 1)):
        selection = Selection(["number", "at"], pc.equal(NUMBER, first), types)
        (batch,) = (each for each in read_base(open_storage(tmp_path), "a.orc", selection) if len(each))
        (at,) = batch.column("at").to_pylist()
        assert at.timestamp() == first - 3_600 * hours


@contextmanager
def files_read() -> Iterator[list[str]]:
    """Note the formats of ORC and Lance files of which rows are read."""
    read: list[str] = []
    with ExitStack() as stack:
        for extension in (".orc", ".lance"):
            file_format = format_of(extension)
            assert file_format is not None

            def noting(*given: Any, extension: str = extension, rows: Any = file_format.rows) -> Any:
                read.append(extension)
                return rows(*given)

            stack.enter_context(patch.object(file_format, "rows", noting))
        yield read


def keys_of(table: Table, where: str) -> tuple[str, int]:
    """Return the keys that a query finds, and how many files it reads rows of."""
    with files_read() as read:
        rows = held(table, where=where)
    return "".join(sorted(row[0] for row in rows)), len(read)


@pytest.mark.parametrize("ending", ["orc", "lance"])
def test_files_without_the_keys_are_not_read(ending: str) -> None:
    table = sorted_table(properties={**BUCKET, BASE_FORMAT: ending})
    for ts, keys in enumerate(("acegik", "mo", "qs")):
        table.insert(rides(*((key, "rome", ts, 1.0) for key in keys)), options=WITHOUT_SERVICES)
    table.delete(rides(("a", "rome", 9, 0.0), ("c", "rome", 9, 0.0)), options=WITHOUT_SERVICES)
    assert keys_of(table, "fare > 0") == ("egikmoqs", 4)
    assert keys_of(table, "id = 'o'") == ("o", 1)
    assert keys_of(table, "id = 'b'") == ("", 0)
    assert keys_of(table, "id IN ('a', 'q')") == ("q", 3)
    assert keys_of(table, "_hoodie_record_key >= 'l'") == ("moqs", 2)
    assert keys_of(table, "_hoodie_record_key BETWEEN 'd' AND 'f'") == ("e", 1)
    assert keys_of(table, "_hoodie_record_key > 'x'") == ("", 0)
    with rows_decoded() as decoded:
        assert keys_of(table, "id >= 'l'")[0] == "moqs"
    assert sum(decoded) == (6 if ending == "orc" else 0), "two log files, and deletes, which have no id"


@pytest.mark.parametrize("ending", ["orc", "lance"])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_look_up_reads_the_file_group_with_the_key(ending: str, table_type: str) -> None:
    properties = {BASE_FORMAT: ending, "hoodie.table.keygenerator.type": "SIMPLE"}
    table = create(table_type=table_type, version=9, properties=properties)
    options = {**WITHOUT_SERVICES, "hoodie.parquet.small.file.limit": "0", "hoodie.metadata.enable": "false"}
    for ts, keys in enumerate(("ace", "bdf", "xyz")):
        table.insert(rides(*((key, "rome", ts, 1.0) for key in keys)), options=options)
    assert keys_of(table, "fare > 0") == ("abcdefxyz", 3)
    assert keys_of(table, "id = 'd'") == ("d", 1)
    assert keys_of(table, "_hoodie_record_key > 'w'") == ("xyz", 1)
