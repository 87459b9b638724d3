"""A slash command, a form or the command line starts a run: one function for all of them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bot.parts import Parts
from graphs.agent import pin
from graphs.engine.runner import new_run
from graphs.engine.subgraphs import input_row
from graphs.flow import Flow
from storage import inbox, runs
from storage.statements import Transaction
from storage.tables import from_micros

_TOKEN = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Who wants what, and where it is to be shown."""

    form: Mapping[str, JsonValue]
    who: str
    channel: str
    team: str = ""
    pause_before: tuple[str, ...] = ()


def form_of(flow: Flow, text: str) -> dict[str, JsonValue]:
    """The form that a command's text fills: its first field."""
    defaults: dict[str, JsonValue] = {name: field.value for name, field in flow.form.items()}
    return {**defaults, next(iter(flow.form)): text}


def typed(text: str) -> str:
    """What a person typed, from the text Slack passes on: mentions as names, links as addresses, nothing escaped."""
    return _TOKEN.sub(_word, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _word(token: re.Match[str]) -> str:
    sign, reference, name = token[1], token[2], token[3] or ""
    if not sign:
        return reference
    return ("#" if sign == "#" else "@") + (name.lstrip("@#") or reference.partition("^")[0])


def start_run(
    parts: Parts,
    flow: Flow,
    start: Start,
    delivery: str | None = None,
    *,
    is_new: bool = False,
    timeout: float | None = None,
) -> str:
    """Create a run, due now, in the transaction that deals with its delivery; returns its thread id.

    The delivery is in the inbox already, unless it `is_new`. Raises `FormError` with a sentence by field, and `TooSlow`
    when the database takes longer than `timeout` seconds: then nothing was started. A delivery that was dealt with
    before starts nothing and returns "".
    """
    given = flow.start(start.form, from_micros(parts.database.now()))
    thread_id = uuid.uuid4().hex
    run = new_run(
        flow.graph,
        thread_id,
        model=pin(parts.deps.models),
        who=start.who,
        team=start.team,
        channel=start.channel,
        pause_before=start.pause_before,
    )
    row = input_row(flow.graph, given, thread_id, start.who)

    def begin(tx: Transaction) -> bool:
        if is_new and delivery is not None and not inbox.receive(tx, delivery, "start", {}):
            return False
        return runs.start(tx, run, row, delivery)

    started = parts.database.write(thread_id, begin, timeout)
    parts.executor.after_commit(thread_id)
    return thread_id if started else ""
