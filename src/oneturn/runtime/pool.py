"""The worker threads of synchronous handlers: bounded, and shared out between tenants in turn."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

Threads = Callable[[int], concurrent.futures.Executor]
"""Makes so many worker threads: the seam at which a simulation puts threads whose order it draws."""


def real_threads(size: int) -> concurrent.futures.Executor:
    """Threads of the operating system."""
    return concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix="oneturn-work")


_Job = tuple["concurrent.futures.Future[Any]", Callable[[], Any]]


class WorkerPool:
    """Runs at most `size` jobs at once.

    While all threads are taken, tenants are served in turn, each in its own order: a tenant that sends a burst delays
    another by a few executions, not by its whole burst.
    """

    def __init__(self, size: int, *, threads: Threads = real_threads) -> None:
        self._free = size
        self._threads = threads(size)
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._change = threading.Lock()

    def submit(self, tenant: str, function: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Run `function` when it is this tenant's turn. Cancelling the future before that takes it out of the line."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with self._change:
            self._waiting.setdefault(tenant, deque()).append((future, function))
            self._dispatch()
        return future

    def close(self) -> None:
        """Take nothing more; jobs that have not begun are cancelled, running ones are not waited for."""
        with self._change:
            waiting, self._waiting = self._waiting, OrderedDict()
        for jobs in waiting.values():
            for future, _ in jobs:
                future.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _dispatch(self) -> None:
        # Called with the lock held.
        while self._free and self._waiting:
            tenant, jobs = self._waiting.popitem(last=False)
            future, function = jobs.popleft()
            if jobs:
                self._waiting[tenant] = jobs  # to the end of the line of tenants
            if future.set_running_or_notify_cancel():
                self._free -= 1
                self._threads.submit(self._run, future, function)

    def _run(self, future: concurrent.futures.Future[Any], function: Callable[[], Any]) -> None:
        try:
            result = function()
        except StopIteration as error:
            # asyncio refuses to carry it, and would leave whoever awaits this future waiting for ever.
            stopped = RuntimeError("the handler raised StopIteration")
            stopped.__cause__ = error
            future.set_exception(stopped)
        except BaseException as error:  # noqa: BLE001 - the future's owner judges it
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            with self._change:
                self._free += 1
                self._dispatch()
