"""A graph with all that the engine has, in a process that may be killed at any point; drives on from wherever it is."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import JsonValue
from sqlmodel import select

from bot.effects import LedgerPerformer
from graphs.effects import Post, Sms
from graphs.engine import (
    END,
    START,
    Command,
    Graph,
    Receipt,
    Runner,
    Runtime,
    Send,
    State,
    StateGraph,
    append,
)
from graphs.engine.errors import ClaimLost, NotNow, RunEnded
from graphs.flow import Choice, Field, Policy, Question, Release, Review
from graphs.ports import Sent
from storage import approvals, audit, ledger, runs
from storage.checkpoints import SqlCheckpointer
from storage.database import open_database
from storage.refusals import Actor
from storage.tables import PendingWriteRow
from tests.crash.points import Points, watch_drivers
from tests.crash.stage import Clock, Trouble, lines, note, plan_of, steady, vanish_after

PHONE, CHANNEL, TEXT = "+15035550134", "C0HIKES01", "Saturday 7:00, Fern Hollow."
TURNS = 60


class Deed:
    """What a node does outside: it passes three points, and leaves a line in a file when it is done."""

    def __init__(self, path: Path, points: Points) -> None:
        self.path, self._points = path, points

    def do(self, name: str) -> str:
        """Do it, and say that it is done."""
        self._points.passed(f"before {name}")
        note(self.path, name)
        self._points.passed(f"taken {name}")
        return f"{name} done"


class Outbox(Deed):
    """A sender that can be asked by key."""

    absence_proves = True

    def __init__(self, kind: str, path: Path, points: Points) -> None:
        super().__init__(path, points)
        self.kind = kind

    def send(self, key: str, address: str, content: str, payload: Mapping[str, JsonValue]) -> Sent:
        self.do(f"{self.kind} {key}")
        return Sent(ref=key)

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None:
        return Sent(ref=key) if f"{self.kind} {key}" in lines(self.path) else None


class Trail(State):
    log: Annotated[list[str], append] = []
    parcel: int = 0
    receipts: Annotated[list[Receipt], append] = []


def call(runtime: Runtime[Deed]) -> str:
    """One recorded call, named after its task."""
    name = f"{runtime.thread_id}:{runtime.step}:{runtime.task.name}"
    return runtime.once("call", lambda: runtime.deps.do(name), kind=str)


def node(state: Any, runtime: Runtime[Deed]) -> dict[str, Any]:
    return {"log": call(runtime)}


def split(state: Trail, runtime: Runtime[Deed]) -> Command:
    return Command(update={"log": call(runtime)}, goto=[Send("parcel", {"parcel": n}) for n in range(3)])


def parcel(given: Any, runtime: Runtime[Deed]) -> dict[str, Any]:
    return {"log": f"{call(runtime)} with {given['parcel']}"}


def ask(state: Trail, runtime: Runtime[Deed]) -> dict[str, Any]:
    said = call(runtime)
    draft = {"text": Field(value=TEXT, label="Text")}
    releases = [Release(kind="sms", to=PHONE, content="text"), Release(kind="post", to=CHANNEL, content="text")]
    decision = runtime.interrupt(Review(title="Send?", draft=draft, releases=releases))
    return {"log": [said, f"{decision.verdict} by {decision.by}"]}


def send(state: Trail, runtime: Runtime[Deed]) -> Command:
    effects = [Sms(to=PHONE, content=TEXT, into="receipts"), Post(to=CHANNEL, content=TEXT, into="receipts")]
    return Command(update={"log": call(runtime)}, effects=effects)


def wait(state: Trail, runtime: Runtime[Deed]) -> dict[str, Any]:
    choices = [Choice(value="on", label="On")]
    return {"log": [call(runtime), runtime.interrupt(Question(text="Where to?", kind="choice", choices=choices))]}


def build_inner() -> Graph[Trail]:
    inner = StateGraph(Trail)
    for name, run in (("one", node), ("two", node), ("wait", wait), ("last", node)):
        inner.add_node(name, run)
    inner.add_edge(START, "one").add_edge(START, "two").add_edge(["one", "two"], "wait")
    return inner.add_edge("wait", "last").add_edge("last", END).compile(name="inner")


def build_graph() -> Graph[Trail]:
    graph = StateGraph(Trail)
    for name, run in (("left", node), ("right", node), ("parcel", parcel), ("ask", ask), ("send", send)):
        graph.add_node(name, run)
    graph.add_node("split", split, destinations=["parcel"])
    graph.add_node("inner", build_inner(), enter=lambda s: {}, leave=lambda child: {"log": list(child.log)})
    graph.add_node("after", node)
    graph.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "split")
    graph.add_edge("parcel", "ask").add_edge("ask", "send").add_edge("send", "inner").add_edge("inner", "after")
    return graph.add_edge("after", END).compile(name="trail")


GRAPH = build_graph()


class Walker:
    """One process of a plan. `order` holds url, folder, and plan (blow by point) or after (seconds)."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.folder = Path(order["folder"])
        self.clock = Clock(self.folder / "clock")
        self.points = Points(plan_of(order.get("plan", {}), Trouble(order["url"])))
        watch_drivers(self.points)
        self.database = open_database(order["url"], migrate=False, clock=self.clock)
        self.store = SqlCheckpointer(self.database, policy_of=lambda _: Policy(), guards=lambda _, kind: kind == "sms")
        outboxes = [Outbox(kind, self.folder / "outbox", self.points) for kind in ("sms", "post")]
        performer = LedgerPerformer(self.database, outboxes)
        self.runner = Runner(self.store, performer, Deed(self.folder / "calls", self.points), [GRAPH])

    def drive(self) -> None:
        """Start the run unless there is one, and bring it to its end."""
        note(self.folder / "starts", json.dumps({"recorded": self.recorded(), "made": lines(self.folder / "calls")}))
        self.points.arm()
        for _ in range(TURNS):
            if self._turn():
                self.points.disarm()
                return
        raise AssertionError(f"the run goes round in circles: {self.runner.get_state('trail')}")

    def _turn(self) -> bool:
        run = runs.find(self.database, "trail")
        if run is None:
            self.runner.start(GRAPH, {}, "trail", who="UANA", team="T1")
            return False
        if run.ending:
            return True
        with suppress(NotNow, RunEnded, ClaimLost):
            self.runner.advance("trail")
        for asked in approvals.open_for(self.database):
            told: Any = {"verdict": "answer", "value": "on"} if asked.kind == "question" else {"verdict": "approve"}
            approvals.decide(self.database, asked.id, actor=Actor("UBEN", "T1"), version=asked.draft_version, **told)
        return False

    def recorded(self) -> list[str]:
        """The calls whose results are kept."""
        with self.database.read() as session:
            rows = session.exec(select(PendingWriteRow)).all()
        return sorted(f"{row.thread_id}:{row.step}:{row.task}" for row in rows if row.key.startswith("once:call:"))

    def tell(self) -> dict[str, Any]:
        """What must not depend on what happened on the way, and what may."""
        state = self.runner.get_state("trail")
        values = state.values.to_json()
        steps = self.runner.get_state_history("trail")
        asked = approvals.of_root(self.database, "trail")
        return {
            "status": state.status,
            "values": steady(values),
            "trace": [[each.step, each.source, list(each.next)] for each in steps],
            "effects": [[row.kind, row.status] for row in ledger.rows(self.database, "trail")],
            "outbox": sorted(lines(self.folder / "outbox")),
            "asked": [[each.kind, each.status, each.taken] for each in asked],
            "faults": [str(fault) for fault in audit.verify(self.database)],
            "recorded": self.recorded(),
            "made": dict(Counter(lines(self.folder / "calls"))),
            "labels": self.points.labels,
        }

    def close(self) -> None:
        """Leave nothing behind."""
        self.store.close()
        self.database.close()


def run(order: Mapping[str, Any], _meet: Any = None) -> JsonValue:
    """Live through an order and tell how it ended."""
    walker = Walker(order)
    vanish_after(order.get("after"))
    began = time.monotonic()
    walker.drive()
    took = time.monotonic() - began
    vanish_after(None)
    told = {**walker.tell(), "took": took}
    if order.get("close"):
        walker.close()
    return told
