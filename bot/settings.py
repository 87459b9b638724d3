"""Every setting, once: names, defaults and meaning; read from the environment, `.env` and `signoff.toml`."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from dotenv import dotenv_values
from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

PREFIX: Final = "SIGNOFF_"
TOML: Final = "signoff.toml"
DOTENV: Final = ".env"
HIDDEN: Final = "(hidden)"
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)\s*")
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^@]*@")


class SettingsError(ValueError):
    """A setting cannot be used; the message names it, its place and what would do."""


def read_duration(value: object) -> object:
    """A length of time like "90s", "30m", "4h", "2d" or "1h 30m"; anything else is left to pydantic."""
    if not isinstance(value, str):
        return value
    parts = _PART.findall(value)
    if not parts or _PART.sub("", value).strip():
        raise ValueError("must be a length of time like 90s, 30m, 4h or 2d")
    return timedelta(seconds=sum(float(amount) * _UNITS[unit] for amount, unit in parts))


def _read_durations(value: object) -> object:
    parts = value.split(",") if isinstance(value, str) else value
    return [read_duration(part) for part in parts if part != ""] if isinstance(parts, list | tuple) else parts


Duration = Annotated[timedelta, BeforeValidator(read_duration)]
Durations = Annotated[tuple[timedelta, ...], NoDecode, BeforeValidator(_read_durations)]


def _also(name: str, *others: str) -> AliasChoices:
    """A setting that also goes by names without our prefix, which its vendor made usual."""
    return AliasChoices(f"{PREFIX}{name}", *others)


class Settings(BaseSettings):
    """All settings. An environment variable wins over `.env`, that over `signoff.toml`, that over the default."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=DOTENV,
        env_ignore_empty=True,
        toml_file=TOML,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    database_url: str = Field(default="sqlite:///signoff.db", repr=False)
    """Where everything is remembered: sqlite:///file or postgresql+psycopg://user:password@host/name."""

    slack_bot_token: SecretStr | None = Field(None, validation_alias=_also("SLACK_BOT_TOKEN", "SLACK_BOT_TOKEN"))
    """The bot token, "xoxb-…". Without it Signoff works from the command line and in the sandbox."""
    slack_app_token: SecretStr | None = Field(None, validation_alias=_also("SLACK_APP_TOKEN", "SLACK_APP_TOKEN"))
    """The app-level token, "xapp-…", for Socket Mode."""
    slack_signing_secret: SecretStr | None = Field(
        None, validation_alias=_also("SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET")
    )
    """The signing secret, for requests over HTTP instead of Socket Mode."""
    slack_api_url: str = Field("https://slack.com/api/", validation_alias=_also("SLACK_API_URL", "SLACK_API_URL"))
    """Slack's Web API, or a stand-in for it."""
    http_host: str = "127.0.0.1"
    """Where requests from Slack and health checks are served."""
    http_port: int = Field(3000, ge=0, le=65_535)
    """The port for them."""

    answer_token: SecretStr | None = None
    """The token with which machines may answer questions at `/answer`; off, unless set."""

    model: Literal["simulated", "claude"] = "simulated"
    """Who answers: a simulated model that says so everywhere, or Claude."""
    model_worker: str = "claude-sonnet-5-5"
    """The model that plans with tools."""
    model_writer: str = "claude-haiku-5-5"
    """The model that judges plans and writes texts."""
    model_script: str = "default"
    """How the simulated model behaves."""
    model_faults: str = ""
    """What goes wrong with the simulated model's first calls, with commas between."""
    model_seconds: float = Field(0.0, ge=0, le=60)
    """How long each call of the simulated model takes."""
    model_journal: Path | None = None
    """A file that gets a line for each call of the simulated model."""
    anthropic_api_key: SecretStr | None = Field(None, validation_alias=_also("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"))
    """The key for Claude."""
    anthropic_base_url: str = ""
    """Another address for Claude's API."""

    trails: Literal["practice", "open-meteo"] = "practice"
    """Where forecasts come from: the practice API, or Open-Meteo."""
    trailheads_file: Path | None = None
    """The club's trailheads as JSON or GeoJSON; a list comes with Signoff."""
    trailheads_time_zone: str = "UTC"
    """The time zone of trailheads whose file names none."""
    practice_url: str | None = None
    """The practice API over HTTP; without it, it runs inside the process."""
    practice_file: Path | None = None
    """Where the practice API keeps its record of the texts it received."""
    open_meteo_url: str = ""
    """Another address for Open-Meteo."""

    sms: Literal["practice", "twilio"] = "practice"
    """Who carries texts: the practice API, which sends nothing to anybody, or Twilio."""
    twilio_account_sid: str = Field("", validation_alias=_also("TWILIO_ACCOUNT_SID", "TWILIO_ACCOUNT_SID"))
    """Twilio's account, "AC…"."""
    twilio_auth_token: SecretStr | None = Field(None, validation_alias=_also("TWILIO_AUTH_TOKEN", "TWILIO_AUTH_TOKEN"))
    """Its secret."""
    twilio_from: str = ""
    """The number texts come from, in E.164 form."""
    twilio_messaging_service_sid: str = ""
    """A messaging service, "MG…", instead of a number."""
    twilio_status_url: str = ""
    """An address that Twilio tells how each text fares."""

    group_phone: str = Field("+15035550134", pattern=r"^\+[1-9]\d{6,14}$")
    """The number that the hiking group's texts go to, in E.164 form."""
    hikes_channel: str = Field("C0HIKES01", pattern=r"^[CG][A-Z0-9]{2,30}$")
    """The id of the channel that hikes are posted to."""

    allow_self_approval: bool = False
    """Whether whoever asked for a run may approve what it drafts."""
    remind_after: Durations = (timedelta(hours=4), timedelta(hours=8))
    """When people are reminded of an open card, counted from when its draft was shown."""
    expires_after: Duration | None = None
    """When an open card expires; never, unless set."""
    undo_seconds: int = Field(0, ge=0, le=86_400)
    """How long an approval can be undone before anything goes out."""

    calls_a_day: int = Field(300, ge=1)
    """The most model calls a day, of everybody together."""
    calls_a_run: int = Field(40, ge=1)
    """The most model calls for one run."""
    tokens_a_run: int = Field(400_000, ge=1)
    """The most tokens, read and written, for one run."""
    rounds: int = Field(3, ge=1, le=20)
    """How often a plan is judged before the agent gives up."""

    sweep_seconds: float = Field(10.0, gt=0, le=3_600)
    """How often everything due is looked for: reminders, expiry, runs left behind."""
    threads: int = Field(8, ge=1, le=256)
    """How many runs one process advances at once."""
    sandbox_host: str = "127.0.0.1"
    """Where the sandbox is served. It has no passwords: keep it on loopback."""
    sandbox_port: int = Field(8420, ge=0, le=65_535)
    """The sandbox's port."""
    sandbox_file: Path | None = None
    """Where the sandbox keeps its workspace."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """How much is logged. Texts of messages are never logged at INFO."""
    log_json: bool = False
    """Whether log lines are JSON."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml_settings = TomlConfigSettingsSource(settings_cls)
        return init_settings, env_settings, dotenv_settings, toml_settings, file_secret_settings

    @property
    def slack(self) -> Literal["off", "socket", "http"]:
        """How Slack reaches us, by the tokens there are; Socket Mode where both ways are possible."""
        if self.slack_bot_token is None:
            return "off"
        return "socket" if self.slack_app_token else "http"

    @property
    def practice_record(self) -> Path | None:
        """`practice_file`, or a file beside the SQLite database; None beside PostgreSQL, where memory has to do."""
        if self.practice_file or not self.database_url.startswith("sqlite:///"):
            return self.practice_file
        return Path(self.database_url.removeprefix("sqlite:///")).with_suffix(".practice.db")

    @property
    def undo_for(self) -> timedelta:
        """`undo_seconds` as a length of time."""
        return timedelta(seconds=self.undo_seconds)

    @model_validator(mode="after")
    def _check_what_belongs_together(self) -> Settings:
        missing = [
            sentence
            for is_missing, sentence in (
                (
                    self.slack_bot_token is not None and not (self.slack_app_token or self.slack_signing_secret),
                    "SLACK_BOT_TOKEN needs SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP) beside it",
                ),
                (
                    self.slack_bot_token is None and self.slack_app_token is not None,
                    "SLACK_APP_TOKEN needs SLACK_BOT_TOKEN beside it",
                ),
                (
                    self.model == "claude" and self.anthropic_api_key is None,
                    "SIGNOFF_MODEL=claude needs ANTHROPIC_API_KEY",
                ),
                (self.sms == "twilio" and not self._has_twilio(), _TWILIO),
            )
            if is_missing
        ]
        if missing:
            raise ValueError("; ".join(missing))
        return self

    def _has_twilio(self) -> bool:
        is_known = bool(self.twilio_account_sid and self.twilio_auth_token)
        return is_known and bool(self.twilio_from or self.twilio_messaging_service_sid)


