"""The tables of the suite of writers: what several processes commit to one table, and how long they wait."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from bench import peers
from bench.results import Measured, Results
from bench.tables import markdown

OWN = (peers.WRITERS_COW, peers.WRITERS_MOR, peers.WRITERS_NBCC)
PROCESSES = (1, 2, 4, 8)
SHARE_OF_CORES = 0.7
WORST_MAX = 10.0
ALONE_MAX = 1.1
"""What a commit of one writer beside others may take, for each second that it takes alone."""


def table(results: Results, peer: str) -> str:
    """Return a row for each scenario and number of processes; empty for the peers of other suites."""
    columns = ("commits/s", "rows/s", "median s", "worst s", "worst/median", "run again", "errors", "cpu s")
    rows = [
        [
            _title(scenario, told["processes"]) + _stopped(told),
            f"{_rate(told['commits'], seconds):.2f}",
            f"{_rate(told['rows'], seconds):,.0f}",
            *_waits(told),
            f"{told['again']:,}",
            f"{told['errors']:,}",
            "" if used is None else f"{used:.1f}",
        ]
        for scenario, seconds, used, told in _steps(results, peer)
    ]
    return markdown([peer, *columns], rows) if rows else ""


def _stopped(told: dict[str, Any]) -> str:
    """Return that processes were stopped, and after how many commits; empty if they ended by themselves."""
    limit = told.get("stopped_s")
    return "" if limit is None else f" (stopped after {limit} s, {told['commits']} commits)"


def _rate(count: int, seconds: float) -> float:
    """Return how many a second; 0 for none, also in no time: the warm-up had taken too long."""
    return count / seconds if count else 0.0


def _waits(told: dict[str, Any]) -> tuple[str, str, str]:
    """Return the median and the worst seconds of a commit, and their ratio; empty without a commit."""
    median, worst = told["median_s"], told["worst_s"]
    return (f"{median:.3f}", f"{worst:.3f}", f"{worst / median:.1f}") if told["commits"] else ("", "", "")


def aims(results: Results) -> str:
    """Return what drawstring wants of several writers, as far as this run can tell; empty when it cannot."""
    ours = [peer for peer in results.peers() if peer in OWN]
    found = [row for peer in ours for row in _aims_of(results, peer)]
    return markdown(("aim of several writers", "is", "wanted", "met"), found) if found else ""


def _aims_of(results: Results, peer: str) -> Iterator[tuple[str, ...]]:
    rates: dict[str, float] = {}
    for scenario, seconds, _, told in _steps(results, peer):
        if "stopped_s" in told:
            continue
        processes = told["processes"]
        rates[f"{scenario}_{processes}"] = told["commits"] / seconds
        if scenario == "overlap" and processes > 1:
            times = told["worst_s"] / told["median_s"]
            yield _aim(f"{peer}: worst/median, {_title(scenario, processes)}", times, WORST_MAX)
    cores = max(each for each in PROCESSES if each <= (os.cpu_count() or 1))
    if cores > 1 and {"disjoint_1", f"disjoint_{cores}"} <= rates.keys():
        times = rates[f"disjoint_{cores}"] / rates["disjoint_1"]
        title = f"{peer}: commits/s, {_title('disjoint', cores)} against 1"
        yield _aim(title, times, SHARE_OF_CORES * cores, at_least=True)
    yield from _allowed(peer, rates, cores)
    if {"alone_1", "disjoint_1"} <= rates.keys():
        times = rates["alone_1"] / rates["disjoint_1"]
        yield _aim(f"{peer}: seconds, optimistic against alone", times, ALONE_MAX)


def _allowed(peer: str, rates: Mapping[str, float], cores: int) -> Iterator[tuple[str, ...]]:
    """Yield what the machine allows to tables that share nothing, and one table's share of it; no aims."""
    apart = rates.get(f"apart_{cores}")
    if apart is not None and "disjoint_1" in rates:
        title = f"{peer}: commits/s, {_title('apart', cores)} against 1"
        yield title, f"{apart / rates['disjoint_1']:.2f}", "", ""
    if apart is not None and f"disjoint_{cores}" in rates:
        title = f"{peer}: commits/s, {_title('disjoint', cores)} against apart"
        yield title, f"{rates[f'disjoint_{cores}'] / apart:.2f}", "", ""


def _aim(what: str, times: float, wanted: float, *, at_least: bool = False) -> tuple[str, ...]:
    is_met = times >= wanted if at_least else times <= wanted
    bound = "at least" if at_least else "at most"
    return what, f"{times:.2f}", f"{bound} {wanted:.1f}", "yes" if is_met else "no"


def _steps(results: Results, peer: str) -> Iterator[tuple[str, float, float | None, dict[str, Any]]]:
    """Yield scenario, seconds, seconds of the processor, and what the processes told: of the median round."""
    rounds: dict[str, list[Measured]] = {}
    for one in results.steps:
        if one.peer == peer and isinstance(one.result, dict) and "again" in one.result:
            rounds.setdefault(one.step, []).append(one)
    for step, found in rounds.items():
        one = sorted(found, key=lambda each: each.seconds)[len(found) // 2]
        yield step.rpartition("_")[0], one.seconds, one.processor_seconds, one.result


def _title(scenario: str, processes: int) -> str:
    return f"{scenario}, {processes} process{'es' if processes > 1 else ''}"
