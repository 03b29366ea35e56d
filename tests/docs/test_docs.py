"""The documents say what the code does: links resolve, code runs, tables are complete."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oneturn
import oneturn.http
from oneturn import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python[^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ASK = """

import httpx

async def main() -> None:
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        for _ in range(2):
            answer = await client.post(
                "/api/conversations/c1/turns", headers={"Idempotency-Key": "one", "X-User": "ada"}, json={"text": "world"}
            )
            assert answer.status_code == 200, answer.text
            print(answer.json()["result"], answer.headers.get("idempotency-replayed"))

import asyncio
asyncio.run(main())
"""


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_resolves(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_python_block_compiles(page: Path) -> None:
    for _, code in BLOCK.findall(page.read_text(encoding="utf8")):
        body = "\n".join(f"    {line}" for line in code.splitlines())
        ast.parse(f"async def fragment():\n{body}")  # a fragment may await and return


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "tutorial" / "first-turn.md"], ids=_name)
def test_the_first_app_runs_and_answers_a_retry_with_a_replay(page: Path, tmp_path: Path) -> None:
    """The very block of the page, as a program of its own in an empty folder."""
    _, code = BLOCK.findall(page.read_text(encoding="utf8"))[0]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + ASK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert "world" in first
    assert first.endswith("None")
    assert second == first.replace("None", "true")


def test_the_settings_table_is_complete_and_has_the_defaults() -> None:
    table = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", table, re.MULTILINE))
    assert rows == {name: str(field.default) for name, field in Settings.model_fields.items()}


def test_every_public_name_has_a_docstring_and_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "names.md").read_text(encoding="utf8")
    for module in (oneturn, oneturn.http):
        for name in module.__all__:
            assert f"`{name}`" in page
            assert name == "OnBusy" or inspect.getdoc(getattr(module, name))


def test_every_problem_is_in_the_reference_with_its_status() -> None:
    source = (ROOT / "src" / "oneturn" / "http" / "problem.py").read_text(encoding="utf8")
    problems = re.findall(r'^    "([a-z-]+)": _Row\(status=(\d+)', source, re.MULTILINE)
    page = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf8")
    assert len(problems) > 10
    assert [name for name, status in problems if f"| {status} | `{name}` |" not in page] == []


def test_commands_that_the_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf8"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"\bmake ([a-z-]+)", page.read_text(encoding="utf8"))}
    assert named & {"serve", "test", "check", "contract"} == {"serve", "test", "check", "contract"}
    assert {
        name for name in named if f"`make {name}`" in "".join(p.read_text(encoding="utf8") for p in PAGES)
    } <= targets


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
