"""Lets committed effects out through the ledger: written down before the request, settled after its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from graphs.engine.checkpoint import Claim, EffectRow
from graphs.engine.errors import StoreFailed
from graphs.ports import NotAccepted, PortError, Sender, Sent
from storage import ledger
from storage.database import Database
from storage.ledger import Result, Sending
from storage.tables import to_micros

log = structlog.get_logger(__name__)


class LedgerPerformer:
    """The `Performer` of every run: one sender for each kind of effect."""

    def __init__(self, database: Database, senders: Sequence[Sender]) -> None:
        self._database = database
        self._senders: Mapping[str, Sender] = {sender.kind: sender for sender in senders}

    def perform(self, claim: Claim, effects: Sequence[EffectRow]) -> None:
        """Send what is pending, one after the other; a failing one does not hold up the others."""
        for effect in effects:
            if effect.status == "pending" and (sending := ledger.begin(self._database, claim, effect.key)):
                self.send(sending)
        self.look_up_due()

    def send(self, sending: Sending) -> None:
        """Make the one request of an attempt and record what came of it.

        Whatever does not prove that nothing went out leaves the effect `sending`: it is looked up when its bound has
        passed, never sent again blindly.
        """
        sender = self._senders.get(sending.kind)
        if sender is None:
            self._record(
                sending, Result("failed", detail=f"Nothing here can send a {sending.kind}: check the settings.")
            )
        elif not ledger.may_send(self._database, sending):
            self._record(sending, Result("not_accepted", until=self._database.now()))
        else:
            try:
                sent = sender.send(sending.key, sending.address, sending.content, sending.payload)
            except NotAccepted as error:
                self._record(sending, _refused(error))
            except Exception as error:
                log.warning("outcome unknown", effect=sending.key, kind=sending.kind, error=type(error).__name__)
            else:
                self._record(sending, _sent(sent))

    def look_up_due(self) -> int:
        """Ask what became of requests whose answer never came; how many were asked about."""
        due = ledger.lookups_due(self._database)
        for sending in due:
            self._look_up(sending)
        return len(due)

    def _look_up(self, sending: Sending) -> None:
        sender = self._senders.get(sending.kind)
        if sender is None:
            self._record(sending, Result("unknown", detail=f"Nothing here can look up a {sending.kind}."))
            return
        try:
            found = sender.look_up(sending.key, sending.address, sending.content, sending.since)
        except PortError as error:
            log.warning("look-up failed", effect=sending.key, error=str(error))
            return
        if found is not None:
            self._record(sending, _sent(found))
        elif sender.absence_proves:
            self._record(sending, Result("not_accepted", until=self._database.now()))
        else:
            self._record(sending, Result("unknown", detail="The answer was lost, and the other side cannot be asked."))

    def _record(self, sending: Sending, result: Result) -> None:
        try:
            ledger.outcome(self._database, sending.key, sending.attempt, result)
        except StoreFailed:
            log.exception("outcome not recorded: it will be looked up", effect=sending.key)


def _sent(sent: Sent) -> Result:
    return Result("sent", ref=sent.ref, detail=str(sent.detail.get("note", "")))


def _refused(error: NotAccepted) -> Result:
    if error.until is None:
        return Result("failed", detail=str(error))
    return Result("not_accepted", detail=str(error), until=to_micros(error.until))
