"""The guard: one read-only statement over what may be asked, rewritten from its syntax tree; everything else is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

MAX_LENGTH = 20_000
MAX_NODES = 2_000

FUNCTIONS = frozenset(
    [
        "ABS",
        "AVG",
        "CASE",
        "CAST",
        "COALESCE",
        "CONCAT",
        "COUNT",
        "DATE",
        "DENSE_RANK",
        "DISTINCT",
        "IF",
        "IIF",
        "LAG",
        "LEAD",
        "LENGTH",
        "LOWER",
        "MAX",
        "MIN",
        "NULLIF",
        "RANK",
        "REPLACE",
        "ROUND",
        "ROW_NUMBER",
        "SUBSTR",
        "SUBSTRING",
        "SUM",
        "TRIM",
        "UPPER",
        "NTILE",
        "FIRST_VALUE",
        "LAST_VALUE",
        "STDDEV",
        "AND",
        "OR",
        "NOT",
    ]
)
"""Functions that compute and nothing else."""

_FORBIDDEN = (
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.Command,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Set,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Into,
    exp.Lock,
    exp.Placeholder,
    exp.Parameter,
    exp.SessionParameter,
    exp.TableFromRows,
    exp.Values,
    exp.Lateral,
    exp.Unnest,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What may run: regenerated from the tree, so that no comment and no unread character survives."""

    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What may not run, and why, in a plain sentence."""

    reason: str
    code: str


class _Refusal(Exception):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def guard(sql: str, *, tables: Mapping[str, Sequence[str]], max_rows: int) -> Guarded | Rejected:
    """Let a statement pass, with at most `max_rows` rows, or say why not."""
    try:
        tree = _parse(sql)
        _refuse_constructs(tree)
        _refuse_sources(tree, tables)
        _refuse_columns(tree, tables)
        _refuse_cross_joins(tree)
        return Guarded(sql=_limited(tree, max_rows).sql(dialect="sqlite", comments=False))
    except _Refusal as refusal:
        return Rejected(reason=refusal.reason, code=refusal.code)
    except RecursionError:
        return Rejected(reason="The statement is nested too deeply.", code="too-complex")


def _parse(sql: str) -> exp.Query:
    if len(sql) > MAX_LENGTH:
        raise _Refusal("too-complex", f"The statement has more than {MAX_LENGTH} characters.")
    if "\x00" in sql:
        raise _Refusal("unreadable", "The statement contains a NUL character.")
    try:
        statements = [statement for statement in sqlglot.parse(sql, dialect="sqlite") if statement is not None]
    except SqlglotError as error:
        raise _Refusal("unreadable", f"The statement could not be read: {str(error).splitlines()[0]}") from error
    if len(statements) != 1:
        raise _Refusal("not-one-statement", f"Exactly one statement may run, not {len(statements)}.")
    (tree,) = statements
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        raise _Refusal("not-a-query", "Only a SELECT may run.")
    if sum(1 for _ in tree.walk()) > MAX_NODES:
        raise _Refusal("too-complex", "The statement is too complex.")
    return tree


def _refuse_constructs(tree: exp.Query) -> None:
    for node in tree.walk():
        if isinstance(node, _FORBIDDEN):
            raise _Refusal("not-a-query", f"{node.key.upper()} may not occur: only reading is allowed.")
        if isinstance(node, exp.With) and node.recursive:
            raise _Refusal("recursive", "Recursive queries are not allowed.")
        if isinstance(node, exp.Func) and not isinstance(node, exp.Case | exp.Connector):
            name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()
            if name not in FUNCTIONS:
                raise _Refusal("function", f"The function {name} is not allowed.")


def _refuse_sources(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    common = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    shadowed = common & {name.lower() for name in tables}
    if shadowed:
        raise _Refusal("shadowed", f"{min(shadowed)!r} is the name of a table: name the subquery otherwise.")
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise _Refusal("table", "A function may not be used as a table.")
        if table.args.get("db") or table.args.get("catalog"):
            raise _Refusal("table", "Tables of other databases may not be named.")
        name = table.name.lower()
        if name not in tables and name not in common:
            raise _Refusal("table", f"There is no table {table.name!r} that may be asked.")


def _refuse_columns(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    allowed = {column for columns in tables.values() for column in columns}
    named = {alias.alias.lower() for alias in tree.find_all(exp.Alias) if alias.alias}
    named |= {identifier.name.lower() for alias in tree.find_all(exp.TableAlias) for identifier in alias.columns}
    for scope in traverse_scope(tree):
        for column in scope.columns:
            if isinstance(column.this, exp.Star):
                continue
            _refuse_column(column, scope, tables, allowed | named)


def _refuse_column(column: exp.Column, scope: Scope, tables: Mapping[str, Sequence[str]], known: set[str]) -> None:
    if column.args.get("db"):
        raise _Refusal("column", "Columns of other databases may not be named.")
    source = scope.sources.get(column.table) if column.table else None
    if isinstance(source, exp.Table):
        columns = tables.get(source.name.lower())
        if columns is not None and column.name.lower() not in columns:
            raise _Refusal("column", f"{source.name} has no column {column.name!r} that may be asked.")
    elif column.name.lower() not in known:
        raise _Refusal("column", f"There is no column {column.name!r} that may be asked.")


def _refuse_cross_joins(tree: exp.Query) -> None:
    for select in tree.find_all(exp.Select):
        for join in select.args.get("joins") or ():
            if join.args.get("on") is None and not join.args.get("using"):
                raise _Refusal("cross-join", "A join without a condition is not allowed.")
            on = join.args.get("on")
            if on is not None and not any(True for _ in on.find_all(exp.Column)):
                raise _Refusal("cross-join", "A join's condition must compare columns.")


def _limited(tree: exp.Query, most: int) -> exp.Query:
    limit = tree.args.get("limit")
    if limit is not None:
        literal = limit.expression
        if not (isinstance(literal, exp.Literal) and literal.is_int):
            raise _Refusal("limit", "LIMIT must be a plain number.")
        if int(literal.name) <= most:
            return tree
    return tree.limit(most)
