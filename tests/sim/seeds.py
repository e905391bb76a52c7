"""Which lives are simulated, from the environment."""

from __future__ import annotations

import os

FIRST = int(os.environ.get("SIM_SEED", "0"))


SEEDS = int(os.environ.get("SIM_SEEDS", "3"))


STEPS = int(os.environ.get("SIM_STEPS", "12"))
