"""Large base files are patched: the right rows in their order, what does not change copied as it is."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.filegroups.merge_handle import MergeHandle
from drawstring.filegroups.row_group_patch import Patch
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY
from drawstring.formats.parquet import ParquetSink, RowGroups
from drawstring.formats.parquet.footer import chunk_source, path_of, start_of
from drawstring.schema.fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, IS_DELETED_COLUMN, RECORD_KEY
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.limits import SetLimits
from tests.support.tables import COW, create

GROUP_ROWS = 50
KEY, TS, KIND = "id", "ts", "kind"
SCHEMA = pa.schema(
    [
        (KEY, pa.int64()),
        (TS, pa.int64()),
        (KIND, pa.string()),
        ("note", pa.string()),
        ("fare", pa.float64()),
        ("tax", pa.decimal128(12, 2)),
        ("is_paid", pa.bool_()),
        ("stops", pa.list_(pa.int64())),
        ("driver", pa.struct([("age", pa.int64()), ("who", pa.string())])),
        (IS_DELETED_COLUMN, pa.bool_()),
    ]
)
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch, limit: SetLimits) -> None:
    def small(*args: Any, **how: Any) -> ParquetSink:
        return ParquetSink(*args, **(how | {"row_groups": RowGroups(GROUP_ROWS)}))

    monkeypatch.setattr("drawstring.formats.data_file.ParquetSink", small)
    limit(patched_values_min=1, growing_group_rows_max=4)


@pytest.fixture
def patches(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each file that was patched, whether there is a successor."""
    seen: list[bool] = []
    write = Patch.write

    def noted(patch: Patch, context: Any) -> Any:
        stat = write(patch, context)
        seen.append(stat is not None)
        return stat

    monkeypatch.setattr(Patch, "write", noted)
    return seen


def row(number: int, ts: int, *, seed: int = 0, gone: bool = False) -> Row:
    draw = random.Random(f"{number} {seed}")
    values = (
        number,
        ts,
        draw.choice(["a", "b", None]),
        f"note {draw.randrange(1 << 30)}",
        draw.choice([0.0, -0.0, 1.5, None]),
        Decimal(draw.randrange(10_000)).scaleb(-2),
        draw.choice([True, False, None]),
        [number] * draw.randrange(3),
        draw.choice([None, {"age": seed, "who": None}, {"age": None, "who": "x"}]),
        gone,
    )
    return dict(zip(SCHEMA.names, values, strict=True))


