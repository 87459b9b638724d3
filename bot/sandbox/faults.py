"""What can be made to go wrong on purpose, each time counted and logged."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from bot.sandbox.workspace import BOT_USER, Workspace

CallFault: TypeAlias = Literal["ratelimited", "dropped", "server_error"]
_KEPT = 200


@dataclass(frozen=True, slots=True)
class Happened:
    """One fault that took place: its name, what it hit, and when (Unix seconds)."""

    fault: str
    what: str
    at: float


class Sockets(Protocol):
    """The Socket Mode connections, as far as faults touch them."""

    def refresh(self, reason: str = "refresh_requested") -> int:
        """Ask the app to reconnect; how many connections were told."""

    def cut(self) -> int:
        """Break every connection without a goodbye; how many there were."""


class Faults:
    """Switches for the next calls and envelopes, and the accidents that happen at once. Safe to use from any thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._calls: Counter[tuple[CallFault, str]] = Counter()
        self._retry_after = 1
        self._twice: Counter[str] = Counter()
        self._slow: dict[str, float] = {}
        self._log: list[Happened] = []
        self._stopped = threading.Event()
        self.sockets: Sockets | None = None

    # --- switches ---------------------------------------------------------------------------------------------------

    def rate_limit(self, method: str, times: int = 1, retry_after: int = 1) -> None:
        """Answer the next calls of a Web API method ("*": of any) with 429 and `Retry-After` in seconds."""
        self._retry_after = retry_after
        self._arm("ratelimited", method, times)

    def drop(self, method: str, times: int = 1) -> None:
        """Do what the next calls ask, then break the connection instead of answering."""
        self._arm("dropped", method, times)

    def fail(self, method: str, times: int = 1) -> None:
        """Answer the next calls with status 500 and do nothing."""
        self._arm("server_error", method, times)

    def twice(self, kind: str = "*", times: int = 1) -> None:
        """Deliver the next envelopes of a kind (`slash_commands`, `interactive`, `events_api`, "*") two times."""
        with self._lock:
            self._twice[kind] += times
        self._workspace.announce("fault", "twice")

    def slow(self, method: str, seconds: float) -> None:
        """Delay every call of a method ("*": of any) until set to 0."""
        with self._lock:
            self._slow.pop(method, None)
            if seconds > 0:
                self._slow[method] = seconds
        self._workspace.announce("fault", "slow")

    def clear(self) -> None:
        """Turn every switch off."""
        with self._lock:
            self._calls.clear()
            self._twice.clear()
            self._slow.clear()
        self._workspace.announce("fault", "clear")

    # --- accidents --------------------------------------------------------------------------------------------------

    def delete_message(self, channel: str, ts: str) -> bool:
        """Delete a message behind the app's back; False when there is none."""
        deleted = self._workspace.delete_message(channel, ts)
        if deleted:
            self.note("message_deleted", f"{channel} {ts}")
        return deleted

    def archive(self, channel: str, archived: bool = True) -> None:
        """Archive a channel, or bring it back."""
        found = self._workspace.channel(channel)
        if found is not None:
            self._workspace.put_channel(replace(found, archived=archived))
            self.note("archived" if archived else "unarchived", channel)

    def remove_bot(self, channel: str) -> None:
        """Remove the app from a channel."""
        if self._workspace.channel(channel) is not None:
            self._workspace.leave(channel, BOT_USER)
            self.note("bot_removed", channel)

    def refresh(self, reason: str = "refresh_requested") -> int:
        """Send `disconnect` with this reason on every socket; how many were told."""
        told = self.sockets.refresh(reason) if self.sockets else 0
        self.note(reason, f"{told} sockets")
        return told

    def cut(self) -> int:
        """Break every socket without a goodbye; how many there were."""
        broken = self.sockets.cut() if self.sockets else 0
        self.note("sockets_cut", f"{broken} sockets")
        return broken

    # --- what is set and what happened ------------------------------------------------------------------------------

    def armed(self) -> dict[str, float]:
        """The switches that are on: `{"ratelimited chat.postMessage": 2, "twice interactive": 1, "slow *": 0.5}`."""
        with self._lock:
            calls = {f"{fault} {method}": float(times) for (fault, method), times in self._calls.items()}
            twice = {f"twice {kind}": float(times) for kind, times in self._twice.items()}
            return {**calls, **twice, **{f"slow {method}": seconds for method, seconds in self._slow.items()}}

    def log(self) -> list[Happened]:
        """The latest faults that took place, oldest first."""
        with self._lock:
            return list(self._log)

    def counts(self) -> dict[str, int]:
        """How often each fault took place, among those in the log."""
        return dict(Counter(one.fault for one in self.log()))

    def note(self, fault: str, what: str) -> None:
        """Log that a fault took place."""
        with self._lock:
            self._log = [*self._log, Happened(fault, what, self._workspace.clock())][-_KEPT:]
        self._workspace.announce("fault", fault)

    # --- for the stand-in itself ------------------------------------------------------------------------------------

    def hits(self, fault: CallFault, method: str) -> bool:
        """Whether this call is to fail in this way; takes one from the switch."""
        for name in (method, "*"):
            with self._lock:
                hit = self._calls[fault, name] > 0
                self._calls[fault, name] -= hit
                self._calls += Counter()
            if hit:
                self.note(fault, method)
                return True
        return False

    @property
    def retry_after(self) -> int:
        """The seconds a rate limited caller is told to wait."""
        return self._retry_after

    def copies(self, kind: str) -> int:
        """How often the next envelope of this kind is to be sent; takes one from the switch."""
        for name in (kind, "*"):
            with self._lock:
                hit = self._twice[name] > 0
                self._twice[name] -= hit
                self._twice += Counter()
            if hit:
                self.note("twice", kind)
                return 2
        return 1

    def delay(self, method: str) -> None:
        """Wait as long as calls of this method are slowed down, or until the stand-in stops."""
        with self._lock:
            seconds = self._slow.get(method, self._slow.get("*", 0.0))
        if seconds:
            self.note("slow", method)
            self._stopped.wait(seconds)

    def close(self) -> None:
        """Let go of every delayed call."""
        self._stopped.set()

    def _arm(self, fault: CallFault, method: str, times: int) -> None:
        with self._lock:
            self._calls[fault, method] += times
        self._workspace.announce("fault", fault)
