"""List the options of real Hudi: class, key, default and alternative keys, as its classes define them.

    python scripts/hudi_options.py --libraries DIR --sources DIR JAR [JAR ...]
        > src/drawstring/config/options/hudi_options.tsv

The jars are those of Hudi: its Spark bundle, and `hudi-common` of a later release. A JDK loads their classes,
with what they need from the jars of `--libraries` (PySpark's folder `jars`), and asks each `ConfigProperty`.
Keys that are constants of such classes without being properties are read from the constant pools. Modules
that are in no jar (ingestion, AWS, Google Cloud) are read from `--sources`, a checkout of Hudi, as texts.
"""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

CONFIG_PROPERTY = "org/apache/hudi/common/config/ConfigProperty"
KEY = re.compile(r"hoodie(\.[A-Za-z0-9_-]+){2,}")
NO_KEYS = {"hoodie.properties.backup", "hoodie.properties.updated", "hoodie.table.service.manager"}
"""Names of files, and a prefix."""

MODULES = ("hudi-utilities", "hudi-aws", "hudi-gcp", "hudi-sync")
CONSTANT = re.compile(r'String\s+(\w+)\s*=\s*((?:"[^"]*"|\w+)(?:\s*\+\s*(?:"[^"]*"|\w+))*)\s*;')
PROPERTY = re.compile(r"\.key\(([^)]*)\)(.*?)(?=\.key\(|\Z)", re.DOTALL)
ALTERNATIVES = re.compile(r"\.withAlternatives\(([^)]*)\)")
DEFAULT = re.compile(r'\.defaultValue\(("[^"]*"|[\w.]+)\)')

_SIZES = (
    dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4)
    | {5: 8, 6: 8, 15: 3}
    | dict.fromkeys((7, 8, 16, 19, 20), 2)
)
"""Bytes of an entry of the constant pool by its tag, as in the specification of the Java virtual machine."""
_UTF8, _STRING, _WIDE = 1, 8, (5, 6)

ASKING = """
import java.io.File;
import java.lang.reflect.Field;
import java.net.*;
import java.util.*;

public class HudiOptions {
    /** Prints class, key, default and alternatives of the properties of the classes that a file names. */
    public static void main(String[] given) throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String path : given[0].split(File.pathSeparator)) urls.add(new File(path).toURI().toURL());
        ClassLoader parent = ClassLoader.getPlatformClassLoader();
        ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), parent);
        for (String name : java.nio.file.Files.readAllLines(new File(given[1]).toPath())) {
            try {
                Class<?> type = Class.forName(name, true, loader);
                for (Field field : type.getDeclaredFields()) {
                    if (!field.getType().getSimpleName().equals("ConfigProperty")) continue;
                    field.setAccessible(true);
                    boolean isStatic = java.lang.reflect.Modifier.isStatic(field.getModifiers());
                    Object owner = isStatic ? null : type.getField("MODULE$").get(null);
                    print(type, field.get(owner));
                }
            } catch (Throwable error) {
                System.err.println(name + ": " + error);
            }
        }
        System.exit(0);
    }

    static void print(Class<?> type, Object property) throws Exception {
        Class<?> c = property.getClass();
        boolean has = (Boolean) c.getMethod("hasDefaultValue").invoke(property);
        Object value = has ? c.getMethod("defaultValue").invoke(property) : "";
        List<?> others = (List<?>) c.getMethod("getAlternatives").invoke(property);
        StringJoiner also = new StringJoiner(",");
        for (Object each : others) also.add((String) each);
        System.out.println(String.join("\\t", type.getSimpleName().replace("$", ""),
            (String) c.getMethod("key").invoke(property), has ? "=" + value : "", also.toString()));
    }
}
"""


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


def classes(jar: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the classes of a jar that build properties, with the keys among their constants."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("org/apache/hudi/") and name.endswith(".class"):
                everything, constants = texts(archive.read(name))
                if CONFIG_PROPERTY in everything:
                    found = {each for each in constants if KEY.fullmatch(each)} - NO_KEYS
                    yield name.removesuffix(".class").replace("/", "."), found


def properties(names: list[str], jars: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield class, key, default and alternatives of the properties of classes, by a JVM that loads them."""
    with tempfile.TemporaryDirectory() as folder:
        source, listed = Path(folder, "HudiOptions.java"), Path(folder, "classes")
        source.write_text(ASKING)
        listed.write_text("\n".join(names))
        command = ["java", str(source), ":".join(jars), str(listed)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in printed.splitlines():
        if line.count("\t") == 3:
            yield tuple(line.split("\t"))


def written(root: Path) -> Iterator[tuple[str, ...]]:
    """Yield class, key, default and alternatives of the properties in the sources of modules."""
    files = [path for module in MODULES for path in sorted(root.glob(f"{module}/**/src/main/**/*.java"))]
    common = root / "hudi-common/src/main/java/org/apache/hudi/common"
    shared = (common / name for name in ("util/ConfigUtils.java", "config/LockConfiguration.java"))
    known = {key: value for path in shared for key, value in CONSTANT.findall(path.read_text())}
    for path in files:
        text = path.read_text()
        if "ConfigProperty" not in text:
            continue
        here = {**known, **dict(CONSTANT.findall(text))}
        for said, rest in PROPERTY.findall(text):
            key = _value(said, here)
            if key and KEY.fullmatch(key):
                default = DEFAULT.search(rest)
                also = ALTERNATIVES.search(rest)
                others = [_value(each, here) for each in also[1].split(",")] if also else []
                shown = f"={default[1].strip(chr(34))}" if default else ""
                yield path.stem, key, shown, ",".join(each for each in others if each)


def _value(said: str, known: dict[str, str]) -> str:
    """Return the text of an expression of texts and constants, empty if it has others."""
    parts = []
    for part in (each.strip() for each in said.split("+")):
        value = (
            part[1:-1]
            if part.startswith('"')
            else _value(known.get(part, ""), known)
            if part in known
            else ""
        )
        if not value:
            return ""
        parts.append(value)
    return "".join(parts)


def main() -> None:
    """Print the options, sorted by class and key."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--sources", required=True, type=Path)
    parser.add_argument("jars", nargs="+")
    given = parser.parse_args()
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    constants: dict[str, str] = {}
    libraries = [str(each) for each in sorted(Path(given.libraries).glob("*.jar"))]
    for jar in given.jars:
        of_jar = dict(classes(jar))
        for row in properties(sorted(of_jar), [jar, *given.jars, *libraries]):
            rows[row[0], row[1]] = row
        for name, found in of_jar.items():
            constants |= {key: name.rpartition(".")[2].rstrip("$") for key in found if key not in constants}
    for row in written(given.sources):
        rows.setdefault((row[0], row[1]), row)
    named = {key.lower() for row in rows.values() for key in (row[1], *row[3].split(","))}
    for key, name in constants.items():
        if key.lower() not in named and not any(each.startswith(f"{key.lower()}.") for each in named):
            rows[name, key] = (name, key, "", "")
    for row in sorted(rows.values()):
        print("\t".join(row).rstrip("\t"))


if __name__ == "__main__":
    main()
