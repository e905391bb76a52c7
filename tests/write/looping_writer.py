"""A writer that upserts again and again until a file is there, and prints each write; run as a module.

    python -m tests.write.looping_writer TABLE OPTIONS STOP NAME PARTITION

It begins when it is told to, by a line.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import drawstring
from tests.support.rows import rides
from tests.support.tables import WITHOUT_SERVICES


def main(uri: str, options: str, stop: str, name: str, partition: str) -> None:
    table = drawstring.open(uri, storage_options=json.loads(options))
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in itertools.count(1):
        if Path(stop).exists():
            return
        print(table.upsert(rides((name, partition, turn, 1.0)), options=WITHOUT_SERVICES).instant, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
