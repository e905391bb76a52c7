"""Java text for the driver, compiled by what Spark carries along for its own generated code.

For what Py4J cannot be: a subclass of an abstract class, and a loop that asks Java for a thousand small
things, each of which is a message otherwise. The classes live in the driver only.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_made: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def compiled(spark: SparkSession, name: str, source: str) -> Any | None:
    """Return the one object of a class, None where this Spark cannot compile it.

    Args:
        spark: a classic session.
        name: of the class, which has a constructor without arguments.
        source: its text.
    """
    gateway: Any = spark.sparkContext._gateway
    made = _made.setdefault(gateway, {})
    if name not in made:
        try:
            made[name] = _object(gateway, name, source)
        except Py4JError:
            made[name] = None
    return made[name]


def _object(gateway: Any, name: str, source: str) -> Any:
    """Compile a class and make an object of it."""
    jvm = gateway.jvm
    compiler = getattr(jvm, "org.codehaus.janino.SimpleCompiler")()
    thread = getattr(jvm, "java.lang.Thread").currentThread()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(source)
    made = compiler.getClassLoader().loadClass(name)
    none = gateway.new_array(getattr(jvm, "java.lang.Class"), 0)
    return made.getConstructor(none).newInstance(gateway.new_array(getattr(jvm, "java.lang.Object"), 0))
