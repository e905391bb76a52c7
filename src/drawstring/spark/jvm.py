"""Compile Java source on the driver, load the classes of the SQL catalog, and connect them to Python objects.

Janino, which Spark ships for its generated code, compiles the source. Java source is needed where Py4J does
not suffice: for subclasses of abstract classes, and for loops with many small calls, each of which would be
a Py4J message. The classes exist on the driver only.

    java/drawstring/reading/ ── Janino ──> a class loader that compiles a class when it is first used
    java/drawstring/sql/ ── Janino ──> class files in a folder ──> class loader of the driver
    spark.sql.catalog.spark_catalog = drawstring.sql.HudiCatalog ── calls ──> Python, by Py4J

Reads need few classes, and every session has them. Spark has to find those of SQL by name, and a registered
session has them. Janino supports Java without type arguments and lambda expressions.

Spark parses, resolves and optimizes statements. The Java classes implement Spark's interfaces for catalogs,
tables and procedures. Most of these are abstract classes or have default methods, so Py4J proxies cannot
implement them. The Java classes decide nothing: each method asks a Python object (`Peer`).

Java and Python exchange texts of JSON: one call of Py4J per object, whatever its size. A Python object that
Java holds lives as long as Java holds it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from drawstring.base.errors import DrawstringError
from drawstring.spark.workers.tasks import serialized

_JANINO: Final = "org.codehaus.janino."
_RESOURCE: Final = "org.codehaus.commons.compiler.util.resource."
_loaders: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_instances: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_loaded: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def java_sources(package: str) -> dict[str, str]:
    """Return the Java source of a package by its path, as in `drawstring/sql/HudiCatalog.java`.

    Args:
        package: `sql` or `reading`.
    """
    folder = resources.files(__package__).joinpath("java", "drawstring", package)
    files = sorted((each for each in folder.iterdir() if each.is_file()), key=lambda each: each.name)
    return {f"drawstring/{package}/{each.name}": each.read_text("utf-8") for each in files}


def reading_class(spark: SparkSession, name: str) -> Any:
    """Return a class of `drawstring.reading`; compile it, and the classes that it needs, on first use.

    Args:
        spark: a classic session.
        name: name of the class.

    Raises:
        Py4JError: this Spark cannot compile it.
    """
    gateway: Any = spark.sparkContext._gateway
    if gateway not in _loaders:
        jvm = gateway.jvm
        texts = {path: text.encode() for path, text in java_sources("reading").items()}
        sources = getattr(jvm, f"{_RESOURCE}MapResourceFinder")(texts)
        loader = getattr(jvm, f"{_JANINO}JavaSourceClassLoader")
        _loaders[gateway] = loader(_class_loader(jvm), sources, "UTF-8")
    return _loaders[gateway].loadClass(f"drawstring.reading.{name}")


def instance(spark: SparkSession, name: str) -> Any | None:
    """Return the single instance of a class of `drawstring.reading`, None if this Spark cannot compile it.

    Args:
        spark: a classic session.
        name: name of the class, which has a constructor without arguments.
    """
    gateway: Any = spark.sparkContext._gateway
    instances = _instances.setdefault(gateway, {})
    if name not in instances:
        try:
            no_types = gateway.new_array(getattr(gateway.jvm, "java.lang.Class"), 0)
            no_arguments = gateway.new_array(getattr(gateway.jvm, "java.lang.Object"), 0)
            constructor = reading_class(spark, name).getConstructor(no_types)
            instances[name] = constructor.newInstance(no_arguments)
        except Py4JError:
            instances[name] = None
    return instances[name]


def load(spark: SparkSession, peer: Any) -> bool:
    """Compile the classes of `drawstring.sql` and load them in the driver; once per gateway.

    Args:
        spark: a classic session.
        peer: the Python object that the catalog asks.

    Returns:
        Whether the driver has the classes; False if this Spark cannot compile or load them.
    """
    gateway: Any = spark.sparkContext._gateway
    if gateway not in _loaded:
        ensure_callback_server_started(gateway)
        try:
            _add_to_class_path(gateway.jvm, compiled_sql(spark))
            java(spark, "HudiCatalog").setPeer(peer)
            _loaded[gateway] = True
        except (Py4JError, TypeError):  # a class that is missing is no callable
            _loaded[gateway] = False
    return _loaded[gateway]


def java(spark: SparkSession, name: str) -> Any:
    """Return a class of `drawstring.sql`."""
    return getattr(spark.sparkContext._jvm, f"drawstring.sql.{name}")


def compiled_sql(spark: SparkSession) -> Path:
    """Compile the classes of `drawstring.sql` into a folder, which is deleted when this process ends.

    Args:
        spark: a classic session.

    Raises:
        Py4JError: this Spark cannot compile one of them.
    """
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.jvm
    sources = java_sources("sql")
    array = gateway.new_array(getattr(jvm, f"{_RESOURCE}Resource"), len(sources))
    for number, (path, text) in enumerate(sources.items()):
        array[number] = getattr(jvm, f"{_RESOURCE}StringResource")(path, text)
    no_sources = getattr(jvm, f"{_RESOURCE}ResourceFinder").EMPTY_RESOURCE_FINDER
    compiler = getattr(jvm, f"{_JANINO}Compiler")(
        no_sources, getattr(jvm, f"{_JANINO}ClassLoaderIClassLoader")(_class_loader(jvm))
    )
    classes = getattr(jvm, "java.util.HashMap")()
    compiler.setClassFileCreator(getattr(jvm, f"{_RESOURCE}MapResourceCreator")(classes))
    compiler.setTargetVersion(8)
    compiler.setSourceVersion(8)
    compiler.compile(array)
    folder = Path(tempfile.mkdtemp(prefix="drawstring-sql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in dict(classes).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(content))
    return folder


def _class_loader(jvm: Any) -> Any:
    return getattr(jvm, "java.lang.Thread").currentThread().getContextClassLoader()


def _add_to_class_path(jvm: Any, folder: Path) -> None:
    _class_loader(jvm).addURL(getattr(jvm, "java.io.File")(f"{folder}/").toURI().toURL())


def refresh(spark: SparkSession, path: str | None) -> None:
    """Let what Spark has cached of a table show its rows of now.

    Args:
        spark: a classic session.
        path: path of the table; None for all tables.
    """
    if _loaded.get(spark.sparkContext._gateway):
        java(spark, "HudiCatalog").refresh(spark._jsparkSession, path)


_sessions: WeakValueDictionary[str, SparkSession] = WeakValueDictionary()


class Peer:
    """A Python object that Java asks by the name of a question.

    Attributes:
        answers: functions of one argument, by question.
    """

    answers: Mapping[str, Callable[[Any], Any]]

    def apply(self, question: str, given: Any) -> Any:
        """Answer a question: with a text, a Java object, or the exception that Java is to throw."""
        try:
            return self.answers[question](given)
        except DrawstringError as error:
            return exception(serialized(error))
        except CapturedException as error:
            if error._origin is None:
                raise
            return error._origin

    class Java:
        """The Java interface, for Py4J."""

        implements = ("java.util.function.BiFunction",)


def exception(text: str) -> Any:
    """Return a Java exception with a text."""
    jvm: Any = SparkContext._jvm
    return getattr(jvm, "java.lang.RuntimeException")(text)


def session_of(session: Any) -> SparkSession:
    """Return the Python session of a Java session."""
    name = session.sessionUUID()
    known = _sessions.get(name)
    if known is None:
        context = SparkContext._active_spark_context
        assert context is not None
        known = _sessions[name] = SparkSession(context, session)
    return known
