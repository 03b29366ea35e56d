"""The declaration of who may ask what: its mistakes are told at start-up, and what it leaves out is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from querydata.__main__ import main
from querydata.access import Access, AccessInvalid
from querydata.assembly import access_of
from querydata.campus import TABLES
from querydata.settings import Settings

SCHEMA = {
    "department": ("id", "name"),
    "student": ("id", "name", "department_id", "phone"),
    "paper": ("id", "student_id"),
}
ROLES = ("admin", "dean", "student")
HEAD = """
[role.admin]
everything = true
[role.dean]
claim = "department_id"
note = { zh = "本院{things}", en = "your {things}" }
[table.department]
public = true
"""
STUDENT = """
[table.student]
name = { zh = "学生", en = "students" }
"""


def parse(text: str) -> Access:
    return Access.parse(text, schema=SCHEMA, roles=ROLES, name="theirs.toml")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[table", "theirs.toml: "),
        ("[table.student]\nrow.dean = []", "table.student.row: Extra inputs are not permitted"),
        ("[table.student]\npublic = 'perhaps'", "table.student.public: "),
        ("[role.deen]\neverything = true", "role.deen: no account can have this role (there are admin, dean, student)"),
        ("[role.student]", "role.student: either everything = true, or the claim"),
        ("[role.student]\neverything = true\nclaim = 'x'", "role.student: either everything = true, or the claim"),
        ("[role.student]\nclaim = 'x'", "role.student: note.zh and note.en must say"),
        ("[role.student]\nclaim = 'x'\nnote = { zh = 'a', en = 'b' }", "{things}"),
        ("[role.student]\nclaim = 'role'\nnote = { zh = '{things}', en = '{things}' }", "cannot be the role itself"),
        ("[table.pupil]\npublic = true", "table.pupil: the database has no such table"),
        (f"{STUDENT}public = true\nrows.dean = ['department_id']", "table.student: it is public"),
        ("[table.student]\nrows.dean = ['department_id']", "table.student: name.zh and name.en are needed"),
        (f"{STUDENT}rows.rector = ['id']", "table.student.rows.rector: there is no [role.rector]"),
        (f"{STUDENT}rows.admin = ['id']", "table.student.rows.admin: this role sees everything"),
        (f"{STUDENT}rows.dean = []", "table.student.rows.dean: the path is empty"),
        (f"{STUDENT}rows.dean = ['department']", "student has no column 'department'"),
        (f"{STUDENT}rows.dean = ['department_id = department.id', 'code']", "department has no column 'code'"),
        (f"{STUDENT}rows.dean = ['department_id = department.code', 'id']", "there is no column department.code"),
        (f"{STUDENT}rows.dean = ['department_id = faculty.id', 'id']", "there is no column faculty.id"),
        (f"{STUDENT}rows.dean = ['department_id = department.id']", "should be the last column alone"),
        (f"{STUDENT}rows.dean = ['department_id', 'id']", "should be of the form column = table.column"),
        (f"{STUDENT}rows.dean = ['id OR 1 = 1']", "student has no column 'id OR 1 = 1'"),
        ("[table.student]\nreserved.mail = ['admin']", "table.student.reserved.mail: the table has no such column"),
        ("[table.student]\nreserved.phone = ['root']", "table.student.reserved.phone: there is no [role.root]"),
    ],
)
def test_a_mistake_is_told_with_its_place(more: str, told: str) -> None:
    with pytest.raises(AccessInvalid) as wrong:
        parse(HEAD + more)
    assert str(wrong.value).startswith("theirs.toml: ")
    assert told in str(wrong.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(AccessInvalid, match=r"table\.pupil.*; table\.teacher"):
        parse(HEAD + "[table.pupil]\npublic = true\n[table.teacher]\npublic = true")


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"role": ""},
        {"role": "rector", "department_id": "1"},
        {"department_id": "1"},
        {"role": "dean"},
        {"role": "dean", "department_id": ""},
        {"role": "dean", "student_id": "1"},
    ],
)
def test_without_a_role_or_its_claim_nothing_may_be_asked(claims: Mapping[str, str]) -> None:
    assert parse(HEAD).permit(claims) is None


def test_what_is_not_declared_may_not_be_asked() -> None:
    access = parse(f"{HEAD}{STUDENT}rows.dean = ['department_id']\nreserved.phone = ['admin']")
    dean, admin = access.permit({"role": "dean", "department_id": "1"}), access.permit({"role": "admin"})
    assert dean is not None
    assert admin is not None
    assert dean.tables == {"department": ("id", "name"), "student": ("id", "name", "department_id")}
    assert dean.withheld == {"paper", "phone"}
    assert (admin.tables, admin.rows, admin.withheld) == (SCHEMA, {}, frozenset())


def test_the_declaration_of_the_demo_campus_fits_it() -> None:
    access = access_of(Settings())
    assert [access.claim(role) for role in ROLES] == ["", "department_id", "student_id"]


def test_the_declaration_of_the_how_to_page_can_be_used() -> None:
    page = Path(__file__).parents[2] / "docs/how-to/who-may-ask-what.md"
    (block,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf8"), re.DOTALL | re.MULTILINE)
    schema = {**TABLES, "student": (*TABLES["student"], "phone")}
    permit = Access.parse(block, schema=schema, roles=ROLES).permit({"role": "dean", "department_id": "3"})
    assert permit is not None
    assert permit.tables == {"department": TABLES["department"], "student": TABLES["student"]}
    assert permit.note(["student"], "en") == "Only your department's students are counted."


def test_the_service_does_not_start_with_a_declaration_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    monkeypatch.setenv("QUERYDATA_ACCESS_FILE", str(own))
    for text, told in ((None, "cannot be read"), (f"{HEAD}[table.pupil]\npublic = true", "table.pupil: ")):
        if text is not None:
            own.write_text(text, encoding="utf8")
        assert main(["serve", "--data", str(tmp_path / "data")]) == 1
        assert told in capsys.readouterr().out
    assert not (tmp_path / "data").exists()
