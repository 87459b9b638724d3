"""Names, times, amounts and sentences the same wherever they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from bot.blocks.text import Mrkdwn, cut, escape, fill, fits, joined, one_line
from graphs.flow import Field, Review
from graphs.sms_text import segments

_USER = re.compile(r"[UW][A-Z0-9]{1,30}")
_NAMED = re.compile(r"&lt;([@#][UWCDG][A-Z0-9]{1,30})&gt;")
_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")
_SHOWN_PEOPLE = 10
_MOST_RELEASES = 8
_ADDRESS = 120
_ABOVE = (10**12, 86_400, 3_600, 60)
_VERBS = {
    "sms": "sends {what} to {to}",
    "post": "posts {what} to {to}",
    "pull_request": "opens a pull request in {to} with {what}",
    "refund": "refunds {what} for {to}",
}
_SENT = {
    "sms": "Text to {to}",
    "post": "Post to {to}",
    "pull_request": "Pull request in {to}",
    "refund": "Refund for {to}",
}


def mention(user: str) -> Mrkdwn:
    """A person by Slack id; whoever has none (the command line) by name."""
    return Mrkdwn(f"<@{user}>") if _USER.fullmatch(user) else escape(one_line(user, _ADDRESS) or "nobody")


def named(sentence: str) -> Mrkdwn:
    """A sentence of ours that names people as `<@ID>` and channels as `<#ID>`; everything else in it is escaped."""
    return Mrkdwn(_NAMED.sub(r"<\1>", escape(sentence)))


def people(users: Sequence[str]) -> Mrkdwn:
    """Several people in one phrase."""
    shown = [mention(user) for user in users[:_SHOWN_PEOPLE]]
    if len(users) > _SHOWN_PEOPLE:
        shown.append(Mrkdwn(f"{len(users) - _SHOWN_PEOPLE} more"))
    return joined([joined(shown[:-1], ", "), *shown[-1:]], " and ")


def place(address: str) -> Mrkdwn:
    """An address as people know it: a channel by its name."""
    if _CHANNEL.fullmatch(address):
        return Mrkdwn(f"<#{address}>")
    return mention(address) if _USER.fullmatch(address) else escape(one_line(address, _ADDRESS))


def moment(at: datetime) -> Mrkdwn:
    """A time in the reader's own time zone."""
    return Mrkdwn(f"<!date^{int(at.timestamp())}^{{date_short_pretty}} at {{time}}|{utc(at)}>")


def utc(at: datetime) -> str:
    """A time where Slack shows plain text only."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def link(url: str, text: str) -> Mrkdwn:
    """A link; nothing but the text where the address is not one to follow."""
    try:
        followable = urlsplit(url).scheme in ("http", "https")
    except ValueError:
        followable = False
    address = url.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E").replace("&", "&amp;")
    return Mrkdwn(f"<{''.join(address.split())}|{escape(text)}>") if followable else escape(text)


def duration(time: timedelta) -> str:
    """A length of time in its two largest units."""
    seconds = max(int(time.total_seconds()), 0)
    sizes = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    amounts = [f"{seconds % above // size} {unit}" for above, (unit, size) in zip(_ABOVE, sizes, strict=True)]
    told = [amount for amount in amounts if not amount.startswith("0 ")]
    return " ".join(told[:2]) or "0 s"


def count(number: int, thing: str) -> str:
    """A number with its noun: "1 step", "1,204 tokens"."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def shown(part: Field) -> str:
    """A field's value as people read it: a choice by its label."""
    if part.value is None:
        return ""
    named = {choice.value: choice.label for choice in part.choices}
    return named.get(str(part.value), str(part.value))


def costed(review: Review) -> Review:
    """The review with what each text message costs now as the hint of its field: what a graph says of it is older."""
    texts = {release.content for release in review.releases if release.kind == "sms"}
    costs = {name: _cost(str(review.draft[name].value or "")) for name in texts & review.draft.keys()}
    parts = {
        name: part.model_copy(update={"hint": costs[name]}) if name in costs else part
        for name, part in review.draft.items()
    }
    return review.model_copy(update={"draft": parts})


def facts(review: Review, limit: int) -> list[Mrkdwn]:
    """The facts behind a draft, each with its name above it, cut to `limit`."""
    return [
        fill("*{name}*\n{value}", name=one_line(name, 80), value=cut(value, limit) or "-")
        for name, value in review.facts.items()
    ]


def what_approving_does(review: Review) -> Mrkdwn:
    """What goes out once the draft is approved: "sends this text to +1503… and posts it to #hikes"."""
    if not review.releases:
        return Mrkdwn("lets the run go on; nothing is sent by it")
    told: list[Mrkdwn] = []
    before: set[str] = set()
    for release in review.releases[:_MOST_RELEASES]:
        what = "it" if release.content in before else _what(review, release.content)
        before.add(release.content)
        told.append(fill(_VERBS.get(release.kind, "lets out {what} to {to}"), what=what, to=place(release.to)))
    if len(review.releases) > _MOST_RELEASES:
        told.append(Mrkdwn(f"lets out {len(review.releases) - _MOST_RELEASES} more, named under Read it all"))
    return joined([joined(told[:-1], ", "), *told[-1:]], " and ")


def releases_are_brief(review: Review) -> bool:
    """Whether `what_approving_does` names every release in full."""
    return len(review.releases) <= _MOST_RELEASES and all(fits(release.to, _ADDRESS) for release in review.releases)


def sent(kind: str, to: str) -> Mrkdwn:
    """What went out, or was to: "Text to +1503…"."""
    return fill(_SENT.get(kind, "{kind} to {to}"), kind=one_line(kind, 40), to=place(to))


def _cost(text: str) -> str:
    encoding, _, needed = segments(text)
    return f"{count(needed, 'segment')} in {encoding}"


def _what(review: Review, content: str) -> str:
    field = review.draft.get(content)
    name = one_line(field.label, 40) if field else ""
    return f"this {name[:1].lower()}{name[1:]}".rstrip()
