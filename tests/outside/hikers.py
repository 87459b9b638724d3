"""A club whose Slack is emulate: the bot serves HTTP there, and people's clicks reach it as signed requests."""

from __future__ import annotations

import html
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from waitress.server import create_server
from waitress.wasyncore import close_all

from bot.serving import Bot
from bot.settings import load_settings
from tests.bot.scene import MANIFEST, button, has_button, texts
from tests.outside.programs import free_port, running

JsonObject = dict[str, Any]
BOT_TOKEN, SECRET = "xoxb-signoff", "a-secret-of-eight-letters-or-more"
APP, BOT, BOT_USER = "A0SIGNOFF", "B0SIGNOFF", "U0SIGNOFF"
SCOPES: list[str] = MANIFEST["oauth_config"]["scopes"]["bot"]
PEOPLE = ("ana", "ben", "cleo")
PATIENCE = 20.0  # seconds until what should happen at once has not happened


def seed(scopes: Iterable[str] = SCOPES) -> JsonObject:
    """A workspace for emulate: three people, four channels, the app with these scopes and no others."""
    app = {"app_id": APP, "bot_id": BOT, "bot_user_id": BOT_USER}
    installed = {"client_id": "1.2", "client_secret": "none", "name": "Signoff", "bot_name": "signoff"}
    tokens = [{"token": f"xoxp-{name}", "type": "user", "user": name} for name in PEOPLE]
    slack = {
        "team": {"name": "Hikers", "domain": "hikers"},
        "strict_scopes": True,
        "users": [{"name": name, "real_name": name.capitalize()} for name in PEOPLE],
        "channels": [
            {"name": "hikes"},
            {"name": "ops", "is_private": True},
            {"name": "secret", "is_private": True},
            {"name": "old"},
        ],
        "oauth_apps": [{**app, **installed, "redirect_uris": []}],
        "tokens": [{"token": BOT_TOKEN, "type": "bot", "user": "signoff", **app, "scopes": list(scopes)}, *tokens],
    }
    return {"slack": slack}


class Remembering(WebClient):
    """Slack's client, which keeps what each call was answered and lets tests wait for the next one."""

    def __init__(self, token: str, url: str) -> None:
        super().__init__(token, base_url=f"{url}/api/", timeout=10, retry_handlers=[])
        self.answers: list[tuple[str, JsonObject]] = []
        self.news = threading.Condition()

    def api_call(self, api_method: str, **arguments: Any) -> Any:
        try:
            answer = super().api_call(api_method, **arguments)
        except SlackApiError as error:
            self._keep(api_method, error.response.data)
            raise
        self._keep(api_method, answer.data)
        return answer

    def answered(self, method: str) -> list[JsonObject]:
        """The answers to a method's calls, oldest first."""
        with self.news:
            return [answer for name, answer in self.answers if name == method]

    def wait(self, seen: int, seconds: float) -> bool:
        """Wait until more than `seen` calls were answered; False if none was in time."""
        with self.news:
            return self.news.wait_for(lambda: len(self.answers) > seen, seconds)

    def _keep(self, method: str, answer: Any) -> None:
        with self.news:
            self.answers.append((method, answer))
            self.news.notify_all()


@dataclass(frozen=True, slots=True)
class Acked:
    """What the bot's request url answered, and how long that took in seconds."""

    status: int
    body: str
    seconds: float

    @property
    def json(self) -> JsonObject:
        """The body, for a submission."""
        found: JsonObject = json.loads(self.body)
        return found


