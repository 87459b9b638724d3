"""A hundred random graphs that LangGraph 1.2.22 has run: ours does the same, but where it differs on purpose."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from graphs.engine.errors import GraphError
from tests.peer.random_graphs import (
    REFUSED,
    SAME,
    UNREACHABLE,
    Spec,
    Told,
    compare,
    compile_ours,
    reachable,
    run_ours,
)
from tests.shared import SHARED

FIXTURES = SHARED / "engine/peer_fixtures.json"

pytestmark = [pytest.mark.peer, pytest.mark.allowed_skip]


@cache
def fixtures() -> list[dict[str, Any]]:
    if not FIXTURES.exists():
        pytest.skip(f"{FIXTURES} is not on this machine")
    found: list[dict[str, Any]] = json.loads(FIXTURES.read_text("utf-8"))
    return found


def read(fixture: dict[str, Any]) -> tuple[Spec, Told]:
    spec = Spec(**fixture["spec"])
    pauses = [(set(pause["asks"]), set(pause["next"]), pause["n"]) for pause in fixture["pauses"]]
    supersteps = [set(step) for step in fixture["supersteps"]]
    return spec, Told(fixture["end"], fixture["final_n"], supersteps, pauses, fixture["final_log"])


def test_every_graph_does_the_same_or_differs_on_purpose() -> None:
    """Two differences are in how they are compared, see `compare`: our routers see all writes of their superstep, not
    their own node's alone, and a pause shows what finished siblings wrote only once the step is whole."""
    differences = [compare(*read(fixture)) for fixture in fixtures()]
    assert Counter(differences) == {SAME: 31, UNREACHABLE: 68, REFUSED["can wait for ever"]: 1}


def test_only_routers_beside_other_nodes_go_another_way() -> None:
    """Ours see what the whole superstep wrote, LangGraph's their own node's write: one by one both are the same."""
    differ = set()
    for place, (spec, theirs) in enumerate(map(read, fixtures())):
        try:
            graph = compile_ours(spec.without(set(spec.nodes) - reachable(spec)), own_view=False)
        except GraphError:
            continue
        ours = run_ours(graph, 200, len(theirs.pauses))
        size = min(len(ours.supersteps), len(theirs.supersteps))
        if ours.supersteps[:size] != theirs.supersteps[:size]:
            differ.add(place)
            assert any(len(step) > 1 for step in theirs.supersteps)
    assert 0 < len(differ) < 30