def batch(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def made(rows: list[Row], **properties: str) -> Table:
    table = create(
        SCHEMA, table_type=COW, record_key=KEY, partition_by=[], ordering=[TS], properties=properties
    )
    table.bulk_insert(batch(rows))
    return table


def stored(table: Table) -> tuple[str, bytes]:
    """Return path and bytes of the only base file."""
    (each,) = table.inspect.files()
    assert each.base is not None
    path = each.base.status.path
    return path, context_of(table).storage.read(path)


def content(table: Table) -> list[Row]:
    """Return the rows as they are in the file."""
    return pq.read_table(pa.BufferReader(stored(table)[1])).to_pylist()


def chunks(table: Table) -> list[dict[str, bytes]]:
    """Return the bytes of the column chunks by column, of each row group."""
    path, data = stored(table)
    source = chunk_source(context_of(table).storage, path)
    assert source is not None
    sizes = pq.ParquetFile(pa.BufferReader(data)).metadata
    groups = []
    for number, group in enumerate(source.row_groups):
        sized = [sizes.row_group(number).column(at).total_compressed_size for at in range(sizes.num_columns)]
        places = {path_of(each).decode(): start_of(each) for each in group[1][1][1]}
        groups.append(
            {
                name: data[start : start + size]
                for (name, start), size in zip(places.items(), sized, strict=True)
            }
        )
    return groups


def test_an_update_stays_in_place_and_only_its_columns_are_written_anew(patches: list[bool]) -> None:
    table = made([row(number, 1) for number in range(120)])
    before, keys = chunks(table), [each[KEY] for each in content(table)]
    changed = row(70, 1) | {TS: 2, "note": "another"}
    result = table.upsert(batch([changed]))
    after = chunks(table)
    assert (result.updates, patches) == (1, [True])
    assert [each[KEY] for each in content(table)] == keys
    assert content(table)[70]["note"] == "another"
    differing = [
        {name for name in own if own[name] != new[name]} for own, new in zip(before, after, strict=True)
    ]
    assert differing[0] == differing[2] == {FILE_NAME}
    assert differing[1] == {FILE_NAME, COMMIT_TIME, COMMIT_SEQNO, TS, "note"}


def test_negative_zero_takes_the_place_of_zero(patches: list[bool]) -> None:
    table = made([row(number, 1) | {"fare": 0.0} for number in range(60)])
    table.upsert(batch([row(5, 1) | {"fare": -0.0}]))
    assert (str(content(table)[5]["fare"]), patches) == ("-0.0", [True])


def test_late_changes_write_no_file(patches: list[bool]) -> None:
    table = made([row(number, 5) for number in range(60)])
    before = stored(table)
    table.upsert(batch([row(5, 1, seed=1)]))
    assert (stored(table), patches) == (before, [False])


def test_of_rows_with_the_same_key_one_is_left() -> None:
    table = made([row(number, 1) for number in (*range(60), 3, 55)])
    table.upsert(batch([row(3, 2), row(55, 2), row(100, 2)]))
    keys = [each[KEY] for each in content(table)]
    assert sorted(keys) == [*range(60), 100]


def test_the_key_summary_covers_old_and_new_keys() -> None:
    table = made([row(number, 1) for number in range(100, 200)])
    table.upsert(batch([row(150, 2), *(row(number, 2) for number in (1, 99, 300, 999))]))
    entries = pq.read_metadata(pa.BufferReader(stored(table)[1])).metadata
    texts = {key.decode(): text.decode() for key, text in entries.items()}
    keys = pa.array([each[RECORD_KEY] for each in content(table)])
    assert len(keys) == 104
    assert BloomFilter.decode(texts[FILTER], texts[FILTER_TYPE]).contains(keys).all()
    assert (texts[SMALLEST_KEY], texts[LARGEST_KEY]) == ("1", "999")


def test_many_small_inserts_make_few_row_groups() -> None:
    table = made([row(number, 1) for number in range(200)])
    for number in range(25):
        table.upsert(batch([row(1000 + number, 1)]))
    assert len(content(table)) == 225
    assert len(chunks(table)) <= 8


def test_a_file_with_a_new_column_is_written_as_a_whole(patches: list[bool]) -> None:
    table = made([row(number, 1) for number in range(60)])
    table.upsert(batch([row(1, 2)]).append_column("more", pa.array([7])))
    assert patches == []
    assert sum(each["more"] == 7 for each in content(table)) == 1


def test_row_groups_without_the_keys_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    applied = MergeHandle.applied

    def noted(handle: MergeHandle, rows: pa.RecordBatch) -> Any:
        seen.append(rows.num_rows)
        return applied(handle, rows)

    table = made([row(number, 1) for number in range(1000, 1000 + 4 * GROUP_ROWS)])
    monkeypatch.setattr(MergeHandle, "applied", noted)
    table.upsert(batch([row(1010, 2)]))
    assert seen == [GROUP_ROWS]


@pytest.mark.parametrize("seed", range(4))
def test_histories_leave_what_a_dictionary_has(seed: int, patches: list[bool]) -> None:
    draw = random.Random(seed)
    bloom = {"hoodie.parquet.bloom.filter.enabled": "false"} if seed % 2 else {}
    expected = {number: row(number, 1, seed=seed) for number in range(170)}
    table = made(list(expected.values()))
    for ts in range(2, 8):
        changes = {}
        for number in draw.sample(range(260), draw.choice([1, 5, 60])):
            gone = draw.random() < draw.choice([0, 0.3])
            changes[number] = row(number, draw.choice([ts, ts, 0]), seed=seed + ts, gone=gone)
        table.upsert(batch(list(changes.values())), options=bloom)
        for number, change in changes.items():
            if number in expected and expected[number][TS] > change[TS]:
                continue
            expected.pop(number, None)
            if not change[IS_DELETED_COLUMN]:
                expected[number] = change
        found = sorted(table.scan().to_arrow().select(SCHEMA.names).to_pylist(), key=lambda each: each[KEY])
        assert repr(found) == repr([expected[number] for number in sorted(expected)])
    assert any(patches)
