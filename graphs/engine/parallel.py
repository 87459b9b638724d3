"""Threads for the tasks of one superstep."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")

POOL = ThreadPoolExecutor(max_workers=10_000, thread_name_prefix="node")
"""Grows as needed and reuses idle threads: parallel branches of nested graphs never wait for one another's threads."""
TOGETHER = 0.002  # seconds that a finished task waits for its siblings before it is kept


def run_all(jobs: Sequence[Callable[[], T]], finished: Callable[[Sequence[T]], None]) -> list[T]:
    """Run jobs side by side; `finished(results)` is called with those done while others still run.

    What a job or `finished` raises (a lost claim, a failing store) is raised once all have stopped, and what is no
    `Exception` (an interrupt) at once.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    crew = _Crew(jobs, finished)
    crew.work()
    crew.over.wait()
    return crew.results()


class _Crew(Generic[T]):
    """As many threads as there are jobs that wait for something, the caller's among them.

    Whoever begins a job calls one more thread if anything is left: jobs, or results to be handed over. Where jobs are
    quick the caller has done them all by the time the other arrives; where they wait, each soon has its own thread.
    """

    def __init__(self, jobs: Sequence[Callable[[], T]], finished: Callable[[Sequence[T]], None]) -> None:
        self.over = threading.Event()
        self._finished = finished
        self._todo = deque(enumerate(jobs))
        self._results: dict[int, T] = {}
        self._fresh: list[T] = []
        self._errors: list[BaseException] = []
        self._left = len(jobs)
        self._lock = threading.Lock()
        self._called = False

    def work(self) -> None:
        """Do jobs as long as there are any, then see to what has been done."""
        while self._todo and not self.over.is_set():
            try:
                place, job = self._todo.popleft()
            except IndexError:  # another thread was faster
                break
            self._call()
            self._do(place, job)
        self._hand_over()

    def results(self) -> list[T]:
        """What the jobs returned, in their order; raises what came first of what was raised."""
        if self._errors:
            raise self._errors[0]
        return [self._results[place] for place in range(len(self._results))]

    def _call(self) -> None:
        if (self._todo or self._fresh) and not self._called:
            self._called = True
            try:
                POOL.submit(self._come)
            except RuntimeError:  # the process ends: whoever is here does the rest
                self._called = False

    def _come(self) -> None:
        self._called = False
        self.work()

    def _do(self, place: int, job: Callable[[], T]) -> None:
        try:
            result = job()
        except BaseException as error:
            self._fail(error)
        else:
            with self._lock:
                self._results[place] = result
                self._fresh.append(result)
        with self._lock:
            self._left -= 1
            if not self._left:
                self.over.set()

    def _fail(self, error: BaseException) -> None:
        self._errors.append(error)
        if not isinstance(error, Exception):
            self.over.set()

    def _hand_over(self) -> None:
        """Keep what is done, unless the rest is done within moments: then the step is whole and kept as such."""
        if not self._fresh or self.over.wait(TOGETHER):
            return
        with self._lock:
            fresh, self._fresh = self._fresh, []
        if fresh and not self._errors:
            try:
                self._finished(fresh)
            except BaseException as error:
                self._fail(error)
