"""One small workspace, set up alike in emulate and in our stand-in, and what can be done in both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.sandbox.records import BOT_USER as OUR_BOT
from bot.sandbox.records import Channel
from bot.sandbox.server import BOT_TOKEN as OUR_TOKEN
from bot.sandbox.server import StandIn
from tests.bot.scene import ANA, BEN, CLEO, Clock
from tests.outside.hikers import BOT_USER, Workspace

JsonObject = dict[str, Any]


class World(Protocol):
    """Slack as an app sees it through its client, and what people do there. Ids are looked up by name."""

    client: WebClient
    ids: dict[str, str]

    def fresh(self) -> str:
        """A public channel with Ana, Ben and the bot in it, in which nothing was said."""
        ...

    def says(self, channel: str, text: str) -> str:
        """Ana posts a message; its ts."""
        ...

    def trigger(self, view_id: str = "") -> str:
        """Ana clicks, in a window or elsewhere; the trigger."""
        ...

    def expired(self) -> str:
        """A trigger of which the time is over."""
        ...

    def without_token(self) -> WebClient:
        """A client that says nothing about who it is."""
        ...


class Theirs:
    """emulate. `wait` returns once the time of a trigger is over that is given out now."""

    def __init__(self, workspace: Workspace, wait: Callable[[], None]) -> None:
        self._workspace = workspace
        self._ana = workspace.hands["ana"]
        self._wait = wait
        self._old = workspace.trigger("ana")
        self.client: WebClient = workspace.client
        self.ids = {**workspace.ids, "bot": BOT_USER}
        for name, private, members in CHANNELS:
            self.ids[name] = self._make(name, private, members)
        self._ana.conversations_archive(channel=self.ids["old"])

    def _make(self, name: str, private: bool, members: tuple[str, ...]) -> str:
        # In a form the client writes True as 1, which emulate takes for False.
        made = self._ana.api_call("conversations.create", json={"name": f"the-{name}", "is_private": private})
        id = str(made["channel"]["id"])
        if others := [self.ids[one] for one in members if one != "ana"]:
            self._ana.conversations_invite(channel=id, users=others)
        return id

    def fresh(self) -> str:
        name = f"fresh-{len(self.ids)}"
        self.ids[name] = self._make(name, False, ("ana", "ben", "bot"))
        return self.ids[name]

    def says(self, channel: str, text: str) -> str:
        return str(self._ana.chat_postMessage(channel=channel, text=text)["ts"])

    def trigger(self, view_id: str = "") -> str:
        asked = {"user_id": self.ids["ana"], **({"view_id": view_id} if view_id else {})}
        return str(self.client.api_call("views.generateTriggerId", data=asked)["trigger_id"])

    def expired(self) -> str:
        self._wait()
        return self._old

    def without_token(self) -> WebClient:
        return self._workspace.client_of("")


class Ours:
    """The stand-in, with a clock that can be put forward."""

    def __init__(self, stand_in: StandIn, clock: Clock) -> None:
        self._stand_in = stand_in
        self._clock = clock
        self.client = WebClient(OUR_TOKEN, base_url=stand_in.api_url, timeout=10, retry_handlers=[])
        self.ids = {"ana": ANA, "ben": BEN, "cleo": CLEO, "bot": OUR_BOT}
        for name, private, members in CHANNELS:
            self.ids[name] = self._make(name, private, members, archived=name == "old")

    def _make(self, name: str, private: bool, members: tuple[str, ...], archived: bool = False) -> str:
        id = f"C0{name.upper().replace('-', '')}"
        people = tuple(self.ids[one] for one in members)
        self._stand_in.workspace.put_channel(
            Channel(id, f"the-{name}", "private" if private else "public", people, archived)
        )
        return id

    def fresh(self) -> str:
        name = f"fresh-{len(self.ids)}"
        self.ids[name] = self._make(name, False, ("ana", "ben", "bot"))
        return self.ids[name]

    def says(self, channel: str, text: str) -> str:
        return self._stand_in.workspace.post(channel, ANA, text).ts

    def trigger(self, view_id: str = "") -> str:
        return self._stand_in.permits.trigger(ANA, view_id)

    def expired(self) -> str:
        trigger = self.trigger()
        self._clock.advance(seconds=3.5)
        return trigger

    def without_token(self) -> WebClient:
        return WebClient("", base_url=self._stand_in.api_url, timeout=10, retry_handlers=[])


CHANNELS = (
    ("trails", False, ("ana", "ben", "bot")),
    ("crew", True, ("ana", "ben", "bot")),
    ("secret", True, ("ana", "ben")),
    ("quiet", False, ("ana", "ben")),
    ("old", False, ("ana", "ben", "bot")),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A sequence of calls, and what is kept of the answers: plain values, ids by name."""

    name: str
    run: Callable[[World], Any]

    def __call__(self, world: World) -> Any:
        try:
            found = self.run(world)
        except SlackApiError as error:
            found = " ".join(str(error.response[key]) for key in ("error", "needed") if error.response.get(key))
            found = f"refused: {found}"
        return named(found, {id: f"<{name}>" for name, id in world.ids.items()})


def named(value: Any, names: Mapping[str, str]) -> Any:
    """The value with every id in it replaced by its name."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: named(part, names) for key, part in value.items()}
    return [named(part, names) for part in value] if isinstance(value, list | tuple) else value
