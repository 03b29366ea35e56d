"""What rules decide around the model: the tables and terms it is given, the chart and the wording of its answer."""

from __future__ import annotations

from typing import Any

import pytest

from querydata.campus import TABLES
from querydata.chart import chart_of
from querydata.retrieval import retrieve
from querydata.wording import answer_text


@pytest.mark.parametrize(
    ("question", "tables"),
    [
        ("有多少学生？", {"student"}),
        ("How many students are there?", {"student"}),
        ("每个专业有多少学生", {"major", "class", "student"}),
        ("students by major", {"major", "class", "student"}),
        ("各学院的教师人数", {"department", "teacher"}),
        ("absences per course", {"attendance", "enrolment", "offering", "course"}),
        ("谁拿了奖学金", {"scholarship", "award"}),
        ("scholarship winners by department", {"scholarship", "award", "student", "class", "major", "department"}),
        ("每栋宿舍楼有多少空床位", {"dormitory", "room", "residence"}),
        ("张伟住在哪个房间", {"room", "residence"}),
    ],
)
def test_tables_are_picked_by_words_of_both_languages_and_connected_by_joins(question: str, tables: set[str]) -> None:
    assert tables <= set(retrieve(question, tables=TABLES).tables)


def test_tables_that_do_not_bear_on_the_question_are_left_out() -> None:
    assert retrieve("How many students are there?", tables=TABLES).tables == ("student",)


def test_a_business_term_brings_its_meaning_and_its_tables() -> None:
    found = retrieve("查询当前仍有挂科的学生", tables=TABLES)
    assert any("passed = 0" in meaning for meaning in found.knowledge)
    assert {"student", "enrolment", "offering", "course", "grade"} <= set(found.tables)


def test_a_follow_up_is_read_with_the_question_before() -> None:
    alone = retrieve("and by department?", tables=TABLES)
    following = retrieve("and by department?", tables=TABLES, earlier=["How many students are there?"])
    assert "student" not in alone.tables
    assert {"department", "major", "class", "student"} <= set(following.tables)


def test_without_a_known_word_every_table_is_given() -> None:
    assert set(retrieve("天气怎么样", tables=TABLES).tables) == set(TABLES)


def test_an_english_word_counts_only_as_a_whole_word() -> None:
    assert "class" not in retrieve("students of classical music", tables=TABLES).tables


def test_the_schema_text_has_columns_and_only_joins_between_given_tables() -> None:
    schema = retrieve("students by class", tables=TABLES).schema
    assert "student.class_id = class.id" in schema
    assert "major.id" not in schema


def test_every_described_table_and_every_table_of_a_term_exists() -> None:
    everything = retrieve(
        "挂科 补考 及格率 挂科率 平均分 绩点 已修学分 本学期 最终成绩 出勤率 旷课 迟到率 空床位 入住率", tables=TABLES
    )
    assert len(everything.knowledge) == 14
    assert all(f"{name}(" in retrieve("", tables=TABLES).schema for name in TABLES)


# -- chart and wording ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "rows", "chart"),
    [
        (["专业", "人数"], [("数学", 3), ("物理", 5)], {"kind": "bar", "x": "专业", "y": "人数"}),
        (["学期", "平均分"], [("2024秋", 71.5), ("2025春", 74.0)], {"kind": "line", "x": "学期", "y": "平均分"}),
        (["year", "students"], [(2024, 3), (2025, 5)], {"kind": "line", "x": "year", "y": "students"}),
        (["专业", "人数"], [("数学", 3)], None),
        (["姓名", "学号", "分数"], [("a", "1", 3), ("b", "2", 5)], None),
        (["name", "id"], [("a", 1), ("b", 2)], None),
        (["姓名", "分数"], [("张伟", 3), ("张伟", 5)], None),
        (["a", "b"], [(1, 2), (3, 4)], None),
        (["专业", "人数"], [(str(n), n) for n in range(61)], None),
    ],
)
def test_a_chart_needs_one_column_of_labels_and_a_number_for_each(
    columns: list[str], rows: list[tuple[Any, ...]], chart: object
) -> None:
    assert chart_of(columns, rows) == chart


def test_the_wording_says_what_the_table_says() -> None:
    columns = ["专业", "人数"]
    rows: list[list[Any]] = [["数学", 3], ["物理", 5], ["化学", None]]
    chart = chart_of(columns, rows)
    text = answer_text(columns, rows, chart=chart, truncated=False, language="zh")
    assert text == "共 3 行。人数最高的是物理（5），最低的是数学（3）。"
    one = answer_text(["students"], [[6]], chart=None, truncated=False, language="en")
    assert one == "students: 6."
    assert answer_text(["x"], [], chart=None, truncated=False, language="en") == "No rows match."