_TWILIO: Final = (
    "SIGNOFF_SMS=twilio needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and "
    "SIGNOFF_TWILIO_FROM or SIGNOFF_TWILIO_MESSAGING_SERVICE_SID"
)


@dataclass(frozen=True, slots=True)
class Explained:
    """One setting as the doctor shows it; secrets are never in it."""

    name: str
    value: str
    source: str
    meaning: str


@cache
def names_of(field: str) -> tuple[str, ...]:
    """The environment variables a setting is read from, the first one wins; raises `KeyError` for an unknown field."""
    alias = Settings.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices if str(choice).isupper())
    return (f"{PREFIX}{field.upper()}",)


def load_settings(**given: Any) -> Settings:
    """All settings as they hold now; `given` wins over everything.

    Raises `SettingsError` for a name that does not exist in a file, for a secret in `signoff.toml`, and for every value
    that cannot be used.
    """
    _toml(), _dotenv()
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError(_told(error)) from error


def explain(settings: Settings) -> list[Explained]:
    """Every setting with its value (or that it is hidden) and where it came from."""
    places = _places()
    return [
        Explained(name, _shown(name, getattr(settings, name)), _source(settings, name, places), info.description or "")
        for name, info in Settings.model_fields.items()
    ]


def unknown_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that begin like ours but set nothing, each with the name that was probably meant, or "".

    They are no error, because other programs may have put them there; the doctor tells of them.
    """
    strange = [name for name in environment if name.startswith(PREFIX) and name not in _variables()]
    return {name: _near(name, _variables()) for name in strange}


def _places() -> dict[str, str]:
    """Where each setting that is set anywhere is set; where several places set it, the one that wins."""
    places = dict.fromkeys(_toml(), TOML)
    for place, values in ((DOTENV, _dotenv()), ("the environment", os.environ)):
        for field in Settings.model_fields:
            name = next((name for name in names_of(field) if values.get(name)), None)
            places |= {field: f"{name} in {place}"} if name else {}
    return places


def _toml() -> dict[str, Any]:
    path = Path(TOML)
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name} is not TOML: {error}.") from error
    for name in values:
        if name not in Settings.model_fields:
            raise SettingsError(f"{path.name} has no setting {name!r} to set. {_hint(name, Settings.model_fields)}")
        if _is_secret(name):
            raise SettingsError(f"{name!r} is a secret: take it out of {path.name} and set {names_of(name)[-1]}.")
    return values


def _dotenv() -> dict[str, str]:
    path = Path(DOTENV)
    if not path.is_file():
        return {}
    values = {name: value for name, value in dotenv_values(path).items() if value is not None}
    for name in values:
        if name.startswith(PREFIX) and name not in _variables():
            raise SettingsError(f"{path.name} has no setting {name} to set. {_hint(name, _variables())}")
    return values


@cache
def _variables() -> frozenset[str]:
    return frozenset(name for field in Settings.model_fields for name in names_of(field))


def _near(name: str, names: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(name, list(names), 1, 0.6)), "")


def _hint(name: str, names: Iterable[str]) -> str:
    near = _near(name, names)
    return f"Did you mean {near!r}?" if near else "`signoff doctor` lists all settings."


def _is_secret(field: str) -> bool:
    return SecretStr in getattr(Settings.model_fields[field].annotation, "__args__", ())


def _shown(name: str, value: Any) -> str:
    if _is_secret(name):
        return HIDDEN if value else "not set"
    if isinstance(value, tuple):
        return ", ".join(map(_length, value)) or "none"
    if isinstance(value, timedelta):
        return _length(value)
    return "not set" if value in (None, "") else _PASSWORD.sub(r"\1:***@", str(value))


def _length(time: timedelta) -> str:
    seconds = time.total_seconds()
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % _UNITS[unit] == 0 or unit == "s")
    return f"{seconds / _UNITS[unit]:g}{unit}"


def _source(settings: Settings, name: str, places: Mapping[str, str]) -> str:
    return places.get(name) or ("given" if name in settings.model_fields_set else "default")


def _told(error: ValidationError) -> str:
    """What is wrong, by setting, without the values: one of them may be a secret."""
    return " ".join(_complaint(detail) for detail in error.errors(include_input=False, include_url=False))


def _complaint(detail: Any) -> str:
    message = str(detail["msg"]).removeprefix("Value error, ")
    place = str(detail["loc"][0]) if detail["loc"] else ""
    name = next((names_of(field)[0] for field in Settings.model_fields if _goes_by(field, place)), "")
    return f"{name}: {message}." if name else f"{message}."


def _goes_by(field: str, place: str) -> bool:
    return place == field or place in names_of(field)
