"""The command line on a small table, and what it says when something is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.cli import app
from drawstring.cli.arguments import open_table
from drawstring.testing import context_of
from tests.support.golden import unpack
from tests.support.histories import Case, History, create, row, table_of, write

MOR = Case(9, "MERGE_ON_READ")


COMMANDS_WITH_A_TABLE = [
    "show",
    "head",
    "inspect timeline",
    "inspect files",
    "services compact",
    "services cluster",
]


@pytest.fixture(scope="module")
def rides(tmp_path_factory: pytest.TempPathFactory) -> History:
    return write(str(tmp_path_factory.mktemp("cli") / "rides"), MOR)


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that must fail with exit code 2 and return its one line."""

    def run(*arguments: str) -> str:
        assert app.run(list(arguments)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert captured.err.startswith("drawstring: ")
        return captured.err

    return run


def test_show_tells_what_the_table_is(text: Any, rides: History) -> None:
    shown = json.loads(text("show", rides.path, "--json"))
    assert shown["name"] == "rides"
    assert (shown["type"], shown["version"]) == ("MERGE_ON_READ", 9)
    assert (shown["record_key"], shown["partition_by"], shown["ordering"]) == (["id"], ["city"], ["ts"])
    assert (shown["writes"], shown["partitions"]) == (5, 3)
    assert shown["log_files"] > 0
    assert shown["last_write"] == rides.table.timeline.writes()[-1].requested
    assert shown["columns"]["fare"] == "double"


def test_show_for_people_names_keys_and_columns(text: Any, rides: History) -> None:
    shown = text("show", rides.path)
    assert "MERGE_ON_READ" in shown
    assert "decimal128(10, 2)" in shown


def test_show_names_what_is_pending(text: Any, rides: History, tmp_path: Path) -> None:
    path = str(shutil.copytree(rides.path, tmp_path / "rides"))
    instant = open_table(path, ()).services.schedule_compaction()
    (pending,) = json.loads(text("show", path, "--json"))["pending"]
    assert (pending["requested"], pending["action"], pending["state"]) == (instant, "compaction", "REQUESTED")
    assert f"compaction {instant} (requested" in " ".join(text("show", path).split())


def test_timeline_lists_instants_oldest_first(text: Any, rides: History) -> None:
    shown = json.loads(text("inspect", "timeline", rides.path, "--json"))
    assert [at["state"] for at in shown] == ["COMPLETED"] * 5
    assert [at["requested"] for at in shown] == sorted(at["requested"] for at in shown)
    assert all(at["completed"] > at["requested"] for at in shown)


def test_timeline_of_the_last_two_instants(text: Any, rides: History) -> None:
    everything = json.loads(text("inspect", "timeline", rides.path, "--json"))
    assert json.loads(text("inspect", "timeline", rides.path, "-n", "2", "--json")) == everything[-2:]
    assert "deltacommit" in text("inspect", "timeline", rides.path, "-n", "2")


def test_files_lists_what_a_snapshot_reads(text: Any, rides: History) -> None:
    shown = json.loads(text("inspect", "files", rides.path, "--json"))
    assert {part["partition"] for part in shown} == {"berlin", "lima", "new york"}
    root = Path(rides.path)
    for part in shown:
        names = [*part["log_files"], *([part["base_file"]] if part["base_file"] else [])]
        assert sum((root / name).stat().st_size for name in names) == part["size_bytes"]


def test_files_of_one_partition(text: Any, rides: History) -> None:
    shown = json.loads(text("inspect", "files", rides.path, "--partition", "lima", "--json"))
    assert {part["partition"] for part in shown} == {"lima"}
    assert f"{len(shown)} file groups, " in text("inspect", "files", rides.path, "--partition", "lima")


def test_metadata_lists_the_partitions_of_the_metadata_table(text: Any, tmp_path: Path) -> None:
    root = str(unpack("v9_idx_secondary", tmp_path))
    lines = text("inspect", "metadata", root).splitlines()
    assert lines[0].split() == [
        "partition",
        "file",
        "groups",
        "base",
        "files",
        "log",
        "files",
        "size",
        "bytes",
    ]
    assert lines[-1] == "5 partitions"
    found = json.loads(text("inspect", "metadata", root, "record_index", "--json"))
    assert found[0] == {
        "key": "10",
        "partition": "part=p1",
        "file_id": "574baeb8-7863-47bf-b17e-9a124575a539-0",
        "instant": "20261121092531364",
        "position": None,
    }
    found = text(
        "inspect", "metadata", root, "secondary_index_idx_sec", "--key", "name-2-v1", "--key", "name-10-v2"
    )
    assert [line.split() for line in found.splitlines()[1:]] == [
        ["name-10-v2", "10"],
        ["name-2-v1", "2"],
        ["2", "records"],
    ]


def test_partitions_are_listed_with_their_files(text: Any, rides: History) -> None:
    rows = json.loads(text("inspect", "partitions", rides.path, "--json"))
    slices = rides.table.inspect.files()
    assert [row["partition"] for row in rows] == sorted({each.partition for each in slices})
    assert sum(row["file_groups"] for row in rows) == len(slices)
    assert sum(row["log_files"] for row in rows) == sum(len(each.logs) for each in slices)
    assert sum(row["size_bytes"] for row in rows) == sum(each.size_bytes for each in slices)
    assert f"{len(rows)} partitions" in text("inspect", "partitions", rides.path)


def test_a_table_without_a_metadata_table_is_told(complaint: Any, tmp_path: Path) -> None:
    assert "has no metadata table" in complaint(
        "inspect", "metadata", create(str(tmp_path / "rides"), MOR).path
    )


def test_head_prints_as_many_rows_as_asked_for(text: Any, rides: History) -> None:
    assert len(json.loads(text("head", rides.path, "-n", "7", "--json"))) == 7


def test_head_with_columns_and_predicate(text: Any, rides: History) -> None:
    shown = json.loads(
        text("head", rides.path, "-c", "id,tip,day", "-w", "city = 'lima' and id = 'r004'", "--json")
    )
    assert shown == [{"id": "r004", "tip": "2.28", "day": "2024-01-05"}]


def test_head_explains_what_it_reads(text: Any, rides: History) -> None:
    explained = json.loads(text("head", rides.path, "-w", "city = 'lima'", "--explain", "--json"))
    assert explained["listing"] == "metadata table"
    assert explained["where"] == "city = 'lima'"
    assert [(step["by"], step["kept"]) for step in explained["steps"][:2]] == [("listed", 3), ("path", 1)]
    shown = text("head", rides.path, "-w", "city = 'lima'", "--explain")
    assert f"{explained['file_slices']} of" in shown and "partitions" in shown


def test_head_as_of_the_first_commit(text: Any, rides: History) -> None:
    first = rides.table.timeline.writes()[0].requested
    shown = json.loads(text("head", rides.path, "-c", "id,ts", "--as-of", first, "-n", "100", "--json"))
    assert {row["ts"] for row in shown} == {100}
    assert len(shown) == 40


def test_head_as_of_a_commit_before_a_column_was_added_shows_what_there_was(
    text: Any, tmp_path: Path
) -> None:
    history = create(str(tmp_path / "rides"), MOR)
    rows = table_of([row(1, 100)])
    history.table.upsert(rows)
    first = history.table.timeline.writes()[0].requested
    history.table.upsert(rows.append_column("note", pa.array(["late"])))
    assert json.loads(text("head", history.path, "--json"))[0]["note"] == "late"
    (then,) = json.loads(text("head", history.path, "--as-of", first, "--json"))
    assert list(then) == rows.schema.names


def test_compact_merges_log_files_once(text: Any, tmp_path: Path) -> None:
    history = write(str(tmp_path / "rides"), MOR)
    assert "compacted" in text("services", "compact", history.path)
    assert "nothing to compact" in text("services", "compact", history.path)
    assert json.loads(text("show", history.path, "--json"))["log_files"] == 0
    assert json.loads(text("inspect", "timeline", history.path, "--json"))[-1]["action"] == "commit"


def test_compact_plans_now_and_runs_later(text: Any, complaint: Any, tmp_path: Path) -> None:
    path = write(str(tmp_path / "rides"), MOR).path
    chosen = ("--option", "hoodie.compaction.strategy=UnBoundedCompactionStrategy")
    instant = json.loads(text("services", "compact", path, "--schedule", *chosen, "--json"))["instant"]
    assert "exclude each other" in complaint("services", "compact", path, "--schedule", "--instant", instant)
    assert "nothing to compact" in text("services", "compact", path, "--schedule")
    assert json.loads(text("show", path, "--json"))["log_files"] > 0
    assert instant in text("services", "compact", path, "--instant", instant)
    assert json.loads(text("show", path, "--json"))["log_files"] == 0
    assert "nothing to compact" in text("services", "compact", path, "--instant", instant)
    assert "There is no option" in complaint("services", "compact", path, "--option", "compaction_strategy=x")


def test_cluster_plans_and_runs_in_one_step_or_two(text: Any, complaint: Any, tmp_path: Path) -> None:
    path = write(str(tmp_path / "rides"), Case(9, "COPY_ON_WRITE")).path
    planned = json.loads(text("services", "cluster", path, "--schedule", "--sort-by", "fare", "--json"))[
        "instant"
    ]
    assert "exclude each other" in complaint("services", "cluster", path, "--schedule", "--instant", planned)
    assert "nothing to cluster" in text("services", "cluster", path, "--schedule")
    done = json.loads(text("services", "cluster", path, "--instant", planned, "--json"))
    assert (done["operation"], done["files"], done["instant"]) == ("cluster", 3, planned)
    assert "nothing to cluster" in text("services", "cluster", path, "--sort-by", "fare")
    setting = "hoodie.clustering.plan.strategy.partition.selected=lima"
    assert "into 1 base file" in text("services", "cluster", path, "--option", setting)


@pytest.mark.parametrize(
    "command", ["show", "inspect timeline", "inspect files", "head", "services compact", "services cluster"]
)
def test_a_path_where_nothing_is(complaint: Any, tmp_path: Path, command: str) -> None:
    assert str(tmp_path / "nothing") in complaint(*command.split(), str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    "command", ["show", "inspect timeline", "inspect files", "head", "services compact", "services cluster"]
)
def test_a_folder_that_is_no_table(complaint: Any, tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("no table")
    assert str(tmp_path) in complaint(*command.split(), str(tmp_path))


def test_half_written_properties(complaint: Any, tmp_path: Path) -> None:
    history = write(str(tmp_path / "rides"), MOR)
    properties = Path(history.path, ".hoodie/hoodie.properties")
    properties.write_bytes(properties.read_bytes()[:40])
    assert "hoodie.properties" in complaint("show", history.path)


def test_a_damaged_base_file(complaint: Any, tmp_path: Path) -> None:
    history = write(str(tmp_path / "rides"), Case(9, "COPY_ON_WRITE"))
    base = next(part.base for part in history.table.inspect.files() if part.base)
    Path(history.path, base.status.path).write_bytes(b"PAR1 not really")
    assert base.status.name in complaint("head", history.path, "-n", "100")


@pytest.mark.parametrize("command", ["show", "inspect files"])
def test_a_damaged_commit_is_told_with_its_table(complaint: Any, tmp_path: Path, command: str) -> None:
    history = write(str(tmp_path / "rides"), MOR)
    newest = max(Path(history.path, ".hoodie/timeline").glob("*_*.*commit"))
    newest.write_bytes(newest.read_bytes()[:100])
    told = complaint(*command.split(), history.path)
    assert newest.name in told
    assert f"table: {history.path}" in told


def test_a_partition_that_is_not_there_is_told_with_the_table(complaint: Any, rides: History) -> None:
    assert f"table: {rides.path}" in complaint("inspect", "files", rides.path, "--partition", "nowhere")


def test_a_missing_base_file(complaint: Any, tmp_path: Path) -> None:
    history = write(str(tmp_path / "rides"), MOR)
    base = next(part.base for part in history.table.inspect.files() if part.base)
    Path(history.path, base.status.path).unlink()
    assert "file" in complaint("head", history.path, "-n", "100")


def test_an_unknown_column_suggests_the_right_one(complaint: Any, rides: History) -> None:
    assert "fare" in complaint("head", rides.path, "--columns", "fair")
    assert "fare" in complaint("head", rides.path, "--where", "fair > 1")


def test_an_unknown_partition_names_those_there_are(complaint: Any, rides: History) -> None:
    assert "berlin" in complaint("inspect", "files", rides.path, "--partition", "bern")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("shw", "show"),
        ("compact", "services compact"),
        ("compct", "services compact"),
        ("log_compact", "services log-compact"),
        ("locks", "inspect locks"),
        ("index", "indexes --help"),
        ("savepoint", "savepoints --help"),
    ],
)
def test_an_unknown_command_suggests_one_and_lists_all(complaint: Any, name: str, meant: str) -> None:
    found = complaint(name, "/tmp")
    assert f"There is no command '{name}'. Did you mean `drawstring {meant}`?" in found
    for group, (_, commands) in app.GROUPS.items():
        assert all(f"{group} {word}" in found for word in commands)
    assert "See: drawstring --help" in found


