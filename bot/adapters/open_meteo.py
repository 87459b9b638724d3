"""Open-Meteo behind the `Trails` port: one local day of hourly weather at a trailhead."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import httpx2

from bot.adapters.outgoing import Clock, plain, retry_after, utc_now
from graphs.ports import Busy, Forecast, Hour, Misconfigured, Nonsense, Trailhead

PUBLIC_URL = "https://api.open-meteo.com"
ATTRIBUTION = "Weather data by Open-Meteo.com (CC BY 4.0)"
CACHE_SECONDS = 900.0
FIRST_HOUR, LAST_HOUR = 6, 18

_UNITS = {"temperature_2m": "°C", "precipitation_probability": "%", "weather_code": "wmo code"}
_SKIES = {
    0: "clear", 1: "mostly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "freezing fog",
    51: "light drizzle", 53: "drizzle", 55: "heavy drizzle", 56: "freezing drizzle", 57: "freezing drizzle",
    61: "light rain", 63: "rain", 65: "heavy rain", 66: "freezing rain", 67: "freezing rain",
    71: "light snow", 73: "snow", 75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers",
    82: "heavy showers", 85: "snow showers", 86: "heavy snow showers", 95: "thunderstorm",
    96: "thunderstorm with hail", 99: "thunderstorm with hail",
}  # fmt: skip


class OpenMeteo:
    """The `Trails` port over an `httpx2.Client` whose base URL is the server's.

    Forecasts are kept for `cache_seconds`; one request goes out at a time, as the server serves no more per address,
    and none while it has asked us to wait.
    """

    def __init__(
        self,
        client: httpx2.Client,
        trailheads: Sequence[Trailhead],
        clock: Clock = utc_now,
        cache_seconds: float = CACHE_SECONDS,
        attribution: str = ATTRIBUTION,
    ) -> None:
        self._client = client
        self._trailheads = {trailhead.id: trailhead for trailhead in trailheads}
        self._clock = clock
        self._lifetime = timedelta(seconds=cache_seconds)
        self._attribution = attribution
        self._one_at_a_time = threading.Lock()
        self._kept: dict[tuple[str, date], Forecast] = {}
        self._busy: Busy | None = None

    def list_trailheads(self) -> Sequence[Trailhead]:
        return list(self._trailheads.values())

    def forecast(self, trailhead_id: str, day: date) -> Forecast:
        trailhead = self._trailheads.get(trailhead_id)
        if trailhead is None:
            known = ", ".join(self._trailheads)
            raise LookupError(f"There is no trailhead {plain(trailhead_id, 60)!r}; choose one of {known}.")
        with self._one_at_a_time:
            self._forget_old()
            kept = self._kept.get((trailhead_id, day))
            if kept is None:
                kept = self._kept[(trailhead_id, day)] = self._fetch(trailhead, day)
            return kept

    def _forget_old(self) -> None:
        oldest = self._clock() - self._lifetime
        self._kept = {key: forecast for key, forecast in self._kept.items() if forecast.fetched_at > oldest}

    def _fetch(self, trailhead: Trailhead, day: date) -> Forecast:
        zone, hours = read_hours(self._ask(trailhead, day), day)
        if not hours:
            raise LookupError(f"There is no forecast for {trailhead.name} on {day} yet; choose a nearer day.")
        return Forecast(
            trailhead_id=trailhead.id,
            day=day,
            time_zone=zone,
            fetched_at=self._clock(),
            hours=hours,
            attribution=self._attribution,
        )

    def _ask(self, trailhead: Trailhead, day: date) -> Mapping[str, Any]:
        if self._busy is not None and self._clock() < self._busy.until:
            raise Busy(str(self._busy), self._busy.until)
        try:
            response = self._client.get("/v1/forecast", params=_query(trailhead, day))
        except httpx2.UnsupportedProtocol as error:
            raise Misconfigured(f"The address of the weather service is wrong: {plain(error)}.") from error
        except httpx2.HTTPError as error:
            until = self._clock() + timedelta(minutes=1)
            said = plain(error) or type(error).__name__
            raise Busy(f"The weather service is out of reach ({said}).", until) from error
        return self._read(response, trailhead, day)

    def _read(self, response: httpx2.Response, trailhead: Trailhead, day: date) -> Mapping[str, Any]:
        status, body = response.status_code, _json(response)
        reason = plain(body.get("reason", "no reason given") if isinstance(body, dict) else response.text)
        if status == 429 or status >= 500:
            self._busy = Busy(f"The weather service asks to wait: {reason}", self._wait(response, reason))
            raise self._busy
        if status == 400 and "out of allowed range" in reason:
            raise LookupError(f"There is no forecast for {trailhead.name} on {day}: {reason}.")
        if status != 200:
            raise Misconfigured(f"The weather service refused the request ({status}: {reason}); check its settings.")
        if not isinstance(body, dict):
            raise Nonsense("The weather service answered something that is no forecast; check its address.")
        return body

    def _wait(self, response: httpx2.Response, reason: str) -> datetime:
        """Limits are counted per minute, hour and day of the server's clock; the reason tells which one is used up."""
        now = self._clock().astimezone(UTC)
        minute = now.replace(second=0, microsecond=0)
        if "Hourly" in reason:
            return minute.replace(minute=0) + timedelta(hours=1, seconds=5)
        if "Daily" in reason:
            return minute.replace(hour=0, minute=0) + timedelta(days=1, seconds=5)
        if "Minutely" in reason:
            return minute + timedelta(minutes=1, seconds=5)
        return retry_after(response.headers, now) or now + timedelta(seconds=10 if "concurrent" in reason else 60)


