"""Made-up weather in Open-Meteo's format: the same place and day always get the same, and some mornings are wet."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from graphs.ports import Trailhead

HORIZON_DAYS, PAST_DAYS = 16, 92
COLUMNS = {"temperature_2m": "°C", "precipitation_probability": "%", "weather_code": "wmo code"}


class Refused(Exception):
    """A query Open-Meteo answers with 400; the message is its `reason`."""


def forecast(query: Mapping[str, str], trailheads: Sequence[Trailhead], now: datetime) -> dict[str, Any]:
    """The reply to `GET /v1/forecast` for this query. Raises `Refused`."""
    latitude, longitude = _coordinate(query, "latitude", 90), _coordinate(query, "longitude", 180)
    zone = _zone(query.get("timezone", "GMT"), latitude, longitude, trailheads)
    columns = [name for name in query.get("hourly", "").split(",") if name]
    for name in columns:
        if name not in COLUMNS:
            raise Refused(f"Cannot initialize SurfacePressureAndHeightVariable from invalid String value {name}")
    offset = now.astimezone(zone).utcoffset() or timedelta(0)
    hours = _hours(_days(query, (now + offset).date()), offset)
    unix = query.get("timeformat", "iso8601") == "unixtime"
    label = (lambda t: int(t.timestamp())) if unix else (lambda t: f"{t + offset:%Y-%m-%dT%H:%M}")
    weather = [_weather(latitude, longitude, t + offset, now + offset) for t in hours]
    return {
        "latitude": round(latitude, 2),
        "longitude": round(longitude, 2),
        "generationtime_ms": 0.1,
        "utc_offset_seconds": int(offset.total_seconds()),
        "timezone": zone.key,
        "timezone_abbreviation": f"GMT{offset.total_seconds() / 3600:+g}" if offset else "GMT",
        "elevation": 300.0,
        "hourly_units": {"time": "unixtime" if unix else "iso8601", **{name: _unit(name, query) for name in columns}},
        "hourly": {
            "time": [label(t) for t in hours],
            **{name: [_value(name, w[name], query) for w in weather] for name in columns},
        },
    }


def _coordinate(query: Mapping[str, str], name: str, limit: int) -> float:
    if name not in query:
        raise Refused(f"Parameter '{name}' is required")
    try:
        value = float(query[name])
    except ValueError:
        raise Refused(f"Value of type 'Float' required for key '{name}'.") from None
    if not abs(value) <= limit:
        raise Refused(f"{name.capitalize()} must be in range of -{limit} to {limit}°. Given: {value}.")
    return value


def _zone(name: str, latitude: float, longitude: float, trailheads: Sequence[Trailhead]) -> ZoneInfo:
    """The zone asked for; for `auto` that of the nearest trailhead."""
    if name == "auto":
        near = min(trailheads, key=lambda t: math.dist((t.latitude, t.longitude), (latitude, longitude)), default=None)
        name = near.time_zone if near else "GMT"
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Refused("Invalid timezone") from None


def _days(query: Mapping[str, str], today: date) -> Sequence[date]:
    earliest, latest = today - timedelta(days=PAST_DAYS), today + timedelta(days=HORIZON_DAYS - 1)
    if "start_date" not in query:
        return [today + timedelta(days=n) for n in range(_count(query.get("forecast_days", "7")))]
    bounds = []
    for name in ("start_date", "end_date"):
        try:
            day = date.fromisoformat(query.get(name, ""))
        except ValueError:
            raise Refused(f"Invalid date format for parameter '{name}'. Make sure to use 'YYYY-MM-DD'") from None
        if not earliest <= day <= latest:
            raise Refused(f"Parameter '{name}' is out of allowed range from {earliest} to {latest}")
        bounds.append(day)
    if bounds[1] < bounds[0]:
        raise Refused("Start date must be larger or equals than end date")
    return [bounds[0] + timedelta(days=n) for n in range((bounds[1] - bounds[0]).days + 1)]


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > HORIZON_DAYS:
        raise Refused(f"Forecast days is invalid. Allowed range 0 to {HORIZON_DAYS}. Given {text}.")
    return int(text)


def _hours(days: Sequence[date], offset: timedelta) -> list[datetime]:
    """One offset, today's, for the whole range: the real server does the same, also across a change of the clocks."""
    midnights = [datetime(day.year, day.month, day.day, tzinfo=UTC) - offset for day in days]
    return [midnight + timedelta(hours=hour) for midnight in midnights for hour in range(24)]


def _weather(latitude: float, longitude: float, local: datetime, today: datetime) -> Mapping[str, float | None]:
    """Places take turns: one day in three is dry, one has a wet morning, one has showers in the afternoon."""
    place = round(latitude * 100) + round(longitude * 100)
    pattern = (place + local.toordinal()) % 3
    chance = _noise(place, local) * 16
    wet = (pattern == 1 and local.hour <= 10) or (pattern == 2 and local.hour >= 14)
    if wet:
        chance = 45 + _noise(place, local) * 45
    code = (61 if chance < 70 else 63) if wet else (2 if chance < 8 else 3)
    # The last hours of the horizon are not computed yet, and a single hour of the night can be missing.
    unknown = local.date() == today.date() + timedelta(days=HORIZON_DAYS - 1) and local.hour >= 18
    missing = unknown or (local.hour == 3 and pattern == 0)
    season = 12 - 9 * math.cos((local.timetuple().tm_yday - 20) / 365 * math.tau)
    warmth = season + 5 * math.sin((local.hour - 9) / 24 * math.tau)
    return {
        "temperature_2m": None if unknown else round(warmth, 1),
        "precipitation_probability": None if missing else round(chance),
        "weather_code": None if unknown else code,
    }


def _noise(place: int, local: datetime) -> float:
    """A number from 0 up to 1 that depends on the place and the hour alone."""
    return hashlib.sha256(f"{place} {local:%Y-%m-%dT%H}".encode()).digest()[0] / 256


def _unit(name: str, query: Mapping[str, str]) -> str:
    return "°F" if name == "temperature_2m" and query.get("temperature_unit") == "fahrenheit" else COLUMNS[name]


def _value(name: str, value: float | None, query: Mapping[str, str]) -> float | None:
    if value is not None and _unit(name, query) == "°F":
        return round(value * 9 / 5 + 32, 1)
    return value
