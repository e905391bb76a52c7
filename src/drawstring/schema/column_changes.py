"""Changes of the columns of a table: ALTER TABLE, as Hudi has it with schema on read.

A path leads to a column, or to a field inside of one: `("st", "a")`. The items of a list are `element` in
it, the values of a map `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.schema.comments import Comments
from drawstring.schema.evolve import fits
from drawstring.schema.normal import normal_type

FIRST: Final = ""
"""The place before all other columns; the name of a column is the place after it."""

Path = tuple[str, ...]


class ChangeKind(StrEnum):
    """What a change does."""

    ADD = "add"
    DROP = "drop"
    RENAME = "rename"
    TYPE = "type"
    NULLABLE = "nullable"
    MOVE = "move"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One change of a column.

    Attributes:
        kind: what it does.
        path: the column.
        name: new name of a renamed column.
        type: type of an added column, new type of another one.
        place: name of the column before it, or `FIRST`; None for the end, or where it is.
        comment: comment of a column that is given one; empty for none.
    """

    kind: ChangeKind
    path: Path
    name: str = ""
    type: pa.DataType | None = None
    place: str | None = None
    comment: str = ""

    @property
    def column(self) -> str:
        """Dotted name of the column."""
        return ".".join(self.path)

    @property
    def keeps_values(self) -> bool:
        """Whether statistics and indexes of what is stored under the name stay as they are."""
        return self.kind not in (ChangeKind.DROP, ChangeKind.RENAME, ChangeKind.TYPE)


def added(name: str, type: pa.DataType, place: str | None) -> ColumnChange:
    """Return the addition of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.ADD, _path(name), type=_given_type(type), place=place)


def renamed(name: str, new_name: str) -> ColumnChange:
    """Return the renaming of a column, given by its dotted name.

    Raises:
        InvalidError: the new name has a dot: a field stays in its struct.
    """
    last = _given_name(new_name).rpartition(".")[2]
    if last != new_name:
        raise InvalidError(
            f"The new name {new_name!r} has a dot, which divides a struct from its field. A field stays in"
            f" its struct: give the new name without the struct, as in {last or 'name'!r}."
        )
    return ColumnChange(ChangeKind.RENAME, _path(name), new_name)


def dropped(name: str) -> ColumnChange:
    """Return the dropping of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.DROP, _path(name))


