"""The gold file is what it says: its SQL runs, its questions differ, none of them is known to the source; and its judge can say no."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import querydata
from querydata.campus import names
from querydata.model import Model
from querydata.model.port import Declined, Proposal, Request, language_of

from . import judge
from .gold_file import SEEDS, Case, Unsuitable, answered, campus, same_answer, unsuitable

CASES = answered()
UNSUITABLE = unsuitable()
SOURCE = Path(querydata.__file__).parents[1]
TEXT = frozenset({".py", ".toml", ".sql", ".js", ".html", ".css", ".md", ".svg"})


@pytest.fixture(scope="module")
def campuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Path, sqlite3.Connection]]]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("campus")
        yield [stack.enter_context(campus(folder, seed=seed)) for seed in SEEDS]


# -- the file -------------------------------------------------------------------------------------------------------


@pytest.mark.row("Q1")
def test_every_gold_sql_runs_on_every_seed_and_finds_something_on_one(
    campuses: list[tuple[Path, sqlite3.Connection]],
) -> None:
    empty = []
    for case in CASES:
        found = [connection.execute(case.sql).fetchall() for _, connection in campuses]
        if not any(found):
            empty.append(case.text)
    assert empty == []


def test_a_single_extreme_is_no_choice_among_equals(campuses: list[tuple[Path, sqlite3.Connection]]) -> None:
    """Where the gold SQL takes one row, the next one has another figure: all that tie belong to the answer."""
    for case in CASES:
        if not case.sql.endswith(" LIMIT 1"):
            continue
        for _, connection in campuses:
            rows = connection.execute(case.sql.removesuffix("1") + "2").fetchall()
            assert len({row[-1] for row in rows}) == len(rows), case.text


@pytest.mark.row("Q1")
def test_there_are_enough_questions_in_both_languages() -> None:
    languages = Counter(case.language for case in CASES)
    assert languages["zh"] >= 150
    assert languages["en"] >= 150
    assert len(UNSUITABLE) >= 60
    assert min(Counter(one.language for one in UNSUITABLE).values()) >= 30


def test_a_question_is_of_the_language_that_it_says() -> None:
    """A Chinese name or class may be asked for in English."""
    for case in CASES:
        letters = re.sub(r"[一-鿿]+\d*(?:-\d+)?", "", case.text)
        assert (case.language == "en") == bool(re.search(r"[a-z]{2}", letters)), case.text


def test_no_two_questions_differ_by_a_name_only() -> None:
    asked = Counter(
        _without_names(text) for text in (*(case.text for case in CASES), *(u.question for u in UNSUITABLE))
    )
    assert [text for text, times in asked.items() if times > 1] == []


def _without_names(text: str) -> str:
    pairs = (
        *names.DEPARTMENTS,
        *(pair for group in (*names.MAJORS, *names.COURSES) for pair in group),
        *(kind[:2] for kind in names.SCHOLARSHIPS),
        *(hall[:2] for hall in names.DORMITORIES),
    )
    known = sorted({name.lower() for pair in pairs for name in pair}, key=len, reverse=True)
    people = ("张伟", "王芳", "李娜")
    pattern = "|".join([*map(re.escape, known), *people, r"t\d{4}", r"20\d{7}"])
    return re.sub(r"\W+", " ", re.sub(pattern, "NAME", text.lower())).strip()


def test_no_text_of_the_file_occurs_in_the_source() -> None:
    """Neither whole questions, nor 12 Chinese characters in a row, nor 8 English words."""
    source = "\n".join(
        file.read_text(encoding="utf8").lower() for file in sorted(SOURCE.rglob("*")) if file.suffix in TEXT
    )
    words = " ".join(re.findall(r"[a-z']+", source))
    assert "querydata" in words
    texts = [
        *(text for case in CASES for text in (case.question, case.earlier, case.sql) if text),
        *(one.question for one in UNSUITABLE),
    ]
    assert [text for text in texts if text.lower() in source] == []
    assert [run for text in texts for run in _chinese(text) if run in source] == []
    assert [run for text in texts for run in _english(text) if run in words] == []


def _chinese(text: str) -> Iterable[str]:
    for run in re.findall(r"[一-鿿]{12,}", text):
        yield from (run[at : at + 12] for at in range(len(run) - 11))


def _english(text: str) -> Iterable[str]:
    words = re.findall(r"[a-z']+", text.lower())
    yield from (" ".join(words[at : at + 8]) for at in range(len(words) - 7))


# -- the judge ------------------------------------------------------------------------------------------------------


class _Scripted:
    """A model that answers by a table; `None` declines."""

    def __init__(self, replies: dict[str, str | None]) -> None:
        self._replies = replies
        self.asked: list[Request] = []

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Proposal | Declined:
        self.asked.append(request)
        delta("")
        sql = self._replies[request.question]
        if sql is None:
            return Declined(message="no", language=language_of(request.question))
        return Proposal(sql=sql, reading="so", language=language_of(request.question))

    async def aclose(self) -> None:
        pass


def _case(question: str, sql: str, *, earlier: str = "") -> Case:
    return Case(language="en", ranked=False, kind="x", earlier=earlier, question=question, sql=sql)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("SELECT COUNT(*) FROM student", "right"),
        ("SELECT 'students', COUNT(*) FROM student", "right"),
        ("SELECT COUNT(*) + 1 FROM student", "wrong"),
        ("SELECT number FROM student", "wrong"),
        ("SELECT number FROM student WHERE id < 0", "wrong"),
        ("DELETE FROM student", "refused"),
        (None, "refused"),
    ],
)
def test_an_answer_is_judged_by_its_rows(
    campuses: list[tuple[Path, sqlite3.Connection]], reply: str | None, verdict: str
) -> None:
    file, gold = campuses[0]
    model: Model = _Scripted({"how many": reply})
    with closing(sqlite3.connect(file)) as ours:
        found = judge.judge(model, _case("how many", "SELECT COUNT(*) FROM person"), ours=ours, gold=gold)
    assert found.verdict == verdict


def test_a_follow_up_is_asked_after_its_first_question(campuses: list[tuple[Path, sqlite3.Connection]]) -> None:
    file, gold = campuses[0]
    model = _Scripted({"how many": "SELECT COUNT(*) FROM student", "and teachers": "SELECT COUNT(*) FROM teacher"})
    case = _case("and teachers", "SELECT COUNT(*) FROM teacher", earlier="how many")
    with closing(sqlite3.connect(file)) as ours:
        assert judge.judge(model, case, ours=ours, gold=gold).verdict == "right"
    first, second = model.asked
    assert first.history == ()
    assert [(each.question, each.sql) for each in second.history] == [("how many", "SELECT COUNT(*) FROM student")]


def test_what_is_unsuitable_must_be_declined() -> None:
    one = Unsuitable(language="en", kind="x", question="why")
    assert judge.judge_unsuitable(_Scripted({"why": None}), one).verdict == "refused"
    assert judge.judge_unsuitable(_Scripted({"why": "SELECT 1"}), one).verdict == "wrong"


@pytest.mark.parametrize(
    ("right", "wrong", "refused", "anyway", "enough"),
    [
        (95, 1, 4, 0, True),
        (94, 1, 5, 0, False),
        (96, 2, 2, 0, False),
        (100, 0, 0, 1, False),
    ],
)
def test_the_thresholds_are_those_that_were_promised(
    right: int, wrong: int, refused: int, anyway: int, *, enough: bool
) -> None:
    counts: dict[judge.Verdict, int] = {"right": right, "wrong": wrong, "refused": refused}
    verdicts = [verdict for verdict, count in counts.items() for _ in range(count)]
    one = Unsuitable(language="en", kind="x", question="why")
    found = judge.Report(
        answered=[(_case("q", "SELECT 1"), judge.Finding(verdict=verdict, said="")) for verdict in verdicts],
        unsuitable=[(one, judge.Finding(verdict="wrong", said=""))] * anyway,
    )
    assert found.good_enough() == enough


def test_one_campus_is_enough_to_be_wrong() -> None:
    right, refused, wrong = (judge.Finding(verdict=each, said="") for each in ("right", "refused", "wrong"))
    assert judge.worst([right, right, wrong]).verdict == "wrong"
    assert judge.worst([right, refused, right]).verdict == "refused"
    assert judge.worst([right, right]).verdict == "right"


@pytest.mark.parametrize("ranked", [True, False])
def test_rows_are_compared_with_their_order_where_it_matters(ranked: bool) -> None:
    assert same_answer([("b", 2), ("a", 1)], [("a", 1), ("b", 2)], ranked=ranked) == (not ranked)
    assert same_answer([("x", 1.001, "a")], [("a", 1.0)], ranked=ranked)


def test_the_command_prints_the_figures_and_fails_below_the_thresholds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judge, "EmbeddedModel", lambda _: _Nobody())
    assert judge.main(["--kind", "people", "--seeds", "1", "--refused", "--classes"]) == 1
    printed = capsys.readouterr().out
    total = len(answered("people"))
    assert f"right=0 wrong=0 refused={total}\n" in printed
    assert f"unsuitable: refused={len(UNSUITABLE)} answered=0\n" in printed
    assert printed.count("refused [people]") == total


class _Nobody:
    """A model that understands nothing."""

    async def propose(self, request: Request, *, delta: Callable[[str], None]) -> Declined:
        delta("")
        await asyncio.sleep(0)
        return Declined(message="no", language=language_of(request.question))
