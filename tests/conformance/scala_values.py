"""Members of Scala's collections, texts and numbers, and of Spark's objects, for the interpreter.

Lists stand for sequences, arrays, sets and rows; None for `None` and `null`. An option with a value is the
value.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, DataFrameReader, DataFrameWriter, Row
from pyspark.sql.types import StructField, StructType

from tests.conformance.scala_parser import Long, Untranslated

Member = Callable[..., Any]


CONSTANTS: Final = {
    "COW_TABLE_TYPE_OPT_VAL": "COPY_ON_WRITE",
    "MOR_TABLE_TYPE_OPT_VAL": "MERGE_ON_READ",
    "QUERY_TYPE_SNAPSHOT_OPT_VAL": "snapshot",
    "QUERY_TYPE_READ_OPTIMIZED_OPT_VAL": "read_optimized",
    "QUERY_TYPE_INCREMENTAL_OPT_VAL": "incremental",
    "INCREMENTAL_FORMAT_CDC_VAL": "cdc",
    "INCREMENTAL_FORMAT_LATEST_STATE_VAL": "latest_state",
    "START_OFFSET": "hoodie.datasource.streaming.startOffset",
    "METAFOLDER_NAME": ".hoodie",
    "RECORD_KEY_METADATA_FIELD": "_hoodie_record_key",
    "PARTITION_PATH_METADATA_FIELD": "_hoodie_partition_path",
    "COMMIT_TIME_METADATA_FIELD": "_hoodie_commit_time",
    "FILENAME_METADATA_FIELD": "_hoodie_file_name",
    "OPERATION_METADATA_FIELD": "_hoodie_operation",
    "HOODIE_IS_DELETED_FIELD": "_hoodie_is_deleted",
    "DATA_BEFORE_AFTER": "data_before_after",
    "DATA_BEFORE": "data_before",
    "OP_KEY_ONLY": "op_key_only",
    "INIT_INSTANT_TS": "00000000000000",
    "TIMELINEFOLDER_NAME": "timeline",
}
"""Values of constants by their last name."""


class Later:
    """A value that is computed when it is used: a block in braces, or a function without parameters."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


class ByName(Later):
    """An argument of a by-name parameter, which functions hand on without computing it."""


class Unknown:
    """A name of the JVM that the interpreter does not know."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def constant(self) -> str | None:
        """The text that a constant of Hudi's or Java's classes stands for."""
        last = self.name.split(".")[-1]
        if last in CONSTANTS:
            return CONSTANTS[last]
        operation = re.fullmatch(r"(\w+)_(?:OPERATION_)?OPT_VAL", last)
        if operation is not None:
            return operation[1].lower()
        return last if re.fullmatch(r"[A-Z][A-Z0-9_]+", last) else None


class Missing:
    """The value of a statement that could not be translated."""


class ConfigKey(str):
    """The key of an option, which in Scala is an object with a key."""

    __slots__ = ()


class Folder:
    """A path, as `java.io.File` and Hadoop's `Path` have it."""

    def __init__(self, *parts: Any) -> None:
        self.path = os.path.join(*(re.sub("^file:", "", text_of(part)) for part in parts))


class Collected(list[Any]):
    """What a function made of the rows of a data frame: `collect` and `toDF` come after it."""


def text_of(value: Any) -> str:
    """Return a value as Scala writes it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Folder):
        return value.path
    if isinstance(value, Unknown) and value.constant is not None:
        return value.constant
    if isinstance(value, Missing | Unknown):
        raise Untranslated(f"text of {value!r}")
    if isinstance(value, list):
        return f"List({', '.join(map(text_of, value))})"
    return str(value)


def comparable(value: Any) -> Any:
    """Return a value in the form in which expected and found values are compared."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value)
        return "NaN" if math.isnan(number) else number
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(comparable(key)): comparable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(each) for each in value]
    if isinstance(value, Unknown) and value.constant is not None:
        return value.constant
    if isinstance(value, Missing | Unknown):
        raise Untranslated(f"answer {value!r}")
    if isinstance(value, StructField):
        return [value.name, value.dataType.simpleString()]
    if isinstance(value, StructType):
        return [comparable(each) for each in value.fields]
    if isinstance(value, datetime.datetime | datetime.date | str):
        return re.sub(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.0+$", r"\1", str(value))
    return str(value)


def _type_of(values: list[Any]) -> str:
    """Return the type of a column of Scala's values."""
    known = next((each for each in values if each is not None), "")
    if isinstance(known, list | tuple) and not isinstance(known, Row):
        return f"array<{_type_of(list(known))}>"
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "boolean"),
        (Long, "bigint"),
        (int, "int"),
        (float, "double"),
        (bytes, "binary"),
        (decimal.Decimal, "decimal(38,18)"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
    )
    return next((name for kind, name in kinds if isinstance(known, kind)), "string")


