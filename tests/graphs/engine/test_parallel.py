"""Jobs side by side: all done, in order, and what is done is handed over while others still run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.engine import parallel
from graphs.engine.parallel import run_all

PATIENCE = 20  # seconds


class Kept:
    """What was handed over; `wait(all)` until it is all of these."""

    def __init__(self) -> None:
        self.results: list[int] = []
        self._changed = threading.Condition()

    def __call__(self, results: Sequence[int]) -> None:
        with self._changed:
            self.results += results
            self._changed.notify_all()

    def wait(self, wanted: set[int]) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: set(self.results) >= wanted, PATIENCE)


@settings(max_examples=60, deadline=None)
@given(slow=st.lists(st.booleans(), min_size=2, max_size=8))
def test_what_is_done_is_handed_over_once_while_others_still_run(slow: list[bool]) -> None:
    kept, quick = Kept(), {n for n, is_slow in enumerate(slow) if not is_slow}

    def job(n: int) -> Callable[[], int]:
        def wait() -> int:
            assert kept.wait(quick), f"{quick - set(kept.results)} were not handed over"
            return n

        return wait if slow[n] else lambda: n

    assert run_all([job(n) for n in range(len(slow))], kept) == list(range(len(slow)))
    assert len(kept.results) == len(set(kept.results))
    if any(slow):
        assert set(kept.results) >= quick


@settings(max_examples=30, deadline=None)
@given(number=st.integers(2, 30))
def test_jobs_that_wait_for_each_other_all_run_at_once(number: int) -> None:
    barrier = threading.Barrier(number)
    assert sorted(run_all([lambda: barrier.wait(PATIENCE)] * number, Kept())) == list(range(number))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_is_raised_once_all_have_stopped(place: int) -> None:
    done = []

    def job(n: int) -> int:
        if n == place:
            raise LookupError(str(n))
        done.append(n)
        return n

    with pytest.raises(LookupError, match=str(place)):
        run_all([lambda n=n: job(n) for n in range(3)], Kept())  # type: ignore[misc]
    assert sorted(done) == sorted({0, 1, 2} - {place})


def test_an_error_in_handing_over_is_raised_once_all_have_stopped() -> None:
    refused, done = threading.Event(), []

    def refuse(_results: Sequence[int]) -> None:
        refused.set()
        raise LookupError("the store is gone")

    def slow() -> int:
        assert refused.wait(PATIENCE)
        done.append("slow")
        return 1

    with pytest.raises(LookupError, match="the store is gone"):
        run_all([lambda: 0, slow], refuse)
    assert done == ["slow"]


@pytest.mark.parametrize("place", [0, 1])
def test_an_interrupt_is_raised_at_once(place: int) -> None:
    release = threading.Event()

    def interrupted() -> int:
        raise KeyboardInterrupt

    jobs: list[Callable[[], int]] = [lambda: int(release.wait(PATIENCE))]
    jobs.insert(place, interrupted)
    if place == 1:  # the caller waits in the first: it is the other thread's interrupt that is raised
        jobs[0] = lambda: 0
    with pytest.raises(KeyboardInterrupt):
        run_all(jobs, Kept())
    release.set()


def test_where_nobody_can_be_called_any_more_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    monkeypatch.setattr(parallel, "POOL", closed)
    assert run_all([lambda n=n: n for n in range(4)], Kept()) == [0, 1, 2, 3]  # type: ignore[misc]


def test_jobs_within_jobs_never_wait_for_a_thread() -> None:
    def nested(depth: int) -> int:
        if not depth:
            return 1
        return sum(run_all([lambda: nested(depth - 1)] * 3, Kept()))

    assert nested(4) == 81
