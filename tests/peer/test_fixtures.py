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
    differences = Counter(compare(*read(fixture)) for fixture in fixtures())
    assert differences == {}
