"""Two server processes on one SQLite file: killed, paused, asked at the same time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from server import Server, calls, until

pytestmark = pytest.mark.slow

Post = tuple[int, Any, httpx.Headers]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    servers = [Server(tmp_path), Server(tmp_path)]
    try:
        yield servers[0].ready(), servers[1].ready()
    finally:
        for server in servers:
            server.close()


def post(
    server: Server, text: str, *, key: str, conversation: str = "c", wait: int = 25, **more: Any
) -> httpx.Response:
    return httpx.post(
        f"{server.url}/conversations/{conversation}/turns",
        json={"text": text, **more},
        headers={"Idempotency-Key": key, "Prefer": f"wait={wait}"},
        timeout=60,
    )


def state(server: Server, turn: str, conversation: str = "c") -> dict[str, Any]:
    answer: dict[str, Any] = httpx.get(f"{server.url}/conversations/{conversation}/turns/{turn}").json()
    return answer


def until_status(server: Server, turn: str, *statuses: str, conversation: str = "c") -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = state(server, turn, conversation)
        return found if found["status"] in statuses else None

    return until(look, what=f"{turn} to be {statuses}")


@pytest.mark.row("Q3", "Q4")
@pytest.mark.case("T1")
def test_fifty_posts_with_one_key_to_two_processes_are_one_execution(two: tuple[Server, Server]) -> None:
    """Fifty equal answers, byte for byte; one call of the model."""
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda number: post(two[number % 2], "hello", key="k"), range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len(calls(two[0].folder)) == 1


@pytest.mark.row("Q18")
@pytest.mark.case("T1", "T22")
def test_kill_9_in_mid_answer_says_so_and_frees_the_conversation(two: tuple[Server, Server]) -> None:
    """Fifty posts, the executor is killed, posted again: one call, every client gets the one outcome."""
    running = post(two[0], "wait-for-ever", key="k", wait=0)
    assert running.status_code == 202
    turn = running.headers["turn-id"]
    until(lambda: calls(two[0].folder) or None, what="the model to be called")
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(post, two[1], "wait-for-ever", key="k") for _ in range(20)]
        two[0].kill()
        answers = [future.result() for future in waiting]
    assert {answer.status_code for answer in answers} == {409}
    assert {answer.json()["type"].rsplit("/", 1)[-1].rsplit(":", 1)[-1] for answer in answers} == {"result-unavailable"}
    again = post(two[1], "wait-for-ever", key="k")
    assert again.status_code == 409
    assert until_status(two[1], turn, "abandoned")["status"] == "abandoned"
    assert post(two[1], "next", key="k2").status_code == 200
    assert len([call for call in calls(two[0].folder) if " k " in call]) == 1
    history = httpx.get(f"{two[1].url}/conversations/c/turns").json()["turns"]
    assert {item["status"] for item in history} == {"abandoned", "succeeded"}


@pytest.mark.case("O7", "T15")
def test_what_was_reported_is_there_after_a_kill_and_a_restart(two: tuple[Server, Server]) -> None:
    first = post(two[0], "hello", key="k")
    two[0].kill()
    two[1].kill()
    fresh = Server(two[0].folder)
    try:
        again = post(fresh.ready(), "hello", key="k")
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        events = httpx.get(
            f"{fresh.url}/conversations/c/turns/{first.headers['turn-id']}/events", params={"after": -1}
        ).text
        assert events.count("event: succeeded") == 1
    finally:
        fresh.close()
    assert len(calls(fresh.folder)) == 1


@pytest.mark.row("Q4")
@pytest.mark.case("T4", "T7")
def test_a_second_question_meets_its_policy_on_both_processes(two: tuple[Server, Server]) -> None:
    """Rejected or queued alike on the process that runs the first and on the other; the queued one runs afterwards."""
    first = post(two[0], "wait-1", key="1", wait=0)
    for server in two:
        rejected = post(server, "x", key="r", on_busy="reject")
        assert (rejected.status_code, rejected.json()["turn"]) == (409, first.headers["turn-id"])
        assert "retry-after" in rejected.headers
    queued = [post(server, "x", key=f"q{number}", wait=0) for number, server in enumerate(two)]
    assert [answer.json()["status"] for answer in queued] == ["queued", "queued"]
    (two[0].folder / "wait-1").touch()
    for answer in queued:
        until_status(two[0], answer.headers["turn-id"], "succeeded")
    order = [call.split()[1] for call in calls(two[0].folder)]
    assert order == ["1", "q0", "q1"]


@pytest.mark.case("T13")
@pytest.mark.row("Q2")
def test_watching_and_stopping_from_another_process(two: tuple[Server, Server]) -> None:
    running = post(two[0], "wait-for-ever", key="k", wait=0)
    turn = running.headers["turn-id"]
    url = f"{two[1].url}/conversations/c/turns/{turn}"
    kinds: list[str] = []
    with httpx.stream("GET", f"{url}/events", timeout=30) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                if kinds[-1] == "text":
                    assert httpx.post(f"{url}/cancel").status_code == 200
    assert kinds[-1] == "stopped"
    assert post(two[0], "next", key="k2").status_code == 200


def pause_outside_of_a_transaction(server: Server) -> None:
    """A process stopped within one holds SQLite's file lock, and nobody writes until it goes on: then stop it later."""

    def look() -> bool | None:
        server.pause()
        for file in ("chat.db", "chat.db-leases"):
            with closing(sqlite3.connect(server.folder / file, timeout=0.2, isolation_level=None)) as database:
                try:
                    database.execute("BEGIN IMMEDIATE")
                    database.execute("ROLLBACK")
                except sqlite3.OperationalError:
                    server.resume()
                    return None
        return True

    until(look, what="a moment without a transaction")


