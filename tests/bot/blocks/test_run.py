"""A run's messages say how far it is, how it ended and what it took."""

from __future__ import annotations

import pytest

from bot.blocks import actions
from bot.blocks.run import StepMark, ending_message, run_message
from tests.bot.blocks import examples as made
from tests.bot.blocks.checks import action_ids, element, texts


def test_a_run_under_way_shows_its_steps_and_cost() -> None:
    said = texts(run_message(made.run()))
    assert "⚙️ *Working* · /plan-hike for <@U0ADA>" in said
    assert "✓ prepare  →  ✓ worker  →  ✓ tools  →  ✓ worker  →  ✓ evaluate  →  ▸ write text" in said
    assert "round 2 of 3 · 6 model calls · 5,924 tokens (804 written) · claude-sonnet-5-5 · simulated model" in said


def test_repeated_steps_are_counted_and_old_ones_left_out() -> None:
    repeated = run_message(made.run(steps=(StepMark("tools"),) * 3))
    assert "✓ tools x3" in texts(repeated)
    many = run_message(made.run(steps=tuple(StepMark(f"n{n}") for n in range(40))))
    assert any(text.startswith("… 16 earlier steps  →  ✓ n16") for text in texts(many))


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "sleeping", "stuck"])
def test_what_lasts_can_be_cancelled_after_a_question(state: str) -> None:
    payload = run_message(made.run(state=state))
    assert action_ids(payload) == [actions.LOG, actions.CANCEL]
    assert element(payload, actions.CANCEL)["confirm"]["confirm"]["text"] == "Cancel the run"


@pytest.mark.parametrize("state", ["finished", "declined", "gave_up", "expired", "cancelled", "failed"])
def test_what_has_ended_cannot(state: str) -> None:
    assert action_ids(run_message(made.run(state=state))) == [actions.LOG]


def test_a_waiting_run_links_to_its_card() -> None:
    said = texts(run_message(made.run(state="waiting", note="for a decision", card="https://x.example/p1")))
    assert "for a decision · <https://x.example/p1|Open the card>" in said


def test_an_end_tells_what_went_out_and_what_did_not() -> None:
    said = texts(ending_message(made.notice()))
    assert "✓ Text to +15035550134 (SM123)\n✗ Post to <#C0HIKES01>: The channel is archived." in said
    assert any(text.startswith("9 steps · took 3 h 4 min · waited 2 h 58 min for people · ") for text in said)


@pytest.mark.parametrize("ending", ["declined", "expired", "cancelled", "failed", "gave_up"])
def test_different_ends_are_told_differently(ending: str) -> None:
    notice = made.notice(ending=ending, by="U0BEN", out=(), why_not="It was not wanted.", reason="Too <far>", text="")
    said = texts(ending_message(notice))
    assert any(f"*{ending.replace('_', ' ').capitalize()}*" in text and "by <@U0BEN>" in text for text in said)
    assert "Nothing went out. It was not wanted." in said
    assert "Reason: Too &lt;far&gt;" in said
