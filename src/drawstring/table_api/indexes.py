"""Indexes of an open table: `table.indexes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawstring.base.lazy import lazy_import
from drawstring.table_api.calls import Options, TableGroup

if TYPE_CHECKING:
    from drawstring.model.index import TableIndex
    from drawstring.services import indexing
else:
    lazy_import(
        globals(),
        indexing="drawstring.services.indexing",
    )


class TableIndexes(TableGroup):
    """The indexes of a table, in its metadata table."""

    __slots__ = ()

    def create(
        self,
        name: str,
        column: str | None = None,
        *,
        using: str | None = None,
        partitioned: bool = False,
        options: Options = None,
    ) -> TableIndex:
        """Build an index in the metadata table; all writes keep it from then on.

        Writes with `hoodie.index.type=RECORD_INDEX` and the like find records by the record index.
        Queries read fewer files by all of them, unless `hoodie.metadata.enable` is false.

        Args:
            name: `record_index`, `bloom_filters`, `column_stats`, or a name of your own for a secondary
                index, which tells the records with a value of a column, or for an expression index.
            column: the column of a secondary index, of a type with texts, whole numbers, floats, dates or
                timestamps (such an index needs the record index), or of an expression.
            using: `column_stats` for an index of the bounds of an expression, `bloom_filters` for one of
                filters of its values.
            partitioned: whether a record index has the keys of each partition by themselves.
            options: options by Hudi's keys, such as those of the table lock; of an expression index also its
                function (`expr`) and the settings of that, as in Hudi's `CREATE INDEX ... OPTIONS (...)`.

        Returns:
            The index, under the name that Hudi gives it: `secondary_index_<name>` or `expr_index_<name>`.

        Raises:
            InvalidError: there is such an index, no such column or function, or no record index for a
                secondary one.
            UnsupportedError: the table has version 6, or this release cannot compute the function.
            ConflictError: another writer holds the table, or is about to commit to it.
            CorruptTableError: a file of the table, or its metadata table, is damaged.

        Example:
            >>> index = table.indexes.create("record_index")
            >>> table.indexes.create("by_city", "city").name
            'secondary_index_by_city'
            >>> table.indexes.create("upper", "city", using="column_stats", options={"expr": "upper"}).name
            'expr_index_upper'
        """
        with self._calls.errors():
            settings, others = indexing.index_settings(options)
            parsed = self._calls.options("create_index", others)
            request = indexing.IndexRequest(name, column, using, partitioned, settings)
            return indexing.create_index(self._calls.context, parsed, request)

    def schedule(
        self,
        name: str,
        column: str | None = None,
        *,
        using: str | None = None,
        partitioned: bool = False,
        options: Options = None,
    ) -> str:
        """Plan an index, which `run` builds in any process while writers go on.

        Args:
            name: `record_index`, `bloom_filters`, `column_stats`, or a name of your own.
            column: the column of a secondary index or of an expression.
            using: `column_stats` or `bloom_filters` for an index of an expression.
            partitioned: whether a record index has the keys of each partition by themselves.
            options: options by Hudi's keys, and the settings of an expression index (`expr` and others).

        Returns:
            The requested time of the indexing action.

        Raises:
            InvalidError: there is such an index, no such column or function, or no record index for a
                secondary one.
            UnsupportedError: the table has version 6, or this release cannot compute the function.
            ConflictError: another writer holds the table.

        Example:
            >>> instant = table.indexes.schedule("column_stats")
            >>> [index.name for index in table.indexes.run(instant)]
            ['column_stats', 'partition_stats']
        """
        with self._calls.errors():
            settings, others = indexing.index_settings(options)
            parsed = self._calls.options("create_index", others)
            request = indexing.IndexRequest(name, column, using, partitioned, settings)
            return indexing.schedule_index(self._calls.context, parsed, request)

    def run(self, instant: str | None = None, *, options: Options = None) -> list[TableIndex]:
        """Build the indexes that are planned, while writers go on.

        Args:
            instant: requested time of one indexing action; None for all that no other process runs.
            options: options by Hudi's keys, such as those of the table lock.

        Returns:
            The indexes that were built.

        Raises:
            InvalidError: there is no such indexing action.
            ConflictError: another process runs it, the index was dropped meanwhile, or another engine wrote
                to the table without knowing of it: run it again.
            CorruptTableError: a file of the table, or its metadata table, is damaged.

        Example:
            >>> instant = table.indexes.schedule("record_index")
            >>> [index.name for index in table.indexes.run()]
            ['record_index']
        """
        with self._calls.errors():
            parsed = self._calls.options("create_index", options)
            return indexing.run_indexing(self._calls.context, parsed, instant)

    def drop(self, name: str, *, options: Options = None) -> None:
        """Delete an index of the metadata table.

        Args:
            name: of the index, as `indexes` shows it; `secondary_index_` and `expr_index_` may be left out.
            options: options by Hudi's keys, such as those of the table lock.

        Raises:
            InvalidError: there is no such index, or a secondary index needs it.
            UnsupportedError: the table has version 6.
            ConflictError: another writer holds the table.

        Example:
            >>> index = table.indexes.create("bloom_filters")
            >>> table.indexes.drop("bloom_filters")
            >>> table.indexes.list()
            []
        """
        with self._calls.errors():
            indexing.drop_index(self._calls.context, self._calls.options("drop_index", options), name)

    def list(self) -> list[TableIndex]:
        """Return the indexes in the metadata table, by name.

        Returns:
            Name, kind, columns and options of each, whether it is complete or only planned, and why queries
            do without it if they do.

        Raises:
            CorruptTableError: the properties of the table, or the definitions of its indexes, are damaged.

        Example:
            >>> index = table.indexes.create("record_index")
            >>> [index.name for index in table.indexes.list()]
            ['record_index']
        """
        with self._calls.errors():
            return indexing.table_indexes(self._calls.context)
