"""The simulated planner decides from what it is told and what its tools found."""

from __future__ import annotations

import pytest

from bot.adapters.simulated import simulated
from bot.adapters.simulated_hike import Script
from graphs.ports import ModelReply
from tests.bot.adapters.walk import Rain, Walk, plan_of

REQUEST = "A walk for six on Saturday.\nDate: 2026-12-05"


def straight(text: str = REQUEST, rain: Rain = lambda name, hour: 10) -> tuple[Walk, ModelReply]:
    walk = Walk(simulated("straight"), rain)
    return walk, walk.work(text)


def test_it_looks_at_the_list_and_then_at_several_forecasts_for_the_day_given() -> None:
    walk, reply = straight()
    assert walk.tool_calls[0] == {"name": "list_trailheads"}
    assert len(walk.tool_calls) == 5
    assert {call["date"] for call in walk.tool_calls[1:]} == {"2026-12-05"}
    assert len(walk.turns) == 6
    assert set(plan_of(reply)) == {"trailhead", "start", "bring"}
    assert "Saturday 5 December 2026" in reply.text


@pytest.mark.parametrize(
    "dry", ["heron-flats", "fern-hollow", "mill-pond", "lantern-ridge", "quarry-bend", "cinder-saddle"]
)
def test_it_chooses_the_trailhead_with_the_dry_morning(dry: str) -> None:
    _, reply = straight(rain=lambda name, hour: 29 if name == dry else 30)
    assert plan_of(reply)["trailhead"] == dry
    assert "dry; at most 29 %" in reply.text


def test_it_chooses_a_start_whose_hours_are_dry() -> None:
    _, reply = straight(rain=lambda name, hour: 80 if hour <= 9 else 5)
    assert plan_of(reply)["start"] == "09:00"


def test_an_unknown_hour_is_not_dry() -> None:
    _, reply = straight(rain=lambda name, hour: None if hour == 9 else 0)
    assert plan_of(reply)["start"] == "09:00"
    _, reply = straight(rain=lambda name, hour: None)
    assert "not known" in reply.text


def test_without_a_dry_morning_it_says_so_and_names_the_least_wet() -> None:
    walk, reply = straight(rain=lambda name, hour: 40 if name == "otter-falls" else 60)
    assert plan_of(reply)["trailhead"] == "otter-falls"
    assert "no dry morning found" in reply.text
    assert len(walk.tool_calls) == 9


@pytest.mark.parametrize(
    ("wish", "allowed"),
    [
        ("Under 6 km please.", {"heron-flats"}),
        ("At most 7 km.", {"heron-flats", "otter-falls"}),
        ("Up to 22 minutes of driving.", {"heron-flats"}),
        ("We drive at most 0.5 hours.", {"heron-flats", "fern-hollow"}),
    ],
)
def test_it_keeps_to_limits_in_the_request(wish: str, allowed: set[str]) -> None:
    walk, reply = straight(f"{wish}\n{REQUEST}")
    assert plan_of(reply)["trailhead"] in allowed
    assert {call["trailhead"] for call in walk.tool_calls[1:]} <= allowed


def test_limits_nothing_fits_are_told() -> None:
    _, reply = straight(f"Under 1 km.\n{REQUEST}")
    assert "Nothing fits all of your wishes" in reply.text


@pytest.mark.parametrize(
    "answer",
    ["45", "45 minutes", "How far will you drive? (minutes)\n45", "We drive 45 min", "about 45 min by driving"],
)
def test_an_answer_about_driving_is_kept_to(answer: str) -> None:
    walk = Walk(simulated("straight"), lambda name, hour: 10 if name in ("otter-falls", "cedar-gate") else 90)
    walk.work(REQUEST)
    reply = walk.work(answer)
    assert plan_of(reply)["trailhead"] == "otter-falls"
    assert "how far you will drive: at most 45 minutes" in reply.text


def test_comments_change_the_plan() -> None:
    walk, first = straight()
    other = plan_of(walk.work("Somewhere else please, start at 8:30 and bring sunscreen."))
    assert other["trailhead"] != plan_of(first)["trailhead"]
    assert other["start"] == "08:30"
    assert other["bring"] == "water, layers, snacks, sunscreen"
    named = plan_of(walk.work("Lantern Ridge would be better."))
    assert named["trailhead"] == "lantern-ridge"
    avoided = plan_of(walk.work("Lantern Ridge is closed, and not Mill Pond."))
    assert avoided["trailhead"] not in ("lantern-ridge", "mill-pond", plan_of(first)["trailhead"])


def test_a_start_outside_the_morning_looks_at_its_own_hours() -> None:
    walk, _ = straight(rain=lambda name, hour: 10 if hour > 13 else 90)
    assert "dry; at most 10 %" in walk.work("Start at 13, the morning is full.").text


def test_failed_tools_are_told_and_not_asked_for_ever() -> None:
    walk = Walk(simulated("straight"), broken=["list_trailheads"])
    assert "without the list" in walk.work(REQUEST).text
    walk = Walk(simulated("straight"), broken=["forecast"])
    assert "could not get a forecast" in walk.work(REQUEST).text
    walk = Walk(simulated("straight"), broken=["heron-flats"])
    assert plan_of(walk.work(REQUEST))["trailhead"] == "fern-hollow"


def test_it_asks_for_the_day_where_there_is_none() -> None:
    _, reply = straight("A walk.")
    assert "Date: YYYY-MM-DD" in reply.text


@pytest.mark.parametrize(
    ("script", "stop_reason", "words"),
    [("talks", "end_turn", "lovely"), ("refuses", "refusal", ""), ("truncates", "max_tokens", "cut off")],
)
def test_a_script_can_be_chosen_or_asked_for_in_the_request(script: Script, stop_reason: str, words: str) -> None:
    for walk, request in ((Walk(simulated(script)), REQUEST), (Walk(simulated()), f"[{script.title()}] {REQUEST}")):
        reply = walk.work(request)
        assert reply.stop_reason == stop_reason
        assert words in reply.text
        assert "PLAN" not in reply.text


def test_a_marker_stays_in_the_plan_so_that_the_evaluator_sees_it() -> None:
    walk = Walk(simulated())
    assert "[never done]" in walk.work(f"[Never-done] {REQUEST}").text
    assert "[" not in straight()[1].text
