"""A run that waits is taken to a new version of its flow, and goes on there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.app import build
from bot.commands import Start, start_run
from bot.decisions import Wish, decide
from bot.dispatch import advance
from bot.moving import move_run
from bot.parts import Parts
from bot.settings import load_settings
from graphs.catalog import Catalog
from graphs.engine import END, START, State, StateGraph
from graphs.engine.errors import GraphError, UnknownVersion, UpdateRefused
from graphs.flow import Decision, Field, Flow, Review
from storage import approvals, runs


class Old(State):
    text: str
    decision: Decision | None = None


class New(State):
    words: str
    tone: str
    decision: Decision | None = None


def _flow(version: int, state: type[State], key: str, node: str = "approve", **more: Any) -> Flow:
    def approve(given: Any, runtime: Any) -> dict[str, Any]:
        review = Review(title="Say it", draft={"text": Field(value=getattr(given, key), label="Text")})
        return {"decision": runtime.interrupt(review)}

    graph = StateGraph(state)
    graph.add_node(node, approve)
    graph.add_edge(START, node)
    graph.add_edge(node, END)
    return Flow(
        name="say",
        command="/say",
        usage="",
        form={"text": Field(label="Text")},
        graph=graph.compile(name="say", version=version),
        start=lambda form, now: {"text": str(form["text"])},
        outcome=lambda state: "finished",
        ending=lambda state, how: "said",
        **more,
    )


OLD = _flow(1, Old, "text")


def _open(folder: Path, *flows: Flow) -> Parts:
    return build(load_settings(database_url=f"sqlite:///{folder / 'signoff.db'}"), catalog=Catalog(flows))


def _waiting_run(folder: Path) -> str:
    parts = _open(folder, OLD)
    thread_id = start_run(
        parts, OLD, Start(form={"text": "hello"}, who="U0ANA0001", channel="C0HIKES01", team="T0SIGNOFF")
    )
    advance(parts.runner, thread_id)
    parts.close()
    return thread_id


def _mapped(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"words": values["text"], "tone": "kind", "decision": values["decision"]}


def test_a_waiting_run_goes_on_as_the_new_version_with_its_question_still_open(tmp_path: Path) -> None:
    thread_id = _waiting_run(tmp_path)
    parts = _open(tmp_path, _flow(2, New, "words", moves={1: _mapped}))
    asked = approvals.of_root(parts.database, thread_id)[0]

    move_run(parts, thread_id, 2, "U0BEN0002")

    assert decide(parts, asked.id, "U0BEN0002", Wish(verdict="approve")).result == "settled"
    advance(parts.runner, thread_id)
    run = runs.find(parts.database, thread_id)
    assert run is not None
    assert (run.ending, run.version) == ("finished", 2)
    state = parts.runner.get_state(thread_id).values.to_json()
    assert (state["words"], state["tone"]) == ("hello", "kind")
    parts.close()


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        (_flow(2, New, "words"), UnknownVersion),
        (_flow(2, New, "words", node="check", moves={1: _mapped}), GraphError),
        (_flow(2, New, "words", moves={1: lambda values: {"words": 7, "tone": "kind"}}), UpdateRefused),
        (_flow(2, New, "words", moves={1: lambda values: {"words": "x"}}), UpdateRefused),
        (_flow(2, New, "words", moves={1: lambda values: {**_mapped(values), "colour": "red"}}), UpdateRefused),
    ],
)
def test_what_does_not_fit_is_refused_and_the_run_stays_as_it_was(
    tmp_path: Path, flow: Flow, error: type[Exception]
) -> None:
    thread_id = _waiting_run(tmp_path)
    parts = _open(tmp_path, flow)
    with pytest.raises(error):
        move_run(parts, thread_id, 2, "U0BEN0002")
    run = runs.find(parts.database, thread_id)
    assert run is not None
    assert (run.version, run.fingerprint) == (1, OLD.graph.fingerprint)
    parts.close()
