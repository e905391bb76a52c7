"""Where workers are forked from in tests: a process that imported once what each of them needs."""

from __future__ import annotations

import gc
from importlib import import_module
from pkgutil import walk_packages

ROOMS = ("engine", "filegroups", "index", "merge", "query", "spark", "write")
"""Rooms whose functions run in workers; they import the others."""


def import_once() -> None:
    """Import what workers use; their garbage collection passes it over."""
    for name in ("pandas", "pyspark.worker"):
        import_module(name)
    for room in ROOMS:
        for module in walk_packages(import_module(f"drawstring.{room}").__path__, f"drawstring.{room}."):
            import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    import_once()
    daemon.manager()
