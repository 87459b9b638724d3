"""A small flow in several versions."""

from __future__ import annotations

from typing import Any

from graphs.engine import END, START, State, StateGraph
from graphs.flow import Decision, Field, Flow, Review


class Old(State):
    """What the first version keeps."""

    text: str
    decision: Decision | None = None


class New(State):
    """What a later one keeps."""

    words: str
    tone: str
    decision: Decision | None = None


def say(version: int, state: type[State] = Old, key: str = "text", node: str = "approve", **more: Any) -> Flow:
    """Asks whether `key` of its state may be said; `more` goes to the flow."""

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
        **{"ending": lambda state, how: "said", **more},
    )
