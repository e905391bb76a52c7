"""Damaged bytes: what falls out of a broken disk, a cut transfer or a hostile hand."""

from __future__ import annotations

from random import Random

_EDGES = (b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff" * 8, b"\xfe\xff\xff\xff\x0f")


def damaged(data: bytes, rng: Random) -> bytes:
    """Return the bytes with one to four damages."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice((_flip, _flip, _flip, _edge, _cut, _drop, _double))(data, rng)
    return data


def _flip(data: bytes, rng: Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _edge(data: bytes, rng: Random) -> bytes:
    at, edge = rng.randrange(len(data) + 1), rng.choice(_EDGES)
    return data[:at] + edge + data[at + len(edge) :]


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _drop(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(1, 32) :]


def _double(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at : at + rng.randrange(1, 64)] * 2 + data[at:]
