"""Columns of an open table: `table.columns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from drawstring.base.lazy import lazy_import
from drawstring.table_api.calls import Options, TableGroup

if TYPE_CHECKING:
    from drawstring.config.options.write_options import options_of
    from drawstring.model.result import CommitResult
    from drawstring.schema import internal_schema
    from drawstring.services.alter import alter_columns
    from drawstring.services.table_services import after_commit
    from drawstring.timeline.schema import table_comments
else:
    lazy_import(
        globals(),
        after_commit="drawstring.services.table_services:after_commit",
        table_comments="drawstring.timeline.schema:table_comments",
        alter_columns="drawstring.services.alter:alter_columns",
        options_of="drawstring.config.options.write_options:options_of",
        internal_schema="drawstring.schema.internal_schema",
    )


class TableColumns(TableGroup):
    """The columns of a table: changes of its schema, and comments."""

    __slots__ = ()

    def add(
        self,
        name: str,
        type: pa.DataType,
        *,
        first: bool = False,
        after: str | None = None,
        comment: str | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add a column, which is null in the rows that are there, in a commit without rows.

        This and the other changes of columns need schema on read: files stay as they are, and columns are
        found in them by ids, so Apache Hudi reads the table right with `hoodie.schema.on.read.enable=true`
        only. A column at the end needs no such call: write rows that have it.

        Args:
            name: of the column; `"st.a"` is field a of the struct st, `"l.element.a"` of the items of a list,
                `"m.value.a"` of the values of a map.
            type: its type.
            first: whether it comes before all others.
            after: the column that it comes after; the last one by default.
            comment: what it means, for people.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is such a column, the name is one of the table format, or there is no column
                of the name in `after`.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.columns.add("note", pa.string(), after="city")
            >>> table.schema.names
            ['id', 'city', 'note', 'fare', 'ts']
        """
        place = internal_schema.place_of(first, after)
        told = [internal_schema.commented(name, comment)] if comment else []
        return self._alter([internal_schema.added(name, type, place), *told], options)

    def comment(self, name: str, comment: str | None, *, options: Options = None) -> CommitResult:
        """Say what a column means, in a commit without rows.

        The comment is the `doc` of the column in the schema of the table: `table.columns.comments` and
        `DESCRIBE` in SQL show it. It stays with the column when other columns change, and when it is renamed.

        Args:
            name: of the column, with dots for a field of a struct.
            comment: its comment, for people; None takes it away.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or it has this comment already.

        Example:
            >>> result = table.columns.comment("fare", "in euros, tip included")
            >>> table.columns.comments
            {'fare': 'in euros, tip included'}
        """
        return self._alter([internal_schema.commented(name, comment)], options)

    def rename(self, name: str, new_name: str, *, options: Options = None) -> CommitResult:
        """Rename a column with its values, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Args:
            name: of the column, with dots for a field of a struct. Columns of the record key, the partition
                path, the ordering and of indexes keep their names.
            new_name: its new name, without the names of structs around it.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, it keeps its name, or the new one belongs to another column
                or to the table format.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.columns.rename("fare", "price")
            >>> table.scan(columns=["id", "price"], where="id = 1").to_arrow().to_pylist()
            [{'id': 1, 'price': 10.0}]
        """
        return self._alter([internal_schema.renamed(name, new_name)], options)

    def drop(self, name: str, *, options: Options = None) -> CommitResult:
        """Drop a column, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Its values stay in files until these are written anew. A column that is added under the name later is
        another one, and does not show them.

        Args:
            name: of the column, with dots for a field of a struct; not one of the record key, the partition
                path, the ordering or an index.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or the table needs it.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.columns.drop("fare")
            >>> table.schema.names
            ['id', 'city', 'ts']
        """
        return self._alter([internal_schema.dropped(name)], options)

    def change_type(self, name: str, type: pa.DataType, *, options: Options = None) -> CommitResult:
        """Give a column a wider type, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Integers become long, float, double or string; float becomes double; date becomes string; decimals get
        more digits of the same scale. Reads cast the values of older files.

        Args:
            name: of the column, with dots for a field of a struct; not one of the record key, the partition
                path, the ordering or an index.
            type: its new type.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, the table needs its type, or it cannot become the new one.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.columns.add("tip", pa.int32())
            >>> result = table.columns.change_type("tip", pa.int64())
            >>> table.schema.field("tip").type
            DataType(int64)
        """
        return self._alter([internal_schema.retyped(name, type)], options)

    def move(
        self, name: str, *, first: bool = False, after: str | None = None, options: Options = None
    ) -> CommitResult:
        """Give a column another place among the columns, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Args:
            name: of the column, with dots for a field of a struct.
            first: whether it comes before all others.
            after: the column that it comes after; the last one by default.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or it is there already.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.columns.move("ts", first=True)
            >>> table.schema.names
            ['ts', 'id', 'city', 'fare']
        """
        place = internal_schema.place_of(first, after)
        return self._alter([internal_schema.moved(name, place)], options)

    @property
    def comments(self) -> dict[str, str]:
        """The comments of columns, by their names; with dots for fields of structs.

        Raises:
            CorruptTableError: the table's properties or timeline are damaged.

        Example:
            >>> table.columns.comments
            {}
        """
        with self._calls.errors():
            facts = self._calls.facts()
            found = table_comments(facts.storage, facts.store, facts.timeline, facts.config)
            return {".".join(path): comment for path, comment in found.items()}

    def _alter(self, changes: list[internal_schema.ColumnChange], options: Options) -> CommitResult:
        """Change columns."""
        with self._calls.errors():
            given = options_of("insert", self._calls.given("insert", options))
            return after_commit(alter_columns(self._calls.context, changes, given))
