"""What happens when a window is submitted: checked and decided within the request, because its errors are the ack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from bot.blocks import actions, fields
from bot.blocks.actions import Malformed, Subject
from bot.blocks.modals import (
    answer_error,
    answer_in,
    edited_values,
    message_view,
    reason_error,
    reason_of,
    then_of,
)
from bot.blocks.notes import NOT_COUNTED
from bot.blocks.phrases import named
from bot.blocks.reading import READ_ALL, has_ticked
from bot.blocks.review import ReviewCard
from bot.commands import Start, start_run
from bot.decisions import DraftRefused, Wish, decide
from bot.deliveries import unreachable, where
from bot.desk import Desk
from bot.home import publish
from bot.pictures import card_of
from graphs.engine.errors import EngineError
from graphs.flow import Field, FormError, Question
from graphs.ports import PortError
from storage import approvals
from storage.decisions import Outcome
from storage.refusals import barred
from storage.tables import ApprovalRow

log = structlog.get_logger(__name__)
Ack = dict[str, Any]
PATIENCE = 2.0  # seconds the database has before the person is told that nothing was saved

CLOSE: Ack = {"response_action": "clear"}


def submitted(desk: Desk, body: Mapping[str, Any]) -> Ack:
    """Deal with a submission; what the ack says."""
    view = body["view"]
    handle = _HANDLERS.get(str(view.get("callback_id")))
    if handle is None:
        return CLOSE
    try:
        ack = handle(desk, body, view)
    except Malformed as error:
        return _say(str(error))
    except (EngineError, PortError) as error:
        log.warning("submission not saved", error=str(error))
        return _say(NOT_COUNTED)
    desk.cards.nudge()
    return ack


def _say(sentence: str) -> Ack:
    return {"response_action": "update", "view": message_view("Not counted", named(sentence))}


def _errors(told: Mapping[str, str]) -> Ack:
    return {"response_action": "errors", "errors": dict(told)}


def _asked(desk: Desk, view: Mapping[str, Any]) -> tuple[Subject, ApprovalRow]:
    subject = Subject.parse(str(view.get("private_metadata", "")))
    asked = approvals.find(desk.parts.database, subject.id)
    if asked is None:
        raise Malformed("This is no longer asked.")
    return subject, asked


def _decide(desk: Desk, body: Mapping[str, Any], subject: Subject, wish: Wish) -> Ack:
    outcome = decide(desk.parts, subject.id, str(body["user"]["id"]), wish, PATIENCE)
    return _told(desk, body, outcome)


def _told(desk: Desk, body: Mapping[str, Any], outcome: Outcome) -> Ack:
    if outcome.result == "refused":
        return _say(outcome.sentence)
    desk.later(publish, desk.parts, desk.slack, str(body["user"]["id"]))
    if outcome.result in ("counted", "saved"):
        return {"response_action": "update", "view": message_view("Thank you", named(outcome.sentence))}
    return CLOSE


def _edit(desk: Desk, body: Mapping[str, Any], view: Mapping[str, Any]) -> Ack:
    subject, asked = _asked(desk, view)
    card = card_of(desk.parts, asked)
    if not isinstance(card, ReviewCard):
        raise Malformed("This cannot be edited.")
    edits = edited_values(view["state"], card)
    changed = {name: value for name, value in edits.items() if value != asked.draft.get(name)}
    verdict = then_of(view["state"], "save" if body["user"]["id"] == barred(asked) else "edit")
    wish = Wish(verdict=verdict, version=subject.version, edits=changed, via="modal")
    if not changed and verdict == "edit":
        wish = Wish(verdict="approve", version=subject.version, via="modal")
    try:
        return _decide(desk, body, subject, wish)
    except DraftRefused as error:
        return _errors(fields.errors(error.errors, card.review.draft, str(subject)))


def _comment(verdict: str) -> Callable[[Desk, Mapping[str, Any], Mapping[str, Any]], Ack]:
    def handle(desk: Desk, body: Mapping[str, Any], view: Mapping[str, Any]) -> Ack:
        subject, _ = _asked(desk, view)
        reason = reason_of(view["state"])
        if not reason:
            return _errors(reason_error(str(subject), "Say why, in a word or two."))
        wish = Wish(verdict=verdict, version=subject.version, reason=reason, via="modal")  # type: ignore[arg-type]
        return _decide(desk, body, subject, wish)

    return handle


def _approve(desk: Desk, body: Mapping[str, Any], view: Mapping[str, Any]) -> Ack:
    subject, _ = _asked(desk, view)
    if not has_ticked(view["state"]):
        block = fields.block_id_of(f"{subject.id}:{subject.version}", READ_ALL)
        return _errors({block: "Tick this after reading all of it."})
    return _decide(desk, body, subject, Wish(verdict="approve", version=subject.version, via="modal"))


def _answer(desk: Desk, body: Mapping[str, Any], view: Mapping[str, Any]) -> Ack:
    subject, asked = _asked(desk, view)
    try:
        value = answer_in(view["state"], Question.from_json(asked.ask))
    except Malformed as error:
        return _errors(answer_error(str(subject), str(error)))
    wish = Wish(verdict="answer", version=subject.version, value=value, via="modal")
    outcome = decide(desk.parts, subject.id, str(body["user"]["id"]), wish, PATIENCE)
    if outcome.refusal == "bad_answer":
        return _errors(answer_error(str(subject), outcome.sentence))
    return _told(desk, body, outcome)


def _start(desk: Desk, body: Mapping[str, Any], view: Mapping[str, Any]) -> Ack:
    command, _, channel = str(view.get("private_metadata", "")).partition("|")
    flow = desk.parts.catalog.by_command(command)
    form: dict[str, Any] = fields.values_of(view["state"], flow.form)
    user = str(body["user"]["id"])
    place = where(desk, channel)
    if problem := unreachable(desk, place):
        return _say(problem)
    delivery = f"form:{view['id']}:{view.get('hash', '')}"
    wish = Start(form=form, who=user, team=str((body.get("team") or {}).get("id", "")), channel=place)
    try:
        start_run(desk.parts, flow, wish, delivery, is_new=True, timeout=PATIENCE)
    except FormError as error:
        return _form_errors(error, flow.form)
    if place != channel:
        return {"response_action": "update", "view": message_view("On it", named(f"It will appear in <#{place}>."))}
    return CLOSE


def _form_errors(error: FormError, form: Mapping[str, Field]) -> Ack:
    return _errors(fields.errors(error.errors, form, "start"))


_HANDLERS: Mapping[str, Callable[[Desk, Mapping[str, Any], Mapping[str, Any]], Ack]] = {
    actions.EDIT: _edit,
    actions.DECLINE: _comment("decline"),
    actions.CHANGES: _comment("changes"),
    actions.APPROVE: _approve,
    actions.ANSWER: _answer,
    actions.START: _start,
}
