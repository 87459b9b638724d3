"""The faults that the page's lab offers, each with what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.faults import Faults
from bot.sandbox.lab import Fault, Lab


@dataclass(frozen=True, slots=True)
class _Mishap:
    name: str
    label: str
    inject: Callable[[Faults], object]
    # The key of `Faults.armed()` that says whether it is still to come; empty for what happens at once.
    armed: str = ""
    unit: str = "left"


_MISHAPS = (
    _Mishap("twice", "Deliver the next 3 clicks twice", lambda on: on.twice("interactive", 3), "twice interactive"),
    _Mishap(
        "command_twice", "Deliver the next command twice", lambda on: on.twice("slash_commands"), "twice slash_commands"
    ),
    _Mishap("ratelimited", "Rate limit the next 3 calls", lambda on: on.rate_limit("*", 3), "ratelimited *"),
    _Mishap(
        "dropped",
        "Take the next post, lose the answer",
        lambda on: on.drop("chat.postMessage"),
        "dropped chat.postMessage",
    ),
    _Mishap("server_error", "Fail the next 2 calls", lambda on: on.fail("*", 2), "server_error *"),
    _Mishap("slow", "Slow every call down by 2 s", lambda on: on.slow("*", 2.0), "slow *", "seconds"),
    _Mishap("refresh", "Ask the bot to reconnect", lambda on: on.refresh()),
    _Mishap("cut", "Cut the bot's connection", lambda on: on.cut()),
)


def lab_of(faults: Faults, status: Callable[[], str], kill: Callable[[], None], start: Callable[[], None]) -> Lab:
    """The lab over the stand-in's faults and whoever runs the bot."""

    def offered() -> list[Fault]:
        armed = faults.armed()
        return [Fault(one.name, one.label, _left(armed.get(one.armed, 0.0), one.unit)) for one in _MISHAPS]

    def inject(name: str) -> None:
        {one.name: one for one in _MISHAPS}[name].inject(faults)

    return Lab(status, kill, start, offered, inject, faults.clear)


def _left(count: float, unit: str) -> str:
    return f"{count:g} {unit}" if count else ""
