"""The command line: everything people can do in Slack, and what operators need, with `--json` for programs."""

from __future__ import annotations

import json as json_module
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import terminal
from bot.app import build
from bot.commands import Start, form_of, start_run
from bot.decisions import DraftRefused, Wish, decide
from bot.dispatch import advance
from bot.machines import answer_interrupt
from bot.operations import operations
from bot.options import As, AsJson, DatabaseUrl, Thread, settings_for
from bot.parts import Parts
from bot.people import UnknownPerson
from bot.process import has_browser, read_manifest, stop_on_signal
from bot.settings import SettingsError, load_settings
from bot.time_travel import time_travel
from graphs.catalog import UnknownFlow
from graphs.engine.errors import EngineError
from graphs.engine.events import Event
from graphs.flow import FormError
from graphs.ports import PortError
from storage import approvals, runs
from storage.database import DatabaseError
from storage.decisions import Outcome
from storage.tables import RunRow

app = typer.Typer(
    help="Agents draft, people decide, in Slack.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
practice = typer.Typer(help="The practice API, which stands in for the outside world.", no_args_is_help=True)
app.add_typer(practice, name="practice")
app.add_typer(time_travel)
app.add_typer(operations)

STARTING = 60.0  # seconds the sandbox's bot has to connect
POLL = 0.1  # seconds between two looks at a run that somebody else advances


def main() -> None:
    """Run the command line; what goes wrong is one sentence on standard error and exit code 1."""
    try:
        app()
    except (SettingsError, DatabaseError, EngineError, PortError, UnknownFlow, UnknownPerson) as error:
        terminal.err.print(f"signoff: {error}", style="red", markup=False)
        raise SystemExit(1) from None


@contextmanager
def _parts(database: str = "") -> Iterator[Parts]:
    parts = build(settings_for(database))
    try:
        yield parts
    finally:
        parts.close()


def _fail(sentence: str) -> None:
    terminal.err.print(f"signoff: {sentence}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1)


def _run(parts: Parts, thread_id: str) -> RunRow:
    run = runs.find(parts.database, thread_id)
    if run is None or run.root != run.thread_id:
        _fail(f"There is no run {thread_id!r}; `signoff runs` lists them.")
    assert run is not None
    return run


@app.command()
def start(
    flow: Annotated[str, typer.Argument(help="The flow's command, such as plan-hike.")],
    text: Annotated[str, typer.Argument(help="What you want, as after the slash command.")],
    who: As,
    channel: Annotated[str, typer.Option(help="The channel's id; the flow's own channel unless given.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Return when the run pauses or ends.")] = False,
    pause_before: Annotated[list[str] | None, typer.Option(help="Stop before this node.")] = None,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Start a run, as its slash command does."""
    with _parts(database) as parts:
        found = parts.catalog.by_command(flow)
        wish = Start(
            form=form_of(found, text),
            who=who,
            team=parts.people.profile(who).team,
            channel=channel or parts.settings.hikes_channel,
            pause_before=tuple(pause_before or ()),
        )
        try:
            thread_id = start_run(parts, found, wish)
        except FormError as error:
            _fail(str(error))
        if wait:
            _go_on(parts, thread_id, emit=None if json else terminal.show_event)
        run = _run(parts, thread_id)
        if json:
            terminal.as_json({"thread_id": thread_id, "status": terminal.status_of(parts, run)})
        else:
            terminal.show_run(parts, run)


@app.command(name="decide")
def decide_command(
    approval: Annotated[str, typer.Argument(help="The approval's id, as `signoff show` names it.")],
    verdict: Annotated[str, typer.Argument(help="approve, edit, save, decline, changes or undo.")],
    who: As,
    values: Annotated[list[str] | None, typer.Option("--set", help="FIELD=VALUE, for edit and save.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for decline and changes.")] = "",
    version: Annotated[int | None, typer.Option(help="The draft version you saw; the current one by default.")] = None,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Decide about a draft; the run goes on here if nobody else advances it."""
    if verdict not in ("approve", "edit", "save", "decline", "changes", "undo"):
        _fail(f"{verdict!r} is no verdict; use approve, edit, save, decline, changes or undo.")
    edits = dict(_pair(value) for value in values or [])
    wish = Wish(verdict=verdict, version=version, edits=edits, reason=reason, via="cli")  # type: ignore[arg-type]
    with _parts(database) as parts:
        _decide(parts, approval, who, wish, json)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        _fail(f"--set takes FIELD=VALUE, not {text!r}.")
    return name, value


@app.command()
def answer(
    where: Annotated[
        list[str], typer.Argument(metavar="[THREAD] INTERRUPT VALUE", help="As `signoff show` names them.")
    ],
    who: As,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Answer a question; with the run's thread id also a signal, which a machine may give (VALUE is then JSON)."""
    if len(where) not in (2, 3):
        _fail("answer takes INTERRUPT VALUE, or THREAD INTERRUPT VALUE.")
    *thread, approval, value = where
    with _parts(database) as parts:
        if thread and (signal := approvals.find(parts.database, approval)) and signal.kind == "signal":
            answer_interrupt(parts, thread[0], approval, _json_or_text(value), who)
            _go_on(parts, thread[0], only_if_due=True)
            run = _run(parts, thread[0])
            terminal.as_json(terminal.run_data(parts, run)) if json else terminal.show_run(parts, run)
            return
        asked = approvals.find(parts.database, approval)
        several = asked is not None and isinstance(asked.ask, dict) and asked.ask.get("kind") == "choices"
        wish = Wish(verdict="answer", value=[*value.split(",")] if several else value, via="cli")
        _decide(parts, approval, who, wish, json)


def _json_or_text(text: str) -> Any:
    try:
        return json_module.loads(text)
    except ValueError:
        return text


def _decide(parts: Parts, approval: str, who: str, wish: Wish, json: bool) -> None:
    try:
        outcome = decide(parts, approval, who, wish)
    except DraftRefused as error:
        _fail(str(error))
    if outcome.result != "refused":
        _go_on(parts, outcome.root, only_if_due=True)
    run = runs.find(parts.database, outcome.root)
    status = terminal.status_of(parts, run) if run else ""
    if json:
        terminal.as_json({**_outcome_data(outcome), "run": {"thread_id": outcome.root, "status": status}})
    elif outcome.result != "refused":
        terminal.out.print(f"{terminal.named(parts, outcome.sentence)} The run is {status}.", markup=False)
    if outcome.result == "refused":
        if not json:
            terminal.err.print(f"signoff: {terminal.named(parts, outcome.sentence)}", style="red", markup=False)
        raise typer.Exit(1)


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "result": outcome.result,
        "status": outcome.status,
        "version": outcome.version,
        "refusal": outcome.refusal,
        "sentence": outcome.sentence,
        "have": outcome.have,
        "needed": outcome.needed,
    }


def _go_on(
    parts: Parts, thread_id: str, only_if_due: bool = False, emit: Callable[[Event], None] | None = None
) -> None:
    """Advance a run, or wait for whoever does, until it pauses or ends."""
    while True:
        run = runs.find(parts.database, thread_id)
        status = terminal.status_of(parts, run) if run else "unknown"
        if status not in ("queued", "running"):
            return
        if status == "queued" and advance(parts.runner, thread_id, emit) is not None:
            continue
        if only_if_due and status == "running":
            return
        time.sleep(POLL)


@app.command(name="runs")
def runs_command(
    who: Annotated[str | None, typer.Option("--as", help="Only this person's.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    stuck: Annotated[
        bool, typer.Option("--stuck", help="Only runs that no process like this one can go on with.")
    ] = False,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """List the newest runs."""
    with _parts(database) as parts:
        known = parts.runner.known
        found = runs.stuck(parts.database, known) if stuck else runs.recent(parts.database, limit, who)
        if json:
            terminal.as_json([terminal.run_data(parts, run) for run in found])
        else:
            terminal.show_runs(parts, found)


@app.command()
def show(thread: Thread, database: DatabaseUrl = "", json: AsJson = False) -> None:
    """Show a run: what was asked, what people decide, what went out."""
    with _parts(database) as parts:
        run = _run(parts, thread)
        if json:
            terminal.as_json(terminal.run_data(parts, run))
        else:
            terminal.show_run(parts, run)


@app.command()
def trace(thread: Thread, database: DatabaseUrl = "", json: AsJson = False) -> None:
    """Show a run step by step: node, what came next, tokens, milliseconds."""
    with _parts(database) as parts:
        run = _run(parts, thread)
        if json:
            terminal.as_json(terminal.trace_data(parts, run))
        else:
            terminal.show_trace(parts, run)


@app.command()
def resume(thread: Thread, database: DatabaseUrl = "", json: AsJson = False) -> None:
    """Go on with a run that is due, held before a node, halted or failed; it never answers for a person."""
    with _parts(database) as parts:
        status = terminal.status_of(parts, _run(parts, thread))
        if status == "failed":
            parts.checkpointer.reopen(thread)
        for gate in parts.checkpointer.interrupts(thread) if status == "waiting" else ():
            if gate.task == "*":
                parts.checkpointer.answer(thread, gate.id, None)
        _go_on(parts, thread)
        run = _run(parts, thread)
        if json:
            terminal.as_json(terminal.run_data(parts, run))
        else:
            terminal.show_run(parts, run)


@app.command()
def sandbox(
    port: Annotated[int | None, typer.Option(help="The page's port; 0 takes a free one.")] = None,
    folder: Annotated[Path, typer.Option(help="Where its files are kept.")] = Path(".sandbox"),
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget everything first.")] = False,
) -> None:
    """Try everything on this machine: a small Slack in the browser, the bot, a simulated model, practice texts."""
    from bot.sandbox.town import Town, TownError

    port = load_settings().sandbox_port if port is None else port
    try:
        with stop_on_signal() as stop, Town(folder.resolve(), read_manifest(), port, fresh=fresh) as town:
            town.start()
            if not town.connected(STARTING, stop):
                return
            told = f"Signoff's sandbox: [bold]{town.url}[/]  (Ctrl-C stops it; the bot's log: {folder}/bot.log)"
            terminal.out.print(told, soft_wrap=True)
            if browser and has_browser():
                webbrowser.open(town.url)
            stop.wait()
    except TownError as error:
        _fail(str(error))


@app.command()
def serve(
    http: Annotated[int | None, typer.Option("--http", help="Take Slack's requests over HTTP on this port.")] = None,
    database: DatabaseUrl = "",
) -> None:
    """Run the bot: in Socket Mode, or over HTTP with `/slack/events` and `/healthz`."""
    from bot.serving import Bot, serve_http

    settings = settings_for(database, **({"http_port": http, "slack_app_token": None} if http is not None else {}))
    bot = Bot(settings)
    with stop_on_signal() as stop:
        bot.start()
        try:
            if settings.slack == "http":
                serve_http(bot, stop)
            else:
                stop.wait()
        finally:
            bot.stop()


@practice.command()
def outbox(database: DatabaseUrl = "", json: AsJson = False) -> None:
    """What really went out: the texts and posts that the practice API received."""
    with _parts(database) as parts:
        sent = [*parts.practice.get("/messages").json()["messages"], *parts.practice.get("/posts").json()["posts"]]
        sent.sort(key=lambda entry: str(entry["at"]))
        if json:
            terminal.as_json(sent)
            return
        for entry in sent:
            terminal.out.print(f"{entry['at']}  {entry['kind']} to {entry['to']}: {entry['body']}", markup=False)


if __name__ == "__main__":
    main()
