"""A database with runs, reviews and effects in it, driven by hand: the clock stands until it is moved."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlmodel import Session, select

from graphs.engine.checkpoint import Claim, Interrupt, RunRecord
from graphs.engine.values import dump
from graphs.flow import Field, Policy, Release, Review
from storage import approvals, drafts, ledger, roots
from storage.approvals import Actor, Outcome
from storage.audit import AuditRow
from storage.database import Database
from storage.ledger import Result, Sending
from storage.statements import Transaction, prepare
from storage.steps import fence
from storage.tables import (
    ApprovalRow,
    EffectLedgerRow,
    PendingWriteRow,
    ReleaseRow,
    RunRow,
    from_micros,
    insert_into,
    to_micros,
)

START = 1_800_000_000_000_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
SMS = Release(kind="sms", to="+15035550134", content="text")
POST = Release(kind="post", to="C0HIKES01", content="text")
TEXT = "Saturday 7:00, Fern Hollow."

PLAIN = Policy()

_CLAIM = prepare(
    "UPDATE runs SET claim = :owner, lease_until = :until, due_at = NULL, rev = rev + 1"
    " WHERE thread_id = :root AND ending = ''"
    " AND (claim IS NULL AND due_at <= :now OR lease_until <= :now) RETURNING rev"
)
RELEASE = prepare("UPDATE runs SET claim = NULL, lease_until = NULL WHERE thread_id = :root")
_EFFECT = prepare(insert_into(EffectLedgerRow))


@dataclass
class Clock:
    """Microseconds since the epoch, moved by hand."""

    now: int = START

    def __call__(self) -> int:
        return self.now

    def pass_(self, micros: int) -> None:
        self.now += micros


def hike(text: str = TEXT, *releases: Release, **kwargs: Any) -> Review:
    """The review every test knows: one text, sent to a phone and a channel unless said otherwise."""
    draft = {"text": Field(value=text, label="Text", max_length=300)}
    return Review(title="Saturday's hike", draft=draft, releases=list(releases or (SMS, POST)), **kwargs)


def person(name: str, **kwargs: Any) -> Actor:
    return Actor(name, **{"team": "T1", **kwargs})


RAE, ANA, BEN, CAT = (person(name) for name in ("URAE", "UANA", "UBEN", "UCAT"))  # RAE asked for it


@dataclass
class Scene:
    """Storage, and the few moves of a run that other modules make: start, claim, pause, commit, release."""

    database: Database
    clock: Clock = field(default_factory=Clock)

    @property
    def now(self) -> int:
        return self.clock.now

    def within(self, root: str, work: Callable[[Transaction], Any]) -> Any:
        return self.database.write(root, work)

    def run(self, root: str = "hike-1", channel: str = "C0HIKES01", parent: str = "", due: bool = True) -> RunRecord:
        """A new run; with a parent it is a child of that root."""
        record = RunRecord(
            thread_id=root, flow="plan_hike", version=1, fingerprint="f", root=parent or root, parent=parent,
            who="URAE", team="T1", channel=channel,
        )  # fmt: skip
        kept = {key: value for key, value in record._asdict().items() if key in RunRow.model_fields and key != "error"}
        due_at = from_micros(self.now) if due and not parent else None
        with Session(self.database.engine) as session:
            session.add(RunRow(**kept, due_at=due_at, created_at=from_micros(self.now)))
            session.commit()
        return record

    def ask(
        self, review: Any = None, policy: Policy = PLAIN, *, run: RunRecord | None = None, id: str = "ask-1",
        asks: str = "review",
    ) -> str:  # fmt: skip
        """A run (a new one unless given) pauses with a review or question; the approval's id."""
        record = run or self.run()
        payload = review if isinstance(review, dict) else (review or hike()).to_json()
        interrupt = Interrupt(id, record.thread_id, 3, "approve", id, asks, payload)
        self.within(record.root, lambda tx: self._pause(tx, record, interrupt, policy))
        return id

    def _pause(self, tx: Transaction, record: RunRecord, interrupt: Interrupt, policy: Policy) -> None:
        roots.lock(tx, record.root)
        approvals.open_approval(tx, run=record, interrupt=interrupt, policy=policy)

    def decide(self, verdict: Any, who: Actor = ANA, version: int | None = 1, id: str = "ask-1", **kw: Any) -> Outcome:
        return approvals.decide(self.database, id, actor=who, verdict=verdict, version=version, **kw)

    def edit(self, text: str, who: Actor = ANA, version: int | None = 1, verdict: str = "edit", **kw: Any) -> Outcome:
        return self.decide(verdict, who, version, edits={"text": text}, **kw)

    def claim(self, root: str = "hike-1", lease: int = 8 * SECOND) -> Claim | None:
        """Take the run over if it is due and free or its lease has lapsed."""
        return self.within(root, lambda tx: _claim(tx, root, lease))  # type: ignore[no-any-return]

    def hold_claim(self, root: str = "hike-1") -> Claim:
        """A claim, whoever had it: the run is made due and free first."""

        def steal(tx: Transaction) -> Claim | None:
            roots.lock(tx, root)
            tx.run(RELEASE, root=root)
            roots.lower_due(tx, root)
            return _claim(tx, root, 8 * SECOND)

        claim: Claim | None = self.within(root, steal)
        assert claim is not None
        return claim

    def save(self, claim: Claim, work: Callable[[Transaction], Any]) -> Any:
        """A save under a claim: raises `ClaimLost` for a late owner."""

        def fenced(tx: Transaction) -> Any:
            fence(tx, claim.thread_id, claim.rev, claim.id)
            return work(tx)

        answer = self.within(claim.thread_id, fenced)
        claim.rev += 1
        return answer

    def take(self, claim: Claim) -> int:
        return self.save(claim, lambda tx: approvals.take(tx, claim.thread_id))  # type: ignore[no-any-return]

    def release(self, claim: Claim) -> None:
        """Give the run up; it becomes due again at the earliest undo that is still open."""

        def work(tx: Transaction) -> None:
            tx.run(RELEASE, root=claim.thread_id)
            for asked in drafts.all_of(tx, claim.thread_id):
                if asked.status == "approved" and not asked.taken:
                    roots.lower_due(tx, claim.thread_id, asked.undo_until)

        self.save(claim, work)

    def commit(
        self, claim: Claim, *releases: Release, text: str = TEXT, step: int = 4, thread: str = "", guarded: bool = True,
        first: int = 0,
    ) -> list[str]:  # fmt: skip
        """A step is whole and asks for effects; their keys."""
        thread = thread or claim.thread_id
        keys = [f"{thread}:{step}:{n}" for n in range(first, first + len(releases))]

        def work(tx: Transaction) -> None:
            for n, release in enumerate(releases, first):
                tx.run(
                    _EFFECT, thread_id=thread, step=step, n=n, root=claim.thread_id, kind=release.kind,
                    address=release.to, content=dump(text), payload="{}", into="", guarded=guarded, status="pending",
                    attempt=0, not_before=None, send_until=None, first_sent_at=None, receipt=None, at=tx.now,
                )  # fmt: skip

        self.save(claim, work)
        return keys

    def approved(self, *releases: Release, text: str = TEXT, **kw: Any) -> tuple[Claim, list[str]]:
        """The whole way to a final review and the effects of the step behind it."""
        self.ask(hike(text, *releases), **kw)
        assert self.decide("approve").result == "settled"
        claim = self.hold_claim()
        assert self.take(claim) == 1
        return claim, self.commit(claim, *(releases or (SMS, POST)), text=text)

    def begin(self, claim: Claim, key: str) -> Sending | None:
        return ledger.begin(self.database, claim, key)

    def outcome(self, sending: Sending, status: Any = "sent", **kw: Any) -> bool:
        return ledger.outcome(self.database, sending.key, sending.attempt, Result(status, **kw))

    # -- reading ------------------------------------------------------------------------------------------------------

    def approval(self, id: str = "ask-1") -> ApprovalRow:
        row = approvals.find(self.database, id)
        assert row is not None
        return row

    def status(self, id: str = "ask-1") -> str:
        return self.approval(id).status

    def record(self, root: str = "hike-1") -> RunRow:
        with self.database.read() as session:
            row = session.get(RunRow, root)
        assert row is not None
        return row

    def due(self, root: str = "hike-1") -> int | None:
        due_at = self.record(root).due_at
        return to_micros(due_at) if due_at else None

    def effect(self, key: str) -> EffectLedgerRow:
        with self.database.read() as session:
            row = session.get(EffectLedgerRow, tuple(ledger.place_of(key).values()))
        assert row is not None
        return row

    def effects(self, root: str = "hike-1") -> dict[str, str]:
        return {ledger.key_of(row): row.status for row in ledger.rows(self.database, root)}

    def releases(self, id: str = "ask-1") -> list[ReleaseRow]:
        with self.database.read() as session:
            return list(session.exec(select(ReleaseRow).where(ReleaseRow.approval == id).order_by(ReleaseRow.id)))

    def answers(self, thread: str = "hike-1") -> dict[str, str]:
        with self.database.read() as session:
            rows = session.exec(select(PendingWriteRow).where(PendingWriteRow.thread_id == thread))
            return {row.key: row.value for row in rows}

    def refusals(self, id: str = "ask-1") -> list[tuple[str, str]]:
        return [(row.who, row.refusal) for row in approvals.decisions_of(self.database, id) if not row.counted]

    def story(self, root: str = "hike-1") -> list[str]:
        with self.database.read() as session:
            rows = session.exec(select(AuditRow).where(AuditRow.root == root).order_by(AuditRow.seq))
            return [row.kind for row in rows]


def _claim(tx: Transaction, root: str, lease: int) -> Claim | None:
    owner = uuid.uuid4().hex
    row = tx.run(_CLAIM, root=root, now=tx.now, owner=owner, until=tx.now + lease).fetchone()
    return Claim(root, owner, row[0]) if row else None


def hours(count: float) -> timedelta:
    return timedelta(hours=count)
