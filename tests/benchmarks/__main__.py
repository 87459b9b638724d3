"""`python -m tests.benchmarks`: measure everything, or one workload."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.benchmarks import bot, engine, floor, report
from tests.benchmarks.figures import Figure
from tests.benchmarks.places import Places, places

WORKLOADS: Mapping[str, Callable[[Places, bool], Iterator[Figure]]] = {**engine.WORKLOADS, **bot.WORKLOADS}


def measure(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    only: Annotated[list[str] | None, typer.Option(help=f"Out of {', '.join(WORKLOADS)}.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, rougher figures.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where databases are made; in memory nothing but computing is measured.")
    ] = None,
) -> None:
    """Measure the engine beside LangGraph and the bare database, and the bot as a process of its own."""
    if unknown := set(only or ()) - WORKLOADS.keys():
        raise typer.BadParameter(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    before, figures = os.getloadavg()[0], list[Figure]()
    progress = Console(stderr=True)
    with places(folder) as found, progress.status("Measuring") as status:
        syncs = [floor.sync(found)]
        for name, workload in WORKLOADS.items():
            if not only or name in only:
                status.update(f"Measuring: {name}")
                figures += workload(found, quick)
        syncs.append(floor.sync(found))
    about = report.machine(before, syncs)
    if as_json:
        typer.echo(json.dumps(report.as_json(figures, about), indent=2))
    else:
        report.show(Console(), figures, about)


if __name__ == "__main__":
    typer.run(measure)
