"""The runner: each peer in its own process, one at a time, all on the same files.

    python -m bench [--rows 1000000] [--peers delta-rs,drawstring-mor] [--suite scaling] [--list]

Exits with 1 when a peer failed or when its results are not those computed from the input files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench import (
    aims,
    curves,
    data,
    lakeloader,
    layouts,
    lives,
    merges,
    report,
    streams,
    summary,
    topic,
    tpch,
    writers,
)
from bench.peers import BY_NAME, PEERS, STREAMS, SUITES, Command, Missing, Peer, command
from bench.results import LINEITEM_ENGINES, Measured, Results
from bench.watch import Watch

LINES_OF_A_FAILURE = 15
WIDE_ROWS = 2
"""Wide rows for every ride: of a million rides 2 GB."""
KEYS_OF_A_ROW = 10
"""Keys in a large record index for every ride."""
WITHOUT_RIDES = {
    "scaling",
    "memory",
    "soak",
    "timeline",
    "files",
    "group",
    "lsm",
    *LINEITEM_ENGINES,
    "loads",
    "loads-spark",
    "merges",
    "metadata-keys",
    STREAMS,
}
"""Engines whose peers need no rides."""
WRITERS_COMMITS = int(os.environ.get("BENCH_WRITERS_COMMITS", "30"))
"""Commits of each process in the suite of writers."""


def main(words: list[str] | None = None) -> int:
    """Run the command line."""
    options = _arguments(words)
    if options.list:
        for peer in PEERS:
            able = command(peer, Path("DATA"), Path("TABLES"))
            print(f"{peer.name:24} {able.why if isinstance(able, Missing) else 'ready'}")
        return 0
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
        return run(options, options.work.resolve())
    with tempfile.TemporaryDirectory(prefix="drawstring-bench-") as folder:
        return run(options, Path(folder))


def run(options: argparse.Namespace, work: Path) -> int:
    """Make the data, run the peers, print the tables; return the exit code."""
    size = data.Size.of(options.rows, options.batches)
    results, saved = Results(_data(options.peers, size, work / "data")), work / "results.jsonl"
    if options.go_on:
        results.load(saved)
    todo, failed = [peer for peer in options.peers if peer.name not in results.peers()], []
    streaming = any(peer.engine == STREAMS for peer in todo)
    with topic.filled(work / "data", _say) if streaming else nullcontext():
        for peer in todo:
            able = command(peer, work / "data", work / "tables")
            if isinstance(able, Missing):
                _say(f"{peer.name}: left out: {able.why}")
            elif 0 < peer.rows_max < size.rows:
                _say(f"{peer.name}: left out: too slow for more than {peer.rows_max:,} rows")
            elif not _run_peer(peer, able, work, results):
                failed.append(peer.name)
            results.save(saved, failed)
    return _tell(options, size, results, failed)


def _data(peers: tuple[Peer, ...], size: data.Size, folder: Path) -> dict[str, Any]:
    """Make the data that the peers need; return the results that they must have."""
    engines = {peer.engine for peer in peers}
    expected: dict[str, Any] = {}
    if "scaling" in engines:
        _say("making small batches")
        data.make_small_batches(folder)
    if "memory" in engines:
        _say(f"making {WIDE_ROWS * size.rows:,} wide rows")
        data.make_wide(folder, WIDE_ROWS * size.rows)
    if engines & LINEITEM_ENGINES:
        _say(f"making {size.rows:,} rows of lineitem")
        expected["lineitem"] = tpch.make(folder, size.rows)
    if engines & {"loads", "loads-spark"}:
        _say(f"making {size.rows:,} rows of events and {size.rows // 4:,} of a dimension")
        expected["lakeloader"] = lakeloader.make(folder, size.rows)
    if "merges" in engines:
        _say(f"making {size.rows:,} rows and small merges")
        expected["merges"] = merges.make(folder, size.rows)
    if "metadata-keys" in engines:
        data.tell_keys(folder, KEYS_OF_A_ROW * size.rows)
    if STREAMS in engines:
        _say("making micro-batches")
        streams.make(folder, size.rows)
    if "lsm" in engines:
        _say("making a wide table and small upserts of it")
        expected |= layouts.make(folder)
    if engines <= WITHOUT_RIDES:
        return expected
    _say(f"making {size.rows:,} rows and {size.batches} batches of {size.updates + size.inserts:,}")
    expected |= data.make(folder, size)["expected"]
    if engines & {"indexes", "indexes-spark", "indexes-hudi"}:
        data.make_new_rides(folder, size)
    if "writers" in engines:
        data.make_writers(folder, size, WRITERS_COMMITS)
    return expected


def _run_peer(peer: Peer, able: Command, work: Path, results: Results) -> bool:
    """Run one peer to its end; tell whether it did what it should."""
    log = work / f"{peer.name}.log"
    (work / "tables").mkdir(exist_ok=True)
    began = time.perf_counter()
    with log.open("w") as errors:
        process = subprocess.Popen(
            able.words, env=able.env, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=work
        )
        watch = Watch(process.pid, peer.task)
        try:
            for measured in _steps(peer.name, process, watch):
                results.steps.append(measured)
                _say(f"{peer.name:24} {measured.step:20} {_told(measured)}")
            code = process.wait()
        finally:
            watch.stop()
            process.kill()
    if code != 0:
        tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-LINES_OF_A_FAILURE:])
        _say(
            f"{peer.name}: failed with exit code {code} after {time.perf_counter() - began:.0f} s\n    {tail}"
        )
        return False
    for line in results.wrong(peer.name):
        _say(f"WRONG: {line}")
    return not results.wrong(peer.name)


def _steps(name: str, process: subprocess.Popen[str], watch: Watch) -> Iterator[Measured]:
    """Yield what a peer tells of its steps, with the processor time and the memory seen meanwhile."""
    assert process.stdout is not None
    for line in process.stdout:
        told = _json(line)
        if "begin" in told:
            watch.begin()
        elif "step" in told:
            used = watch.processor_seconds()  # first of all: the peer goes on
            yield Measured(name, told["step"], told["s"], watch.peak_mb(), told.get("result"), used)
            watch.begin()


def _told(one: Measured) -> str:
    """Return what the terminal shows of a step."""
    used = "" if one.processor_seconds is None else f"{one.processor_seconds:8.2f} cpu"
    return f"{one.seconds:8.2f} s {used:12} {one.peak_mb:7,} MB"


def _json(line: str) -> dict[str, Any]:
    """Return a line's object; libraries print other things too."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _tell(options: argparse.Namespace, size: data.Size, results: Results, failed: list[str]) -> int:
    known = size if "scan_base" in results.expected else None
    parts = [
        _machine(known),
        report.text(results),
        writers.aims(results),
        lakeloader.aims(results),
        aims.text(results),
    ]
    verdict = "All results agree." if not failed else f"Failed, or wrong results: {', '.join(failed)}."
    shown = "\n\n".join([*(part for part in parts if part), verdict])
    print(f"\n{shown}")
    if options.summary:
        report.put_into(options.summary, summary.text(results, size), "comparison")
    if options.markdown:
        report.put_into(options.markdown, shown, "results" if options.suite == "rides" else options.suite)
        if soak := results.soak():
            curves.draw(soak, options.markdown.with_name("soak.svg"))
        if told := results.lives():
            lives.draw(told, options.markdown.with_name("layouts.svg"))
    return 1 if failed else 0


