"""Apache Paimon's compaction on Spark. usage: services_paimon_jvm.py DATA WAREHOUSE JARS [PHASE]

A primary-key table is sorted by its key, so there is nothing to cluster.
"""

from __future__ import annotations

import sys

import paimon_jvm
from services import run

if __name__ == "__main__":
    run(lambda work: paimon_jvm.Peer(work, sys.argv[3]))
