"""The manifest asks Slack for exactly what the bot uses, spelt as Slack spells it."""

from __future__ import annotations

import ast
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from slack_sdk import WebClient

from tests.shared import SHARED

ROOT = Path(__file__).parent.parent.parent
SLACK = SHARED / "slack"

# What the bot calls, and which of the scopes that would do it needs: one for each kind of conversation it works in.
METHODS = {
    "auth.test": set(),
    "apps.connections.open": set(),
    "chat.getPermalink": set(),
    "chat.postEphemeral": {"chat:write"},
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "conversations.history": {"channels:history", "groups:history", "im:history", "mpim:history"},
    "conversations.info": {"channels:read", "groups:read", "im:read", "mpim:read"},
    "conversations.members": {"channels:read", "groups:read", "im:read", "mpim:read"},
    "conversations.open": {"im:write"},
    "conversations.replies": {"channels:history", "groups:history", "im:history", "mpim:history"},
    "users.info": {"users:read"},
    "views.open": set(),
    "views.publish": set(),
    "views.update": set(),
}
EVENTS = {"app_home_opened"}


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "manifest.yml").read_text("utf-8"))
    return loaded


def shared(name: str) -> Any:
    path = SLACK / name
    if not path.is_file():
        pytest.skip("Slack's descriptions of its API are not on this machine.")
    return json.loads(path.read_text("utf-8"))


@pytest.mark.allowed_skip
@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"])
def test_it_follows_slacks_schema(manifest: dict[str, Any], version: str) -> None:
    schema = shared(f"schemas/schemas_manifest.schema.{version}.json")
    assert [error.message for error in Draft7Validator(schema).iter_errors(manifest)] == []


@pytest.mark.allowed_skip
@pytest.mark.parametrize("change", [{"command": "plan-hike"}, {"command": "/x" * 17}, {"colour": "red"}])
def test_the_schema_would_see_a_mistake(manifest: dict[str, Any], change: dict[str, str]) -> None:
    manifest["features"]["slash_commands"][0] |= change
    assert not Draft7Validator(shared("schemas/schemas_manifest.schema.2.0.0.json")).is_valid(manifest)


def test_it_asks_for_what_is_used_and_nothing_else(manifest: dict[str, Any]) -> None:
    assert set(manifest["oauth_config"]["scopes"]) == {"bot"}
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == sorted({"commands"}.union(*METHODS.values()))


@pytest.mark.allowed_skip
@pytest.mark.parametrize("method", METHODS)
def test_every_scope_is_one_that_its_method_takes(method: str) -> None:
    takes = set(shared(f"methods/{method}.json")["scope"].get("bot", []))
    assert METHODS[method] <= takes
    assert bool(METHODS[method]) == bool(takes)


def test_every_method_that_is_called_is_known_here() -> None:
    methods = {name for name in dir(WebClient) if "_" in name.strip("_")}
    sources = [path for path in (ROOT / "bot").rglob("*.py") if "sandbox" not in path.parts]
    nodes = chain.from_iterable(ast.walk(ast.parse(path.read_text("utf-8"))) for path in sources)
    called = {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in methods}
    assert {name.replace("_", ".") for name in called} - set(METHODS) == set()


def test_it_listens_to_what_is_handled(manifest: dict[str, Any]) -> None:
    assert set(manifest["settings"]["event_subscriptions"]) == {"bot_events"}
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == EVENTS


def test_people_can_click_look_home_and_write_commands(manifest: dict[str, Any]) -> None:
    settings, features = manifest["settings"], manifest["features"]
    assert settings["interactivity"] == {"is_enabled": True}
    assert (settings["socket_mode_enabled"], settings["org_deploy_enabled"]) == (True, False)
    assert (features["app_home"]["home_tab_enabled"], features["app_home"]["messages_tab_enabled"]) == (True, True)
    commands = features["slash_commands"]
    assert [(command["command"], command["should_escape"]) for command in commands] == [("/plan-hike", True)]
    assert all(command["usage_hint"] and command["description"] for command in commands)


def test_nothing_in_it_is_a_secret_or_an_address(manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest)
    assert "xoxb" not in text
    assert "://" not in text
