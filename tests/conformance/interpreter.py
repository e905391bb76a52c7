"""Evaluates the tests of one file of Apache Hudi's SQL tests in a Spark session, and records their checks.

The interpreter leaves out a statement with Scala or a class that it lacks, and counts it. Names that the
statement defines are `Missing`, and so is all that needs them.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions

from tests.conformance import hudi_values
from tests.conformance.hudi_values import Session
from tests.conformance.scala_parser import Node, Parser, Untranslated, members
from tests.conformance.scala_values import (
    FUNCTIONS,
    ByName,
    ConfigKey,
    Folder,
    Later,
    Missing,
    Unknown,
    comparable,
    data_frame,
    forced,
    is_function,
    items_of,
    member,
    takes_nothing,
    text_of,
)

KEYS: Final[dict[str, str]] = json.loads(Path(__file__).with_name("option_keys.json").read_text())
"""Keys of options by class and constant."""

_BY_CONSTANT: Final = {name.split(".")[1]: key for name, key in KEYS.items()}
_TYPES: Final = {
    "IntegerType": "int",
    "StringType": "string",
    "LongType": "bigint",
    "DoubleType": "double",
    "FloatType": "float",
    "BooleanType": "boolean",
    "DateType": "date",
    "TimestampType": "timestamp",
    "BinaryType": "binary",
    "ShortType": "smallint",
    "ByteType": "tinyint",
}
_OF_HUDI_ONLY: Final = ("hoodie.payload.combined.schema.validate",)
"""Settings of tests that no class of Hudi 1.2.0 reads."""


class TimeOut(Exception):
    """A case took too long."""


class Returned(Exception):
    """A `return` of a function."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass
class Case:
    """A test of upstream as it ran here.

    Attributes:
        name: class and name of the test.
        statements: SQL statements that ran, and other writes.
        checks: outcome of each check: `right`, or a kind of difference with statement and rows.
        untranslated: why statements were left out.
        ended: why the case ended early, empty where it did not.
    """

    name: str
    statements: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    untranslated: list[str] = field(default_factory=list)
    ended: str = ""

    def record(self, kind: str, statement: str = "", **facts: Any) -> None:
        self.checks.append({"kind": kind, "at": len(self.statements), "sql": statement.strip(), **facts})


class Names(dict[str, Any]):
    """Names of a block, and those of the blocks around it."""

    def __init__(self, outer: Names | None = None) -> None:
        super().__init__()
        self.outer = outer

    def owner(self, name: str) -> Names | None:
        found: Names | None = self
        while found is not None and name not in found:
            found = found.outer
        return found

    def bound(self, name: str) -> Any:
        """Return the value of a name without computing it, None if there is none."""
        owner = self.owner(name)
        return None if owner is None else owner[name]


class Super:
    """The base class of the tests."""


def message_of(error: BaseException) -> str:
    return re.sub(r"\s+JVM stacktrace:.*", "", f"{type(error).__name__}: {error}", flags=re.DOTALL)[:900]


