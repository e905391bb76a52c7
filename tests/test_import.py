"""What `import drawstring` loads: every process of a cluster pays for it."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

import drawstring
from drawstring import creation, entry, storage, table
from drawstring.base import java_compat, plugins
from drawstring.base.lazy import LazyImport
from drawstring.engine import local
from drawstring.txn import table_context


def loaded_by(program: str) -> set[str]:
    printed = f"import sys; {program}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", printed], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def imports_for_checkers(module: ModuleType) -> dict[str, Any]:
    """Return what a module imports for type checkers only."""
    checked = [
        each
        for each in ast.parse(inspect.getsource(module)).body
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"
    ]
    names: dict[str, Any] = {}
    for block in checked:
        imports = [each for each in block.body if isinstance(each, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), module.__name__, "exec"), names)
    return names


def test_the_query_parser_and_the_command_line_are_not_loaded_by_opening_tables() -> None:
    loaded = loaded_by("import drawstring; drawstring.open, drawstring.create")
    assert "drawstring.table" in loaded
    assert {"sqlglot", "polars", "cyclopts", "rich", "pyspark"}.isdisjoint(loaded)


def test_opening_a_table_loads_neither_pandas_nor_what_reads_writes_and_maintains_tables() -> None:
    loaded = loaded_by("import drawstring; drawstring.open, drawstring.create")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("drawstring.")}
    assert {"table", "timeline"} <= rooms
    assert {"write", "metadata", "filegroups", "index", "expressions"}.isdisjoint(rooms)
    assert {"drawstring.query.planner", "drawstring.services.clean"}.isdisjoint(loaded)
    assert {"pandas", "pyarrow.dataset", "pyarrow.parquet"}.isdisjoint(loaded)


def test_opening_a_local_table_loads_no_kernels_no_clients_of_stores_and_no_options_of_verbs(
    tmp_path: Path,
) -> None:
    drawstring.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id")
    loaded = loaded_by(f"import drawstring; drawstring.open({str(tmp_path / 't')!r})")
    assert {"drawstring.table", "drawstring.storage.local", "drawstring.engine.local"} <= loaded
    assert {"pyarrow.compute", "obstore", "drawstring.storage.memory"}.isdisjoint(loaded)
    assert {"drawstring.config.options.registry", "drawstring.config.keys.write"}.isdisjoint(loaded)


def test_what_a_verb_loads_later_is_what_type_checkers_see() -> None:
    for module in (creation, entry, java_compat, local, plugins, storage, table, table_context):
        defined = module.__dict__.copy()
        seen = {name: value for name, value in imports_for_checkers(module).items() if name in defined}
        assert seen
        for name, value in seen.items():
            found = defined[name]
            assert (found.load() if isinstance(found, LazyImport) else found) is value


def test_a_change_by_an_expression_loads_the_parser_before_it_takes_the_table_lock() -> None:
    from_plain = "MatchedRows('fare > 3').repeatable(); before = 'sqlglot' in sys.modules"
    from_text = "MatchedRows('fare > 3', {'fare': 'fare + 1'}).repeatable()"
    loading = f"from drawstring.write.update import MatchedRows; {from_plain}; {from_text}"
    loaded = loaded_by(f"{loading}; print(before)")
    assert {"False", "sqlglot"} <= loaded


def test_a_spark_worker_loads_what_moves_rows_and_not_the_verbs() -> None:
    loaded = loaded_by("import drawstring.spark.workers.tasks, drawstring.write.placement")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("drawstring.")}
    assert {"spark", "write", "filegroups", "formats"} <= rooms
    assert {"table", "services", "query", "txn", "entry", "creation", "cli"}.isdisjoint(rooms)


def test_every_public_name_is_there_and_is_listed() -> None:
    assert set(drawstring.__all__) <= set(dir(drawstring))
    for name in drawstring.__all__:
        assert inspect.isclass(getattr(drawstring, name)) or callable(getattr(drawstring, name))
    assert not hasattr(drawstring, "upsert")


def test_type_checkers_tell_of_misspelt_public_names() -> None:
    defined = {
        each.name
        for each in ast.parse(inspect.getsource(drawstring)).body
        if isinstance(each, ast.FunctionDef)
    }
    assert "__getattr__" not in defined, "to a checker a module with it has every name"