@pytest.mark.parametrize("name", sorted(app.NEVER_SUGGESTED))
def test_no_typing_error_leads_to_a_command_that_deletes_or_undoes(complaint: Any, name: str) -> None:
    group, _, word = name.rpartition(" ")
    for mistyped in (word, f"{word}e", word[:-1], word.upper()):
        if mistyped in (group, *(command.__name__ for command in app.TOP)):
            continue
        assert f"Did you mean `drawstring {name}`" not in complaint(mistyped, "/tmp")
        if group and mistyped != word:
            assert f"Did you mean `drawstring {name}`" not in complaint(group, mistyped, "/tmp")


def test_an_unknown_command_of_a_group_suggests_one_of_the_group(complaint: Any) -> None:
    found = complaint("indexes", "lst", "/tmp")
    assert "no command 'indexes lst'. Did you mean `drawstring indexes list`?" in found
    assert "services compact" not in found


def test_numbers_of_buckets_are_changed(text: Any, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "city": ["lima"] * 3})
    hashed = drawstring.create(
        tmp_path / "t", rows.schema, record_key="id", partition_by="city", index="BUCKET", bucket_count=1
    )
    hashed.insert(rows)
    call = ("services", "rescale-buckets", hashed.uri, "2", "--partitions", "lima")
    assert json.loads(text(*call, "--json"))["changed"]
    assert text(*call) == "the partitions have 2 buckets already\n"


