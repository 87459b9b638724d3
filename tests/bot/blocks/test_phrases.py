"""Names, times and amounts read the same everywhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.blocks.phrases import (
    costed,
    count,
    duration,
    link,
    mention,
    moment,
    people,
    place,
    sent,
    shown,
    what_approving_does,
)
from graphs.flow import Choice, Field, Release
from tests.bot.blocks import examples as made


def test_people_and_channels_are_mentioned_by_id_only() -> None:
    assert (mention("U0ADA"), mention("ada@host"), mention("<!here>"), mention("")) == (
        "<@U0ADA>", "ada@host", "&lt;!here&gt;", "nobody",
    )  # fmt: skip
    assert (place("C0HIKES01"), place("U0ADA"), place("+1503"), place("<#C1>")) == (
        "<#C0HIKES01>", "<@U0ADA>", "+1503", "&lt;#C1&gt;",
    )  # fmt: skip


def test_several_people_are_one_phrase() -> None:
    assert people(["U1"]) == "<@U1>"
    assert people(["U1", "U2", "U3"]) == "<@U1>, <@U2> and <@U3>"
    assert people([f"U{n}" for n in range(14)]).endswith("<@U9> and 4 more")


def test_a_time_is_shown_in_the_readers_zone_and_elsewhere_in_utc() -> None:
    assert moment(made.NOW) == "<!date^1785596400^{date_short_pretty} at {time}|2026-08-01 15:00 UTC>"


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (11_040, "3 h 4 min"),
        (90_061, "1 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: int, says: str) -> None:
    assert duration(timedelta(seconds=seconds)) == says


def test_numbers_agree_with_their_nouns() -> None:
    assert (count(1, "step"), count(0, "step"), count(1_204, "token")) == ("1 step", "0 steps", "1,204 tokens")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://x", "", "http://[", "/path"])
def test_only_web_addresses_become_links(url: str) -> None:
    assert link(url, "the card") == "the card"


def test_a_link_cannot_be_broken_out_of() -> None:
    assert link("https://x.example/a?b=1&c=<d>|e", "a <b>") == "<https://x.example/a?b=1&amp;c=%3Cd%3E%7Ce|a &lt;b&gt;>"


@pytest.mark.parametrize(
    ("release", "does"),
    [
        (Release(kind="pull_request", to="o/r", content="text"), "opens a pull request in o/r with this text"),
        (Release(kind="refund", to="order 7", content="text"), "refunds this text for order 7"),
        (Release(kind="smoke", to="north", content="gone"), "lets out this to north"),
    ],
)
def test_every_kind_of_release_is_told(release: Release, does: str) -> None:
    assert what_approving_does(made.review(releases=[release])) == does
    assert sent("smoke", "north") == "smoke to north"


def test_the_cost_of_a_text_is_reckoned_anew() -> None:
    review = made.review().with_draft({"text": "é" * 161})
    assert costed(review).draft["text"].hint == "2 segments in GSM-7"
    assert costed(review.model_copy(update={"releases": []})) == review.model_copy(update={"releases": []})


def test_a_choice_is_shown_by_its_label() -> None:
    field = Field(label="Trail", kind="choice", value="fern", choices=[Choice(value="fern", label="Fern Hollow")])
    assert shown(field) == "Fern Hollow"
    assert shown(Field(label="N", kind="number", value=0)) == "0"
