"""The windows that people fill in: edit, decline, request changes, answer, start; and those that only say something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import JsonValue

from bot import limits
from bot.blocks import actions
from bot.blocks.actions import Malformed
from bot.blocks.elements import Json, context, divider, label, literal, modal, option, options, section
from bot.blocks.fields import block_id_of, input_block, inputs, number_of, radio, text_input, values_of
from bot.blocks.phrases import costed, what_approving_does
from bot.blocks.question import QuestionCard, chosen
from bot.blocks.review import ReviewCard, key_fact_blocks, more_fact_blocks, standing
from bot.blocks.text import Mrkdwn, clean, cut, fill, pieces
from graphs.flow import Field, Question

REASON: Final = "reason"
THEN: Final = "then"
ANSWER: Final = "answer"
_TEXT = 12_000
_THEN = {"edit": "Approve it as changed", "save": "Save it; others decide"}
_YES_NO = {"yes": "Yes", "no": "No"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForm:
    """What a flow needs to know before it starts. `metadata` comes back with the form: ids only."""

    title: str
    fields: Mapping[str, Field]
    usage: str = ""
    metadata: str = ""

    @property
    def scope(self) -> str:
        """What the form's blocks are named after."""
        return "start"


def edit_view(card: ReviewCard, *, may_approve: bool = True, may_save: bool = True) -> Json:
    """The draft to be changed, with what stands behind it, and whether to approve it so or leave that to others."""
    scope = str(card.subject)
    then = {name: text for name, text in _THEN.items() if (may_approve if name == "edit" else may_save)} or _THEN
    blocks = [context(standing(card)), *inputs(costed(card.review).draft, scope)]
    if len(then) > 1:
        first = "edit" if card.review.risk == "normal" else "save"
        blocks.append(input_block(block_id_of(scope, THEN), "Then", radio(then, first)))
    if "edit" in then:
        blocks.append(context(fill("Approving {does}.", does=what_approving_does(card.review))))
    blocks += [divider(), *key_fact_blocks(card.review), *more_fact_blocks(card.review)]
    submit = "Submit" if len(then) > 1 else {"edit": "Approve", "save": "Save"}[next(iter(then))]
    return _form(actions.EDIT, f"Edit draft {card.version}", blocks, scope, submit)


def edited_values(state: Mapping[str, Any], card: ReviewCard) -> dict[str, JsonValue]:
    """The draft's values from a submitted `edit_view`; raises `Malformed`."""
    return values_of(state, card.review.draft)


def then_of(state: Mapping[str, Any], default: Literal["edit", "save"] = "edit") -> Literal["edit", "save"]:
    """Whether a submitted `edit_view` approves as changed or saves; `default` where the view left no choice."""
    option_chosen = _content(state, THEN).get("selected_option") or {}
    return {"edit": "edit", "save": "save"}.get(str(option_chosen.get("value")), default)  # type: ignore[return-value]


def decline_view(card: ReviewCard, *, needs_reason: bool = True) -> Json:
    """Why not."""
    told = "Declining ends the run. Nothing is sent, and whoever asked is told the reason."
    return _comment(card, actions.DECLINE, "Decline", asks="Reason", told=told, needed=needs_reason)


def changes_view(card: ReviewCard) -> Json:
    """What should be different."""
    told = "The draft goes back with your comment, and a new one will be shown. Nothing is sent."
    return _comment(card, actions.CHANGES, "Request changes", asks="What should change?", told=told, needed=True)


def reason_of(state: Mapping[str, Any]) -> str:
    """What was written into a `decline_view` or `changes_view`."""
    return clean(str(_content(state, REASON).get("value") or "")).strip()


def reason_error(scope: str, sentence: str) -> dict[str, str]:
    """The `errors` of an ack for a `decline_view` or `changes_view`."""
    return {block_id_of(scope, REASON): sentence}


def answer_view(card: QuestionCard) -> Json:
    """A question with a field for its kind."""
    scope = str(card.subject)
    question = input_block(block_id_of(scope, ANSWER), "Your answer", _answer_element(card.question))
    return _form(actions.ANSWER, "Answer", [*_said(card.question.text), question], scope, "Answer")


