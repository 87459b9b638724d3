"""A run whose flow this process does not have is still shown, decided about and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import pictures
from bot.app import build
from bot.commands import Start, start_run
from bot.decisions import UNREADABLE, DraftRefused, Wish, decide
from bot.dispatch import advance
from bot.parts import Parts
from bot.settings import load_settings
from graphs.catalog import CATALOG, Catalog
from graphs.flow import Flow
from storage import approvals, runs
from storage.runs import STUCK_AFTER, cancel
from storage.tables import ApprovalRow, RunRow
from tests.bot.saying import say

ANA, BEN = "U0ANA0001", "U0BEN0002"
NOON = 1_800_000_000_000_000  # microseconds
OLD = say(1, ending=lambda state, how: f"{state.text}: {how}")


class Office:
    """A run that asks, started by a process that had its flow, and the process that has come after it."""

    def __init__(self, folder: Path, *flows: Flow) -> None:
        self.url, self.now = f"sqlite:///{folder / 'signoff.db'}", NOON
        before = self._open(OLD)
        self.thread = start_run(
            before, OLD, Start(form={"text": "hello"}, who=ANA, channel="C0HIKES01", team="T0SIGNOFF")
        )
        advance(before.runner, self.thread)
        before.close()
        self.parts = self._open(*flows)

    def _open(self, *flows: Flow) -> Parts:
        return build(load_settings(database_url=self.url), catalog=Catalog(flows), clock=lambda: self.now)

    def run(self) -> RunRow:
        found = runs.find(self.parts.database, self.thread)
        assert found is not None
        return found

    def asked(self) -> ApprovalRow:
        return approvals.of_root(self.parts.database, self.thread)[0]


@pytest.fixture(params=["the flow is gone", "its version is gone"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    flows = CATALOG.flows if request.param == "the flow is gone" else (say(2),)
    opened = Office(tmp_path, *flows)
    yield opened
    opened.parts.close()


def test_its_card_says_that_it_is_stuck_and_what_to_do(office: Office) -> None:
    assert decide(office.parts, office.asked().id, BEN, Wish(verdict="approve")).result == "settled"
    office.now += 2 * STUCK_AFTER
    card = pictures.run_card(office.parts, office.run())
    assert (card.command, card.request, card.state) == ("/say", "hello", "stuck")
    assert "deploy the version" in str(card.note)


def test_its_draft_can_be_approved_or_declined_but_not_edited(office: Office) -> None:
    card = pictures.card_of(office.parts, office.asked())
    assert "Say it" in str(card)
    with pytest.raises(DraftRefused) as refused:
        decide(office.parts, office.asked().id, BEN, Wish(verdict="edit", edits={"text": "bye"}))
    assert refused.value.errors == {"text": UNREADABLE}
    assert decide(office.parts, office.asked().id, BEN, Wish(verdict="decline", reason="no")).result == "settled"


def test_its_end_is_told_without_the_flows_own_words(office: Office) -> None:
    cancel(office.parts.database, office.thread, BEN)
    notice = pictures.ending_notice(office.parts, office.run())
    assert (notice.command, notice.request, notice.ending, notice.text) == ("/say", "hello", "cancelled", "")


def test_an_end_from_before_is_told_too(tmp_path: Path) -> None:
    with_it = Office(tmp_path, OLD)
    decide(with_it.parts, with_it.asked().id, BEN, Wish(verdict="approve"))
    advance(with_it.parts.runner, with_it.thread)
    assert pictures.ending_notice(with_it.parts, with_it.run()).text == "hello: finished"
    with_it.parts.close()
    for flows in (CATALOG.flows, (say(2),)):
        parts = build(load_settings(database_url=with_it.url), catalog=Catalog(flows))
        run = runs.find(parts.database, with_it.thread)
        assert run is not None
        assert (pictures.ending_notice(parts, run).ending, pictures.ending_notice(parts, run).text) == ("finished", "")
        parts.close()
