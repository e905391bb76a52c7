"""Storage options of a table in a Spark session, and the paths that Spark's own readers can open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.storage import is_storage_key

_HADOOP_KEYS: Final = (
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.path.style.access",
    "fs.s3a.connection.ssl.enabled",
)
_PREFIXES: Final = ("fs.s3a.", "spark.hadoop.fs.s3a.", "aws_")
_GLOB: Final = frozenset("*?[]{}\\")


def storage_options(
    spark: SparkSession, path: str, options: Mapping[str, Any], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the storage options of a table.

    Of several values for an option, that of the last source below applies.

    Args:
        spark: classic session; its Hadoop S3A settings are the first source.
        path: the table's root.
        options: options of the read or write; `fs.s3a.*`, `aws_*` and `drawstring.storage.*` among them are
            the second source. For local tables only `drawstring.storage.*` applies.
        given: explicit storage options, the third source.

    Raises:
        UnsupportedError: the table is in the memory of this process, which executors cannot read.
    """
    if path.startswith("memory:"):
        raise UnsupportedError(
            "Spark's executors cannot read a memory:// table. Use a folder, s3://, or the embedded engine.",
            table=path,
        )
    if not path.startswith(("s3:", "s3a:", "s3n:")):
        return {**{key: str(value) for key, value in options.items() if is_storage_key(key)}, **(given or {})}
    # Hadoop's own defaults, such as an empty endpoint, are ignored.
    settings = {key: value for key in _HADOOP_KEYS if (value := _set_by_user(spark, key))}
    settings |= {key: str(value) for key, value in options.items() if is_storage_option(key)}
    return {**settings, **(given or {})}


def is_storage_option(key: str) -> bool:
    """Return whether an option of a read or write is a storage option."""
    return key.lower().startswith(_PREFIXES) or is_storage_key(key)


def _set_by_user(spark: SparkSession, key: str) -> str | None:
    value = spark.sparkContext.getConf().get(f"spark.hadoop.{key}")
    return value or None


def spark_path(spark: SparkSession, uri: str) -> str | None:
    """Return the path by which Spark's own readers open a file, None if they cannot open it.

    Args:
        spark: the session; its Hadoop libraries determine which object stores it supports.
        uri: unescaped URI of the file, as `Storage.full_uri` returns it.
    """
    scheme = uri.partition("://")[0]
    if _GLOB.intersection(uri):
        return None
    if scheme == "file":
        return uri
    return uri if _has_file_system(spark, scheme) else None


def _has_file_system(spark: SparkSession, scheme: str) -> bool:
    jvm: Any = spark.sparkContext._jvm
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    try:
        getattr(jvm, "org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, hadoop)
    except Exception:
        return False
    return True
