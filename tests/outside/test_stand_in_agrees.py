"""Our stand-in for Slack and emulate, which was written without it: what the two answer to the same calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bot.sandbox.server import StandIn
from tests.bot.scene import MANIFEST, Clock
from tests.bot.test_manifest import METHODS
from tests.outside.hikers import Workspace
from tests.outside.probes import METADATA, PROBES
from tests.outside.worlds import Ours, Theirs

pytestmark = pytest.mark.peer

TRIGGER_SECONDS = 3


class Difference(NamedTuple):
    """What emulate answers, what our stand-in answers, and which of them Slack's documentation bears out."""

    theirs: Any
    ours: Any
    why: str


OK = {"ok": True}
NOT_CHECKED = "ours: emulate checks no block, Slack refuses this (Block Kit reference)"
HIDDEN = "ours: to a bot outside it, Slack tells nothing of a private channel, not even that it is there"
IS_REQUIRED = "ours: Slack answers a missing argument with invalid_arguments and names it"

DIFFERENCES: dict[str, Difference] = {
    "auth.test: an installation on a whole organisation?": Difference(
        {"is_enterprise_install": None},
        {"is_enterprise_install": False},
        "ours: auth.test documents the field for every installation",
    ),
    "a scope that was not granted: conversations.join": Difference(
        "refused: missing_scope channels:join|channels:write",
        "refused: missing_scope channels:join",
        "ours: a bot token needs channels:join; channels:write is for user tokens",
    ),
    "users.info: time zone and standing": Difference(
        {"user.tz": "(absent)", "user.is_restricted": "(absent)"},
        {"user.tz": "America/Los_Angeles", "user.is_restricted": False},
        "ours: the user object has both; the bot takes UTC and full membership where they are absent",
    ),
    "chat.postMessage: who wrote it": Difference(
        {"has a bot id": False, "has an app id": False},
        {"has a bot id": True, "has an app id": True},
        "ours: a message of an app names the bot and the app",
    ),
    "chat.postMessage: block ids": Difference(
        False, True, "ours: Slack makes up a block_id for every block that has none"
    ),
    "chat.postMessage to no channel at all": Difference(
        "refused: channel_not_found", "refused: invalid_arguments", IS_REQUIRED
    ),
    "chat.postMessage into a private channel of others": Difference(
        "refused: not_in_channel", "refused: channel_not_found", HIDDEN
    ),
    "chat.postMessage into a public channel without the bot": Difference(
        OK, "refused: not_in_channel", "ours: without chat:write.public a bot posts only where it is a member"
    ),
    "chat.postMessage: blocks that are no JSON": Difference(
        "refused: invalid_blocks", "refused: invalid_blocks_format", "ours: so chat.postMessage documents both codes"
    ),
    "chat.postMessage: a block that does not exist": Difference(OK, "refused: invalid_blocks", NOT_CHECKED),
    "chat.postMessage: a section of 3,001 characters": Difference(OK, "refused: invalid_blocks", NOT_CHECKED),
    "chat.postMessage: metadata without a type": Difference(
        OK, "refused: invalid_metadata_format", "ours: event_type and event_payload are both required"
    ),
    "chat.postEphemeral to nobody": Difference(
        "refused: user_not_found",
        "refused: user_not_in_channel",
        "ours: chat.postEphemeral documents only user_not_in_channel",
    ),
    "chat.postEphemeral into a private channel of others": Difference(
        "refused: not_in_channel", "refused: channel_not_found", HIDDEN
    ),
    "chat.update with blocks: shown as edited?": Difference(
        True, False, "ours: chat.update says that an update with blocks is not marked as edited"
    ),
    "chat.update: 4,001 characters": Difference(
        OK, "refused: msg_too_long", "ours: chat.update takes 4,000 characters at most"
    ),
    "chat.update nowhere": Difference(
        "refused: message_not_found", "refused: channel_not_found", "ours: chat.update documents channel_not_found"
    ),
    "chat.update in an archived channel": Difference(
        "refused: message_not_found", "refused: is_inactive", "ours: is_inactive is for archived channels"
    ),
    "conversations.info of a private channel of others": Difference(
        "refused: not_in_channel", "refused: channel_not_found", HIDDEN
    ),
    "conversations.members in pages": Difference(
        [["<ana>", "<ben>", "<bot>"], ["<ana>", "<ben>", "<bot>"], ""],
        [["<ana>", "<ben>"], ["<bot>"], ""],
        "ours: emulate takes no limit and no cursor here",
    ),
    "conversations.members of a private channel of others": Difference(
        "refused: not_in_channel", "refused: channel_not_found", HIDDEN
    ),
    "conversations.history since a message": Difference(
        ["three", "two", "one"], ["three", "two"], "ours: emulate takes no `oldest`"
    ),
    "conversations.history: metadata nobody asked for": Difference(
        {"metadata": METADATA}, {"metadata": "(absent)"}, "ours: only include_all_metadata brings all of it"
    ),
    "conversations.history of a channel without the bot": Difference(
        OK, "refused: not_in_channel", "ours: only user tokens can read public channels they are not in"
    ),
    "conversations.history of a private channel of others": Difference(
        "refused: not_in_channel", "refused: channel_not_found", HIDDEN
    ),
    "conversations.replies of nothing": Difference(
        {"messages": []}, "refused: thread_not_found", "ours: conversations.replies documents thread_not_found"
    ),
    "views.open: block ids": Difference(False, True, "ours: Slack makes up a block_id for every block that has none"),
    "views.open with no trigger": Difference("refused: invalid_trigger_id", "refused: invalid_arguments", IS_REQUIRED),
    "views.open without a title": Difference("refused: invalid_view", "refused: invalid_arguments", IS_REQUIRED),
    "views.open: a title of 25 characters": Difference(OK, "refused: invalid_arguments", NOT_CHECKED),
    "views.push on top of nothing": Difference(
        "refused: view_not_found", "refused: not_found", "ours: views.push documents not_found"
    ),
    "views.publish for nobody": Difference(
        "refused: user_not_found", "refused: invalid_arguments", "neither: views.publish documents no code for it"
    ),
}


@pytest.fixture(scope="module")
def theirs(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    workspace = Workspace(packages, tmp_path_factory.mktemp("emulate"))
    # emulate counts whole seconds, and its clock cannot be put forward.
    over = time.time() + TRIGGER_SECONDS + 1

    def wait() -> None:
        threading.Event().wait(max(0.0, over - time.time()))

    yield Theirs(workspace, wait)
    workspace.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[Ours]:
    clock = Clock()
    with StandIn(manifest=MANIFEST, clock=clock.seconds) as stand_in:
        yield Ours(stand_in, clock)


@pytest.mark.parametrize("name", PROBES)
def test_both_answer_alike_but_for_what_is_listed(theirs: Theirs, ours: Ours, name: str) -> None:
    found = PROBES[name](theirs), PROBES[name](ours)
    listed = DIFFERENCES.get(name)
    if listed is None:
        assert found[0] == found[1]
    else:
        assert found == (listed.theirs, listed.ours)


def test_whatever_is_listed_is_a_difference_between_calls_that_are_made() -> None:
    assert set(DIFFERENCES) <= set(PROBES)
    assert [name for name, listed in DIFFERENCES.items() if listed.theirs == listed.ours] == []


def test_on_every_method_the_bot_calls_both_agree_about_something() -> None:
    compared = {name.split()[0].rstrip(":,") for name in set(PROBES) - set(DIFFERENCES)}
    # emulate has no Socket Mode.
    assert set(METHODS) - {"apps.connections.open"} - compared == set()
