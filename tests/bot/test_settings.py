"""Every setting is read from where people put it, a typo is told, and no secret is ever shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bot.settings import (
    HIDDEN,
    PREFIX,
    Settings,
    SettingsError,
    explain,
    load_settings,
    names_of,
    unknown_variables,
)

SLACK = {"SLACK_BOT_TOKEN": "xoxb-secret", "SLACK_APP_TOKEN": "xapp-secret"}


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder and an environment without any of our names."""
    monkeypatch.chdir(tmp_path)
    for field in Settings.model_fields:
        for name in names_of(field):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def sources(settings: Settings) -> dict[str, str]:
    return {line.name: line.source for line in explain(settings)}


def test_nothing_needs_to_be_set() -> None:
    settings = load_settings()
    assert (settings.slack, settings.model, settings.trails, settings.sms) == (
        "off",
        "simulated",
        "practice",
        "practice",
    )
    assert settings.database_url == "sqlite:///signoff.db"
    assert settings.remind_after == (timedelta(hours=4), timedelta(hours=8))
    assert not settings.allow_self_approval
    assert set(sources(settings).values()) == {"default"}


def test_the_environment_wins_over_both_files(put: pytest.MonkeyPatch) -> None:
    Path("signoff.toml").write_text("threads = 1\nrounds = 1\nundo_seconds = 1\n")
    Path(".env").write_text("SIGNOFF_THREADS=2\nSIGNOFF_ROUNDS=2\nPOSTGRES_PASSWORD=other\n")
    put.setenv("SIGNOFF_THREADS", "3")
    settings = load_settings()
    assert (settings.threads, settings.rounds, settings.undo_seconds) == (3, 2, 1)
    told = sources(settings)
    assert told["threads"] == "SIGNOFF_THREADS in the environment"
    assert told["rounds"] == "SIGNOFF_ROUNDS in .env"
    assert told["undo_seconds"] == "signoff.toml"
    assert settings.undo_for == timedelta(seconds=1)


def test_what_is_given_wins_over_everything(put: pytest.MonkeyPatch) -> None:
    put.setenv("SIGNOFF_THREADS", "3")
    assert load_settings(threads=5).threads == 5


@pytest.mark.parametrize(
    ("field", "variable"),
    [
        ("slack_bot_token", "SLACK_BOT_TOKEN"),
        ("slack_app_token", "SLACK_APP_TOKEN"),
        ("slack_signing_secret", "SLACK_SIGNING_SECRET"),
        ("slack_api_url", "SLACK_API_URL"),
        ("anthropic_api_key", "ANTHROPIC_API_KEY"),
    ],
)
def test_the_usual_names_are_read_too_and_ours_win(put: pytest.MonkeyPatch, field: str, variable: str) -> None:
    for name, value in SLACK.items():
        put.setenv(name, value)
    put.setenv(variable, "usual")
    assert {line.source for line in explain(load_settings()) if line.name == field} == {
        f"{variable} in the environment"
    }
    put.setenv(f"{PREFIX}{variable}", "ours")
    value = getattr(load_settings(), field)
    assert (value if isinstance(value, str) else value.get_secret_value()) == "ours"


