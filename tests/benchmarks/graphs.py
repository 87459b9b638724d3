"""The graphs that are measured, written once for our engine."""

from __future__ import annotations

from typing import Annotated, Any

from graphs.engine import END, START, Graph, Message, Runtime, State, StateGraph, add, add_messages

TEXT = "A step of the way up to the lookout, with a word on the weather. " * 7 + "So far so good."
assert len(TEXT) == 470  # with role and id a message has about 490 bytes


class Count(State):
    """Enough to count steps."""

    n: Annotated[int, add] = 0


class Talk(State):
    """A conversation that grows."""

    n: Annotated[int, add] = 0
    messages: Annotated[list[Message], add_messages] = []


def step(_state: Any) -> dict[str, Any]:
    """A node that does nothing but count."""
    return {"n": 1}


def line(steps: int) -> Graph[Count]:
    """Three nodes in a circle, until `steps` are done."""
    graph = StateGraph(Count)
    for name in "abc":
        graph.add_node(name, step)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    graph.add_conditional_edges("c", lambda state: "on" if state.n < steps else "end", {"on": "a", "end": END})
    return graph.compile(name="line", max_steps=steps + 10)


def talk(steps: int, say: Any) -> Graph[Talk]:
    """One node that appends a message each time; `say(n)` is what it returns."""
    graph = StateGraph(Talk)
    graph.add_node("say", lambda state: say(state.n))
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "on" if state.n < steps else "end", {"on": "say", "end": END})
    return graph.compile(name="talk", max_steps=steps + 10)


def ask(steps: int) -> Graph[Talk]:
    """Appends messages, then asks."""
    graph = StateGraph(Talk)
    graph.add_node("say", said)
    graph.add_node("ask", _asks)
    graph.add_edge(START, "say").add_edge("ask", END)
    graph.add_conditional_edges("say", lambda state: "on" if state.n < steps else "ask", {"on": "say", "ask": "ask"})
    return graph.compile(name="ask", max_steps=steps + 10)


def said(state: Any) -> dict[str, Any]:
    """One message more."""
    return {"n": 1, "messages": Message(role="user", content=TEXT)}


def _asks(_state: Talk, runtime: Runtime[Any]) -> dict[str, Any]:
    return {"messages": Message(role="user", content=str(runtime.interrupt("Shall we go?")))}


def fan(branches: int) -> Graph[Count]:
    """A split, branches side by side, and a join: three supersteps."""
    graph = StateGraph(Count)
    names = [f"branch{n}" for n in range(branches)]
    for name in ("split", *names, "join"):
        graph.add_node(name, step)
    graph.add_edge(START, "split")
    for name in names:
        graph.add_edge("split", name)
    graph.add_edge(names, "join").add_edge("join", END)
    return graph.compile(name="fan")
