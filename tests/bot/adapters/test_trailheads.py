"""Trailheads from files as people have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.adapters.trailheads import load_trailheads, made_up_trailheads, read_trailheads
from graphs.ports import Misconfigured, Trailhead
from tests.shared import SHARED

SAMPLE = SHARED / "samples/trailheads_opentrails_boulder_county.geojson"


def feature(position: Any = (-105.5, 40.1), kind: str = "Point", /, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": position}}


def read(*features: Any, zone: str = "America/Denver") -> list[Trailhead]:
    return read_trailheads(json.dumps({"type": "FeatureCollection", "features": features}), zone, where="my file")


def test_the_made_up_ones_differ_in_length_and_drive() -> None:
    trailheads = made_up_trailheads()
    assert len(trailheads) == len({t.id for t in trailheads}) == 8
    assert sum((t.length_km or 0) > 10 for t in trailheads) == 3
    assert len({t.drive_minutes for t in trailheads}) == 8
    assert {ZoneInfo(t.time_zone).key for t in trailheads} == {"America/Los_Angeles", "America/Boise"}


def test_every_property_is_read() -> None:
    properties: dict[str, Any] = {
        "id": "fern",
        "name": "Fern",
        "time_zone": "Europe/Paris",
        "length_km": 7,
        "drive_minutes": "25",
        "notes": "Wet\n\x00",
    }
    assert read(feature((2.5, 48.5), **properties)) == [
        Trailhead(
            id="fern",
            name="Fern",
            latitude=48.5,
            longitude=2.5,
            time_zone="Europe/Paris",
            length_km=7.0,
            drive_minutes=25,
            notes="Wet",
        )
    ]


def test_names_may_be_missing_or_repeated_or_foreign() -> None:
    names = ["Grizzly Gulch", "Grizzly Gulch", None, "", "Bummer's Rock", "Žižka/Krok Á", "山", "山", "29"]
    trailheads = read(*(feature(name=name) if name is not None else feature() for name in names))
    assert [t.id for t in trailheads] == [
        "grizzly-gulch",
        "grizzly-gulch-2",
        "unnamed-trailhead-3",
        "unnamed-trailhead-4",
        "bummers-rock",
        "zizka-krok-a",
        "trailhead",
        "trailhead-2",
        "29",
    ]
    assert trailheads[2].name == "Unnamed trailhead 3"
    assert {t.time_zone for t in trailheads} == {"America/Denver"}


@pytest.mark.parametrize("given", ["29", 29, "node/1234", "Fern Hollow", None])
def test_an_id_that_is_no_slug_is_made_from_the_name(given: Any) -> None:
    assert read(feature(id=given, name="Fern Hollow"))[0].id == "fern-hollow"


def test_heights_and_missing_properties_are_fine() -> None:
    bare = {"type": "Feature", "properties": None, "geometry": {"type": "Point", "coordinates": [-105, 40, 2900.5]}}
    assert (read(bare)[0].latitude, read(bare)[0].length_km, read(bare)[0].notes) == (40.0, None, "")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (feature((40.1, -105.5)), "longitude first"),
        (feature((200, 1)), "nowhere on Earth"),
        (feature(("x", 1)), "not numbers"),
        (feature((True, 1)), "not numbers"),
        (feature((1,)), "not a point"),
        (feature([[1, 2]], "LineString"), "not a point"),
        ({"type": "Feature", "properties": {}, "geometry": None}, "not a point"),
        ("x", "not a point"),
        (feature(name="A", length_km="far"), "length_km = far"),
        (feature(drive_minutes=-1), "drive_minutes = -1"),
        (feature(length_km=True), "length_km = True"),
        (feature(time_zone="Mars/Base"), "unknown time zone Mars/Base"),
        (feature(time_zone="../x"), "unknown time zone"),
        (feature((10**400, 1)), "In my file"),
    ],
)
def test_a_mistake_is_named_with_file_and_feature(wrong: Any, words: str) -> None:
    with pytest.raises(Misconfigured, match="In my file: ") as caught:
        read(feature(name="fine"), wrong)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"features": []}', '{"features": 7}', "[" * 100000])
def test_a_file_that_is_no_collection_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured):
        read_trailheads(text)


def test_a_file_is_loaded_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "club.geojson"
    path.write_text(json.dumps({"features": [feature(name="A")]}), encoding="utf-8-sig")
    assert load_trailheads(path)[0].time_zone == "UTC"
    path.write_bytes(b"\xff\xfe")
    for broken in (path, tmp_path / "missing.geojson", tmp_path):
        with pytest.raises(Misconfigured, match="cannot be read"):
            load_trailheads(broken)


@pytest.mark.allowed_skip
def test_an_opentrails_file_loads() -> None:
    if not SAMPLE.exists():
        pytest.skip("the sample of an OpenTrails file is not on this machine")
    trailheads = load_trailheads(SAMPLE, "America/Denver")
    assert len(trailheads) == 6
    assert trailheads[0].id == "coalton-trailhead"
    assert trailheads[0].notes == "parking; restrooms; kiosk"
    assert trailheads[0].latitude == pytest.approx(39.93, abs=0.01)
