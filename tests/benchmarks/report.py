"""What was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks.figures import Figure, Target

PEERS = ("langgraph", "floor", "burr")


def machine(before: float, syncs: Sequence[float]) -> dict[str, Any]:
    """Where this was measured; before and after, the load and the milliseconds the disk takes for a write."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "langgraph": version("langgraph"),
        "burr": version("apache-burr"),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
        "sync_ms": [round(sync, 2) for sync in syncs],
    }


def as_json(figures: Sequence[Figure], about: dict[str, Any]) -> dict[str, Any]:
    """Everything."""
    met = all(target.met for figure in figures for target in figure.targets)
    return {"machine": about, "met": met, "figures": [figure.to_json() for figure in figures]}


def show(console: Console, figures: Sequence[Figure], about: dict[str, Any]) -> None:
    """The table."""
    table = Table(title="Measured side by side; medians, every step durable", title_justify="left")
    for name in ("workload", "store", "unit"):
        table.add_column(name)
    for name in ("ours", *PEERS):
        table.add_column(name, justify="right")
    for name in ("got", "target", "met", "note"):
        table.add_column(name)
    for figure in figures:
        table.add_row(*_cells(figure))
    console.print(table)
    load, sync = (" → ".join(map(str, about[name])) for name in ("load", "sync_ms"))
    console.print(
        f"{about['system']}, {about['processors']} processors, load {load}, {sync} ms to write to the disk; "
        f"Python {about['python']}, SQLite {about['sqlite']}, LangGraph {about['langgraph']}, Burr {about['burr']}."
    )


def _cells(figure: Figure) -> list[str]:
    numbers = [_number(figure.values[name]) if name in figure.values else "" for name in ("ours", *PEERS)]
    got = "\n".join(f"{_number(target.got)} {target.label}" for target in figure.targets)
    wanted = "\n".join(_wanted(target) for target in figure.targets)
    met = "\n".join("[green]yes[/]" if target.met else "[red]no[/]" for target in figure.targets)
    return [figure.workload, figure.store, figure.unit, *numbers, got, wanted, met, figure.note]


def _wanted(target: Target) -> str:
    return f"{'≥' if target.at_least else '≤'} {target.limit:g}"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
