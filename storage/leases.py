"""Leases: how long a claim holds without a sign of life, and the thread that gives these signs."""

from __future__ import annotations

import logging
import threading

from graphs.engine.checkpoint import Claim
from graphs.engine.errors import StoreFailed
from storage.database import Database
from storage.statements import Transaction, prepare

LEASE = 8_000_000  # microseconds a claim holds
BEAT = 2.0  # seconds between two signs of life

_log = logging.getLogger(__name__)
_RENEW = prepare("UPDATE runs SET lease_until = :until WHERE thread_id = :root AND claim = :owner")


class Heartbeat:
    """One thread per process that renews the leases of all claims it was given, every `interval` seconds."""

    def __init__(self, database: Database, interval: float = BEAT) -> None:
        self._database, self._interval = database, interval
        self._claims: dict[str, Claim] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, claim: Claim) -> None:
        """Keep a claim alive from now on."""
        with self._lock:
            self._claims[claim.id] = claim
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._go_on, name="signoff-heartbeat", daemon=True)
                self._thread.start()

    def remove(self, claim: Claim) -> None:
        """Let a claim run out, or forget one that was released."""
        with self._lock:
            self._claims.pop(claim.id, None)

    def close(self) -> None:
        """Stop renewing anything."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def beat(self) -> None:
        """Renew every lease once; a claim that somebody else has taken over is marked lost."""
        with self._lock:
            held = list(self._claims.values())
        # One work a run, because a batch locks runs in the order of their keys.
        saves = [
            (claim, self._database.writer.submit(claim.thread_id, lambda tx, claim=claim: renew(tx, claim)))  # type: ignore[misc]
            for claim in held
            if not claim.lost
        ]
        for claim, save in saves:
            if not save.result():
                claim.lost = True
        for claim in held:
            if claim.lost:
                self.remove(claim)

    def _go_on(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                self.beat()
            except StoreFailed as error:
                _log.warning("No lease could be renewed: %s", error)


def renew(tx: Transaction, claim: Claim) -> bool:
    """Move a claim's lease on; False if the claim is not the run's any more."""
    return tx.run(_RENEW, root=claim.thread_id, owner=claim.id, until=tx.now + LEASE).rowcount == 1