@pytest.mark.row("Q14")
@pytest.mark.case("T22", "T24")
def test_a_process_paused_beyond_its_lease_cannot_write_any_more(two: tuple[Server, Server]) -> None:
    """It wakes after another took over: its write is refused, whatever it believes; it lives on."""
    running = post(two[0], "wait-2", key="k", wait=0)
    turn = running.headers["turn-id"]
    until(lambda: calls(two[0].folder) or None, what="the model to be called")
    until(lambda: state(two[1], turn)["last_event"] == 2 or None, what="the first text to be logged")
    pause_outside_of_a_transaction(two[0])
    assert until_status(two[1], turn, "abandoned")["status"] == "abandoned"
    assert post(two[1], "next", key="k2").status_code == 200
    (two[0].folder / "wait-2").touch()
    two[0].resume()
    assert post(two[0], "after", key="k3").status_code == 200
    after = state(two[0], turn)
    assert (after["status"], after["result"]) == ("abandoned", None)


@pytest.mark.row("Q5")
@pytest.mark.case("T21", "L26")
def test_a_handler_that_blocks_its_loop_for_two_ttls_is_not_taken_for_dead(two: tuple[Server, Server]) -> None:
    """The keeper has a loop of its own: the other process attaches, waits, and is given the one answer."""
    with ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(post, two[0], "block", key="k")
        until(lambda: calls(two[0].folder) or None, what="the model to be called")
        attached = post(two[1], "block", key="k")
        assert (attached.status_code, attached.content) == (200, blocking.result().content)
    assert len(calls(two[0].folder)) == 1


@pytest.mark.case("T22")
def test_after_everything_nothing_is_left_running(two: tuple[Server, Server]) -> None:
    """Both processes are killed in mid-answer: after a restart no conversation runs for ever, without manual clean-up."""
    for number, server in enumerate(two):
        post(server, "wait-for-ever", key="k", conversation=f"c{number}", wait=0)
        post(server, "queued", key="q", conversation=f"c{number}", wait=0)
        server.kill()
    fresh = Server(two[0].folder)
    try:
        fresh.ready()
        for number in range(2):
            turns = httpx.get(f"{fresh.url}/conversations/c{number}/turns").json()["turns"]
            by_key = {turn["key"]: turn["turn"] for turn in turns}
            until_status(fresh, by_key["k"], "abandoned", conversation=f"c{number}")
            until_status(fresh, by_key["q"], "succeeded", conversation=f"c{number}")
        with sqlite3.connect(fresh.folder / "chat.db") as database:
            rows = database.execute("SELECT status, count(*) FROM oneturn_execution GROUP BY status").fetchall()
        assert dict(rows) == {"abandoned": 2, "succeeded": 2}
    finally:
        fresh.close()
    assert json.dumps(sorted(call.split()[1] for call in calls(fresh.folder))) == '["k", "k", "q", "q"]'
