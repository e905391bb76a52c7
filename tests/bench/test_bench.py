"""The benchmark on few rows: peers agree, tables come out, and wrong results are noticed."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import aims, data, report
from bench.peers import BY_NAME, PEERS, Command, Missing, command
from bench.processes import below, processes
from bench.results import Measured, Results
from bench.run import main
from bench.watch import Watch


def results_of(*steps: Measured) -> Results:
    return Results(
        {"scan_base": [10, 2.5, 1, 4], "snapshot": [12, 3.5, 6, 4], "incremental_mor": 7}, list(steps)
    )


def test_embedded_peers_agree_and_the_tables_come_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results -->\nold\n<!-- end of results -->\nafter\n")
    words = ["--rows", "2000", "--batches", "1", "--work", str(tmp_path), "--markdown", str(page)]
    code = main([*words, "--peers", "pyarrow-mor"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "All results agree." in shown
    assert "| bulk_insert " in shown
    assert "| drawstring-mor against pyarrow-mor " in shown
    assert (tmp_path / "results.jsonl").read_text().count('"step": "upsert_1"') == 2
    assert page.read_text().startswith("before\n<!-- results -->\n\n2,000 rows")
    assert page.read_text().endswith("All results agree.\n\n<!-- end of results -->\nafter\n")


def test_a_peer_that_fails_is_told_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (sys.executable, "-c", "raise SystemExit('no disk left')")
    monkeypatch.setattr("bench.run.command", lambda *_: Command(words, {}))
    assert main(["--rows", "100", "--batches", "1", "--work", str(tmp_path), "--peers", "pyarrow-plain"]) == 1
    shown = capsys.readouterr().out
    assert "no disk left" in shown
    assert "Failed, or wrong results: pyarrow-plain" in shown


def test_a_run_goes_on_with_the_peers_that_have_no_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tells = """print('{"begin": 1}'); print('{"step": "bulk_insert", "s": 2.5, "result": null}')"""
    dies = f"{tells}; raise SystemExit('no disk left')"
    run = {"pyarrow-plain": tells, "delta-rs": dies}
    monkeypatch.setattr(
        "bench.run.command", lambda peer, *_: Command((sys.executable, "-c", run[peer.name]), {})
    )
    words = ["--rows", "100", "--batches", "1", "--work", str(tmp_path), "--peers", "pyarrow-plain,delta-rs"]
    assert main(words) == 1
    run |= {"pyarrow-plain": "raise SystemExit('asked again')", "delta-rs": tells}
    capsys.readouterr()
    assert main([*words, "--go-on"]) == 0
    table = capsys.readouterr().out
    assert table.count("2.50 ") == 3, table  # one step told, two in the table


def test_the_data_is_made_once(tmp_path: Path) -> None:
    first = data.make(tmp_path, data.Size.of(500, 1))
    written = (tmp_path / "base.parquet").stat().st_mtime_ns
    assert data.make(tmp_path, data.Size.of(500, 1)) == first
    assert (tmp_path / "base.parquet").stat().st_mtime_ns == written
    assert data.make(tmp_path, data.Size.of(600, 1)) != first


def test_expected_results_follow_from_the_sizes(tmp_path: Path) -> None:
    expected = data.make(tmp_path, data.Size(rows=1000, updates=100, inserts=20, batches=3))["expected"]
    assert expected["scan_base"][0] == 1000
    assert expected["snapshot_undeleted"][0] == 1060
    assert expected["snapshot"][0] == 1050
    assert expected["snapshot"][2] == 4
    assert expected["incremental_mor"] >= expected["incremental_cow"] > 60


def test_a_wrong_result_is_named() -> None:
    results = results_of(
        Measured("delta-rs", "scan_base", 1.0, 100, [10, 2.5, 1, 4]),
        Measured("delta-rs", "snapshot", 1.0, 100, [12, 9.5, 6, 4]),
    )
    assert results.wrong("delta-rs") == [
        "delta-rs snapshot: [12, 9.5, 6, 4] instead of [12, 3.5, 6, 4]",
    ]


def test_a_result_with_fewer_numbers_is_wrong_except_where_one_counts() -> None:
    flat = [
        Measured("delta-rs", "scan_flat", 1.0, 100, found) for found in ([30, 9.5, 6, 4], [31, 9.5], None)
    ]
    results = results_of(
        Measured("delta-rs", "scan_base", 1.0, 100, [10, 2.5, 1]),
        Measured("delta-rs", "snapshot", 1.0, 100, [12, 3.5, 6, 4, 0]),
        *flat,
    )
    results.expected["flat"] = 30
    assert results.wrong("delta-rs") == [
        "delta-rs scan_base: [10, 2.5, 1] instead of [10, 2.5, 1, 4]",
        "delta-rs snapshot: [12, 3.5, 6, 4, 0] instead of [12, 3.5, 6, 4]",
        "delta-rs scan_flat: [31, 9.5] instead of [30]",
        "delta-rs scan_flat: None instead of [30]",
    ]


def test_sums_may_differ_in_the_last_digits() -> None:
    results = results_of(Measured("delta-rs", "scan_base", 1.0, 100, [10, 2.500_000_1, 1, 4]))
    assert results.wrong("delta-rs") == []


def test_an_increment_is_compared_by_kind_of_table() -> None:
    results = results_of(Measured("drawstring-mor", "incremental", 1.0, 100, 6))
    assert results.wrong("drawstring-mor") == ["drawstring-mor incremental: 6 instead of 7"]


def test_the_upsert_of_a_table_is_the_median_and_ratios_are_against_drawstring() -> None:
    ours = [Measured("drawstring-cow", f"upsert_{n}", s, 50, None) for n, s in enumerate((1.0, 9.0, 2.0))]
    theirs = [Measured("delta-rs", f"upsert_{n}", s, 80, None) for n, s in enumerate((3.0, 5.0, 7.0))]
    results = results_of(*ours, *theirs)
    shown = report.text(results)
    assert "| upsert " in shown
    assert "2.00" in shown
    assert "5.00 (2.5x)" in shown
    assert "drawstring-cow against delta-rs" in aims.text(results)


def test_a_peer_without_its_program_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_HUDI_RS_BINARY", raising=False)
    able = command(BY_NAME["hudi-rs-rc-mor"], Path("data"), Path("tables"))
    assert isinstance(able, Missing)
    assert "BENCH_HUDI_RS_BINARY" in able.why


def test_peers_keep_compiled_modules_whatever_the_caller_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    able = command(BY_NAME["drawstring-mor"], Path("data"), Path("tables"))
    assert isinstance(able, Command)
    assert "PYTHONDONTWRITEBYTECODE" not in able.env


def test_a_peer_is_left_out_of_runs_that_are_too_large_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tells = """print('{"begin": 1}'); print('{"step": "bulk_insert", "s": 2.5, "result": null}')"""
    monkeypatch.setattr("bench.run.command", lambda *_: Command((sys.executable, "-c", tells), {}))
    peer = replace(BY_NAME["pyarrow-plain"], rows_max=100)
    monkeypatch.setattr("bench.run._peers", lambda _: (peer,))
    for rows, is_left_out in ((100, False), (101, True)):
        folder = str(tmp_path / str(rows))
        assert main(["--rows", str(rows), "--batches", "1", "--work", folder, "--peers", peer.name]) == 0
        shown = capsys.readouterr().out
        assert ("too slow for more than 100 rows" in shown) == is_left_out
        assert ("2.50" in shown) != is_left_out


def test_every_peer_has_its_script() -> None:
    scripts = Path(data.__file__).parent / "scripts"
    assert [
        peer.name for peer in PEERS if peer.script != "binary" and not (scripts / peer.script).exists()
    ] == []


def test_memory_of_children_counts() -> None:
    words = [
        sys.executable,
        "-c",
        "import sys; held = bytearray(200_000_000); print(1, flush=True); sys.stdin.read()",
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        watch = Watch(child.pid)
        assert child.stdout is not None
        child.stdout.readline()
        watch.begin()
        assert watch.peak_mb() >= 200
        assert child.pid in below({child.pid}, processes())
        watch.stop()
        child.communicate("")


def test_the_largest_of_some_processes_is_watched() -> None:
    small, large = (f"import sys; held = bytearray({size}); sys.stdin.read()" for size in (10, 300_000_000))
    run = "import subprocess, sys; [p.wait() for p in [subprocess.Popen([sys.executable, '-c', c]) for c in"
    with subprocess.Popen(
        [sys.executable, "-c", f"{run} {[small, large]!r}]]"], stdin=subprocess.PIPE
    ) as all_:
        watch = Watch(all_.pid, "bytearray(10)")
        time.sleep(1)
        assert 0 < watch.peak_mb() < 100
        watch.stop()
        all_.communicate(b"")


@pytest.mark.long
def test_a_large_slice_is_streamed_and_its_peak_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--rows", "2000", "--batches", "1", "--work", str(tmp_path), "--peers", "large-slice"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "| stream_merged " in shown
    assert "| peak memory, MB " in shown


@pytest.mark.long
def test_small_upserts_are_timed_by_the_size_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "GROUPS", (4, 8))
    monkeypatch.setattr(data, "SMALL_BATCHES", 10)
    page = tmp_path / "page.md"
    page.write_text("<!-- scaling -->\nold\n<!-- end of scaling -->\n<!-- results -->\n")
    words = ["--suite", "scaling", "--work", str(tmp_path), "--markdown", str(page)]
    code = main([*words, "--peers", "drawstring-bucket-mor"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "| commits_10 " in page.read_text()
    assert page.read_text().endswith("<!-- end of scaling -->\n<!-- results -->\n")


@pytest.mark.long
def test_indexes_are_compared_on_the_same_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rows", "2000", "--batches", "1", "--work", str(tmp_path), "--suite", "indexes"]
    code = main([*words, "--peers", "bucket-mor,log-mor,bloom-cow"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "| Indexes, embedded |" in shown
    assert "| new_rows " in shown


def test_an_index_on_spark_is_compared_with_hudis_of_the_same_kind() -> None:
    results = results_of(
        Measured("spark-bucket-mor", "upsert_1", 0.5, 900, None),
        Measured("spark-bloom-cow", "upsert_1", 2.0, 900, None),
        Measured("indexes-hudi-bloom-cow", "upsert_1", 13.0, 900, None),
    )
    assert "13.00 (6.5x)" in report.text(results)
    assert "| spark-bloom-cow against indexes-hudi-bloom-cow | upsert |       2.00 | 13.00 |   6.5 |" in (
        aims.text(results)
    )


@pytest.mark.long
def test_large_writes_are_told_with_their_peaks_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- memory -->\n<!-- end of memory -->\n")
    words = ["--rows", "2000", "--work", str(tmp_path), "--suite", "memory", "--markdown", str(page)]
    code = main([*words, "--peers", "memory"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert " MB, 8 files (1) " in page.read_text()
    assert not (tmp_path / "tables/memory").exists()


def test_a_large_write_may_take_its_batch_besides_the_bound() -> None:
    wrote = {"files": 8, "hot": 1, "batch_mb": 500}
    results = results_of(
        Measured("memory", "hot_insert", 1.0, 1500, wrote),
        Measured("memory", "hot_upsert_cow", 1.0, 1600, wrote),
    )
    assert results.wrong("memory") == ["memory hot_upsert_cow: peak of 1600 MB, above 1573 MB"]


def test_a_peak_above_the_bound_is_a_failure() -> None:
    results = results_of(
        Measured("large-slice", "stream_base", 1.0, 900, 100),
        Measured("large-slice", "stream_merged", 1.0, 1100, 100),
    )
    assert results.wrong("large-slice") == ["large-slice stream_merged: peak of 1100 MB, above 1073 MB"]


def curves_of(files: list[float]) -> dict[str, list[float]]:
    seconds = [0.2] * len(files)
    return {
        "files": files,
        "instants": [30.0] * len(files),
        "batch_s": seconds,
        "batch_cpu_s": seconds,
        "read_cpu_s": [0.1] * 4,
        "read_s": [0.1] * 4,
    }


def test_a_soak_is_told_by_quarters() -> None:
    results = results_of(Measured("soak", "soak", 9.0, 200, curves_of([10.0, 90.0, 95.0, 96.0] * 2)))
    shown = report.text(results)
    assert "|   1-2 |   3-4 |   5-6 |   7-8 |" in shown
    assert "|    90 |    96 |    90 |    96 |" in shown
    assert "| 0.100 | 0.100 | 0.100 | 0.100 |" in shown
    assert results.wrong("soak") == []


def test_a_table_that_grows_in_a_soak_is_a_failure() -> None:
    results = results_of(Measured("soak", "soak", 9.0, 200, curves_of([50.0, 100.0, 120.0, 150.0])))
    assert results.wrong("soak") == ["soak files in the table: 100 in the second quarter, 150 in the last"]


@pytest.mark.long
def test_services_are_measured_on_the_embedded_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_SMALL_FILES", "4")
    monkeypatch.setenv("BENCH_COMPACTION_GB", "0.002")
    words = ["--suite", "services", "--peers", "small-files,large-group", "--work", str(tmp_path)]
    code = main(words)
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "| compact_files " in shown
    assert "| compact_group " in shown
    assert not (tmp_path / "tables/large-group").exists()


def test_services_are_compared_by_seconds_and_by_peaks() -> None:
    results = results_of(
        Measured("services", "compact", 2.0, 1000, None),
        Measured("services-hudi", "compact", 22.0, 4400, None),
        Measured("services-delta", "compact", 8.0, 3000, None),
    )
    shown = aims.text(results)
    assert (
        "| services against services-hudi  |                compact |       2.00 |    22.00 |  11.0 |"
        in shown
    )
    assert (
        "| services against services-hudi  | peak memory of compact |   1,000.00 | 4,400.00 |   4.4 |"
        in shown
    )
    assert (
        "| services against services-delta |                compact |       2.00 |     8.00 |   4.0 |"
        in shown
    )


def test_a_compaction_above_the_bound_is_a_failure() -> None:
    results = results_of(Measured("large-group", "compact_group", 9.0, 1100, 5000))
    assert results.wrong("large-group") == ["large-group compact_group: peak of 1100 MB, above 1073 MB"]
