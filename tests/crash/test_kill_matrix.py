"""The hike planner killed at every point and started anew: the same end, every call paid once, every text sent once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.crash.forks import Forks
from tests.crash.plans import Place, Plans, Seen, live, spread

SAME = ("ending", "values", "receipts", "sent", "effects", "open", "asked", "clicks", "faults")


def differences(calm: Any, found: Any, place: Place, kills: int) -> list[str]:
    """What a disturbed run did that an undisturbed one does not do."""
    wrong = [f"{name}: {found[name]} instead of {calm[name]}" for name in SAME if found[name] != calm[name]]
    starts = place.starts()
    lost = [each["made"] - each["recorded"] for each in starts]
    # A call that was made and not recorded is made once more; one that was recorded never.
    if found["books"]["recorded"] != calm["books"]["recorded"]:
        wrong.append(f"calls: {found['books']} instead of {calm['books']}")
    if found["books"]["made"] - found["books"]["recorded"] != lost[-1]:
        wrong.append(f"a recorded call was made again: {found['books']} after {starts}")
    if any(not 0 <= after - before <= 1 for before, after in pairwise(lost)):
        wrong.append(f"one process lost more than one call: {starts}")
    if len(starts) != kills + 1:
        wrong.append(f"{len(starts)} starts after {kills} kills")
    return wrong


def suffer(plans: Plans, forks: Forks, kills: Sequence[int], calm: Any, **order: Any) -> tuple[list[str], int, int]:
    """One plan: the points each process is killed at. What was wrong, how many kills fell, and questions asked."""
    with plans.place() as place:
        found, fell = live(forks, "victim", place, [{"plan": {str(point): "kill"}} for point in kills], **order)
        wrong = differences(calm, found, place, fell)
        if len(found["doubts"]) > fell or (found["doubts"] and not order.get("blind")):
            wrong.append(f"asked {found['doubts']} after {fell} kills")
    where = [calm["labels"][kills[0] - 1], *kills]
    return [f"killed at {where}: {each}" for each in wrong], fell, len(found["doubts"])


def check(results: Sequence[tuple[list[str], int, int]], seen: Seen, what: str) -> tuple[int, int]:
    """No plan went wrong; how many kills there were, and questions about lost answers."""
    assert [wrong for each in results for wrong in each[0]] == []
    kills, doubts = sum(each[1] for each in results), sum(each[2] for each in results)
    seen(what, f"{len(results)} plans, {kills} kills, {doubts} questions")
    return kills, doubts


def around_outside_calls(labels: Sequence[str]) -> list[int]:
    """The points beside a call that leaves the process."""
    names = ("taken", "answered")
    return [n for n, label in enumerate(labels, 1) if label.startswith(names) or label == "before model"]


def test_killed_at_points_from_first_to_last_the_run_ends_as_if_nothing_had_happened(
    plans: Plans, forks: Forks, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "victim")
    assert calm["ending"] == "finished" and [kind for kind, *_ in calm["sent"]] == ["post", "sms"]
    points = sorted({*range(5, len(calm["labels"]) - 20, 61), *around_outside_calls(calm["labels"])[-7:]})
    results = [suffer(plans, forks, [point], calm) for point in points]
    kills, _ = check(results, seen, plans.vendor)
    assert kills == len(points)


def test_a_text_whose_answer_was_lost_becomes_a_question_and_never_two_texts(
    plans: Plans, forks: Forks, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "victim", blind=True)
    text = calm["labels"].index("before POST /messages") + 1
    assert calm["labels"][text - 1 : text + 2] == [f"{at} POST /messages" for at in ("before", "taken", "answered")]
    results = [suffer(plans, forks, [point], calm, blind=True) for point in (text - 1, text, text + 1, text + 2)]
    assert check(results, seen, plans.vendor) == (4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("blind", [False, True], ids=["can be asked", "cannot be asked"])
def test_killed_at_every_point_the_run_ends_as_if_nothing_had_happened(
    plans: Plans, forks: Forks, second_forks: Forks, blind: bool, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "victim", blind=blind)
    plans.warm_up(second_forks)
    points = range(1, len(calm["labels"]) + 1)
    if blind:  # all that differs is between the step that asks for the effects and its receipts
        points = range(points[-1] * 3 // 5, points[-1] + 1)
    results = spread([forks, second_forks], lambda f, n: suffer(plans, f, [n], calm, blind=blind), list(points))
    kills, doubts = check(results, seen, plans.vendor)
    assert kills > len(points) - 30  # which connections are used again is a matter of time, so runs differ by a few
    assert (doubts >= 3) == blind


@pytest.mark.slow
def test_killed_two_to_four_times_anywhere_the_run_ends_as_if_nothing_had_happened(
    plans: Plans, forks: Forks, second_forks: Forks, seen: Seen
) -> None:
    calm = {blind: plans.undisturbed(forks, "victim", blind=blind) for blind in (False, True)}
    plans.warm_up(second_forks)
    chance = random.Random(20270113)
    last = len(calm[False]["labels"])
    deaths = [
        (chance.random() < 0.5, [chance.randint(1, last) for _ in range(chance.randint(2, 4))]) for _ in range(150)
    ]
    results = spread([forks, second_forks], lambda f, d: suffer(plans, f, d[1], calm[d[0]], blind=d[0]), deaths)
    kills, _ = check(results, seen, plans.vendor)
    assert kills >= 150
