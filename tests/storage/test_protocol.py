"""The protocol of reviews, effects and their runs, explored at random over real storage.

Every rule is one atomic action, as in an exhaustive model: a transaction, a request leaving or arriving, time passing,
somebody being killed. Between any two of them anything else may happen. Eight things hold throughout:

I1  nothing is accepted outside that was not approved, in the very content and version that was approved
I2  nothing is accepted twice, except where a person said *Send again*; one release serves one effect
I3  left alone, every run comes to rest: ended, or waiting for a person
I4  what is settled stays settled; a review is answered once
I5  only clicks on the current draft count, and a quorum is of clicks made after the last edit or undo
I6  a run that has ended does nothing more
I7  a late owner's save is refused
I8  the audit tells of all of it, unbroken
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from graphs.engine.checkpoint import Claim, Interrupt
from graphs.engine.errors import ClaimLost
from graphs.flow import Policy, Release
from storage import approvals, audit, drafts, ledger, roots
from storage.database import Database
from storage.endings import end_tree
from storage.ledger import Result, Sending
from storage.statements import Transaction
from storage.tables import to_micros
from tests.databases import VENDORS, migrated
from tests.storage.scene import HOUR, MINUTE, POST, RELEASE, SECOND, SMS, TEXT, Clock, Scene, hike, person

ROOT = "hike-1"
PEOPLE = ("UANA", "UBEN")
FINAL = ("final", "declined", "expired", "cancelled")
VERDICTS = ["approve"] * 4 + ["edit", "save", "decline"]
PROVES_ABSENCE = {"sms": False, "post": True}  # whether not finding it proves that it did not go out
LOOK = ledger.SEND_WITHIN + ledger.LOOK_AFTER


@dataclass
class Worker:
    """A process that advances the run: what it knows, and where it is with a request."""

    claim: Claim | None = None
    sending: Sending | None = None
    at: str = ""  # "check", "request", "wait" or "looked"
    found: bool = False


@dataclass
class Outside:
    """What became of an effect's requests, by attempt; `again` counts the times a person asked for another."""

    transit: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    again: int = 0


@dataclass(frozen=True)
class Click:
    who: str
    verdict: str
    review: str
    version: int


