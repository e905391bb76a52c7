"""A task of `killed_driver`, which it reads from its input; it prints its results. Run as a module.

python -m tests.write.killed_drivers_task FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import cloudpickle

from tests.support.lingering import install

if __name__ == "__main__":
    task, batches, context = cloudpickle.load(sys.stdin.buffer)
    install(Path(sys.argv[1]))
    cloudpickle.dump(list(task(iter(batches), context)), sys.stdout.buffer)
