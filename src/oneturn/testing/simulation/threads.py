"""Worker threads in virtual time: real threads, of which one runs at a time, when the loop hands it the turn."""

from __future__ import annotations

import concurrent.futures
import random
import threading
from collections.abc import Callable
from typing import Any

from oneturn.testing.link import Crashed
from oneturn.testing.simulation.loop import SimulatedLoop, lane_context

_running = threading.local()


def sleep(seconds: float) -> None:
    """What a synchronous handler sleeps with under simulation: gives the turn back for so much virtual time."""
    job: Job | None = getattr(_running, "job", None)
    if job is None:
        raise RuntimeError("this sleeps in a simulated worker thread only: await asyncio.sleep elsewhere")
    job.sleep(seconds)


class Job:
    """A function in a thread. It runs until it ends or sleeps; meanwhile the loop stands still."""

    def __init__(self, loop: SimulatedLoop, lane: str, function: Callable[[], Any]) -> None:
        self._loop = loop
        self._context = lane_context(lane)
        self._function = function
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._begun = False
        self._killed = False
        self.over = False

    def later(self, seconds: float) -> None:
        """Go on after so much virtual time."""
        self._loop.call_later(seconds, self._go, context=self._context)

    def sleep(self, seconds: float) -> None:
        """Called in the thread."""
        if self._killed:
            raise Crashed  # once more: it went on after it was told
        self.later(seconds)
        self._back.release()
        self._turn.acquire()
        if self._killed:
            raise Crashed

    def kill(self) -> None:
        """Let it end: it never began, or its sleep raises `Crashed`."""
        self._killed = True
        if self._begun:
            self._go()
        self.over = True

    def _go(self) -> None:
        if self.over:
            return
        self._loop.borrowed = self._context
        if self._begun:
            self._turn.release()
        else:
            self._begun = True
            # A daemon: one that a broken run leaves asleep does not keep the interpreter from ending.
            threading.Thread(target=self._main, name="simulated-work", daemon=True).start()
        self._back.acquire()
        self._loop.borrowed = None

    def _main(self) -> None:
        _running.job = self
        try:
            self._function()
        finally:
            _running.job = None
            self.over = True
            self._back.release()


class SimulatedThreads(concurrent.futures.Executor):
    """The worker threads of one process: each job begins after a drawn delay, some of them late."""

    def __init__(self, loop: SimulatedLoop, host: str, draw: random.Random) -> None:
        self._loop = loop
        self._lane = f"{host}/work"
        self._draw = draw
        self._jobs: dict[Job, None] = {}
        self.dropped = 0
        """Jobs that had not begun when the threads were shut down."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Run it in its turn."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the future carries it
                future.set_exception(error)
            finally:
                self._jobs.pop(job, None)

        job = Job(self._loop, self._lane, run)
        self._jobs[job] = None
        slow = self._draw.random() < 0.05  # noqa: PLR2004 - one thread in twenty is scheduled late
        job.later(self._draw.expovariate(0.5 if slow else 200.0))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as Executor has it
        """Jobs that have not begun never do; running ones are left to themselves."""
        for job in [job for job in self._jobs if not job._begun]:  # noqa: SLF001 - one noun, two classes
            job.kill()
            del self._jobs[job]
            self.dropped += 1

    def kill(self) -> None:
        """As the process's end does."""
        for job in tuple(self._jobs):
            job.kill()
        self._jobs.clear()

    @property
    def jobs(self) -> int:
        """How many run or wait."""
        return len(self._jobs)
