"""What people do in the workspace: type, click, choose, submit, close, read. Used by the page and by tests alike."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from bot.sandbox import answers, composer, events, form_state, modals
from bot.sandbox.courier import Consequence, Courier
from bot.sandbox.manifest import Allowed
from bot.sandbox.permits import Permits
from bot.sandbox.records import BOT_USER, SLACKBOT, Channel, Delivery, JsonObject, Message, Person, View
from bot.sandbox.workspace import Workspace


class NotPossible(Exception):
    """A person cannot do this in Slack; the sentence says why and goes to that person."""


class People:
    """Acts in the name of any person, and returns once the app has answered or its time is up.

    An action that leads to a request returns its `Delivery`: `acked`, `late` or `failed`. Every method may raise
    `NotPossible`.
    """

    def __init__(
        self, workspace: Workspace, courier: Courier, permits: Permits, allowed: Allowed, url: Callable[[], str]
    ) -> None:
        self._workspace = workspace
        self._courier = courier
        self._permits = permits
        self._allowed = allowed
        self._url = url

    # --- typing -----------------------------------------------------------------------------------------------------

    def type(self, person: str, channel: str, text: str, thread_ts: str | None = None) -> Message | Delivery | None:
        """Send what is in the composer: a slash command outside threads, otherwise a message."""
        if text.startswith("/") and thread_ts is None:
            return self.command(person, channel, text)
        return self.post(person, channel, text, thread_ts)

    def command(self, person: str, channel: str, typed: str) -> Delivery | None:
        """Type a slash command, such as `/plan-hike Saturday with @ben`. None if the app has no such command."""
        who, where = self._person(person), self._channel(channel, person)
        command, _, text = typed.strip().partition(" ")
        if not self._allowed.knows(command):
            self._tell(person, channel, f"{command} is not a valid command.")
            return None
        id = str(uuid.uuid4())
        url = self._permits.response_url(person, channel, id)
        passed_on = composer.command_text(self._workspace, text.strip(), self._allowed.escapes(command))
        trigger = self._permits.trigger(person)
        payload = events.slash_command(
            who, where, command, passed_on, trigger_id=trigger, response_url=self._response_url(url)
        )
        delivery = self._courier.send(
            "slash_commands",
            payload,
            person,
            typed.strip(),
            id=id,
            channel=channel,
            consequence=self._answers_command(url),
        )
        if delivery.status != "acked":
            self._tell(person, channel, _failed_command(command, delivery))
        return delivery

    def post(self, person: str, channel: str, text: str, thread_ts: str | None = None) -> Message:
        """Write a message; the app hears of it if it subscribed to it and is in the channel."""
        found = self._channel(channel, self._person(person).id)
        if found.archived:
            raise NotPossible(f"#{found.name} is archived; choose another channel.")
        if person not in found.members:
            raise NotPossible(f"Join #{found.name} before you write in it.")
        written = composer.message_text(self._workspace, text)
        message = self._workspace.post(channel, person, written, thread_ts=thread_ts)
        self._spread(found, message)
        return message

    # --- clicking ---------------------------------------------------------------------------------------------------

    def click(
        self,
        person: str,
        channel: str,
        message_ts: str,
        block_id: str,
        action_id: str,
        *,
        value: Any = None,
        state: Mapping[str, Any] | None = None,
        shown: Message | None = None,
    ) -> Delivery:
        """Click a button or choose `value` from a menu of a message.

        `state` is what was entered in the message's inputs. `shown` is the message as the person still saw it, for a
        click that crosses an update; with it even a deleted message can be clicked, and any value be sent.
        """
        who, where = self._person(person), self._channel(channel, person)
        message = shown or self._message(person, channel, message_ts)
        action = self._action(list(message.blocks), block_id, action_id, value, message.ts)
        blocks = list(message.blocks)
        entered = form_state.filled(blocks, form_state.initial(blocks), self._entered(state, action))
        id = str(uuid.uuid4())
        url = self._permits.response_url(person, channel, id, message_ts, message.thread_ts)
        trigger = self._permits.trigger(person)
        payload = events.message_actions(
            who, where, message, entered, [action], trigger_id=trigger, response_url=self._response_url(url)
        )
        places = {"channel": channel, "message_ts": message_ts, "action_id": action_id}
        return self._courier.send("interactive", payload, person, _label(action), id=id, **places)

    def select(
        self, person: str, channel: str, message_ts: str, block_id: str, action_id: str, *, value: Any, **more: Any
    ) -> Delivery:
        """Choose from a menu, date picker or checkboxes of a message: a click with a value."""
        return self.click(person, channel, message_ts, block_id, action_id, value=value, **more)

    def click_in_view(
        self,
        person: str,
        view_id: str,
        block_id: str,
        action_id: str,
        *,
        value: Any = None,
        state: Mapping[str, Any] | None = None,
    ) -> Delivery:
        """Click or choose in an open modal or on the Home tab; `state` is what was entered so far."""
        who = self._person(person)
        action = self._action(self._view(person, view_id).blocks, block_id, action_id, value, view_id)
        view = self._fill(person, view_id, self._entered(state, action))
        payload = events.view_actions(who, view, [action], self._permits.trigger(person, view_id))
        places = {"view_id": view_id, "action_id": action_id}
        return self._courier.send("interactive", payload, person, _label(action), **places)

    # --- modals and Home --------------------------------------------------------------------------------------------

    def submit(self, person: str, view_id: str, state: Mapping[str, Any] | None = None) -> Delivery | None:
        """Submit a modal with what was entered, `{block_id: value}` or `{block_id: {action_id: value}}`.

        None if Slack's own window refuses it (a required field is empty, a text too long): nothing is sent then and
        the view's `errors` say what is wrong.
        """
        who, view = self._person(person), self._fill(person, view_id, state or {})
        if view.kind != "modal" or not view.view.get("submit"):
            raise NotPossible("This view has no submit button.")
        if complaints := form_state.refused(view.blocks, view.state):
            self._workspace.put_view(replace(view, errors=complaints, trouble=""))
            return None
        view = self._workspace.put_view(replace(view, errors={}, trouble=""))
        payload = events.view_submission(who, view, self._permits.trigger(person, view_id))
        delivery = self._courier.send(
            "interactive",
            payload,
            person,
            f"submitted {view.callback_id}",
            view_id=view_id,
            consequence=lambda response: modals.answer_submission(self._workspace, view_id, response),
        )
        if delivery.status != "acked":
            modals.trouble(self._workspace, view_id)
        return delivery

    def close(self, person: str, view_id: str, clear: bool = False) -> list[Delivery]:
        """Close a modal and what lies on it, or the whole stack; one delivery for each that wants to know."""
        who, view = self._person(person), self._view(person, view_id)
        with self._workspace.lock:
            clear = clear or bool(view.view.get("clear_on_close"))
            closed = self._workspace.modals(person) if clear else modals.above(self._workspace, view)
            self._workspace.drop_views(one.id for one in closed)
        told = [one for one in reversed(closed) if one.view.get("notify_on_close")]
        return [self._tell_closed(who, one, clear) for one in told]

    def open_home(self, person: str) -> Delivery | None:
        """Look at the app's Home tab; None if the app does not want to know."""
        who = self._person(person)
        if not (self._allowed.home_tab and self._allowed.hears("app_home_opened")):
            return None
        channel = self._workspace.direct_message(person, BOT_USER)
        body = events.home_opened(who, channel, self._workspace.home(person), self._workspace.next_ts())
        return self._courier.send(
            "events_api", self._event("app_home_opened", body), person, "opened Home", channel=channel.id
        )

    # --- reading and joining ----------------------------------------------------------------------------------------

    def join(self, person: str, channel: str) -> Channel:
        """Become a member of a public channel."""
        self._channel(channel, self._person(person).id)
        return self._workspace.join(channel, person)

    def read(self, person: str, channel: str) -> None:
        """Have seen everything in a channel."""
        self._channel(channel, person)
        self._workspace.mark_read(person, channel)

    def direct_message(self, person: str, other: str = BOT_USER) -> Channel:
        """Open the direct conversation with another person, or with the app."""
        return self._workspace.direct_message(self._person(person).id, self._person(other).id)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _answers_command(self, url: str) -> Consequence:
        return lambda response: answers.answer_command(self._workspace, self._permits.peek(url), response)

    def _tell_closed(self, who: Person, view: View, clear: bool) -> Delivery:
        payload = events.view_closed(who, view, clear)
        return self._courier.send("interactive", payload, who.id, f"closed {view.callback_id}", view_id=view.id)

    def _spread(self, channel: Channel, message: Message) -> None:
        if BOT_USER not in channel.members:
            return
        body = events.message_event(message, channel)
        kind = {"public": "message.channels", "private": "message.groups", "im": "message.im"}[channel.kind]
        if self._allowed.hears(kind):
            self._courier.post(self._event("message", body), message.user, "wrote", channel=channel.id)
        if f"<@{BOT_USER}>" in message.text and channel.kind != "im" and self._allowed.hears("app_mention"):
            self._courier.post(self._event("app_mention", body), message.user, "mentioned the app", channel=channel.id)

    def _event(self, kind: str, body: JsonObject) -> JsonObject:
        return events.event(kind, body, self._workspace.new_id("Ev"), self._workspace.clock())

    def _response_url(self, id: str) -> str:
        return f"{self._url()}/response/{id}"

    def _tell(self, person: str, channel: str, text: str) -> None:
        self._workspace.post(channel, SLACKBOT, text, ephemeral_to=person)

    def _fill(self, person: str, view_id: str, entered: Mapping[str, Any]) -> View:
        with self._workspace.lock:
            view = self._view(person, view_id)
            state = _chosen(lambda: form_state.filled(view.blocks, view.state, entered))
            return self._workspace.put_view(replace(view, state=state))

    def _action(self, blocks: list[JsonObject], block_id: str, action_id: str, value: Any, where: str) -> JsonObject:
        element = form_state.find(blocks, block_id, action_id)
        if element is None:
            raise NotPossible(f"{where} no longer shows {action_id!r}; look at it again.")
        action: JsonObject = {"action_id": action_id, "block_id": block_id, "type": element["type"]}
        if element["type"] == "button":
            action |= {name: element[name] for name in ("text", "style") if name in element}
        action |= _chosen(lambda: form_state.chosen(element, value))
        return {**action, "action_ts": self._workspace.next_ts()}

    def _entered(self, state: Mapping[str, Any] | None, action: JsonObject) -> dict[str, Any]:
        entered = dict(state or {})
        if action["type"] not in ("button", "overflow"):
            before = entered.get(action["block_id"])
            others = dict(before) if isinstance(before, Mapping) and "type" not in before else {}
            value = {name: part for name, part in action.items() if name not in ("action_id", "block_id", "action_ts")}
            entered[action["block_id"]] = {**others, action["action_id"]: value}
        return entered

    def _person(self, id: str) -> Person:
        person = self._workspace.person(id)
        if person is None or person.deleted:
            raise NotPossible(f"There is no person {id!r} in this workspace.")
        return person

    def _channel(self, id: str, person: str) -> Channel:
        channel = self._workspace.channel(id)
        if channel is None or (channel.kind != "public" and person not in channel.members):
            raise NotPossible(f"There is no channel {id!r} for this person.")
        return channel

    def _message(self, person: str, channel: str, ts: str) -> Message:
        message = self._workspace.message(channel, ts)
        if message is None or message.ephemeral_to not in (None, person):
            raise NotPossible("This message is no longer there.")
        return message

    def _view(self, person: str, id: str) -> View:
        view = self._workspace.view(id)
        if view is None or view.user != person:
            raise NotPossible("This window is no longer open.")
        return view


def _chosen(choose: Callable[[], JsonObject]) -> JsonObject:
    try:
        return choose()
    except form_state.UnknownOption as error:
        raise NotPossible(str(error)) from error


def _label(action: JsonObject) -> str:
    text = action.get("text", {}).get("text") if action["type"] == "button" else None
    return str(text or action["action_id"])


def _failed_command(command: str, delivery: Delivery) -> str:
    if delivery.status == "late":
        return f"{command} did not respond in time ({delivery.problem})."
    return f"{command} failed: the app could not be reached or answered wrongly ({delivery.problem})."
