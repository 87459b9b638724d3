"""What a workspace remembers, tells its listeners, and keeps over a restart."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bot.sandbox.records import Channel, Message, Person, View
from bot.sandbox.subscription import CAPACITY
from bot.sandbox.workspace import BOT_USER, Workspace

ANA, BEN, CLEO = "U0ANA0001", "U0BEN0002", "U0CLEO003"
HIKES, OPS = "C0HIKES01", "C0OPS0001"


def filled(workspace: Workspace) -> Message:
    workspace.put_person(Person("U0GUEST01", "gil", "Gil", is_restricted=True))
    workspace.put_channel(Channel("C0NEW0001", "new", "public", (ANA,)))
    workspace.direct_message(ANA, BOT_USER)
    message = workspace.post(
        HIKES,
        BOT_USER,
        "card",
        bot="B0SIGNOFF",
        blocks=({"type": "divider", "block_id": "a"},),
        metadata={"event_type": "card", "event_payload": {"id": "1"}},
        reactions=(("eyes", (ANA,)),),
    )
    workspace.post(HIKES, BOT_USER, "private", ephemeral_to=ANA)
    workspace.put_view(View("V1", "h", ANA, "home", {"type": "home", "blocks": []}, "V1"))
    workspace.put_view(View("V2", "h", ANA, "modal", {"type": "modal", "blocks": []}, "V2"))
    workspace.mark_read(ANA, HIKES)
    return message


def test_all_but_modals_and_private_answers_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "sandbox" / "slack.db"
    with Workspace(path) as before:
        message = filled(before)
        people, channels, unread = before.people(), before.channels(), before.unread(BEN)
    with Workspace(path) as after:
        assert sorted(after.people(), key=repr) == sorted(people, key=repr)
        assert sorted(after.channels(), key=repr) == sorted(channels, key=repr)
        assert after.messages(HIKES, viewer=ANA) == [message]
        assert [view.id for view in after.views()] == ["V1"]
        assert after.unread(BEN) == unread
        assert after.last_read(ANA, HIKES) >= message.ts
        assert after.next_ts() > message.ts


def test_a_deleted_message_stays_deleted_after_a_restart(tmp_path: Path) -> None:
    with Workspace(tmp_path / "slack.db") as before:
        message = before.post(HIKES, ANA, "gone")
        assert before.delete_message(HIKES, message.ts)
        assert not before.delete_message(HIKES, message.ts)
    with Workspace(tmp_path / "slack.db") as after:
        assert after.messages(HIKES) == []


def test_timestamps_never_repeat_even_when_the_clock_stands_still() -> None:
    with Workspace(clock=lambda: 1_700_000_000.0) as workspace:
        stamps = [workspace.next_ts() for _ in range(3)]
    assert stamps == ["1700000000.000000", "1700000000.000001", "1700000000.000002"]


def test_a_private_channel_is_seen_by_its_members_only() -> None:
    with Workspace() as workspace:
        assert OPS in {channel.id for channel in workspace.channels_of(BEN)}
        assert OPS not in {channel.id for channel in workspace.channels_of(CLEO)}


def test_a_listener_hears_what_concerns_them() -> None:
    with Workspace() as workspace, workspace.subscribe(CLEO) as cleo, workspace.subscribe() as everything:
        workspace.post(OPS, ANA, "secret")
        workspace.post(HIKES, ANA, "psst", ephemeral_to=ANA)
        public = workspace.post(HIKES, ANA, "hello")
        heard = cleo.get(timeout=5)
        assert heard is not None and (heard.what, heard.channel, heard.id) == ("message", HIKES, public.ts)
        assert len([everything.get(timeout=5) for _ in range(3)]) == 3


def test_a_listener_that_falls_behind_is_told_to_reload() -> None:
    with Workspace() as workspace, workspace.subscribe(ANA) as ana:
        for _ in range(CAPACITY + 1):
            workspace.announce("unread")
        first = ana.get(timeout=5)
        assert first is not None and first.what == "reload"


def test_closing_the_workspace_ends_every_iteration() -> None:
    workspace = Workspace()
    seen: list[str] = []
    subscription = workspace.subscribe(ANA)
    listening = threading.Thread(target=lambda: seen.extend(change.what for change in subscription))
    listening.start()
    workspace.post(HIKES, BEN, "hello")
    workspace.close()
    listening.join(10)
    assert seen == ["message"] and not listening.is_alive()


def test_unread_counts_what_others_wrote_since_the_last_look() -> None:
    with Workspace() as workspace:
        workspace.post(HIKES, BEN, "before")
        workspace.mark_read(ANA, HIKES)
        workspace.post(HIKES, BEN, f"for <@{ANA}>")
        workspace.post(HIKES, ANA, "my own")
        unread = workspace.unread(ANA)[HIKES]
        assert (unread.count, unread.mentions) == (1, 1)
        assert workspace.unread(BEN)[HIKES].count == 1


def test_waiting_returns_as_soon_as_the_predicate_holds_and_its_last_value_otherwise() -> None:
    with Workspace() as workspace:
        posting = threading.Thread(target=workspace.post, args=(HIKES, ANA, "hello"))
        posting.start()
        assert workspace.wait(lambda: workspace.messages(HIKES), 10)
        posting.join()
        assert workspace.wait(lambda: workspace.modals(ANA), 0.0) == []


@pytest.mark.parametrize("archived", [True, False])
def test_a_channel_changes_in_place(archived: bool) -> None:
    with Workspace() as workspace:
        hikes = workspace.channel(HIKES)
        assert hikes is not None
        workspace.put_channel(replace(hikes, archived=archived))
        assert [one.archived for one in workspace.channels() if one.id == HIKES] == [archived]
