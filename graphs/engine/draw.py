"""Drawings of a graph as Mermaid text that every parser accepts, whatever its nodes are called."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphs.engine.shape import END, START, Edge

# Neither dot nor dash: Mermaid takes "1. x" and "- x" for lists and draws an error instead.
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _,?")


def draw_mermaid(
    nodes: Sequence[str], edges: Sequence[Edge], inner: Collection[str] = (), highlight: Sequence[str] = ()
) -> str:
    """Flowchart text: neutral ids, quoted labels with everything unusual as an entity, routers dotted.

    `inner` nodes are graphs themselves, `highlight` marks nodes.
    """
    ids = {START: "S0", END: "E0"} | {name: f"n{place}" for place, name in enumerate(nodes)}
    lines = ["flowchart TD", '    S0(["start"])']
    for name in nodes:
        left, right = ("[[", "]]") if name in inner else ("[", "]")
        lines.append(f'    {ids[name]}{left}"{_label(name)}"{right}')
    lines.append('    E0(["end"])')
    for edge in edges:
        label = "end" if edge.label == END else edge.label
        arrow = f'-. "{_label(label)}" .->' if edge.conditional and label.strip() else "-->"
        lines.append(f"    {ids[edge.source]} {arrow} {ids[edge.target]}")
    lines.append("    classDef here stroke-width:4px")
    lines += [f"    class {ids[name]} here" for name in highlight if name in ids]
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    shown = "".join(char if char in _SAFE else f"#{ord(char)};" for char in text)
    return shown if shown.strip() else "#8203;"
