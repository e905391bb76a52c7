"""Lets the processes of Python that Spark starts in tests import PySpark as the driver does.

Spark puts its archives before everything else: modules from there are compiled anew in each process, and each
new worker reads the tables of contents of the archives again. An installed PySpark has the same modules.
"""

from __future__ import annotations

import sys

ARCHIVES = (".jar", ".zip")

sys.path[:] = [path for path in sys.path if not path.endswith(ARCHIVES)]
for path in [path for path in sys.path_importer_cache if path.endswith(ARCHIVES)]:
    del sys.path_importer_cache[path]

if sys.orig_argv[-1].endswith(".create_data_source"):  # no option names another daemon for those that plan
    from tests.support.spark_daemon import import_once

    import_once()
