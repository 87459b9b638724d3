"""The whole bot against the stand-in for Slack: people act, and what they then see is looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

import bot
from bot.pictures import request_of
from bot.sandbox.courier import Transport
from bot.sandbox.records import Delivery, Message, Timing, View
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, StandIn
from bot.serving import Bot
from bot.settings import load_settings
from storage import approvals, inbox, runs
from storage.tables import ApprovalRow, DecisionRow, DeliveryRow, RunRow

ANA, BEN, CLEO = "U0ANA0001", "U0BEN0002", "U0CLEO003"
HIKES, GENERAL, OPS = "C0HIKES01", "C0GENERAL", "C0OPS0001"
REQUEST = "Find a dry morning hike for Saturday and text the group the plan"
MANIFEST: dict[str, Any] = yaml.safe_load((Path(bot.__file__).parent.parent / "manifest.yml").read_text("utf-8"))
PATIENCE = 30.0  # seconds until a scene gives up waiting for something that should happen at once


class Clock:
    """The time as Slack and the database see it; hours pass when a test says so."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def __call__(self) -> int:
        """Microseconds since the epoch."""
        return time.time_ns() // 1000 + self._ahead // timedelta(microseconds=1)

    def seconds(self) -> float:
        """Seconds since the epoch."""
        return self() / 1_000_000

    def now(self) -> datetime:
        """The time, aware."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def advance(self, **span: float) -> None:
        """Let time pass: `hours=4`."""
        self._ahead += timedelta(**span)


class Scene:
    """One workspace and one bot process in this process; `settings` go to the bot."""

    def __init__(
        self, folder: Path, *, database_url: str = "", timing: Timing | None = None, http: bool = False, **settings: Any
    ) -> None:
        self.folder = folder
        self.clock = Clock()
        self.slack = StandIn(None, timing=timing, manifest=MANIFEST, clock=self.clock.seconds)
        self._bots: list[Bot] = []
        self.people = self.slack.people
        self.workspace = self.slack.workspace
        self.database_url = database_url or f"sqlite:///{folder / 'signoff.db'}"
        self._given = {
            "database_url": self.database_url,
            "practice_file": folder / "practice.db",
            "slack_bot_token": BOT_TOKEN,
            "slack_app_token": None if http else APP_TOKEN,
            "slack_signing_secret": SIGNING_SECRET,
            "slack_api_url": self.slack.api_url,
            "sweep_seconds": 0.2,
            "model_script": "straight",
            **settings,
        }
        self.bot = self.start_bot()

    def start_bot(self, **settings: Any) -> Bot:
        """A bot on this scene's workspace and database, connected."""
        started = Bot(load_settings(**{**self._given, **settings}), clock=self.clock)
        self._bots.append(started)
        started.start()
        if self._given["slack_app_token"]:
            assert self.slack.connected(), "the bot did not connect"
        return started

    def use(self, transport: Transport) -> None:
        """Reach the bot in another way."""
        self.slack.use(transport)

    def close(self) -> None:
        """Stop every bot, then Slack."""
        for running in list(self._bots):
            self.stop(running)
        self.slack.close()

    def stop(self, running: Bot | None = None) -> None:
        """Stop one bot: the first one if none is named."""
        running = running or self.bot
        self._bots.remove(running)
        running.stop()

    def restart(self, **settings: Any) -> None:
        """Another process in place of the first one."""
        self.stop()
        self.bot = self.start_bot(**settings)

    # ---- what people do ------------------------------------------------------------------------------------------

    def ask(self, text: str = REQUEST, who: str = ANA, channel: str = HIKES) -> Delivery:
        """Type `/plan-hike text`."""
        delivery = self.people.command(who, channel, f"/plan-hike {text}".strip())
        assert delivery is not None
        return delivery

    def click(self, who: str, message: Message, label: str) -> Delivery:
        """Click the button that is labelled so."""
        block, element = button(message.blocks, label)
        return self.people.click(who, message.channel, message.ts, block, element["action_id"], shown=message)

    def opened(self, who: str, message: Message, label: str, title: str) -> View:
        """Click a button that opens a window, and wait until that shows what it should."""
        self.click(who, message, label)
        return self.window(who, title)

    def window(self, who: str, title: str) -> View:
        """The person's topmost window once its title begins so."""

        def find() -> View | None:
            views = self.workspace.modals(who)
            return views[-1] if views and _title(views[-1]).startswith(title) and not _loads(views[-1]) else None

        return self.until(find, f"a window {title!r}")

    def home(self, who: str, label: str = "") -> View:
        """The person's Home tab, once it has a button with that label."""

        def find() -> View | None:
            home = self.workspace.home(who)
            return home if home and (not label or has_button(home.blocks, label)) else None

        return self.until(find, f"a Home tab with {label!r}")  # type: ignore[no-any-return]

    def submit(self, who: str, view: View, **values: Any) -> Delivery | None:
        """Fill in fields by name and submit."""
        state = {block: {"signoff.field": value} for name, value in values.items() for block in blocks_of(view, name)}
        return self.people.submit(who, view.id, state)

    # ---- what is seen --------------------------------------------------------------------------------------------

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Wait until `look` finds something."""
        found = self.workspace.wait(look, PATIENCE)
        assert found, f"waited in vain for {what}; there is: {[m.text for m in self.messages()]}"
        return found

    def settles(self, look: Callable[[], Any], what: str) -> Any:
        """Wait until `look` finds something in the database, which nobody announces."""
        end, pause = time.monotonic() + PATIENCE, threading.Event()
        while not (found := look()) and time.monotonic() < end:
            pause.wait(0.02)
        assert found, f"waited in vain for {what}; there is: {[m.text for m in self.messages()]}"
        return found

    def messages(self, channel: str = HIKES, viewer: str = ANA) -> list[Message]:
        """What a person sees in a channel, ephemeral messages included."""
        return self.workspace.messages(channel, viewer)

    def card(self, label: str = "Approve", channel: str = HIKES, number: int = 0) -> Message:
        """The message with that button, once it is there; the newest, or the one `number` before it."""

        def find() -> Message | None:
            found = [m for m in self.messages(channel) if has_button(m.blocks, label)]
            return found[-1 - number] if len(found) > number else None

        return self.until(find, f"a card with {label!r}")  # type: ignore[no-any-return]

    def said(self, words: str, channel: str = HIKES, viewer: str = ANA) -> Message:
        """The message that holds these words, once it is there."""

        def find() -> Message | None:
            found = [m for m in self.messages(channel, viewer) if words in everything(m)]
            return found[-1] if found else None

        return self.until(find, f"{words!r}")  # type: ignore[no-any-return]

    def told(self, who: str, words: str) -> Message:
        """What only this person was told, in the channel or directly."""

        def find() -> Message | None:
            direct = self.people.direct_message(who).id
            found = [m for m in self.messages(HIKES, who) if m.ephemeral_to == who] + self.messages(direct, who)
            return next((m for m in found if words in everything(m)), None)

        return self.until(find, f"{who} being told {words!r}")  # type: ignore[no-any-return]

    def ended(self, ending: str) -> RunRow:
        """The newest run, once it has ended so and the channel was told."""

        def find() -> RunRow | None:
            found = runs.recent(self.bot.parts.database, 1)
            return found[0] if found and found[0].ending else None

        run: RunRow = self.until(find, f"the run to end {ending}")
        assert run.ending == ending, (run.ending, run.error)
        return run

    def run(self) -> RunRow:
        """The newest run in the database, once there is one."""
        found: list[RunRow] = self.settles(self.runs, "a run")
        return found[0]

    def runs(self) -> list[RunRow]:
        """All runs in the database, the newest first."""
        return list(runs.recent(self.bot.parts.database, 100))

    def request(self) -> str:
        """What the newest run was asked for, as it is kept."""
        return request_of(self.bot.parts, self.run())

    def waiting_deliveries(self) -> list[DeliveryRow]:
        """What the inbox holds and nobody has dealt with."""
        return list(inbox.open_ones(self.bot.parts.database))

    def approvals(self) -> list[ApprovalRow]:
        """Everything the newest run asked, in order."""
        return list(approvals.of_root(self.bot.parts.database, self.run().thread_id))

    def approval(self, number: int = 0) -> ApprovalRow:
        """The newest approval in the database, or the one `number` before it."""
        run = runs.recent(self.bot.parts.database, 1)[0]
        return approvals.of_root(self.bot.parts.database, run.thread_id)[-1 - number]

    def clicks(self) -> list[DecisionRow]:
        """What was decided about the newest approval, refused clicks too, in order."""
        return list(approvals.decisions_of(self.bot.parts.database, self.approval().id))

    def outbox(self, kind: str = "sms") -> list[dict[str, Any]]:
        """What really went out."""
        path = {"sms": "messages", "post": "posts"}[kind]
        sent: list[dict[str, Any]] = self.bot.parts.practice.get(f"/{path}").json()[path]
        return sent


def _title(view: View) -> str:
    return str((view.view.get("title") or {}).get("text", ""))


def _loads(view: View) -> bool:
    return "One moment" in str(view.blocks)


def everything(message: Message) -> str:
    """All text of a message."""
    return message.text + "\n" + "\n".join(texts(message.blocks))


def texts(part: Any) -> Iterable[str]:
    """Every text in blocks."""
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            yield part["text"]
        for value in part.values():
            yield from texts(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from texts(item)


def button(blocks: Iterable[Mapping[str, Any]], label: str) -> tuple[str, dict[str, Any]]:
    """The block id and element of the button with a label."""
    for block in blocks:
        for element in [*block.get("elements", []), *([block["accessory"]] if "accessory" in block else [])]:
            if isinstance(element.get("text"), dict) and element["text"]["text"] == label:
                return block["block_id"], element
    raise AssertionError(f"there is no button {label!r}")


def has_button(blocks: Iterable[Mapping[str, Any]], label: str) -> bool:
    """Whether there is a button with a label."""
    try:
        button(blocks, label)
    except AssertionError:
        return False
    return True


def with_value(message: Message, label: str, value: str) -> Message:
    """The message with another value on one of its buttons."""

    def changed(part: Any) -> Any:
        if isinstance(part, Mapping):
            is_it = isinstance(part.get("text"), Mapping) and part["text"].get("text") == label and "action_id" in part
            return {**part, "value": value} if is_it else {name: changed(one) for name, one in part.items()}
        return [changed(one) for one in part] if isinstance(part, list | tuple) else part

    return replace(message, blocks=tuple(changed(message.blocks)))


def blocks_of(view: View, name: str) -> list[str]:
    """The ids of a window's input blocks for a field."""
    found = [
        block["block_id"] for block in view.blocks if block["block_id"].partition("/")[2].rpartition("/")[0] == name
    ]
    assert found, f"no field {name!r} in {[block['block_id'] for block in view.blocks]}"
    return found


def said_in(message: Message, words: str) -> str:
    """The text in a message that holds these words, or ""."""
    return next((text for text in texts(message.blocks) if words in text), "")


def with_label(message: Message, label: str, action_id: str) -> Message:
    """The message with another action behind one of its buttons."""
    block, element = button(message.blocks, label)
    swapped = {**element, "action_id": action_id}
    blocks = [
        {**b, "elements": [swapped if e is element else e for e in b["elements"]]} if b.get("block_id") == block else b
        for b in message.blocks
    ]
    return replace(message, blocks=tuple(blocks))
