"""The names by which buttons, fields and modals come back, and the references they carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

APPROVE: Final = "signoff.approve"
EDIT: Final = "signoff.edit"
DECLINE: Final = "signoff.decline"
CHANGES: Final = "signoff.changes"
UNDO: Final = "signoff.undo"
READ: Final = "signoff.read"
READ_BACK: Final = "signoff.read.back"
READ_ON: Final = "signoff.read.on"

ANSWER: Final = "signoff.answer"
ANSWER_YES: Final = "signoff.answer.yes"
ANSWER_NO: Final = "signoff.answer.no"
ANSWER_CHOICE: Final = "signoff.answer.choice."  # followed by the number of the choice, from 0
ANSWER_SELECT: Final = "signoff.answer.select"

WENT_OUT: Final = "signoff.effect.went_out"
SEND_AGAIN: Final = "signoff.effect.send_again"
STOP: Final = "signoff.effect.stop"

LOG: Final = "signoff.log"
LOG_BACK: Final = "signoff.log.back"
LOG_ON: Final = "signoff.log.on"
CANCEL: Final = "signoff.cancel"
HOME_BACK: Final = "signoff.home.back"
HOME_ON: Final = "signoff.home.on"

START: Final = "signoff.start"
NOTICE: Final = "signoff.notice"
FIELD: Final = "signoff.field"

_SUBJECT = re.compile(r"(?P<id>[^:\s/]{1,128}):(?P<version>\d{1,9})(?::(?P<page>\d{1,4}))?")
_RUN = re.compile(r"(?P<id>[^:\s]{1,128})(?::(?P<page>\d{1,4}))?")


class Malformed(ValueError):
    """A click or form that none of our messages can have sent."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a click on a card is about: the approval, the draft version the person saw, and a page of a long text."""

    id: str
    version: int
    page: int = 0

    def __str__(self) -> str:
        return f"{self.id}:{self.version}" + (f":{self.page}" if self.page else "")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `id:version` or `id:version:page`, with whatever follows a `/`; raises `Malformed`."""
        found = _SUBJECT.fullmatch(text.split("/", 1)[0])
        if found is None:
            raise Malformed(f"{text[:80]!r} names no approval; open the card again and click there.")
        return cls(found["id"], int(found["version"]), int(found["page"] or 0))


@dataclass(frozen=True, slots=True)
class RunPage:
    """What a click on a run's message is about: the run, and a page of its log."""

    thread_id: str
    page: int = 0

    def __str__(self) -> str:
        return self.thread_id + (f":{self.page}" if self.page else "")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `thread_id` or `thread_id:page`; raises `Malformed`."""
        found = _RUN.fullmatch(text)
        if found is None:
            raise Malformed(f"{text[:80]!r} names no run; open its message again and click there.")
        return cls(found["id"], int(found["page"] or 0))


def subject_of(action: Mapping[str, Any]) -> Subject:
    """The subject of an action of a `block_actions` payload: a button's value, or the block of a menu."""
    return Subject.parse(str(action.get("value") or action.get("block_id") or ""))


def page_of(action: Mapping[str, Any]) -> int:
    """The page that a back or on button of the Home tab asks for; raises `Malformed`."""
    value = str(action.get("value", ""))
    if not value.isascii() or not value.isdecimal() or len(value) > 4:
        raise Malformed(f"{value[:80]!r} is no page; open the Home tab again.")
    return int(value)