def _machine(size: data.Size | None) -> str:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, "
        f"Python {platform.python_version()}"
    )
    if size is None:
        return machine
    batches = f"{size.batches} batches of {size.updates:,} updates and {size.inserts:,} inserts"
    return f"{size.rows:,} rows, {batches}; {machine}"


def _say(line: str) -> None:
    print(line, flush=True)


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the first load")
    parser.add_argument("--batches", type=int, default=5, help="batches of upserts")
    parser.add_argument("--suite", choices=SUITES, default="rides", help="which peers, if none are named")
    parser.add_argument("--peers", type=_peers, help="names, with commas between them")
    parser.add_argument(
        "--work", type=Path, metavar="FOLDER", help="keep data, tables, logs and results here"
    )
    parser.add_argument(
        "--go-on", action="store_true", help="take the results of peers that have some in --work already"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the tables into a page too")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="put a few steps into a page")
    parser.add_argument(
        "--list", action="store_true", help="say which peers are ready, and why others are not"
    )
    options = parser.parse_args(words)
    options.peers = options.peers or SUITES[options.suite]
    return options


def _peers(text: str) -> tuple[Peer, ...]:
    """Return the peers asked for, and before them those whose tables they read."""
    wanted = set()
    for name in text.split(","):
        if name not in BY_NAME:
            raise argparse.ArgumentTypeError(f"no peer {name}: choose from {', '.join(BY_NAME)}")
        wanted |= {name, BY_NAME[name].reads}
    return tuple(peer for peer in PEERS if peer.name in wanted)


if __name__ == "__main__":
    sys.exit(main())
