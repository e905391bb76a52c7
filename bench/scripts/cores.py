"""drawstring in the suite `tpch` on some of the machine's cores. usage: cores.py DATA TABLE mor|cow CORES"""

from __future__ import annotations

import os

import pyarrow as pa
from lineitem import Facts, run
from lineitem_local import Peer
from local_tables import table_of
from ride import arguments
from shapes import LINEITEM


def confine(cores: int) -> None:
    """Let this process run on some cores only, with as many threads of Arrow."""
    if not hasattr(os, "sched_setaffinity"):
        raise SystemExit("The suite cores needs Linux: elsewhere a process cannot be kept to some cores.")
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < cores:
        raise SystemExit(f"There are {len(mine)} cores, not {cores}.")
    os.sched_setaffinity(0, mine[:cores])
    pa.set_cpu_count(cores)


def main() -> None:
    data, folder, (kind, cores) = arguments()
    confine(int(cores))
    facts = Facts.load(data)
    run(Peer(table_of(folder, LINEITEM, ["drawstring", kind]), facts), facts, folder)


if __name__ == "__main__":
    main()
