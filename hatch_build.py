"""Puts the Slack app manifest into the wheel, beside the code that reads it."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManifestHook(BuildHookInterface):
    """Copies `manifest.yml` into `bot/`, but not for an editable install: a copy there would go stale."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"]["manifest.yml"] = "bot/manifest.yml"
