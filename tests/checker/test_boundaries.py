"""The checker judges any run: it knows core values and evidence, and nothing of what made them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from checker.build import BOUNDS, broken
from oneturn.testing import checker
from oneturn.testing.evidence import Evidence

ALLOWED = ("oneturn.core.", "oneturn.testing.checker", "oneturn.testing.evidence")
MODULES = sorted(Path(checker.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_it_imports_core_and_evidence_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [name for name in imported if name.startswith("oneturn")]
    assert [name for name in ours if not name.startswith(ALLOWED)] == []
    assert "oneturn.core.transitions" not in ours  # what is judged does not judge itself


def test_what_was_not_observed_is_not_judged() -> None:
    assert broken(Evidence(bounds=BOUNDS)) == set()
