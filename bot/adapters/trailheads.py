"""The club's trailheads, read from a GeoJSON file that people edit by hand or take from OpenTrails or OpenStreetMap."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.adapters.outgoing import plain
from graphs.ports import Misconfigured, Trailhead

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FACILITIES = ("parking", "restrooms", "kiosk")


def made_up_trailheads() -> list[Trailhead]:
    """The made-up trailheads the project ships with."""
    text = (files("bot.adapters") / "data" / "trailheads.geojson").read_text(encoding="utf-8")
    return read_trailheads(text, where="the trailheads shipped with this program")


def load_trailheads(path: Path, default_time_zone: str = "UTC") -> list[Trailhead]:
    """Read a GeoJSON file. Raises `Misconfigured` naming the file, the feature and what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"The trailheads file {path} cannot be read: {plain(error)}.") from error
    return read_trailheads(text, default_time_zone, where=str(path))


def read_trailheads(text: str, default_time_zone: str = "UTC", *, where: str = "the trailheads") -> list[Trailhead]:
    """Read a GeoJSON FeatureCollection of points, [longitude, latitude] or with a height, in the order of the file.

    Properties: `name`, `length_km`, `drive_minutes`, `time_zone` (IANA), `notes`, `id`, each of which may be missing.
    An id that is no lower-case slug is replaced by one made from the name; a repeated one gets a number.
    """
    try:
        features = _features(json.loads(text))
        trailheads: list[Trailhead] = []
        for number, feature in enumerate(features, 1):
            taken = {trailhead.id for trailhead in trailheads}
            trailheads.append(_trailhead(feature, number, default_time_zone, taken))
    except (ValueError, OverflowError, RecursionError) as error:
        raise Misconfigured(f"In {where}: {plain(error)}") from error
    return trailheads


def _features(collection: Any) -> Sequence[Any]:
    features = collection.get("features") if isinstance(collection, dict) else None
    if not isinstance(features, list) or not features:
        raise ValueError("expected a GeoJSON FeatureCollection with at least one feature.")
    return features


def _trailhead(feature: Any, number: int, default_time_zone: str, taken: set[str]) -> Trailhead:
    properties = _object(feature, "properties") or {}
    name = plain(properties.get("name") or "", 80) or f"Unnamed trailhead {number}"
    where = f"feature {number} ({name})"
    longitude, latitude = _position(feature, where)
    return Trailhead(
        id=_unique(_slug(properties.get("id"), name), taken),
        name=name,
        latitude=latitude,
        longitude=longitude,
        time_zone=_zone(properties.get("time_zone") or default_time_zone, where),
        length_km=_number(properties, "length_km", where),
        drive_minutes=_whole(_number(properties, "drive_minutes", where)),
        notes=_notes(properties),
    )


def _object(parent: Any, key: str) -> Mapping[str, Any] | None:
    child = parent.get(key) if isinstance(parent, dict) else None
    return child if isinstance(child, dict) else None


def _position(feature: Any, where: str) -> tuple[float, float]:
    geometry = _object(feature, "geometry") or {}
    position = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(position, list) or len(position) < 2:
        raise ValueError(f"{where} is not a point; give it a geometry of type Point.")
    longitude, latitude = position[0], position[1]
    if not all(type(x) in (int, float) and math.isfinite(x) for x in (longitude, latitude)):
        raise ValueError(f"{where} has coordinates that are not numbers.")
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise ValueError(f"{where} lies nowhere on Earth; coordinates are longitude first, then latitude.")
    return float(longitude), float(latitude)


def _slug(given: Any, name: str) -> str:
    if isinstance(given, str) and _SLUG.fullmatch(given) and not given.isdigit() and len(given) <= 60:
        return given
    letters = unicodedata.normalize("NFKD", name.replace("'", "")).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", letters))[:60].rstrip("-") or "trailhead"


def _unique(slug: str, taken: set[str]) -> str:
    candidate, count = slug, 1
    while candidate in taken:
        count += 1
        candidate = f"{slug}-{count}"
    return candidate


def _zone(name: Any, where: str) -> str:
    try:
        return ZoneInfo(str(name)).key
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{where} has the unknown time zone {plain(name, 40)}; use one like Europe/Paris.") from error


def _number(properties: Mapping[str, Any], key: str, where: str) -> float | None:
    value = properties.get(key)
    if value is None or value == "":
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{where} has {key} = {plain(value, 40)}, which is not a number from 0 up.")
    return number


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)


def _notes(properties: Mapping[str, Any]) -> str:
    """The notes, or what an OpenTrails file says about facilities."""
    there = [thing for thing in _FACILITIES if properties.get(thing) == "yes"]
    return plain(properties.get("notes") or "; ".join(there), 200)