@pytest.mark.parametrize(
    ("tokens", "way"),
    [
        ({}, "off"),
        (SLACK, "socket"),
        ({"SLACK_BOT_TOKEN": "xoxb", "SLACK_SIGNING_SECRET": "s"}, "http"),
        (SLACK | {"SLACK_SIGNING_SECRET": "s"}, "socket"),
    ],
)
def test_the_tokens_say_how_slack_is_reached(put: pytest.MonkeyPatch, tokens: dict[str, str], way: str) -> None:
    for name, value in tokens.items():
        put.setenv(name, value)
    assert load_settings().slack == way


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb"}, "SLACK_BOT_TOKEN needs SLACK_APP_TOKEN"),
        ({"SLACK_APP_TOKEN": "xapp"}, "SLACK_APP_TOKEN needs SLACK_BOT_TOKEN"),
        ({"SIGNOFF_MODEL": "claude"}, "SIGNOFF_MODEL=claude needs ANTHROPIC_API_KEY"),
        ({"SIGNOFF_MODEL": "cloud"}, "SIGNOFF_MODEL: Input should be 'simulated' or 'claude'."),
        ({"SIGNOFF_SMS": "twilio", "TWILIO_ACCOUNT_SID": "AC1"}, "SIGNOFF_SMS=twilio needs"),
        ({"SIGNOFF_REMIND_AFTER": "soon"}, "SIGNOFF_REMIND_AFTER: must be a length of time like"),
        ({"SIGNOFF_GROUP_PHONE": "0503"}, "SIGNOFF_GROUP_PHONE: "),
        ({"SIGNOFF_THREADS": "0"}, "SIGNOFF_THREADS: "),
        ({"SIGNOFF_SWEEP_SECONDS": "inf"}, "SIGNOFF_SWEEP_SECONDS: "),
    ],
)
def test_what_cannot_be_used_is_told_by_name(put: pytest.MonkeyPatch, variables: dict[str, str], says: str) -> None:
    for name, value in variables.items():
        put.setenv(name, value)
    with pytest.raises(SettingsError) as told:
        load_settings()
    assert says in str(told.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [("4h", [4 * 60]), ("90s, 30m", [1.5, 30]), ("1h 30m,2d", [90, 2_880]), ("5min", [5]), ("", [240, 480])],
)
def test_lengths_of_time_are_written_as_people_do(put: pytest.MonkeyPatch, written: str, read: list[float]) -> None:
    put.setenv("SIGNOFF_REMIND_AFTER", written)
    assert [time.total_seconds() / 60 for time in load_settings().remind_after] == read


def test_a_file_may_list_them(put: pytest.MonkeyPatch) -> None:
    Path("signoff.toml").write_text('remind_after = ["1h"]\nexpires_after = "2d"\n')
    settings = load_settings()
    assert (settings.remind_after, settings.expires_after) == ((timedelta(hours=1),), timedelta(days=2))
    assert {line.name: line.value for line in explain(settings)}["expires_after"] == "2d"


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("signoff.toml", "modle = 'claude'", "signoff.toml has no setting 'modle' to set. Did you mean 'model'?"),
        ("signoff.toml", "zzzzzz = 1", "`signoff doctor` lists all settings."),
        ("signoff.toml", "anthropic_api_key = 'sk'", "is a secret: take it out of signoff.toml"),
        ("signoff.toml", "model = ", "signoff.toml is not TOML"),
        (".env", "SIGNOFF_TREADS=2", "Did you mean 'SIGNOFF_THREADS'?"),
    ],
)
def test_a_mistake_in_a_file_is_refused_with_what_was_meant(file: str, text: str, says: str) -> None:
    Path(file).write_text(text)
    with pytest.raises(SettingsError) as told:
        load_settings()
    assert says in str(told.value)


def test_a_strange_variable_is_told_of_but_refuses_nothing(put: pytest.MonkeyPatch) -> None:
    put.setenv("SIGNOFF_MODLE", "claude")
    assert load_settings().model == "simulated"
    assert unknown_variables()["SIGNOFF_MODLE"] == "SIGNOFF_MODEL"


def test_no_secret_is_shown_anywhere(put: pytest.MonkeyPatch) -> None:
    for name in (
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "SLACK_SIGNING_SECRET",
        "ANTHROPIC_API_KEY",
        "TWILIO_AUTH_TOKEN",
        "SIGNOFF_ANSWER_TOKEN",
    ):
        put.setenv(name, "hunter2")
    put.setenv("SIGNOFF_DATABASE_URL", "postgresql+psycopg://signoff:hunter2@db/signoff")
    settings = load_settings()
    told = explain(settings)
    assert "hunter2" not in f"{settings!r} {settings} {told}"
    assert {line.value for line in told if line.name.endswith(("_token", "_key", "_secret"))} == {HIDDEN}
    assert (
        next(line for line in told if line.name == "database_url").value
        == "postgresql+psycopg://signoff:***@db/signoff"
    )


def test_an_error_does_not_show_the_value(put: pytest.MonkeyPatch) -> None:
    put.setenv("SIGNOFF_MODEL", "hunter2")
    with pytest.raises(SettingsError) as told:
        load_settings()
    assert "hunter2" not in str(told.value)


def test_every_setting_says_what_it_is_for() -> None:
    assert [line.name for line in explain(load_settings()) if not line.meaning.endswith(".")] == []
