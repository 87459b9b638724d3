"""Newly drawn random graphs on the LangGraph that is installed: ours does the same, but where it differs on purpose."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.peer.random_graphs import NEVER_FILLED, REFUSED, SAME, UNREACHABLE, Spec, compare, reachable, run_theirs

pytestmark = pytest.mark.peer
seen: Counter[str] = Counter()


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Mostly graphs that make sense: everything reachable, loops with a way out, joins of what runs side by side."""
    names = [f"v{n}" for n in draw(st.permutations(range(draw(st.integers(2, 6)))))]
    some = st.lists(st.sampled_from(names), max_size=3, unique=True)
    nodes = {name: draw(st.integers(1, 5)) for name in names}
    entry = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    edges: dict[str, list[str]] = {}
    cond: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        onward = st.sampled_from([*names[place + 1 :], "END"])
        kind = draw(st.sampled_from(["edges", "edges", "cond", "both"]))
        if kind != "cond":
            edges[name] = draw(st.lists(onward, min_size=1, max_size=2, unique=True))
        if kind != "edges":
            anywhere = draw(st.lists(st.sampled_from([*names, "END"]), min_size=1, max_size=3))
            cond[name] = [draw(onward), *anywhere]
    joins = []
    if draw(st.booleans()):
        parents = draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
        joins.append((parents, draw(st.sampled_from(names))))
    return Spec(nodes, draw(some), entry, edges, cond, joins, draw(some))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(specs())
def test_every_graph_does_the_same_or_differs_on_purpose(spec: Spec) -> None:
    seen[compare(spec, run_theirs(spec))] += 1


def test_most_graphs_were_comparable() -> None:
    assert set(seen) <= {SAME, UNREACHABLE, NEVER_FILLED, *REFUSED.values()}
    assert seen[SAME] + seen[UNREACHABLE] > sum(seen.values()) / 4, seen


def test_a_chain_and_a_join_run_alike() -> None:
    spec = Spec({"a": 1, "b": 2, "c": 3}, ["b"], ["a", "b"], {"c": ["END"]}, {}, [(["a", "b"], "c")], ["c"])
    assert reachable(spec) == {"a", "b", "c"}
    assert compare(spec, run_theirs(spec)) == SAME
