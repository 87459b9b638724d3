"""The hike planner from request to end in a process that may be hit at any point: drives on from wherever a run is.

By hand: `python -m tests.crash.victim '{"url": "sqlite:////tmp/x/a.db", "folder": "/tmp/x", "plan": {"40": "kill"}}'`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
from pydantic import JsonValue
from sqlmodel import select

from bot.adapters.open_meteo import OpenMeteo
from bot.adapters.practice import Practice
from bot.adapters.practice_senders import PracticePost, PracticeSms
from bot.adapters.simulated import simulated
from bot.adapters.trailheads import made_up_trailheads
from bot.app import build
from bot.commands import Start, form_of, start_run
from bot.decisions import Wish, decide
from bot.effects import LedgerPerformer
from bot.parts import Parts
from bot.settings import load_settings
from graphs.engine.errors import ClaimLost, NotNow, RunEnded, StoreFailed
from graphs.ports import Sent
from storage import approvals, audit, ledger, runs
from storage.tables import ApprovalRow, RunRow, UsageRow
from tests.crash.points import Points, WatchedApi, WatchedModel, watch_drivers, watched_client
from tests.crash.stage import Clock, Trouble, lines, note, plan_of, steady

ANA, BEN, HIKES = "U0ANA0001", "U0BEN0002", "C0HIKES01"
REQUEST = "Find a dry morning hike for Saturday and text the group the plan"
PRACTICE = "http://practice.invalid"
TURNS = 60  # more than any plan needs; whoever takes them all goes round in circles


class BlindSms(PracticeSms):
    """A carrier that cannot be asked what it has taken."""

    absence_proves = False

    def look_up(self, key: str, address: str, content: str, since: datetime) -> Sent | None:
        return None


class Victim:
    """One process of a plan. `order` holds url, folder, plan (blow by point), script, and whether texts are `blind`."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.folder = Path(order["folder"])
        self.clock = Clock(self.folder / "clock")
        self.trouble = Trouble(order["url"])
        plan = plan_of(order.get("plan", {}), self.trouble)
        self.points = Points(plan, without=("signoff-heartbeat", "signoff-writer"))
        self.practice = Practice(self.folder / "practice.db", self.clock.now)
        self.refused = self.naps = 0
        self.failures: list[dict[str, Any]] = []
        watch_drivers(self.points)
        self.parts = self._build(order)
        if "lock" in order.get("plan", {}).values():  # otherwise it waits half a minute each time
            self.parts.database.write("~", lambda tx: tx.connection.execute("PRAGMA busy_timeout=20").close())

    def _build(self, order: Mapping[str, Any]) -> Parts:
        settings = load_settings(database_url=order["url"], model_journal=self.folder / "journal")
        client = watched_client(httpx2.MockTransport(self.practice.handle), PRACTICE, self.points)
        api = WatchedApi(order.get("script", "straight"), "", settings.model_journal)
        api.points = self.points
        model = WatchedModel(simulated(api=api), self.points)
        parts = build(settings, practice=client, model=model, clock=self.clock, migrate=False)
        sms = BlindSms if order.get("blind") else PracticeSms
        # Built anew because `build` gives the adapters the machine's clock.
        performer = LedgerPerformer(parts.database, [sms(client, self.clock.now), PracticePost(client, self.clock.now)])
        deps = replace(parts.deps, trails=OpenMeteo(client, made_up_trailheads(), clock=self.clock.now))
        parts.runner.performer, parts.runner.deps = performer, deps
        return replace(parts, performer=performer, deps=deps)

    # ---- driving -----------------------------------------------------------------------------------------------------

    def drive(self, later: bool = False) -> None:
        """Start the run unless there is one, and bring it to its end."""
        if later:  # whoever was before us counts for nothing any more
            self.clock.move()
        note(self.folder / "starts", json.dumps(self.books()))
        self.points.arm()
        for _ in range(TURNS):
            try:
                if self._turn():
                    break
            except StoreFailed as error:
                self._wait_for_store(error)
        else:
            raise AssertionError(f"the run goes round in circles: {self.parts.runner.get_state(self._run().thread_id)}")
        self.points.disarm()

    def _turn(self) -> bool:
        """One step of whoever stands beside the run: start it, advance it, decide; True when it has ended."""
        found = runs.recent(self.parts.database, 1)
        if not found:
            flow = self.parts.catalog.latest("plan_hike")
            wish = Start(form=form_of(flow, REQUEST), who=ANA, channel=HIKES)
            start_run(self.parts, flow, wish, "command-1", is_new=True)
            return False
        if found[0].ending:
            return True
        sleeps = False
        try:
            self.parts.runner.advance(found[0].thread_id)
        except ClaimLost:
            self.refused += 1
        except (NotNow, RunEnded):
            sleeps = True
        waiting = approvals.open_for(self.parts.database)
        for asked in waiting:
            self._decide(asked)
        if sleeps and not waiting:  # nobody can do anything before some time has passed
            self.naps += 1
            self.clock.move()
        return False

    def _decide(self, asked: ApprovalRow) -> None:
        if asked.kind == "review":
            decide(self.parts, asked.id, BEN, Wish(verdict="approve", version=asked.draft_version))
        elif asked.kind == "effect":
            decide(
                self.parts, asked.id, BEN, Wish(verdict="answer", value="sent" if self._went_out("sms") else "again")
            )
        else:
            decide(self.parts, asked.id, ANA, Wish(verdict="answer", value="45"))

    def _went_out(self, kind: str) -> bool:
        """What a person sees who looks at the group's phones."""
        return any(entry["kind"] == kind for entry in self.practice.outbox())

    def _wait_for_store(self, error: StoreFailed) -> None:
        """The store fails: mend it, note what had been called by then, and come back when the claim has lapsed."""
        self.trouble.mend()
        self.failures.append({"error": str(error), **self.books()})
        self.clock.move()

    # ---- looking -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave nothing behind."""
        self.parts.close()

    def _run(self) -> RunRow:
        return runs.recent(self.parts.database, 1)[0]

    def books(self) -> dict[str, int]:
        """Model calls by the database's books, and as they were made."""
        with self.parts.database.read() as session:
            recorded = sum(row.calls for row in session.exec(select(UsageRow)))
        return {"recorded": recorded, "made": len(lines(self.folder / "journal"))}

    def tell(self) -> dict[str, Any]:
        """Everything that must not depend on what happened on the way, and what may."""
        database, run = self.parts.database, self._run()
        effects = ledger.rows(database, run.thread_id)
        values = self.parts.runner.get_state(run.thread_id).values.to_json()
        receipts: Any = values.pop("receipts")  # they say who saw to it that a text went out
        asked = approvals.of_root(database, run.thread_id)
        clicks = [d for each in asked if each.kind != "effect" for d in approvals.decisions_of(database, each.id)]
        return {
            "ending": run.ending,
            "values": steady(values),
            "receipts": [[receipt["kind"], receipt["to"], receipt["status"]] for receipt in receipts],
            "sent": sorted([e["kind"], e["to"], e["body"]] for e in self.practice.outbox()),
            "effects": [[row.n, row.kind, row.status] for row in effects],
            "open": [run.claim, run.due_at and str(run.due_at), len(runs.recent(database, 9))],
            "asked": [[each.kind, each.status, each.taken] for each in asked if each.kind != "effect"],
            "clicks": [[d.verdict, d.counted] for d in clicks],
            "doubts": [str(each.answer) for each in asked if each.kind == "effect"],
            "faults": [str(fault) for fault in audit.verify(database)],
            "books": self.books(),
            "refused": self.refused,
            "failures": self.failures,
            "naps": self.naps,
            "labels": self.points.labels,
        }


def run(order: Mapping[str, Any], _meet: Any = None) -> JsonValue:
    """Live through an order and tell how it ended."""
    victim = Victim(order)
    victim.drive(bool(order.get("later")))
    told = victim.tell()
    if order.get("close"):  # a process that ends needs no tidying
        victim.close()
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(json.loads(sys.argv[1])), indent=1) + "\n")
