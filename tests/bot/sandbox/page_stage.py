"""A stand-in with its page, an app that remembers what reached it, and a workspace in the middle of a Thursday."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.sandbox.courier import Envelope, Receiver
from bot.sandbox.lab import Lab
from bot.sandbox.mishaps import lab_of
from bot.sandbox.page import Page
from bot.sandbox.records import BOT_ID, BOT_USER, Message, Timing, View
from bot.sandbox.server import StandIn

ANA, BEN, CLEO = "U0ANA0001", "U0BEN0002", "U0CLEO003"
HIKES = "C0HIKES01"
NOON = datetime(2026, 12, 3, 20, 0, tzinfo=UTC).timestamp()
"""When the stage is set, in Ana's city: no test may depend on the hour it runs at."""
MANIFEST: dict[str, Any] = {
    "features": {
        "app_home": {"home_tab_enabled": True, "messages_tab_enabled": True},
        "bot_user": {"display_name": "Signoff"},
        "slash_commands": [
            {
                "command": "/plan-hike",
                "description": "Plan a hike and text the group once you approve",
                "usage_hint": "Saturday, 8 to 12 km near Portland, dry",
                "should_escape": True,
            },
            {
                "command": "/change-request",
                "description": "Draft a change, have two people sign it off",
                "usage_hint": "what should change and why",
                "should_escape": True,
            },
            {
                "command": "/signoff",
                "description": "What waits for you, and what runs",
                "usage_hint": "inbox | runs | help",
                "should_escape": True,
            },
        ],
    },
    "oauth_config": {"scopes": {"bot": ["commands", "chat:write", "im:write", "users:read"]}},
    "settings": {"event_subscriptions": {"bot_events": ["app_home_opened"]}, "socket_mode_enabled": True},
}


class RememberingApp:
    """The app at the other end: remembers every envelope and answers it as told, or not at all."""

    def __init__(self) -> None:
        self.seen: list[Envelope] = []
        self.answer: Callable[[Envelope], Any] = lambda envelope: None
        self.silent = False

    def send(self, envelope: Envelope, receiver: Receiver) -> bool:
        self.seen.append(envelope)
        if not self.silent:
            receiver.acked(envelope.id, self.answer(envelope))
        return True

    def close(self) -> None:
        self.silent = True


@dataclass
class RememberingBot:
    """The bot's process as the lab sees it: what was asked of it, and the state to report."""

    state: str = "running"
    asked: list[str] = field(default_factory=list)

    def kill(self) -> None:
        self.asked.append("kill")
        self.state = "stopped"

    def start(self) -> None:
        self.asked.append("start")
        self.state = "running"


class Stage:
    """Everything a test of the page holds in its hands; close it when done."""

    def __init__(self, timing: Timing | None = None, notices: tuple[str, ...] = ("Simulated model",)) -> None:
        ahead = NOON - time.time()
        self.stand_in = StandIn(timing=timing, manifest=MANIFEST, clock=lambda: time.time() + ahead)
        self.workspace = self.stand_in.workspace
        self.app = RememberingApp()
        self.stand_in.use(self.app)
        self.bot = RememberingBot()
        self.texts: list[dict[str, Any]] = []
        self.lab: Lab = lab_of(self.stand_in.faults, lambda: self.bot.state, self.bot.kill, self.bot.start)
        self.page = Page(
            self.workspace, self.stand_in.people, MANIFEST, lambda: list(self.texts), self.lab, notices=notices
        )
        self.stand_in.mount("", self.page)

    @property
    def url(self) -> str:
        return self.stand_in.url

    def close(self) -> None:
        self.stand_in.close()

    def say(self, user: str, text: str, ago: float = 0.0, channel: str = HIKES, **fields: Any) -> Message:
        """A message written some seconds ago."""
        at = self.workspace.clock() - ago
        ts = f"{int(at)}.{next(_COUNT):06d}"
        if user == BOT_USER:
            fields.setdefault("bot", BOT_ID)
        return self.workspace.put_message(Message(ts, channel, user, text, **fields))

    def open_modal(self, user: str, view: dict[str, Any], **fields: Any) -> View:
        """A modal on somebody's screen."""
        id = self.workspace.new_id("V")
        return self.workspace.put_view(View(id, "1.a", user, "modal", view, id, **fields))


