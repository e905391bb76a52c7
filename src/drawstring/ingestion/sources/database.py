"""A table of a database as SQLAlchemy reads it: its columns in Arrow's types, its rows in batches.

| type of SQL | column |
|---|---|
| SMALLINT, INTEGER | int, in SQLite long |
| BIGINT | long |
| NUMERIC(p, s) | decimal(p, s); without digits decimal(38, 18), as Spark has it |
| REAL, DOUBLE | double |
| BOOLEAN, DATE, TIME | the same |
| TIMESTAMP | timestamp; without a time zone it is UTC |
| BLOB | binary |
| all others, arrays and JSON among them | string |

SQLAlchemy rather than ADBC, which would hand over Arrow batches: it knows the dialects, addresses and columns
of all databases that have a driver in Python, and ADBC those of a few.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import InvalidError, UnavailableError, not_installed

_JDBC: Final = "jdbc:"
_DRIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "postgresql": ("psycopg", "psycopg2", "pg8000"),
    "mysql": ("pymysql", "mysqldb"),
    "mariadb": ("pymysql", "mariadb"),
    "sqlite": (),
}
"""Modules of Python for the databases of JDBC addresses, by the names that SQLAlchemy has for them."""

_SPARK_DECIMAL: Final = (38, 18)


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view.

    Attributes:
        engine: SQLAlchemy's, of the database.
        table: SQLAlchemy's, with its columns.
    """

    engine: Any
    table: Any

    @staticmethod
    def of(url: str, user: str | None, password: str | None, name: str) -> DatabaseTable:
        """Look a table up.

        Args:
            url: address as SQLAlchemy or JDBC has it.
            user: who logs in; None for the one in the address.
            password: of the user.
            name: of the table, with or without its schema.

        Raises:
            InvalidError: SQLAlchemy or the driver is not installed, or there is no such table.
            UnavailableError: the database does not answer.
        """
        try:
            import sqlalchemy
        except ImportError as error:
            raise not_installed("A database needs SQLAlchemy", "jdbc") from error
        schema, _, plain = name.rpartition(".")
        with _errors(name):
            address = sqlalchemy.make_url(address_of(url))
            if user is not None:
                address = address.set(username=user)
            if password is not None:
                address = address.set(password=password)
            engine = sqlalchemy.create_engine(address)
            columns = sqlalchemy.MetaData(schema=schema or None)
            table = sqlalchemy.Table(plain, columns, autoload_with=engine)
        return DatabaseTable(engine, table)

    @property
    def name(self) -> str:
        """The name of the table, with its schema if it was given."""
        return str(self.table.fullname)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        is_sqlite = self.engine.dialect.name == "sqlite"
        return pa.schema([(each.name, arrow_type(each.type, is_sqlite=is_sqlite)) for each in self.table.c])

    def column(self, name: str) -> Any:
        """Return a column of SQLAlchemy.

        Raises:
            InvalidError: there is none of the name, in upper or lower case.
        """
        found = [each for each in self.table.c if each.name == name] or [
            each for each in self.table.c if each.name.lower() == name.lower()
        ]
        if not found:
            names = ", ".join(each.name for each in self.table.c)
            raise InvalidError(f"Table {self.name} has no column {name}. It has {names}.")
        return found[0]

    def one(self, statement: Any) -> Sequence[Any]:
        """Return the only row of a statement."""
        with _errors(self.name), self.engine.connect() as connection:
            row: Sequence[Any] = connection.execute(statement).one()
            return row

    def rows(self, statement: Any) -> pa.RecordBatchReader:
        """Return the rows of a statement that selects all columns."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(statement))

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def _batches(self, statement: Any) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        with _errors(self.name), self.engine.connect() as connection:
            streamed = connection.execution_options(stream_results=True, max_row_buffer=BATCH_ROWS)
            for rows in streamed.execute(statement).partitions(BATCH_ROWS):
                columns = zip(*rows, strict=True)
                yield pa.RecordBatch.from_arrays(
                    [_array(values, field) for values, field in zip(columns, schema, strict=True)],
                    schema=schema,
                )


def address_of(url: str) -> str:
    """Return an address of SQLAlchemy for one of JDBC; others are that already.

    Raises:
        InvalidError: this release does not know the database of a JDBC address.
    """
    if not url.lower().startswith(_JDBC):
        return url
    kind, _, rest = url[len(_JDBC) :].partition(":")
    drivers = _DRIVERS.get(kind.lower())
    if drivers is None:
        raise InvalidError(
            f"The JDBC address {url!r} is of a database that this release does not know. Give"
            " hoodie.streamer.jdbc.url as SQLAlchemy's address, as in 'mssql+pyodbc://host/database'."
        )
    if not drivers:
        return f"{kind.lower()}:///{rest}"
    driver = next((each for each in drivers if find_spec(each) is not None), drivers[0])
    return f"{kind.lower()}+{driver}:{rest}"


def arrow_type(kind: Any, *, is_sqlite: bool) -> pa.DataType:
    """Return the Arrow type of a column.

    Args:
        kind: SQLAlchemy's type.
        is_sqlite: whether the database is SQLite, whose integers have 64 bits.
    """
    from sqlalchemy import types

    if isinstance(kind, types.BigInteger):
        return pa.int64()
    if isinstance(kind, types.Integer):
        return pa.int64() if is_sqlite else pa.int32()
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        digits = (kind.precision, kind.scale or 0) if kind.precision else _SPARK_DECIMAL
        return pa.decimal128(*digits)
    plain = {
        types.Float: pa.float64(),
        types.Boolean: pa.bool_(),
        types.DateTime: pa.timestamp("us", "UTC"),
        types.Date: pa.date32(),
        types.Time: pa.time64("us"),
        types.LargeBinary: pa.binary(),
    }
    return next((arrow for sql, arrow in plain.items() if isinstance(kind, sql)), pa.string())


def text_of_value(value: Any) -> str:
    """Return a value as Spark casts it to a string: the form of checkpoints; times are in UTC."""
    if isinstance(value, datetime):
        local = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        whole, point, fraction = str(local).partition(".")
        return whole + (point + fraction.rstrip("0")).rstrip(".")
    text = str(value)
    return format(value, "f") if isinstance(value, Decimal) else text


def value_of_text(text: str, kind: pa.DataType, *, has_zone: bool = False) -> Any:
    """Return the value of a text that `text_of_value` returned.

    Args:
        text: the text.
        kind: type of the column.
        has_zone: whether the database stores times of the column with a time zone.

    Raises:
        ValueError: it is none.
    """
    if pt.is_integer(kind):
        return int(text)
    if pt.is_timestamp(kind):
        return datetime.fromisoformat(text).replace(tzinfo=UTC if has_zone else None)
    if pt.is_date32(kind):
        return date.fromisoformat(text)
    if pt.is_decimal(kind):
        return Decimal(text)
    return float(text) if pt.is_floating(kind) else text


def _array(values: tuple[Any, ...], field: pa.Field) -> pa.Array:
    try:
        if pt.is_string(field.type):
            return pa.array([_text(each) for each in values], field.type)
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidError(
            f"Column {field.name} has values that are no {field.type}: {error}. Select it with a cast: make a"
            " view, and ingest that."
        ) from error


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)


@contextmanager
def _errors(name: str) -> Iterator[None]:
    """Translate the errors of a database.

    Raises:
        InvalidError: what was asked for makes no sense to it.
        UnavailableError: it does not answer, or broke the connection.
    """
    from sqlalchemy import exc

    try:
        yield
    except exc.NoSuchTableError as error:
        raise InvalidError(
            f"The database has no table {name}. Correct hoodie.streamer.jdbc.table.name."
        ) from error
    except (exc.OperationalError, exc.InterfaceError) as error:
        told = " ".join(str(error.orig).split())
        raise UnavailableError(f"The database does not answer, or broke off: {told}. Try again.") from error
    except (exc.SQLAlchemyError, ModuleNotFoundError) as error:
        told = " ".join(str(error).split())
        raise InvalidError(
            f"The database cannot be read: {told}. Correct the options, or install the driver."
        ) from error
