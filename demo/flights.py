"""The main job on real data: all flights from New York in 2013, into two Hudi tables.

    python -m demo [--engine spark|local|auto] [--batches 8] [--rows-share 0.1] [--keep FOLDER]

Exits with 1 when the tables are not what a plain computation over the source rows gives.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from demo import show
from demo.backend import Backend
from demo.landing import stage
from demo.pipeline import Pipeline, Verdict
from demo.source import MissingData, read_flights
from demo.tables import DELAYS, FLIGHTS
from scripts import jdk


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engine", choices=("spark", "local", "auto"), default="auto")
    parser.add_argument("--batches", type=_count, default=8, help="micro-batches of events")
    parser.add_argument("--rows-share", type=_share, default=1.0, help="part of the flights, for a quick run")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the tables in FOLDER")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Run the command line."""
    options = arguments(words)
    out = show.console()
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="drawstring-demo-") as folder:
            return run(options, Path(folder), out)
    if options.keep.exists() and any(options.keep.iterdir()):
        out.print(f"{options.keep} is not empty: give a new folder to --keep")
        return 2
    options.keep.mkdir(parents=True, exist_ok=True)
    return run(options, options.keep.resolve(), out)


def run(options: argparse.Namespace, folder: Path, out: Console) -> int:
    """Stage the data, run the pipeline, and tell what came out; return the exit code."""
    steps = show.Steps(out)
    try:
        with steps.step("read the flights of 2013 from New York") as step:
            flights = read_flights(options.rows_share)
            step.rows = flights.num_rows
    except MissingData as error:
        out.print(str(error))
        return 2
    with steps.step("stage the landing zone") as step:
        landing = stage(flights, folder / "landing", options.batches)
        step.rows = landing.events
    out.print(
        f"  {len(landing.batches)} batches of events; {landing.late:,} late ones and "
        f"{landing.duplicates:,} duplicates among them must lose"
    )
    with steps.step("start the engine"):
        backend = open_backend(options.engine, folder)
    out.print(f"  {backend.label}")
    try:
        pipeline = Pipeline(backend, folder, landing, steps)
        pipeline.run()
        verdicts = pipeline.verdicts(flights)
    finally:
        backend.close()
    return tell(out, folder, verdicts, steps.seconds)


def tell(out: Console, folder: Path, verdicts: list[Verdict], seconds: float) -> int:
    """Print results, timeline and files; return the exit code."""
    wrong = [verdict for verdict in verdicts if verdict.difference]
    rows = [(each.what, f"{each.rows:,}", each.difference or "equal, row by row") for each in verdicts]
    show.results(out, rows, ok=not wrong)
    show.timeline(out, str(folder / FLIGHTS.name))
    show.files(out, str(folder / FLIGHTS.name), with_names=True)
    show.files(out, str(folder / DELAYS.name), with_names=False)
    out.print("")
    if wrong:
        names = ", ".join(verdict.what for verdict in wrong)
        out.print(f"The result is wrong: {names}. {seconds:.0f} s in all.")
        return 1
    out.print(f"All results are right. {seconds:.0f} s in all.")
    return 0


def open_backend(engine: str, folder: Path) -> Backend:
    """Start the engine that was asked for; `auto` takes Spark if it can run here."""
    home = jdk.find() if engine != "local" else None
    if engine == "auto":
        engine = "spark" if home and importlib.util.find_spec("pyspark") else "local"
    if engine == "local":
        from demo.on_local import LocalBackend

        return LocalBackend(folder)
    if home is None:
        sys.exit(jdk.advice())
    os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers', where no environment is activated
    from demo.on_spark import SparkBackend

    return SparkBackend(folder)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("more than 0, at most 1")
    return value
