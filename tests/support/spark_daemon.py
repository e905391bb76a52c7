"""Where workers are forked from in tests: a process that imported once what each of them needs."""

from __future__ import annotations

import pandas  # noqa: F401
from pyspark import daemon

import drawstring.spark  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
