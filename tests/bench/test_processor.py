"""Processor time of a peer: all its processes count, those that ended too."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import report
from bench.processes import Process, ignores_children, processes
from bench.processor import ProcessorTime, steady
from bench.results import Measured, Results
from bench.watch import Watch

needs_proc = pytest.mark.skipif(
    processes()[os.getpid()].used_seconds is None,
    reason="needs /proc",
)
PEER, DAEMON, WORKER, OTHER = 10, 11, 12, 99
BUSY = "import time\nwhile time.process_time() < {}: pass\n"
SPAWN = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])\n"
TELL = "print(1, flush=True); sys.stdin.readline()\n"


def running(**used: float) -> dict[int, Process]:
    """Return those that are named of a peer, its daemon, the daemon's worker, and somebody else's process."""
    ids = {"peer": (PEER, 1), "daemon": (DAEMON, PEER), "worker": (WORKER, DAEMON), "other": (OTHER, 1)}
    return {ids[name][0]: Process(ids[name][1], 0, ids[name][0], seconds) for name, seconds in used.items()}


@contextmanager
def peer_that(code: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that waits for a line, runs the code, tells that it is done, and waits for another."""
    words = [sys.executable, "-c", f"import os, signal, sys, time\n{TELL}{code}\n{TELL}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def seconds_of(code: str) -> float:
    """Return the processor time that a watch sees of a step that runs the code."""
    with peer_that(code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watch = Watch(process.pid)
        watch.begin()
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        used = watch.processor_seconds()
        watch.stop()
        process.communicate("\n")
    assert used is not None
    return used


def test_all_processes_of_a_peer_count_and_no_others() -> None:
    assert ProcessorTime(PEER).see(running(peer=1.0, daemon=2.0, worker=4.0, other=8.0)) == 7.0


def test_a_worker_that_its_parent_waited_for_counts_once() -> None:
    time_ = ProcessorTime(PEER, lambda pid: False)
    time_.see(running(peer=1.0, daemon=2.0, worker=4.0))
    assert time_.see(running(peer=1.0, daemon=6.5)) == 7.5


def test_a_worker_whose_end_is_ignored_still_counts() -> None:
    time_ = ProcessorTime(PEER, lambda pid: pid == DAEMON)
    time_.see(running(peer=1.0, daemon=2.0, worker=4.0))
    assert time_.see(running(peer=1.0, daemon=2.5)) == 7.5
    assert time_.see(running(peer=1.5, daemon=2.5)) == 8.0


def test_a_process_whose_parent_ended_first_still_counts() -> None:
    time_ = ProcessorTime(PEER, lambda pid: False)
    time_.see(running(peer=1.0, daemon=2.0, worker=4.0))
    adopted = Process(1, 0, WORKER, 5.0)
    assert time_.see({PEER: Process(1, 0, PEER, 3.0), WORKER: adopted}) == 8.0
    assert time_.see(running(peer=3.0)) == 8.0


def test_another_process_that_got_the_same_id_is_another_one() -> None:
    time_ = ProcessorTime(PEER, lambda pid: True)
    time_.see(running(peer=1.0, daemon=2.0))
    assert time_.see({PEER: Process(1, 0, PEER, 1.0), DAEMON: Process(1, 0, 500, 9.0)}) == 3.0


def test_nobody_knows_without_times() -> None:
    assert ProcessorTime(PEER).see({PEER: Process(1, 0)}) is None


def test_a_look_while_a_child_ends_is_taken_again() -> None:
    torn, after = running(peer=1.0, daemon=6.0, worker=4.0), running(peer=1.0, daemon=6.0)
    looks = iter([torn, after, after])
    assert steady(PEER, lambda: next(looks)) == after


@needs_proc
def test_a_watch_adds_up_threads_and_children_that_ended() -> None:
    def own() -> float:
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    before = own()
    used = seconds_of(SPAWN.format(BUSY.format(0.4)) + BUSY.format(0.3))
    everything = own() - before  # the start of the interpreter too
    assert 0.6 <= used <= everything + 0.1


@needs_proc
def test_a_watch_counts_children_that_nobody_waits_for() -> None:
    ignored = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    work = f"if not os.fork():\n    end = {BUSY.format(1.0)!r}; exec(end); os._exit(0)\n"
    gone = "while True:\n    try: os.waitpid(-1, 0)\n    except ChildProcessError: break\n"
    assert seconds_of(ignored + work + gone) >= 0.7


@needs_proc
def test_it_is_seen_who_ignores_that_children_end() -> None:
    with peer_that("signal.signal(signal.SIGCHLD, signal.SIG_IGN)") as process:
        assert not ignores_children(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        assert ignores_children(process.pid)
        process.communicate("\n")
    assert not ignores_children(process.pid)


@needs_proc
def test_a_step_that_waits_uses_no_processor() -> None:
    began = time.perf_counter()
    assert seconds_of("time.sleep(0.5)") < 0.3
    assert time.perf_counter() - began > 0.5


def test_processor_time_stands_beside_seconds() -> None:
    ours = Measured("drawstring-spark-mor", "bulk_insert", 6.254, 900, None, 12.345)
    theirs = Measured("iceberg-mor", "bulk_insert", 12.508, 900, None, 9.876)
    shown = report.text(Results({}, [ours, theirs]))
    assert "| bulk_insert     |      6.25 (12.3 cpu) | 12.51 (9.88 cpu, 2.0x) |" in shown


def test_processor_time_is_the_median_of_steps_done_several_times() -> None:
    used = (3.0, 9.0, 4.0)
    steps = [Measured("delta-rs", f"upsert_{n}", 1.0, 50, None, used[n]) for n in range(len(used))]
    again = [Measured("delta-rs-merge", "groups_10", s, 50, None, 2 * s) for s in (0.1, 0.4, 0.2)]
    results = Results({}, steps + again)
    assert results.processor_seconds("delta-rs", "upsert") == 4.0
    assert results.seconds("delta-rs-merge", "groups_10") == 0.2
    assert results.processor_seconds("delta-rs-merge", "groups_10") == 0.4


def test_results_without_processor_time_can_still_be_shown() -> None:
    results = Results({}, [Measured("delta-rs", "bulk_insert", 1.5, 50, None)])
    assert results.processor_seconds("delta-rs", "bulk_insert") is None
    assert "1.50 |" in report.text(results)
    assert "cpu" not in report.text(results).splitlines()[2]