_COUNT = itertools.count(1)

DRAFT = (
    "Sat 5 Dec: Fern Hollow loop, 9.4 km, 310 m up, easy pace. Meet 08:30 at the north lot. Dry until mid-afternoon, "
    "6-11 °C, light wind. Bring lunch, layers and a headlamp; sunset is 16:28. Reply Y if you come."
)


def approval_card(draft: str = DRAFT) -> tuple[dict[str, Any], ...]:
    """The message with which the app asks for a decision."""
    return (
        {"type": "header", "block_id": "h", "text": {"type": "plain_text", "text": "Approve the text to the group"}},
        {"type": "section", "block_id": "d", "text": {"type": "mrkdwn", "text": f"*Text message*\n>{draft}"}},
        {
            "type": "section",
            "block_id": "f",
            "fields": [
                {"type": "mrkdwn", "text": "*Trailhead*\nFern Hollow, north lot"},
                {"type": "mrkdwn", "text": "*When*\nSaturday 5 December, 08:30"},
                {"type": "mrkdwn", "text": "*Goes to*\n4 people by text, <#C0HIKES01>"},
                {"type": "mrkdwn", "text": "*Length*\n221 characters, 2 segments"},
            ],
        },
        {
            "type": "actions",
            "block_id": "decide",
            "elements": [
                {
                    "type": "button",
                    "action_id": "approve",
                    "style": "primary",
                    "text": {"type": "plain_text", "text": "Approve"},
                    "value": "ap_1.1",
                },
                {
                    "type": "button",
                    "action_id": "edit",
                    "text": {"type": "plain_text", "text": "Edit"},
                    "value": "ap_1.1",
                },
                {
                    "type": "button",
                    "action_id": "decline",
                    "style": "danger",
                    "text": {"type": "plain_text", "text": "Decline"},
                    "value": "ap_1.1",
                    "confirm": {
                        "title": {"type": "plain_text", "text": "Decline this text?"},
                        "text": {"type": "mrkdwn", "text": "Nothing is sent and the run ends. You can say why."},
                        "confirm": {"type": "plain_text", "text": "Decline"},
                        "deny": {"type": "plain_text", "text": "Keep it"},
                        "style": "danger",
                    },
                },
            ],
        },
        {
            "type": "context",
            "block_id": "c",
            "elements": [
                {"type": "mrkdwn", "text": "<@U0ANA0001> or <@U0BEN0002> may decide · version 1 · until Fri 18:00"}
            ],
        },
    )


def edit_modal() -> dict[str, Any]:
    """The form behind *Edit*."""
    return {
        "type": "modal",
        "callback_id": "edit",
        "title": {"type": "plain_text", "text": "Edit and approve"},
        "submit": {"type": "plain_text", "text": "Approve"},
        "close": {"type": "plain_text", "text": "Cancel"},
        "blocks": [
            {
                "type": "input",
                "block_id": "text",
                "label": {"type": "plain_text", "text": "Text message"},
                "hint": {"type": "plain_text", "text": "Under 300 characters. What you approve is what is sent."},
                "element": {
                    "type": "plain_text_input",
                    "action_id": "value",
                    "multiline": True,
                    "max_length": 300,
                    "initial_value": DRAFT,
                },
            },
            {
                "type": "input",
                "block_id": "when",
                "label": {"type": "plain_text", "text": "Meet on"},
                "element": {"type": "datepicker", "action_id": "value", "initial_date": "2026-12-05"},
            },
            {
                "type": "input",
                "block_id": "pace",
                "label": {"type": "plain_text", "text": "Pace"},
                "element": {
                    "type": "radio_buttons",
                    "action_id": "value",
                    "options": [
                        {"text": {"type": "plain_text", "text": "Easy"}, "value": "easy"},
                        {"text": {"type": "plain_text", "text": "Steady"}, "value": "steady"},
                    ],
                },
            },
            {
                "type": "input",
                "block_id": "note",
                "optional": True,
                "label": {"type": "plain_text", "text": "Why you changed it"},
                "element": {
                    "type": "plain_text_input",
                    "action_id": "value",
                    "placeholder": {"type": "plain_text", "text": "Kept with the decision"},
                },
            },
        ],
    }


