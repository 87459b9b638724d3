"""Made-up weather in Open-Meteo's format."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from bot.adapters.practice_weather import Refused, forecast
from bot.adapters.trailheads import made_up_trailheads
from tests.bot.adapters.clock import StillClock

TRAILHEADS = made_up_trailheads()
NOW = StillClock()()
ALL = "temperature_2m,precipitation_probability,weather_code"


def ask(when: datetime | None = None, /, **changes: str) -> dict[str, Any]:
    query = {"latitude": "45.512", "longitude": "-122.351", "hourly": ALL, "timezone": "auto", **changes}
    return forecast({k: v for k, v in query.items() if v}, TRAILHEADS, when or NOW)


def day(text: str) -> dict[str, str]:
    return {"start_date": text, "end_date": text}


def test_a_place_and_day_always_have_the_same_weather() -> None:
    assert ask(**day("2026-12-05"))["hourly"] == ask(NOW + timedelta(days=1), **day("2026-12-05"))["hourly"]
    assert ask(**day("2026-12-05"))["hourly"] != ask(**day("2026-12-06"))["hourly"]
    assert ask(**day("2026-12-05"))["hourly"] != ask(latitude="45.6", **day("2026-12-05"))["hourly"]


def test_the_zone_is_that_of_the_nearest_trailhead() -> None:
    assert ask()["timezone"] == "America/Los_Angeles"
    assert ask(latitude="43.7", longitude="-117.2")["timezone"] == "America/Boise"
    assert ask(timezone="Europe/Paris")["timezone"] == "Europe/Paris"
    assert forecast({"latitude": "1", "longitude": "1", "timezone": "auto"}, [], NOW)["timezone"] == "GMT"


def test_times_are_local_labels_or_seconds() -> None:
    labels, seconds = ask(**day("2026-12-05")), ask(timeformat="unixtime", **day("2026-12-05"))
    assert labels["hourly"]["time"][0] == "2026-12-05T00:00"
    assert labels["utc_offset_seconds"] == -8 * 3600
    assert seconds["hourly"]["time"][0] == int(datetime(2026, 12, 5, 8, tzinfo=UTC).timestamp())
    assert seconds["hourly_units"]["time"] == "unixtime"
    assert len(labels["hourly"]["time"]) == 24


def test_one_offset_holds_for_the_whole_range_as_on_the_real_server() -> None:
    before = datetime(2026, 10, 29, 12, tzinfo=UTC)
    reply = ask(before, timeformat="unixtime", **day("2026-11-02"))
    assert reply["hourly"]["time"][0] == int(datetime(2026, 11, 2, 7, tzinfo=UTC).timestamp())


def test_every_day_some_mornings_are_dry_and_some_are_wet() -> None:
    for ahead in range(14):
        text = (NOW.date() + timedelta(days=ahead)).isoformat()
        wet = []
        for trailhead in TRAILHEADS:
            where = {"latitude": str(trailhead.latitude), "longitude": str(trailhead.longitude)}
            chances = ask(**where, **day(text))["hourly"]["precipitation_probability"]
            wet.append(max(chances[8:11]) >= 30)
        assert any(wet)
        assert not all(wet[:4])


def test_some_hours_are_unknown() -> None:
    last = (NOW.date() + timedelta(days=15)).isoformat()
    hourly = ask(**day(last))["hourly"]
    assert hourly["temperature_2m"][18:] == [None] * 6
    assert hourly["weather_code"][17] is not None


def test_fahrenheit_is_served_where_asked_for() -> None:
    warm, cold = ask(temperature_unit="fahrenheit"), ask()
    assert warm["hourly_units"]["temperature_2m"] == "°F"
    assert warm["hourly"]["temperature_2m"][0] == pytest.approx(cold["hourly"]["temperature_2m"][0] * 1.8 + 32, abs=0.1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"latitude": ""}, "required"),
        ({"latitude": "north"}, "Float"),
        ({"latitude": "91"}, "range"),
        ({"longitude": "nan"}, "range"),
        ({"hourly": "luck"}, "invalid String value luck"),
        ({"timezone": "Mars/Base"}, "Invalid timezone"),
        ({"timezone": "../etc"}, "Invalid timezone"),
        ({"start_date": "tomorrow"}, "Invalid date"),
        ({"start_date": "2026-12-05"}, "'end_date'"),
        ({"start_date": "2026-12-06", "end_date": "2026-12-05"}, "Start date"),
        ({"forecast_days": "17"}, "Allowed range"),
    ],
)
def test_a_wrong_query_is_refused_as_there(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        ask(**changes)


def test_the_horizon_is_sixteen_days() -> None:
    today = date(2026, 12, 3)
    assert ask(**day(str(today + timedelta(days=15))))
    with pytest.raises(Refused, match="'start_date' is out of allowed range from 2026-09-02 to 2026-12-18"):
        ask(**day(str(today + timedelta(days=16))))
    assert len(ask(forecast_days="3")["hourly"]["time"]) == 72
