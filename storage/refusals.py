"""Why a click does not count, in the order people should be told, as a code and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from storage.drafts import Asked
from storage.tables import ApprovalRow, from_micros

Code = Literal[
    "unknown",
    "not_pending",
    "same_person",
    "stale_version",
    "own_request",
    "bot",
    "guest",
    "other_team",
    "not_in_channel",
    "expired",
    "ended",
    "undo_too_late",
    "bad_answer",
    "unchanged",
]
_DID = {
    "approve": "approved this",
    "edit": "changed and approved this",
    "decline": "declined this",
    "changes": "asked for changes",
    "answer": "answered this",
}
GONE = "This is no longer asked: its run was removed, or the button belongs to another installation."


@dataclass(frozen=True, slots=True)
class Actor:
    """Who clicked. `is_bot`, `is_guest` and `in_channel` are what the surface knows about this person now."""

    id: str
    team: str = ""
    is_bot: bool = False
    is_guest: bool = False
    in_channel: bool = True


@dataclass(frozen=True, slots=True)
class Vote:
    """A decision that counted."""

    who: str
    version: int
    verdict: str
    at: int


class Refused(Exception):
    """A click that does not count."""

    def __init__(self, code: Code, sentence: str, by: str = "") -> None:
        super().__init__(sentence)
        self.code: Code = code
        self.sentence = sentence
        self.by = by


def on(micros: int | None) -> str:
    """A time as people read it, in UTC."""
    return f" on {from_micros(micros):%-d %B %Y at %H:%M} UTC" if micros is not None else ""


def admit(asked: Asked, actor: Actor) -> None:
    """Only people of the same workspace who are members of the channel; raises `Refused`."""
    if actor.is_bot:
        raise Refused("bot", "Only people decide: this came from a bot.")
    if asked.team and actor.team != asked.team:
        raise Refused("other_team", "This was asked in another workspace; its members decide.")
    if actor.is_guest:
        raise Refused("guest", "Guests do not decide here; ask a member of the workspace.")
    if not actor.in_channel:
        raise Refused("not_in_channel", "Only members of the channel decide; join it, then try again.")


def must_be_pending(asked: Asked, votes: Sequence[Vote], actor: Actor) -> None:
    """Raises `Refused` with who settled it and how; the same person is told what it already did."""
    if asked.status == "pending":
        return
    if asked.status == "expired":
        raise Refused("expired", f"This expired{on(asked.expires_at)}; nothing was sent for it.")
    if asked.status == "cancelled":
        raise Refused("ended", f"The run ended{on(asked.settled_at)} before this was decided.")
    if asked.status == "superseded" or not (vote := settling(asked, votes)):
        raise Refused("not_pending", "This is no longer asked: the run has gone on or asks something newer.")
    what = f"{_DID[vote.verdict]}{on(vote.at)}."
    if vote.who == actor.id:
        raise Refused("same_person", f"You have already {what}", vote.who)
    raise Refused("not_pending", f"<@{vote.who}> has already {what}", vote.who)


def settling(asked: Asked, votes: Sequence[Vote]) -> Vote | None:
    """The decision that settled an approval."""
    deciding = [vote for vote in votes if vote.version == asked.draft_version and vote.verdict in _DID]
    return deciding[-1] if deciding else None


def must_be_current(asked: Asked, version: int | None) -> None:
    """Raises `Refused` unless the click saw the current draft version."""
    if version is not None and version != asked.draft_version:
        raise Refused(
            "stale_version", f"There is a newer draft, version {asked.draft_version}: read that one, then decide."
        )


def must_be_in_time(asked: Asked, now: int) -> None:
    """Raises `Refused` from the very instant of `expires_at`, whether or not the sweep has come by."""
    if asked.expires_at is not None and asked.expires_at <= now:
        raise Refused("expired", f"This expired{on(asked.expires_at)}; your decision came too late.")


def barred(asked: Asked | ApprovalRow) -> str:
    """Who may not approve a review: whoever asked for it, unless the policy allows that; "" for nobody."""
    return "" if asked.kind != "review" or asked.policy.get("allow_requester") else asked.requester


def must_not_be_own(asked: Asked, actor: Actor) -> None:
    """Raises `Refused` for an approval by whoever is barred from it."""
    if actor.id == barred(asked):
        raise Refused("own_request", "You asked for this, so somebody else has to approve it.")


def must_be_first(asked: Asked, votes: Sequence[Vote], actor: Actor) -> None:
    """Raises `Refused` for a second approval of one draft version by the same person."""
    for vote in votes:
        if (vote.who, vote.version) == (actor.id, asked.draft_version) and vote.verdict in ("approve", "edit"):
            raise Refused(
                "same_person", f"You have already {_DID[vote.verdict]}{on(vote.at)}; it waits for others.", actor.id
            )


def may_undo(asked: Asked, votes: Sequence[Vote], version: int | None) -> None:
    """Raises `Refused` unless this very approval is still waiting to be taken up."""
    if asked.status == "approved":
        return must_be_current(asked, version)
    if asked.status == "pending":
        raise Refused("stale_version", f"There is nothing to take back: draft {asked.draft_version} is undecided.")
    if asked.status == "cancelled":
        raise Refused("ended", f"The run ended{on(asked.settled_at)}; there is nothing to take back.")
    vote = settling(asked, votes)
    raise Refused("undo_too_late", "It is too late to take this back: the run has gone on.", vote.who if vote else "")
