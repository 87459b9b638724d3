"""Commands that look at a run's past, start again from it, and draw where it stands."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer

from bot import moving, terminal
from bot.app import build
from bot.options import As, AsJson, DatabaseUrl, Thread, settings_for
from bot.parts import Parts
from graphs.engine.errors import EffectsPending
from storage import ledger, memories, runs

time_travel = typer.Typer()
memory_app = typer.Typer(help="What flows remember beyond their runs.", no_args_is_help=True)

Step = Annotated[int, typer.Option(min=0, help="The step to go on from, as `signoff history` numbers it.")]
Values = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE to change in the state; VALUE is JSON or text.")
]


def _open(database: str) -> Parts:
    return build(settings_for(database))


@time_travel.command()
def history(
    thread: Thread,
    limit: Annotated[int | None, typer.Option(min=1, help="How many steps.")] = None,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Show every checkpoint of a run, newest first, with what it changed."""
    parts = _open(database)
    found = list(parts.runner.get_state_history(thread, limit=limit))
    parts.close()
    if json:
        keys = ("step", "source", "next", "author", "meta")
        terminal.as_json([{k: getattr(s, k) for k in keys} | {"values": s.values.to_json()} for s in found])
        return
    for snapshot in found:
        came = ", ".join(name for name, _ms in (snapshot.meta or {}).get("ran", ())) or snapshot.source
        terminal.out.print(f"{snapshot.step:4}  {came}  → {', '.join(snapshot.next) or 'end'}", markup=False)


@time_travel.command()
def fork(
    thread: Thread, step: Step, who: As, values: Values = None, database: DatabaseUrl = "", json: AsJson = False
) -> None:
    """Start another run from a step of this one: earlier nodes do not run again, later questions are asked again."""
    parts = _open(database)
    new = parts.runner.fork(thread, step, _update(values), author=who)
    parts.close()
    _say(new, json)


@time_travel.command()
def rewind(
    thread: Thread, step: Step, who: As, values: Values = None, database: DatabaseUrl = "", json: AsJson = False
) -> None:
    """Cancel a run and start again from one of its steps; refused while something of it is being sent."""
    parts = _open(database)
    if any(row.status in ("sending", "unknown") for row in ledger.rows(parts.database, thread)):
        parts.close()
        raise EffectsPending("Something of this run is being sent or in doubt: wait, or answer the question about it.")
    run = runs.find(parts.database, thread)
    if run is not None and not run.ending:
        runs.cancel(parts.database, thread, who)
    new = parts.runner.fork(thread, step, _update(values), author=who)
    parts.close()
    _say(new, json)


def _update(values: list[str] | None) -> dict[str, Any]:
    update: dict[str, Any] = {}
    for text in values or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set takes KEY=VALUE, not {text!r}.")
        try:
            update[name] = json_module.loads(value)
        except ValueError:
            update[name] = value
    return update


def _say(thread_id: str, json: bool) -> None:
    if json:
        terminal.as_json({"thread_id": thread_id})
    else:
        terminal.out.print(f"{thread_id} goes on from there; `signoff resume {thread_id}` advances it here.")


@time_travel.command(name="migrate-run")
def migrate_run(
    thread: Thread,
    version: Annotated[int, typer.Option("--to", help="The version of the flow to move it to.")],
    who: As,
    database: DatabaseUrl = "",
) -> None:
    """Move a run to another version of its flow, whose author has supplied how the state is mapped."""
    parts = _open(database)
    moving.move_run(parts, thread, version, who)
    parts.close()
    terminal.out.print(f"{thread} goes on as version {version}.")


@time_travel.command()
def draw(
    flow: Annotated[str, typer.Argument(help="The flow's command or name, such as plan-hike.")],
    thread: Annotated[str, typer.Option(help="Mark where this run stands.")] = "",
    database: DatabaseUrl = "",
) -> None:
    """Print a flow as a Mermaid flowchart."""
    parts = _open(database)
    found = parts.catalog.by_command(flow.replace("_", "-"))
    here = parts.runner.get_state(thread).next if thread else ()
    parts.close()
    terminal.out.print(found.graph.draw_mermaid(here), markup=False, end="", soft_wrap=True)


@memory_app.command(name="list")
def list_memories(
    namespace: Annotated[str, typer.Argument(help="FLOW:CHANNEL; all unless given.")] = "",
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Show what is remembered."""
    parts = _open(database)
    found = memories.listing(parts.database, namespace)
    parts.close()
    if json:
        terminal.as_json([{"namespace": m.namespace, "key": m.key, "value": m.value, "at": m.at} for m in found])
        return
    for memory in found:
        terminal.out.print(f"{memory.namespace}  {memory.key}: {memory.value}", markup=False)


@memory_app.command()
def forget(
    namespace: Annotated[str, typer.Argument(help="FLOW:CHANNEL")],
    key: Annotated[str, typer.Argument(help="What to forget.")],
    database: DatabaseUrl = "",
) -> None:
    """Forget one thing."""
    parts = _open(database)
    memories.forget(parts.database, namespace, key)
    parts.close()
    terminal.out.print("Forgotten.")


time_travel.add_typer(memory_app, name="memory")