def plain(value: Any) -> Any:
    """Return a value of a type that PySpark knows."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return int(value) if isinstance(value, Long) else value


def data_frame(session: Any, rows: list[Any], names: list[str]) -> DataFrame:
    """Make a data frame of tuples, as `toDF` does."""
    columns = [each if isinstance(each, tuple) else (each,) for each in rows]
    count = len(columns[0]) if columns else len(names)
    names = names or ([f"_{n + 1}" for n in range(count)] if count > 1 else ["value"])
    types = [_type_of([row[n] for row in columns]) for n in range(count)]
    columns = [tuple(plain(value) for value in row) for row in columns]
    schema = ", ".join(f"`{name}` {kind}" for name, kind in zip(names, types, strict=True))
    frame: DataFrame = session.createDataFrame(columns, schema)
    return frame


def is_function(value: Any) -> bool:
    """Tell whether a value is a function of the tests. Rows and columns can be called in PySpark, too."""
    return callable(value) and not isinstance(value, type | Row | Column)


def forced(value: Any) -> Any:
    if isinstance(value, Later):
        return value.compute()
    return value() if is_function(value) else value


def items_of(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple | str | range | set):
        return list(value)
    if value is None:
        return []
    raise Untranslated(f"items of {type(value).__name__}")


def _is_same(left: Any, right: Any) -> bool:
    return bool(comparable(left) == comparable(right))


def _each(items: Iterable[Any], do: Callable[[Any], Any]) -> None:
    for item in items:
        do(item)


def _joined(items: Iterable[Any], *parts: str) -> str:
    start, between, end = parts if len(parts) == 3 else ("", parts[0] if parts else "", "")
    return start + between.join(map(text_of, items)) + end


def _first(items: list[Any], test: Callable[[Any], bool]) -> Any:
    return next((each for each in items if test(each)), None)


def _group(items: list[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _fold(items: list[Any], start: Any) -> Callable[[Callable[[Any, Any], Any]], Any]:
    def run(function: Callable[[Any, Any], Any]) -> Any:
        value = start
        for item in items:
            value = function(value, item)
        return value

    return run


_SAME: Final = (
    "toSeq",
    "toArray",
    "toList",
    "asScala",
    "toIterator",
    "iterator",
    "toSet",
    "asJava",
    "toIndexedSeq",
)
_SAME_STREAM: Final = (
    "stream",
    "collect",
    "collectAsList",
    "toStream",
    "toJavaRDD",
    "view",
    "getInstants",
    "par",
)
LISTS: Final[dict[str, Member]] = {
    **{name: lambda items, *_: items for name in (*_SAME, *_SAME_STREAM)},
    "foreach": _each,
    "forEach": _each,
    "map": lambda items, do: [do(each) for each in items],
    "flatMap": lambda items, do: [inner for each in items for inner in items_of(do(each))],
    "flatten": lambda items: [inner for each in items for inner in items_of(each)],
    "filter": lambda items, test: [each for each in items if test(each)],
    "filterNot": lambda items, test: [each for each in items if not test(each)],
    "exists": lambda items, test: any(test(each) for each in items),
    "anyMatch": lambda items, test: any(test(each) for each in items),
    "forall": lambda items, test: all(test(each) for each in items),
    "allMatch": lambda items, test: all(test(each) for each in items),
    "contains": lambda items, one: any(_is_same(each, one) for each in items),
    "indexOf": lambda items, one: next((n for n, each in enumerate(items) if _is_same(each, one)), -1),
    "length": len,
    "size": len,
    "head": lambda items: items[0],
    "headOption": lambda items: items[0] if items else None,
    "findFirst": lambda items: items[0] if items else None,
    "last": lambda items: items[-1],
    "lastOption": lambda items: items[-1] if items else None,
    "tail": lambda items: items[1:],
    "init": lambda items: items[:-1],
    "isEmpty": lambda items: not items,
    "nonEmpty": bool,
    "mkString": _joined,
    "toMap": dict,
    "sorted": sorted,
    "sortBy": lambda items, key: sorted(items, key=key),
    "sortWith": lambda items, before: sorted(items, key=_order(before)),
    "groupBy": _group,
    "zipWithIndex": lambda items: [(each, n) for n, each in enumerate(items)],
    "zip": lambda items, others: list(zip(items, others, strict=False)),
    "unzip": lambda items: tuple(map(list, zip(*items, strict=True))) or ([], []),
    "reverse": lambda items: items[::-1],
    "sum": sum,
    "max": max,
    "min": min,
    "maxBy": lambda items, key: max(items, key=key),
    "minBy": lambda items, key: min(items, key=key),
    "apply": lambda items, index: items[index],
    "get": lambda items, *index: items[index[0]] if index else items,
    "empty": lambda items: [],
    "distinct": lambda items: list(dict.fromkeys(items)),
    "take": lambda items, count: items[:count],
    "drop": lambda items, count: items[count:],
    "dropRight": lambda items, count: items[: len(items) - count],
    "slice": lambda items, start, end: items[start:end],
    "find": _first,
    "count": lambda items, *test: sum(1 for each in items if not test or test[0](each)),
    "equals": _is_same,
    "sameElements": _is_same,
    "foldLeft": _fold,
    "reduce": lambda items, do: _fold(items[1:], items[0])(do),
    "add": lambda items, one: items.append(one),
    "diff": lambda items, others: [each for each in items if each not in others],
    "intersect": lambda items, others: [each for each in items if each in others],
    "append": lambda items, one: items.append(one),
    "indices": lambda items: list(range(len(items))),
    "partition": lambda items, test: ([e for e in items if test(e)], [e for e in items if not test(e)]),
    "isDefined": lambda items: True,
    "isPresent": lambda items: True,
    "getOrElse": lambda items, *_: items,
    "orElse": lambda items, *_: items,
}
_GETTERS: Final = (
    "String",
    "Int",
    "Long",
    "Double",
    "Boolean",
    "Seq",
    "Struct",
    "Timestamp",
    "Date",
    "Map",
    "Float",
    "Decimal",
    "As",
    "List",
    "Byte",
    "Short",
)
ROWS: Final[dict[str, Member]] = {
    **{f"get{kind}": lambda row, index: row[index] for kind in _GETTERS},
    "get": lambda row, index: row[index],
    "apply": lambda row, index: row[index],
    "toSeq": list,
    "isNullAt": lambda row, index: row[index] is None,
    "mkString": _joined,
    "size": len,
    "length": len,
    "schema": lambda row: list(row.__fields__),
    "fieldIndex": lambda row, name: list(row.__fields__).index(name),
    "equals": lambda row, other: _is_same(list(row), list(other)),
    "anyNull": lambda row: any(each is None for each in row),
    "getValuesMap": lambda row, names: {name: row[name] for name in names},
}
MAPS: Final[dict[str, Member]] = {
    "get": lambda pairs, key: pairs.get(key),
    "getOrElse": lambda pairs, key, other=None: pairs[key] if key in pairs else forced(other),
    "getOrDefault": lambda pairs, key, other=None: pairs.get(key, other),
    "contains": lambda pairs, key: key in pairs,
    "containsKey": lambda pairs, key: key in pairs,
    "foreach": lambda pairs, do: _each(pairs.items(), do),
    "size": len,
    "keys": list,
    "keySet": list,
    "values": lambda pairs: list(pairs.values()),
    "apply": lambda pairs, key: pairs[key],
    "map": lambda pairs, do: _pairs([do(each) for each in pairs.items()]),
    "filter": lambda pairs, test: {key: each for key, each in pairs.items() if test((key, each))},
    "filterKeys": lambda pairs, test: {key: each for key, each in pairs.items() if test(key)},
    "mapValues": lambda pairs, do: {key: do(each) for key, each in pairs.items()},
    "toSeq": lambda pairs: list(pairs.items()),
    "toList": lambda pairs: list(pairs.items()),
    "toMap": dict,
    "asScala": dict,
    "asJava": dict,
    "mkString": lambda pairs, *parts: _joined([f"{k} -> {v}" for k, v in pairs.items()], *parts),
    "isEmpty": lambda pairs: not pairs,
    "nonEmpty": bool,
    "equals": _is_same,
    "put": lambda pairs, key, value: pairs.update({key: value}),
    "entrySet": lambda pairs: list(pairs.items()),
    "exists": lambda pairs, test: any(test(each) for each in pairs.items()),
    "forall": lambda pairs, test: all(test(each) for each in pairs.items()),
    "getString": lambda pairs, key, *other: pairs.get(text_of(key), *other),
    "getProperty": lambda pairs, key, *other: pairs.get(text_of(key), *other),
    "empty": lambda pairs: {},
    "remove": lambda pairs, key: pairs.pop(key, None),
    "find": lambda pairs, test: _first(list(pairs.items()), test),
    "updated": lambda pairs, key, value: {**pairs, key: value},
    "toArray": lambda pairs: list(pairs.items()),
    "getBoolean": lambda pairs, key, *other: str(pairs.get(text_of(key), *other)).lower() == "true",
}
TEXTS: Final[dict[str, Member]] = {
    "getName": lambda text: text,
    "getCanonicalName": lambda text: text,
    "getSimpleName": lambda text: text.split(".")[-1],
    "stripMargin": lambda text: "\n".join(re.sub(r"^[ \t]*\|", "", line) for line in text.split("\n")),
    "toString": str,
    "key": str,
    "trim": str.strip,
    "toInt": int,
    "toLong": int,
    "toDouble": float,
    "toBoolean": lambda text: text == "true",
    "equals": lambda text, other: text == text_of(other),
    "equalsIgnoreCase": lambda text, other: text.lower() == text_of(other).lower(),
    "contains": lambda text, part: text_of(part) in text,
    "startsWith": lambda text, part: text.startswith(text_of(part)),
    "endsWith": lambda text, part: text.endswith(text_of(part)),
    "split": lambda text, part: re.split(part, text) if len(part) > 1 else text.split(part),
    "toUpperCase": str.upper,
    "toLowerCase": str.lower,
    "toUpperCase()": str.upper,
    "replace": lambda text, old, new: text.replace(old, new),
    "replaceAll": lambda text, old, new: re.sub(old, new, text),
    "replaceFirst": lambda text, old, new: re.sub(old, new, text, count=1),
    "matches": lambda text, pattern: re.fullmatch(pattern, text) is not None,
    "length": len,
    "size": len,
    "isEmpty": lambda text: not text,
    "nonEmpty": bool,
    "substring": lambda text, start, end=None: text[start:end],
    "charAt": lambda text, index: text[index],
    "format": lambda text, *values: text % values,
    "indexOf": str.find,
    "lastIndexOf": str.rfind,
    "stripPrefix": str.removeprefix,
    "stripSuffix": str.removesuffix,
    "getBytes": lambda text, *_: text.encode(),
    "lines": str.splitlines,
    "compareTo": lambda text, other: (text > other) - (text < other),
    "head": lambda text: text[0],
    "last": lambda text: text[-1],
    "take": lambda text, count: text[:count],
    "drop": lambda text, count: text[count:],
    "get": lambda text: text,
    "isDefined": lambda text: True,
    "isPresent": lambda text: True,
    "concat": lambda text, other: text + other,
    "mkString": lambda text, *parts: text,
    "name": str,
    "value": str,
    "map": lambda text, do: do(text),
    "foreach": lambda text, do: do(text),
    "getOrElse": lambda text, *_: text,
    "orElse": lambda text, *_: text,
    "toList": list,
    "toSeq": list,
    "hashCode": hash,
    "compareToIgnoreCase": lambda text, other: (
        (text.lower() > other.lower()) - (text.lower() < other.lower())
    ),
    "toPath": Folder,
}
NUMBERS: Final[dict[str, Member]] = {
    "toString": text_of,
    **{
        name: lambda number: number
        for name in ("toDouble", "toFloat", "get", "abs", "longValue", "intValue", "versionCode")
    },
    "toLong": int,
    "toInt": int,
    "toShort": int,
    "toByte": int,
    "equals": _is_same,
    "to": lambda start, end: list(range(start, end + 1)),
    "until": lambda start, end: list(range(start, end)),
    "isDefined": lambda number: True,
    "isPresent": lambda number: True,
    "getOrElse": lambda number, *_: number,
    "doubleValue": float,
}
NOTHING: Final[dict[str, Member]] = {
    "isDefined": lambda _: False,
    "isPresent": lambda _: False,
    "isEmpty": lambda _: True,
    "nonEmpty": lambda _: False,
    "getOrElse": lambda _, other: forced(other),
    "orElse": lambda _, other: forced(other),
    "map": lambda _, do: None,
    "foreach": lambda _, do: None,
    "equals": lambda _, other: other is None,
    "toString": lambda _: "null",
    "asScala": lambda _: [],
    "toSeq": lambda _: [],
}
FOLDERS: Final[dict[str, Member]] = {
    **{
        name: lambda folder: folder.path
        for name in ("getCanonicalPath", "getAbsolutePath", "getPath", "toString", "toUri", "toURI")
    },
    "getName": lambda folder: os.path.basename(folder.path),
    "getParent": lambda folder: Folder(os.path.dirname(folder.path)),
    "exists": lambda folder: os.path.exists(folder.path),
    "isDirectory": lambda folder: os.path.isdir(folder.path),
    "listFiles": lambda folder: [Folder(folder.path, name) for name in sorted(os.listdir(folder.path))],
    "list": lambda folder: sorted(os.listdir(folder.path)),
    "mkdirs": lambda folder: os.makedirs(folder.path, exist_ok=True) or True,
    "mkdir": lambda folder: os.makedirs(folder.path, exist_ok=True) or True,
    "delete": lambda folder: shutil.rmtree(folder.path, ignore_errors=True) or True,
}
_FRAME_METHODS: Final = (
    "select",
    "drop",
    "orderBy",
    "sort",
    "limit",
    "distinct",
    "union",
    "withColumn",
    "groupBy",
    "cache",
    "repartition",
    "coalesce",
    "selectExpr",
    "unionAll",
    "withColumnRenamed",
    "join",
    "intersect",
    "persist",
    "unpersist",
    "inputFiles",
    "take",
    "createOrReplaceTempView",
    "isEmpty",
    "agg",
    "filter",
    "where",
)
FRAMES: Final[dict[str, Member]] = {
    **{name: lambda frame, *given, _name=name: getattr(frame, _name)(*given) for name in _FRAME_METHODS},
    "toDF": lambda frame, *names: frame.toDF(*names) if names else frame,
    "except": lambda frame, other: frame.subtract(other),
    "exceptAll": lambda frame, other: frame.exceptAll(other),
    "collect": lambda frame: frame.collect(),
    "collectAsList": lambda frame: frame.collect(),
    "count": lambda frame: frame.count(),
    "show": lambda frame, *_: frame.collect() and None,
    "head": lambda frame, *count: frame.head(*count),
    "first": lambda frame: frame.first(),
    "columns": lambda frame: list(frame.columns),
    "schema": lambda frame: frame.schema,
    "write": lambda frame: frame.write,
    "map": lambda frame, do: Collected(do(row) for row in frame.collect()),
    "foreach": lambda frame, do: _each(frame.collect(), do),
    "rdd": lambda frame: Collected(frame.collect()),
    "toJSON": lambda frame: Collected(frame.toJSON().collect()),
}
SCHEMAS: Final[dict[str, Member]] = {
    "fields": lambda schema: schema.fields,
    "size": lambda schema: len(schema.fields),
    "length": lambda schema: len(schema.fields),
    "fieldNames": lambda schema: list(schema.names),
    "names": lambda schema: list(schema.names),
    "apply": lambda schema, name: schema[name],
    "fieldIndex": lambda schema, name: schema.names.index(name),
    "json": lambda schema: schema.json(),
    "simpleString": lambda schema: schema.simpleString(),
    "equals": lambda schema, other: schema == other,
}
FIELDS: Final[dict[str, Member]] = {
    "name": lambda field: field.name,
    "dataType": lambda field: field.dataType.simpleString(),
    "nullable": lambda field: field.nullable,
    "metadata": lambda field: dict(field.metadata or {}),
    "getComment": lambda field: (field.metadata or {}).get("comment"),
    "_1": lambda field: field.name,
}
_SAVE_MODES: Final = {
    "Overwrite": "overwrite",
    "Append": "append",
    "ErrorIfExists": "error",
    "Ignore": "ignore",
}


def _with_options(target: Any, options: Any, *more: Any) -> Any:
    for key, value in options.items() if isinstance(options, Mapping) else (options, *more):
        target = target.option(text_of(key), text_of(value))
    return target


def _with_mode(writer: DataFrameWriter, mode: Any) -> DataFrameWriter:
    name = mode.name.split(".")[-1] if isinstance(mode, Unknown) else str(mode)
    return writer.mode(_SAVE_MODES.get(name, name))


def _texts(method: str) -> Member:
    return lambda target, *given: getattr(target, method)(*map(text_of, given))


READERS: Final[dict[str, Member]] = {
    "options": _with_options,
    "option": lambda target, key, value: target.option(text_of(key), text_of(value)),
    "mode": _with_mode,
    **{
        name: _texts(name)
        for name in (
            "format",
            "partitionBy",
            "parquet",
            "csv",
            "orc",
            "load",
            "save",
            "saveAsTable",
            "insertInto",
            "table",
        )
    },
    "schema": lambda target, schema: target.schema(schema),
    "json": lambda target, *given: _json(target, *given),
}
ERRORS: Final[dict[str, Member]] = {
    "getMessage": lambda error: str(error),
    "getCause": lambda error: error.__cause__,
    "printStackTrace": lambda error, *_: None,
    "toString": str,
}


def _json(target: Any, *given: Any) -> Any:
    if given and isinstance(given[0], list):
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        assert session is not None
        return target.json(session.sparkContext.parallelize([text_of(each) for each in given[0]]))
    return target.json(*map(text_of, given))


def _pairs(items: list[Any]) -> Any:
    return dict(items) if all(isinstance(each, tuple) and len(each) == 2 for each in items) else items


def _order(before: Callable[[Any, Any], bool]) -> Any:
    from functools import cmp_to_key

    return cmp_to_key(lambda a, b: -1 if before(a, b) else 1 if before(b, a) else 0)


_KINDS: Final[tuple[tuple[type | tuple[type, ...], dict[str, Member]], ...]] = (
    (DataFrame, FRAMES),
    ((DataFrameReader, DataFrameWriter), READERS),
    (Row, ROWS),
    (StructType, SCHEMAS),
    (StructField, FIELDS),
    (Folder, FOLDERS),
    (Mapping, MAPS),
    ((list, tuple, range), LISTS),
    (str, TEXTS),
    ((int, float, bool, decimal.Decimal), NUMBERS),
    (BaseException, ERRORS),
    (type(None), NOTHING),
)


def member(value: Any, name: str, given: list[Any]) -> Any:
    """Call a member of a value that is not an object of Hudi or of the session.

    Raises:
        Untranslated: the interpreter does not have it.
    """
    if name == "asInstanceOf" or (
        name == "get" and not given and not isinstance(value, Mapping | BaseException)
    ):
        return value
    if name == "getClass":
        return type(value).__name__
    if isinstance(value, tuple) and not isinstance(value, Row) and (number := re.fullmatch(r"_(\d)", name)):
        return value[int(number[1]) - 1]
    if isinstance(value, Column) or type(value).__name__ == "GroupedData":
        found = getattr(value, {"===": "__eq__"}.get(name, name), None)
        if found is None:
            raise Untranslated(f"Column.{name}")
        return found(*given)
    for kind, members in _KINDS:
        if isinstance(value, kind):
            if name in members:
                return members[name](value, *given)
            if kind is StructType and name in LISTS:
                return LISTS[name](list(value.fields), *given)
            if kind is Folder and name in TEXTS:
                return TEXTS[name](value.path, *given)
            break
    raise Untranslated(f"{type(value).__name__}.{name}")


def _binds(signature: inspect.Signature, *given: Any) -> bool:
    try:
        signature.bind(*given)
    except TypeError:
        return False
    return True


def takes_nothing(value: Any, name: str, given: list[Any]) -> bool:
    """Tell whether a member is a value, to which arguments are applied."""
    for kind, members in _KINDS:
        if isinstance(value, kind):
            if name not in members:
                return False
            try:
                signature = inspect.signature(members[name])
            except ValueError:
                return False
            return not _binds(signature, value, *given) and _binds(signature, value)
    return False


FUNCTIONS: Final[dict[str, Any]] = {
    name: getattr(F, name) for name in ("col", "lit", "expr", "struct", "array", "when")
}
