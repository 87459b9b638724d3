"""Drawings: every node and edge is there, and no name or label can break the diagram."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.engine import END, START, Command, StateGraph
from tests.graphs.engine.bench import Log, line, logs

TEXT = r'"[\w ,?#;]*"'
PARTS = (
    r'S0\(\["start"\]\)',
    r'E0\(\["end"\]\)',
    rf"n\d+\[{TEXT}\]",
    rf"n\d+\[\[{TEXT}\]\]",
    rf"(S0|n\d+) (-->|-\. {TEXT} \.->) (E0|n\d+)",
    "classDef here stroke-width:4px",
    r"class n\d+ here",
)
LINE = re.compile(f"    ({'|'.join(PARTS)})", re.ASCII)
HOSTILE = [
    "end", "graph", "class", "style", "subgraph", "click", "default", "a[b]", 'say "hi"', "a-->b", "x;y", "%% note",
    "<script>alert(1)", "`code`", "a|b", "{c}", "new\nline", "Größe", "\U0001f600", "o---o", "x(y)", "&lt;",
    "\ud800", "1. first", "- item",
]  # fmt: skip


def shown(text: str) -> str:
    """What a reader of the entities sees."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


def drawn(name: str, label: str) -> str:
    graph = StateGraph(Log).add_node(name, logs("x")).add_node("other", logs("y")).add_edge(START, name)
    graph.add_conditional_edges(name, lambda s: label, {label: "other", "stop": END}).add_edge("other", END)
    return graph.compile(name="g").draw_mermaid(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_or_label_is_only_text(name: str) -> None:
    text = drawn(name, name)
    first, *rest = text.splitlines()
    assert first == "flowchart TD"
    assert [line_ for line_ in rest if not LINE.fullmatch(line_)] == []
    assert f'"{name}"' in [shown(part) for part in re.findall(r'"[^"]*"', text)]


@given(st.text(st.characters(), min_size=1).filter(lambda t: t.strip() and "/" not in t and "#" not in t), st.text())
def test_any_name_and_label_is_only_text(name: str, label: str) -> None:
    if name in (START, END, "other") or label == "stop":
        return
    assert [line_ for line_ in drawn(name, label).splitlines()[1:] if not LINE.fullmatch(line_)] == []


def test_everything_is_drawn_once_with_its_shape() -> None:
    graph = StateGraph(Log)
    for name in "abc":
        graph.add_node(name, logs(name))
    graph.add_node("sub", line(("x", logs("x"))), enter=lambda s: {}, leave=lambda s: {})
    graph.add_node("goes", lambda s: Command(goto=END), destinations=[END])
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "sub")
    graph.add_conditional_edges("sub", lambda s: True, {True: "c", False: "goes"}).add_edge("c", END)
    assert graph.compile(name="g").draw_mermaid(["sub", "c", "ghost"]) == (
        "flowchart TD\n"
        '    S0(["start"])\n'
        '    n0["a"]\n'
        '    n1["b"]\n'
        '    n2["c"]\n'
        '    n3[["sub"]]\n'
        '    n4["goes"]\n'
        '    E0(["end"])\n'
        "    S0 --> n0\n"
        "    S0 --> n1\n"
        "    n2 --> E0\n"
        "    n0 --> n3\n"
        "    n1 --> n3\n"
        '    n3 -. "True" .-> n2\n'
        '    n3 -. "False" .-> n4\n'
        '    n4 -. "end" .-> E0\n'
        "    classDef here stroke-width:4px\n"
        "    class n3 here\n"
        "    class n2 here\n"
    )
