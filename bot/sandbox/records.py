"""The values a workspace consists of: people, channels, messages, views and deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from bot import limits

JsonObject: TypeAlias = dict[str, Any]

TEAM_ID = "T0SIGNOFF"
TEAM_NAME = "Sandbox"
TEAM_DOMAIN = "sandbox"
APP_ID = "A0SIGNOFF"
APP_NAME = "Signoff"
BOT_ID = "B0SIGNOFF"
BOT_USER = "U0SIGNOFF"
SLACKBOT = "USLACKBOT"

ChannelKind: TypeAlias = Literal["public", "private", "im"]
ViewKind: TypeAlias = Literal["modal", "home"]
DeliveryKind: TypeAlias = Literal["slash_commands", "interactive", "events_api"]
DeliveryStatus: TypeAlias = Literal["waiting", "acked", "late", "failed"]
ChangeKind: TypeAlias = Literal[
    "person", "channel", "message", "view", "delivery", "unread", "fault", "connection", "reload"
]


@dataclass(frozen=True, slots=True)
class Person:
    """A member of the workspace; bots and guests too. `time_zone` is an IANA name, `color` six hex digits."""

    id: str
    name: str
    real_name: str
    time_zone: str = "Etc/UTC"
    is_bot: bool = False
    is_restricted: bool = False
    deleted: bool = False
    color: str = "616061"


@dataclass(frozen=True, slots=True)
class Channel:
    """A conversation. `name` is empty and `members` has two ids for a direct message."""

    id: str
    name: str
    kind: ChannelKind
    members: tuple[str, ...] = ()
    archived: bool = False
    topic: str = ""
    created: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message as the channel shows it now.

    `user` is its author, `bot` the bot id when an app wrote it, `ephemeral_to` the only person who sees it,
    `edited` the ts of the last edit a person would be told about, `response_of` the delivery it answers.
    """

    ts: str
    channel: str
    user: str
    text: str
    bot: str | None = None
    blocks: tuple[JsonObject, ...] = ()
    thread_ts: str | None = None
    metadata: JsonObject | None = None
    ephemeral_to: str | None = None
    edited: str | None = None
    deleted: bool = False
    response_of: str | None = None
    subtype: str | None = None
    reactions: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_reply(self) -> bool:
        """Whether it stands in a thread below another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts


@dataclass(frozen=True, slots=True)
class View:
    """A modal on a person's stack, or their App Home.

    `view` is the view as the app sent it, with every block_id present; `state` is `{block_id: {action_id: value}}` as
    last entered; `errors` are the field errors to show, `trouble` the sentence when the app did not answer.
    """

    id: str
    hash: str
    user: str
    kind: ViewKind
    view: JsonObject
    root_view_id: str
    previous_view_id: str | None = None
    state: JsonObject = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    trouble: str = ""

    @property
    def blocks(self) -> list[JsonObject]:
        """The blocks of the view."""
        blocks: list[JsonObject] = self.view.get("blocks", [])
        return blocks

    @property
    def private_metadata(self) -> str:
        """What the app put there for itself, or the empty string."""
        return str(self.view.get("private_metadata") or "")

    @property
    def callback_id(self) -> str:
        """The app's name for this view, or the empty string."""
        return str(self.view.get("callback_id") or "")

    @property
    def external_id(self) -> str:
        """The app's own unique id of this view, or the empty string."""
        return str(self.view.get("external_id") or "")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One envelope on its way to the app, and what became of it.

    `response` is the payload of the ack, `attempts` how often it was sent; `late` means no ack within the deadline,
    `failed` that nothing was connected or the app refused. Times are Unix seconds. The last four fields name where
    the person acted, so that a warning can be shown there.
    """

    id: str
    kind: DeliveryKind
    payload: JsonObject
    user: str
    label: str
    sent_at: float
    acked_at: float | None = None
    response: Any = None
    attempts: int = 0
    status: DeliveryStatus = "waiting"
    problem: str = ""
    channel: str = ""
    message_ts: str = ""
    view_id: str = ""
    action_id: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """How much of one channel a person has not seen. `mentions` counts the messages that name them."""

    channel: str
    count: int
    mentions: int
    last_read: str


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened: `id` is the ts, view id, delivery id, channel id or person id of `what`.

    `audience` are the people it concerns; None means everyone.
    """

    seq: int
    what: ChangeKind
    id: str
    channel: str = ""
    audience: frozenset[str] | None = None

    def concerns(self, person: str) -> bool:
        """Whether this person's page has to know."""
        return self.audience is None or person in self.audience


@dataclass(frozen=True, slots=True)
class Timing:
    """Slack's time limits in seconds; `retry_seconds` are the pauses before each redelivery of an event."""

    ack_seconds: float = limits.ACK_SECONDS
    trigger_seconds: float = limits.TRIGGER_SECONDS
    retry_seconds: tuple[float, ...] = limits.EVENT_RETRY_SECONDS
    response_url_seconds: float = limits.RESPONSE_URL_SECONDS
    response_url_uses: int = limits.RESPONSE_URL_USES


DEFAULT_PEOPLE = (
    Person("U0ANA0001", "ana", "Ana Ferreira", "America/Los_Angeles", color="9f69e7"),
    Person("U0BEN0002", "ben", "Ben Okafor", "America/New_York", color="4bbe2e"),
    Person("U0CLEO003", "cleo", "Cleo Lindqvist", "Europe/Stockholm", color="e7392d"),
    Person(BOT_USER, "signoff", APP_NAME, is_bot=True, color="3c989f"),
    Person(SLACKBOT, "slackbot", "Slackbot", is_bot=True, color="757575"),
)
_EVERYONE = ("U0ANA0001", "U0BEN0002", "U0CLEO003", BOT_USER)
DEFAULT_CHANNELS = (
    Channel("C0GENERAL", "general", "public", _EVERYONE, topic="Company-wide announcements"),
    Channel("C0HIKES01", "hikes", "public", _EVERYONE, topic="Where to on Saturday?"),
    Channel("C0OPS0001", "ops", "private", ("U0ANA0001", "U0BEN0002", BOT_USER), topic="Changes and refunds"),
)
