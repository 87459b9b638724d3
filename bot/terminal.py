"""What the command line shows: as text for people, or as JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from bot.parts import Parts
from bot.people import UnknownPerson
from bot.pictures import request_of, run_log, spent_of
from graphs.engine.events import Chunk, EffectSettled, Event, StepCommitted
from storage import approvals, ledger, runs
from storage.tables import ApprovalRow, RunRow

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def as_json(data: Any) -> None:
    """Print JSON; times as ISO 8601 in UTC."""
    out.print(json.dumps(data, indent=2, default=_plain), soft_wrap=True, markup=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def named(parts: Parts, sentence: str) -> str:
    """A sentence that names people as `<@ID>`, with their names instead."""
    return re.sub(r"<@(\w+)>", lambda found: _name(parts, found[1]), sentence)


def _name(parts: Parts, user: str) -> str:
    try:
        return parts.people.profile(user).name
    except UnknownPerson:
        return user


def show_event(event: Event) -> None:
    """What a run does, line by line, on standard error."""
    if isinstance(event, StepCommitted) and event.nodes:
        err.print(f"  ✓ {', '.join(event.nodes)}", style="dim", markup=False)
    elif isinstance(event, Chunk):
        err.print(f"  {event.data}", style="dim", markup=False)
    elif isinstance(event, EffectSettled):
        err.print(f"  {event.kind} to {event.to}: {event.status}", style="dim", markup=False)


def status_of(parts: Parts, run: RunRow) -> str:
    """How the run stands, in one word."""
    asked = approvals.of_root(parts.database, run.root)
    return runs.status_of(run, asked, parts.runner.known, parts.database.now())


def run_data(parts: Parts, run: RunRow) -> dict[str, Any]:
    """A run with everything that was asked and sent for it."""
    spent = spent_of(parts, run)
    return {
        "thread_id": run.thread_id,
        "status": status_of(parts, run),
        "flow": run.flow,
        "version": run.version,
        "request": request_of(parts, run),
        "who": run.who,
        "channel": run.channel,
        "error": run.error,
        "steps": spent.steps,
        "calls": run.calls,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
        "approvals": [approval_data(asked) for asked in approvals.of_root(parts.database, run.root)],
        "effects": [
            {
                "key": ledger.key_of(row),
                "kind": row.kind,
                "to": row.address,
                "content": row.content,
                "status": row.status,
                "attempt": row.attempt,
                "receipt": row.receipt,
            }
            for row in ledger.rows(parts.database, run.root)
        ],
    }


def approval_data(asked: ApprovalRow) -> dict[str, Any]:
    """Something people are asked, with its draft as it stands."""
    return {
        "id": asked.id,
        "kind": asked.kind,
        "status": asked.status,
        "version": asked.draft_version,
        "subject": asked.subject,
        "draft": asked.draft,
        "answer": asked.answer,
        "facts": asked.ask.get("facts", {}) if isinstance(asked.ask, dict) else {},
        "releases": asked.ask.get("releases", []) if isinstance(asked.ask, dict) else [],
        "choices": asked.ask.get("choices", []) if isinstance(asked.ask, dict) else [],
        "created_at": asked.created_at,
        "settled_at": asked.settled_at,
        "expires_at": asked.expires_at,
    }


def show_run(parts: Parts, run: RunRow) -> None:
    """A run for people."""
    data = run_data(parts, run)
    out.print(f"[bold]{data['thread_id']}[/]  {data['flow']} v{data['version']}  [bold]{data['status']}[/]")
    out.print(f"asked by {data['who']} in {data['channel']}: ", data["request"], markup=False)
    if data["error"]:
        out.print(f"error: {data['error']}", markup=False)
    for asked in data["approvals"]:
        out.print(f"\n{asked['kind']} {asked['id']}  v{asked['version']}  {asked['status']}", style="bold")
        out.print(asked["subject"], markup=False)
        for name, value in {**asked["facts"], **asked["draft"]}.items():
            out.print(f"  {name}: {value}", markup=False)
        for choice in asked["choices"]:
            out.print(f"  {choice['value']}: {choice['label']}", markup=False)
    for effect in data["effects"]:
        said = (effect["receipt"] or {}).get("detail") or (effect["receipt"] or {}).get("ref", "")
        out.print(f"\n{effect['kind']} to {effect['to']}: {effect['status']} {said}", markup=False)


def trace_data(parts: Parts, run: RunRow) -> dict[str, Any]:
    """A run step by step."""
    log = run_log(parts, run)
    steps = [
        {
            "step": step.number,
            "node": step.node,
            "next": list(step.next),
            "tokens": step.tokens,
            "ms": round(step.took.total_seconds() * 1000, 1) if step.took else 0,
        }
        for step in log.steps
    ]
    spent = log.spent
    return {
        "thread_id": run.thread_id,
        "status": status_of(parts, run),
        "steps": steps,
        "calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "model": spent.model,
        "provider": spent.provider,
    }


def show_trace(parts: Parts, run: RunRow) -> None:
    """A run's steps as a table."""
    data = trace_data(parts, run)
    table = Table("step", "node", "next", "tokens", "ms", box=None, header_style="bold")
    for step in data["steps"]:
        table.add_row(str(step["step"]), step["node"], ", ".join(step["next"]), str(step["tokens"]), str(step["ms"]))
    out.print(table)
    tokens = data["input_tokens"] + data["output_tokens"]
    out.print(f"{data['status']}: {data['calls']} model calls, {tokens:,} tokens, {data['model']} ({data['provider']})")


def show_runs(parts: Parts, found: Sequence[RunRow]) -> None:
    """The newest runs as a table."""
    table = Table("run", "flow", "status", "asked by", "request", box=None, header_style="bold")
    for run in found:
        request = " ".join(request_of(parts, run).split())
        table.add_row(run.thread_id, run.flow, status_of(parts, run), run.who, request[:60])
    out.print(table)
