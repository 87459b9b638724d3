"""Everything a flow may ask to be done outside, as values."""

from __future__ import annotations

from typing import ClassVar

from graphs.engine.effects import Effect


class Sms(Effect):
    """A text message to a phone number in E.164 form."""

    kind: ClassVar[str] = "sms"


class Post(Effect):
    """A message to a channel, by channel id."""

    kind: ClassVar[str] = "post"


class PullRequest(Effect):
    """A pull request: `to` is the repository, `content` the patch, on a branch made from the run's id."""

    kind: ClassVar[str] = "pull_request"
    title: str
    base: str = "main"


class Refund(Effect):
    """Money back: `to` is the order, `content` the amount with its currency ("12.50 EUR")."""

    kind: ClassVar[str] = "refund"
