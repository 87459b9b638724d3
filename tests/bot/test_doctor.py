"""The doctor finds what is missing and says what to do, on settings as people have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.doctor import Finding, examine
from bot.process import read_manifest, with_request_urls
from bot.sandbox.records import BOT_USER
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, StandIn
from bot.settings import load_settings

MANIFEST = read_manifest()


def found(tmp_path: Path, **given: Any) -> dict[str, Finding]:
    given.setdefault("database_url", f"sqlite:///{tmp_path / 'signoff.db'}")
    return {finding.about: finding for finding in examine(load_settings(**given), MANIFEST)}


def with_slack(stand_in: StandIn, **given: Any) -> dict[str, Any]:
    tokens = {"slack_bot_token": BOT_TOKEN, "slack_app_token": APP_TOKEN, "slack_api_url": stand_in.api_url}
    return {**tokens, **given}


def test_with_nothing_configured_nothing_is_wrong_and_what_is_simulated_is_said(tmp_path: Path) -> None:
    findings = found(tmp_path)
    assert [one for one in findings.values() if one.state == "wrong"] == []
    assert "simulated" in findings["model"].says
    assert "signoff sandbox" in findings["slack"].advice


def test_a_key_that_is_not_used_is_mentioned(tmp_path: Path) -> None:
    assert "not used" in found(tmp_path, anthropic_api_key="sk-ant-unused")["model"].says


def test_a_database_that_is_none_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("These are notes, and no database at all, however long one looks at them." * 20)
    finding = found(tmp_path, database_url=f"sqlite:///{tmp_path / 'notes.txt'}")["database"]
    assert finding.state == "wrong" and "no SQLite database" in finding.says


def test_a_workspace_where_all_is_well_is_well(tmp_path: Path) -> None:
    with StandIn(None, manifest=MANIFEST) as stand_in:
        findings = found(tmp_path, **with_slack(stand_in))
    assert {name: findings[name].state for name in ("slack", "audience")} == {"slack": "ok", "audience": "ok"}


def test_a_wrong_token_a_missing_invitation_and_a_lonely_channel_are_found(tmp_path: Path) -> None:
    with StandIn(None, manifest=MANIFEST) as stand_in:
        refused = found(tmp_path, **with_slack(stand_in, slack_bot_token="xoxb-wrong"))["slack"]
        assert refused.state == "wrong" and "SLACK_BOT_TOKEN" in refused.advice
        for person in ("U0BEN0002", "U0CLEO003"):
            stand_in.workspace.leave("C0HIKES01", person)
        lonely = found(tmp_path, **with_slack(stand_in))["audience"]
        assert lonely.state == "wrong" and "ALLOW_SELF_APPROVAL" in lonely.advice
        stand_in.workspace.leave("C0HIKES01", BOT_USER)
        outside = found(tmp_path, **with_slack(stand_in))["channel"]
        assert outside.state == "wrong" and "/invite" in outside.advice


def test_the_manifest_for_requests_over_http_has_their_address_and_no_socket_mode() -> None:
    changed = with_request_urls(MANIFEST, "https://signoff.example/")
    url = "https://signoff.example/slack/events"
    assert changed["settings"]["socket_mode_enabled"] is False
    assert changed["settings"]["interactivity"]["request_url"] == url
    assert [command["url"] for command in changed["features"]["slash_commands"]] == [url]
    assert MANIFEST["settings"]["socket_mode_enabled"] is True
