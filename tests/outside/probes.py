"""The calls of Slack's Web API that the bot lives on, each with what it relies on in the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.outside.worlds import JsonObject, Probe, World

PROBES: dict[str, Probe] = {}
METADATA = {"event_type": "signoff_card", "event_payload": {"key": "run:1"}}
NOBODY, NOWHERE, NEVER = "U0NOBODY", "C0NOWHERE", "1700000000.000001"


def probe(name: str) -> Callable[[Callable[[World], Any]], Callable[[World], Any]]:
    """Add a probe under a name."""

    def add(run: Callable[[World], Any]) -> Callable[[World], Any]:
        PROBES[name] = Probe(name, run)
        return run

    return add


def pick(answer: Any, *paths: str) -> JsonObject:
    """What stands at these places of an answer, "(absent)" where nothing does."""
    return {path: _at(answer, path) for path in paths}


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            value = value[int(part)] if part.isdecimal() else value[part]
        except (KeyError, IndexError, TypeError):
            return "(absent)"
    return value


def section(text: str) -> JsonObject:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def modal(title: str = "Edit", **more: Any) -> JsonObject:
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": title},
        "blocks": [{**section("One moment"), "block_id": "b"}],
        **more,
    }


def home(text: str = "Inbox") -> JsonObject:
    return {"type": "home", "blocks": [section(text)]}


def posted(world: World, **more: Any) -> str:
    return str(world.client.chat_postMessage(channel=world.ids["trails"], text="one", **more)["ts"])


def texts(world: World, channel: str, **more: Any) -> list[str]:
    return [one["text"] for one in world.client.conversations_history(channel=channel, **more)["messages"]]


# ---- who we are -----------------------------------------------------------------------------------------------------


@probe("auth.test")
def _(world: World) -> Any:
    answer = world.client.auth_test()
    return pick(answer, "ok", "user", "user_id", "bot_id")


@probe("auth.test: an installation on a whole organisation?")
def _(world: World) -> Any:
    return pick(world.client.auth_test(), "is_enterprise_install")


@probe("no token")
def _(world: World) -> Any:
    return world.without_token().auth_test().data


@probe("a scope that was not granted: reactions.add")
def _(world: World) -> Any:
    return world.client.reactions_add(channel=world.ids["trails"], timestamp=posted(world), name="eyes").data


@probe("a scope that was not granted: team.info")
def _(world: World) -> Any:
    return world.client.team_info().data


@probe("a scope that was not granted: conversations.join")
def _(world: World) -> Any:
    return world.client.conversations_join(channel=world.ids["quiet"]).data


@probe("users.info")
def _(world: World) -> Any:
    answer = world.client.users_info(user=world.ids["ana"])
    return pick(answer, "user.id", "user.name", "user.is_bot", "user.deleted")


@probe("users.info: time zone and standing")
def _(world: World) -> Any:
    return pick(world.client.users_info(user=world.ids["ana"]), "user.tz", "user.is_restricted")


@probe("users.info of a bot")
def _(world: World) -> Any:
    return pick(world.client.users_info(user=world.ids["bot"]), "user.id", "user.is_bot")


@probe("users.info of nobody")
def _(world: World) -> Any:
    return world.client.users_info(user=NOBODY).data


# ---- posting --------------------------------------------------------------------------------------------------------


@probe("chat.postMessage")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(
        channel=world.ids["trails"], text="a card", blocks=[section("*a card*")], metadata=METADATA
    )
    kept = ("ok", "channel", "message.text", "message.user", "message.blocks.0.text.text", "message.metadata")
    return pick(answer, *kept) | {"same ts": answer["ts"] == answer["message"]["ts"]}


@probe("chat.postMessage: who wrote it")
def _(world: World) -> Any:
    message = world.client.chat_postMessage(channel=world.ids["trails"], text="one")["message"]
    return {"has a bot id": bool(message.get("bot_id")), "has an app id": bool(message.get("app_id"))}


@probe("chat.postMessage: block ids")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(channel=world.ids["trails"], text="x", blocks=[section("x")])
    return bool(answer["message"]["blocks"][0].get("block_id"))


@probe("chat.postMessage to a person")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(channel=world.ids["ana"], text="hello")
    opened = world.client.conversations_open(users=[world.ids["ana"]])["channel"]["id"]
    return {"in a direct message": answer["channel"][0] == "D", "the one that is opened": answer["channel"] == opened}


@probe("chat.postMessage in a thread")
def _(world: World) -> Any:
    channel = world.fresh()
    first = world.client.chat_postMessage(channel=channel, text="card")["ts"]
    world.client.chat_postMessage(channel=channel, text="reply", thread_ts=first)
    replies = world.client.conversations_replies(channel=channel, ts=first)["messages"]
    return {"channel": texts(world, channel), "thread": [one["text"] for one in replies]}


@probe("chat.postMessage to nowhere")
def _(world: World) -> Any:
    return world.client.chat_postMessage(channel=NOWHERE, text="x").data


@probe("chat.postMessage to no channel at all")
def _(world: World) -> Any:
    return world.client.api_call("chat.postMessage", data={"text": "x"}).data


@probe("chat.postMessage into an archived channel")
def _(world: World) -> Any:
    return world.client.chat_postMessage(channel=world.ids["old"], text="x").data


@probe("chat.postMessage into a private channel of others")
def _(world: World) -> Any:
    return world.client.chat_postMessage(channel=world.ids["secret"], text="x").data


@probe("chat.postMessage into a public channel without the bot")
def _(world: World) -> Any:
    return pick(world.client.chat_postMessage(channel=world.ids["quiet"], text="x"), "ok")


@probe("chat.postMessage without a text")
def _(world: World) -> Any:
    return world.client.api_call("chat.postMessage", data={"channel": world.ids["trails"]}).data


@probe("chat.postMessage: 40,001 characters")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(channel=world.ids["trails"], text="x" * 40_001)
    return pick(answer, "warning") | {"kept": len(answer["message"]["text"])}


@probe("chat.postMessage: blocks that are no JSON")
def _(world: World) -> Any:
    return world.client.api_call(
        "chat.postMessage", data={"channel": world.ids["trails"], "text": "x", "blocks": "["}
    ).data


@probe("chat.postMessage: a block that does not exist")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(channel=world.ids["trails"], text="x", blocks=[{"type": "hologram"}])
    return pick(answer, "ok")


@probe("chat.postMessage: a section of 3,001 characters")
def _(world: World) -> Any:
    answer = world.client.chat_postMessage(channel=world.ids["trails"], text="x", blocks=[section("x" * 3001)])
    return pick(answer, "ok")


@probe("chat.postMessage: metadata that is no JSON")
def _(world: World) -> Any:
    given = {"channel": world.ids["trails"], "text": "x", "metadata": "{"}
    return world.client.api_call("chat.postMessage", data=given).data


@probe("chat.postMessage: metadata without a type")
def _(world: World) -> Any:
    return pick(
        world.client.chat_postMessage(channel=world.ids["trails"], text="x", metadata={"event_payload": {}}), "ok"
    )


@probe("chat.getPermalink")
def _(world: World) -> Any:
    ts = posted(world)
    link = world.client.chat_getPermalink(channel=world.ids["trails"], message_ts=ts)["permalink"]
    return bool(link.endswith(f"/archives/{world.ids['trails']}/p{ts.replace('.', '')}"))


@probe("chat.getPermalink of nothing")
def _(world: World) -> Any:
    return world.client.chat_getPermalink(channel=world.ids["trails"], message_ts=NEVER).data


# ---- private notes --------------------------------------------------------------------------------------------------


@probe("chat.postEphemeral")
def _(world: World) -> Any:
    channel = world.fresh()
    answer = world.client.chat_postEphemeral(channel=channel, user=world.ids["ana"], text="psst")
    return {"has a ts": bool(answer["message_ts"]), "history": texts(world, channel)}


@probe("chat.postEphemeral to somebody outside the channel")
def _(world: World) -> Any:
    return world.client.chat_postEphemeral(channel=world.ids["trails"], user=world.ids["cleo"], text="x").data


@probe("chat.postEphemeral to nobody")
def _(world: World) -> Any:
    return world.client.chat_postEphemeral(channel=world.ids["trails"], user=NOBODY, text="x").data


@probe("chat.postEphemeral into an archived channel")
def _(world: World) -> Any:
    return world.client.chat_postEphemeral(channel=world.ids["old"], user=world.ids["ana"], text="x").data


@probe("chat.postEphemeral into a private channel of others")
def _(world: World) -> Any:
    return world.client.chat_postEphemeral(channel=world.ids["secret"], user=world.ids["ana"], text="x").data


@probe("chat.update of an ephemeral message")
def _(world: World) -> Any:
    ts = world.client.chat_postEphemeral(channel=world.ids["trails"], user=world.ids["ana"], text="x")["message_ts"]
    return world.client.chat_update(channel=world.ids["trails"], ts=ts, text="y").data


# ---- redrawing and deleting -----------------------------------------------------------------------------------------


@probe("chat.update with blocks")
def _(world: World) -> Any:
    ts = posted(world, blocks=[section("one")], metadata=METADATA)
    answer = world.client.chat_update(channel=world.ids["trails"], ts=ts, text="two", blocks=[section("two")])
    return pick(answer, "ok", "channel", "text", "message.text", "message.blocks.0.text.text") | {
        "same ts": answer["ts"] == ts
    }


@probe("chat.update with blocks: shown as edited?")
def _(world: World) -> Any:
    ts = posted(world, blocks=[section("one")])
    answer = world.client.chat_update(channel=world.ids["trails"], ts=ts, text="two", blocks=[section("two")])
    return "edited" in answer["message"]


@probe("chat.update leaves the metadata")
def _(world: World) -> Any:
    channel = world.fresh()
    ts = world.client.chat_postMessage(channel=channel, text="one", metadata=METADATA)["ts"]
    world.client.chat_update(channel=channel, ts=ts, text="two", blocks=[section("two")])
    (message,) = world.client.conversations_history(channel=channel, include_all_metadata=True)["messages"]
    return pick(message, "text", "metadata")


@probe("chat.update with text alone takes the blocks away")
def _(world: World) -> Any:
    ts = posted(world, blocks=[section("one")])
    message = world.client.chat_update(channel=world.ids["trails"], ts=ts, text="two")["message"]
    return pick(message, "text", "blocks") | {"edited": "edited" in message}


@probe("chat.update: 4,001 characters")
def _(world: World) -> Any:
    return pick(world.client.chat_update(channel=world.ids["trails"], ts=posted(world), text="x" * 4001), "ok")


@probe("chat.update of somebody else's message")
def _(world: World) -> Any:
    ts = world.says(world.ids["trails"], "mine")
    return world.client.chat_update(channel=world.ids["trails"], ts=ts, text="x").data


@probe("chat.update of nothing")
def _(world: World) -> Any:
    return world.client.chat_update(channel=world.ids["trails"], ts=NEVER, text="x").data


@probe("chat.update of a deleted message")
def _(world: World) -> Any:
    ts = posted(world)
    world.client.chat_delete(channel=world.ids["trails"], ts=ts)
    return world.client.chat_update(channel=world.ids["trails"], ts=ts, text="x").data


@probe("chat.update nowhere")
def _(world: World) -> Any:
    return world.client.chat_update(channel=NOWHERE, ts=NEVER, text="x").data


@probe("chat.update in an archived channel")
def _(world: World) -> Any:
    return world.client.chat_update(channel=world.ids["old"], ts=NEVER, text="x").data


@probe("chat.delete")
def _(world: World) -> Any:
    channel = world.fresh()
    ts = world.client.chat_postMessage(channel=channel, text="one")["ts"]
    answer = world.client.chat_delete(channel=channel, ts=ts)
    return {"same ts": answer["ts"] == ts, "history": texts(world, channel)}


@probe("chat.delete of somebody else's message")
def _(world: World) -> Any:
    return world.client.chat_delete(channel=world.ids["trails"], ts=world.says(world.ids["trails"], "mine")).data


@probe("chat.delete of nothing")
def _(world: World) -> Any:
    return world.client.chat_delete(channel=world.ids["trails"], ts=NEVER).data


# ---- conversations --------------------------------------------------------------------------------------------------


@probe("conversations.open with one person")
def _(world: World) -> Any:
    first = world.client.conversations_open(users=[world.ids["ben"]])["channel"]["id"]
    again = world.client.conversations_open(users=world.ids["ben"])["channel"]["id"]
    return {"direct": first[0] == "D", "always the same": first == again}


@probe("conversations.open with nobody")
def _(world: World) -> Any:
    return world.client.conversations_open(users=NOBODY).data


@probe("conversations.open without users")
def _(world: World) -> Any:
    return world.client.conversations_open(users="").data


@probe("conversations.open with several people")
def _(world: World) -> Any:
    return world.client.conversations_open(users=[world.ids["ana"], world.ids["ben"]]).data


@probe("conversations.info of a public channel")
def _(world: World) -> Any:
    answer = world.client.conversations_info(channel=world.ids["trails"])
    kept = ("channel.id", "channel.name", "channel.is_archived", "channel.is_private", "channel.is_member")
    return pick(answer, *kept)


@probe("conversations.info of a private channel")
def _(world: World) -> Any:
    answer = world.client.conversations_info(channel=world.ids["crew"])
    return pick(answer, "channel.id", "channel.is_private", "channel.is_channel", "channel.is_group")


@probe("conversations.info of a channel without the bot")
def _(world: World) -> Any:
    return pick(world.client.conversations_info(channel=world.ids["quiet"]), "channel.id", "channel.is_member")


@probe("conversations.info of an archived channel")
def _(world: World) -> Any:
    return pick(world.client.conversations_info(channel=world.ids["old"]), "channel.id", "channel.is_archived")


@probe("conversations.info of a direct message")
def _(world: World) -> Any:
    id = world.client.conversations_open(users=world.ids["ana"])["channel"]["id"]
    return pick(world.client.conversations_info(channel=id), "channel.is_im", "channel.user")


@probe("conversations.info of a private channel of others")
def _(world: World) -> Any:
    return world.client.conversations_info(channel=world.ids["secret"]).data


@probe("conversations.info of nowhere")
def _(world: World) -> Any:
    return world.client.conversations_info(channel=NOWHERE).data


@probe("conversations.list")
def _(world: World) -> Any:
    found = world.client.conversations_list(types="public_channel,private_channel", limit=1000)["channels"]
    names = ("the-trails", "the-crew", "the-secret", "the-quiet", "the-old")
    return sorted([one["name"], one["is_member"], one["is_archived"]] for one in found if one["name"] in names)


@probe("conversations.members")
def _(world: World) -> Any:
    return world.client.conversations_members(channel=world.ids["crew"])["members"]


@probe("conversations.members in pages")
def _(world: World) -> Any:
    first = world.client.conversations_members(channel=world.ids["crew"], limit=2)
    cursor = first["response_metadata"]["next_cursor"]
    rest = world.client.conversations_members(channel=world.ids["crew"], limit=2, cursor=cursor)
    return [first["members"], rest["members"], rest["response_metadata"]["next_cursor"]]


@probe("conversations.members of a private channel of others")
def _(world: World) -> Any:
    return world.client.conversations_members(channel=world.ids["secret"]).data


@probe("conversations.members of nowhere")
def _(world: World) -> Any:
    return world.client.conversations_members(channel=NOWHERE).data


@probe("conversations.history, newest first")
def _(world: World) -> Any:
    channel = world.fresh()
    for text in ("one", "two", "three"):
        world.client.chat_postMessage(channel=channel, text=text)
    return texts(world, channel)


@probe("conversations.history in pages")
def _(world: World) -> Any:
    channel = world.fresh()
    for text in ("one", "two", "three"):
        world.client.chat_postMessage(channel=channel, text=text)
    first = world.client.conversations_history(channel=channel, limit=2)
    cursor = first["response_metadata"]["next_cursor"]
    rest = world.client.conversations_history(channel=channel, limit=2, cursor=cursor)
    return [[one["text"] for one in page["messages"]] + [page["has_more"]] for page in (first, rest)]


@probe("conversations.history since a message")
def _(world: World) -> Any:
    channel = world.fresh()
    ts = [world.client.chat_postMessage(channel=channel, text=text)["ts"] for text in ("one", "two", "three")]
    return texts(world, channel, oldest=ts[0])


@probe("conversations.history: metadata nobody asked for")
def _(world: World) -> Any:
    channel = world.fresh()
    world.client.chat_postMessage(channel=channel, text="one", metadata=METADATA)
    (message,) = world.client.conversations_history(channel=channel)["messages"]
    return pick(message, "metadata")


@probe("conversations.history of a channel without the bot")
def _(world: World) -> Any:
    return pick(world.client.conversations_history(channel=world.ids["quiet"]), "ok")


@probe("conversations.history of a private channel of others")
def _(world: World) -> Any:
    return world.client.conversations_history(channel=world.ids["secret"]).data


@probe("conversations.history of nowhere")
def _(world: World) -> Any:
    return world.client.conversations_history(channel=NOWHERE).data


@probe("conversations.replies of a message without any")
def _(world: World) -> Any:
    found = world.client.conversations_replies(channel=world.ids["trails"], ts=posted(world))["messages"]
    return [one["text"] for one in found]


@probe("conversations.replies of nothing")
def _(world: World) -> Any:
    return pick(world.client.conversations_replies(channel=world.ids["trails"], ts=NEVER), "messages")


# ---- windows --------------------------------------------------------------------------------------------------------


@probe("views.open")
def _(world: World) -> Any:
    given = modal(callback_id="c", private_metadata="m", notify_on_close=True)
    view = world.client.views_open(trigger_id=world.trigger(), view=given)["view"]
    kept = ("type", "title.text", "callback_id", "private_metadata", "notify_on_close", "previous_view_id", "bot_id")
    found = pick(view, *kept, "blocks.0.block_id") | {"its own root": view["root_view_id"] == view["id"]}
    return found | {"bot_id": bool(found["bot_id"]), "has a hash": bool(view["hash"]), "id": view["id"][0]}


@probe("views.open: block ids")
def _(world: World) -> Any:
    view = world.client.views_open(trigger_id=world.trigger(), view=modal(blocks=[section("x")]))["view"]
    return bool(view["blocks"][0].get("block_id"))


@probe("views.open with a used trigger")
def _(world: World) -> Any:
    trigger = world.trigger()
    world.client.views_open(trigger_id=trigger, view=modal())
    return world.client.views_open(trigger_id=trigger, view=modal()).data


@probe("views.open with an unknown trigger")
def _(world: World) -> Any:
    return world.client.views_open(trigger_id="1.2.never", view=modal()).data


@probe("views.open with no trigger")
def _(world: World) -> Any:
    return world.client.views_open(trigger_id="", view=modal()).data


@probe("views.open with a bad view leaves the trigger")
def _(world: World) -> Any:
    trigger = world.trigger()
    try:
        world.client.views_open(trigger_id=trigger, view={"type": "modal", "blocks": []})
    except Exception as error:
        refused = type(error).__name__
    return [refused, world.client.views_open(trigger_id=trigger, view=modal())["ok"]]


@probe("views.open without a title")
def _(world: World) -> Any:
    return world.client.views_open(trigger_id=world.trigger(), view={"type": "modal", "blocks": []}).data


@probe("views.open: a title of 25 characters")
def _(world: World) -> Any:
    return pick(world.client.views_open(trigger_id=world.trigger(), view=modal("x" * 25)), "ok")


@probe("views.open with an external id that is taken")
def _(world: World) -> Any:
    world.client.views_open(trigger_id=world.trigger(), view=modal(external_id="taken"))
    return world.client.views_open(trigger_id=world.trigger(), view=modal(external_id="taken")).data


@probe("views.update")
def _(world: World) -> Any:
    view = world.client.views_open(trigger_id=world.trigger(), view=modal("Loading"))["view"]
    changed = world.client.views_update(view_id=view["id"], hash=view["hash"], view=modal("Edit"))["view"]
    return pick(changed, "title.text") | {"same": changed["id"] == view["id"], "new": changed["hash"] != view["hash"]}


@probe("views.update with an old hash")
def _(world: World) -> Any:
    view = world.client.views_open(trigger_id=world.trigger(), view=modal())["view"]
    world.client.views_update(view_id=view["id"], hash=view["hash"], view=modal())
    return world.client.views_update(view_id=view["id"], hash=view["hash"], view=modal()).data


@probe("views.update by external id")
def _(world: World) -> Any:
    view = world.client.views_open(trigger_id=world.trigger(), view=modal(external_id="mine"))["view"]
    found = world.client.views_update(external_id="mine", view=modal(external_id="mine"))["view"]
    return bool(found["id"] == view["id"])


@probe("views.update of nothing")
def _(world: World) -> Any:
    return world.client.views_update(view_id="V0NEVER", view=modal()).data


@probe("views.push on top of a window")
def _(world: World) -> Any:
    below = world.client.views_open(trigger_id=world.trigger(), view=modal())["view"]
    above = world.client.views_push(trigger_id=world.trigger(below["id"]), view=modal("Draft"))["view"]
    return [above["previous_view_id"] == below["id"], above["root_view_id"] == below["id"]]


@probe("views.push of a fourth window")
def _(world: World) -> Any:
    view = world.client.views_open(trigger_id=world.trigger(), view=modal())["view"]
    for _ in range(3):
        view = world.client.views_push(trigger_id=world.trigger(view["id"]), view=modal())["view"]
    return "there are four"


@probe("views.push on top of nothing")
def _(world: World) -> Any:
    return world.client.views_push(trigger_id=world.trigger(), view=modal()).data


@probe("views.publish")
def _(world: World) -> Any:
    first = world.client.views_publish(user_id=world.ids["ana"], view=home())["view"]
    again = world.client.views_publish(user_id=world.ids["ana"], view=home("More"))["view"]
    return pick(again, "type", "blocks.0.text.text") | {"the same view": first["id"] == again["id"]}


@probe("views.publish with an old hash")
def _(world: World) -> Any:
    first = world.client.views_publish(user_id=world.ids["ben"], view=home())["view"]
    world.client.views_publish(user_id=world.ids["ben"], view=home("More"))
    return world.client.views_publish(user_id=world.ids["ben"], view=home(), hash=first["hash"]).data


@probe("views.publish for nobody")
def _(world: World) -> Any:
    return world.client.views_publish(user_id=NOBODY, view=home()).data


@probe("views.open with an expired trigger")
def _(world: World) -> Any:
    return world.client.views_open(trigger_id=world.expired(), view=modal()).data
