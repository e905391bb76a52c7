"""What `import drawstring` loads, for every worker of a cluster pays for it."""

from __future__ import annotations

import subprocess
import sys


def test_the_query_parser_and_the_command_line_are_not_loaded_by_importing() -> None:
    program = "import sys, drawstring; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"sqlglot", "polars", "cyclopts", "rich", "pyspark"}.isdisjoint(loaded.stdout.split())
