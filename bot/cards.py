"""Keeps Slack equal to the database: posts what has no message yet, redraws what has changed, heals what was lost."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog

from bot import pictures
from bot.blocks.notes import Reminder as ReminderNote
from bot.blocks.notes import reminder_message, told_message
from bot.blocks.question import EffectCard, QuestionCard, effect_message, question_message
from bot.blocks.review import review_message
from bot.blocks.run import RunCard, ending_message, run_message
from bot.parts import Parts
from bot.people import deciders
from bot.slack import GONE, UNREACHABLE, Posted, Refused, Slack
from graphs.engine.errors import EngineError
from storage import approvals, board, runs
from storage.board import Scope, Stale
from storage.refusals import barred
from storage.tables import CardRow, RunRow, to_micros

log = structlog.get_logger(__name__)
SCOPES: tuple[Scope, ...] = ("approval", "run", "ending", "told")
LEAST = 1.0  # seconds between two drawings of one run's progress
CHECK_EVERY = 600_000_000  # microseconds between two looks whether an open card still stands
CHECKED_AT_ONCE = 100
LOST_AFTER = timedelta(seconds=board.BUSY_FOR / 1_000_000 - 1)  # only later can an earlier process have posted it


class Cards:
    """A thread that draws what is stale, at once when nudged."""

    def __init__(self, parts: Parts, slack: Slack) -> None:
        self._parts = parts
        self._slack = slack
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._drawn_at: dict[str, float] = {}
        self._checked_at: dict[str, int] = {}
        self._live: dict[str, str] = {}
        self._fresh: set[str] = set()
        self._thread = threading.Thread(target=self._watch, name="cards", daemon=True)

    def start(self) -> None:
        """Begin to draw."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the drawing at hand."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def nudge(self, _thread_id: str = "") -> None:
        """Look now: something has changed."""
        self._wake.set()

    def check_open(self) -> int:
        """Have open cards posted again that somebody deleted; how many. Each is looked for when a process first sees
        it, so that a restart heals what was lost meanwhile, and every ten minutes."""
        database, now = self._parts.database, self._parts.database.now()
        waiting = {asked.id: self._checked_at.get(asked.id, 0) for asked in approvals.open_for(database)}
        due = [one for one, at in waiting.items() if now - at >= CHECK_EVERY][:CHECKED_AT_ONCE]
        self._checked_at = waiting | dict.fromkeys(due, now)
        lost = [one for one in due if self._is_lost(one)]
        for one in lost:
            log.info("card was deleted: it is posted again", approval=one)
            board.lost(database, "approval", one)
        return len(lost)

    def _is_lost(self, approval_id: str) -> bool:
        card = board.find(self._parts.database, "approval", approval_id)
        return card is not None and bool(card.ts) and not self._slack.stands(Posted(card.channel, card.ts))

    def _watch(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(LEAST)
            self._wake.clear()
            try:
                self.draw_stale()
            except EngineError as error:
                log.warning("cards cannot be drawn now", error=str(error))
                self._stopping.wait(LEAST)

    def show_live(self, thread_id: str, text: str) -> None:
        """Show a piece of work in progress on the run's message, once a second at most."""
        self._live[thread_id] = text
        self._fresh.add(thread_id)
        self._wake.set()

    def draw_stale(self) -> int:
        """Draw everything that differs from the database; how many were drawn."""
        found = board.stale(self._parts.database, scopes=SCOPES)
        drawn = sum(self._draw(stale) for stale in found if not self._too_soon(stale))
        for thread_id in tuple(self._fresh):
            if time.monotonic() - self._drawn_at.get(thread_id, 0.0) >= LEAST:
                self.redraw_run(thread_id)
        return drawn

    def redraw_run(self, thread_id: str) -> None:
        """Draw a run's message although the database has not changed: what it shows depends on the time, too."""
        card = board.find(self._parts.database, "run", thread_id)
        if card is not None and card.ts:
            self._draw(Stale("run", thread_id, card.drawn, card.channel, card.ts))

    def _too_soon(self, stale: Stale) -> bool:
        if stale.scope != "run" or not stale.ts:
            return False
        if time.monotonic() - self._drawn_at.get(stale.subject, 0.0) >= LEAST:
            return False
        return not stale.fingerprint.partition(":")[2]  # an ended run is drawn at once

    def _draw(self, stale: Stale) -> bool:
        card = board.take(self._parts.database, stale.scope, stale.subject)
        if card is None:
            return False
        try:
            message = self._message(stale)
            if message is not None:
                self._show(stale, card, message)
        except Refused as error:
            self._failed(stale, error.code, error.wait * (card.failures + 1))
            return False
        except Exception as error:
            log.exception("card not drawn", scope=stale.scope, subject=stale.subject)
            self._failed(stale, type(error).__name__, 10.0 * (card.failures + 1))
            return False
        self._drawn_at[stale.subject] = time.monotonic()
        self._fresh.discard(stale.subject)
        return True

    def _failed(self, stale: Stale, code: str, wait: float) -> None:
        log.info("card refused", scope=stale.scope, subject=stale.subject, code=code)
        until = self._parts.database.now() + round(min(wait, 300.0) * 1_000_000)
        board.failed(self._parts.database, stale.scope, stale.subject, until=until, note=code)

    def _show(self, stale: Stale, card: CardRow, message: dict[str, Any]) -> None:
        if card.ts:
            try:
                self._slack.update(Posted(card.channel, card.ts), message)
            except Refused as error:
                if error.code not in GONE | UNREACHABLE:
                    raise
                board.lost(self._parts.database, stale.scope, stale.subject)
                return
            place = Posted(card.channel, card.ts)
        else:
            place = self._posted(stale, card, message)
        board.drawn(
            self._parts.database,
            stale.scope,
            stale.subject,
            channel=place.channel,
            ts=place.ts,
            fingerprint=stale.fingerprint,
        )

    def _posted(self, stale: Stale, card: CardRow, message: dict[str, Any]) -> Posted:
        """Post a card; one whose answer was lost is found again by its key instead."""
        home, requester, since = self._place(stale)
        key = f"{stale.scope}:{stale.subject}:{card.posted_at or ''}"
        may_be_there = card.failures > 0 or self._parts.database.now() - since > to_micros_of(LOST_AFTER)
        channel = home or self._slack.direct(requester)
        if may_be_there and (found := self._slack.find(channel, key, since / 1_000_000 - 60)):
            self._slack.update(found, message)
            return found
        try:
            return self._slack.post(channel, message, key)
        except Refused as error:
            if not home or error.code not in UNREACHABLE:
                raise
            log.info("channel out of reach: told directly", channel=channel, code=error.code)
            return self._slack.post(self._slack.direct(requester), message, key)

    def _place(self, stale: Stale) -> tuple[str, str, int]:
        """Where a card belongs ("" for a direct message), who asked for it, and since when it may have been posted."""
        database = self._parts.database
        if stale.scope == "approval":
            asked = approvals.find(database, stale.subject)
            assert asked is not None
            return asked.channel, asked.requester, to_micros(asked.created_at)
        run = runs.find(database, stale.subject)
        assert run is not None
        since = to_micros(run.ended_at or run.created_at if stale.scope in ("ending", "told") else run.created_at)
        return "" if stale.scope == "told" else run.channel, run.who, since

    def _message(self, stale: Stale) -> dict[str, Any] | None:
        database = self._parts.database
        if stale.scope == "approval":
            asked = approvals.find(database, stale.subject)
            return None if asked is None else approval_message(pictures.card_of(self._parts, asked))
        run = runs.find(database, stale.subject)
        if run is None:
            return None
        if stale.scope == "run":
            return run_message(self._run_card(run))
        notice = pictures.ending_notice(self._parts, run)
        return ending_message(notice) if stale.scope == "ending" else told_message(notice)

    def _run_card(self, run: RunRow) -> RunCard:
        card = pictures.run_card(self._parts, run)
        if card.state != "running":
            self._live.pop(run.thread_id, None)
        live = self._live.get(run.thread_id, "")
        return replace(card, note=live) if live else card

    def remind(self, approval_id: str, stage: int) -> None:
        """Nudge whoever may decide about an open card; one that was settled meanwhile is silent. Raises `Refused`."""
        asked = approvals.find(self._parts.database, approval_id)
        if asked is None or asked.status != "pending":
            return
        card = board.find(self._parts.database, "approval", approval_id)
        place = Posted(card.channel, card.ts) if card and card.ts else None
        note = ReminderNote(
            title=asked.subject,
            users=tuple(deciders(self._parts.people, asked.channel, barred(asked))),
            requester=asked.requester,
            since=asked.created_at,
            card=self._slack.permalink(place) if place else "",
            expires_at=asked.expires_at,
            nth=stage,
        )
        channel = place.channel if place else asked.channel or self._slack.direct(asked.requester)
        key = f"reminder:{approval_id}:{stage}"
        if self._slack.find(channel, key, asked.created_at.timestamp() - 60) is None:
            self._slack.post(channel, reminder_message(note), key)


def approval_message(card: pictures.Card) -> dict[str, Any]:
    """The card of a review, a question, or an effect in doubt."""
    if isinstance(card, EffectCard):
        return effect_message(card)
    return question_message(card) if isinstance(card, QuestionCard) else review_message(card)


def to_micros_of(span: timedelta) -> int:
    """A length of time in microseconds."""
    return round(span.total_seconds() * 1_000_000)
