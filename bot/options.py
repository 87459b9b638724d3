"""Arguments and options that several commands take, each explained once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bot.logs import set_up_logs
from bot.settings import Settings, load_settings

DatabaseUrl = Annotated[
    str, typer.Option("--database", envvar="SIGNOFF_DATABASE_URL", help="sqlite:///file.db or postgresql://host/name")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
As = Annotated[str, typer.Option("--as", help="Who does it: a Slack user id such as U0ANA0001.")]
Thread = Annotated[str, typer.Argument(help="The run's thread id.")]


def settings_for(database: str, **given: Any) -> Settings:
    """All settings, with another database if one was named, and `given` over all.

    From here on log lines go where these say, and never among what a command prints.
    """
    settings = load_settings(**({"database_url": database} if database else {}), **given)
    set_up_logs(settings)
    return settings
