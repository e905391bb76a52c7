"""Values that objects compute once, when they are asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251
else:

    class cached_property:
        """A property that is computed once; `functools.cached_property` without its lock.

        In Python 3.11 all objects of a class share that lock: while one reads its files for a value, threads
        that work on other tables wait. Two threads that ask one object at once may both compute the value.

        Args:
            function: computes the value of an object.
        """

        def __init__(self, function):
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = self.function(instance)
            return instance.__dict__.setdefault(self.name, value)


__all__ = ["cached_property"]
