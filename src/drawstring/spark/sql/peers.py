"""Python objects that the Java classes of SQL ask, and what travels between both.

Texts are JSON: one call of Py4J per object, whatever its size. A Python object that Java holds lives as long
as Java holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from drawstring.base.errors import DrawstringError
from drawstring.spark.engine.failures import serialized

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
