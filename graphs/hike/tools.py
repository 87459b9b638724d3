"""The hike planner's tools, each checked against what is settled: the club's list and the day of the hike."""

from __future__ import annotations

from datetime import date

from pydantic import JsonValue

from graphs.agent import ToolError, Tooling
from graphs.engine import Runtime, Value
from graphs.hike.prompts import listed, shown_forecast
from graphs.hike.rules import by_id, quoted_id
from graphs.hike.state import Hike
from graphs.ports import Deps, Forecast, Trailhead


class NoArguments(Value):
    """What `list_trailheads` takes."""


class ForecastArguments(Value):
    """What `forecast` takes: a trailhead's id and an ISO date."""

    trailhead: str
    date: str


def tools_for(state: Hike, runtime: Runtime[Deps], found: dict[str, Forecast]) -> list[Tooling]:
    """The tools of one turn; the forecasts they look up are put into `found`, by trailhead id."""

    def list_trailheads(_: NoArguments) -> JsonValue:
        return [listed(trailhead) for trailhead in state.trailheads]

    def forecast(wanted: ForecastArguments) -> JsonValue:
        trailhead = by_id(state.trailheads, wanted.trailhead)
        if trailhead is None:
            raise ToolError(f"{quoted_id(wanted.trailhead)} is no id of the club's list; call list_trailheads.")
        if wanted.date != state.day:
            raise ToolError(f"The hike is on {state.day}; ask for that date.")
        if trailhead.id not in found:
            found[trailhead.id] = _look_up(runtime, trailhead, date.fromisoformat(state.day))
        return shown_forecast(found[trailhead.id], trailhead, state.limits)

    return [
        Tooling(
            "list_trailheads", "The club's trailheads: id, name, length, drive, notes.", NoArguments, list_trailheads
        ),
        Tooling(
            "forecast", "The weather at one trailhead on the day (YYYY-MM-DD), by hour.", ForecastArguments, forecast
        ),
    ]


def _look_up(runtime: Runtime[Deps], trailhead: Trailhead, day: date) -> Forecast:
    def call() -> Forecast:
        runtime.stream(f"Looking up the weather at {trailhead.name}")
        try:
            return runtime.deps.trails.forecast(trailhead.id, day)
        except LookupError as error:
            raise ToolError(str(error.args[0] if error.args else error)) from error

    return runtime.once(f"forecast:{trailhead.id}", call, kind=Forecast)
