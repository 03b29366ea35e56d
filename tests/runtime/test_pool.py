"""Worker threads: bounded, shared out between tenants in turn."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from oneturn.runtime.pool import WorkerPool


@pytest.mark.case("T27")
def test_a_burst_of_one_tenant_delays_another_by_a_few_executions() -> None:
    """One thread, ten jobs of a tenant that came first: the other tenant's job is the second to run."""
    pool, order = WorkerPool(1), list[str]()
    begun, go = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go.wait()
        order.append("burst 0")

    jobs = [pool.submit("burst", first)]
    begun.wait()
    jobs.extend(pool.submit("burst", partial(order.append, f"burst {number}")) for number in range(1, 10))
    jobs.append(pool.submit("calm", lambda: order.append("calm")))
    go.set()
    for job in jobs:
        job.result()
    assert order.index("calm") <= 2
    assert [name for name in order if name != "calm"] == [f"burst {number}" for number in range(10)]
    pool.close()


def test_a_job_that_was_cancelled_in_the_line_never_runs() -> None:
    pool, ran = WorkerPool(1), list[str]()
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go.wait()

    first = pool.submit("a", hold)
    begun.wait()
    second = pool.submit("a", lambda: ran.append("second"))
    assert second.cancel()
    go.set()
    first.result()
    assert pool.submit("a", lambda: "third").result() == "third"
    assert ran == []
    pool.close()
