"""How a question was read, told to whoever asked, in their language."""

from __future__ import annotations

from querydata.parser.sql import Query
from querydata.parser.words import Word

_NAMES: dict[str, dict[str, str]] = {
    "zh": {
        "student": "学生",
        "teacher": "教师",
        "course": "课程",
        "department": "学院",
        "major": "专业",
        "class": "班级",
        "term": "学期",
        "gender": "性别",
        "average": "平均分（首次考试）",
        "gpa": "绩点（按最好成绩、学分加权，90 分以上 4.0，80 以上 3.0，70 以上 2.0，60 以上 1.0）",
        "fail_rate": "挂科率（首次考试低于 60 分的百分比）",
        "pass_rate": "及格率（首次考试 60 分及以上的百分比）",
        "highest_score": "最高分",
        "lowest_score": "最低分",
        "failing": "仍有挂科（某门课最好成绩低于 60 分）",
        "current": "本学期",
        "last": "上学期",
        "男": "男生",
        "女": "女生",
    },
    "en": {
        "student": "students",
        "teacher": "teachers",
        "course": "courses",
        "department": "department",
        "major": "major",
        "class": "class",
        "term": "term",
        "gender": "gender",
        "average": "average grade (first attempts)",
        "gpa": "GPA (best scores, weighted by credits; 4.0 from 90, 3.0 from 80, 2.0 from 70, 1.0 from 60)",
        "fail_rate": "fail rate (percentage of first attempts under 60)",
        "pass_rate": "pass rate (percentage of first attempts of 60 or more)",
        "highest_score": "highest score",
        "lowest_score": "lowest score",
        "failing": "still failing (best score of some course under 60)",
        "current": "this term",
        "last": "last term",
        "男": "male",
        "女": "female",
    },
}


def name_of(meaning: str, language: str) -> str:
    """The word for one of the lexicon's meanings."""
    return _NAMES[language].get(meaning, meaning)


def heading_of(query: Query) -> str:
    """The heading of the number column."""
    if query.counted:
        noun = name_of(query.counted, query.language)
        return f"{noun}数" if query.language == "zh" else f"number of {noun}"
    return name_of(query.measure, query.language).split("（", maxsplit=1)[0].split(" (", maxsplit=1)[0]


def reading_of(query: Query, conditions: list[Word]) -> str:
    """One sentence: what is shown, of what, by what, in which order."""
    zh = query.language == "zh"
    what = f"{heading_of(query)}" if query.counted else name_of(query.measure or query.root, query.language)
    of = [name_of(word.meaning, query.language) if word.kind != "value" else word.text for word in conditions]
    by = [name_of(group, query.language) for group in query.groups]
    parts = [("查询：" if zh else "Shown: ") + what]
    if of:
        parts.append(("范围：" if zh else "only: ") + ("、" if zh else ", ").join(of))
    if by:
        parts.append(("按" if zh else "for each ") + ("、" if zh else ", ").join(by))
    if query.having:
        parts.append(("条件：" if zh else "where it is ") + query.having)
    if query.descending is not None:
        order = (
            ("从高到低" if query.descending else "从低到高")
            if zh
            else ("highest first" if query.descending else "lowest first")
        )
        most = f"前 {query.limit}" if zh else f"the first {query.limit}"
        parts.append(order + (("，" if zh else ", ") + most if query.limit else ""))
    return ("；" if zh else "; ").join(parts) + ("。" if zh else ".")
