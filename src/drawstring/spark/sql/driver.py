"""Installation of the SQL classes in Spark's driver.

    java/*.java ── Janino, which Spark ships ──> class files in a folder ──> class loader of the driver
    spark.sql.catalog.spark_catalog = drawstring.sql.HudiCatalog ── calls ──> Python, by Py4J

Spark parses, resolves and optimizes statements. The Java classes implement Spark's interfaces for catalogs,
tables and procedures, most of which are abstract classes or have default methods, so that Py4J proxies cannot
implement them. They decide nothing: each method asks a Python object (`peers`).
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

_JANINO: Final = "org.codehaus.janino."
_RESOURCE: Final = "org.codehaus.commons.compiler.util.resource."
_loaded: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def load(spark: SparkSession, peer: Any) -> bool:
    """Compile the classes and load them in the driver; once per gateway.

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
            _add_to_class_path(gateway.jvm, _compiled(gateway))
            java(spark, "HudiCatalog").setPeer(peer)
            _loaded[gateway] = True
        except (Py4JError, TypeError):  # a class that is missing is no callable
            _loaded[gateway] = False
    return _loaded[gateway]


def java(spark: SparkSession, name: str) -> Any:
    """Return one of the compiled classes."""
    return getattr(spark.sparkContext._jvm, f"drawstring.sql.{name}")


def _compiled(gateway: Any) -> Path:
    """Compile the sources into a folder, which is deleted when this process ends."""
    jvm = gateway.jvm
    loader = getattr(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    sources = [each for each in resources.files(__package__).joinpath("java").iterdir() if each.is_file()]
    array = gateway.new_array(getattr(jvm, f"{_RESOURCE}Resource"), len(sources))
    for number, source in enumerate(sorted(sources, key=lambda each: each.name)):
        array[number] = getattr(jvm, f"{_RESOURCE}StringResource")(source.name, source.read_text("utf-8"))
    no_sources = getattr(jvm, f"{_RESOURCE}ResourceFinder").EMPTY_RESOURCE_FINDER
    compiler = getattr(jvm, f"{_JANINO}Compiler")(
        no_sources, getattr(jvm, f"{_JANINO}ClassLoaderIClassLoader")(loader)
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


def _add_to_class_path(jvm: Any, folder: Path) -> None:
    loader = getattr(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    loader.addURL(getattr(jvm, "java.io.File")(f"{folder}/").toURI().toURL())


def refresh(spark: SparkSession, path: str | None) -> None:
    """Let what Spark has cached of a table show its rows of now.

    Args:
        spark: a classic session.
        path: path of the table; None for all tables.
    """
    if _loaded.get(spark.sparkContext._gateway):
        java(spark, "HudiCatalog").refresh(spark._jsparkSession, path)