def test_an_option_of_the_object_store_without_value(complaint: Any, rides: History) -> None:
    assert "NAME=VALUE" in complaint("show", rides.path, "--storage-option", "region")


def test_local_files_have_an_option_of_their_own(complaint: Any, rides: History) -> None:
    asked = ("show", rides.path, "--storage-option", "drawstring.storage.sync=perhaps")
    assert "drawstring.storage.sync is 'perhaps'. Give true or false" in complaint(*asked)
    opened = open_table(rides.path, ("drawstring.storage.sync=false",))
    assert context_of(opened).storage.spec.options == {"drawstring.storage.sync": "false"}


def test_an_option_of_the_object_store_for_a_local_table(complaint: Any, rides: History) -> None:
    assert "not in an object store" in complaint(
        "head", rides.path, "--storage-option", "region=eu-central-1"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("inspect timeline", "--last", "-1"),
        ("head", "-n", "-3"),
        ("head", "--rows=-3"),
        ("inspect timeline", "-n", "-1"),
    ],
)
def test_a_negative_number_of_rows_or_instants(
    complaint: Any, rides: History, words: tuple[str, ...]
) -> None:
    assert "Must be >= 0" in complaint(*words[0].split(), rides.path, *words[1:])


def test_more_rows_than_there_are_is_all_of_them(text: Any, rides: History) -> None:
    rows = json.loads(text("head", rides.path, "-n", "99999999999999999999", "--json"))
    assert rows == json.loads(text("head", rides.path, "-n", "1000", "--json"))