class Interpreter:
    """Runs the tests of files in one session.

    Attributes:
        spark: the session.
        case: the case that runs.
        is_spark_4: whether the session is of PySpark 4.
    """

    def __init__(self, spark: Any, folder: str) -> None:
        self.spark = spark
        self.folder = folder
        self.case = Case("")
        self.is_spark_4 = spark.version.startswith("4")
        self._numbers = itertools.count(1)
        self._registered: list[tuple[str, Callable[[], Any]]] = []
        self._classes: dict[str, str] = {}

    def cases(self, path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Return name and body of each test of a file, those that loops define too."""
        self._registered = []
        self.case = Case(path.stem)
        names = self._builtins()
        source = path.read_text()
        self._classes = _imported_classes(source)
        for text in members(source):
            try:
                self._evaluate(Parser(text).block_of_class(), names)
            except Untranslated as error:
                self._register_untranslated(text, str(error))
            except Exception as error:
                self.case.untranslated.append(message_of(error))
        yield from self._registered

    def _register_untranslated(self, text: str, why: str) -> None:
        named = re.match(r'\s*test\(\s*s?"((?:[^"\\]|\\.)*)"', text) or re.search(
            r"@Test[^d]*def (\w+)", text
        )
        if named:

            def body() -> None:
                raise Untranslated(why)

            self._registered.append((named[1], body))

    def run(self, name: str, body: Callable[[], Any]) -> Case:
        """Run a test and return its record."""
        self.case = case = Case(name)
        try:
            body()
        except Untranslated as error:
            case.untranslated.append(f"the rest: {error}")
        except TimeOut:
            case.ended = "time is over"
        except Exception as error:
            case.record("error", case.statements[-1] if case.statements else "", message=message_of(error))
        self._clean_up()
        return case

    def _clean_up(self) -> None:
        with suppress(Exception):
            for table in self.spark.sql("show tables in default").collect():
                kind = "view" if table.isTemporary else "table"
                with suppress(Exception):
                    self.spark.sql(f"drop {kind} if exists `{table.tableName}`")
            for row in self.spark.sql("set").collect():
                if row.key.startswith("hoodie."):
                    self.spark.conf.unset(row.key)
            self.spark.sql("use default")

    # ------------------------------------------------------------------ what tests call
    def sql(self, statement: str) -> Any:
        self.case.statements.append(statement.strip())
        return self.spark.sql(statement)

    def _builtins(self) -> Names:
        names = Names()
        names.update(_TYPES)
        names.update(FUNCTIONS)
        for name in ("Seq", "List", "Array", "Set", "Row", "IndexedSeq"):
            names[name] = lambda *items: list(items)
        names.update(
            spark=Session(self.spark, self.sql),
            Map=lambda *pairs: dict(pairs),
            Some=lambda value: value,
            Option=lambda value: value,
            Nil=[],
            test=self._test,
            generateTableName=Later(lambda: f"h{next(self._numbers)}_t"),
            withTempDir=self._with_folder,
            withSQLConf=self._with_settings,
            withSparkSqlSessionConfig=self._with_settings,
            withSparkSqlSessionConfigWithCondition=self._with_settings_if,
            withRecordType=lambda *_: forced,
            withRDDPersistenceValidation=forced,
            withTable=self._with_table,
            checkAnswer=lambda rows: lambda *expected: self._check_answer(rows, list(expected)),
            checkExceptionContain=self._check_refused,
            checkException=self._check_refused,
            checkExceptions=self._check_refused,
            checkNestedException=self._check_refused,
            checkNestedExceptionContains=self._check_refused,
            checkNestedExceptionContain=self._check_refused,
            checkExceptionMatch=self._check_refused,
            validateTableSchema=self._check_schema,
            validateTableConfig=self._check_properties,
            assertResult=self._assert_result,
            assertTrue=self._assert_true,
            assertFalse=lambda value, *_: self._assert_true(not forced(value)),
            assertEquals=lambda a, b, *_: self._assert_result(a)(b),
            assertThrows=self._intercept,
            intercept=self._intercept,
            assume=lambda *_: None,
            println=lambda *_: None,
            print=lambda *_: None,
            fail=lambda *why: self._accepted(text_of(why[0]) if why else ""),
            StructField=lambda name, kind, nullable=True, *_: (name, kind),
            StructType=lambda fields=(): list(fields),
            DecimalType=lambda precision=10, scale=0: f"decimal({precision},{scale})",
            getTableStoragePath=lambda name: f"{self.folder}/warehouse/{name}",
            existsPath=lambda path: Path(Folder(path).path).exists(),
            createMetaClient=lambda *given: hudi_values.MetaClient(Folder(given[-1]).path),
            getLastCommitMetadata=lambda *given: self._last_metadata(given[-1]),
            getLastCleanMetadata=lambda *given: self._last_metadata(given[-1], "clean"),
            initQueryIndexConf=lambda *_: None,
        )
        names["assert"] = self._assert_true
        names["super"] = Super()
        names["getClass"] = "Test"
        names["None"] = None
        return names

    def _test(self, name: str, *_: Any) -> Callable[[Any], None]:
        return lambda body: self._registered.append((name, lambda: forced(body)))

    def _last_metadata(self, path: Any, action: str = "") -> Any:
        timeline = hudi_values.timeline_of(text_of(path))
        if action:
            return hudi_values.metadata_of([each for each in timeline if each.action == action][-1])
        return timeline.member("getLastCommitMetadataWithValidData", [])[1]

    def _with_folder(self, body: Callable[[Folder], Any]) -> Any:
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            return body(Folder(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _with_settings(self, *pairs: Any) -> Callable[[Any], Any]:
        def run(body: Any) -> Any:
            with self._settings([pair for pair in pairs if isinstance(pair, tuple)]):
                return forced(body)

        return run

    def _with_settings_if(self, *pairs: Any) -> Callable[[Any], Any]:
        return self._with_settings(*(pair for pair, is_set in pairs if is_set))

    @contextmanager
    def _settings(self, pairs: list[tuple[Any, Any]]) -> Iterator[None]:
        before = {}
        for key, value in ((text_of(key), text_of(value)) for key, value in pairs):
            if key not in _OF_HUDI_ONLY:
                before[key] = self.spark.conf.get(key, None)
                self.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                with suppress(Exception):
                    self.spark.conf.unset(key) if value is None else self.spark.conf.set(key, value)

    def _with_table(self, name: str) -> Callable[[Any], Any]:
        def run(body: Any) -> Any:
            try:
                return forced(body) if isinstance(body, Later) else body(name)
            finally:
                with suppress(Exception):
                    self.spark.sql(f"drop table if exists {name} purge")

        return run

    def _check_answer(self, query: Any, expected: list[Any]) -> None:
        statement = query if isinstance(query, str) else "rows"
        wanted = [comparable(row) for row in expected]
        try:
            rows = self.sql(query).collect() if isinstance(query, str) else items_of(_collected(query))
        except (TimeOut, Untranslated):
            raise
        except Exception as error:
            self.case.record("error", statement, message=message_of(error))
            return
        found = [comparable(list(row)) for row in rows]
        is_right = sorted(map(_sortable, found)) == sorted(map(_sortable, wanted))
        self.case.record("right" if is_right else "wrong", statement, found=found[:12], wanted=wanted[:12])

    def _check_refused(self, statement: Any) -> Callable[..., None]:
        def check(message: Any = "", *_: Any) -> None:
            try:
                self.sql(statement) if isinstance(statement, str) else forced(statement)
            except (TimeOut, Untranslated):
                raise
            except Exception as error:
                self.case.record("refused", self._latest(statement), message=message_of(error)[:300])
                return
            self._accepted(text_of(forced(message)), statement)

        return check

    def _latest(self, statement: Any = None) -> str:
        if isinstance(statement, str):
            return statement
        return self.case.statements[-1] if self.case.statements else ""

    def _accepted(self, wanted: str, statement: Any = None) -> None:
        self.case.record("accepted", self._latest(statement), wanted=wanted[:300])

    def _intercept(self, *given: Any) -> Any:
        try:
            forced(given[-1])
        except (TimeOut, Untranslated):
            raise
        except Exception as error:
            self.case.record("refused", self._latest(), message=message_of(error)[:300])
            return error
        self._accepted("an exception")
        return Missing()

    def _assert_result(self, wanted: Any, *_: Any) -> Callable[..., None]:
        def check(found: Any, *_: Any) -> None:
            right, left = comparable(forced(wanted)), comparable(_listed(forced(found)))
            kind = "right" if right == left else "wrong"
            self.case.record(
                kind, f"assertResult after {self._latest()}", found=str(left)[:500], wanted=str(right)[:500]
            )

        return check

    def _assert_true(self, value: Any, *_: Any) -> None:
        found = forced(value)
        if not isinstance(found, bool):
            raise Untranslated(f"assert of {type(found).__name__}")
        self.case.record(
            "right" if found else "wrong", f"assert after {self._latest()}", found=found, wanted=True
        )

    def _check_schema(self, name: str, fields: list[Any]) -> None:
        kept = [each for each in self.spark.table(name).schema.fields if not each.name.startswith("_hoodie")]
        found = [(each.name, each.dataType.simpleString()) for each in kept]
        wanted = [tuple(each) for each in fields]
        kind = "right" if found == wanted else "wrong"
        self.case.record(kind, f"schema of {name}", found=str(found), wanted=str(wanted))

    def _check_properties(self, _: Any, path: Any, wanted: dict[Any, Any], absent: list[Any]) -> None:
        properties = hudi_values.properties_of(Folder(path).path)
        found = {text_of(key): properties.get(text_of(key)) for key in wanted}
        surplus = [text_of(key) for key in absent if text_of(key) in properties]
        right = {text_of(key): text_of(value) for key, value in wanted.items()}
        kind = "right" if found == right and not surplus else "wrong"
        self.case.record(kind, "table properties", found=f"{found} {surplus}", wanted=str(right))

    # ------------------------------------------------------------------ evaluation
    def _evaluate(self, node: Node, names: Names) -> Any:
        found: Callable[[Node, Names], Any] | None = getattr(self, f"_{node[0]}_node", None)
        if found is None:
            raise Untranslated(f"node {node[0]}")
        return found(node, names)

    def _statement_node(self, node: Node, names: Names) -> Any:
        try:
            return self._evaluate(node[1], names)
        except Untranslated as error:
            self.case.untranslated.append(str(error))
            if node[1][0] == "val":
                self._bind(node[1][1], Missing(), names)
            return Missing()

    def _block_node(self, node: Node, names: Names) -> Any:
        inner = Names(names)
        for statement in node[1]:
            if statement[1][0] == "def":
                self._evaluate(statement[1], inner)
        found = None
        for statement in node[1]:
            found = self._evaluate(statement, inner)
        return found

    def _class_node(self, node: Node, names: Names) -> Any:
        return self._classes.get(node[1], node[1])

    def _members_node(self, node: Node, names: Names) -> None:
        for statement in node[1]:
            if statement[0] == "val":
                self._bind_later(statement, names)
            else:
                self._evaluate(statement, names)

    def _bind_later(self, node: Node, names: Names) -> None:
        """Bind a value of a class: it is computed when the first test asks for it."""
        if node[1][0] != "name":
            self._evaluate(node, names)
            return
        name = node[1][1]

        def compute() -> Any:
            value = self._evaluate(node[2], names)
            names[name] = value
            return value

        names[name] = Later(compute)

    def _unit_node(self, node: Node, names: Names) -> None:
        return None

    def _literal_node(self, node: Node, names: Names) -> Any:
        return node[1]

    def _template_node(self, node: Node, names: Names) -> str:
        return "".join(text_of(self._evaluate(part, names)) for part in node[1])

    def _name_node(self, node: Node, names: Names) -> Any:
        name = node[1]
        owner = names.owner(name)
        if owner is None:
            if name.isupper() and name in _BY_CONSTANT:
                return ConfigKey(_BY_CONSTANT[name])
            if name[:1].isupper() or name in ("java", "org", "scala", "sparkContext"):
                return Unknown(name)
            if hasattr(functions, name):
                return getattr(functions, name)
            raise Untranslated(f"name {name}")
        value = owner[name]
        if isinstance(value, Missing):
            raise Untranslated(f"value of {name}")
        return value.compute() if isinstance(value, Later) else value

    def _val_node(self, node: Node, names: Names) -> None:
        self._bind(node[1], self._evaluate(node[2], names), names)

    def _set_node(self, node: Node, names: Names) -> None:
        owner = names.owner(node[1])
        if owner is None:
            raise Untranslated(f"assignment to {node[1]}")
        value = self._evaluate(node[3], names)
        owner[node[1]] = value if node[2] == "=" else _sum(owner[node[1]], value)

    def _def_node(self, node: Node, names: Names) -> None:
        _, name, parameters, body, lists = node

        def function(*given: Any) -> Any:
            if len(lists) > 1 and len(given) == lists[0]:
                return lambda *more: function(*given, *more)
            inner = Names(names)
            self._fill(parameters, given, inner)
            try:
                return self._evaluate(body, inner)
            except Returned as returned:
                return returned.value

        function.takes_names = True  # type: ignore[attr-defined]
        names[name] = function if parameters else Later(function)

    def _fill(self, parameters: list[tuple[str, Node | None]], given: tuple[Any, ...], names: Names) -> None:
        named = {each[1]: each[2] for each in given if _is_named(each)}
        placed = [each for each in given if not _is_named(each)]
        for index, (name, default) in enumerate(parameters):
            if name.startswith("*"):
                names[name[1:]] = list(placed[index:])
            elif index < len(placed):
                value = placed[index]
                names[name] = ByName(value.compute) if isinstance(value, Later) else value
            elif name in named:
                names[name] = named[name]
            elif default is not None:
                names[name] = self._evaluate(default, names)

    def _record_node(self, node: Node, names: Names) -> None:
        _, name, parameters = node

        def make(*given: Any) -> dict[str, Any]:
            fields = Names(names)
            self._fill(parameters, given, fields)
            return {each: fields[each] for each, _ in parameters if each in fields}

        make.takes_names = True  # type: ignore[attr-defined]
        names[name] = make

    def _return_node(self, node: Node, names: Names) -> Any:
        raise Returned(self._evaluate(node[1], names))

    def _if_node(self, node: Node, names: Names) -> Any:
        return self._evaluate(node[2] if _truth(self._evaluate(node[1], names)) else node[3], names)

    def _while_node(self, node: Node, names: Names) -> None:
        for _ in range(10_000):
            if not _truth(self._evaluate(node[1], names)):
                return
            self._evaluate(node[2], Names(names))
        raise Untranslated("a loop without an end")

    def _for_node(self, node: Node, names: Names) -> list[Any] | None:
        _, generators, body, yields = node
        found: list[Any] = []

        def go(index: int, inner: Names) -> None:
            if index == len(generators):
                found.append(self._evaluate(body, Names(inner)))
                return
            pattern, items = generators[index]
            for item in items_of(self._evaluate(items, inner)):
                deeper = Names(inner)
                self._bind(pattern, item, deeper)
                go(index + 1, deeper)

        go(0, names)
        return found if yields else None

    def _try_node(self, node: Node, names: Names) -> Any:
        _, body, cases, last = node
        try:
            return self._evaluate(body, names)
        except (TimeOut, Untranslated, Returned):
            raise
        except Exception as error:
            for pattern, _, then in cases or ():
                inner = Names(names)
                if pattern[0] == "name":
                    self._bind(pattern, error, inner)
                self.case.record("refused", self._latest(), message=message_of(error)[:300])
                return self._evaluate(then, inner)
            raise
        finally:
            if last:
                self._evaluate(last, names)

    def _throw_node(self, node: Node, names: Names) -> Any:
        raise RuntimeError("thrown by the test")

    def _function_node(self, node: Node, names: Names) -> Callable[..., Any]:
        _, patterns, body = node

        def function(*given: Any) -> Any:
            inner = Names(names)
            if len(patterns) > 1 and len(given) == 1:
                given = tuple(given[0])
            if len(patterns) == 1 and patterns[0][0] == "tuple":
                self._bind(patterns[0], given[0] if len(given) == 1 else given, inner)
            else:
                for pattern, value in zip(patterns, given, strict=False):
                    self._bind(pattern, value, inner)
            return self._evaluate(body, inner)

        return function

    def _later_node(self, node: Node, names: Names) -> Later:
        return Later(lambda: self._evaluate(node[1], Names(names)))

    def _match_node(self, node: Node, names: Names) -> Any:
        value = self._evaluate(node[1], names)
        for pattern, guard, body in node[2]:
            inner = Names(names)
            if self._bind(pattern, value, inner) and (guard is None or _truth(self._evaluate(guard, inner))):
                return self._evaluate(body, inner)
        raise Untranslated("no case of a match")

    def _tuple_node(self, node: Node, names: Names) -> tuple[Any, ...]:
        return tuple(self._evaluate(each, names) for each in node[1])

    def _not_node(self, node: Node, names: Names) -> bool:
        return not _truth(self._evaluate(node[1], names))

    def _negative_node(self, node: Node, names: Names) -> Any:
        return -self._evaluate(node[1], names)

    def _binary_node(self, node: Node, names: Names) -> Any:
        _, sign, first, second = node
        left = self._evaluate(first, names)
        if sign == "&&":
            return _truth(left) and _truth(self._evaluate(second, names))
        if sign == "||":
            return _truth(left) or _truth(self._evaluate(second, names))
        return _operate(sign, left, self._evaluate(second, names))

    def _new_node(self, node: Node, names: Names) -> Any:
        _, name, given = node
        values = [self._evaluate(each, names) for each in given]
        if name in ("File", "StoragePath", "Path"):
            return Folder(*values)
        if name == "TableIdentifier":
            return hudi_values.static(name, "apply", values)
        if name in ("HashMap", "TypedProperties", "Properties", "LinkedHashMap"):
            return dict(values[0]) if values and isinstance(values[0], dict) else {}
        if name in ("StructType", "ArrayList", "HashSet"):
            return items_of(values[0]) if values else []
        if name == "TableSchemaResolver":
            return hudi_values.TableSchema(values[0].path)
        if (owner := names.owner(name)) is not None and callable(owner[name]):
            return owner[name](*values)
        raise Untranslated(f"new {name}")

    def _named_node(self, node: Node, names: Names) -> Any:
        return ("named", node[1], self._evaluate(node[2], names))

    def _select_node(self, node: Node, names: Names) -> Any:
        return self._member(self._evaluate(node[1], names), node[2], [])

    def _call_node(self, node: Node, names: Names) -> Any:
        _, called, given = node
        values: list[Any] = []
        for each in given:
            if each[0] == "name" and isinstance(bound := names.bound(each[1]), ByName):
                values.append(bound)
            elif each[0] == "splat":
                values += items_of(self._evaluate(each[1], names))
            else:
                values.append(self._evaluate(each, names))
        if called[0] == "select":
            return self._member(self._evaluate(called[1], names), called[2], _placed(values))
        function = self._evaluate(called, names)
        return self._apply(function, values if hasattr(function, "takes_names") else _placed(values))

    def _apply(self, function: Any, values: list[Any]) -> Any:
        if isinstance(function, Later):
            function = function.compute()
        if isinstance(function, Unknown):
            return hudi_values.static(function.name.split(".")[-1], "apply", values)
        if is_function(function):
            return function(*values)
        if not values and not isinstance(function, list | dict):
            return function
        return self._member(function, "apply", values) if values else function

    def _member(self, value: Any, name: str, given: list[Any]) -> Any:
        if isinstance(value, Missing):
            raise Untranslated(f"member {name} of an unknown value")
        if isinstance(value, Unknown):
            return self._static(value, name, given)
        if isinstance(value, ConfigKey) and name == "defaultValue":
            raise Untranslated(f"default of {value}")
        if name in ("save", "saveAsTable", "insertInto"):
            self.case.statements.append(f"{name}({given})")
        if isinstance(value, Super):
            inherited = self._builtins()
            return self._apply(inherited[name], given) if name in inherited else None
        if name == "toDF" and isinstance(value, list):
            return data_frame(self.spark, value, [text_of(each) for each in given])
        if hasattr(value, "member"):
            try:
                return value.member(name, given)
            except Untranslated:
                if isinstance(value, list):
                    return member(list(value), name, given)
                raise
        if isinstance(value, dict) and name in value and not given:
            return value[name]
        if is_function(value):
            return self._member(value(), name, given) if name not in ("apply", "run") else value(*given)
        if given and takes_nothing(value, name, given):
            return self._apply(member(value, name, []), given)
        return member(value, name, given)

    def _static(self, owner: Unknown, name: str, given: list[Any]) -> Any:
        last = owner.name.split(".")[-1]
        if (key := KEYS.get(f"{last}.{name}")) is not None:
            return ConfigKey(key)
        if name.isupper() and last.endswith(("Config", "Options")) and name in _BY_CONSTANT:
            return ConfigKey(_BY_CONSTANT[name])
        if last == "HoodieSparkUtils" and name.startswith(("gteq", "isSpark", "isBelow")):
            return self._is_version(name)
        if last in ("Assertions", "HoodieSparkSqlTestBase", "SparkClientFunctionalTestHarness", "Predef"):
            names = self._builtins()
            if name in names:
                return self._apply(names[name], given) if given else names[name]
        if name in ("name", "toString", "value", "getValue", "key", "name()", "code"):
            return owner.constant or last
        if not given and (name[:1].isupper() or (owner.name[:1].islower() and owner.constant is None)):
            return Unknown(f"{owner.name}.{name}")
        return hudi_values.static(last, name, given)

    def _is_version(self, name: str) -> bool:
        if name == "isSpark3":
            return not self.is_spark_4
        if name == "isSpark4":
            return self.is_spark_4
        number = re.search(r"(\d)_?(\d)?", name)
        if number is None:
            raise Untranslated(name)
        asked = int(number[1]), int(number[2] or 0)
        major, minor, *_ = map(int, re.findall(r"\d+", self.spark.version))
        return (major, minor) < asked if name.startswith("isBelow") else (major, minor) >= asked

    def _bind(self, pattern: Node, value: Any, names: Names) -> bool:
        match pattern[0]:
            case "name":
                if pattern[1] not in ("_", "_placeholder"):
                    names[pattern[1]] = value
                elif pattern[1] == "_placeholder":
                    names["_placeholder"] = value
                return True
            case "literal":
                return text_of(value) == pattern[1]
            case "constant":
                wanted = self._evaluate(("name", pattern[1]), names)
                name = wanted.name if isinstance(wanted, Unknown) else wanted
                return text_of(value.name if isinstance(value, Unknown) else value) == text_of(name)
            case "either":
                return any(self._bind(each, value, names) for each in pattern[1:])
            case "tuple":
                if isinstance(value, Missing):
                    return all(self._bind(each, value, names) for each in pattern[1])
                items = list(value)
                return len(items) == len(pattern[1]) and self._bind_each(pattern[1], items, names)
            case "constructor" if pattern[1] in ("Seq", "Row", "Array", "List"):
                return self._bind_each(pattern[2], list(value), names)
            case "constructor" if pattern[1] == "Some":
                return value is not None and self._bind(pattern[2][0], value, names)
            case "constructor" if isinstance(value, dict):
                return self._bind_each(pattern[2], list(value.values()), names)
        raise Untranslated(f"pattern {pattern[1]}")

    def _bind_each(self, patterns: list[Node], items: list[Any], names: Names) -> bool:
        bound = [self._bind(each, item, names) for each, item in zip(patterns, items, strict=False)]
        return all(bound)


def _imported_classes(source: str) -> dict[str, str]:
    """Return the classes that a file imports, by their last name."""
    found = {}
    for package, several, one in re.findall(r"(?m)^import ([\w.]+)\.(?:\{([^}]*)\}|(\w+))", source):
        for name in (several or one).split(","):
            found[name.strip()] = f"{package}.{name.strip()}"
    return found


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and value[0] == "named"


def _placed(values: list[Any]) -> list[Any]:
    """Return arguments without their names, which only functions of the tests know."""
    return [each[2] if _is_named(each) else each for each in values]


def _collected(query: Any) -> Any:
    return query.collect() if hasattr(query, "collect") else query


def _listed(value: Any) -> Any:
    return list(value) if type(value).__name__ == "Row" else value


def _sortable(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Untranslated(f"truth of {type(value).__name__}")


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, str) or isinstance(right, str):
        return text_of(left) + text_of(right)
    if isinstance(left, dict):
        return {**left, **(right if isinstance(right, dict) else dict([right]))}
    return [*left, right] if isinstance(left, list) else left + right


_ORDERED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) else a / b,
    "%": lambda a, b: a % b,
    "to": lambda a, b: list(range(a, b + 1)),
    "until": lambda a, b: list(range(a, b)),
    ":+": lambda a, b: [*a, b],
    "::": lambda a, b: [a, *b],
    "->": lambda a, b: (a, b),
    "+": _sum,
    "++": lambda a, b: {**a, **b} if isinstance(a, dict) else [*items_of(a), *items_of(b)],
    "==": lambda a, b: comparable(_named_value(a)) == comparable(_named_value(b)),
    "!=": lambda a, b: comparable(_named_value(a)) != comparable(_named_value(b)),
}


def _named_value(value: Any) -> Any:
    return value.constant or value.name.split(".")[-1] if isinstance(value, Unknown) else value


def _operate(sign: str, left: Any, right: Any) -> Any:
    if sign not in _ORDERED:
        raise Untranslated(f"operator {sign}")
    try:
        return _ORDERED[sign](left, right)
    except TypeError as error:
        raise Untranslated(f"{sign}: {error}") from error
