"""The hike planner with the simulated model and the practice weather, as it runs with nothing configured."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.adapters.open_meteo import OpenMeteo
from bot.adapters.practice import Practice
from bot.adapters.simulated import simulated
from bot.adapters.simulated_hike import Script
from bot.adapters.trailheads import made_up_trailheads
from graphs.engine import Snapshot
from graphs.hike.state import Hike
from graphs.sms_text import segments
from tests.graphs.hike.stage import MONDAY, Stage


def stage(script: Script = "default") -> Stage:
    stage = Stage()
    practice = Practice(clock=lambda: stage.time)
    trails: Any = OpenMeteo(practice.client(), made_up_trailheads(), lambda: stage.time)
    stage.club = trails
    stage.runner = stage.with_model(simulated(script, clock=lambda: stage.time))
    return stage


def state(snapshot: Snapshot) -> Hike:
    assert isinstance(snapshot.values, Hike)
    return snapshot.values


def open_kinds(snapshot: Snapshot) -> list[str]:
    return [interrupt.asks for interrupt in snapshot.interrupts]


@pytest.mark.parametrize("days", range(1, 8))
def test_every_day_of_the_week_has_a_plan_in_three_rounds(days: int) -> None:
    on_stage = stage()
    day = MONDAY.date() + timedelta(days=days)
    paused = on_stage.plan("a short walk, not far", date=day.isoformat())
    assert open_kinds(paused) == ["review"]
    assert state(paused).rounds == 3
    assert not state(paused).composed
    assert segments(state(paused).draft)[0] == "GSM-7"
    assert "(Simulated plan.)" in state(paused).draft


def test_the_rounds_are_not_done_then_unreadable_then_done() -> None:
    said = [str(m.content) for m in state(stage().plan()).messages if m.role == "user"]
    assert "Not done yet" in said[3]
    assert "could not be read" in said[4]
    assert len(said) == 5


def test_changes_lead_to_another_plan_at_once() -> None:
    on_stage = stage()
    first = on_stage.plan()
    second = on_stage.decide(first, "changes", reason="Somewhere else, please start at 9 and bring sunscreen")
    one, two = state(first).plan, state(second).plan
    assert one is not None
    assert two is not None
    assert (two.start, two.trailhead != one.trailhead, "sunscreen" in two.bring) == ("09:00", True, True)
    assert state(second).rounds == 1
    assert open_kinds(second) == ["review"]


@pytest.mark.parametrize("marked", [False, True])
def test_the_requester_is_asked_how_far(marked: bool) -> None:
    on_stage = stage("straight" if marked else "needs_user")
    asked = on_stage.plan("Saturday [needs user]" if marked else "Saturday")
    assert open_kinds(asked) == ["question"]
    planned = on_stage.answer(asked, "40")
    assert open_kinds(planned) == ["review"]
    assert state(planned).limits.drive_minutes == 40


@pytest.mark.parametrize("script", ["never_done", "bad_verdict", "talks", "refuses", "truncates"])
def test_some_scripts_end_without_a_plan(script: Script) -> None:
    ended = stage(script).plan()
    assert not ended.interrupts
    assert state(ended).stopped
    assert not state(ended).draft
    marked = stage().plan(f"Saturday [{script.replace('_', ' ')}]")
    assert state(marked).stopped == state(ended).stopped