def test_a_trailing_comma_names_no_column(text: Any, complaint: Any, rides: History) -> None:
    some = json.loads(text("head", rides.path, "-c", "id", "--json"))
    assert json.loads(text("head", rides.path, "-c", "id,", "--json")) == some
    assert "has an empty name" in complaint("head", rides.path, "-c", "id,,fare")


def test_no_rows_and_no_instants_are_fine(text: Any, rides: History) -> None:
    assert json.loads(text("head", rides.path, "-n", "0", "--json")) == []
    assert json.loads(text("inspect", "timeline", rides.path, "--last", "0", "--json")) == []


def test_a_defect_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rides: History
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken inside")

    monkeypatch.setattr("drawstring.open", fail)
    assert app.run(["show", rides.path]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_help_lists_all_commands(text: Any) -> None:
    shown = text("--help")
    assert all(name in shown for name in ("show", "head", "services", "inspect", "savepoints", "holds"))
    assert all(name in text("services", "--help") for name in ("compact", "cluster", "clean", "rollback"))


def test_the_help_of_ingest_shows_what_stands_for_the_rows(text: Any) -> None:
    assert "SQL query with <SRC> for the rows" in text("ingest", "--help")


def test_bootstrap_makes_a_table_of_a_folder(text: Any, complaint: Any, tmp_path: Path) -> None:
    source, table = tmp_path / "source", str(tmp_path / "table")
    (source / "city=oslo").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "fare": [1.0, 2.0]}), source / "city=oslo/a.parquet")
    words = (table, str(source), "--record-key", "id", "--partition-by", "city")
    assert "2 rows" in text("bootstrap", *words, "--table-type", "MERGE_ON_READ", "--version", "8")
    shown = json.loads(text("show", table, "--json"))
    assert (shown["type"], shown["version"], shown["partition_by"]) == ("MERGE_ON_READ", 8, ["city"])
    assert [row["city"] for row in json.loads(text("head", table, "--json"))] == ["oslo", "oslo"]
    assert "table already" in complaint("bootstrap", *words)


