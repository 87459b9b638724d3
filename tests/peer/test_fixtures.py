"""A hundred random graphs that LangGraph 1.2.22 has run: ours does the same, but where it differs on purpose."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.peer.random_graphs import Spec, Told, compare

FIXTURES = Path("/work/shared/engine/peer_fixtures.json")

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
    differences = Counter(compare(*read(fixture)) for fixture in fixtures())
    assert differences == {SAME: 28, UNREACHABLE: 71, REFUSED["can wait for ever"]: 1}


def test_our_routers_see_what_siblings_wrote() -> None:
    """Told apart from LangGraph's, some graphs go another way; those without parallel routing do not."""
    same = differ = 0
    for spec, theirs in map(read, fixtures()):
        if any(len(step) > 1 for step in theirs.supersteps) or theirs.end != "finished":
            continue
        kept = spec.without(set(spec.nodes) - reachable(spec))
        ours = run_ours(compile_ours(kept, own_view=False), 2000, len(theirs.pauses))
        same += ours.supersteps == theirs.supersteps
        differ += ours.supersteps != theirs.supersteps
    assert (same > 20, differ) == (True, 0)
