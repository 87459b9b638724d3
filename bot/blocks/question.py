"""Cards that ask a person something: a graph's question, and what became of a message whose answer was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue

from bot import limits
from bot.blocks import actions
from bot.blocks.actions import Malformed, Subject
from bot.blocks.elements import (
    Json,
    button,
    confirmation,
    context,
    header,
    label,
    literal,
    message,
    options,
    plain,
    section,
)
from bot.blocks.phrases import mention, moment, sent
from bot.blocks.review import Status, cut_unless_ours
from bot.blocks.text import cut, fill, joined, one_line, pieces, units
from graphs.flow import Question

_BUTTONS = 5
_TEXT = 4_000
_MENU = 3_000
_CONTENT = 3_000
_ENDED: Final = {
    "expired": "⌛ *Expired*: nobody answered in time",
    "cancelled": "⏹️ *Cancelled*",
    "superseded": "↪️ *Replaced*: a newer question stands for this",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCard:
    """All that a question's card shows. `answer` is the stored answer; `may_answer` completes "… may answer"."""

    id: str
    version: int
    question: Question
    title: str
    requester: str
    may_answer: str
    status: Status = "pending"
    answer: JsonValue = None
    by: str = ""
    at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def subject(self) -> Subject:
        """What its buttons carry."""
        return Subject(self.id, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectCard:
    """Something was sent and the answer got lost. `found` says what looking it up showed; `answer` is the verdict."""

    id: str
    version: int
    kind: str
    to: str
    content: str
    sent_at: datetime
    may_decide: str
    found: str = ""
    can_send_again: bool = True
    status: Status = "pending"
    answer: str = ""
    by: str = ""
    at: datetime | None = None

    @property
    def subject(self) -> Subject:
        """What its buttons carry."""
        return Subject(self.id, self.version)


def question_message(card: QuestionCard) -> Json:
    """The question with buttons, a menu or a way to a form, by its kind; once answered, who said what."""
    blocks = [header(card.title), *_long(card.question.text, _TEXT), *_choices_in_full(card.question)]
    if card.status == "pending":
        parts = [fill("Asked for {who}", who=mention(card.requester))]
        parts += [fill("{who} may answer", who=cut_unless_ours(card.may_answer))]
        parts += [fill("until {at}", at=moment(card.expires_at))] if card.expires_at else []
        blocks += [context(joined(parts, " · ")), _answers(card)]
    else:
        blocks += [section(_ended(card.status, card.by, card.at, "*Answered* by {who}"))]
        blocks += _long(answer_text(card.question, card.answer), _CONTENT) if card.status == "answered" else []
    asks = "A question" if card.status == "pending" else card.status.capitalize()
    return message(f"{asks}: {one_line(card.question.text, 300)}", blocks, str(card.subject))


def effect_message(card: EffectCard) -> Json:
    """What is not known to have gone out, with *It went out · Send again · Stop*."""
    what = sent(card.kind, card.to)
    told = fill(
        "*{what}* was requested {at}, and no answer came back. It may or may not have gone out.",
        what=what,
        at=moment(card.sent_at),
    )
    blocks = [header("Did this go out?"), section(told), *_long(card.content, _CONTENT)]
    blocks += [section(cut(card.found, 600))] if card.found else []
    if card.status == "pending":
        blocks += [context(fill("{who} may decide", who=cut_unless_ours(card.may_decide))), _effect_buttons(card)]
    else:
        said = {
            "went_out": "*It went out*, says {who}",
            "send_again": "*Sent again* by {who}",
            "stop": "*Stopped* by {who}",
        }
        blocks += [section(_ended(card.status, card.by, card.at, said.get(card.answer, "*Settled* by {who}")))]
    return message(f"Did this go out? {one_line(f'{card.kind} to {card.to}', 200)}", blocks, str(card.subject))


def answer_text(question: Question, answer: JsonValue) -> str:
    """An answer as people read it: choices by their labels, yes and no as words."""
    if question.kind == "yes_no":
        return "Yes" if answer else "No"
    named = {choice.value: choice.label for choice in question.choices}
    if isinstance(answer, list):
        return ", ".join(named.get(str(one), str(one)) for one in answer) or "none of them"
    return named.get(str(answer), str(answer))


def answer_of(action: Mapping[str, Any], question: Question) -> JsonValue:
    """The answer that a click on a question's card gives; raises `Malformed` for one that was not offered."""
    name = str(action.get("action_id", ""))
    if question.kind == "yes_no" and name in (actions.ANSWER_YES, actions.ANSWER_NO):
        return name == actions.ANSWER_YES
    number = name.removeprefix(actions.ANSWER_CHOICE)
    if name == actions.ANSWER_SELECT:
        number = str((action.get("selected_option") or {}).get("value", ""))
    return chosen(question, number)


def chosen(question: Question, number: str) -> str:
    """The value of the choice with this number; raises `Malformed` where there is none."""
    if not (number.isascii() and number.isdecimal()) or len(number) > 5 or int(number) >= len(question.choices):
        raise Malformed("That was not among the choices; open the card again and choose one it shows.")
    return question.choices[int(number)].value


def _answers(card: QuestionCard) -> Json:
    value, block_id = str(card.subject), f"{card.subject}/answer"
    question = card.question
    if question.kind == "yes_no":
        elements = [button("Yes", actions.ANSWER_YES, value, style="primary"), button("No", actions.ANSWER_NO, value)]
    elif question.kind == "choice" and 0 < len(question.choices) <= _BUTTONS:
        elements = [
            button(choice.label, f"{actions.ANSWER_CHOICE}{number}", value, says=choice.label)
            for number, choice in enumerate(question.choices)
        ]
    elif question.kind == "choice" and 0 < sum(units(choice.label) for choice in question.choices) <= _MENU:
        elements = [_menu(question)]
    else:
        elements = [button("Answer", actions.ANSWER, value, style="primary", says=f"Answer: {question.text}")]
    return {"type": "actions", "block_id": block_id, "elements": elements}


def _menu(question: Question) -> Json:
    menu = {"type": "static_select", "action_id": actions.ANSWER_SELECT, "placeholder": label("Choose", 150)}
    ask = confirmation("Is this your answer?", "The run goes on with it at once.", "Yes, go on")
    return menu | options([choice.label for choice in question.choices]) | {"confirm": ask}


def _choices_in_full(question: Question) -> list[Json]:
    """Choices that a button or a menu would cut, one a line."""
    if all(units(choice.label) <= limits.OPTION_TEXT for choice in question.choices):
        return []
    lines = "\n".join(f"{number}. {choice.label}" for number, choice in enumerate(question.choices, 1))
    return _long(lines, _CONTENT)


def _effect_buttons(card: EffectCard) -> Json:
    value = str(card.subject)
    again = confirmation("Send it again?", "If it did go out, it will be there twice.", "Send again", style="danger")
    row = [button("It went out", actions.WENT_OUT, value, style="primary")]
    row += [button("Send again", actions.SEND_AGAIN, value, confirm=again)] if card.can_send_again else []
    row += [button("Stop", actions.STOP, value, style="danger")]
    return {"type": "actions", "block_id": f"{card.subject}/effect", "elements": row}


def _ended(status: str, by: str, at: datetime | None, answered: str) -> str:
    told = fill(_ENDED.get(status, f"✅ {answered}"), who=mention(by))
    return joined([told, moment(at)] if at else [told], " · ")


def _long(text: str, limit: int) -> list[Json]:
    if units(text) <= limit:
        return literal(text)
    first = pieces(text, limits.SECTION_TEXT)[0]
    told = f"These are the first {len(first):,} of {len(text):,} characters; `signoff show` has all of them."
    return [{"type": "section", "text": plain(first, limits.SECTION_TEXT)}, section(told)]