class Workspace:
    """A running emulate with its people in it. Closed by `close`."""

    def __init__(self, packages: Path, folder: Path, scopes: Iterable[str] = SCOPES) -> None:
        self._stack = ExitStack()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "seed.yaml").write_text(yaml.safe_dump(seed(scopes)), "utf-8")
        port = free_port()
        given = ("start", "-s", "slack", "-p", str(port), "--seed", str(folder / "seed.yaml"))
        script, log = packages / "emulate/dist/index.js", folder / "emulate.log"
        self.url = self._stack.enter_context(running(script, *given, port=port, log=log))
        self.client = Remembering(BOT_TOKEN, self.url)
        self.hands = {name: self.client_of(f"xoxp-{name}") for name in PEOPLE}
        self.ids = {name: str(client.auth_test()["user_id"]) for name, client in self.hands.items()}
        found = self.hands["ana"].conversations_list(types="public_channel,private_channel")["channels"]
        self.channels: dict[str, str] = {one["name"]: one["id"] for one in found}
        for name in ("hikes", "ops", "old"):
            self.hands["ana"].conversations_invite(channel=self.channels[name], users=BOT_USER)
        self.hands["ana"].conversations_archive(channel=self.channels["old"])

    def new_channel(self) -> str:
        """The name of a fresh channel with everybody in it, the bot too."""
        name = f"hikes-{len(self.channels)}"
        self.channels[name] = str(self.hands["ana"].conversations_create(name=name)["channel"]["id"])
        others = [self.ids["ben"], self.ids["cleo"], BOT_USER]
        self.hands["ana"].conversations_invite(channel=self.channels[name], users=others)
        return name

    def close(self) -> None:
        """Stop emulate."""
        self._stack.close()

    def client_of(self, token: str) -> WebClient:
        """A client that asks once and never again."""
        return WebClient(token, base_url=f"{self.url}/api/", timeout=10, retry_handlers=[])

    def trigger(self, who: str) -> str:
        """A fresh trigger of emulate's own, for the app to open a window with."""
        asked = {"user_id": self.ids[who]}
        return str(self.client_of(BOT_TOKEN).api_call("views.generateTriggerId", data=asked)["trigger_id"])

    def history(self, channel: str) -> list[JsonObject]:
        """What emulate has recorded of a channel, oldest first, as its first member sees it."""
        id = self.channels.get(channel, channel)
        found: list[JsonObject] = self.hands["ana"].conversations_history(channel=id, limit=200)["messages"]
        return found[::-1]

    def page(self, tab: str, channel: str) -> str:
        """emulate's own page about what it has recorded, as text."""
        query = urlencode({"tab": tab, "channel": self.channels[channel]})
        with urllib.request.urlopen(f"{self.url}/?{query}", timeout=10) as answer:
            return html.unescape(str(answer.read(), "utf-8"))