def answer_in(state: Mapping[str, Any], question: Question) -> JsonValue:
    """The answer in a submitted `answer_view`, of the question's kind; raises `Malformed`."""
    content = _content(state, ANSWER)
    selected = content.get("selected_option") or {}
    match question.kind:
        case "yes_no" if selected.get("value") in _YES_NO:
            return bool(selected["value"] == "yes")
        case "choice" if question.choices:
            return chosen(question, str(selected.get("value", "")))
        case "choices" if question.choices:
            return [chosen(question, str(one.get("value", ""))) for one in content.get("selected_options") or []]
        case "date" if content.get("selected_date"):
            return str(content["selected_date"])
        case "number" if (number := number_of(content.get("value"))) is not None:
            return number
        case "text" | "choice" | "choices" if clean(str(content.get("value") or "")).strip():
            return clean(str(content["value"]))
    raise Malformed("There is no answer in the form; write or choose one.")


def answer_error(scope: str, sentence: str) -> dict[str, str]:
    """The `errors` of an ack for an `answer_view`."""
    return {block_id_of(scope, ANSWER): sentence}


def start_view(form: StartForm) -> Json:
    """A flow's form."""
    usage = [context(fill("{usage}", usage=cut(form.usage, 300)))] if form.usage else []
    return _form(actions.START, form.title, [*usage, *inputs(form.fields, form.scope)], form.metadata, "Start")


def loading_view(title: str, metadata: str = "") -> Json:
    """Opened at once, because the right to open a window lasts three seconds; to be updated with what is wanted."""
    return modal(actions.NOTICE, title, [section("⏳ One moment …")], metadata=metadata)


def message_view(title: str, text: str) -> Json:
    """A window that says something: "already decided by …"."""
    blocks = [section(text)] if isinstance(text, Mrkdwn) else literal(cut(text, _TEXT))
    return modal(actions.NOTICE, title, blocks)


def _comment(card: ReviewCard, callback_id: str, title: str, *, asks: str, told: str, needed: bool) -> Json:
    scope = str(card.subject)
    comment = input_block(block_id_of(scope, REASON), asks, text_input("", lines=True), optional=not needed)
    name = fill("*{title}* · draft {version}", title=cut(card.review.title, 200), version=str(card.version))
    return _form(callback_id, title, [section(name), context(told), comment], scope, title)


def _form(callback_id: str, title: str, blocks: list[Json], metadata: str, submit: str) -> Json:
    return modal(callback_id, title, blocks, metadata=metadata, submit=submit, close="Cancel")


def _said(text: str) -> list[Json]:
    whole = literal(text)
    if len(whole) <= 20:
        return whole
    rest = len(text) - sum(map(len, pieces(text, limits.SECTION_TEXT)[:20]))
    return [*whole[:20], context(f"… and {rest:,} more characters.")]


def _answer_element(question: Question) -> Json:
    labels = [choice.label for choice in question.choices]
    if question.kind == "yes_no":
        return {"type": "radio_buttons", "options": [option(text, value) for value, text in _YES_NO.items()]}
    if question.kind == "choices" and 0 < len(labels) <= limits.CHECKBOX_OPTIONS:
        return {"type": "checkboxes"} | options(labels)
    if question.kind in ("choice", "choices") and labels:
        kind = "static_select" if question.kind == "choice" else "multi_static_select"
        return {"type": kind, "placeholder": label("Choose", limits.PLACEHOLDER)} | options(labels)
    if question.kind == "number":
        return {"type": "number_input", "is_decimal_allowed": True}
    return {"type": "datepicker"} if question.kind == "date" else text_input("", lines=True)


def _content(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What was entered in the input that is named so; its scope may be an older draft version."""
    for block_id, contents in dict(state.get("values") or {}).items():
        if str(block_id).partition("/")[2] == f"{name}/0":
            found = contents.get(actions.FIELD)
            return found if isinstance(found, Mapping) else {}
    return {}
