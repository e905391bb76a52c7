"""Compilation of Java source on the driver with Janino, which Spark ships for its generated code.

Java source is needed where Py4J does not suffice: for subclasses of abstract classes, and for loops with many
small calls, each of which would be a Py4J message. The classes exist on the driver only.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

CREATES: Final = """
    /** Calls the `apply` of a case class, with its defaults for arguments that are not given. */
    static Object create(Object companion, Object[] first, Map properties) throws Exception {
        Method[] methods = companion.getClass().getMethods();
        Method apply = null;
        for (int n = 0; n < methods.length; n++) {
            boolean longer = apply == null || methods[n].getParameterCount() > apply.getParameterCount();
            if (methods[n].getName().equals("apply") && longer) {
                apply = methods[n];
            }
        }
        Object[] all = new Object[apply.getParameterCount()];
        boolean used = properties == null;
        for (int n = 0; n < all.length; n++) {
            if (n < first.length) {
                all[n] = first[n];
            } else if (!used && apply.getParameterTypes()[n] == Map.class) {
                all[n] = properties;
                used = true;
            } else {
                all[n] = companion.getClass().getMethod("apply$default$" + (n + 1)).invoke(companion);
            }
        }
        return apply.invoke(companion, all);
    }
"""
"""A method for classes to compile that import `Method` and Scala's `Map`."""

_instances: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def compiled(spark: SparkSession, name: str, source: str) -> Any | None:
    """Return the single instance of a compiled class, None if this Spark cannot compile it.

    Args:
        spark: a classic session.
        name: name of the class, which has a constructor without arguments.
        source: Java source of the class.
    """
    gateway: Any = spark.sparkContext._gateway
    instances = _instances.setdefault(gateway, {})
    if name not in instances:
        try:
            instances[name] = _instance(gateway, name, source)
        except Py4JError:
            instances[name] = None
    return instances[name]


def _instance(gateway: Any, name: str, source: str) -> Any:
    """Compile a class and return an instance of it."""
    jvm = gateway.jvm
    compiler = getattr(jvm, "org.codehaus.janino.SimpleCompiler")()
    thread = getattr(jvm, "java.lang.Thread").currentThread()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(source)
    java_class = compiler.getClassLoader().loadClass(name)
    no_types = gateway.new_array(getattr(jvm, "java.lang.Class"), 0)
    return java_class.getConstructor(no_types).newInstance(
        gateway.new_array(getattr(jvm, "java.lang.Object"), 0)
    )