def test_a_call_that_does_not_fit_names_the_help_of_its_command(complaint: Any, rides: History) -> None:
    for arguments in (("head",), ("head", rides.path, "--nope"), ("head", rides.path, "-n", "few")):
        assert complaint(*arguments).endswith("See: drawstring head --help\n")
    assert complaint("head", rides.path, "extra") == (
        "drawstring: The command does not take an argument extra. Remove it. See: drawstring head --help\n"
    )
    assert "does not take arguments one two" in complaint("head", rides.path, "one", "two")
    assert complaint("hed").endswith("See: drawstring --help\n")


def test_indexes_are_created_shown_and_dropped(text: Any, complaint: Any, rides: History) -> None:
    path = rides.path
    assert "has no index" in complaint("indexes", "drop", path, "by_city")
    assert "The command needs NAME" in complaint("indexes", "create", path)
    text("indexes", "create", path, "record_index")
    created = json.loads(text("indexes", "create", path, "by_city", "--column", "city", "--json"))
    by_city = {"name": "secondary_index_by_city", "kind": "secondary_index", "columns": ["city"]}
    state = {"is_partitioned": False, "is_complete": True, "unused": None, "using": None, "options": {}}
    assert created == [by_city | state]
    _, planned = text("indexes", "schedule", path, "bloom_filters").split()
    shown = [line.split() for line in text("indexes", "list", path).splitlines()[1:]]
    assert shown == [
        ["bloom_filters", "bloom_filters", "planned"],
        ["record_index", "record_index", "complete"],
        ["secondary_index_by_city", "secondary_index", "city", "complete"],
    ]
    assert text("indexes", "run", path, planned).split()[-3:] == [
        "bloom_filters",
        "bloom_filters",
        "complete",
    ]
    text("indexes", "drop", path, "bloom_filters")
    assert text("indexes", "drop", path, "by_city").split() == ["dropped", "by_city"]
    settings = ("--column", "city", "--using", "column_stats", "--option", "expr=upper")
    upper = text("indexes", "create", path, "upper", *settings)
    reason = "Queries take the values of partition columns from the paths of files."
    assert "city     column_stats, expr=upper  not used\n" in upper
    assert f"Queries do not use expr_index_upper. {reason}" in upper
    text("indexes", "drop", path, "upper")
    assert [each["name"] for each in json.loads(text("indexes", "list", path, "--json"))] == ["record_index"]
