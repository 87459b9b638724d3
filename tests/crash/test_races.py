"""Processes that want the same thing at the same instant, and an owner who comes back too late: one wins, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from graphs.flow import Policy
from storage import approvals, audit, runs
from storage.database import Database
from tests.crash.forks import Forks
from tests.crash.plans import Place, Plans, Seen, said, spread
from tests.crash.racers import GRAPH, runner_on
from tests.crash.stage import Clock, lines
from tests.crash.test_kill_matrix import SAME
from tests.storage.scene import PLAIN, Scene, hike, hours

ROUNDS = [8, pytest.param(200, marks=pytest.mark.slow)]


@contextmanager
def prepared(plans: Plans, forks: Forks) -> Iterator[tuple[Place, Scene]]:
    """A place, and a hand in it."""
    plans.warm_up(forks)
    with plans.place() as place:
        database = Database(place.url, clock=Clock(place.folder / "clock"))
        try:
            yield place, Scene(database)
        finally:
            database.close()


def ask(scene: Scene, number: int, policy: Policy = PLAIN) -> None:
    scene.ask(hike(), policy, run=scene.run(f"hike {number}"), id=f"ask {number}")


def race(forks: Forks, place: Place, name: str, racers: int, rounds: int) -> list[Any]:
    """What each racer got, by round."""
    orders = [place.order(race=name, me=me, rounds=rounds) for me in range(racers)]
    answers = [said(ended) for ended in forks.group("racers", orders)]
    return list(zip(*answers, strict=True))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_eight_processes_that_decide_one_wins_and_seven_are_told_who_it_was(
    plans: Plans, forks: Forks, rounds: int, seen: Seen
) -> None:
    with prepared(plans, forks) as (place, scene):
        for number in range(rounds):
            ask(scene, number)
        approved = 0
        for number, answers in enumerate(race(forks, place, "decide", 8, rounds)):
            ((winner, won),) = [(me, each) for me, each in enumerate(answers) if each[0] == "settled"]
            losers = [each for each in answers if each is not won]
            assert {tuple(each[:3]) for each in losers} == {("refused", "not_pending", f"U{winner}")}
            assert all(f"<@U{winner}>" in sentence for *_, sentence, _ in losers)
            status = "declined" if winner % 2 else "approved"
            approved += status == "approved"
            assert (scene.status(f"ask {number}"), won[4]) == (status, status)
            clicks = approvals.decisions_of(scene.database, f"ask {number}")
            assert sorted((click.counted, click.who) for click in clicks)[-1] == (True, f"U{winner}")
            assert [click.counted for click in clicks].count(False) == 7
        assert audit.verify(scene.database) == []
        seen(plans.vendor, f"{rounds} rounds, {approved} approved, {rounds - approved} declined")


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_click_at_the_instant_of_expiry_counts_or_is_told_it_came_too_late(
    plans: Plans, forks: Forks, rounds: int, seen: Seen
) -> None:
    with prepared(plans, forks) as (place, scene):
        for number in range(rounds):
            # Half an hour's room, because the clock goes on by itself too.
            ask(scene, number, Policy(expires_after=timedelta(hours=number, minutes=30)))
        expired = 0
        for number, answers in enumerate(race(forks, place, "expire", 4, rounds)):
            swept = [root for each in answers[::2] for root in each]
            clicks = sorted((result, refusal) for result, refusal in answers[1::2])
            if scene.status(f"ask {number}") == "expired":
                assert set(clicks) <= {("refused", "expired"), ("refused", "not_pending")}
                assert scene.record(f"hike {number}").ending == "expired"
            else:
                assert scene.status(f"ask {number}") == "approved"
                assert clicks == [("refused", "not_pending"), ("settled", "")]
                assert scene.record(f"hike {number}").ending == ""
            expired += len(swept)
            assert len(swept) == len(set(swept))
        statuses = [scene.status(f"ask {number}") for number in range(rounds)]
        assert statuses.count("expired") == expired
        assert audit.verify(scene.database) == []
        seen(plans.vendor, f"{rounds} rounds, {expired} expired, {rounds - expired} approved")


@pytest.mark.parametrize("rounds", ROUNDS)
def test_an_approval_never_counts_for_a_draft_that_was_put_in_its_place(
    plans: Plans, forks: Forks, rounds: int, seen: Seen
) -> None:
    with prepared(plans, forks) as (place, scene):
        for number in range(rounds):
            ask(scene, number)
        replaced = 0
        for number, answers in enumerate(race(forks, place, "save", 4, rounds)):
            row, got = scene.approval(f"ask {number}"), sorted((result, refusal) for result, refusal in answers)
            if row.status == "pending":
                replaced += 1
                assert got == [*[("refused", "stale_version")] * 3, ("saved", "")]
                assert row.draft_version == 2
            else:
                assert (row.status, row.draft_version) == ("approved", 1)
                assert got == [*[("refused", "not_pending")] * 3, ("settled", "")]
        assert audit.verify(scene.database) == []
        seen(plans.vendor, f"{rounds} rounds, {replaced} drafts replaced, {rounds - replaced} approved")


@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_two_answers_to_one_question_one_counts_and_none_to_another_is_lost(
    plans: Plans, forks: Forks, rounds: int, seen: Seen
) -> None:
    with prepared(plans, forks) as (place, scene):
        runner = runner_on(scene.database, place.folder)
        for number in range(rounds):
            runner.invoke(GRAPH, {}, f"step-{number}")
        answers = race(forks, place, "resume", 4, rounds)
        # An answer that came while somebody advanced the run has left it due.
        left = runs.due(scene.database, 1000, runner.known)
        for thread in left:
            runner.advance(thread)
        for number in range(rounds):
            state = runner.get_state(f"step-{number}")
            assert (state.status, state.interrupts) == ("finished", ())
            values: Any = state.values.to_json()
            assert values["second"] == "racer 2"
            loser = {"racer 1": 3, "racer 3": 1}[values["first"]]
            assert answers[number][loser][0] in ("StaleInterrupt", "RunEnded", "NothingPending")
        threads = [f"step-{number}" for number in range(rounds)]
        assert sorted(lines(place.folder / "calls")) == sorted(threads)
        assert sorted(lines(place.folder / "outbox")) == sorted(f"post {thread}:2:0" for thread in threads)
        runner.store.close()  # type: ignore[attr-defined]
        seen(plans.vendor, f"{rounds} rounds, {len(left)} left due")


@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_four_sweeping_processes_one_sends_each_reminder(
    plans: Plans, forks: Forks, rounds: int, seen: Seen
) -> None:
    with prepared(plans, forks) as (place, scene):
        for number in range(rounds):
            later = [hours(number + part) for part in (0.5, 1.5)]
            ask(scene, number, Policy(remind_after=tuple(later)))
        sent = [one for answers in race(forks, place, "remind", 4, rounds + 1) for each in answers for one in each]
        assert sorted(sent) == sorted(f"remind:ask {n}:{stage}" for n in range(rounds) for stage in (1, 2))
        seen(plans.vendor, f"{rounds + 1} sweeps each, {len(sent)} reminders")


# ---- an owner who comes back too late --------------------------------------------------------------------------------


def outside_of_writes(labels: Sequence[str]) -> list[int]:
    """The points at which no write is under way: a process frozen within one holds its locks."""
    found, writing = [], False
    for n, label in enumerate(labels, 1):
        if not writing:
            found.append(n)
        writing = label in ("before BEGIN IMMEDIATE", "before BEGIN") or (writing and label != "after COMMIT")
    return found


def freeze(plans: Plans, forks: Forks, calm: Any, point: int) -> tuple[list[str], int]:
    """One owner frozen at a point until another has brought the run to its end: what was wrong, and refused saves."""
    with plans.place() as place:
        orders = [place.order(plan={str(point): "freeze"}), place.order(later=True)]
        late, other = forks.group("victim", orders, "relay")
        found, theirs = said(late), said(other)
        # Whoever is frozen in the middle of a click finds afterwards that it was the other's that counted.
        found["clicks"] = [click for click in found["clicks"] if click[1]]
        wrong = [f"{name}: {found[name]} instead of {calm[name]}" for name in SAME if found[name] != calm[name]]
        wrong += [] if late.stopped else ["it was never frozen"]
        wrong += [f"{name} differs for the other" for name in SAME if name != "sent" and theirs[name] != found[name]]
        return [f"frozen at {point} ({calm['labels'][point - 1]}): {each}" for each in wrong], found["refused"]


def test_an_owner_frozen_beyond_its_lease_saves_nothing_any_more(plans: Plans, forks: Forks, seen: Seen) -> None:
    calm = plans.undisturbed(forks, "victim")
    points = [n for n in outside_of_writes(calm["labels"]) if "before POST" not in calm["labels"][n - 1]]
    results = [freeze(plans, forks, calm, point) for point in points[10 : len(points) - 30 : len(points) // 9]]
    assert [wrong for each in results for wrong in each[0]] == []
    refused = [each[1] for each in results]
    assert sum(refused) >= len(results) // 2
    seen(plans.vendor, f"{len(results)} freezes, {sum(refused)} refused saves")


@pytest.mark.slow
def test_an_owner_frozen_at_any_point_saves_nothing_any_more(
    plans: Plans, forks: Forks, second_forks: Forks, seen: Seen
) -> None:
    calm = plans.undisturbed(forks, "victim")
    plans.warm_up(second_forks)
    labels = calm["labels"]
    points = [n for n in outside_of_writes(labels) if "before POST" not in labels[n - 1] and n < len(labels) - 20][:200]
    results = spread([forks, second_forks], lambda server, point: freeze(plans, server, calm, point), points)
    assert [wrong for each in results for wrong in each[0]] == []
    refused = sum(each[1] for each in results)
    assert refused > len(points) // 2
    seen(plans.vendor, f"{len(results)} freezes, {refused} refused saves")


def test_only_who_is_frozen_right_between_the_check_and_the_request_sends_twice(plans: Plans, forks: Forks) -> None:
    calm = plans.undisturbed(forks, "victim")
    point = calm["labels"].index("before POST /messages") + 1
    (wrong, _refused) = freeze(plans, forks, calm, point)
    assert [each.split(": ")[1] for each in wrong] == ["sent"]  # the one gap that the README names
    for beside in (point - 1, point + 1, point + 2):
        assert freeze(plans, forks, calm, beside)[0] == []


@pytest.mark.slow
@pytest.mark.postgres
def test_an_owner_frozen_within_a_write_is_cut_off_by_the_server(plans_on: Any, forks: Forks) -> None:
    plans: Plans = plans_on("postgresql")
    calm = plans.undisturbed(forks, "victim")
    inside = sorted({*range(1, len(calm["labels"]))} - {*outside_of_writes(calm["labels"])})
    for point in inside[60::90]:
        assert freeze(plans, forks, calm, point)[0] == []
