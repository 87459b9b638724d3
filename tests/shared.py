"""Slack's data and real replies that lie beside the checkout, for tests that may read them and must skip without."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SHARED: Final = Path(__file__).resolve().parent.parent.parent / "shared"
