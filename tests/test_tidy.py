"""The house rules that no other tool checks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import drawstring

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/drawstring").rglob("*.py"))
WRITTEN = [
    path
    for folder in ("src", "tests", "scripts", "demo", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != Path(__file__)
]
FILE_LINES_MAX = 1000
"""A file holds one concept, whatever its length. A file beyond this bound holds several."""

FUNCTION_LINES_MAX = 50
PRIVATE = re.compile(r"_[A-Za-z]\w*")
PRIVATE_ACCESSES_MAX, PRIVATE_PATCHES_MAX = 115, 34
"""Uses of private names in tests: a change only lowers these bounds."""

FOLDER_MODULES_MAX = 30
FACADE = tuple(
    name
    for name in (
        "src/drawstring/table.py",
        *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "src/drawstring/table_api").glob("*.py")),
    )
)
"""The calls on a table: each is a signature, a docstring that says everything by itself, and a few lines."""

FACADE_BODY_LINES_MAX = 10
INTERFACE = (
    *FACADE,
    *(
        f"src/drawstring/{name}.py"
        for name in ("entry", "creation", "bootstrapping", "ingestion/ingest", "spark/functions")
    ),
)
"""Where functions are that users call: what their docstrings say does not make them longer."""

PUBLIC_NAMES = [
    "CommitResult",
    "ConflictError",
    "CorruptTableError",
    "DrawstringError",
    "Event",
    "IngestProgress",
    "IngestResult",
    "InternalError",
    "InvalidError",
    "MeterListener",
    "Scan",
    "Table",
    "TableCatalog",
    "UnavailableError",
    "UnsupportedError",
    "add_listener",
    "bootstrap",
    "catalog",
    "create",
    "ingest",
    "open",
    "register_key_generator",
    "register_merger",
    "register_validator",
    "remove_listener",
    "use_allocator",
]

ONLY_IN = {
    "pyspark": ("spark",),
    "py4j": ("spark",),
    "pyarrow.parquet": ("formats",),
    "pyarrow.dataset": ("formats", "plugins"),
    "pyarrow.fs": ("storage", "formats"),
    "obstore": ("storage",),
    "cyclopts": ("cli",),
    "rich": ("cli",),
    "confluent_kafka": ("plugins",),
    "sqlalchemy": ("plugins",),
    "kazoo": ("plugins",),
    "lance": ("plugins",),
    "boto3": ("plugins",),
    "botocore": ("plugins",),
    "pymetastore": ("plugins",),
    "thrift": ("plugins",),
}
"""Modules that a room wraps for all others."""

VERSION_MODULES = {
    "src/drawstring/model/table_version.py": "the rules of the versions",
    "src/drawstring/services/upgrade.py": "the steps between versions",
}
"""Modules that know in what table versions and timeline layouts differ."""

VERSION_TESTS = {
    "layout != rules.layout.number": "the properties contradict each other",
    "version < NEWEST_VERSION": "text of an error",
    "version not in _CONTENT_VERSIONS": "of a log block's content",
    "version != FORMAT_VERSION": "of a log block",
    "version in _KRYO_VERSIONS": "of a delete block",
    "version not in (*_KRYO_VERSIONS, CONTENT_VERSION)": "of a delete block",
    "(version, kind) == (VERSION, MURMUR)": "of a bloom filter",
    "(version, kind) != (VERSION, MURMUR)": "of a bloom filter",
    "version != POSITION_VERSION": "of a reader's stored position",
    "version not in newest": "of a manifest",
    "_version(current) != version": "of a stored file",
    "str(file.version) != version": "of a stored file",
}
"""Comparisons of versions and layouts elsewhere, and what they are about."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


@cache
def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def test_no_file_is_longer_than_the_bound() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in WRITTEN}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}: {lines} lines"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := lines_of(node, name_of(path))) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_the_facade_hands_the_work_on() -> None:
    bodies = {
        (name, node.name): (node.end_lineno or 0) - max(docstring_end(node), node.body[0].lineno - 1)
        for name in FACADE
        for node in ast.walk(tree_of(ROOT / name))
        if isinstance(node, ast.FunctionDef)
    }
    assert [at for at, lines in bodies.items() if lines > FACADE_BODY_LINES_MAX] == []


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> int:
    """Return the lines of a function, without its docstring where users call it."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    start = node.body[0].lineno - 1
    return lines - max(0, docstring_end(node) - start) if file in INTERFACE else lines


def docstring_end(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the last line of a docstring, 0 where there is none."""
    return (node.body[0].end_lineno or 0) if ast.get_docstring(node) else 0


def test_work_left_for_later_names_its_issue() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
    found = [
        f"{name_of(path)}:{number}"
        for path in WRITTEN
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if later.search(line)
    ]
    assert found == []


def test_only_the_command_line_prints() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in SOURCES
        if "cli" not in path.parts
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_a_library_is_used_in_the_room_that_wraps_it() -> None:
    found = [
        f"{name_of(path)}: {name}"
        for path in SOURCES
        for name in imports_of(path)
        for module, rooms in ONLY_IN.items()
        if path.relative_to(ROOT / "src/drawstring").parts[0] not in rooms
        and (name == module or name.startswith(f"{module}."))
    ]
    assert found == []


def test_no_import_goes_in_a_circle() -> None:
    """Imports in functions and for type checkers count; the names of a package's facade do not."""
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts): path
        for path in SOURCES
        if path.name != "__init__.py"
    }
    TopologicalSorter({name: imports_of(path) & modules.keys() for name, path in modules.items()}).prepare()


def test_one_place_chooses_how_a_whole_table_is_listed() -> None:
    found = {
        name_of(path)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "StorageListing"
    }
    assert found == {"src/drawstring/filegroups/file_system_view.py"}


