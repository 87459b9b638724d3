"""Model calls cost money: a run and a person have so many, and what happens beyond is seen and can be mended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from bot.__main__ import app
from tests.bot.scene import BEN, Scene, everything


def test_a_run_over_its_budget_halts_and_says_so(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(calls_a_run=2)
    scene.ask()
    halted = everything(scene.said("The run has used its 2 model calls"))
    assert "*Failed*" in halted
    assert "2 model calls" in halted
    assert scene.run().ending == ""
    assert scene.outbox() == []


def test_a_halted_run_goes_on_where_it_stopped_once_it_may(
    new_scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = new_scene(calls_a_run=2)
    scene.ask()
    scene.said("The run has used its 2 model calls")
    scene.restart(calls_a_run=40)
    monkeypatch.setenv("SIGNOFF_MODEL_SCRIPT", "straight")
    monkeypatch.setenv("SIGNOFF_PRACTICE_FILE", str(scene.folder / "practice.db"))
    done = CliRunner().invoke(app, ["resume", scene.run().thread_id, "--database", scene.database_url])
    assert done.exit_code == 0, done.output
    card = scene.card()
    assert scene.run().calls > 2
    scene.click(BEN, card, "Approve")
    scene.ended("finished")
    assert len(scene.outbox()) == 1


def test_over_a_days_budget_a_run_sleeps_until_midnight_and_goes_on(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(calls_a_day=3)
    scene.ask(in_a_week(scene))
    sleeping = scene.said("💤 *Sleeping*")
    assert scene.run().calls == 3
    due = scene.run().due_at
    assert due is not None
    assert (due.hour, due.minute, due - scene.clock.now() <= timedelta(days=1)) == (0, 0, True)
    assert "until" in everything(sleeping)

    scene.clock.advance(seconds=(due - scene.clock.now()).total_seconds() + 1)
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")


def test_a_days_budget_is_for_everybody_together(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene(calls_a_day=6)
    scene.ask(in_a_week(scene))
    scene.click(BEN, scene.card(), "Approve")
    scene.ended("finished")
    scene.ask(in_a_week(scene), who=BEN)
    sleeping = scene.said("💤 *Sleeping*")
    assert "Today's 6 model calls are used up" in everything(sleeping)


def in_a_week(scene: Scene) -> str:
    """A request for a day that is still to come when the test ends."""
    return f"a dry morning hike on {(scene.clock.now() + timedelta(days=7)).date()}"
