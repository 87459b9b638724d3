"""The inbox worked off: whatever arrived is dealt with once, now or by a sweep after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import structlog

from bot.blocks import actions
from bot.blocks.actions import Malformed, subject_of
from bot.blocks.notes import GIVEN_UP, NOT_COUNTED
from bot.blocks.phrases import named
from bot.blocks.question import answer_of
from bot.clicks import Click
from bot.commands import Start, form_of, start_run, typed
from bot.decisions import Wish, decide
from bot.desk import Desk
from bot.home import publish
from bot.people import is_in
from graphs.engine.errors import EngineError
from graphs.flow import FormError, Question
from storage import approvals, inbox, runs
from storage.tables import DeliveryRow

log = structlog.get_logger(__name__)
Payload = Mapping[str, Any]
PATIENCE = 0.8  # seconds the database has to take a delivery in before its sender is told that it did not count
FIRST_SWEEP = timedelta(seconds=5)  # how long the process that took a delivery in is left alone with it
GIVE_UP = 5

_EFFECT_ANSWERS = {actions.WENT_OUT: "sent", actions.SEND_AGAIN: "again", actions.STOP: "stop"}
_VERDICTS = {actions.APPROVE: "approve", actions.UNDO: "undo"}


def take_in(desk: Desk, kind: str, delivery: str, payload: Payload) -> bool:
    """Keep a delivery before it is acked, then deal with it; one that was here before is left to its first arrival.

    False if the database did not take it in time: then it does not count.
    """
    try:
        is_new = desk.parts.database.write(
            f"~inbox {delivery}", lambda tx: inbox.receive(tx, delivery, kind, dict(payload)), PATIENCE
        )
    except EngineError as error:
        log.warning("delivery not taken in", kind=kind, error=str(error))
        return False
    if is_new:
        desk.later(deal_with, desk, kind, delivery, payload)
    return True


def drain(desk: Desk, older_than: timedelta = FIRST_SWEEP) -> int:
    """Deal with what an earlier process left behind; how many."""
    found = inbox.open_ones(desk.parts.database, older_than=older_than)
    for row in found:
        _deal_again(desk, row)
    return len(found)


def _deal_again(desk: Desk, row: DeliveryRow) -> None:
    try:
        deal_with(desk, row.kind, row.id, row.payload)
    except Exception:
        log.exception("delivery failed", kind=row.kind, attempts=row.attempts)
        if row.attempts + 1 >= GIVE_UP:
            _done(desk, row.id)
            _give_up(desk, row)
            return
        until = desk.parts.database.now() + 10_000_000 * (row.attempts + 1)
        desk.parts.database.write(f"~inbox {row.id}", lambda tx: inbox.retry_later(tx, row.id, until))


def _give_up(desk: Desk, row: DeliveryRow) -> None:
    """Tell whoever clicked or typed; otherwise it was for nothing without a word."""
    if row.kind == "command":
        whisper(desk, row.payload, GIVEN_UP)
    elif row.kind == "click":
        answer_click(desk, Click.from_json(row.payload), GIVEN_UP)


def deal_with(desk: Desk, kind: str, delivery: str, payload: Payload) -> None:
    """Do what a delivery asks for, and tick it off."""
    if _HANDLERS[kind](desk, delivery, payload):
        _done(desk, delivery)


def _done(desk: Desk, delivery: str) -> None:
    desk.parts.database.write(f"~inbox {delivery}", lambda tx: inbox.done(tx, delivery))


# ---- commands --------------------------------------------------------------------------------------------------------


def _command(desk: Desk, delivery: str, payload: Payload) -> bool:
    """Start a run; the transaction that starts it ticks the delivery off as well."""
    flow = desk.parts.catalog.by_command(str(payload["command"]))
    place = where(desk, str(payload["channel_id"]), str(payload.get("channel_name", "")))
    if problem := unreachable(desk, place):
        whisper(desk, payload, problem)
        return True
    form = payload.get("form") or form_of(flow, typed(str(payload.get("text", ""))))
    wish = Start(form=form, who=str(payload["user_id"]), team=str(payload.get("team_id", "")), channel=place)
    try:
        started = start_run(desk.parts, flow, wish, delivery)
    except FormError as error:
        whisper(desk, payload, " ".join(error.errors.values()))
        return True
    desk.cards.nudge()
    if started and place != payload["channel_id"]:
        whisper(desk, payload, f"On it. What needs a decision will appear in {_channel(place)}.")
    return False


def where(desk: Desk, channel: str, name: str = "") -> str:
    """The channel a run belongs to: where it was asked for, or the flow's own for a direct message."""
    is_direct = channel.startswith("D") or name in ("directmessage", "mpdm") or name.startswith("mpdm-")
    return desk.parts.settings.hikes_channel if is_direct or not channel else channel


