"""The bot as a process of its own beside the stand-in for Slack: its start, its answers, its memory."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bot.blocks import actions
from bot.process import read_manifest
from bot.sandbox.records import Delivery, Message
from bot.sandbox.server import APP_TOKEN, BOT_TOKEN, StandIn
from bot.sandbox.supervisor import Supervisor
from bot.sandbox.town import BOT
from graphs.flow import Policy
from storage import approvals, runs
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.places import Places
from tests.bot.scene import ANA, BEN, HIKES, REQUEST, button, has_button

CLICKS = 100
IN_FLIGHT = 50
PATIENCE = 120.0  # seconds


@dataclass
class Office:
    """A workspace, a bot that is a child process, and the database between them."""

    slack: StandIn
    child: Supervisor
    database: Database
    ready: float  # seconds from its start until it was connected

    def card(self, seen: set[str]) -> Message:
        """A card nobody has seen, once it is there."""
        return self.until(lambda: next((card for card in self.cards() if card.ts not in seen), None))

    def cards(self) -> list[Message]:
        """All messages that can be approved."""
        return [m for m in self.slack.workspace.messages(HIKES, BEN) if has_button(m.blocks, "Approve")]

    def until(self, look: Callable[[], Any]) -> Any:
        """Wait for what shows in Slack."""
        found = self.slack.workspace.wait(look, PATIENCE)
        assert found, "the bot did not get there; is its database busy?"
        return found

    def ask(self, number: int = 0) -> Delivery:
        """Type the command."""
        delivery = self.slack.people.command(ANA, HIKES, f"/plan-hike {REQUEST} ({number})")
        assert delivery is not None
        return delivery

    def approve(self, card: Message) -> tuple[str, float, float]:
        """Click: the run, the milliseconds until the ack, and when the click was made."""
        block, element = button(card.blocks, "Approve")
        asked = approvals.find(self.database, actions.subject_of(element).id)
        assert asked is not None
        clicked = time.time()
        delivery = self.slack.people.click(BEN, HIKES, card.ts, block, element["action_id"], shown=card)
        assert delivery.acked_at is not None, delivery
        return asked.root, (delivery.acked_at - delivery.sent_at) * 1000, clicked

    def ended(self, root: str) -> None:
        """Wait until a run has ended, which nobody announces."""
        end, pause = time.monotonic() + PATIENCE, threading.Event()
        while not (run := runs.find(self.database, root)) or not run.ending:
            assert time.monotonic() < end, "the run does not end"
            pause.wait(0.01)

    def memory(self) -> float:
        """The child's resident memory in MB."""
        assert self.child.pid is not None
        return resident(self.child.pid)


@contextmanager
def office(places: Places, vendor: str, **more: str) -> Iterator[Office]:
    """A bot that has just connected; stopped afterwards."""
    url, log = places.migrated(vendor), places.file("bot").with_suffix(".log")
    with StandIn(manifest=read_manifest()) as slack:
        environment = {
            "SIGNOFF_DATABASE_URL": url,
            "SIGNOFF_PRACTICE_FILE": str(places.file("practice")),
            "SLACK_API_URL": slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SIGNOFF_MODEL": "simulated",
            "SIGNOFF_MODEL_SCRIPT": "straight",
            "SIGNOFF_CALLS_A_DAY": "1000000",
            **more,
        }
        child, database = Supervisor(BOT, environment, log, lambda: None), Database(url)
        began = time.perf_counter()
        child.start()
        try:
            assert slack.connected(PATIENCE), _tail(log)
            yield Office(slack, child, database, time.perf_counter() - began)
        finally:
            child.stop()
            database.close()


def _tail(log: Path) -> str:
    return f"the bot did not connect: {log.read_text()[-2000:]}"


def resident(pid: int) -> float:
    """A process's resident memory in MB."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1000
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) / 1000


def ready(places: Places, quick: bool) -> Iterator[Figure]:
    """From the start of the process until it listens, and what it weighs then; from the command to the card."""
    for vendor in _vendors(places, quick):
        starts, sizes, first, later = [], [], [], []
        for _ in range(1 if quick else 2):
            with office(places, vendor) as bot:
                starts.append(bot.ready)
                sizes.append(bot.memory())
                first.append(_command_to_card(bot))
                later += [_command_to_card(bot) for _ in range(3 if quick else 7)]
        yield Figure("bot: start to ready", vendor, "s", {"ours": median(starts)})
        yield Figure("bot: memory when idle", vendor, "MB", {"ours": median(sizes)})
        note = f"the first one after the start {median(first):.0f} ms; 4 simulated model calls"
        yield Figure("bot: /plan-hike to the card", vendor, "ms", {"ours": median(later)}, note=note)


def _vendors(places: Places, quick: bool) -> list[str]:
    return places.vendors[:1] if quick else places.vendors


def _command_to_card(bot: Office) -> float:
    seen, began = {card.ts for card in bot.cards()}, time.perf_counter()
    bot.ask()
    bot.card(seen)
    return (time.perf_counter() - began) * 1000


def clicks(places: Places, quick: bool) -> Iterator[Figure]:
    """Clicks on prepared approvals, one after another: until the ack, and until the next node begins."""
    number = 20 if quick else CLICKS
    for vendor in _vendors(places, quick):
        with office(places, vendor) as bot:
            for n in range(number):
                bot.ask(n)
            bot.until(lambda bot=bot: len(bot.cards()) == number)
            acks, nexts = [], []
            for card in bot.cards():
                root, ack, clicked = bot.approve(card)
                bot.ended(root)
                acks.append(ack)
                nexts.append((_approved_at(bot.database, root) - clicked) * 1000)
        for name, found in (("ack", acks), ("next node", nexts)):
            note = f"99 of 100 within {percentile(found, 0.99):.0f} ms; {number} clicks"
            yield Figure(f"bot: click to {name}", vendor, "ms", {"ours": median(found)}, note=note)


def _approved_at(database: Database, root: str) -> float:
    """When the step that asked was committed, with which the next node begins; Unix seconds."""
    store = SqlCheckpointer(database, policy_of=lambda _flow: Policy(), guards=lambda _flow, _kind: True)
    rows = store.history(root)
    store.close()
    asked = [row.at for row in rows if any(name == "approve" for name, _ in json.loads(row.meta).get("ran", ()))]
    return asked[0] / 1_000_000


def crowd(places: Places, quick: bool) -> Iterator[Figure]:
    """Memory while fifty runs wait for their models at the same time."""
    for vendor in _vendors(places, quick):
        with office(places, vendor, SIGNOFF_MODEL_SECONDS="1", SIGNOFF_THREADS=str(IN_FLIGHT)) as bot:
            for n in range(IN_FLIGHT):
                bot.ask(n)
            sizes = [bot.memory()]
            pause = threading.Event()
            while len(bot.cards()) < IN_FLIGHT:
                sizes.append(bot.memory())
                pause.wait(0.1)
        yield Figure(f"bot: memory with {IN_FLIGHT} runs in flight", vendor, "MB", {"ours": max(sizes)})


WORKLOADS = {"ready": ready, "clicks": clicks, "crowd": crowd}