class Protocol(RuleBasedStateMachine):
    """Two workers, a sweeper, two people and the world."""

    make: Callable[[], AbstractContextManager[str]]  # a migrated, otherwise empty database for one example

    def __init__(self) -> None:
        super().__init__()
        self.place = type(self).make()
        clock = Clock()
        self.scene = Scene(Database(self.place.__enter__(), clock=clock), clock)
        self.database = self.scene.database
        self.workers = [Worker(), Worker()]
        self.sweeper = Worker()
        self.owner = ""
        self.world: dict[str, Outside] = {}
        self.clicks: list[Click] = []
        self.approvers: dict[str, set[str]] = {}
        self.faults, self.cancels = 0, False
        self.before: dict[str, Any] = {}

    @initialize(
        reviews=st.sampled_from([(("sms", "post"),), (("post",),), (("sms",), ("post",))]),
        quorum=st.sampled_from([1, 2]),
        undo=st.booleans(),
        expires=st.booleans(),
        graph=st.sampled_from(["right", "right", "right", "double", "stale", "early"]),
        faults=st.integers(0, 3),
        cancels=st.sampled_from([False, False, False, True]),
    )
    def begin(
        self, reviews: Any, quorum: int, undo: bool, expires: bool, graph: str, faults: int, cancels: bool
    ) -> None:
        self.faults, self.cancels = faults, cancels
        ways = {"sms": SMS, "post": POST}
        self.reviews = {f"ask-{n}": tuple(ways[kind] for kind in kinds) for n, kinds in enumerate(reviews)}
        self.policy = Policy(
            quorum=quorum,
            undo_for=timedelta(minutes=1) if undo else timedelta(0),
            expires_after=timedelta(hours=1) if expires else None,
        )
        self.graph = graph
        self.run = self.scene.run(ROOT)
        self.approvers = {review: set() for review in self.reviews}
        self.work(0, 2)

    def teardown(self) -> None:
        try:
            if self.approvers:
                self.come_to_rest()
                assert audit.verify(self.database) == []  # I8
        finally:
            self.database.close()
            self.place.__exit__(None, None, None)

    # -- what the database says ---------------------------------------------------------------------------------------

    def asked(self) -> dict[str, Any]:
        return {row.id: row for row in approvals.of_root(self.database, ROOT) if row.kind == "review"}

    def effects(self) -> dict[str, Any]:
        return {ledger.key_of(row): row for row in ledger.rows(self.database, ROOT)}

    def ending(self) -> str:
        return self.scene.record(ROOT).ending

    # -- a worker -----------------------------------------------------------------------------------------------------

    @rule(n=st.integers(0, 1), moves=st.integers(1, 8))
    def work(self, n: int, moves: int) -> None:
        """The next few things a worker does."""
        for _ in range(moves):
            self.move(self.workers[n])

    @rule(moves=st.integers(1, 8), micros=st.sampled_from([0, MINUTE]))
    def work_on(self, moves: int, micros: int) -> None:
        """The same once more and after a while, because a run that is not advanced shows nothing."""
        self.wait(micros)
        self.work(0, moves)

    def move(self, worker: Worker) -> None:
        """Claim, or one save under the claim, or the next step of a request."""
        if worker.at:
            self.handle(worker)
        elif worker.claim is None:
            self.take_over(worker)
        else:
            self.save(worker, worker.claim)

    def take_over(self, worker: Worker) -> None:
        ended = self.ending()
        worker.claim = self.scene.claim(ROOT)
        if worker.claim:
            assert not ended, f"I6: claimed after it had ended ({ended})"
            self.owner = worker.claim.id

    def save(self, worker: Worker, claim: Claim) -> None:
        is_owner, ended = claim.id == self.owner, self.ending()
        try:
            self.advance(worker, claim)
        except ClaimLost:
            assert not is_owner or ended, "the owner was refused"
            worker.claim = None
        else:
            assert is_owner, "I7: a late owner's save went through"
            assert not ended, "I6: a save after the end"

    def advance(self, worker: Worker, claim: Claim) -> None:
        """One atomic step of the run, by what is stored."""
        effects = self.effects()
        pending = [key for key, row in effects.items() if row.status == "pending"]
        if not self.asked():
            self.pause(worker, claim)
        elif self.graph == "early" and not effects:
            self.commit(claim, "ask-0", self.reviews["ask-0"][:1], step=3)
        elif pending:
            self.start_sending(worker, claim, pending[0])
        elif len(self.scene.answers(ROOT)) < len(self.reviews):
            if self.scene.take(claim) == 0:
                self.release(worker, claim)
        else:
            self.go_on(worker, claim, effects)

    def go_on(self, worker: Worker, claim: Claim, effects: dict[str, Any]) -> None:
        """Every review is answered."""
        if any('"verdict":"decline"' in answer for answer in self.scene.answers(ROOT).values()):
            self.end(worker, claim, "declined")
        elif not any(row.step == 4 for row in effects.values()):
            self.commit_all(claim)
        elif all(row.status in ("sent", "failed", "cancelled") for row in effects.values()):
            self.end(worker, claim, "finished")
        else:
            self.look_or_release(worker, claim)

    def pause(self, worker: Worker, claim: Claim) -> None:
        def work(tx: Transaction) -> None:
            for review, ways in self.reviews.items():
                payload = hike(TEXT + review, *ways).to_json()
                ask = Interrupt(review, ROOT, 3, "approve", review, "review", payload)
                approvals.open_approval(tx, run=self.run, interrupt=ask, policy=self.policy)
            tx.run(RELEASE, root=ROOT)

        self.scene.save(claim, work)
        worker.claim, self.owner = None, ""

    def commit_all(self, claim: Claim) -> None:
        first = 0
        for review, ways in self.reviews.items():
            again = ways[:1] if self.graph == "double" else ()
            self.commit(claim, review, ways + again, step=4, first=first)
            first += len(ways + again)

    def commit(self, claim: Claim, review: str, ways: tuple[Release, ...], step: int, first: int = 0) -> None:
        text = self.asked()[review].draft["text"]
        if self.graph == "stale":
            text = TEXT + review
        for key in self.scene.commit(claim, *ways, text=text, step=step, first=first):
            self.world[key] = Outside()

    def start_sending(self, worker: Worker, claim: Claim, key: str) -> None:
        worker.sending = ledger.begin(self.database, claim, key)
        if worker.sending:
            worker.at = "check"
        elif self.effects()[key].status == "pending":  # it must wait
            self.release(worker, claim)

    def end(self, worker: Worker, claim: Claim, how: str) -> None:
        self.scene.save(claim, lambda tx: end_tree(tx, ROOT, how))
        worker.claim, self.owner = None, ""

    def release(self, worker: Worker, claim: Claim) -> None:
        """Due again when an undo has passed or a lost answer may be looked up; an earlier time stays."""

        def work(tx: Transaction) -> None:
            tx.run(RELEASE, root=ROOT)
            for asked in drafts.all_of(tx, ROOT):
                if asked.status == "approved" and not asked.taken:
                    roots.lower_due(tx, ROOT, asked.undo_until)
            for row in self.effects().values():
                if row.status == "sending":
                    roots.lower_due(tx, ROOT, to_micros(row.send_until) + ledger.LOOK_AFTER)

        self.scene.save(claim, work)
        worker.claim, self.owner = None, ""

    def look_or_release(self, worker: Worker, claim: Claim) -> None:
        due = ledger.lookups_due(self.database)
        if not due:
            return self.release(worker, claim)
        self.look(worker, due[0])
        return self.scene.save(claim, lambda tx: None)  # type: ignore[no-any-return]

    def look(self, worker: Worker, sending: Sending) -> None:
        worker.sending, worker.at = sending, "looked"
        worker.found = sending.kind == "post" and bool(self.world[sending.key].accepted)

    # -- a request ----------------------------------------------------------------------------------------------------

    def handle(self, worker: Worker) -> None:
        assert worker.sending
        sending, outside = worker.sending, self.world[worker.sending.key]
        if worker.at == "check":
            if ledger.may_send(self.database, sending):
                worker.at = "request"
            else:
                self.tell(worker, "not_accepted")
        elif worker.at == "request":
            outside.transit.append(sending.attempt)
            worker.at = "wait"
        elif worker.at == "looked":
            absent = "not_accepted" if PROVES_ABSENCE[sending.kind] else "unknown"
            self.tell(worker, "sent" if worker.found else absent)
        elif sending.attempt in outside.accepted:
            self.tell(worker, "sent")
        elif sending.attempt in outside.dropped:
            self.tell(worker, "not_accepted")

    def tell(self, worker: Worker, status: Any) -> None:
        assert worker.sending
        key, attempt = worker.sending.key, worker.sending.attempt
        row = self.effects()[key]
        counted = ledger.outcome(self.database, key, attempt, Result(status))
        assert counted == (row.status == "sending" and row.attempt == attempt)
        worker.sending, worker.at = None, ""

    @rule(data=st.data(), arrives=st.sampled_from([True, True, False]))
    @precondition(lambda self: any(outside.transit for outside in self.world.values()))
    def arrive(self, data: Any, arrives: bool) -> None:
        """A request in transit is accepted outside, or dropped."""
        key = data.draw(st.sampled_from(sorted(key for key, outside in self.world.items() if outside.transit)))
        if arrives:
            self.accept(key)
        else:
            self.world[key].dropped.append(self.world[key].transit.pop())

    def accept(self, key: str) -> None:
        outside = self.world[key]
        outside.accepted.append(outside.transit.pop())
        self.check_accepted(key, outside)

    def check_accepted(self, key: str, outside: Outside) -> None:
        row = self.effects()[key]
        bound = [
            (review, release)
            for review in self.reviews
            for release in self.scene.releases(review)
            if release.used_by == key
        ]
        assert len(bound) == 1, "I1: accepted without a release of its own"
        ((review, release),) = bound
        approval = self.asked()[review]
        assert (approval.status, approval.draft_version) == ("final", release.draft_version), "I1: not final"
        assert (row.content, row.kind, row.address) == (approval.draft["text"], release.kind, release.address), "I1"
        assert len(outside.accepted) <= 1 + outside.again, "I2: accepted twice"

    @rule()
    @precondition(lambda self: self.faults and any(worker.at == "wait" for worker in self.workers))
    def lose_the_answer(self) -> None:
        """No answer in ten seconds: the effect is left as it is."""
        self.faults -= 1
        waiting = next(worker for worker in self.workers if worker.at == "wait")
        waiting.sending, waiting.at = None, ""

    @rule(n=st.integers(0, 2))
    @precondition(lambda self: self.faults)
    def kill(self, n: int) -> None:
        self.faults -= 1
        dead = [*self.workers, self.sweeper][n]
        dead.claim, dead.sending, dead.at = None, None, ""

    # -- time and the sweeper -----------------------------------------------------------------------------------------

    @rule(micros=st.sampled_from([SECOND, 9 * SECOND, 9 * SECOND, MINUTE, MINUTE, MINUTE, LOOK, LOOK, HOUR]))
    def wait(self, micros: int) -> None:
        """Time passes; a request does not take longer than its ten seconds, so none is under way through more."""
        under_way = any(worker.at == "request" for worker in self.workers)
        if micros < 10 * SECOND or not (under_way or any(outside.transit for outside in self.world.values())):
            self.scene.clock.pass_(micros)

    @rule()
    def sweep(self) -> None:
        if self.sweeper.at:
            return self.handle(self.sweeper)
        late = [row.id for row in self.asked().values() if row.status == "pending" and self.is_late(row)]
        ended = self.ending()
        expired = approvals.expire_due(self.database)
        assert bool(expired) == bool(late and not ended)
        if expired:
            self.owner = ""
        elif due := ledger.lookups_due(self.database):
            self.look(self.sweeper, due[0])
        return None

    def is_late(self, row: Any) -> bool:
        return row.expires_at is not None and to_micros(row.expires_at) <= self.scene.now

    # -- people -------------------------------------------------------------------------------------------------------

    @rule(
        data=st.data(),
        who=st.sampled_from(PEOPLE),
        verdict=st.sampled_from(["approve"] * 3 + ["edit", "save", "decline"]),
    )
    def click(self, data: Any, who: str, verdict: str) -> None:
        """Somebody clicks what is shown now; the click arrives later, perhaps twice."""
        open_ones = sorted(row.id for row in self.asked().values() if row.status in ("pending", "approved"))
        if open_ones:
            row = self.asked()[data.draw(st.sampled_from(open_ones))]
            verb = "undo" if row.status == "approved" else verdict
            self.clicks.append(Click(who, verb, row.id, row.draft_version))

    @rule(who=st.sampled_from(PEOPLE), verdict=st.sampled_from(["approve", "approve", "edit"]))
    @precondition(lambda self: "pending" in self.before.get("status", {}).values())
    def approve(self, who: str, verdict: str) -> None:
        """Somebody approves everything that is open, and the run goes on."""
        for row in self.asked().values():
            if row.status == "pending":
                self.decide_click(Click(who, verdict, row.id, row.draft_version))
        self.work(0, 6)

    @rule(data=st.data(), twice=st.booleans())
    @precondition(lambda self: self.clicks)
    def decide(self, data: Any, twice: bool) -> None:
        click = data.draw(st.sampled_from(self.clicks))
        if not twice:
            self.clicks.remove(click)
        self.decide_click(click)

    def decide_click(self, click: Click) -> None:
        before = self.asked()[click.review]
        edits = {"text": f"{before.draft['text']} ({click.who})"}
        outcome = approvals.decide(
            self.database, click.review, actor=person(click.who), verdict=click.verdict,  # type: ignore[arg-type]
            version=click.version, edits=edits,
        )  # fmt: skip
        if outcome.result == "refused":
            after = self.asked()[click.review]
            assert after == before, "a refused click changed something"
            return
        assert click.version == before.draft_version, "I5: a click on another draft version counted"
        assert click.verdict == "undo" or not self.is_late(before), "a click after the deadline counted"
        voters = self.approvers[click.review]
        if click.verdict in ("edit", "save", "undo"):
            voters.clear()
        if click.verdict in ("approve", "edit"):
            assert click.who not in voters, "a person counted twice"
            voters.add(click.who)
        if outcome.status == "approved":
            assert len(voters) >= self.policy.quorum, "I5: settled without a quorum of its own"

    @rule(data=st.data(), answer=st.sampled_from(["sent", "again", "again", "stop"]))
    @precondition(lambda self: "unknown" in self.before.get("effects", {}).values())
    def resolve(self, data: Any, answer: str) -> None:
        """A person answers what became of an effect in doubt."""
        doubts = sorted(
            row.id for row in approvals.of_root(self.database, ROOT) if row.kind == "effect" and row.status == "pending"
        )
        doubt = data.draw(st.sampled_from(doubts))
        row = self.scene.approval(doubt)
        offered = [choice["value"] for choice in row.ask["choices"]]
        assert ("again" in offered) == (not self.ending()), "I6: Send again was offered on an ended run"
        outcome = approvals.decide(
            self.database, doubt, actor=person("UANA"), verdict="answer", version=None, value=answer
        )
        assert (outcome.result == "settled") == (answer in offered)
        if answer == "again" and outcome.result == "settled":
            self.world[f"{row.thread_id}:{row.step}:{row.place}"].again += 1

    @rule(sure=st.sampled_from([False] * 9 + [True]))
    @precondition(lambda self: self.cancels)
    def cancel(self, sure: bool) -> None:
        if sure and self.scene.within(ROOT, lambda tx: end_tree(tx, ROOT, "cancelled")):
            self.owner = ""

    # -- what holds in every state ------------------------------------------------------------------------------------

    @invariant()
    def what_is_settled_stays_settled(self) -> None:
        if not self.approvers:
            return
        now = {
            "ending": self.ending(),
            "answers": self.scene.answers(ROOT),
            "status": {review: row.status for review, row in self.asked().items()},
            "attempts": {key: row.attempt for key, row in self.effects().items()},
            "effects": {key: row.status for key, row in self.effects().items()},
        }
        was, self.before = self.before, now
        if not was:
            return
        for review, status in was["status"].items():
            assert status not in FINAL or now["status"][review] == status, f"I4: {status} changed"
        for place, answer in was["answers"].items():
            assert now["answers"].get(place) == answer, "I4: a review was answered again"
        for key, status in was["effects"].items():
            assert status not in ("sent", "failed", "cancelled") or now["effects"][key] == status, "I4: effect"
        if was["ending"]:
            assert now["ending"] == was["ending"], "I4: ended twice"
            assert (now["attempts"], now["answers"]) == (was["attempts"], was["answers"]), "I6: moved after its end"
        if now["ending"]:
            left = {"pending", "approved"} & set(now["status"].values()) or "pending" in now["effects"].values()
            assert not left, "I6: something was left open by the end"

    @invariant()
    def one_release_serves_one_effect(self) -> None:
        used = Counter(
            release.used_by for review in self.reviews for release in self.scene.releases(review) if release.used_by
        ) if self.approvers else Counter()  # fmt: skip
        assert all(count == 1 for count in used.values()), "I2: an effect used two releases"

    # -- rest ---------------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """I3: with one process alive, time and sweeps bring the run to where it may stay for ever."""
        self.workers[1] = Worker()
        for _ in range(60):
            self.work(0, 4)
            self.sweep()
            for key in [key for key, outside in self.world.items() for _ in outside.transit]:
                self.accept(key)
            if not self.workers[0].at and not self.sweeper.at:
                if self.is_at_rest():
                    return
                self.scene.clock.pass_(9 * SECOND)
        raise AssertionError(f"I3: it does not come to rest: {self.before} {self.scene.record(ROOT)}")

    def is_at_rest(self) -> bool:
        record, asked, effects = self.scene.record(ROOT), self.asked(), self.effects()
        statuses = {row.status for row in effects.values()}
        if record.ending:
            return not statuses & {"pending", "sending"}
        if record.claim or record.due_at or statuses & {"pending", "sending"}:
            return False
        if "unknown" in statuses:
            return True
        waiting = [row for row in asked.values() if row.status == "pending"]
        untaken = [row for row in asked.values() if row.status in ("approved", "declined") and not row.taken]
        return bool(waiting) and not untaken and not any(self.is_late(row) for row in waiting)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("examples", "steps"), [(8, 40), pytest.param(60, 60, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_the_protocol_holds_whatever_happens_in_between(
    vendor: str, request: pytest.FixtureRequest, tmp_path: Path, examples: int, steps: int
) -> None:
    class OverVendor(Protocol):
        make = staticmethod(partial(migrated, vendor, request, tmp_path))

    run_state_machine_as_test(
        OverVendor,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            database=None,
        ),
    )
