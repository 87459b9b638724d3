"""Tests that the catalog finds every flow, and refuses flows that cannot be told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphs.catalog import CATALOG, FLOWS, Catalog, UnknownFlow
from graphs.flow import Flow

HIKE = CATALOG.latest("plan_hike")
NEWER = replace(HIKE, graph=replace(HIKE.graph, version=2, fingerprint="other"))


def test_the_shipped_catalog_knows_every_version_by_its_structure() -> None:
    assert CATALOG.known == {(flow.name, flow.graph.version): flow.graph.fingerprint for flow in FLOWS}
    assert all(CATALOG.known.values())


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow.name}-{flow.graph.version}")
def test_every_flow_says_how_it_is_started(flow: Flow) -> None:
    assert flow.command.startswith("/")
    assert flow.usage
    assert all(field.label for field in flow.form.values())


@pytest.mark.parametrize("command", ["/plan-hike", "plan-hike", " /plan-hike "])
def test_a_command_finds_its_flow_with_or_without_its_slash(command: str) -> None:
    assert CATALOG.by_command(command) is HIKE


def test_the_newest_version_is_started_and_the_old_one_still_found() -> None:
    catalog = Catalog((NEWER, HIKE))
    assert catalog.latest("plan_hike") is catalog.by_command("/plan-hike") is NEWER
    assert catalog.flow("plan_hike", 1) is HIKE
    assert catalog.newest == (NEWER,)
    assert set(catalog.known) == {("plan_hike", 1), ("plan_hike", 2)}


def test_unknown_flows_versions_and_commands_are_errors_naming_the_known_ones() -> None:
    catalog = Catalog((HIKE, NEWER))
    with pytest.raises(UnknownFlow, match=r"no flow plan_hike v3; there are plan_hike v1, plan_hike v2"):
        catalog.flow("plan_hike", 3)
    with pytest.raises(UnknownFlow, match=r"no flow plan_cruise; there are plan_hike v1"):
        catalog.latest("plan_cruise")
    with pytest.raises(UnknownFlow, match=r"command /plan-cruise; there are /plan-hike"):
        catalog.by_command("/plan-cruise")


def test_one_version_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="plan_hike v1 is in the catalog twice; count its version up"):
        Catalog((HIKE, replace(HIKE)))


def test_one_command_for_two_flows_is_refused() -> None:
    other = replace(HIKE, name="other", graph=replace(HIKE.graph, name="other"))
    with pytest.raises(ValueError, match="Two flows have the command /plan-hike"):
        Catalog((HIKE, other))


def test_a_flow_named_otherwise_than_its_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="'other' has a graph called 'plan_hike'"):
        Catalog((replace(HIKE, name="other"),))
