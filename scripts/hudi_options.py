"""List the options of real Hudi: the keys that the classes of its Spark bundle define.

    python scripts/hudi_options.py PATH_OF_THE_JAR > src/drawstring/config/keys/known_keys.txt

A key is a text constant, with two dots or more, of a class that builds a `ConfigProperty`. Keys that are put
together at run time are not found.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from collections.abc import Iterator

CONFIG_PROPERTY = "org/apache/hudi/common/config/ConfigProperty"
KEY = re.compile(r"hoodie(\.[A-Za-z0-9_-]+){2,}")
NO_KEYS = {"hoodie.properties.backup", "hoodie.properties.updated", "hoodie.table.service.manager"}
"""Names of files, and a prefix."""
_SIZES = (
    dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4)
    | {5: 8, 6: 8, 15: 3}
    | dict.fromkeys((7, 8, 16, 19, 20), 2)
)
"""Bytes of an entry of the constant pool by its tag, as in the specification of the Java virtual machine."""
_UTF8, _STRING, _WIDE = 1, 8, (5, 6)


def texts(data: bytes) -> tuple[set[str], set[str]]:
    """Return all texts of a class file's constant pool, and those that are constants of the program."""
    (count,) = struct.unpack_from(">H", data, 8)
    utf8: dict[int, str] = {}
    constants: list[int] = []
    at, number = 10, 1
    while number < count:
        tag = data[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", data, at + 1)
            utf8[number] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == _STRING:
                constants.append(struct.unpack_from(">H", data, at + 1)[0])
            at += 1 + _SIZES[tag]
        number += 2 if tag in _WIDE else 1
    return set(utf8.values()), {utf8[each] for each in constants}


def keys(jar: str) -> Iterator[str]:
    """Yield the keys that the classes of Hudi in a jar define."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("org/apache/hudi/") and name.endswith(".class"):
                everything, constants = texts(archive.read(name))
                if CONFIG_PROPERTY in everything:
                    yield from (each.lower() for each in constants if KEY.fullmatch(each))


if __name__ == "__main__":
    print("\n".join(sorted({*keys(sys.argv[1])} - NO_KEYS)))
