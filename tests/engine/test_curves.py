"""Curves: bits in the order of values, whatever their type, and neighbours that stay neighbours."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.errors import InvalidError
from drawstring.services.clustering_task import curve, ordered_bits, ranks, sample_cuts


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([-(2**63), -5, 0, 3, 2**63 - 1], pa.int64()),
        ([-128, 0, 127], pa.int8()),
        ([-1e300, -2.5, -0.5, 0.0, 1e-9, 3.25, 1e300], pa.float64()),
        ([-2.5, 0.25, 7.0], pa.float32()),
        ([Decimal("-3.10"), Decimal("0.00"), Decimal("12.55")], pa.decimal128(10, 2)),
        ([dt.date(1960, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29)], pa.date32()),
        ([dt.datetime(1960, 1, 1), dt.datetime(2024, 2, 29, 12)], pa.timestamp("us")),
        ([False, True], pa.bool_()),
        (["", "a", "ab", "b", "é", "日本"], pa.string()),
        ([b"", b"\x00\x01", b"\x80", b"\xff"], pa.binary()),
    ],
)
def test_bits_are_in_the_order_of_the_values(values: list[Any], kind: pa.DataType) -> None:
    bits = ordered_bits(pa.array([None, *values], kind))
    assert bits[0] == 0
    assert bits[1:].tolist() == sorted(set(bits[1:].tolist()))
    sliced = ordered_bits(pa.array([values[0], *values], kind).slice(1))
    assert sliced.tolist() == bits[1:].tolist()


def test_values_without_an_order_are_refused() -> None:
    with pytest.raises(InvalidError, match="cannot be sorted"):
        ordered_bits(pa.array([[1]], pa.list_(pa.int64())))


def test_neighbours_on_a_hilbert_curve_are_neighbours_in_the_plane() -> None:
    x, y = (each.ravel() for each in np.meshgrid(np.arange(32), np.arange(32)))
    places = curve([ordered_bits(pa.array(x)), ordered_bits(pa.array(y))], hilbert=True)
    order = pc.sort_indices(places).to_numpy()
    steps = np.abs(np.diff(x[order])) + np.abs(np.diff(y[order]))
    assert set(steps.tolist()) == {1}


def test_a_z_order_takes_one_quarter_after_the_other_whatever_the_ranges_of_columns() -> None:
    x, y = (each.ravel() for each in np.meshgrid(np.arange(32), np.arange(32)))
    axes = [ordered_bits(pa.array(x)), ordered_bits(pa.array(y * 1e9 + 0.5))]
    axes = [ranks(bits, sample_cuts(bits)) for bits in axes]
    order = pc.sort_indices(curve(axes, hilbert=False)).to_numpy()
    quarter = order[:256]
    assert (np.ptp(x[quarter]), np.ptp(y[quarter])) == (15, 15)


def test_no_rows_have_no_places() -> None:
    nothing = ordered_bits(pa.nulls(0, pa.int64()))
    assert len(curve([nothing, nothing, nothing], hilbert=True)) == 0
