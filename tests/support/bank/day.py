"""A day of the bank: its staff work, and some of them are killed or stopped at random moments.

Work is bounded by the number of transfers. When a process is killed, another one goes on with its work; one
that is stopped stands still for longer than its heartbeats and leases are good for.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from tests.support.bank.staff import BEGINS, DONE, RUNS_AGAIN, WORDS, Job
from tests.support.processes import ROOT

FIRST_SECONDS = 0.3
LINES_OF_A_FAILURE = 30


@dataclass(frozen=True)
class Mishap:
    """What happens to a process.

    Attributes:
        signal: SIGKILL or SIGSTOP.
        at: the number of the action during which it happens.
        moment: when, as a part of the time that the action before it took.
    """

    signal: signal.Signals
    at: int
    moment: float


@dataclass(frozen=True)
class Member:
    """A member of staff, and what happens to it."""

    role: str
    job: Job
    mishaps: tuple[Mishap, ...] = ()


@dataclass
class Day:
    """What happened.

    Attributes:
        begun, done, refused: what the clerks said of transfers, by number.
        again: how many attempts lost against others and ran again.
        services: how often which service was done, or refused.
        audits: how many snapshots were read.
        signals: how many processes were killed, and stopped.
        failures: the last lines of processes that failed.
    """

    begun: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    again: int = 0
    services: Counter[str] = field(default_factory=Counter)
    audits: int = 0
    signals: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    lock: Lock = field(default_factory=Lock, repr=False)

    def note(self, role: str, word: str, what: str, rest: str) -> None:
        with self.lock:
            if role == "auditor":
                self.audits += word == DONE
            elif role == "janitor":
                if word != BEGINS:
                    self.services[what if word == DONE else f"{what} {word}"] += 1
            elif word == BEGINS:
                self.begun.add(what)
            elif word == DONE:
                self.done.add(what)
            else:
                self.refused[what] = rest

    def told(self) -> str:
        """Return a line of figures."""
        why = Counter(re.sub(r"\S*\d\S*", "N", each)[:80] for each in self.refused.values())
        transfers = f"{len(self.done)} acknowledged, {len(self.refused)} refused, {len(self.unknown)} unknown"
        return (
            f"transfers: {transfers}; {self.again} attempts run again; {dict(self.signals)};"
            f" {dict(self.services)}; {self.audits} audits; {self.seconds:.1f} s; refused:"
            f" {dict(why)}"
        )

    @property
    def unknown(self) -> set[str]:
        """The transfers whose clerks were killed before they could say what came of them."""
        return self.begun - self.done - self.refused.keys()


def mishaps(draw: random.Random, actions: int, kinds: Mapping[signal.Signals, int]) -> tuple[Mishap, ...]:
    """Draw what happens to a process in the course of some actions."""
    drawn = [
        Mishap(kind, draw.randint(1, actions), draw.random())
        for kind, count in kinds.items()
        for _ in range(count)
    ]
    return tuple(sorted(drawn, key=lambda each: each.at))


def work(staff: list[Member], closing: Path, stop_seconds: float) -> Day:
    """Let the staff work until all transfers are made; return what happened."""
    day, began = Day(), time.monotonic()
    with ThreadPoolExecutor(len(staff)) as threads:
        futures = [threads.submit(_Watched(member, day, stop_seconds).run) for member in staff]
        try:
            for member, future in zip(staff, futures, strict=True):
                if member.role == "clerk":
                    future.result()
        finally:
            closing.touch()
        for future in futures:
            future.result()
    day.seconds = time.monotonic() - began
    return day


class _Watched:
    """A member of staff, as a process and those that follow when it is killed."""

    def __init__(self, member: Member, day: Day, stop_seconds: float) -> None:
        self._member = member
        self._day = day
        self._stop_seconds = stop_seconds
        self._mishaps = list(member.mishaps)
        self._begun = self._done = 0
        self._began = time.monotonic()
        self._seconds = FIRST_SECONDS

    def run(self) -> None:
        job, generation = self._member.job, 0
        while self._run_once(job) == -signal.SIGKILL:
            generation += 1
            first = self._member.job
            left = first.transfers - self._done
            if Path(first.closing).exists() or (self._member.role == "clerk" and not left):
                return
            name, seed = f"{first.name}.{generation}", first.seed + 1000 * generation
            job = replace(first, name=name, seed=seed, transfers=left)

    def _run_once(self, job: Job) -> int:
        """Run one process to its end; return its exit code."""
        words = [sys.executable, "-m", "tests.support.bank.staff", self._member.role, job.encode()]
        log: list[str] = []
        with subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    log = [*log[1 - LINES_OF_A_FAILURE :], line]
                    self._hear(line, process)
            finally:
                process.kill()
        if process.returncode not in (0, -signal.SIGKILL):
            self._day.failures.append(f"{job.name}:\n{''.join(log)}")
        return process.returncode

    def _hear(self, line: str, process: subprocess.Popen[str]) -> None:
        word, what, rest = [*line.split(maxsplit=2), "", "", ""][:3]
        if word not in WORDS:
            with self._day.lock:
                self._day.again += RUNS_AGAIN in line
            return
        self._day.note(self._member.role, word, what, rest)
        if word == BEGINS:
            self._begun, self._began = self._begun + 1, time.monotonic()
            if self._mishaps and self._mishaps[0].at <= self._begun:
                self._befall(process, self._mishaps.pop(0))
        else:
            self._seconds = time.monotonic() - self._began
            self._done += word == DONE

    def _befall(self, process: subprocess.Popen[str], mishap: Mishap) -> None:
        time.sleep(mishap.moment * self._seconds)
        if process.poll() is not None:
            return
        process.send_signal(mishap.signal)
        with self._day.lock:
            self._day.signals[mishap.signal.name] += 1
        if mishap.signal is signal.SIGSTOP:
            time.sleep(self._stop_seconds)
            process.send_signal(signal.SIGCONT)
