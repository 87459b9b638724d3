"""Carry envelopes to the app, wait for their acks within Slack's deadline, and redeliver events."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from bot.sandbox.faults import Faults
from bot.sandbox.records import Delivery, DeliveryKind, JsonObject
from bot.sandbox.workspace import Workspace

NOT_CONNECTED = "dispatch_failed"
TIMED_OUT = "operation_timeout"
_KEPT_ENVELOPES = 2_000

Consequence: TypeAlias = Callable[[Any], str]
"""What an ack's payload does; returns what is wrong with it, or the empty string."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One attempt to deliver: `attempt` counts from 0, `reason` says why it is made again."""

    id: str
    kind: DeliveryKind
    payload: JsonObject
    attempt: int = 0
    reason: str = ""


class Receiver(Protocol):
    """Who is told what became of an envelope."""

    def acked(self, envelope_id: str, response: Any) -> None:
        """The app took it and answered with `response` (None for nothing)."""

    def refused(self, envelope_id: str, problem: str) -> None:
        """The app could not be reached or answered with an error."""


class Transport(Protocol):
    """A way to the app."""

    def send(self, envelope: Envelope, receiver: Receiver) -> bool:
        """Hand an envelope over without waiting for the ack; False when nothing is connected."""

    def close(self) -> None:
        """Give up whatever is under way."""


class Courier:
    """The deliveries under way; safe to use from any thread. `transport` may be exchanged at any time."""

    def __init__(self, workspace: Workspace, faults: Faults) -> None:
        self._workspace = workspace
        self._faults = faults
        self.transport: Transport | None = None
        self._envelopes: dict[str, str] = {}
        self._consequences: dict[str, Consequence] = {}
        self._timers: set[threading.Timer] = set()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="sandbox-event")
        self._closed = False

    def send(self, kind: DeliveryKind, payload: JsonObject, user: str, label: str, **fields: Any) -> Delivery:
        """Deliver once and wait until it is acked, late or failed.

        `consequence` among the fields is called with the ack's payload before anything else can happen; the others are
        fields of `Delivery`.
        """
        return self._carry(self._register(kind, payload, user, label, **fields))

    def post(self, payload: JsonObject, user: str, label: str, **fields: Any) -> Delivery:
        """Deliver an event in the background, again and again as Slack does, and return at once."""
        delivery = self._register("events_api", payload, user, label, **fields)
        self._pool.submit(self._carry, delivery)
        return delivery

    def acked(self, envelope_id: str, response: Any) -> None:
        """Settle the delivery of this envelope; an ack after the deadline or a second one changes nothing."""
        with self._workspace.lock:
            delivery = self._find(envelope_id)
            if delivery is None or delivery.acked_at is not None:
                return
            delivery = replace(delivery, acked_at=self._workspace.clock(), response=response)
            if delivery.status == "waiting":
                delivery = self._conclude(delivery)
            self._workspace.put_delivery(delivery)

    def refused(self, envelope_id: str, problem: str) -> None:
        """Settle the delivery of this envelope as failed."""
        with self._workspace.lock:
            delivery = self._find(envelope_id)
            if delivery is not None and delivery.status == "waiting":
                self._workspace.put_delivery(replace(delivery, status="failed", problem=problem))

    def close(self) -> None:
        """Stop redelivering and wait for what is under way."""
        with self._workspace.lock:
            self._closed = True
            timers = tuple(self._timers)
            for delivery in self._workspace.deliveries():
                if delivery.status == "waiting":
                    self._workspace.put_delivery(replace(delivery, status="failed", problem=NOT_CONNECTED))
        for timer in timers:
            timer.cancel()
            timer.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _register(
        self,
        kind: DeliveryKind,
        payload: JsonObject,
        user: str,
        label: str,
        consequence: Consequence | None = None,
        **fields: Any,
    ) -> Delivery:
        id = fields.pop("id", None) or str(uuid.uuid4())
        # What the app is sent is what was true when the person acted: later changes must not reach into the payload.
        frozen = json.loads(json.dumps(payload))
        delivery = Delivery(id, kind, frozen, user, label, self._workspace.clock(), **fields)
        with self._workspace.lock:
            if consequence is not None:
                self._consequences[id] = consequence
            return self._workspace.put_delivery(delivery)

    def _carry(self, delivery: Delivery) -> Delivery:
        self._dispatch(delivery)
        settled = self._settle(delivery.id)
        if settled.kind == "events_api" and settled.status != "acked":
            self._again(settled)
        return settled

    def _dispatch(self, delivery: Delivery) -> None:
        attempt = delivery.attempts
        envelope_id = delivery.id if attempt == 0 else str(uuid.uuid4())
        reason = "" if attempt == 0 else _reason(delivery)
        envelope = Envelope(envelope_id, delivery.kind, delivery.payload, attempt, reason)
        with self._workspace.lock:
            self._envelopes[envelope_id] = delivery.id
            while len(self._envelopes) > _KEPT_ENVELOPES:
                del self._envelopes[next(iter(self._envelopes))]
            waiting = replace(delivery, attempts=attempt + 1, status="waiting", problem="", acked_at=None)
            self._workspace.put_delivery(waiting)
        for _ in range(self._faults.copies(delivery.kind)):
            if self.transport is None or not self.transport.send(envelope, self):
                self.refused(envelope_id, NOT_CONNECTED)

    def _settle(self, id: str) -> Delivery:
        self._workspace.wait(lambda: self._current(id).status != "waiting", self._workspace.timing.ack_seconds)
        with self._workspace.lock:
            delivery = self._current(id)
            if delivery.status == "waiting":
                delivery = self._workspace.put_delivery(replace(delivery, status="late", problem=TIMED_OUT))
            if delivery.kind != "events_api" or delivery.status == "acked":
                self._consequences.pop(id, None)
            return delivery

    def _again(self, delivery: Delivery) -> None:
        pauses = self._workspace.timing.retry_seconds
        retry = delivery.attempts - 1
        with self._workspace.lock:
            if self._closed or retry >= len(pauses):
                return
            timer = threading.Timer(pauses[retry], self._redeliver, (delivery.id,))
            timer.daemon = True
            self._timers = {one for one in self._timers if one.is_alive()} | {timer}
            timer.start()

    def _redeliver(self, id: str) -> None:
        with self._workspace.lock:
            if self._closed or self._current(id).status == "acked":
                return
        self._carry(self._current(id))

    def _conclude(self, delivery: Delivery) -> Delivery:
        consequence = self._consequences.get(delivery.id)
        problem = consequence(delivery.response) if consequence else ""
        return replace(delivery, status="failed" if problem else "acked", problem=problem)

    def _find(self, envelope_id: str) -> Delivery | None:
        return self._workspace.delivery(self._envelopes.get(envelope_id, ""))

    def _current(self, id: str) -> Delivery:
        delivery = self._workspace.delivery(id)
        if delivery is None:
            raise LookupError(f"Delivery {id} is no longer remembered; too many others came after it.")
        return delivery


def _reason(delivery: Delivery) -> str:
    if delivery.status == "late":
        return "timeout"
    return "connection_failed" if delivery.problem == NOT_CONNECTED else "http_error"