def unreachable(desk: Desk, channel: str) -> str:
    """What to do where the bot is not in a channel, or ""."""
    people = desk.parts.people
    if not people.me or is_in(people, people.me, channel):
        return ""
    return f"Nothing was started: I am not in {_channel(channel)}. Type `/invite @Signoff` there, then ask again."


def _channel(channel: str) -> str:
    return f"#{channel}" if not channel else f"<#{channel}>"


def whisper(desk: Desk, payload: Payload, text: str) -> None:
    """Answer whoever typed the command, privately."""
    desk.slack.whisper(
        named(text),
        user=str(payload["user_id"]),
        channel=str(payload.get("channel_id", "")),
        response_url=str(payload.get("response_url", "")),
    )


# ---- clicks ----------------------------------------------------------------------------------------------------------


def _click(desk: Desk, _delivery: str, payload: Payload) -> bool:
    click = Click.from_json(payload)
    try:
        said = _cancel(desk, click) if click.name == actions.CANCEL else _decide(desk, click)
    except Malformed as error:
        said = str(error)
    if said:
        answer_click(desk, click, said)
    desk.cards.nudge()
    if click.home:
        # Not within the delivery: otherwise a Home tab that Slack refuses makes the click be dealt with once more.
        desk.later(publish, desk.parts, desk.slack, click.user)
    return True


def _decide(desk: Desk, click: Click) -> str:
    """Decide; what to tell the person, or "" where the card says it."""
    subject = subject_of(click.action)
    wish = _wish(desk, click, subject.id, subject.version)
    outcome = decide(desk.parts, subject.id, click.user, wish)
    return "" if outcome.result in ("settled", "undone") else outcome.sentence


def _wish(desk: Desk, click: Click, approval_id: str, version: int) -> Wish:
    if verdict := _VERDICTS.get(click.name):
        return Wish(verdict=verdict, version=version, via="button")  # type: ignore[arg-type]
    if click.name in _EFFECT_ANSWERS:
        return Wish(verdict="answer", version=version, value=_EFFECT_ANSWERS[click.name], via="button")
    asked = approvals.find(desk.parts.database, approval_id)
    if asked is None or asked.kind != "question":
        raise Malformed("There is nothing to decide here any more.")
    value = answer_of(click.action, Question.from_json(asked.ask))
    return Wish(verdict="answer", version=version, value=value, via="button")


def _cancel(desk: Desk, click: Click) -> str:
    thread_id = str(click.action.get("value", ""))
    run = runs.find(desk.parts.database, thread_id)
    if run is None:
        return "That run is gone."
    if click.user != run.who and not is_in(desk.parts.people, click.user, run.channel):
        return "Only members of the run's channel can cancel it."
    try:
        runs.cancel(desk.parts.database, thread_id, click.user)
    except EngineError as error:
        return str(error)
    return ""


def answer_click(desk: Desk, click: Click, text: str) -> None:
    """Answer whoever clicked, privately."""
    desk.slack.whisper(named(text), user=click.user, channel=click.channel, response_url=click.response_url)


def not_counted(desk: Desk, click: Click) -> None:
    """The database did not answer in time."""
    answer_click(desk, click, NOT_COUNTED)


def _reminder(desk: Desk, _delivery: str, payload: Payload) -> bool:
    desk.cards.remind(str(payload["approval"]), int(payload["stage"]))
    return True


# ---- what sweeps find ------------------------------------------------------------------------------------------------


def tell_stuck(desk: Desk) -> None:
    """Tell whoever asked for a run that no process here can go on with it, once for each such run."""
    for run in runs.stuck(desk.parts.database, desk.parts.runner.known):
        take_in(desk, "stuck", f"stuck:{run.thread_id}:{run.fingerprint}", {"thread_id": run.thread_id})


def _stuck(desk: Desk, _delivery: str, payload: Payload) -> bool:
    run = runs.find(desk.parts.database, str(payload["thread_id"]))
    if run is None or run.ending:
        return True
    why = runs.unknown_version(run.flow, run.version, run.fingerprint, run.thread_id)
    desk.slack.whisper(f"Your run is stuck and nothing is lost: {why}", user=run.who)
    desk.cards.redraw_run(run.thread_id)
    return True


_HANDLERS: Mapping[str, Callable[[Desk, str, Payload], bool]] = {
    "command": _command,
    "click": _click,
    "reminder": _reminder,
    "stuck": _stuck,
}
