"""A graph with branches, sends, questions, effects and a child, killed anywhere: the same trace, nothing twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.crash.forks import Forks
from tests.crash.plans import Blows, Place, Plans, Seen, live, spread

SAME = ("status", "values", "trace", "effects", "outbox", "asked", "faults", "recorded")


def differences(calm: Any, found: Any, place: Place, kills: int) -> list[str]:
    """What a disturbed run did that an undisturbed one does not do."""
    wrong = [f"{name}: {found[name]} instead of {calm[name]}" for name in SAME if found[name] != calm[name]]
    for start in place.starts():
        made = Counter(start["made"])
        again = [name for name in start["recorded"] if found["made"][name] != made[name]]
        if again:
            wrong.append(f"recorded calls were made again: {again}")
    if any(count > 1 + kills for count in found["made"].values()):
        wrong.append(f"one process made a call twice: {found['made']}")
    return wrong


def suffer(plans: Plans, forks: Forks, blows: Sequence[Blows], calm: Any) -> tuple[list[str], int]:
    """One plan: what was wrong, and how many kills fell."""
    with plans.place() as place:
        found, fell = live(forks, "engine_victim", place, blows)
        return [f"{blows}: {each}" for each in differences(calm, found, place, fell)], fell


def check(results: Sequence[tuple[list[str], int]], seen: Seen, what: str) -> int:
    """No plan went wrong; how many kills there were."""
    assert [wrong for each in results for wrong in each[0]] == []
    kills = sum(each[1] for each in results)
    seen(what, f"{len(results)} plans, {kills} kills")
    return kills


def at(point: int) -> Blows:
    return {"plan": {str(point): "kill"}}


def test_killed_at_points_from_first_to_last_nothing_is_done_twice(plans: Plans, forks: Forks, seen: Seen) -> None:
    calm = plans.undisturbed(forks, "engine_victim")
    assert (calm["status"], len(calm["outbox"]), len(calm["made"])) == ("finished", 2, 13)
    assert set(calm["made"].values()) == {1}
    points = range(3, len(calm["labels"]) - 20, 47)
    results = [suffer(plans, forks, [at(point)], calm) for point in points]
    assert check(results, seen, plans.vendor) == len(points)


@pytest.mark.slow
def test_killed_at_every_point_nothing_is_done_twice(
    plans: Plans, forks: Forks, second_forks: Forks, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "engine_victim")
    plans.warm_up(second_forks)
    points = range(1, len(calm["labels"]) + 1)
    results = spread([forks, second_forks], lambda f, n: suffer(plans, f, [at(n)], calm), list(points))
    # Saves of parallel branches may come together, so that a run has a few points less.
    assert check(results, seen, plans.vendor) > len(points) - 30


@pytest.mark.slow
def test_killed_at_any_instant_nothing_is_done_twice(
    plans: Plans, forks: Forks, second_forks: Forks, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "engine_victim")
    plans.warm_up(second_forks)
    chance = random.Random(20270113)
    longest = calm["took"] * 0.8
    instants = [[{"after": chance.uniform(0.001, longest)} for _ in range(chance.randint(1, 3))] for _ in range(100)]
    results = spread([forks, second_forks], lambda f, blows: suffer(plans, f, blows, calm), instants)
    assert check(results, seen, plans.vendor) > 20  # the rest had ended before their time came
