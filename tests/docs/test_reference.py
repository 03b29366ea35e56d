"""The reference tables are complete, and say what the code says."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pydantic_settings import BaseSettings

import oneturn
import oneturn.http
import oneturn.testing
from docs.pages import ROOT, code_in, rows, text_of
from oneturn import Gate, Handle, OneturnError, ResultUnavailable, Settings, StopReason, Turn
from oneturn.core import event as kinds
from oneturn.core.errors import RefusedReason
from oneturn.core.identity import Identity
from oneturn.core.record import Record
from oneturn.core.status import Status
from oneturn.http import problem
from oneturn.http.answer import item
from querydata.settings import Settings as QueryDataSettings

SOURCE = ROOT / "src"
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if "__all__" in path.read_text(encoding="utf8")]
SEAMS = {"abandon_without_closing", "engine", "handle", "handler", "settings"}
"""Of `Gate`: for the layers above it and for tests, not for applications."""


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heading", "settings"), [("## oneturn", Settings), ("## QueryData", QueryDataSettings)])
def test_the_settings_table_is_complete_and_has_the_defaults(heading: str, settings: type[BaseSettings]) -> None:
    table = {row[0]: row[1] for row in rows("docs/reference/settings.md", under=heading)}
    fields = settings.model_fields.items()
    assert table == {f"`{name}`": f"`{field.default}`" for name, field in fields}


def test_querydata_has_the_gate_settings_that_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from querydata.app import _GateSettings

    for name in Settings.model_fields:
        monkeypatch.delenv(f"ONETURN_{name.upper()}", raising=False)
    said = re.findall(r"`(\w+)` (\d+)", text_of("docs/reference/settings.md").split("## QueryData")[1].split("|")[0])
    plain, ours = Settings(), _GateSettings()
    differ = {name for name in Settings.model_fields if getattr(plain, name) != getattr(ours, name)}
    assert {name: float(value) for name, value in said} == {name: getattr(ours, name) for name in differ}


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "module"),
    [
        ("## `oneturn`", oneturn),
        ("## `oneturn.http`", oneturn.http),
        ("## `oneturn.testing`", oneturn.testing),
    ],
)
def test_every_public_name_is_in_the_reference_with_the_words_of_its_docstring(heading: str, module: Any) -> None:
    table = {row[0].strip("`"): row[1] for row in rows("docs/reference/names.md", under=heading)}
    assert set(table) == set(module.__all__)
    for name, what in table.items():
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):  # an alias of types cannot carry a docstring
            assert thing.__doc__, name
            assert " ".join(thing.__doc__.split("\n\n")[0].split()) == what, name


def test_what_can_be_called_on_a_public_name_has_a_docstring() -> None:
    bare = []
    for module in (oneturn, oneturn.http):
        for name in module.__all__:
            thing = getattr(module, name)
            for member, value in vars(thing).items() if inspect.isclass(thing) and thing.__module__ != "enum" else ():
                called = value.fget if isinstance(value, property) else value
                if not member.startswith("_") and inspect.isfunction(called) and not called.__doc__:
                    bare.append(f"{name}.{member}")
    assert bare == []


@pytest.mark.parametrize(
    ("heading", "kind", "seams"),
    [("## `Gate`", Gate, SEAMS), ("## `Turn`", Turn, set[str]()), ("## `Handle`", Handle, {"ticket", "engine"})],
)
def test_every_member_is_in_the_reference(heading: str, kind: type, seams: set[str]) -> None:
    said = {
        name.partition(".")[2]
        for row in rows("docs/reference/names.md", under=heading)
        for name in code_in(row[:1])
        if "." in name
    }
    made = ast.parse(inspect.getsource(kind))
    assigned = {
        target.attr
        for node in ast.walk(made)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    assert said == {name for name in {*vars(kind), *assigned} if not name.startswith("_")} - seams


def test_every_option_of_a_handler_is_in_the_reference_with_its_default() -> None:
    table = {row[0]: row[1] for row in rows("docs/reference/names.md", under="## `@gate.turn(name, …)`")}
    parameters = inspect.signature(Gate.turn).parameters
    options = {name: found.default for name, found in parameters.items() if found.kind is found.KEYWORD_ONLY}
    assert table == {f"`{name}`": f"`{default}`" for name, default in options.items()}


def _public(path: Path) -> tuple[set[str], set[str], list[str]]:
    """(what a module defines, what it takes from its own project, what it offers), without what begins with `_`."""
    defined: set[str] = set()
    taken: set[str] = set()
    offered: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                offered = ast.literal_eval(value)
            case ast.Assign(targets=targets):
                defined |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                defined.add(name)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] in ("oneturn", "querydata"):
                taken |= {alias.asname or alias.name for alias in names}
            case _:
                pass
    return {name for name in defined if not name.startswith("_")}, taken, offered


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_offers_what_it_defines(path: Path) -> None:
    """All that it defines publicly; and of what it imports, nothing that is not there. A pure façade offers all it takes."""
    defined, taken, offered = _public(path)
    module = importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"))
    assert sorted(set(offered)) == offered, "sorted, and each once"
    assert defined <= set(offered) <= defined | taken
    assert all(hasattr(module, name) for name in offered)
    if not defined:
        assert set(offered) == taken


# -- events, problems, exceptions ---------------------------------------------------------------------------------------


def test_every_kind_of_event_is_in_the_reference() -> None:
    table = {kind for row in rows("docs/reference/events.md") for kind in code_in(row[:1])}
    assert table == kinds.RESERVED | {kinds.TEXT, kinds.STEP, kinds.DATA}
    terminal = {kind for row in rows("docs/reference/events.md") if "terminal" in row[1] for kind in code_in(row[:1])}
    assert terminal == kinds.TERMINAL == {status.value for status in Status if status.final}


def test_every_problem_is_in_the_reference_with_its_status() -> None:
    table = [(int(row[0]), row[1].strip("`")) for row in rows("docs/reference/http.md", under="## Problems")]
    assert sorted(table) == sorted((row.status, name) for name, row in problem.TABLE.items())
    assert problem.TYPE_PREFIX in text_of("docs/reference/http.md")


def test_retry_after_is_promised_where_it_is_sent() -> None:
    for _, name, what in rows("docs/reference/http.md", under="## Problems"):
        sent = problem.TABLE[name.strip("`")].retry_after is not None  # type: ignore[index]
        promised = "`Retry-After`" in what and "no `Retry-After`" not in what
        assert promised == sent or "reserved" in what, name


def test_every_member_of_a_turns_state_is_in_the_reference() -> None:
    nobody = Identity(tenant="", subject="", scope="", key="")
    record = Record(id="", identity=nobody, handler="", fingerprint="", payload=None, status=Status.RUNNING)
    table = rows("docs/reference/http.md", under="## State")
    assert {name for row in table for name in code_in(row[:1])} == set(json.loads(item(record)))
    (said,) = [row[1] for row in table if "`status`" in row[0]]
    assert set(re.findall(r"`(\w+)`", said)) == {status.value for status in Status}


def test_every_code_of_a_failure_is_in_the_reference() -> None:
    """Those that the library gives; a handler's own are its own."""
    text = "".join(path.read_text(encoding="utf8") for path in (SOURCE / "oneturn" / "runtime").glob("*.py"))
    codes = set(re.findall(r'code="([a-z-]+)"', text))
    assert "internal-error" in codes
    assert codes <= {code for row in rows("docs/reference/exceptions.md") for code in code_in(row[1:])}