def retyped(name: str, type: pa.DataType) -> ColumnChange:
    """Return the change of the type of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.TYPE, _path(name), type=_given_type(type))


def moved(name: str, place: str | None) -> ColumnChange:
    """Return the change of the place of a column, given by its dotted name."""
    return ColumnChange(ChangeKind.MOVE, _path(name), place=place)


def commented(name: str, comment: str | None) -> ColumnChange:
    """Return the change of the comment of a column, given by its dotted name; None takes it away."""
    if not (comment is None or isinstance(comment, str)):
        raise InvalidError(f"The comment of a column is a text, not {comment!r}.")
    return ColumnChange(ChangeKind.COMMENT, _path(name), comment=comment or "")


def place_of(first: bool, after: str | None) -> str | None:
    """Return the place of a column: before all others, after one of them, or None for the end.

    Raises:
        InvalidError: both places are given.
    """
    if after is None:
        return FIRST if first else None
    if first:
        raise InvalidError(f"Both first=True and after={after!r} are given. Give one of them.")
    return _given_name(after)


def _path(name: str) -> Path:
    return tuple(_given_name(name).split("."))


def _given_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidError(f"The name of a column is a text that is not empty, not {name!r}.")
    return name


def _given_type(kind: object) -> pa.DataType:
    if not isinstance(kind, pa.DataType):
        raise InvalidError(f"{kind!r} is not a type of pyarrow. Give one, such as pa.int64() or pa.string().")
    return kind


def changed(schema: pa.Schema, change: ColumnChange) -> pa.Schema:
    """Return a schema with one change.

    Args:
        schema: the columns, without meta columns.
        change: the change.

    Raises:
        InvalidError: there is no such column, one of that name is there already, or its type cannot become
            the new one.
    """
    return pa.schema(_in_fields(list(schema), change.path, change))


def replacement(schema: pa.Schema, wanted: pa.Schema, kept: Sequence[str]) -> list[ColumnChange]:
    """Return the changes that give a table other columns; a column of a name that it has stays that column.

    Args:
        schema: the columns, without meta columns.
        wanted: the columns to have, in order.
        kept: columns that stay behind those, even if they are not among them.
    """
    stay = [name for name in kept if name in schema.names and name not in wanted.names]
    names = [*wanted.names, *stay]
    changes = [dropped(name) for name in schema.names if name not in names]
    for field in wanted:
        if field.name not in schema.names:
            changes.append(added(field.name, field.type, None))
        elif normal_type(field.type, field.name) != normal_type(schema.field(field.name).type, field.name):
            changes.append(retyped(field.name, field.type))
    have = [name for name in schema.names if name in names]
    have += [name for name in names if name not in have]
    for place, name in enumerate(names):
        if have[place] != name:
            changes.append(moved(name, names[place - 1] if place else FIRST))
            have.remove(name)
            have.insert(place, name)
    return changes


def _in_fields(fields: list[pa.Field], path: Path, change: ColumnChange) -> list[pa.Field]:
    if len(path) == 1:
        return _EDITS[change.kind](fields, path[0], change)
    place = _place(fields, path[0], change.path[: -len(path)])
    field = fields[place]
    return [*fields[:place], field.with_type(_in_type(field.type, path[1:], change)), *fields[place + 1 :]]


def _in_type(kind: pa.DataType, path: Path, change: ColumnChange) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_in_fields(kind.fields, path, change))
    if pt.is_list(kind) and path[0] == "element":
        return pa.list_(_in_item(kind.value_field, path[1:], change))
    if pt.is_map(kind) and path[0] == "value":
        return pa.map_(kind.key_type, _in_item(kind.item_field, path[1:], change))
    hint = " Its items are called element." if pt.is_list(kind) else ""
    hint = " Its values are called value." if pt.is_map(kind) else hint
    parent = ".".join(change.path[: -len(path)])
    raise InvalidError(f"There is no field {path[0]} in {parent}, which is {kind}.{hint}")


def _in_item(item: pa.Field, path: Path, change: ColumnChange) -> pa.Field:
    if path:
        return item.with_type(_in_type(item.type, path, change))
    if change.kind is ChangeKind.TYPE:
        return _retyped(item, change)
    if change.kind is ChangeKind.NULLABLE:
        return item.with_nullable(True)
    raise InvalidError(f"{change.column} is the content of a list or map, of which only the type can change.")


def comments_after(comments: Comments, change: ColumnChange) -> Comments:
    """Return the comments of columns after a change."""
    path = change.path
    if change.kind is ChangeKind.COMMENT:
        others = {each: text for each, text in comments.items() if each != path}
        return {**others, path: change.comment} if change.comment else others
    if change.kind is ChangeKind.DROP:
        return {each: text for each, text in comments.items() if each[: len(path)] != path}
    if change.kind is not ChangeKind.RENAME:
        return comments
    new = (*path[:-1], change.name)
    return {
        (*new, *each[len(path) :]) if each[: len(path)] == path else each: text
        for each, text in comments.items()
    }


def _add(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    assert change.type is not None
    _check_type(change.type, change)
    _check_free(fields, name, change)
    return _placed(fields, pa.field(name, change.type), change)


def _drop(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    if len(fields) == 1:
        raise InvalidError(f"{change.column} is the only column there, and cannot be dropped.")
    return [*fields[:place], *fields[place + 1 :]]


def _rename(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    _check_free([each for each in fields if each.name != name], change.name, change)
    return [*fields[:place], fields[place].with_name(change.name), *fields[place + 1 :]]


def _retype(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return [*fields[:place], _retyped(fields[place], change), *fields[place + 1 :]]


def _make_nullable(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return [*fields[:place], fields[place].with_nullable(True), *fields[place + 1 :]]


def _keep(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    _place(fields, name, change.path[:-1])
    return fields


def _move(fields: list[pa.Field], name: str, change: ColumnChange) -> list[pa.Field]:
    place = _place(fields, name, change.path[:-1])
    return _placed([*fields[:place], *fields[place + 1 :]], fields[place], change)


_EDITS: Final[dict[ChangeKind, Callable[[list[pa.Field], str, ColumnChange], list[pa.Field]]]] = {
    ChangeKind.ADD: _add,
    ChangeKind.DROP: _drop,
    ChangeKind.RENAME: _rename,
    ChangeKind.TYPE: _retype,
    ChangeKind.NULLABLE: _make_nullable,
    ChangeKind.MOVE: _move,
    ChangeKind.COMMENT: _keep,
}


def _placed(fields: list[pa.Field], field: pa.Field, change: ColumnChange) -> list[pa.Field]:
    if change.place is None:
        return [*fields, field]
    _check_place(fields, change)
    at = 0 if change.place == FIRST else _place(fields, change.place, change.path[:-1]) + 1
    return [*fields[:at], field, *fields[at:]]


def _check_place(fields: Sequence[pa.Field], change: ColumnChange) -> None:
    """Check the name of the column before a place for the two mistakes that are easily made."""
    place = change.place or FIRST
    struct, _, last = place.rpartition(".")
    is_dotted = bool(struct) and struct == ".".join(change.path[:-1])
    names = [each.name for each in fields]
    if change.path[-1] in (place, last if is_dotted else place) and place not in names:
        raise InvalidError(f"Column {change.column} cannot be behind itself. Give another column, or first.")
    if is_dotted and last in names:
        raise InvalidError(
            f"{change.column} is placed within {struct}, whose fields are named alone there. Give {last!r}"
            f" instead of {place!r}."
        )


def _retyped(field: pa.Field, change: ColumnChange) -> pa.Field:
    old, new = field.type, change.type
    assert new is not None
    _check_type(new, change)
    if old != new and not _can_become(old, new):
        raise InvalidError(
            f"Column {change.column} is {old} and cannot become {new}. Integers become long, float, double or"
            " string; float becomes double; date becomes string; decimals get more digits of the same scale."
        )
    return field.with_type(new)


def _can_become(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether the values of a type are read as those of another one.

    Hudi has floats as texts of Java, such as 1.0E10, which reads do not make.
    """
    if pt.is_nested(old) or pt.is_nested(new) or pt.is_binary(old) or pt.is_binary(new):
        return False
    return fits(old, new) and not (pt.is_floating(old) and pt.is_string(new))


def _check_type(kind: pa.DataType, change: ColumnChange) -> None:
    if _has_null(normal_type(kind, change.column)):
        raise InvalidError(
            f"Column {change.column} cannot be {kind}: a table does not store the type null. Give the type of"
            " the values to come."
        )


def _has_null(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return any(_has_null(field.type) for field in kind.fields)
    if pt.is_map(kind):
        return _has_null(kind.item_type)
    return _has_null(kind.value_type) if pt.is_list(kind) else bool(pt.is_null(kind))


def _place(fields: Sequence[pa.Field], name: str, parent: Path) -> int:
    names = [each.name for each in fields]
    if name not in names:
        what = f"field {name} in {'.'.join(parent)}" if parent else f"column {name}"
        raise InvalidError(f"There is no {what}. There are {', '.join(names)}.")
    return names.index(name)


def _check_free(fields: Sequence[pa.Field], name: str, change: ColumnChange) -> None:
    same = next((each.name for each in fields if each.name.lower() == name.lower()), None)
    if same is not None:
        raise InvalidError(
            f"There is a column {same} already, and Spark does not tell names apart by case. Give"
            f" {change.column} another name."
        )
