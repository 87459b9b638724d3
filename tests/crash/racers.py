"""One of several processes that do the same thing at the same instant, round after round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bot.app import build
from bot.decisions import Wish, decide
from bot.effects import LedgerPerformer
from bot.parts import Parts
from bot.people import Profile
from bot.reminders import Sweeper
from bot.settings import load_settings
from graphs.effects import Post
from graphs.engine import END, START, Command, Runner, Runtime, State, StateGraph
from graphs.engine.errors import NothingPending, NotNow, RunEnded, StaleInterrupt
from graphs.flow import Policy
from storage import approvals
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.refusals import Actor
from tests.crash.engine_victim import Deed, Outbox
from tests.crash.points import Points
from tests.crash.stage import Clock

Meet = Callable[[], None]
Answer = list[JsonValue]
HOUR = 3_600_000_000


class Crowd:
    """As many people as a race needs, all of them in every channel."""

    me = ""

    def profile(self, user: str) -> Profile:
        return Profile(user, user, team="T1", time_zone="UTC")

    def members(self, channel: str, *, fresh: bool = False) -> Sequence[str]:
        return Everybody()


class Everybody(tuple[str, ...]):
    """A list of members that everybody is on."""

    def __contains__(self, _: object) -> bool:
        return True


class Step(State):
    first: str = ""
    second: str = ""


def ask_first(state: Step, runtime: Runtime[Deed]) -> dict[str, Any]:
    return {"first": runtime.interrupt("first")}


def ask_second(state: Step, runtime: Runtime[Deed]) -> dict[str, Any]:
    return {"second": runtime.interrupt("second")}


def act(state: Step, runtime: Runtime[Deed]) -> Command:
    runtime.once("call", lambda: runtime.deps.do(runtime.thread_id))
    return Command(effects=[Post(to="C0HIKES01", content=f"{state.first} {state.second}")])


GRAPH = (
    StateGraph(Step)
    .add_node("ask_first", ask_first)
    .add_node("ask_second", ask_second)
    .add_node("act", act)
    .add_edge(START, "ask_first")
    .add_edge(START, "ask_second")
    .add_edge(["ask_first", "ask_second"], "act")
    .add_edge("act", END)
    .compile(name="step")
)


def runner_on(database: Database, folder: Path) -> Runner:
    """A runner of `GRAPH` whose calls and posts leave lines in files of the folder."""
    store = SqlCheckpointer(database, policy_of=lambda _: Policy(), guards=lambda _, __: False)
    points = Points({})
    performer = LedgerPerformer(database, [Outbox("post", folder / "outbox", points)])
    return Runner(store, performer, Deed(folder / "calls", points), [GRAPH])


class Racer:
    """One process in a race: `me` of several, for a number of rounds."""

    def __init__(self, order: Mapping[str, Any], meet: Meet) -> None:
        self.me, self.rounds, self.meet = int(order["me"]), int(order["rounds"]), meet
        self.folder = Path(order["folder"])
        self.clock = Clock(self.folder / "clock")
        self.url = str(order["url"])

    def parts(self) -> Parts:
        """A bot process without Slack."""
        settings = load_settings(database_url=self.url, practice_file=self.folder / "practice.db")
        return replace(build(settings, clock=self.clock, migrate=False), people=Crowd())

    def decide(self) -> list[Answer]:
        """Some approve, some decline, all at once."""
        parts, verdict = self.parts(), "decline" if self.me % 2 else "approve"
        answers: list[Answer] = []
        for number in range(self.rounds):
            self.meet()
            told = decide(parts, f"ask {number}", f"U{self.me}", Wish(verdict=verdict, version=1))  # type: ignore[arg-type]
            answers.append([told.result, told.refusal, told.by, told.sentence, told.status])
        return answers

    def save(self) -> list[Answer]:
        """Half of them approve the first draft, the others put another one in its place."""
        database, answers = Database(self.url, clock=self.clock), list[Answer]()
        for number in range(self.rounds):
            wish: Any = (
                {"verdict": "save", "edits": {"text": f"by {self.me}"}} if self.me % 2 else {"verdict": "approve"}
            )
            self.meet()
            told = approvals.decide(database, f"ask {number}", actor=Actor(f"U{self.me}", "T1"), version=1, **wish)
            answers.append([told.result, told.refusal])
        return answers

    def expire(self) -> list[Answer]:
        """Half of them click while the others sweep, the first of whom moves the clock on to the moment of expiry."""
        parts, answers = self.parts(), list[Answer]()
        for number in range(self.rounds):
            self.meet()
            if self.me % 2:
                told = decide(parts, f"ask {number}", f"U{self.me}", Wish(verdict="approve", version=1))
                answers.append([told.result, told.refusal])
            else:
                if self.me == 0:
                    for _ in range(number % 5):  # otherwise the clock is always ahead of the clicks
                        approvals.find(parts.database, f"ask {number}")
                    self.clock.move(HOUR)
                found = approvals.expire_due(parts.database)
                answers.append(list(found))
        return answers

    def resume(self) -> list[Answer]:
        """Two of them answer the first question, one the second, and one takes up whatever is due."""
        runner = runner_on(Database(self.url, clock=self.clock), self.folder)
        answers: list[Answer] = []
        for number in range(self.rounds):
            thread = f"step-{number}"
            asked = {str(one.payload): one.id for one in runner.store.interrupts(thread)}
            self.meet()
            try:
                if self.me == 0:
                    runner.advance(thread)
                else:
                    name = "second" if self.me == 2 else "first"
                    runner.resume(thread, {asked[name]: f"racer {self.me}"})
                answers.append(["advanced"])
            except (NotNow, RunEnded, StaleInterrupt, NothingPending) as error:
                answers.append([type(error).__name__])
        return answers

    def remind(self) -> list[Answer]:
        """All of them sweep; the first moves the clock on by an hour."""
        sent: list[Answer] = []
        sweeper = Sweeper(self.parts(), lambda one: sent[-1].append(one.delivery))
        for _ in range(self.rounds):
            sent.append([])
            self.meet()
            if self.me == 0:
                self.clock.move(HOUR)
            sweeper.sweep()
        return sent


def run(order: Mapping[str, Any], meet: Any = None) -> JsonValue:
    """Race, and tell what this racer got in each round."""
    racer = Racer(order, meet)
    answers: list[Answer] = getattr(racer, order["race"])()
    return list(answers)
