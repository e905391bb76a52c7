"""Ingest a table of a database, as HoodieStreamer's `JdbcSource` does. The source `jdbc` is a plug-in.

    checkpoint    the greatest value of a column, as text; the next batch has the rows with greater values.
                  Without a column every run has all rows, and the checkpoint stays

SQLAlchemy reads the table (`DatabaseTable`), with these Arrow types:

| type of SQL | column |
|---|---|
| SMALLINT, INTEGER | int, in SQLite long; INTEGER UNSIGNED long |
| BIGINT | long; BIGINT UNSIGNED decimal(20, 0) |
| NUMERIC(p, s) | decimal(p, s) of at most 38 digits; without digits decimal(38, 18), as Spark has it |
| REAL, DOUBLE | double |
| BOOLEAN, DATE, TIME | the same |
| BIT(n) of MySQL | boolean for one bit, otherwise long |
| TIMESTAMP | timestamp; without a time zone it is UTC |
| BLOB, BINARY, VARBINARY | binary |
| all others, arrays and JSON among them | string; bytes in these are refused |

SQLAlchemy rather than ADBC, which would return Arrow batches: it knows the dialects, addresses and columns of
all databases that have a driver in Python, and ADBC those of a few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError, UnavailableError, not_installed
from drawstring.base.resources import BATCH_ROWS
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.source_protocol import (
    Reading,
    Source,
    SourceBatch,
    SourceContext,
    SourceProvider,
)
from drawstring.ingestion.transformers.chain import read_text

_JDBC: Final = "jdbc:"
_DRIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "postgresql": ("psycopg", "psycopg2", "pg8000"),
    "mysql": ("pymysql", "mysqldb"),
    "mariadb": ("pymysql", "mariadb"),
    "sqlite": (),
}
"""Modules of Python for the databases of JDBC addresses, by the names that SQLAlchemy has for them."""

_SPARK_DECIMAL: Final = (38, 18)
_DIGITS_MAX: Final = 38
_WRONG_VALUE: Final = (ValueError, TypeError, ArithmeticError)
"""What SQLAlchemy and Arrow raise for a value that is not of the type of its column."""


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
            InvalidError: SQLAlchemy or the driver is not installed, the address is wrong, or there is no
                such table.
            UnavailableError: the database does not answer.
        """
        try:
            import sqlalchemy
        except ImportError as error:
            raise not_installed("A database needs SQLAlchemy", "jdbc") from error
        schema, _, plain = name.rpartition(".")
        address = _parsed(url)
        if user is not None:
            address = address.set(username=user)
        if password is not None:
            address = address.set(password=password)
        try:
            with _errors(name):
                engine = sqlalchemy.create_engine(address)
                columns = sqlalchemy.MetaData(schema=schema or None)
                table = sqlalchemy.Table(plain, columns, autoload_with=engine)
        except _WRONG_VALUE as error:
            raise InvalidError(
                f"The driver of the database does not take the address {_address_without_secrets(url)} of"
                f" table {name}:"
                f" {_error_text(error)}. Correct the parameters in hoodie.streamer.jdbc.url."
            ) from error
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

    def one(self, statement: Any, column: str | None = None) -> Sequence[Any]:
        """Return the only row of a statement.

        Args:
            statement: the statement.
            column: name of the column whose values are in the row.

        Raises:
            InvalidError: the value is not of the column's type.
        """
        try:
            with _errors(self.name), self.engine.connect() as connection:
                row: Sequence[Any] = connection.execute(statement).one()
                return row
        except _WRONG_VALUE as error:
            raise self._wrong(column, error) from error

    def rows(self, statement: Any) -> pa.RecordBatchReader:
        """Return the rows of a statement that selects all columns."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(statement))

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def _batches(self, statement: Any) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        try:
            for rows in self._partitions(statement):
                columns = zip(*rows, strict=True)
                yield pa.RecordBatch.from_arrays(
                    [self._array(values, field) for values, field in zip(columns, schema, strict=True)],
                    schema=schema,
                )
        except _WRONG_VALUE as error:
            raise self._wrong(self._unreadable(statement), error) from error

    def _partitions(self, statement: Any) -> Iterator[Sequence[Any]]:
        with _errors(self.name), self.engine.connect() as connection:
            streamed = connection.execution_options(stream_results=True, max_row_buffer=BATCH_ROWS)
            yield from streamed.execute(statement).partitions(BATCH_ROWS)

    def _unreadable(self, statement: Any) -> str | None:
        """Return the name of the first column that SQLAlchemy cannot read in the rows of a statement."""
        for column in self.table.c:
            try:
                for _ in self._partitions(statement.with_only_columns(column)):
                    pass
            except _WRONG_VALUE:
                return str(column.name)
        return None

    def _array(self, values: tuple[Any, ...], field: pa.Field) -> pa.Array:
        try:
            if pt.is_string(field.type):
                return pa.array([_text(each) for each in values], field.type)
            if pt.is_boolean(field.type):
                return pa.array([None if each is None else bool(each) for each in values], field.type)
            return pa.array(values, field.type)
        except _WRONG_VALUE as error:
            raise self._wrong(field.name, error) from error

    def _wrong(self, column: str | None, error: Exception) -> InvalidError:
        """Return the error of a value that is not of the type of its column."""
        if column is None:
            whose, kind = f"Table {self.name}", "value of their column's type"
        else:
            whose, kind = f"Column {column} of table {self.name}", str(self.schema.field(column).type)
        return InvalidError(
            f"{whose} has values that are no {kind}: {_error_text(error)}. Correct them, or make a"
            " view that casts the column, and ingest that."
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
            f"The address {_address_without_secrets(url)} is of a database that this release does not know."
            " Give"
            " hoodie.streamer.jdbc.url as SQLAlchemy's address, as in 'mssql+pyodbc://host/database'."
        )
    if not drivers:
        return f"{kind.lower()}:///{rest}"
    driver = next((each for each in drivers if find_spec(each) is not None), drivers[0])
    return f"{kind.lower()}+{driver}:{rest}"


def _parsed(url: str) -> Any:
    """Return an address as SQLAlchemy has it.

    Raises:
        InvalidError: it is none, or of a file that does not exist, which SQLite would create.
    """
    from sqlalchemy import exc, make_url

    try:
        address = make_url(address_of(url))
    except (exc.ArgumentError, ValueError):
        raise InvalidError(
            f"The address {_address_without_secrets(url)} cannot be parsed. Give hoodie.streamer.jdbc.url"
            " as in"
            " 'jdbc:postgresql://host:5432/database': the port is a number, and special characters of a"
            " password are percent-encoded."
        ) from None
    path = address.database or ":memory:"
    is_file = address.get_backend_name() == "sqlite" and path != ":memory:" and "uri" not in address.query
    if is_file and not Path(path).is_file():
        raise InvalidError(f"There is no SQLite database {path}. Correct hoodie.streamer.jdbc.url.")
    return address


def _address_without_secrets(url: str) -> str:
    """Return what an address begins with: the rest may have a password."""
    kind = re.match(r"(jdbc:)?[\w+-]*:", url, re.IGNORECASE)
    return f"{kind.group() if kind else ''}..."


def arrow_type(kind: Any, *, is_sqlite: bool) -> pa.DataType:
    """Return the Arrow type of a column.

    Args:
        kind: SQLAlchemy's type.
        is_sqlite: whether the database is SQLite, whose integers have 64 bits.
    """
    from sqlalchemy import types

    is_unsigned = bool(getattr(kind, "unsigned", False))
    if isinstance(kind, types.BigInteger):
        return pa.decimal128(20, 0) if is_unsigned else pa.int64()
    if isinstance(kind, types.Integer):
        is_long = is_sqlite or (is_unsigned and isinstance(kind, types.INTEGER))
        return pa.int64() if is_long else pa.int32()
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return _decimal(kind.precision, kind.scale or 0) if kind.precision else pa.decimal128(*_SPARK_DECIMAL)
    if _is_binary(kind):
        return pa.binary()
    if _is_bits_of_mysql(kind):
        return pa.bool_() if (kind.length or 1) == 1 else pa.int64()
    plain = {
        types.Float: pa.float64(),
        types.Boolean: pa.bool_(),
        types.DateTime: pa.timestamp("us", "UTC"),
        types.Date: pa.date32(),
        types.Time: pa.time64("us"),
    }
    return next((arrow for sql, arrow in plain.items() if isinstance(kind, sql)), pa.string())


def _decimal(precision: int, scale: int) -> pa.DataType:
    """Return the type of numbers with so many digits, as far as 38 go; others are refused when they come."""
    digits = max(precision - min(scale, 0), scale)
    return pa.decimal128(min(digits, _DIGITS_MAX), min(max(scale, 0), _DIGITS_MAX))


def _is_binary(kind: Any) -> bool:
    try:
        return bool(kind.python_type is bytes)
    except NotImplementedError:
        return False


def _is_bits_of_mysql(kind: Any) -> bool:
    from sqlalchemy.dialects.mysql import BIT

    return isinstance(kind, BIT)


def text_of_value(value: Any) -> str:
    """Return a value as Spark casts it to a string: the form of checkpoints; times are in UTC."""
    if isinstance(value, datetime):
        local = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        whole, point, fraction = str(local).partition(".")
        return whole + (point + fraction.rstrip("0")).rstrip(".")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


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


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=_plain) if isinstance(value, (dict, list)) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"it has {len(value)} bytes that are not declared as text")
    return str(value)


def _error_text(error: object) -> str:
    """Return the words of an error without a full stop."""
    return " ".join(str(error).split()).rstrip(".")


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
        told = _error_text(error.orig)
        raise UnavailableError(f"The database does not answer, or broke off: {told}. Try again.") from error
    except (exc.SQLAlchemyError, ModuleNotFoundError) as error:
        raise InvalidError(
            f"The database cannot be read: {_error_text(error)}. Correct the options, or install the driver."
        ) from error


LIMIT_ROWS: Final = 5_000_000


@dataclass(slots=True)
class JdbcSource:
    """The rows of a table.

    Attributes:
        table: the table.
        column: the column whose values grow; None to read all rows.
        clock: tells when all rows were read.
    """

    table: DatabaseTable
    column: str | None
    clock: Clock
    _is_read: bool = False

    @property
    def unit(self) -> str:
        return "rows"

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        key = checkpoint.key if checkpoint is not None else ""
        if self.column is None:
            return self._whole(key)
        column = self.table.column(self.column)
        last = self._value(key) if key else None
        size, left, end = self._found(column, last, LIMIT_ROWS if limit is None else limit)
        if end is None:
            return None
        read = partial(self._rows, column, last, end)
        return SourceBatch(Checkpoint(text_of_value(end)), size, left, read)

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the database keeps its rows."""

    def close(self) -> None:
        self.table.close()

    def _whole(self, key: str) -> SourceBatch | None:
        """Return all rows as one batch, once a run."""
        from sqlalchemy import func, select

        if self._is_read:
            return None
        self._is_read = True
        (size,) = self.table.one(select(func.count()).select_from(self.table.table))
        everything = select(self.table.table)
        checkpoint = Checkpoint(key, state=str(self.clock.now_ms()))
        return SourceBatch(checkpoint, size, 0, lambda _: self.table.rows(everything))

    def _found(self, column: Any, last: Any, limit: int) -> tuple[int, int, Any]:
        """Return the numbers of rows in a batch and after it, and the greatest value in it."""
        from sqlalchemy import func, select

        values = select(column).where(column.is_not(None) if last is None else column > last)
        taken = values.order_by(column).limit(limit).subquery()
        (end,) = self.table.one(select(func.max(taken.c[0])), column.name)
        if end is None:
            return 0, 0, None
        every = values.subquery()
        upto = func.count().filter(every.c[0] <= end)
        size, count = self.table.one(select(upto, func.count()).select_from(every))
        return size, count - size, end

    def _rows(self, column: Any, last: Any, end: Any, reading: Reading) -> pa.RecordBatchReader:
        """Return the rows up to a value; the first batch has those without a value as well."""
        from sqlalchemy import or_, select

        upto = or_(column <= end, column.is_(None)) if last is None else (column > last) & (column <= end)
        return self.table.rows(select(self.table.table).where(upto).order_by(column))

    def _value(self, text: str) -> Any:
        column = self.table.column(self.column or "")
        kind = self.table.schema.field(column.name).type
        try:
            return value_of_text(text, kind, has_zone=bool(getattr(column.type, "timezone", False)))
        except (ValueError, ArithmeticError) as error:
            raise InvalidError(
                f"The checkpoint {text!r} is no value of column {self.column} ({kind}): the rows came from"
                " another source. Give checkpoint, or ignore_checkpoint to begin with the whole table."
            ) from error


class Jdbc(SourceProvider):
    """The source `jdbc`."""

    def check(self, context: SourceContext) -> object:
        options = context.options
        needed = {"url": options.jdbc_url, "table.name": options.jdbc_table}
        if options.jdbc_is_incremental:
            needed["table.incr.column.name"] = options.jdbc_column
        missing = [f"hoodie.streamer.jdbc.{key}" for key, value in needed.items() if not value]
        if missing:
            raise InvalidError(f"The source has no database. Set {' and '.join(missing)}.")
        return None

    def make(self, context: SourceContext) -> Source:
        options = context.options
        password = options.jdbc_password
        if options.jdbc_password_file:
            password = read_text(options.jdbc_password_file).strip()
        table = DatabaseTable.of(
            options.jdbc_url or "", options.jdbc_user, password, options.jdbc_table or ""
        )
        column = options.jdbc_column if options.jdbc_is_incremental else None
        if column is not None:
            table.column(column)
        return JdbcSource(table, column, context.clock)