class Hikers:
    """A bot that serves HTTP, in a workspace of emulate's, with a channel of its own."""

    def __init__(self, workspace: Workspace, folder: Path, **settings: Any) -> None:
        self.workspace = workspace
        self.client = workspace.client
        self.client.answers.clear()
        self.channel = workspace.new_channel()
        self._given = {
            "database_url": f"sqlite:///{folder / 'signoff.db'}",
            "practice_file": folder / "practice.db",
            "slack_bot_token": BOT_TOKEN,
            "slack_app_token": None,
            "slack_signing_secret": SECRET,
            "slack_api_url": f"{workspace.url}/api/",
            "hikes_channel": workspace.channels[self.channel],
            "sweep_seconds": 0.2,
            "model_script": "straight",
            **settings,
        }
        self.start()

    def start(self) -> None:
        """Begin to serve."""
        self.bot = Bot(load_settings(**self._given), client=self.client)
        self.bot.start()
        self._server = create_server(self.bot.wsgi(), host="127.0.0.1", port=0, threads=8, asyncore_use_poll=True)
        self._serving = threading.Thread(target=self._server.run, name="http")
        self._serving.start()

    def stop(self) -> None:
        """Serve no more, as a process that is stopped."""
        self._server.task_dispatcher.shutdown()
        # The loop must close its own sockets: closed by another thread, it would poll descriptors that are gone.
        self._server.trigger.pull_trigger(lambda: close_all(self._server._map))
        self._serving.join()
        self.bot.stop()

    # ---- what people do ------------------------------------------------------------------------------------------

    def send(self, body: bytes, kind: str = "application/x-www-form-urlencoded", **headers: str) -> Acked:
        """A request as Slack signs it, by Slack's own code; `headers` replace what is sent otherwise."""
        stamp = str(int(time.time()))
        signed = SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body) or ""
        sent = {"Content-Type": kind, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signed, **headers}
        url = f"http://127.0.0.1:{self._server.effective_port}/slack/events"
        begun = time.monotonic()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=10) as answer:
                return Acked(answer.status, answer.read().decode(), time.monotonic() - begun)
        except urllib.error.HTTPError as error:
            with error:
                return Acked(error.code, error.read().decode(), time.monotonic() - begun)

    def command(self, who: str, text: str, channel: str = "") -> Acked:
        """Type `/plan-hike text`."""
        return self.send(self.typed(who, text, channel))

    def typed(self, who: str, text: str, channel: str = "") -> bytes:
        """The form that Slack sends for it."""
        channel = channel or self.channel
        form = {
            "team_id": "T000000001",
            "team_domain": "hikers",
            "channel_id": self.workspace.channels[channel],
            "channel_name": channel,
            "user_id": self.workspace.ids[who],
            "user_name": who,
            "command": "/plan-hike",
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": self._nowhere(),
            "trigger_id": self.workspace.trigger(who),
        }
        return urlencode(form).encode()

    def click(self, who: str, message: Mapping[str, Any], label: str, trigger: str = "") -> Acked:
        """Click the button that is labelled so."""
        return self.send(self.clicked(who, message, label, trigger))

    def clicked(self, who: str, message: Mapping[str, Any], label: str, trigger: str = "") -> bytes:
        """The `block_actions` that Slack sends for it."""
        block_id, element = button(message["blocks"], label)
        channel = self.workspace.channels[self.channel]
        action = {**element, "block_id": block_id, "action_ts": f"{time.time():.6f}"}
        return self._interaction(
            "block_actions",
            who,
            container={"type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": False},
            channel={"id": channel, "name": self.channel},
            message=dict(message),
            response_url=self._nowhere(),
            trigger_id=trigger or self.workspace.trigger(who),
            actions=[action],
        )

    def submit(self, who: str, view: Mapping[str, Any], **changed: str) -> Acked:
        """Submit a window with what stands in it, but for the inputs whose label begins so."""
        values = entered(view["blocks"], changed)
        shown = {**view, "state": {"values": values}}
        return self.send(self._interaction("view_submission", who, view=shown, trigger_id=self.workspace.trigger(who)))

    def opens_home(self, who: str) -> Acked:
        """Open the app's Home tab."""
        event = {"type": "app_home_opened", "user": self.workspace.ids[who], "channel": "D0", "tab": "home"}
        body = {
            "type": "event_callback",
            "team_id": "T000000001",
            "api_app_id": APP,
            "event": {**event, "event_ts": "1.2"},
            "event_id": "Ev1",
            "event_time": int(time.time()),
        }
        return self.send(json.dumps(body).encode(), "application/json")

    def _interaction(self, kind: str, who: str, **more: Any) -> bytes:
        user = {"id": self.workspace.ids[who], "username": who, "name": who, "team_id": "T000000001"}
        team = {"id": "T000000001", "domain": "hikers"}
        payload = {"type": kind, "user": user, "team": team, "api_app_id": APP, "token": "none", "enterprise": None}
        return urlencode({"payload": json.dumps({**payload, **more})}).encode()

    def _nowhere(self) -> str:
        """emulate has no response urls: whatever is posted to this one is refused."""
        return f"{self.workspace.url}/actions/T000000001/none"

    # ---- what is seen --------------------------------------------------------------------------------------------

    def history(self) -> list[JsonObject]:
        """What emulate has recorded of the club's channel, oldest first."""
        return self.workspace.history(self.channel)

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Look again after each of the bot's calls until there is something."""
        end = time.monotonic() + PATIENCE
        while True:
            with self.client.news:
                seen = len(self.client.answers)
            if found := look():
                return found
            assert self.client.wait(seen, end - time.monotonic()), (
                f"waited in vain for {what}; there is: {[m['text'] for m in self.history()]}"
            )

    def card(self, label: str = "Approve") -> JsonObject:
        """The newest message with that button, once emulate has it."""
        found: JsonObject = self.until(
            lambda: next((m for m in self.history()[::-1] if has_button(m.get("blocks", []), label)), None),
            f"a card with {label!r}",
        )
        return found

    def said(self, words: str, channel: str = "") -> JsonObject:
        """The message with these words, once emulate has it."""
        found: JsonObject = self.until(
            lambda: next((m for m in self.workspace.history(channel or self.channel) if words in everything(m)), None),
            repr(words),
        )
        return found

    def whispered(self, words: str) -> str:
        """What emulate shows as ephemeral, once these words are among it."""
        return str(
            self.until(lambda: words in (page := self.workspace.page("messages", self.channel)) and page, repr(words))
        )

    def window(self, title: str) -> JsonObject:
        """The window as emulate has it once its title begins so and it has loaded."""

        def find() -> JsonObject | None:
            shown = [answer["view"] for answer in self.client.answered("views.update") if answer["ok"]]
            return next((view for view in shown[::-1] if view["title"]["text"].startswith(title)), None)

        found: JsonObject = self.until(find, f"a window {title!r}")
        return found

    def outbox(self) -> list[JsonObject]:
        """The texts that really went out."""
        sent: list[JsonObject] = self.bot.parts.practice.get("/messages").json()["messages"]
        return sent


def everything(message: Mapping[str, Any]) -> str:
    """All text of a message."""
    return "\n".join([str(message["text"]), *texts(message.get("blocks", []))])


def entered(blocks: Iterable[Mapping[str, Any]], changed: Mapping[str, str]) -> JsonObject:
    """A window's `state.values`: what its inputs start with, or what was written into them instead."""
    values: JsonObject = {}
    for block in (one for one in blocks if one["type"] == "input"):
        element = block["element"]
        label = next((name for name in changed if block["label"]["text"].startswith(name)), None)
        if element["type"] == "plain_text_input":
            content: JsonObject = {"value": changed[label] if label else element.get("initial_value")}
        else:
            content = {"selected_option": element.get("initial_option")}
        values[block["block_id"]] = {element["action_id"]: {"type": element["type"], **content}}
    return values
