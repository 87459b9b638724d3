"""Looks at everything the bot needs and says what is missing, and how to put it right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.app import build_model, build_sms, build_trails, practice_client, slack_client
from bot.people import SlackPeople, deciders, is_in
from bot.settings import Settings, unknown_variables
from graphs.ports import PortError
from storage.database import DatabaseError, open_database

State = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not right."""

    about: str
    state: State
    says: str
    advice: str = ""


def examine(settings: Settings, manifest: Mapping[str, Any]) -> list[Finding]:
    """Everything, in the order in which to put it right."""
    return [
        *_variables(),
        *_database(settings),
        *_model(settings),
        *_trails(settings),
        *_sms(settings),
        *_slack(settings, manifest),
    ]


def _variables() -> Iterator[Finding]:
    for name, meant in unknown_variables().items():
        advice = f"Did you mean {meant}?" if meant else "Remove it, or see the settings below."
        yield Finding("settings", "note", f"{name} sets nothing.", advice)


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        open_database(settings.database_url).close()
    except DatabaseError as error:
        yield Finding("database", "wrong", str(error), "Set SIGNOFF_DATABASE_URL.")
    else:
        yield Finding("database", "ok", "It can be read and written, and its schema is this version's.")


def _model(settings: Settings) -> Iterator[Finding]:
    if settings.model == "simulated":
        unused = " ANTHROPIC_API_KEY is set but not used." if settings.anthropic_api_key else ""
        yield Finding(
            "model", "note", f"It is simulated.{unused}", "SIGNOFF_MODEL=claude and ANTHROPIC_API_KEY use Claude."
        )
        return
    yield from _port(
        "model", lambda: f"{build_model(settings).provider}: {settings.model_worker}, {settings.model_writer}."
    )


def _trails(settings: Settings) -> Iterator[Finding]:
    with practice_client(settings) as practice:
        yield from _port("trails", lambda: f"{len(build_trails(settings, practice).list_trailheads())} trailheads.")


def _sms(settings: Settings) -> Iterator[Finding]:
    with practice_client(settings) as practice:
        yield from _port("texts", lambda: f"{build_sms(settings, practice).kind} through {settings.sms}.")


def _port(about: str, look: Callable[[], str]) -> Iterator[Finding]:
    try:
        yield Finding(about, "ok", look())
    except PortError as error:
        yield Finding(about, "wrong", str(error), "Change the setting it names.")


def _slack(settings: Settings, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    client = slack_client(settings)
    if client is None:
        yield Finding("slack", "note", "There is no SLACK_BOT_TOKEN.", "`signoff sandbox` needs none.")
        return
    try:
        who = client.auth_test()
    except (SlackApiError, OSError) as error:
        yield Finding("slack", "wrong", f"auth.test failed: {error}", "Set SLACK_BOT_TOKEN to the app's bot token.")
        return
    yield Finding("slack", "ok", f"Signed in as {who['user']} in {who['team']}, by {settings.slack}.")
    yield from _scopes(dict(who.headers), manifest)
    yield from _channel(client, settings)


def _scopes(headers: Mapping[str, str], manifest: Mapping[str, Any]) -> Iterator[Finding]:
    told = next((value for name, value in headers.items() if name.lower() == "x-oauth-scopes"), None)
    if told is None:
        return
    wanted = set(manifest["oauth_config"]["scopes"]["bot"])
    if missing := sorted(wanted - {scope.strip() for scope in told.split(",")}):
        yield Finding(
            "scopes", "wrong", f"The token lacks {', '.join(missing)}.", "Install the app again from manifest.yml."
        )
    else:
        yield Finding("scopes", "ok", "The token has every scope of the manifest.")


def _channel(client: WebClient, settings: Settings) -> Iterator[Finding]:
    channel = settings.hikes_channel
    people = SlackPeople(client)
    if not is_in(people, people.me, channel):
        advice = "Type `/invite @Signoff` there, or set SIGNOFF_HIKES_CHANNEL."
        yield Finding("channel", "wrong", f"The bot is not in {channel}.", advice)
        return
    audience = deciders(people, channel)
    enough = len(audience) > 1 or settings.allow_self_approval
    advice = "" if enough else "Invite somebody, or set SIGNOFF_ALLOW_SELF_APPROVAL=true."
    yield Finding("audience", "ok" if enough else "wrong", f"{len(audience)} people in {channel} can decide.", advice)
