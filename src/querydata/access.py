"""Who may ask what: the declaration of an administrator, checked against the schema, and what it means for one asker."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlglot import exp

from querydata.model.port import Language

_STEP = re.compile(r"(?P<column>\w+) = (?P<table>\w+)\.(?P<key>\w+)\Z")
_THINGS = "{things}"
_BETWEEN: Mapping[Language, str] = {"zh": "、", "en": ", "}


class AccessInvalid(Exception):
    """The declaration cannot be used; the message names every mistake and where it is."""


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid")

    zh: str
    en: str

    def of(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


class _Role(BaseModel):
    model_config = ConfigDict(extra="forbid")

    everything: bool = False
    claim: str = ""
    note: _Words | None = None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    public: bool = False
    name: _Words | None = None
    rows: dict[str, list[str]] = {}
    reserved: dict[str, list[str]] = {}


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: dict[str, _Role]
    table: dict[str, _Table] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What one asker may read."""

    tables: Mapping[str, tuple[str, ...]]
    """Table → the columns that may be asked."""
    rows: Mapping[str, exp.Expr | None]
    """Tables of which less than everything may be read → the condition of the rows; None: all rows, not all columns."""
    withheld: frozenset[str]
    """Tables and columns that are there, and that this asker may not ask."""
    names: Mapping[str, _Words] = field(default_factory=dict)
    said: _Words | None = None

    def called(self, table: str, language: Language) -> str:
        """What people call a table's rows."""
        return self.names[table].of(language) if table in self.names else table

    def note(self, tables: Collection[str], language: Language) -> str:
        """What an answer that rests on `tables` must say about the rows that were left out; empty if none were."""
        restricted = [table for table in self.rows if table in tables and self.rows[table] is not None]
        if not restricted or self.said is None:
            return ""
        things = _BETWEEN[language].join(self.called(table, language) for table in restricted)
        return self.said.of(language).replace(_THINGS, things)


class Access:
    """A declaration that fits the schema."""

    def __init__(self, declared: _Declared, *, schema: Mapping[str, Sequence[str]]) -> None:
        self._declared = declared
        self._schema = schema

    @classmethod
    def parse(
        cls, text: str, *, schema: Mapping[str, Sequence[str]], roles: Collection[str], name: str = "access.toml"
    ) -> Access:
        """Read a declaration in TOML; raises AccessInvalid. `roles` are those that an account can have."""
        try:
            declared = _Declared.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise AccessInvalid(f"{name}: {error}") from None
        except ValidationError as error:
            found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
            raise AccessInvalid(f"{name}: " + "; ".join(found)) from None
        if found := [*_mistakes_of_roles(declared, roles), *_mistakes_of_tables(declared, schema)]:
            raise AccessInvalid(f"{name}: " + "; ".join(found))
        return cls(declared, schema=schema)

    def claim(self, role: str) -> str:
        """The claim that an account of `role` needs; empty: none."""
        return self._declared.role[role].claim if role in self._declared.role else ""

    def permit(self, claims: Mapping[str, str]) -> Permit | None:
        """What an account with these claims may read; None: it has no role, or lacks the claim that its role needs."""
        name = claims.get("role", "")
        role = self._declared.role.get(name)
        if role is None or not (role.everything or claims.get(role.claim)):
            return None
        tables: dict[str, tuple[str, ...]] = {}
        rows: dict[str, exp.Expr | None] = {}
        withheld: set[str] = set()
        for table, columns in self._schema.items():
            said = self._declared.table.get(table, _Table())
            seen = tuple(column for column in columns if name in said.reserved.get(column, [name]))
            if not seen or not (role.everything or said.public or name in said.rows):
                withheld.add(table)
                continue
            tables[table] = seen
            if len(seen) < len(columns):
                withheld |= {*columns} - {*seen}
                rows[table] = None
            if not role.everything and not said.public:
                rows[table] = _condition(table, said.rows[name], value=claims[role.claim])
        names = {table: said.name for table, said in self._declared.table.items() if said.name is not None}
        return Permit(tables=tables, rows=rows, withheld=frozenset(withheld), names=names, said=role.note)


def _condition(table: str, path: Sequence[str], *, value: str) -> exp.Expr:
    """Whether a row of `table` belongs to `value`: along the path, each table asked for the keys of the one before."""
    first, *rest = path
    if not (step := _STEP.match(first)):
        # A text that SQLite and PostgreSQL read as a number where the column is one.
        return exp.EQ(this=column_of(table, first), expression=exp.Literal.string(value))
    target = step["table"]
    keys = exp.select(column_of(target, step["key"])).from_(table_of(target))
    return exp.In(
        this=column_of(table, step["column"]),
        query=exp.Subquery(this=keys.where(_condition(target, rest, value=value))),
    )


def column_of(table: str, column: str) -> exp.Column:
    """A column of a table, in the tree."""
    return exp.column(column, table=table, quoted=True)


def table_of(name: str) -> exp.Table:
    """A table, in the tree."""
    return exp.table_(name, quoted=True)


# -- what is wrong with a declaration -----------------------------------------------------------------------------------


def _mistakes_of_roles(declared: _Declared, roles: Collection[str]) -> Iterator[str]:
    for name, role in declared.role.items():
        if name not in roles:
            yield f"role.{name}: no account can have this role (there are {', '.join(sorted(roles))})"
        if role.everything == bool(role.claim):
            yield f"role.{name}: either everything = true, or the claim that tells its rows"
        if role.claim == "role":
            yield f"role.{name}: the claim cannot be the role itself"
        if role.claim and not (role.note and _THINGS in role.note.zh and _THINGS in role.note.en):
            yield f"role.{name}: note.zh and note.en must say in words what is counted, with {_THINGS} in them"


def _mistakes_of_tables(declared: _Declared, schema: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, table in declared.table.items():
        if name not in schema:
            yield f"table.{name}: the database has no such table"
            continue
        if table.public and table.rows:
            yield f"table.{name}: it is public, so rows.{next(iter(table.rows))} would restrict nothing"
        if table.rows and table.name is None:
            yield f"table.{name}: name.zh and name.en are needed to say what was counted"
        for role, path in table.rows.items():
            where = f"table.{name}.rows.{role}"
            if role not in declared.role:
                yield f"{where}: there is no [role.{role}]"
            elif declared.role[role].everything:
                yield f"{where}: this role sees everything"
            yield from (f"{where}: {wrong}" for wrong in _mistakes_of_path(name, path, schema))
        for column, only in table.reserved.items():
            where = f"table.{name}.reserved.{column}"
            if column not in schema[name]:
                yield f"{where}: the table has no such column"
            yield from (f"{where}: there is no [role.{role}]" for role in only if role not in declared.role)


def _mistakes_of_path(table: str, path: Sequence[str], schema: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if not path:
        yield "the path is empty"
    here = table
    for place, entry in enumerate(path, 1):
        step = _STEP.match(entry)
        column = step["column"] if step else entry
        if column not in schema[here]:
            yield f"{here} has no column {column!r}"
        if bool(step) == (place == len(path)):
            yield f"{entry!r} should be {'the last column alone' if step else 'of the form column = table.column'}"
            return
        if step:
            if step["key"] not in schema.get(step["table"], ()):
                yield f"there is no column {step['table']}.{step['key']}"
                return
            here = step["table"]
