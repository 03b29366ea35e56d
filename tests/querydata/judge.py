"""Judges the embedded model by the gold file: `python -m tests.querydata.judge`, from the project's folder.

A question is right if its rows are those of the gold SQL on every seed's campus, wrong if they differ on one, else refused.
The exit code is 1 while fewer than 95 % are right, more than 1 % are wrong, or something unsuitable is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from querydata.campus import TABLES
from querydata.guard import Rejected, guard
from querydata.model import Model
from querydata.model.embedded import EmbeddedModel
from querydata.model.port import Declined, Exchange, Proposal, Request
from querydata.parser import Values

from .gold_file import SEEDS, Case, Unsuitable, answered, campus, same_answer, unsuitable

RIGHT_AT_LEAST = 0.95
WRONG_AT_MOST = 0.01
MAX_ROWS = 100_000
Verdict = Literal["right", "wrong", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one question on one campus: how it was read, or why it was refused."""

    verdict: Verdict
    said: str
    rows: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """What came of all questions on all campuses."""

    answered: list[tuple[Case, Finding]]
    """Of several campuses, the worst finding."""
    unsuitable: list[tuple[Unsuitable, Finding]]
    """`refused`, or `wrong` where there was an answer."""

    def count(self, verdict: Verdict) -> int:
        """How many answerable questions ended so."""
        return sum(finding.verdict == verdict for _, finding in self.answered)

    def answered_anyway(self) -> int:
        """How many unsuitable questions were answered."""
        return sum(finding.verdict != "refused" for _, finding in self.unsuitable)

    def good_enough(self) -> bool:
        """Whether the promise is kept."""
        right, wrong, total = self.count("right"), self.count("wrong"), len(self.answered)
        return right >= RIGHT_AT_LEAST * total and wrong <= WRONG_AT_MOST * total and not self.answered_anyway()


def judge(model: Model, case: Case, *, ours: sqlite3.Connection, gold: sqlite3.Connection) -> Finding:
    """Ask one answerable question, after the one that it follows up."""
    reply = asyncio.run(_ask(model, case))
    if isinstance(reply, Declined):
        return Finding(verdict="refused", said=reply.message)
    guarded = guard(reply.sql, tables=TABLES, max_rows=MAX_ROWS)
    if isinstance(guarded, Rejected):
        return Finding(verdict="refused", said=f"{reply.reading} [{guarded.reason}]")
    rows, wanted = ours.execute(guarded.sql).fetchall(), gold.execute(case.sql).fetchall()
    if same_answer(rows, wanted, ranked=case.ranked) or not (rows or wanted):
        return Finding(verdict="right", said=reply.reading)
    shown = f"{len(rows)} rows {rows[:2]}, gold {len(wanted)} rows {wanted[:2]}"
    return Finding(verdict="wrong", said=reply.reading, rows=shown)


async def _ask(model: Model, case: Case) -> Proposal | Declined:
    history: tuple[Exchange, ...] = ()
    if case.earlier:
        first = await model.propose(Request(question=case.earlier), delta=lambda _: None)
        if isinstance(first, Declined):
            return first
        history = (Exchange(question=case.earlier, reading=first.reading, sql=first.sql),)
    return await model.propose(Request(question=case.question, history=history), delta=lambda _: None)


def judge_unsuitable(model: Model, one: Unsuitable) -> Finding:
    """Ask what must not be answered."""
    reply = asyncio.run(model.propose(Request(question=one.question), delta=lambda _: None))
    if isinstance(reply, Declined):
        return Finding(verdict="refused", said=reply.message)
    return Finding(verdict="wrong", said=reply.reading)


def report(cases: Sequence[Case], others: Sequence[Unsuitable], *, seeds: Sequence[int]) -> Report:
    """Ask everything on a campus of each seed."""
    findings: list[list[Finding]] = [[] for _ in cases]
    unwanted: list[list[Finding]] = [[] for _ in others]
    for seed in seeds:
        with (
            tempfile.TemporaryDirectory() as folder,
            campus(Path(folder), seed=seed) as (file, gold),
            closing(sqlite3.connect(file)) as ours,
        ):
            model = EmbeddedModel(Values.load(file))
            for found, case in zip(findings, cases, strict=True):
                found.append(judge(model, case, ours=ours, gold=gold))
            for found, one in zip(unwanted, others, strict=True):
                found.append(judge_unsuitable(model, one))
    return Report(
        answered=list(zip(cases, map(worst, findings), strict=True)),
        unsuitable=list(zip(others, map(worst, unwanted), strict=True)),
    )


def worst(findings: Sequence[Finding]) -> Finding:
    """Wrong on one campus is wrong; refused on one is not right."""
    order: dict[Verdict, int] = {"wrong": 0, "refused": 1, "right": 2}
    return min(findings, key=lambda finding: order[finding.verdict])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, and on demand what is behind them."""
    parser = argparse.ArgumentParser(prog="gold", description="Judge the embedded model by the gold file.")
    parser.add_argument(
        "--wrong", action="store_true", help="list what was answered wrongly, with its reading and rows"
    )
    parser.add_argument("--refused", action="store_true", help="list what was refused, with the reason")
    parser.add_argument("--classes", action="store_true", help="the figures of each class and language")
    parser.add_argument("--kind", default="*", help="one class only: the name of a file in gold/answered")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="SEED")
    chosen = parser.parse_args(arguments)
    cases = answered(chosen.kind)
    if not cases:
        parser.error(f"there is no class {chosen.kind!r}")
    found = report(cases, unsuitable(), seeds=chosen.seeds)
    for verdict in ("wrong", "refused"):
        if getattr(chosen, verdict):
            _list(found, verdict)
    for one, finding in found.unsuitable:
        if finding.verdict != "refused":
            print(f"answered [{one.kind}] {one.question}\n    {finding.said}")
    if chosen.classes:
        _print_classes(found)
    print(f"right={found.count('right')} wrong={found.count('wrong')} refused={found.count('refused')}")
    print(f"unsuitable: refused={len(found.unsuitable) - found.answered_anyway()} answered={found.answered_anyway()}")
    return 0 if found.good_enough() else 1


def _list(found: Report, verdict: Verdict) -> None:
    for case, finding in found.answered:
        if finding.verdict == verdict:
            print(f"{verdict} [{case.kind}] {case.text}\n    {finding.said}")
            if finding.rows:
                print(f"    {finding.rows}")


def _print_classes(found: Report) -> None:
    counts = Counter((case.kind, case.language, finding.verdict) for case, finding in found.answered)
    for kind, language in sorted({(kind, language) for kind, language, _ in counts}):
        figures = " ".join(f"{each}={counts[kind, language, each]}" for each in ("right", "wrong", "refused"))
        print(f"{kind:13} {language}  {figures}")


if __name__ == "__main__":
    sys.exit(main())
