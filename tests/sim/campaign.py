"""As many simulations of several writers as a time allows, with figures.

    python -m tests.sim.campaign --seed 50000 --seconds 1200 [--kind nonblocking] [--operations 8] [--stops]

Each seed is tried on all kinds of tables; it also draws who takes part. Failures are printed as they come.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from collections import Counter
from dataclasses import replace

from tests.support.simulation.writers.plans import KINDS, MORE_KINDS, STOPPED_AT, Report, drawn
from tests.support.simulation.writers.simulation import simulate


def main() -> None:
    """Run simulations until the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kind", default="", help="only kinds with this in their names")
    parser.add_argument("--operations", type=int, default=8, help="of each actor")
    parser.add_argument("--stops", action="store_true", help="also stop processes as they decide to commit")
    given = parser.parse_args()
    kinds = [each for each in (*KINDS, *MORE_KINDS) if given.kind in str(each)]
    plans = (drawn(kind, seed, given.operations) for seed in itertools.count(given.seed) for kind in kinds)
    if given.stops:
        plans = (replace(plan, stops_at=STOPPED_AT) for plan in plans)
    logging.disable()  # of failures that were meant
    end = time.monotonic() + given.seconds
    figures: Counter[str] = Counter()
    while time.monotonic() < end:
        plan = next(plans)
        figures["simulations"] += 1
        try:
            _add(figures, simulate(plan))
        except AssertionError as error:
            figures["failures"] += 1
            print(f"{plan}\n    {error}\n", flush=True)
    print(f"up to seed {plan.seed}: {dict(figures)}")


def _add(figures: Counter[str], report: Report) -> None:
    figures.update({"commits": report.commits, "calls": report.calls, **report.faults})
    figures.update(operations=sum(report.outcomes.values()))


if __name__ == "__main__":
    main()
