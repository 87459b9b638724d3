"""Open-Meteo through a real client: what it says, and what goes wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx2
import pytest

from bot.adapters.open_meteo import ATTRIBUTION, OpenMeteo, read_hours
from bot.adapters.practice import Practice
from bot.adapters.trailheads import made_up_trailheads
from graphs.ports import Busy, Forecast, Misconfigured, Nonsense
from tests.bot.adapters.clock import StillClock
from tests.shared import SHARED

SAMPLES = SHARED / "samples"
SATURDAY = date(2026, 12, 5)
TRAILHEADS = made_up_trailheads()
Handler = Callable[[httpx2.Request], httpx2.Response]


class Server:
    """Answers with the practice weather, or with what it is told; remembers what was asked."""

    def __init__(self, clock: StillClock, answer: httpx2.Response | Exception | None = None) -> None:
        self.practice = Practice(clock=clock)
        self.answer = answer
        self.asked: list[dict[str, str]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(dict(request.url.params))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or self.practice.handle(request)


def trails(answer: httpx2.Response | Exception | None = None) -> tuple[OpenMeteo, Server, StillClock]:
    clock = StillClock()
    server = Server(clock, answer)
    client = httpx2.Client(transport=httpx2.MockTransport(server), base_url="http://weather.invalid")
    return OpenMeteo(client, TRAILHEADS, clock), server, clock


def fetch(answer: httpx2.Response | Exception) -> Forecast:
    return trails(answer)[0].forecast("fern-hollow", SATURDAY)


def reply(**changes: Any) -> dict[str, Any]:
    """Two hours before noon on Saturday in Portland, in unix time."""
    start = int(datetime(2026, 12, 5, 18, tzinfo=UTC).timestamp())
    return {
        "timezone": "America/Los_Angeles",
        "utc_offset_seconds": -28800,
        "hourly_units": {
            "time": "unixtime",
            "temperature_2m": "°C",
            "precipitation_probability": "%",
            "weather_code": "wmo code",
        },
        "hourly": {
            "time": [start, start + 3600],
            "temperature_2m": [7, None],
            "precipitation_probability": [0, None],
            "weather_code": [61, None],
        },
        **changes,
    }


def test_a_day_has_the_hours_that_end_from_seven_to_eighteen() -> None:
    weather, server, clock = trails()
    forecast = weather.forecast("fern-hollow", SATURDAY)
    assert [hour.until for hour in forecast.hours] == [f"{h:02d}:00" for h in range(7, 19)]
    assert (forecast.trailhead_id, forecast.day, forecast.time_zone) == ("fern-hollow", SATURDAY, "America/Los_Angeles")
    assert forecast.attribution == ATTRIBUTION == "Weather data by Open-Meteo.com (CC BY 4.0)"
    assert forecast.fetched_at == clock()
    assert server.asked == [
        {
            "latitude": "45.512000",
            "longitude": "-122.351000",
            "hourly": "temperature_2m,precipitation_probability,weather_code",
            "temperature_unit": "celsius",
            "timeformat": "unixtime",
            "timezone": "auto",
            "start_date": "2026-12-05",
            "end_date": "2026-12-05",
        }
    ]


def test_another_time_zone_has_its_own_morning() -> None:
    forecast = trails()[0].forecast("cinder-saddle", SATURDAY)
    assert forecast.time_zone == "America/Boise"
    assert forecast.hours[0].until == "07:00"


@pytest.mark.parametrize("day", [date(2026, 11, 1), date(2026, 11, 2)])
def test_hours_are_right_across_a_change_of_the_clocks(day: date) -> None:
    weather, server, clock = trails()
    clock.now = datetime(2026, 10, 29, 12, tzinfo=UTC)
    forecast = weather.forecast("fern-hollow", day)
    assert [hour.until for hour in forecast.hours] == [f"{h:02d}:00" for h in range(7, 19)]
    offset = timedelta(hours=8)
    wet = server.practice.client().get("/v1/forecast", params=server.asked[0]).json()
    at = wet["hourly"]["time"].index(int((datetime(day.year, day.month, day.day, 8, tzinfo=UTC) + offset).timestamp()))
    assert forecast.hours[1].precipitation_probability == wet["hourly"]["precipitation_probability"][at]


def test_what_is_unknown_stays_unknown() -> None:
    zone, hours = read_hours(reply(), SATURDAY)
    assert zone == "America/Los_Angeles"
    assert hours[0].model_dump() == {
        "until": "10:00",
        "temperature": 7.0,
        "precipitation_probability": 0,
        "sky": "light rain",
    }
    assert hours[1].model_dump() == {
        "until": "11:00",
        "temperature": None,
        "precipitation_probability": None,
        "sky": "unknown",
    }


def test_a_column_left_out_and_a_code_nobody_knows_are_unknown() -> None:
    short = reply()
    del short["hourly"]["precipitation_probability"]
    short["hourly"]["weather_code"] = [1234, 0]
    _, hours = read_hours(short, SATURDAY)
    assert [hour.precipitation_probability for hour in hours] == [None, None]
    assert [hour.sky for hour in hours] == ["unknown", "clear"]


def test_a_zone_at_half_past_has_hours_too() -> None:
    start = int(datetime(2026, 12, 5, 2, tzinfo=UTC).timestamp())
    hourly = {**reply()["hourly"], "time": [start, start + 3600]}
    _, hours = read_hours(reply(timezone="Asia/Kolkata", hourly=hourly), SATURDAY)
    assert [hour.until for hour in hours] == ["07:30", "08:30"]


def test_labels_carry_the_offset_of_the_moment_they_were_asked_for() -> None:
    hourly = {**reply()["hourly"], "time": ["2026-11-01T08:00", "2026-11-01T09:00"]}
    units = {**reply()["hourly_units"], "time": "iso8601"}
    _, hours = read_hours(reply(hourly=hourly, hourly_units=units, utc_offset_seconds=-25200), date(2026, 11, 1))
    assert [hour.until for hour in hours] == ["07:00", "08:00"]


def changed(part: str, name: str, value: Any) -> dict[str, Any]:
    whole = reply()
    whole[part][name] = value
    return whole


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**reply(), "timezone": "Mars/Base"},
        {**reply(), "timezone": None},
        {**reply(), "hourly": None},
        changed("hourly_units", "temperature_2m", "°F"),
        changed("hourly_units", "precipitation_probability", None),
        changed("hourly_units", "time", "iso8601"),
        changed("hourly", "temperature_2m", [1]),
        changed("hourly", "temperature_2m", ["warm", 1]),
        changed("hourly", "precipitation_probability", [float("inf"), 1]),
        changed("hourly", "weather_code", ["61", [1]]),
        changed("hourly", "time", [10**20, 1]),
        changed("hourly", "time", ["x", "y"]),
        [1],
        "text",
        None,
    ],
)
def test_an_answer_that_is_no_forecast_is_nonsense(body: Any) -> None:
    with pytest.raises(Nonsense):
        fetch(httpx2.Response(200, text=json.dumps(body)))


@pytest.mark.parametrize("text", ["<html>Welcome to the hotel</html>", "", '{"hourly'])
def test_a_page_of_html_is_nonsense(text: str) -> None:
    with pytest.raises(Nonsense, match="no forecast"):
        fetch(httpx2.Response(200, text=text))


@pytest.mark.parametrize("day", [date(2026, 12, 19), date(2026, 8, 1)])
def test_a_day_out_of_range_is_told_with_the_range(day: date) -> None:
    with pytest.raises(LookupError, match="out of allowed range from 2026-09-02 to 2026-12-18"):
        trails()[0].forecast("fern-hollow", day)


def test_a_day_without_hours_is_told() -> None:
    other_day = {**reply()["hourly"], "time": [0, 3600]}
    with pytest.raises(LookupError, match="Fern Hollow on 2026-12-05 yet"):
        fetch(httpx2.Response(200, json=reply(hourly=other_day)))


def test_an_unknown_trailhead_is_told_with_those_there_are() -> None:
    with pytest.raises(LookupError, match="choose one of fern-hollow, lantern-ridge"):
        trails()[0].forecast("nowhere\n", SATURDAY)


@pytest.mark.parametrize(
    ("status", "reason", "until"),
    [
        (429, "Minutely API request limit exceeded.", datetime(2026, 12, 3, 17, 21, 5, tzinfo=UTC)),
        (429, "Hourly API request limit exceeded.", datetime(2026, 12, 3, 18, 0, 5, tzinfo=UTC)),
        (429, "Daily API request limit exceeded.", datetime(2026, 12, 4, 0, 0, 5, tzinfo=UTC)),
        (429, "Too many concurrent requests", datetime(2026, 12, 3, 17, 20, 40, tzinfo=UTC)),
        (429, "no", datetime(2026, 12, 3, 17, 21, 30, tzinfo=UTC)),
        (503, "The service is overloaded", datetime(2026, 12, 3, 17, 21, 30, tzinfo=UTC)),
    ],
)
def test_a_limit_says_when_it_ends_and_nothing_is_asked_before(status: int, reason: str, until: datetime) -> None:
    weather, server, clock = trails(httpx2.Response(status, json={"error": True, "reason": reason}))
    for _ in range(3):
        with pytest.raises(Busy, match=reason[:5]) as caught:
            weather.forecast("fern-hollow", SATURDAY)
        assert caught.value.until == until
    assert len(server.asked) == 1
    server.answer, clock.now = None, until
    assert weather.forecast("fern-hollow", SATURDAY).hours


def test_a_retry_after_and_a_page_of_html_are_understood() -> None:
    with pytest.raises(Busy, match="Bad Gateway") as caught:
        fetch(httpx2.Response(502, html="<h1>Bad Gateway</h1>", headers={"retry-after": "7"}))
    assert caught.value.until == StillClock().after(seconds=7)


@pytest.mark.parametrize("error", [httpx2.ConnectError, httpx2.ReadTimeout, httpx2.RemoteProtocolError])
def test_a_lost_connection_is_busy(error: type[httpx2.TransportError]) -> None:
    with pytest.raises(Busy, match="out of reach") as caught:
        fetch(error(""))
    assert caught.value.until == StillClock().after(minutes=1)


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "Invalid timezone"), (401, "apikey"), (404, "Not Found"), (302, "x")]
)
def test_a_refusal_is_a_wrong_setting(status: int, reason: str) -> None:
    with pytest.raises(Misconfigured, match=f"{status}: {reason}"):
        fetch(httpx2.Response(status, json={"error": True, "reason": reason}))
    with pytest.raises(Misconfigured, match="address"):
        OpenMeteo(httpx2.Client(), TRAILHEADS, StillClock()).forecast("fern-hollow", SATURDAY)


def test_a_forecast_is_kept_for_a_while() -> None:
    weather, server, clock = trails()
    first = weather.forecast("fern-hollow", SATURDAY)
    clock.go_on(seconds=899)
    assert weather.forecast("fern-hollow", SATURDAY) == first
    weather.forecast("mill-pond", SATURDAY)
    assert len(server.asked) == 2
    clock.go_on(seconds=1)
    assert weather.forecast("fern-hollow", SATURDAY).fetched_at == clock()
    assert len(server.asked) == 3


def test_one_request_goes_out_at_a_time() -> None:
    clock, met = StillClock(), []
    practice, meeting = Practice(clock=clock), threading.Barrier(2)

    def handler(request: httpx2.Request) -> httpx2.Response:
        try:
            met.append(meeting.wait(0.1))
        except threading.BrokenBarrierError:
            meeting.reset()
        return practice.handle(request)

    client = httpx2.Client(transport=httpx2.MockTransport(handler), base_url="http://weather.invalid")
    weather = OpenMeteo(client, TRAILHEADS, clock)
    threads = [threading.Thread(target=weather.forecast, args=(t.id, SATURDAY)) for t in TRAILHEADS[:3]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
    assert weather.list_trailheads() == TRAILHEADS


def sample(name: str) -> dict[str, Any]:
    if not SAMPLES.exists():
        pytest.skip("the samples of real answers are not on this machine")
    whole: dict[str, Any] = json.loads((SAMPLES / name).read_text())
    return whole


@pytest.mark.allowed_skip
def test_a_recorded_day_in_new_york_is_read() -> None:
    zone, hours = read_hours(sample("openmeteo_ny_2026-08-23_24h.json"), date(2026, 8, 23))
    assert (zone, len(hours)) == ("America/New_York", 12)
    assert hours[1].model_dump() == {
        "until": "08:00",
        "temperature": 21.1,
        "precipitation_probability": 32,
        "sky": "overcast",
    }
    assert (hours[2].precipitation_probability, hours[2].sky) == (57, "heavy rain")


@pytest.mark.allowed_skip
def test_the_recorded_end_of_a_range_has_no_hours_by_day() -> None:
    assert read_hours(sample("openmeteo_16day_tail_all_null.json"), date(2026, 10, 18)) == ("GMT", [])


@pytest.mark.allowed_skip
def test_recorded_refusals_are_understood() -> None:
    with pytest.raises(Misconfigured, match="Cannot initialize"):
        fetch(httpx2.Response(400, json=sample("openmeteo_error_400.json")))
    with pytest.raises(Busy, match="Minutely"):
        fetch(httpx2.Response(429, json=sample("openmeteo_error_429.json")))