def read_hours(reply: Mapping[str, Any], day: date) -> tuple[str, list[Hour]]:
    """The zone of an Open-Meteo reply, and its hours ending from 07:00 to 18:00 on `day` there.

    A probability at a label is for the hour *before* it, temperature and sky are those at the label, so a label is the
    end of an hour. A missing column or number is None. Raises `Nonsense` for other units, lengths or types.
    """
    try:
        zone = ZoneInfo(str(reply["timezone"]))
        labels = _instants(reply)
        columns = {name: _column(reply, name, len(labels)) for name in _UNITS}
        hours = []
        for at, instant in enumerate(labels):
            until = instant.astimezone(zone)
            if until.date() == day and FIRST_HOUR < until.hour + until.minute / 60 <= LAST_HOUR:
                hours.append(_hour(until, *(column[at] for column in columns.values())))
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise Nonsense(f"The weather service's answer cannot be read: {plain(error)}.") from error
    return zone.key, hours


def _query(trailhead: Trailhead, day: date) -> dict[str, str]:
    """Unix times, because local labels are wrong after a change of the clocks within the range; the zone by name."""
    return {
        "latitude": f"{trailhead.latitude:.6f}",
        "longitude": f"{trailhead.longitude:.6f}",
        "hourly": ",".join(_UNITS),
        "temperature_unit": "celsius",
        "timeformat": "unixtime",
        "timezone": "auto",
        "start_date": day.isoformat(),
        "end_date": day.isoformat(),
    }


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _instants(reply: Mapping[str, Any]) -> list[datetime]:
    times = reply["hourly"]["time"]
    if reply["hourly_units"]["time"] == "unixtime":
        return [datetime.fromtimestamp(seconds, UTC) for seconds in times]
    # Labels carry the offset of the moment they were asked for, whatever the clocks do later.
    offset = timezone(timedelta(seconds=reply["utc_offset_seconds"]))
    return [datetime.fromisoformat(label).replace(tzinfo=offset) for label in times]


def _column(reply: Mapping[str, Any], name: str, length: int) -> list[Any]:
    values = reply["hourly"].get(name)
    if values is None:
        return [None] * length
    if (unit := reply["hourly_units"].get(name)) != _UNITS[name]:
        raise ValueError(f"{name} is in {unit!r}, not in {_UNITS[name]!r}")
    if len(values) != length:
        raise ValueError(f"{name} has {len(values)} values for {length} times")
    return list(values)


def _hour(until: datetime, temperature: Any, probability: Any, code: Any) -> Hour:
    return Hour(
        until=f"{until:%H:%M}",
        temperature=None if temperature is None else float(temperature),
        precipitation_probability=None if probability is None else round(probability),
        sky="unknown" if code is None else _SKIES.get(int(code), "unknown"),
    )
