"""Real Apache Hudi reads tables whose rows drawstring changed, merged and dropped, and goes on."""

from __future__ import annotations

from pathlib import Path

from tests.support.histories import Case, History, Row, row, table_of, write
from tests.support.interop import all_cases_8_long, assert_both_read, hudi_writes
from tests.support.referee import Referee
from tests.support.tables import WITHOUT_COMPACTION


@all_cases_8_long
def test_hudi_reads_what_was_changed_and_goes_on(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    table, rows = history.table, history.model.rows
    options = {**case.write_options, **WITHOUT_COMPACTION}

    table.update("city = 'lima' and fare > 10", {"fare": "fare + 1000"}, options=options)
    for number, each in list(rows.items()):
        if each["city"] == "lima" and each["fare"] > 10:
            rows[number] = {**each, "fare": each["fare"] + 1000}
    table.delete(where="id in ('r007', 'r050')", options=options)
    del rows["r007"], rows["r050"]
    assert_both_read(referee, history)

    _merge(history, [row(number, 600) for number in (0, 4, 8, 70, 71)])
    assert_both_read(referee, history)

    table.delete_partition("new *")
    history.model.rows = {key: each for key, each in rows.items() if each["city"] != "new york"}
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 700) for number in (0, 2, 70, 5)])
    assert_both_read(referee, history)
    if case.is_mor:
        table.services.compact()  # comes to nothing where Hudi's own write has compacted
        assert_both_read(referee, history)


def _merge(history: History, source: list[Row]) -> None:
    builder = history.table.merge(
        table_of(source), options={**history.case.write_options, **WITHOUT_COMPACTION}
    )
    builder.when_matched_delete("source.id = 'r004'").when_matched_update_all()
    builder.when_not_matched_insert_all()
    builder.when_not_matched_by_source_update({"stops": None}, "city = 'berlin'").execute()
    rows, given = history.model.rows, {each["id"]: each for each in source}
    for key, each in list(rows.items()):
        if key not in given and each["city"] == "berlin":
            rows[key] = {**each, "stops": None}
    rows |= given
    del rows["r004"]
