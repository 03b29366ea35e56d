"""The guard: one read-only statement over what may be asked, rewritten from its syntax tree; everything else is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from querydata.access import Permit
from querydata.rows import restrict

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
        "EXISTS",
        "GROUP_CONCAT",
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
        "TOTAL",
        "TRIM",
        "UPPER",
        "NTILE",
        "FIRST_VALUE",
        "LAST_VALUE",
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
    asked: str = ""
    """The statement before it was restricted to what the asker may read; empty if it was not."""
    restricted: tuple[str, ...] = ()
    """The tables of which only permitted rows or columns are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What may not run, and why, in a plain sentence."""

    reason: str
    code: str
    name: str = ""
    """The table or column that this asker may not ask, with the code `not-permitted`."""


class _Refusal(Exception):
    def __init__(self, code: str, reason: str, *, name: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.name = name


def guard(
    sql: str, *, tables: Mapping[str, Sequence[str]], max_rows: int, permit: Permit | None = None
) -> Guarded | Rejected:
    """Let a statement pass, with at most `max_rows` rows, or say why not.

    `tables` is all that may be asked by anybody; with `permit` only what that allows is read, row by row.
    """
    seen = tables if permit is None else permit.tables
    try:
        tree = _parse(sql)
        _refuse_constructs(tree)
        _fold_names(tree)
        _refuse_cross_joins(tree)
        _refuse_shadows(tree, tables)
        _refuse_tables(tree, seen)
        _spell_out_stars(tree, seen)
        _refuse_columns(tree, seen)
        tree = _limited(tree, max_rows)
        asked = _text(tree)
        if permit is None:
            return Guarded(sql=asked)
        tree, restricted = restrict(tree, permit)
        return Guarded(sql=_text(tree), asked=asked, restricted=restricted) if restricted else Guarded(sql=asked)
    except _Refusal as refusal:
        if permit is not None and refusal.name in permit.withheld:
            reason = f"This account may not ask {refusal.name!r}."
            return Rejected(reason=reason, code="not-permitted", name=refusal.name)
        return Rejected(reason=refusal.reason, code=refusal.code)
    except SqlglotError as error:  # from the scopes: two sources of one name, a union of what is no query
        return Rejected(reason=f"The statement could not be read: {str(error).splitlines()[0]}", code="unreadable")
    except RecursionError:
        return Rejected(reason="The statement is nested too deeply.", code="too-complex")


def _parse(sql: str) -> exp.Query:
    if len(sql) > MAX_LENGTH:
        raise _Refusal("too-complex", f"The statement has more than {MAX_LENGTH} characters.")
    if "\x00" in sql:
        raise _Refusal("unreadable", "The statement contains a NUL character.")
    try:
        tokens = sqlglot.tokenize(sql, dialect="sqlite")
        if any(comment.startswith("!") for token in tokens for comment in token.comments):
            raise _Refusal("version-comment", "Comments that some databases run as code (/*! … */) are not allowed.")
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
        if isinstance(node, exp.Star):
            holder = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
            if not isinstance(holder, exp.Select | exp.Count):
                raise _Refusal("column", "A * may stand for columns or in COUNT(*) only.")
        if isinstance(node, exp.In) and node.args.get("field"):
            raise _Refusal("table", "IN needs a list or a SELECT in parentheses.")
        if isinstance(node, exp.Table) and node.alias_column_names:
            raise _Refusal("column", "A table's columns may not be renamed.")
        if isinstance(node, exp.Func) and not isinstance(node, exp.Case | exp.Connector):
            name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()
            if name not in FUNCTIONS:
                raise _Refusal("function", f"The function {name} is not allowed.")


def _fold_names(tree: exp.Query) -> None:
    # SQLite compares names without case; the checks compare strings.
    for node in tree.find_all(exp.Table, exp.TableAlias, exp.Column):
        name = node.args.get("table" if isinstance(node, exp.Column) else "this")
        if isinstance(name, exp.Identifier):
            name.set("this", name.name.lower())


def _text(tree: exp.Query) -> str:
    return tree.sql(dialect="sqlite", comments=False)


def _refuse_shadows(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    # Those that the asker may not read, too: the conditions of the row filter name them.
    if shadowed := _common(tree) & {name.lower() for name in tables}:
        raise _Refusal("shadowed", f"{min(shadowed)!r} is the name of a table: name the subquery otherwise.")


def _common(tree: exp.Query) -> set[str]:
    return {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}


def _refuse_tables(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    common = _common(tree)
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise _Refusal("table", "A function may not be used as a table.")
        if table.args.get("db") or table.args.get("catalog"):
            raise _Refusal("table", "Tables of other databases may not be named.")
        if table.name not in tables and table.name not in common:
            raise _Refusal("table", f"There is no table {table.name!r} that may be asked.", name=table.name)
    # A common name is one only where its WITH is seen: elsewhere the same name means a real table.
    for scope in traverse_scope(tree):
        for source in _sources(scope).values():
            if isinstance(source, exp.Table) and source.name not in tables:
                raise _Refusal("table", f"There is no table {source.name!r} that may be asked.", name=source.name)


def _spell_out_stars(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    """Write the columns that may be asked where `*` stands: the table may have others."""
    for scope in traverse_scope(tree):
        select = scope.expression
        if not isinstance(select, exp.Select) or not select.is_star:
            continue
        shown: list[exp.Expr] = []
        for each in select.expressions:
            if not each.is_star:
                shown.append(each)
                continue
            for name, source in _sources(scope).items():
                if isinstance(each, exp.Column) and each.table != name:
                    continue
                # The columns of a subquery are checked where it stands.
                columns = tables[source.name] if isinstance(source, exp.Table) else ("*",)
                if not name and len(_sources(scope)) > 1:
                    raise _Refusal("column", "A subquery that is joined needs a name before * can mean its columns.")
                shown += [_column(name, column) for column in columns]
        if not shown:
            raise _Refusal("column", "A * must belong to a table of its own SELECT.")
        select.set("expressions", shown)


def _column(table: str, name: str) -> exp.Expr:
    this = exp.Star() if name == "*" else exp.to_identifier(name)
    return exp.Column(this=this, table=exp.to_identifier(table)) if table else this


def _refuse_columns(tree: exp.Query, tables: Mapping[str, Sequence[str]]) -> None:
    settled: set[int] = set()
    for scope in traverse_scope(tree):  # inner scopes come first, and outer ones list their columns again
        for column in scope.columns:
            if id(column) not in settled and not isinstance(column.this, exp.Star):
                _refuse_column(column, scope, tables)
            settled.add(id(column))
        for join in scope.expression.find_all(exp.Join):
            if join.find_ancestor(exp.Select) is scope.expression:
                _refuse_using(join, _sources(scope), tables)
    for column in tree.find_all(exp.Column):
        if id(column) not in settled and not isinstance(column.this, exp.Star):
            # sqlglot leaves out what ORDER BY takes from the SELECT itself: nothing else may be left out.
            query = column.find_ancestor(exp.Query)
            if column.table or not isinstance(query, exp.Query) or column.name not in query.named_selects:
                raise _no_column(column)


def _refuse_using(
    join: exp.Join, sources: Mapping[str, exp.Table | Scope], tables: Mapping[str, Sequence[str]]
) -> None:
    # No column of the tree: USING holds bare names.
    for name in join.args.get("using") or ():
        source = sources.get(join.alias_or_name)
        if source is None or name.name.lower() not in _outputs(source, tables):
            raise _Refusal("column", f"There is no column {name.name!r} that may be asked.", name=name.name.lower())


def _refuse_column(column: exp.Column, scope: Scope, tables: Mapping[str, Sequence[str]]) -> None:
    name = column.name.lower()
    if column.args.get("db"):
        raise _Refusal("column", "Columns of other databases may not be named.")
    if _means_result(column, _query(scope)):
        return
    within: Scope | None = scope
    while within is not None:
        sources = _sources(within)
        if column.table in sources:
            if name in _outputs(sources[column.table], tables):
                return
            raise _no_column(column, of=column.table)
        if not column.table and any(name in _outputs(source, tables) for source in sources.values()):
            return
        within = within.parent
    raise _no_column(column)


def _no_column(column: exp.Column, *, of: str = "") -> _Refusal:
    whose = f"{of} has" if of else "There is"
    return _Refusal("column", f"{whose} no column {column.name!r} that may be asked.", name=column.name.lower())


def _sources(scope: Scope) -> dict[str, exp.Table | Scope]:
    return {name: source for name, (_, source) in scope.selected_sources.items()}


def _means_result(column: exp.Column, query: exp.Query) -> bool:
    """Whether it may name a result column: in SELECT, ON and WHERE that name would be a forbidden column's first."""
    clause = column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Query)
    named = not isinstance(clause, exp.Query) or isinstance(clause, exp.SetOperation)
    return named and not column.table and column.name.lower() in _aliases(query)