def test_every_route_is_in_the_reference() -> None:
    page = text_of("docs/reference/http.md")
    gate = Gate(Settings(records="memory://"))

    @gate.turn("chat")
    async def chat(turn: Turn[dict[str, str]]) -> str:
        return ""

    router = oneturn.http.turn_router(gate, chat, principal=lambda: None)
    routes = {
        f"{method} {path}"
        for route in router.routes
        for path in [str(getattr(route, "path", ""))]
        for method in getattr(route, "methods", ())
    }
    said = set(re.findall(r"`((?:GET|POST) /[^`]+)`", page))
    shortened = {found.replace("{conversation_id}", "{id}").replace("{turn_id}", "{turn}") for found in routes}
    assert said == shortened


def test_every_exception_and_its_reasons_are_in_the_reference() -> None:
    page = "docs/reference/exceptions.md"
    public = {name for name in oneturn.__all__ if _is_error(getattr(oneturn, name))} - {"OneturnError"}
    table = {row[0].strip("`"): code_in(row[1:]) for row in rows(page) if row[0].strip("`") in public}
    assert set(table) == public
    assert set(get_args(RefusedReason)) <= table["Refused"]
    assert set(get_args(get_type_hints(ResultUnavailable.__init__)["why"])) <= table["ResultUnavailable"]
    assert {reason.value for reason in StopReason} <= table["Stopped"]


def _is_error(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, OneturnError)


# -- words ------------------------------------------------------------------------------------------------------------

WORDS = [
    *("scope", "conversation", "execution", "turn", "action", "job", "idempotency key", "fingerprint", "lease"),
    *("owner", "epoch", "fencing token", "TTL", "renewal", "deadline", "run limit", "held", "suspect", "lost"),
    *("released", "check", "stop reason", "replay", "attach", "resume", "interrupt", "coalesce", "observer"),
    *("abandoned", "drain", "record", "fence", "claim", "keeper", "port", "backend", "snapshot", "tombstone"),
]


def test_every_word_is_in_the_glossary_in_english_and_chinese() -> None:
    table = {word.strip(): row for row in rows("docs/explanation/glossary.md") for word in row[0].split(",")}
    assert set(WORDS) - set(table) == set()
    for word, row in table.items():
        assert re.search(r"[\u4e00-\u9fff]", row[1]), word
        assert row[2], word


def test_the_glossary_names_every_reason_to_stop() -> None:
    (row,) = [row for row in rows("docs/explanation/glossary.md") if row[0] == "stop reason"]
    assert {reason.value for reason in StopReason} == set(row[2].split(", "))
