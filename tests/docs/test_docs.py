"""What the pages name exists: other pages, commands, variables, files."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import oneturn.cli
import querydata.__main__
from docs.pages import PAGES, ROOT, blocks, commands, name_of, text_of
from oneturn import Settings
from querydata.settings import Settings as QueryDataSettings

PYTHON = {
    "README.md": 1,
    "CONTRIBUTING.md": 1,
    "docs/how-to/deploy.md": 1,
    "docs/how-to/forget.md": 1,
    "docs/how-to/own-tables.md": 2,
    "docs/how-to/test-your-handlers.md": 1,
    "docs/how-to/threads-and-futures.md": 2,
    "docs/tutorial/first-turn.md": 1,
}
"""How many Python blocks a page has. Each is run by `test_programs.py` or `test_how_to.py`: a new one needs a test there."""


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_pages_resolves(page: Path) -> None:
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf8")):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        if not there.exists():
            broken.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf8"), re.MULTILINE)
            broken += [f"{target}#{anchor}"] if anchor not in map(_slug, headings) else []
    assert broken == []


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", index.read_text("utf8"))}
    assert {page for page in (ROOT / "docs").rglob("*.md") if page != index} == linked


def test_every_python_block_has_a_test_that_runs_it() -> None:
    found = {name_of(page): len(blocks(name_of(page), "python")) for page in PAGES}
    assert {page: number for page, number in found.items() if number} == PYTHON


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_block_compiles(page: Path) -> None:
    """A fragment may stand for the inside of an endpoint: there it may await, and return."""
    for block in blocks(name_of(page), "python"):
        compile(f"async def endpoint():\n{textwrap.indent(block, '    ')}", name_of(page), "exec", dont_inherit=True)


def test_the_tutorial_says_run() -> None:
    assert [name_of(page) for page in PAGES if blocks(name_of(page), "python run$")] == ["docs/tutorial/first-turn.md"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_that_says_run_is_a_program(page: Path, tmp_path: Path) -> None:
    """In an empty folder, without our environment; a warning is an error."""
    for code in blocks(name_of(page), "python run$"):
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": ""},
        )
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a word is run by nobody: it may only be a drawing. `toml` is read by the test of its subject."""
    fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf8"), re.MULTILINE)
    assert set(fences[1::2]) <= {""}
    allowed = {"python", "console", "toml", *(("",) if page.parent.name == "explanation" else ())}
    assert {fence.split(" ")[0] for fence in fences[::2]} <= allowed


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    texts = {name_of(page): page.read_text(encoding="utf8") for page in PAGES}
    named = {
        target for text in texts.values() for target in re.findall(r"(?:^\$ |`)make ([a-z-]+)", text, re.MULTILINE)
    }
    assert {"serve", "test", "check", "contract"} <= named <= targets


@pytest.mark.parametrize(("name", "main"), [("oneturn", oneturn.cli.main), ("querydata", querydata.__main__.main)])
def test_every_command_and_option_that_is_named_exists(
    name: str, main: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(main)
    text = "\n".join(page.read_text(encoding="utf8") for page in PAGES)
    called = re.findall(rf"(?:^\$ |`){name} ([a-z]+)((?: \[?--[a-z-]+\]?)*)", text, re.MULTILINE)
    assert called or name == "querydata"
    for command, options in called:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
        assert set(re.findall(r"--[a-z-]+", options)) <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_every_variable_that_is_named_is_a_setting() -> None:
    text = "\n".join(page.read_text(encoding="utf8") for page in PAGES)
    for prefix, settings in (("ONETURN_", Settings), ("QUERYDATA_", QueryDataSettings)):
        named = {found.lower() for found in re.findall(rf"\b{prefix}([A-Z]\w*)", text)}
        assert named
        assert named - set(settings.model_fields) == set()


def test_every_file_that_is_named_exists() -> None:
    """Paths in backticks, as they stand or below `src/oneturn/`; `*` and `<name>` stand for any."""
    missing = []
    for page in PAGES:
        for path in re.findall(
            r"`([\w.*<>-]+(?:/[\w.*<>-]+)*/?[\w.*<>-]*\.(?:py|js|md|toml|sql))`", page.read_text("utf8")
        ):
            if "/" not in path and path not in ("pyproject.toml", "wiring.py", "gate.py", "transitions.py"):
                continue
            pattern = path.replace("<name>", "*")
            bases = (ROOT, ROOT / "src" / "oneturn", ROOT / "src" / "oneturn" / "core")
            if not any(any(base.glob(pattern)) for base in bases):
                missing.append(f"{name_of(page)}: {path}")
    assert missing == []


def test_the_commands_of_a_console_block_are_shell() -> None:
    for page in PAGES:
        for command in commands(name_of(page)):
            ran = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, f"{name_of(page)}: {command}: {ran.stderr}"


def test_the_repository_names_no_package_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    hosts = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|deb\.debian\.org")
    texts = [
        ROOT / name for name in tracked if Path(name).suffix in (".md", ".toml", ".lock", ".sh", ".py", ".txt", "")
    ]
    own = Path(__file__)
    assert [
        str(file) for file in texts if file.is_file() and file != own and hosts.search(file.read_text("utf8", "ignore"))
    ] == []
