"""The row filter: in the tree, every table is replaced by what the asker may read of it."""

from __future__ import annotations

from sqlglot import exp

from querydata.access import Permit, column_of, table_of


def restrict(tree: exp.Query, permit: Permit) -> tuple[exp.Query, tuple[str, ...]]:
    """Answer the statement over the permitted rows only, and the tables that were restricted.

    The guard has let `tree` pass: every name of a table in it means that table, for no common name is one.
    """
    used: list[str] = []
    taken = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)} | {*permit.tables}
    for table in [*tree.find_all(exp.Table)]:
        name = table.name
        if name not in permit.rows:
            continue
        if name not in used:
            used.append(name)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        table.set("this", exp.to_identifier(_permitted(name, taken), quoted=True))
    if not used:
        return tree, ()
    if isinstance(tree, exp.Subquery):  # a WITH cannot stand before a parenthesis
        tree = exp.select("*").from_(tree)
    ours = [_common(name, _permitted(name, taken), permit) for name in used]
    own = next((value for value in tree.args.values() if isinstance(value, exp.With)), None)
    if own is None:
        tree = tree.with_("first", as_=exp.select("1"), copy=False)
        own = next(value for value in tree.args.values() if isinstance(value, exp.With))
        own.set("expressions", ours)
    else:
        own.set("expressions", [*ours, *own.expressions])
    return tree, tuple(used)


def _permitted(table: str, taken: set[str]) -> str:
    name = f"permitted_{table}"
    while name.lower() in taken:
        name += "_"
    return name


def _common(table: str, name: str, permit: Permit) -> exp.CTE:
    rows = exp.select(*(column_of(table, column) for column in permit.tables[table])).from_(table_of(table))
    if (condition := permit.rows[table]) is not None:
        rows = rows.where(condition.copy())
    # Materialized: the asker's own conditions must never be tried on a row that is not theirs, where an error that they
    # raise, or the time that they take, would tell what is in it.
    return exp.CTE(this=rows, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)), materialized=True)
