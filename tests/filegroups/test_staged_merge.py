"""Slices with log files are read in stages: the right rows, and no column is decoded in vain."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.base.resources import BATCH_ROWS
from drawstring.formats.parquet.staged import StagedFile
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.order_lines import (
    BY_COMMIT,
    CONDITIONS,
    KIND,
    LINE,
    NO_META,
    NOTE,
    ONE_BUCKET,
    ORDER,
    PRICE,
    ROWS,
    TS,
    Model,
    base_rows,
    history,
    lineitem,
    made,
    read,
)
from tests.support.seeds import scaled_steps
from tests.support.tables import MOR, WITHOUT_COMPACTION, create

pytestmark = pytest.mark.usefixtures("small_row_groups")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The columns of base files that were decoded, each with a row group."""
    seen: list[tuple[str, int]] = []
    rows = StagedFile.rows

    def noted(
        file: StagedFile, groups: Sequence[int], names: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        seen.extend((name, group) for name in names for group in groups)
        yield from rows(file, groups, names, batch_rows)

    monkeypatch.setattr(StagedFile, "rows", noted)
    return seen


@pytest.mark.scaled
@pytest.mark.parametrize("log_format", ["avro", "parquet"])
@pytest.mark.parametrize("properties", [{}, BY_COMMIT, NO_META], ids=["by event", "by commit", "no meta"])
def test_rows_are_those_of_a_dictionary(
    properties: dict[str, str], log_format: str, limit: SetLimits
) -> None:
    for seed in range(scaled_steps(3)):
        limit(text_keys_rows_max=seed % 2 * 1000)
        model = Model(made(**properties), by_commit=properties == BY_COMMIT, log_format=log_format)
        table = model.table
        history(model, random.Random(seed))
        assert any(each.logs for each in table.inspect.files())
        assert read(table) == model.matching()
        assert len(read(table, [KIND])) == len(model.matching())
        for where, is_match in CONDITIONS.items():
            assert read(table, where=where) == model.matching(is_match), (seed, where)
            notes = sorted((row[5],) for row in model.matching(is_match))
            assert read(table, [NOTE], where) == notes, (seed, where)


def test_a_log_record_hides_a_base_row_that_alone_matches() -> None:
    table = made()
    table.upsert(lineitem([(1, 1, 5, "a", 10.0, "old"), (2, 1, 5, "a", 10.0, "kept")]))
    table.upsert(lineitem([(1, 1, 6, "b", 99.0, "new")]), options=WITHOUT_COMPACTION)
    assert read(table, [NOTE], "kind = 'a'") == [("kept",)]
    assert read(table, [NOTE], "kind = 'b'") == [("new",)]


def test_a_late_log_record_that_alone_matches_stays_hidden() -> None:
    table = made()
    table.upsert(lineitem([(1, 1, 5, "a", 10.0, "old"), (2, 1, 5, "a", 10.0, "kept")]))
    table.upsert(lineitem([(1, 1, 4, "b", 99.0, "late")]), options=WITHOUT_COMPACTION)
    assert read(table, [NOTE], "kind = 'b'") == []
    assert read(table, [NOTE], "kind = 'a'") == [("kept",), ("old",)]


def test_a_condition_is_not_evaluated_on_rows_that_a_log_record_hides() -> None:
    """A sum overflows on the base row alone, which is no row of the table any more."""
    table = made()
    largest = 2**63 - 1
    table.upsert(lineitem([(1, 1, largest, "a", 1.0, "old"), (2, 1, 5, "a", 1.0, "kept")]))
    where = "ts + 1 > 5"
    with pytest.raises(InvalidError):
        read(table, [NOTE], where)
    table.delete(lineitem([(1, 1, largest, "a", 1.0, "")]), options=WITHOUT_COMPACTION)
    assert read(table, [NOTE], where) == [("kept",)]


def test_row_groups_that_cannot_match_are_not_decoded(decoded: list[tuple[str, int]]) -> None:
    table = made()
    table.upsert(lineitem(base_rows()))
    table.upsert(lineitem([(5, 1, 6, "a", 1.0, "new")]), options=WITHOUT_COMPACTION)
    decoded.clear()
    assert len(read(table, [NOTE], "order_id = 70")) == 3
    assert len({group for _, group in decoded}) == 1
    assert len({group for _, group in decoded_of(table, decoded, None)}) > 3


def decoded_of(
    table: Table, decoded: list[tuple[str, int]], where: str | None, columns: Sequence[str] = (PRICE,)
) -> set[tuple[str, int]]:
    decoded.clear()
    read(table, columns, where)
    return set(decoded)


def test_other_columns_are_decoded_where_rows_match(decoded: list[tuple[str, int]]) -> None:
    table = made()
    rows = base_rows()
    table.upsert(lineitem([row if row[0] != 40 else (*row[:4], 500.5, row[5]) for row in rows]))
    table.upsert(lineitem([(5, 1, 6, "a", 1.0, "new")]), options=WITHOUT_COMPACTION)
    seen = decoded_of(table, decoded, "price > 50 and price < 50.5", [NOTE])
    assert {name for name, _ in seen} == {PRICE}, "no price has a fraction"
    seen = decoded_of(table, decoded, "price > 50 and price < 51 or price > 500", [NOTE])
    assert NOTE in {name for name, _ in seen}


def test_ordering_values_are_decoded_where_a_base_row_may_win(decoded: list[tuple[str, int]]) -> None:
    table = made()
    table.upsert(lineitem(base_rows(ts=5)))
    table.upsert(lineitem([(5, 1, 5, "a", 1.0, "a tie goes to the newer")]), options=WITHOUT_COMPACTION)
    assert TS not in {name for name, _ in decoded_of(table, decoded, None)}
    assert ("a tie goes to the newer",) in read(table, [NOTE])
    table.upsert(lineitem([(6, 1, 4, "a", 1.0, "late")]), options=WITHOUT_COMPACTION)
    assert TS in {name for name, _ in decoded_of(table, decoded, None)}
    assert ("late",) not in read(table, [NOTE])


def test_keys_are_decoded_where_keys_of_the_logs_fall(decoded: list[tuple[str, int]]) -> None:
    schema = pa.schema([("id", pa.string()), (TS, pa.int64()), (NOTE, pa.string())])
    how = {"record_key": ["id"], "partition_by": [], "ordering": [TS]}
    table = create(schema, table_type=MOR, properties=ONE_BUCKET, **how)
    ids = [f"id-{number:05}" for number in range(600)]
    table.bulk_insert(pa.table([ids, [1] * 600, [f"note of {each}" for each in ids]], schema=schema))
    table.upsert(pa.table([["id-00599"], [2], ["new"]], schema=schema), options=WITHOUT_COMPACTION)
    decoded.clear()
    assert len(read(table, [NOTE])) == 600
    groups = {group for _, group in decoded}
    assert len(groups) > 2
    assert {group for name, group in decoded if name == "_hoodie_record_key"} == {max(groups)}


def test_integer_keys_are_compared_without_their_texts(
    decoded: list[tuple[str, int]], limit: SetLimits
) -> None:
    limit(text_keys_rows_max=0)
    table = made()
    table.upsert(lineitem(base_rows()))
    table.upsert(
        lineitem([(5, 1, 6, "a", 1.0, "new"), (-5, 1, 6, "a", 1.0, "new")]), options=WITHOUT_COMPACTION
    )
    names = {name for name, _ in decoded_of(table, decoded, None)}
    assert names == {ORDER, LINE, PRICE}
    assert len(read(table)) == 241


def test_rows_of_large_row_groups_are_not_held(limit: SetLimits) -> None:
    limit(staged_bytes_max=0)
    table = made()
    model = Model(table)
    history(model, random.Random(9))
    for where, is_match in CONDITIONS.items():
        assert read(table, where=where) == model.matching(is_match), where


def test_columns_that_the_base_file_lacks_are_null_in_conditions() -> None:
    table = made()
    table.upsert(lineitem([(1, 1, 5, "a", 10.0, "old"), (2, 1, 5, "a", 10.0, "kept")]))
    wide = ROWS.append(pa.field("more", pa.int64()))
    rows = [{**lineitem([(1, 1, 6, "a", 10.0, "new")]).to_pylist()[0], "more": 7}]
    table.upsert(pa.Table.from_pylist(rows, wide), options=WITHOUT_COMPACTION)
    assert table.scan(columns=[NOTE], where="more is null").to_arrow().to_pylist() == [{NOTE: "kept"}]
    assert table.scan(columns=[NOTE], where="more = 7").to_arrow().to_pylist() == [{NOTE: "new"}]
    assert sorted(map(str, table.scan(columns=["more"]).to_arrow()["more"].to_pylist())) == ["7", "None"]