def home_view() -> dict[str, Any]:
    """The inbox on the Home tab."""

    def row(title: str, about: str, style: str | None = None) -> list[dict[str, Any]]:
        button = {
            "type": "button",
            "action_id": "open",
            "text": {"type": "plain_text", "text": "Open"},
            "value": title,
            **({"style": style} if style else {}),
        }
        return [
            {
                "type": "section",
                "block_id": title,
                "text": {"type": "mrkdwn", "text": f"*{title}*\n{about}"},
                "accessory": button,
            },
            {"type": "divider", "block_id": f"{title}-line"},
        ]

    return {
        "type": "home",
        "blocks": [
            {
                "type": "header",
                "block_id": "top",
                "text": {"type": "plain_text", "text": ":inbox_tray: Waiting for you"},
            },
            *row("Text to the hiking group", "asked by <@U0BEN0002> · until Fri 18:00 · <#C0HIKES01>", "primary"),
            *row("Raise the refund limit to $400", "change request · 1 of 2 approved · risk *high*"),
            {"type": "header", "block_id": "runs", "text": {"type": "plain_text", "text": "Your runs"}},
            *row("Hike on Saturday", "`waiting` for a decision, step 6 · started 14 minutes ago"),
            *row("Refund for order 4417", "`finished` · $38.20 paid back, once"),
            {
                "type": "context",
                "block_id": "foot",
                "elements": [{"type": "mrkdwn", "text": ":information_source: 2 of 2 shown · updated just now"}],
            },
        ],
    }


def furnish(stage: Stage) -> Message:
    """Fill the workspace with a morning's work; gives the card that waits for a decision."""
    day = 24 * 3600
    for one in (ANA, BEN, CLEO):
        for other in (ANA, BEN, CLEO, BOT_USER):
            if one < other:
                stage.workspace.direct_message(one, other)
    stage.say(CLEO, "Fern Hollow was lovely last month. Mind the bridge, it is *slippery* after rain.", 2 * day)
    stage.say(BEN, "Anyone up for <#C0HIKES01> on Saturday? I can drive three people :wave:", day + 4000)
    stage.say(BEN, "Somewhere _dry_ for once, please", day + 3950)
    stage.say(ANA, "I am in. Let me ask Signoff to plan it.", 1500)
    progress = stage.say(
        BOT_USER,
        "Planning a hike",
        1380,
        blocks=(
            {
                "type": "section",
                "block_id": "p",
                "text": {
                    "type": "mrkdwn",
                    "text": ":white_check_mark: Looked at 6 trailheads near Portland\n"
                    ":white_check_mark: Read the forecast for Saturday, hour by hour\n"
                    ":white_check_mark: Checked the plan against 5 criteria\n"
                    ":hourglass_flowing_sand: *Writing the text*",
                },
            },
            {
                "type": "context",
                "block_id": "pc",
                "elements": [{"type": "mrkdwn", "text": "Hike on Saturday · asked by <@U0ANA0001> · 2 rounds"}],
            },
        ),
    )
    stage.say(BEN, "Could we start a bit later than 8?", 1200, thread_ts=progress.ts)
    stage.say(BOT_USER, "Noted: not before 08:30.", 1190, thread_ts=progress.ts)
    card = stage.say(BOT_USER, "Approve the text to the group", 300, blocks=approval_card())
    stage.say(
        BOT_USER,
        "You approved nothing yet: <@U0BEN0002> was faster with *Edit* and is still writing.",
        60,
        ephemeral_to=ANA,
    )
    ops = "C0OPS0001"
    stage.say(BOT_USER, "<@U0ANA0001> a change waits for you", 4000, channel=ops)
    stage.texts += [
        {
            "to": "+1 503 555 0134",
            "body": "Sat 28 Nov: Cedar Ridge, 8 km. Meet 09:00. Reply Y.",
            "at": NOON - 6 * day,
        },
        {
            "to": "+1 503 555 0134",
            "body": "Cedar Ridge is off: gusts over 60 km/h. Next Saturday?",
            "at": NOON - 5 * day,
        },
    ]
    home = stage.workspace.new_id("V")
    stage.workspace.put_view(View(home, "1.h", ANA, "home", home_view(), home))
    return card
