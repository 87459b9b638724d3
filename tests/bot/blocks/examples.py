"""Cards, runs and inboxes to show, filled as the hike planner does, and texts that have broken other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from bot.blocks.difference import Change
from bot.blocks.home import WAITING_PAGE, Inbox, Mine, Recent, Waiting
from bot.blocks.question import EffectCard, QuestionCard
from bot.blocks.reading import LoggedStep, RunLog
from bot.blocks.review import ReviewCard, Vote
from bot.blocks.run import EndingNotice, Out, RunCard, Spent, StepMark
from graphs.flow import Choice, Field, Question, Release, Review

NOW = datetime(2026, 8, 1, 15, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)
ID = "0198b2f0c3d47a1e9f00aa11bb22cc33"
TEXT = "Hike on Saturday! Fern Hollow, 9 am, 8.2 km. Bring water & a hat. Rain 10%."


@dataclass(frozen=True, slots=True)
class Text:
    """A text written briefly: a few characters, how often."""

    piece: str
    times: int = 1

    def __str__(self) -> str:
        return self.piece * self.times


AWKWARD = [
    Text(""),
    Text(" "),
    Text("x"),
    Text("<!channel> <!here> <@U1> @everyone <http://evil.example|Approve> <!date^1^{date}|x>"),
    Text("*bold* _it_ ~no~ `code` :tada: > quote"),
    Text("&", 3_000),
    Text("<", 12_001),
    Text("🌲", 2_999),
    Text("👩‍👩‍👧‍👦", 700),
    Text("e\u0301", 3_000),
    Text("日本語の長い文", 900),
    Text("\u202eevil\u202c مرحبا"),
    Text("NUL\0 and \ud800 alone"),
    Text("a", 2_999),
    Text("a", 3_000),
    Text("a", 3_001),
    Text("word ", 2_400),
    Text("line\n", 3_000),
    Text("a", 40_001),
    Text("\n", 40_001),
]
EVERY = st.characters(exclude_categories=())

short_text = st.text(EVERY, max_size=40)
any_text = st.one_of(
    st.sampled_from(AWKWARD),
    st.builds(Text, short_text),
    st.builds(Text, st.text(EVERY, min_size=1, max_size=5), st.integers(1, 6_000)),
)


def review(text: str = TEXT, **changes: Any) -> Review:
    whole = Review(
        title="Text to the hiking group",
        draft={"text": Field(value=text, label="Text", max_length=299)},
        facts={"Trailhead": "Fern Hollow", "When": "Saturday 1 August, 09:00", "Forecast": "Practice, 20 min old"},
        releases=[
            Release(kind="sms", to="+15035550134", content="text"),
            Release(kind="post", to="C0HIKES01", content="text"),
        ],
    )
    return whole.model_copy(update=changes)


def card(text: str = TEXT, **changes: Any) -> ReviewCard:
    made = ReviewCard(
        id=ID, version=2, review=review(text), requester="U0ADA", may_decide="Anyone in the channel but Ada"
    )
    return replace(made, **changes)


def settled(status: Any, **changes: Any) -> ReviewCard:
    return card(status=status, by="U0BEN", at=NOW, **changes)


def question(kind: Any = "yes_no", choices: int = 0, **changes: Any) -> QuestionCard:
    asked = Question(
        text="May the drive be longer than an hour?",
        kind=kind,
        choices=[Choice(value=f"value {n}", label=f"up to {n} min") for n in range(choices)],
    )
    made = QuestionCard(
        id=ID, version=1, question=asked, title="A question", requester="U0ADA", may_answer="Whoever asked"
    )
    return replace(made, **changes)


def effect(**changes: Any) -> EffectCard:
    made = EffectCard(
        id=ID, version=1, kind="sms", to="+15035550134", content=TEXT, sent_at=NOW, may_decide="Anyone in the channel"
    )
    return replace(made, **changes)


SPENT = Spent(
    rounds=2, round_limit=3, steps=9, calls=6, input_tokens=5_120, output_tokens=804,
    model="claude-sonnet-5-5", provider="simulated model",
)  # fmt: skip


def run(**changes: Any) -> RunCard:
    steps = ("prepare", "worker", "tools", "worker", "evaluate")
    made = RunCard(
        thread_id=ID,
        command="/plan-hike",
        request="Saturday, easy, near water",
        requester="U0ADA",
        state="running",
        steps=(*map(StepMark, steps), StepMark("write text", "active")),
        spent=SPENT,
    )
    return replace(made, **changes)


def notice(**changes: Any) -> EndingNotice:
    made = EndingNotice(
        thread_id=ID,
        command="/plan-hike",
        request="Saturday, easy, near water",
        requester="U0ADA",
        ending="finished",
        text="The hike on Saturday from Fern Hollow is on.",
        spent=SPENT,
        took=timedelta(hours=3, minutes=4),
        waited=timedelta(hours=2, minutes=58),
        out=(Out("sms", "+15035550134", "SM123"), Out("post", "C0HIKES01", problem="The channel is archived.")),
        card="https://example.slack.com/archives/C1/p1",
    )
    return replace(made, **changes)


def log(steps: int, **changes: Any) -> RunLog:
    took = timedelta(milliseconds=1_204)
    taken = tuple(LoggedStep(n, "worker", ("tools", "evaluate"), tokens=900, took=took) for n in range(steps))
    return replace(RunLog(thread_id=ID, title="/plan-hike: Saturday, easy", steps=taken, spent=SPENT), **changes)


def inbox(items: int, page: int = 0) -> Inbox:
    waiting = [
        Waiting(card=replace(card(), id=f"{ID}{n}"), since=NOW, link="https://example.slack.com/archives/C1/p1")
        if n % 3
        else Waiting(card=replace(question(), id=f"{ID}{n}"), since=NOW)
        for n in range(items)
    ]
    mine = [Mine(thread_id=f"{ID}{n}", title="Hike", state="waiting for a decision", since=NOW) for n in range(items)]
    return Inbox(
        waiting=tuple(waiting[page * WAITING_PAGE : (page + 1) * WAITING_PAGE]),
        waiting_total=items,
        mine=tuple(mine),
        mine_total=items,
        recent=tuple(Recent(title="Hike", outcome="approved", by="U0BEN", at=NOW) for _ in range(items)),
        page=page,
        at=NOW,
    )


CHANGE = Change("Text", TEXT, TEXT.replace("Saturday", "Sunday"))
VOTES = (Vote("U0BEN", NOW), Vote("U0CLEO", LATER))
