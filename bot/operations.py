"""Commands for operators: look, migrate, hold, check the audit trail."""

from __future__ import annotations

from typing import Annotated

import typer
import yaml

from bot import terminal
from bot.app import build
from bot.doctor import examine
from bot.options import As, AsJson, DatabaseUrl, Thread, settings_for
from bot.process import read_manifest, with_request_urls
from bot.settings import explain
from storage import audit, runs, schema, switches
from storage.database import open_database

operations = typer.Typer()
audit_app = typer.Typer(help="The audit trail.", no_args_is_help=True)

MARKS = {"ok": "[green]✓[/]", "note": "[yellow]·[/]", "wrong": "[red]✗[/]"}


@operations.command()
def doctor(database: DatabaseUrl = "", json: AsJson = False) -> None:
    """Say what is missing and how to put it right; exit code 1 if something is wrong."""
    settings = settings_for(database)
    found = examine(settings, read_manifest())
    explained = explain(settings)
    if json:
        terminal.as_json(
            {
                "findings": [{n: getattr(one, n) for n in ("about", "state", "says", "advice")} for one in found],
                "settings": [{n: getattr(one, n) for n in ("name", "value", "source")} for one in explained],
            }
        )
    else:
        for one in found:
            terminal.out.print(f"{MARKS[one.state]} [bold]{one.about}[/] ", end="")
            terminal.out.print(f"{one.says} {one.advice}", markup=False)
        for line in explained:
            if line.source != "default":
                terminal.out.print(f"  {line.name} = {line.value}  ({line.source})", markup=False)
    if any(one.state == "wrong" for one in found):
        raise typer.Exit(1)


@operations.command()
def migrate(database: DatabaseUrl = "") -> None:
    """Bring the database up to this version."""
    url = settings_for(database).database_url
    schema.migrate(url)
    open_database(url, migrate=False).close()
    terminal.out.print("The database is up to date.")


@operations.command()
def manifest(
    http: Annotated[str, typer.Option(help="Your server's address, for requests over HTTP.")] = "",
) -> None:
    """Print the app's manifest, for Slack's *Create an app from a manifest*."""
    found = with_request_urls(read_manifest(), http) if http else read_manifest()
    terminal.out.print(yaml.safe_dump(found, sort_keys=False), end="", markup=False, soft_wrap=True)


@operations.command()
def hold(who: As, reason: Annotated[str, typer.Option(help="Why.")] = "", database: DatabaseUrl = "") -> None:
    """Stop every effect at once; runs and decisions go on."""
    with_database = open_database(settings_for(database).database_url)
    switches.hold(with_database, who, reason)
    with_database.close()
    terminal.out.print("Nothing goes out until `signoff release`.")


@operations.command()
def release(who: As, database: DatabaseUrl = "") -> None:
    """Let effects out again."""
    with_database = open_database(settings_for(database).database_url)
    switches.release(with_database, who)
    with_database.close()
    terminal.out.print("Effects go out again.")


@operations.command()
def cancel(thread: Thread, who: As, database: DatabaseUrl = "") -> None:
    """End a run: nothing more of it is asked or sent."""
    with_database = open_database(settings_for(database).database_url)
    runs.cancel(with_database, thread, who)
    with_database.close()
    terminal.out.print("Cancelled.")


@audit_app.command()
def verify(
    thread: Annotated[str | None, typer.Argument(help="One run only.")] = None, database: DatabaseUrl = ""
) -> None:
    """Check the chain of every run: exit code 1 if a row was changed, removed or cut off."""
    with_database = open_database(settings_for(database).database_url)
    faults = audit.verify(with_database, thread)
    with_database.close()
    for fault in faults:
        terminal.err.print(str(fault), style="red", markup=False)
    if faults:
        raise typer.Exit(1)
    terminal.out.print("The audit trail is whole.")


@audit_app.command(name="show")
def show_audit(
    thread: Thread,
    database: DatabaseUrl = "",
    json: AsJson = False,
) -> None:
    """Show what happened to a run, row by row."""
    parts = build(settings_for(database))
    found = audit.rows(parts.database, thread)
    parts.close()
    if json:
        terminal.as_json([{"seq": r.seq, "kind": r.kind, "data": r.data, "at": r.at, "hash": r.hash} for r in found])
        return
    for row in found:
        terminal.out.print(f"{row.seq:4} {row.at:%Y-%m-%d %H:%M:%S} {row.kind}: {row.data}", markup=False)


operations.add_typer(audit_app, name="audit")
