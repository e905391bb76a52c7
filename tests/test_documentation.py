"""What `help()` says of the public interface is complete, and its examples do what they say."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.testing import context_of

ROOT = Path(__file__).parents[1] / "src/drawstring"
FAILS_NEVER = {
    "Table.uri",
    "Table.holds.list",
    "Table.services.wait",
    "Table.services.validate",
}
FAILS_NEVER |= {"add_listener", "remove_listener"}
FAILS_NEVER |= {
    f"Table.{group}"
    for group in ("services", "indexes", "savepoints", "inspect", "holds", "columns", "versions")
}
"""What has no errors of its own to document."""

RIDES = pa.table(
    {"id": [1, 2, 3], "city": ["lima", "lima", "oslo"], "fare": [10.0, 20.0, 30.0], "ts": [1, 1, 1]}
)


@dataclass(frozen=True)
class Documented:
    """A public function, method or property.

    Attributes:
        name: as users know it.
        node: its definition.
    """

    name: str
    node: ast.FunctionDef

    @property
    def is_property(self) -> bool:
        return any(isinstance(each, ast.Name) and each.id == "property" for each in self.node.decorator_list)

    @property
    def doc(self) -> str:
        return ast.get_docstring(self.node) or ""

    @property
    def arguments(self) -> list[str]:
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return [each.arg for each in every if each is not None and each.arg != "self"]

    def section(self, title: str) -> str:
        """Return the text of a section, empty where there is none."""
        found = re.search(rf"^{title}:\n((?:[ \n].*\n?|\n)*)", self.doc, re.MULTILINE)
        return found[1] if found else ""


def functions_of(package: str) -> Iterator[Documented]:
    """Yield the public functions of a package, and the methods of `Table`."""
    prefix = f"{package}." if package else ""
    for name, module in rooms_of(ROOT / package / "__init__.py").items():
        tree = ast.parse((ROOT / package / f"{module.replace('.', '/')}.py").read_text())
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield Documented(f"{prefix}{name}", node)
            if isinstance(node, ast.ClassDef) and node.name == name == "Table":
                yield from methods_of(node, "Table")
                yield from grouped_methods(node)


def methods_of(node: ast.ClassDef, prefix: str) -> Iterator[Documented]:
    """Yield the public methods and properties of a class."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield Documented(f"{prefix}.{each.name}", each)


def grouped_methods(table: ast.ClassDef) -> Iterator[Documented]:
    """Yield the methods of the groups of `Table`, such as `Table.services.compact`."""
    groups = {
        ast.unparse(each.returns): each.name
        for each in table.body
        if isinstance(each, ast.FunctionDef) and each.returns is not None
    }
    for path in sorted((ROOT / "table_api").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name in groups:
                yield from methods_of(node, f"Table.{groups[node.name]}")


def rooms_of(path: Path) -> dict[str, str]:
    """Return the module of each public name."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("_ROOMS", "_MODULES"):
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise AssertionError(f"{path} says of no name where it is")


NAMED = re.compile(r"Table\.\w+")
PUBLIC = {each.name: each for package in ("", "spark") for each in functions_of(package)}
every_function = pytest.mark.parametrize("name", PUBLIC)


def test_the_interface_is_found() -> None:
    assert {"open", "create", "bootstrap", "use_allocator", "Table.upsert", "spark.write"} <= set(PUBLIC)
    methods = {name for name in dir(drawstring.Table) if not name.startswith("_")}
    assert {f"Table.{name}" for name in methods} == {name for name in PUBLIC if NAMED.fullmatch(name)}
    assert {"Table.services.compact", "Table.holds.list", "Table.inspect.files"} <= set(PUBLIC)


@every_function
def test_the_docstring_says_everything_by_itself(name: str) -> None:
    entry = PUBLIC[name]
    arguments = entry.section("Args")
    for argument in entry.arguments:
        assert re.search(rf"^\s+{argument}: \S", arguments, re.MULTILINE), f"{name} is silent on {argument}"
    returns = entry.node.returns
    assert returns is not None
    if not entry.is_property and ast.unparse(returns) != "None":
        assert entry.section("Returns"), f"{name} does not say what it returns"
    assert entry.section("Raises") or name in FAILS_NEVER, f"{name} does not say how it fails"
    assert not re.search(r"\b[Ss]ee `\w+`|[Aa]s (for|in|of) `\w+`", entry.doc), (
        f"{name} sends readers elsewhere"
    )


@every_function
def test_the_example_is_python(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(PUBLIC[name].section("Example"))
    assert examples
    for example in examples:
        compile(example.source, name, "single")


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("spark.")])
def test_the_example_does_what_it_says(name: str, restored: None) -> None:
    table = drawstring.create(
        "memory://rides",
        RIDES.schema,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
    )
    table.insert(RIDES)
    run(name, PUBLIC[name].section("Example"), {"table": table, "rides": RIDES})


def test_the_first_example_does_what_it_says(restored: None) -> None:
    run("Table", drawstring.Table.__doc__ or "", {})


@pytest.fixture
def restored() -> Iterator[None]:
    """Leave neither tables nor an allocator behind."""
    pool = pa.default_memory_pool()
    yield
    pa.set_memory_pool(pool)
    for table in ("memory://rides", "memory://trips"):
        try:
            context_of(drawstring.open(table)).storage.delete_tree("")
        except drawstring.InvalidError:
            continue


def run(name: str, text: str, given: dict[str, Any]) -> None:
    """Run the examples in a text."""
    names = {"drawstring": drawstring, "pa": pa, **given}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    told = StringIO()
    done = doctest.DocTestRunner(verbose=False).run(test, out=told.write)
    assert (done.failed, done.attempted > 0) == (0, True), told.getvalue()
