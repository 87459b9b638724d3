"""The simulated evaluator and writer."""

from __future__ import annotations

import json

import pytest

from bot.adapters.simulated import simulated
from bot.adapters.simulated_hike import Script
from graphs.sms_text import segments
from tests.bot.adapters.walk import Walk, plan_of

REQUEST = "A walk.\nDate: 2026-12-05"
GOOD = 'Trailhead: Fern Hollow (7.4 km)\nPLAN {"trailhead": "fern-hollow", "start": "08:00", "bring": "water, layers"}'


def test_a_plan_without_a_plan_line_is_not_done() -> None:
    for script in ("default", "straight"):
        verdict = json.loads(Walk(simulated(script)).judge("Go somewhere green."))
        assert verdict["done"] is False
        assert "PLAN" in verdict["feedback"]


def test_a_plan_quoted_in_json_is_understood() -> None:
    assert json.loads(Walk(simulated("straight")).judge(json.dumps({"draft": GOOD})))["done"] is True


def test_a_wet_morning_is_never_done() -> None:
    walk = Walk(simulated("straight"), rain=lambda name, hour: 90)
    verdict = json.loads(walk.judge(walk.work(REQUEST).text))
    assert verdict["done"] is False
    assert "another day" in verdict["feedback"]


def test_the_evaluator_asks_how_far_until_it_is_told() -> None:
    walk = Walk(simulated("needs_user"))
    verdict = json.loads(walk.judge(walk.work(REQUEST).text))
    assert verdict["done"] is False
    assert verdict["needs_user"].startswith("How far will you drive?")
    reply = walk.work("How far will you drive? (minutes)\n25")
    assert json.loads(walk.judge(reply.text))["done"] is True
    assert plan_of(reply)["trailhead"] in ("fern-hollow", "heron-flats")


def test_any_answer_counts_as_one() -> None:
    walk = Walk(simulated("needs_user"))
    walk.work(REQUEST)
    reply = walk.work("I do not mind at all.")
    assert "how far you will drive: no limit" in reply.text
    assert json.loads(walk.judge(reply.text))["done"] is True


@pytest.mark.parametrize("script", ["never_done", "bad_verdict"])
def test_some_evaluators_are_never_content(script: Script) -> None:
    for marked in (False, True):
        walk = Walk(simulated("straight" if marked else script))
        reply = walk.work(f"[{script}] {REQUEST}" if marked else REQUEST)
        for _ in range(3):
            verdict = walk.judge(reply.text)
            assert '"done": true' not in verdict
            reply = walk.work(verdict)


def test_the_text_is_short_and_plain_and_names_what_matters() -> None:
    text = Walk(simulated()).write(GOOD)
    assert text == "Hike Sat 5 Dec: Fern Hollow, start 08:00. Bring water, layers. (Simulated plan.)"
    assert segments(text) == ("GSM-7", len(text), 1)


def test_the_text_stays_short_and_plain_whatever_the_plan_says() -> None:
    plan = {
        "trailhead": "a-b",
        "start": "08:00",
        "bring": "— \u201cropes\u201d, \u017di\u017eka\u2019s map, 🥾, " + "x" * 400,
    }
    text = Walk(simulated()).write(f"PLAN {json.dumps(plan, ensure_ascii=False)}")
    assert len(text) < 300
    assert segments(text)[0] == "GSM-7"
    assert text.startswith('Hike Sat 5 Dec: A B, start 08:00. Bring - "ropes", Zizka\'s map, ?, xxx')
    assert text.endswith("(Simulated plan.)")


def test_the_writer_manages_without_a_plan() -> None:
    assert Walk(simulated()).write("nothing").startswith("Hike Sat 5 Dec: The Hills")
