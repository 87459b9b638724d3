"""What an open window is told as things change: the difference between what it shows and what it should show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bot.sandbox.conversation import conversation, thread
from bot.sandbox.heading import heading
from bot.sandbox.lab import Lab, Text, lab_html, phone
from bot.sandbox.markup import Html
from bot.sandbox.messages import Drawings, Piece
from bot.sandbox.screen import Screen
from bot.sandbox.shell import top_status
from bot.sandbox.sidebar import sidebar
from bot.sandbox.surfaces import home, modal

Where: TypeAlias = Literal["inside", "replace", "append", "remove", "all"]
TICK_SECONDS = 1.0
_BEAT_TICKS = 10


@dataclass(frozen=True, slots=True)
class Put:
    """One change to the document.

    `inside` sets the content of the target, `replace` and `remove` concern the target itself, `append` adds a child,
    `all` hands over every child of a list, of which the window keeps those that are unchanged.
    """

    target: str
    html: str
    where: Where

    def event(self) -> bytes:
        """As a server-sent event."""
        body = json.dumps({"target": self.target, "html": self.html, "where": self.where})
        return f"event: put\ndata: {body}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything in a window that changes: single regions by id, lists by id."""

    regions: Mapping[str, Html]
    lists: Mapping[str, Sequence[Piece]]


def picture(screen: Screen, lab: Lab, texts: Sequence[Text], drawings: Drawings) -> Picture:
    """What the window should show now; `drawings` is what it has drawn so far."""
    regions = {"sidebar": sidebar(screen), "head": heading(screen), "modal": modal(screen)}
    lists: dict[str, Sequence[Piece]] = {}
    if screen.channel is None:
        regions["home"] = home(screen)
    else:
        lists["log"] = conversation(screen, drawings)
    if screen.thread:
        lists["thread"] = thread(screen, drawings)
    drawings.keep({piece.id for pieces in lists.values() for piece in pieces})
    return surroundings(Picture(regions, lists), screen, lab, texts)


def surroundings(before: Picture, screen: Screen, lab: Lab, texts: Sequence[Text]) -> Picture:
    """The same picture with the bot's state, the lab and the phone as they are now."""
    regions = {**before.regions, "top-status": top_status(lab)}
    if screen.thread:
        return Picture(regions, before.lists)
    return Picture({**regions, "lab": lab_html(lab)}, {**before.lists, "phone": phone(texts, screen)})


def differences(before: Picture | None, after: Picture) -> Iterator[Put]:
    """What turns one picture into the other; everything when there was none."""
    for target, html in after.regions.items():
        if before is None or before.regions.get(target) != html:
            yield Put(target, html, "inside")
    for target, pieces in after.lists.items():
        yield from list_changes(target, None if before is None else before.lists.get(target), pieces)


def list_changes(target: str, before: Sequence[Piece] | None, after: Sequence[Piece]) -> Iterator[Put]:
    """The steps from one list to the other: single pieces where what is new is at the end, else the whole list."""
    if before is None:
        yield _all(target, after)
        return
    old, wanted = {one.id: one.html for one in before}, {one.id for one in after}
    kept = [one.id for one in before if one.id in wanted]
    if [one.id for one in after[: len(kept)]] != kept:
        yield _all(target, after)
        return
    yield from (Put(id, "", "remove") for id in old if id not in wanted)
    yield from (Put(one.id, one.html, "replace") for one in after[: len(kept)] if one.html != old[one.id])
    yield from (Put(target, one.html, "append") for one in after[len(kept) :])


def events(
    screen: Callable[[], Screen | None], lab: Lab, texts: Callable[[], Sequence[Text]], person: str
) -> Iterator[bytes]:
    """The server-sent events of one window until it is closed, or `screen` finds nothing more to show."""
    yield b"retry: 1000\n\n"
    shown: Picture | None = None
    now, quiet, drawings = screen(), 0, Drawings()
    if now is None:
        return
    with now.workspace.subscribe(person) as changes:
        while now is not None:
            after = picture(now, lab, texts(), drawings)
            puts = [put.event() for put in differences(shown, after)]
            shown = after
            yield from puts
            while changes.get(TICK_SECONDS) is None:
                if changes.closed:
                    return
                after = surroundings(shown, now, lab, texts())
                puts = [put.event() for put in differences(shown, after)]
                shown, quiet = after, 0 if puts else quiet + 1
                # A window that was closed is noticed only when something is sent to it.
                yield from puts or ([b": still here\n\n"] if quiet % _BEAT_TICKS == 0 else [])
            while changes.get(0) is not None:
                pass
            now = screen()


def _all(target: str, pieces: Sequence[Piece]) -> Put:
    return Put(target, "".join(one.html for one in pieces), "all")
