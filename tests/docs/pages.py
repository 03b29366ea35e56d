"""The pages, and what is written in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """What a reader types: the lines after `$`, with their continuations, of all `console` blocks."""
    joined = "\n".join(blocks(page, "console")).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ ")]


def rows(page: str, *, under: str = "") -> list[list[str]]:
    """The cells of the tables below a heading (default: of the whole page), without heads and rules."""
    text = text_of(page)
    if under:
        text = re.split(r"^#+ ", text[text.index(f"\n{under}\n") + len(under) + 2 :], maxsplit=1, flags=re.MULTILINE)[0]
    lines = text.splitlines()
    tables = [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("| ") and not line.startswith("| --- ") and not after.startswith("| --- ")
    ]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in tables]


def code_in(cells: list[str]) -> set[str]:
    """What stands in backticks."""
    return {found for cell in cells for found in re.findall(r"`([^`]+)`", cell)}


def run(code: str, names: dict[str, Any]) -> None:
    """Run a block of a page with `names` around it, and leave there what it defines."""
    # Not exec(code): that would lend the block this module's `from __future__` imports.
    exec(compile(code, "<page>", "exec", dont_inherit=True), names)
