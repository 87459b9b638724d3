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

    What a job raises (a lost claim, a failing store) is raised once all have stopped.
    """
    if len(jobs) == 1:
        return [jobs[0]()]
    crew = _Crew(jobs)
    crew.call()
    while not crew.all_done.wait(TOGETHER):
        crew.some_done.wait()
        if not crew.all_done.wait(TOGETHER):
            crew.keep(finished)
    return crew.results()


class _Crew(Generic[T]):
    """As many threads as there are jobs that wait for something.

    Whoever takes a job calls one more thread before doing it. Where jobs are quick, the first has done them all by the
    time the second arrives; where they wait, each soon has a thread of its own.
    """

    def __init__(self, jobs: Sequence[Callable[[], T]]) -> None:
        self.all_done, self.some_done = threading.Event(), threading.Event()
        self._todo = deque(enumerate(jobs))
        self._results: dict[int, T] = {}
        self._fresh: list[T] = []
        self._errors: list[BaseException] = []
        self._left = len(jobs)
        self._lock = threading.Lock()
        self._called = False

    def call(self) -> None:
        """Have one more thread come, unless one is on its way."""
        if self._todo and not self._called:
            self._called = True
            POOL.submit(self._work)

    def keep(self, finished: Callable[[Sequence[T]], None]) -> None:
        """Hand over what is done; what that raises has to wait until nothing runs any more."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            self.some_done.clear()
        if fresh and not self._errors:
            try:
                finished(fresh)
            except Exception as error:
                self._errors.append(error)

    def results(self) -> list[T]:
        """What the jobs returned, in their order; raises what came first of what they raised."""
        if self._errors:
            raise self._errors[0]
        return [self._results[place] for place in range(len(self._results))]

    def _work(self) -> None:
        self._called = False
        while self._todo:
            try:
                place, job = self._todo.popleft()
            except IndexError:  # another thread was faster
                return
            self.call()
            self._do(place, job)

    def _do(self, place: int, job: Callable[[], T]) -> None:
        try:
            result = job()
        except BaseException as error:
            with self._lock:
                self._errors.append(error)
                self._finish()
            return
        with self._lock:
            self._results[place] = result
            self._fresh.append(result)
            self._finish()

    def _finish(self) -> None:
        self._left -= 1
        self.some_done.set()
        if not self._left:
            self.all_done.set()
