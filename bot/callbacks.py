"""What Twilio tells about a text: that it exists, which settles an effect whose answer was lost."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from urllib.parse import urlencode

import structlog

from bot.parts import Parts
from bot.settings import Settings
from storage import approvals, ledger
from storage.decisions import decide
from storage.doubts import question_id
from storage.ledger import Result
from storage.refusals import Actor
from storage.tables import EffectLedgerRow

log = structlog.get_logger(__name__)


def is_from_twilio(settings: Settings, key: str, form: Mapping[str, str], signature: str) -> bool:
    """Whether a callback carries Twilio's signature for our address and its form (X-Twilio-Signature)."""
    if settings.twilio_auth_token is None or not settings.twilio_status_url:
        return False
    joint = "&" if "?" in settings.twilio_status_url else "?"
    url = f"{settings.twilio_status_url}{joint}{urlencode({'key': key})}"
    validator = import_module("twilio.request_validator").RequestValidator(
        settings.twilio_auth_token.get_secret_value()
    )
    return bool(validator.validate(url, dict(form), signature))


def text_exists(parts: Parts, key: str, sid: str, status: str) -> bool:
    """A text with this effect's key was created: whatever was in doubt about it is not any more."""
    row = _find(parts, key)
    if row is None:
        return False
    result = Result("sent", ref=sid, detail=f"Twilio says: {status}")
    if row.status == "sending":
        ledger.outcome(parts.database, key, row.attempt, result)
    elif row.status == "unknown":
        actor = Actor("twilio", team=_team(parts, key, row.attempt))
        question = question_id(key, row.attempt)
        decide(parts.database, question, actor=actor, verdict="answer", version=None, value="sent", via="callback")
    log.info("text reported", effect=key, status=status, was=row.status)
    parts.executor.after_commit(row.root)
    return True


def _find(parts: Parts, key: str) -> EffectLedgerRow | None:
    try:
        place = ledger.place_of(key)
    except ValueError:
        return None
    with parts.database.read() as session:
        return session.get(EffectLedgerRow, tuple(place.values()))


def _team(parts: Parts, key: str, attempt: int) -> str:
    asked = approvals.find(parts.database, question_id(key, attempt))
    return asked.team if asked else ""