def test_nobody_outside_the_room_of_mergers_asks_for_a_class_of_merger() -> None:
    merging = ROOT / "src/drawstring/merge"
    classes = {
        f"{'.'.join(path.relative_to(ROOT / 'src').with_suffix('').parts)}.{node.name}"
        for path in merging.glob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Merger") and node.name != "Merger"
    }
    others = [path for path in SOURCES if merging not in path.parents]
    assert [f"{name_of(path)}: {name}" for path in others for name in imports_of(path) & classes] == []
    assert classes


def is_of_a_table(operand: ast.expr) -> bool:
    """Tell whether an expression is a number or an enum that table versions differ by."""
    text = ast.unparse(operand)
    return bool(re.search(r"(^|\.)(table_)?version$|(^|\.)layout$|(^|\.)(rules|layout)\.number$", text)) or (
        text.startswith(("LogFileAssignment.", "CommitEncoding.", "ArchiveFormat.", "LAYOUT_"))
    )


def version_tests(path: Path) -> set[str]:
    """Return the expressions of a module that decide by the version or layout of a table."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Match) and is_of_a_table(node.subject):
            found.add(f"match {ast.unparse(node.subject)}")
        if isinstance(node, ast.Compare) and "None" not in map(ast.unparse, node.comparators):
            operands = [each for side in (node.left, *node.comparators) for each in parts_of(side)]
            is_clustering = any(ast.unparse(each).startswith("Layout.") for each in operands)
            if any(map(is_of_a_table, operands)) and not is_clustering:
                found.add(ast.unparse(node))
    return found


def parts_of(side: ast.expr) -> list[ast.expr]:
    return side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def test_only_the_rules_of_versions_tell_versions_apart() -> None:
    found = {name_of(path): version_tests(path) for path in SOURCES}
    assert [name for name in VERSION_MODULES if name not in found] == []
    elsewhere = {name: tests for name, tests in found.items() if name not in VERSION_MODULES}
    assert {name: rest for name, tests in elsewhere.items() if (rest := tests - VERSION_TESTS.keys())} == {}
    assert VERSION_TESTS.keys() - set().union(*elsewhere.values()) == set()


def test_every_module_says_what_it_is_for() -> None:
    assert [name_of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))] == []


def test_no_folder_has_more_modules_than_the_bound() -> None:
    counts = Counter(name_of(path.parent) for path in SOURCES if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > FOLDER_MODULES_MAX} == {}


def test_completed_files_are_put_in_one_place() -> None:
    """No second function completes instants; `tests/timeline/test_one_completion.py` runs every action."""
    putting = {
        name_of(path)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("put", "put_if_absent", "put_if_match", "create")
        and any(
            isinstance(part, ast.Name) and part.id == "completed"
            for argument in node.args[:1]
            for part in ast.walk(argument)
        )
    }
    assert putting == {"src/drawstring/timeline/store.py"}


def test_every_folder_with_modules_is_a_package() -> None:
    # Import contracts do not see into a folder without __init__.py.
    assert [name_of(path) for path in SOURCES if not (path.parent / "__init__.py").exists()] == []


def test_no_module_imports_from_a_test_module_or_a_conftest() -> None:
    # The text and not its tree: tests hand programs to other processes as texts.
    private = re.compile(r"\b(test_\w+|conftest)\b")
    named = re.compile(r"\btests\.(\w+\.)*(test_\w+|conftest)\b")
    imported = re.compile(r"\bfrom\s+tests(?:\.\w+)*\s+import\s+(\([^)]*\)|[^\n]*)")
    found = []
    for path in WRITTEN:
        text = path.read_text()
        names = [match[0] for match in named.finditer(text)]
        names += [name for match in imported.finditer(text) for name in private.findall(match[1])]
        found += [f"{name_of(path)}: {name}" for name in names]
    assert found == [], "what several modules use belongs in tests/support"


def test_public_names_are_these() -> None:
    assert sorted(drawstring.__all__) == PUBLIC_NAMES
    assert all(hasattr(drawstring, name) for name in PUBLIC_NAMES)


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert drawstring.__version__ == project["version"]


def test_text_names_modules_and_functions_that_exist() -> None:
    root = ROOT / "src/drawstring"
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCES
    }
    rooms = {name.partition(".")[0] for name in modules if "." in name} - {"base", "spark"}
    missing = []
    for path in (*SOURCES, *sorted((ROOT / "docs").rglob("*.md"))):
        for match in re.finditer(rf"`((?:{'|'.join(rooms)})(?:\.\w+)+)(?:\(\))?`", path.read_text()):
            parts = match[1].split(".")
            known = [number for number in range(1, len(parts) + 1) if ".".join(parts[:number]) in modules]
            rest = parts[max(known, default=0) :]
            source = modules[".".join(parts[: max(known)])].read_text() if known else ""
            if rest and (
                len(known) == 1 or not re.search(rf"^\s*(?:def |class )?{rest[0]}\b", source, re.MULTILINE)
            ):
                missing.append(f"{name_of(path)}: {match[1]}")
    assert [each for each in missing if each != "docs/guides/ingest.md: schema.registry.url"] == []


def test_tests_reach_into_private_names_less_and_less() -> None:
    accesses = patches = 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                accesses += owner not in ("self", "cls")
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("setattr", "patch.object")):
                name = (
                    node.args[1].value
                    if len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
                    else ""
                )
                patches += bool(PRIVATE.fullmatch(str(name)))
    assert (accesses <= PRIVATE_ACCESSES_MAX, patches <= PRIVATE_PATCHES_MAX) == (True, True), (
        accesses,
        patches,
    )