def _aliases(query: exp.Query) -> set[str]:
    if isinstance(query, exp.Select):
        return {each.alias.lower() for each in query.selects if isinstance(each, exp.Alias)}
    return {name.lower() for name in query.named_selects}


def _query(scope: Scope) -> exp.Query:
    if not isinstance(scope.expression, exp.Query):
        raise _Refusal("not-a-query", "Only a SELECT may run.")
    return scope.expression


def _outputs(source: exp.Table | Scope, tables: Mapping[str, Sequence[str]]) -> set[str]:
    """The columns that may be asked of a source."""
    if isinstance(source, exp.Table):
        return {column.lower() for column in tables.get(source.name, ())}
    around = source.expression.parent
    if isinstance(around, exp.CTE | exp.Subquery) and around.alias_column_names:
        return {name.lower() for name in around.alias_column_names}
    query = _query(source)
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    inner = next((each for each in source.traverse() if each.expression is query), source)
    found: set[str] = set()
    for each in query.selects:
        if each.is_star:
            table = each.table if isinstance(each, exp.Column) else ""
            found |= _outputs(_sources(inner)[table], tables)
        else:
            found.add(each.output_name.lower())
    return found - {""}


def _refuse_cross_joins(tree: exp.Query) -> None:
    for join in tree.find_all(exp.Join):
        on = join.args.get("on")
        if join.args.get("using"):
            continue
        if on is None:
            raise _Refusal("cross-join", "A join without a condition (JOIN … ON …) is not allowed.")
        if not _links(on, join.alias_or_name):
            raise _Refusal("cross-join", "A join's condition must compare columns of the two tables that it joins.")


def _links(condition: exp.Expr, joined: str) -> bool:
    """Whether each way to fulfil `condition` compares the joined table with another one."""
    if isinstance(condition, exp.Paren):
        return _links(condition.this, joined)
    if isinstance(condition, exp.And):
        return _links(condition.left, joined) or _links(condition.right, joined)
    if isinstance(condition, exp.Or):
        return _links(condition.left, joined) and _links(condition.right, joined)
    if not isinstance(condition, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between):
        return False
    columns = {(column.table, column.name.lower()) for column in condition.find_all(exp.Column)}
    tables = {table for table, _ in columns}
    # A column without its table may be of either: SQLite refuses it where that matters.
    return len(columns) > 1 and ("" in tables or (joined in tables and len(tables) > 1))


def _limited(tree: exp.Query, most: int) -> exp.Query:
    limit = tree.args.get("limit")
    if limit is not None:
        literal = limit.expression
        if not (isinstance(literal, exp.Literal) and literal.is_int):
            raise _Refusal("limit", "LIMIT must be a plain number.")
        if int(literal.name) <= most:
            return tree
    return tree.limit(most)
