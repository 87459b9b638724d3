"""The Home tab: everything that waits for a person, a page at a time, to be decided there."""

from __future__ import annotations

from dataclasses import replace

from sqlmodel import Session

from bot.blocks.home import WAITING_PAGE
from bot.sandbox.records import View
from storage.tables import ApprovalRow, CardRow
from tests.bot.scene import ANA, BEN, CLEO, HIKES, OPS, Scene, button, has_button


def test_an_empty_inbox_says_so(scene: Scene) -> None:
    scene.people.open_home(BEN)
    home = scene.home(BEN)
    assert "Nothing waits for you" in str(home.blocks)
    assert "Nothing of yours is under way" in str(home.blocks)


def test_what_waits_is_shown_to_those_who_may_decide_and_what_is_theirs_to_whoever_asked(scene: Scene) -> None:
    scene.ask()
    scene.card()
    for who in (ANA, BEN):
        scene.people.open_home(who)
    assert has_button(scene.home(BEN, "Approve").blocks, "Approve")
    mine = scene.home(ANA)
    assert not has_button(mine.blocks, "Approve")
    assert "Nothing waits for you" in str(mine.blocks)
    assert "dry morning hike" in str(mine.blocks)


def test_a_draft_is_approved_from_home_and_leaves_it(scene: Scene) -> None:
    scene.ask()
    scene.card()
    scene.people.open_home(BEN)
    press(scene, BEN, scene.home(BEN, "Approve"), "Approve")
    scene.ended("finished")
    scene.said("*Approved* by <@U0BEN0002>")
    scene.until(lambda: "Nothing waits for you" in str(scene.home(BEN).blocks), "Home being empty again")
    assert "approved" in str(scene.home(BEN).blocks)
    assert len(scene.outbox()) == 1


def test_a_draft_that_somebody_else_decided_is_not_decided_again_from_an_old_home(scene: Scene) -> None:
    scene.ask()
    card = scene.card()
    scene.people.open_home(BEN)
    old = scene.home(BEN, "Approve")
    scene.click(CLEO, card, "Approve")
    scene.ended("finished")
    scene.workspace.put_view(replace(scene.home(BEN), view=old.view))
    press(scene, BEN, old, "Approve")
    scene.told(BEN, "<@U0CLEO003>")
    assert len(scene.outbox()) == 1


def test_what_waits_in_a_channel_is_hidden_from_everybody_else(scene: Scene) -> None:
    scene.ask(channel=OPS)
    scene.card(channel=OPS)
    scene.people.open_home(CLEO)
    assert "Nothing waits for you" in str(scene.home(CLEO).blocks)


def test_a_hundred_drafts_are_shown_page_by_page_within_slacks_limits(scene: Scene) -> None:
    scene.ask()
    scene.card()
    copy(scene, 99)
    scene.people.open_home(BEN)
    first = scene.home(BEN, "More")
    assert f"1 to {WAITING_PAGE} of 100" in str(first.blocks)
    assert len(first.blocks) <= 100
    press(scene, BEN, first, "More")
    second = scene.home(BEN, "Back")
    assert f"{WAITING_PAGE + 1} to {2 * WAITING_PAGE} of 100" in str(second.blocks)
    press(scene, BEN, second, "Approve")
    scene.until(lambda: "of 99" in str(scene.home(BEN).blocks), "one less")


def press(scene: Scene, who: str, home: View, label: str) -> None:
    """Press the first button on Home that is labelled so."""
    block, element = button(home.blocks, label)
    scene.people.click_in_view(who, home.id, block, element["action_id"])


def copy(scene: Scene, number: int) -> None:
    """The newest approval so many times more, each with its card."""
    asked = scene.approval()
    rows: list[ApprovalRow | CardRow] = []
    for n in range(number):
        rows.append(ApprovalRow(**{**asked.model_dump(), "id": f"{asked.id}-{n}", "place": f"{asked.place}-{n}"}))
        drawn = f"{asked.rev}:{asked.status}"
        rows.append(CardRow(scope="approval", subject=f"{asked.id}-{n}", channel=HIKES, ts="1.000001", drawn=drawn))
    engine = scene.bot.parts.database.engine
    with Session(engine) as session, session.begin():
        session.connection().exec_driver_sql("PRAGMA query_only=OFF")
        session.add_all(rows)
