"""The connection to Slack breaks and is replaced, nothing is lost or done twice, and the health check says so."""

from __future__ import annotations

import pytest

from storage import switches
from tests.bot.scene import BEN, HIKES, Scene


def test_a_bot_at_work_is_well(scene: Scene) -> None:
    well = {"ok": True, "wrong": [], "model": "simulated", "slack": "socket"}
    assert scene.settles(lambda: scene.bot.health() == well, "the first sweep")


def test_a_connection_that_slack_renews_loses_nothing_and_doubles_nothing(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    assert scene.slack.faults.refresh() == 1
    assert scene.click(BEN, card, "Approve").status == "acked"
    scene.ended("finished")
    scene.settles(lambda: scene.slack.sockets.connected == 1, "the new connection")
    scene.ask("Saturday, after the renewal")
    scene.settles(lambda: len(scene.runs()) == 2, "the next run")
    assert len(scene.outbox()) == 1


@pytest.mark.slow
def test_a_connection_that_breaks_is_made_anew(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    assert scene.slack.faults.cut() == 1
    assert scene.click(BEN, card, "Approve").status in ("failed", "late")
    scene.settles(lambda: not scene.bot.health()["ok"], "the health check to notice")
    assert scene.bot.health()["wrong"] == ["not connected to Slack"]
    scene.settles(lambda: scene.slack.sockets.connected == 1 and scene.bot.health()["ok"], "the new connection")
    assert scene.click(BEN, card, "Approve").status == "acked"
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_a_bot_that_no_longer_sweeps_is_ill(scene: Scene) -> None:
    scene.bot.sweeper.stop()
    scene.clock.advance(minutes=1)
    assert scene.bot.health()["wrong"] == ["no sweep has been made lately"]


def test_held_effects_are_no_secret(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    switches.hold(scene.bot.parts.database, "ops", "something looks wrong")
    assert "effects are held by ops" in scene.bot.health()["wrong"]
    scene.click(BEN, card, "Approve")
    scene.said("*Approved* by", HIKES)
    assert scene.outbox() == []

    switches.release(scene.bot.parts.database, "ops")
    scene.ended("finished")
    assert len(scene.outbox()) == 1
