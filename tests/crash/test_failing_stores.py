"""A store that fails in the middle of a run: it stops before the next node, says what to do, and goes on afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.crash.forks import Forks
from tests.crash.plans import Plans, Seen, said, spread
from tests.crash.test_kill_matrix import SAME
from tests.crash.test_races import outside_of_writes

ADVICE = {
    "fill": "The disk is full: make room, then try again.",
    "lock": "Another process kept the database locked",
    "cut": ("The database cannot be reached", "The connection broke while saving", "The database was lost"),
}


def fail(plans: Plans, forks: Forks, calm: Any, how: str, point: int) -> tuple[list[str], int]:
    """One run whose store fails from a point on until the run has stopped: what was wrong, and how often it stopped."""
    with plans.place() as place:
        found = said(forks.run("victim", place.order(plan={str(point): how})))
    wrong = [f"{name}: {found[name]} instead of {calm[name]}" for name in SAME if found[name] != calm[name]]
    failures = found["failures"]
    wrong += [each["error"] for each in failures if not each["error"].startswith(ADVICE[how])]
    books = [{"made": 0, "recorded": 0}, *failures, found["books"]]
    lost = [each["made"] - each["recorded"] for each in books]
    if any(not 0 <= after - before <= 1 for before, after in pairwise(lost)) or lost[-1] != lost[-2]:
        wrong.append(f"the run went on without its store: {books}")
    where = calm["labels"][point - 1]
    return [f"{how} at {point} ({where}): {each}" for each in wrong], len(failures)


def check(results: Sequence[tuple[list[str], int]], seen: Seen, what: str) -> int:
    """No run went wrong; how often one stopped."""
    assert [wrong for each in results for wrong in each[0]] == []
    stops = sum(each[1] for each in results)
    seen(what, f"{len(results)} failures of the store, {stops} stops")
    return stops


def within_writes(labels: Sequence[str]) -> list[int]:
    """The points of the writer's transactions."""
    return sorted({*range(1, len(labels) + 1)} - {*outside_of_writes(labels)})


def anywhere(labels: Sequence[str]) -> list[int]:
    """Every point."""
    return list(range(1, len(labels) + 1))


WAYS = [
    ("fill", "sqlite", within_writes),
    ("lock", "sqlite", outside_of_writes),
    pytest.param("cut", "postgresql", anywhere, marks=pytest.mark.postgres),
]


@pytest.mark.parametrize(("how", "vendor", "points_of"), WAYS)
def test_a_run_stops_when_its_store_fails_and_goes_on_when_it_is_back(
    plans_on: Any, forks: Forks, seen: Seen, how: str, vendor: str, points_of: Any
) -> None:
    plans: Plans = plans_on(vendor)
    calm = plans.undisturbed(forks, "victim")
    points = points_of(calm["labels"])
    results = [fail(plans, forks, calm, how, point) for point in points[9 : len(points) - 20 : len(points) // 9]]
    assert check(results, seen, vendor) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("how", "vendor", "points_of"), WAYS)
def test_wherever_its_store_fails_a_run_stops_and_goes_on_when_it_is_back(
    plans_on: Any, forks: Forks, second_forks: Forks, seen: Seen, how: str, vendor: str, points_of: Any
) -> None:
    plans: Plans = plans_on(vendor)
    calm = plans.undisturbed(forks, "victim")
    plans.warm_up(second_forks)
    points = points_of(calm["labels"])[: -20 : 1 if how != "lock" else 2]
    results = spread([forks, second_forks], lambda server, point: fail(plans, server, calm, how, point), points)
    assert check(results, seen, vendor) > len(points) // 4
