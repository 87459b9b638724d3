"""Whoever races whom, in threads or in processes: one wins, everybody is told, and the books are right afterwards."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from graphs.engine.errors import ClaimLost
from graphs.flow import Policy
from storage import approvals, audit, board, inbox, ledger
from storage.database import Database
from storage.endings import end_tree
from storage.ledger import Result
from tests.storage.scene import PLAIN, POST, SMS, Scene, hike, person

RACERS = 4
PATIENCE = 120  # seconds; a racer that waits longer has lost the others, and says so instead of hanging

Answers = Sequence[Any]  # what each racer got, by racer


@dataclass(frozen=True)
class Race:
    """`prepare` a round, let every racer `act` in it at once, and see whether what they got and left is right."""

    name: str
    act: Callable[[Scene, int, str], Any]
    is_right: Callable[[Scene, str, Answers], bool]
    prepare: Callable[[Scene, str], Any]


def asked(policy: Policy = PLAIN, *verdicts: Any) -> Callable[[Scene, str], None]:
    """A run with a review, and what has been decided about it already."""

    def prepare(scene: Scene, root: str) -> None:
        scene.ask(hike(), policy, run=scene.run(root), id=f"ask {root}")
        for verdict in verdicts:
            scene.decide(verdict, id=f"ask {root}")

    return prepare


def with_effect(scene: Scene, root: str) -> None:
    """A final review and an effect that nobody has begun."""
    asked(PLAIN, "approve")(scene, root)
    claim = scene.hold_claim(root)
    scene.take(claim)
    scene.commit(claim, POST)


def sending(scene: Scene, root: str) -> None:
    with_effect(scene, root)
    assert scene.begin(scene.hold_claim(root), f"{root}:4:0") is not None


def decide(scene: Scene, me: int, root: str, verdict: Any, **kwargs: Any) -> tuple[str, str]:
    outcome = scene.decide(verdict, person(f"U{me}"), id=f"ask {root}", **kwargs)
    return outcome.result, outcome.refusal


def approve_or_decline(scene: Scene, me: int, root: str) -> Any:
    return decide(scene, me, root, "approve" if me % 2 else "decline")


def one_settles(scene: Scene, root: str, answers: Answers) -> bool:
    others = [answer for answer in answers if answer != ("settled", "")]
    return len(others) == RACERS - 1 and set(others) == {("refused", "not_pending")}


def approve(scene: Scene, me: int, root: str) -> Any:
    return decide(scene, me, root, "approve")


def two_count(scene: Scene, root: str, answers: Answers) -> bool:
    results = sorted(result for result, _ in answers)
    return results == ["counted", *["refused"] * (RACERS - 2), "settled"]


def edit(scene: Scene, me: int, root: str) -> Any:
    return decide(scene, me, root, "edit", edits={"text": f"by {me}"})


def one_edits(scene: Scene, root: str, answers: Answers) -> bool:
    winners = [me for me, answer in enumerate(answers) if answer == ("counted", "")]
    losers = {answer for me, answer in enumerate(answers) if me not in winners}
    row = scene.approval(f"ask {root}")
    return losers == {("refused", "stale_version")} and (row.draft_version, row.draft) == (
        2, {"text": f"by {winners[0]}"},
    )  # fmt: skip


def take_or_undo(scene: Scene, me: int, root: str) -> Any:
    if me:
        return decide(scene, me, root, "undo")
    return scene.take(scene.hold_claim(root))


def taken_or_undone(scene: Scene, root: str, answers: Answers) -> bool:
    taken, undone = answers[0], [answer[0] for answer in answers[1:]].count("undone")
    status, given = scene.status(f"ask {root}"), scene.answers(root)
    if taken:
        return (undone, status, len(given)) == (0, "final", 1)
    return (undone, status, given) == (1, "pending", {})


def end_or_decide(scene: Scene, me: int, root: str) -> Any:
    if me:
        return approve_or_decline(scene, me, root)
    return scene.within(root, lambda tx: end_tree(tx, root, "cancelled"))


def ended_whole(scene: Scene, root: str, answers: Answers) -> bool:
    record = scene.record(root)
    left = (record.ending, record.claim, record.due_at, scene.effects(root))
    return left == ("cancelled", None, None, {}) and scene.status(f"ask {root}") in ("cancelled", "declined")


def steal_and_send(scene: Scene, me: int, root: str) -> Any:
    try:
        return scene.begin(scene.hold_claim(root), f"{root}:4:0") is not None
    except ClaimLost:
        return False


def sent_once(scene: Scene, root: str, answers: Answers) -> bool:
    return list(answers).count(True) == 1 and scene.effect(f"{root}:4:0").attempt == 1


def tell(scene: Scene, me: int, root: str) -> Any:
    result: Any = ("sent", "failed", "unknown", "not_accepted")[me]
    return ledger.outcome(scene.database, f"{root}:4:0", 1, Result(result))


def told_once(scene: Scene, root: str, answers: Answers) -> bool:
    became = ("sent", "failed", "unknown", "pending")[list(answers).index(True)]
    return list(answers).count(True) == 1 and scene.effects(root) == {f"{root}:4:0": became}


def receive(scene: Scene, me: int, root: str) -> Any:
    return scene.within(root, lambda tx: inbox.receive(tx, f"E {root}", "command", {}))


def take_card(scene: Scene, me: int, root: str) -> Any:
    return board.take(scene.database, "approval", f"ask {root}") is not None


def only_one(scene: Scene, root: str, answers: Answers) -> bool:
    return list(answers).count(True) == 1


def remind(scene: Scene, me: int, root: str) -> Any:
    return [reminder.root for reminder in approvals.remind_due(scene.database, limit=1000)]


def none_reminds_twice(scene: Scene, root: str, answers: Answers) -> bool:
    """All rounds are due from the start, so whoever comes first has them all; `reminded` shows that one did."""
    reminded = [root for mine in answers for root in mine]
    return len(reminded) == len(set(reminded)) and scene.approval(f"ask {root}").reminded == 1


RACES = [
    Race("approve or decline", approve_or_decline, one_settles, asked()),
    Race("quorum", approve, two_count, asked(Policy(quorum=2))),
    Race("edit", edit, one_edits, asked(Policy(quorum=2))),
    Race("take or undo", take_or_undo, taken_or_undone, asked(PLAIN, "approve")),
    Race("end or decide", end_or_decide, ended_whole, asked()),
    Race("steal and send", steal_and_send, sent_once, with_effect),
    Race("tell", tell, told_once, sending),
    Race("receive", receive, only_one, lambda scene, root: scene.run(root)),
    Race("card", take_card, only_one, asked()),
    Race("remind", remind, none_reminds_twice, asked(Policy(remind_after=(timedelta(0),)))),
]


def named(race: Race, number: int) -> str:
    return f"{race.name} {number}"


def run_all(database: Database, me: int, rounds: int, barrier: Any) -> list[list[Any]]:
    """Everything one racer does: every round of every race, each begun together with the others."""
    scene = Scene(database)
    answers: list[list[Any]] = []
    for race in RACES:
        answers.append([])
        for number in range(rounds):
            barrier.wait(PATIENCE)
            answers[-1].append(race.act(scene, me, named(race, number)))
    return answers


def race_in_process(url: str, me: int, rounds: int, barrier: Any, results: Any) -> None:
    database = Database(url)
    try:
        results.put((me, run_all(database, me, rounds, barrier)))
    except BaseException as error:
        barrier.abort()
        results.put((me, repr(error)))
    finally:
        database.close()


def in_threads(url: str, database: Database, rounds: int) -> dict[int, Any]:
    barrier = threading.Barrier(RACERS)

    def racer(me: int) -> Any:
        try:
            return run_all(database, me, rounds, barrier)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(RACERS) as pool:
        return dict(enumerate(pool.map(racer, range(RACERS))))


def in_processes(url: str, database: Database, rounds: int) -> dict[int, Any]:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(RACERS), context.SimpleQueue()
    racers = [context.Process(target=race_in_process, args=(url, me, rounds, barrier, results)) for me in range(RACERS)]
    for racer in racers:
        racer.start()
    answers = dict(results.get() for _ in racers)
    for racer in racers:
        racer.join()
        racer.close()
    results.close()
    return answers


@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("together", [in_threads, in_processes])
def test_one_wins_and_the_books_are_right(database_url: str, living: Scene, together: Any, rounds: int) -> None:
    for race in RACES:
        for number in range(rounds):
            race.prepare(living, named(race, number))
    answers = together(database_url, living.database, rounds)
    assert [answer for answer in answers.values() if isinstance(answer, str)] == []
    wrong = [
        (named(race, number), got)
        for n, race in enumerate(RACES)
        for number in range(rounds)
        if not race.is_right(living, named(race, number), got := [answers[me][n][number] for me in range(RACERS)])
    ]
    assert wrong == []
    assert audit.verify(living.database) == []


def test_a_click_and_the_sweep_at_the_instant_of_expiry_leave_one_of_two_ends(scene: Scene) -> None:
    for n in range(20):
        root = f"hike-{n}"
        scene.ask(policy=Policy(expires_after=timedelta(seconds=1)), run=scene.run(root), id=root)
    deadline = scene.now + 1_000_000
    scene.clock.now = deadline - 1
    barrier = threading.Barrier(2)

    def click() -> list[str]:
        barrier.wait(PATIENCE)
        return [scene.decide("approve", id=f"hike-{n}").refusal for n in range(20)]

    def sweep() -> list[str]:
        barrier.wait(PATIENCE)
        found: list[str] = []
        for n in range(20):
            scene.clock.now = deadline if n > 5 else deadline - 1
            found += approvals.expire_due(scene.database)
        return found

    with ThreadPoolExecutor(2) as pool:
        clicks, sweeps = pool.submit(click), pool.submit(sweep)
    expired = set(sweeps.result())
    for n, refusal in enumerate(clicks.result()):
        root = f"hike-{n}"
        assert (root in expired) == (refusal == "expired")
        assert scene.status(root) == ("expired" if root in expired else "approved")
        assert scene.record(root).ending == ("expired" if root in expired else "")


def test_an_effect_of_one_run_is_begun_beside_decisions_on_others(scene: Scene) -> None:
    claim, (sms, _) = scene.approved(SMS, POST)
    scene.ask(run=scene.run("hike-2"), id="ask-2")
    with ThreadPoolExecutor(2) as pool:
        begun = pool.submit(scene.begin, claim, sms)
        decided = pool.submit(scene.decide, "approve", id="ask-2")
    assert begun.result() is not None
    assert decided.result().result == "settled"
