"""SQL lives in files: this reads their named statements."""

from __future__ import annotations

from importlib.resources import files

from oneturn.backends.sqlite.rows import COLUMNS


def statements(name: str) -> dict[str, str]:
    """The statements of `sql/<name>.sql` by name, with the columns of a record filled in."""
    found: dict[str, str] = {}
    marks = ", ".join("?" for _ in COLUMNS)
    for section in _text(name).split("-- name: ")[1:]:
        title, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line and not line.startswith("--")]
        sql = "\n".join(lines)
        found[title.strip()] = sql.replace("{columns}", ", ".join(COLUMNS)).replace("{marks}", marks)
    return found


def script(name: str) -> list[str]:
    """The statements of a migration file, in order."""
    lines = [line for line in _text(name).splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";\n") if statement.strip()]


def _text(name: str) -> str:
    return files("oneturn.backends.sqlite").joinpath("sql", f"{name}.sql").read_text(encoding="utf8")
