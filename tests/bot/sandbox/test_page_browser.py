"""In a real browser: typing, clicking, forms, keys, live updates, two windows at once."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bot.sandbox.courier import Envelope
from bot.sandbox.records import BOT_USER, Timing
from tests.bot.sandbox.page_stage import ANA, BEN, HIKES, Stage, approval_card, edit_modal, furnish
from tests.browsers import watched

pytestmark = pytest.mark.browser


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage(Timing(ack_seconds=1.0))
    yield stage
    stage.close()


@pytest.fixture
def context(browser: Browser, stage: Stage) -> Iterator[BrowserContext]:
    """People's windows, closed before the stage is."""
    with watched(browser) as context:
        yield context


def window(context: BrowserContext, stage: Stage, person: str = ANA, channel: str = HIKES) -> Page:
    """A person's window."""
    page = context.new_page()
    page.goto(f"{stage.url}/?as={person}&channel={channel}")
    return page


def test_a_command_is_completed_and_sent_with_the_keyboard(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    box = page.get_by_role("combobox", name="Message #hikes")
    expect(box).to_be_focused()
    page.keyboard.type("/p")
    option = page.get_by_role("option", name="/plan-hike")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", str(option.get_attribute("id")))
    page.keyboard.press("Tab")
    expect(box).to_have_value("/plan-hike ")
    page.keyboard.type("Saturday")
    page.keyboard.press("Enter")
    expect(box).to_have_value("")
    stage.workspace.wait(lambda: stage.app.seen)
    assert [one.payload["text"] for one in stage.app.seen] == ["Saturday"]


def test_enter_sends_and_shift_enter_breaks_the_line(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    page.keyboard.type("first")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("<b>second</b> @b")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    message = page.get_by_role("article").filter(has_text="first")
    expect(message).to_contain_text("<b>second</b> @Ben")
    assert [one.text for one in stage.workspace.messages(HIKES)] == [f"first\n&lt;b&gt;second&lt;/b&gt; <@{BEN}>"]


def test_a_message_of_one_appears_in_the_window_of_the_other(context: BrowserContext, stage: Stage) -> None:
    ana, ben = window(context, stage, ANA), window(context, stage, BEN, "C0GENERAL")
    ana.keyboard.type("hello Ben")
    ana.keyboard.press("Enter")
    expect(ben.get_by_role("link", name=re.compile("hikes 1 unread"))).to_be_visible()
    expect(ben).to_have_title(re.compile(r"^\(1\) "))
    ben.get_by_role("link", name=re.compile("hikes")).click()
    expect(ben.get_by_role("log", name="Messages in hikes")).to_contain_text("hello Ben")


def test_a_button_spins_until_the_ack_and_warns_without_one(context: BrowserContext, stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    stage.app.silent = True
    page = window(context, stage)
    approve = page.get_by_role("button", name="Approve")
    approve.click()
    expect(approve).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("alert")).to_contain_text("The app did not answer within 3 seconds")
    expect(approve).not_to_have_attribute("aria-busy", "true")
    stage.app.silent = False
    stage.app.answer = lambda envelope: stage.workspace.put_message(replace(card, blocks=(), text="Approved by Ana"))
    approve.click()
    expect(page.get_by_text("Approved by Ana")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_confirmation_is_asked_for_first(context: BrowserContext, stage: Stage) -> None:
    stage.say(BOT_USER, "card", blocks=approval_card())
    page = window(context, stage)
    page.get_by_role("button", name="Decline").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Nothing is sent and the run ends.")
    question.get_by_role("button", name="Keep it").click()
    expect(question).to_have_count(0)
    assert stage.app.seen == []
    page.get_by_role("button", name="Decline").click()
    question.get_by_role("button", name="Decline").click()
    expect(question).to_have_count(0)
    stage.workspace.wait(lambda: stage.app.seen)
    assert [one.payload["actions"][0]["action_id"] for one in stage.app.seen] == ["decline"]


def test_two_windows_race_and_both_see_the_end(context: BrowserContext, stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    both, first = threading.Barrier(2, timeout=10), threading.Lock()

    def decide(envelope: Envelope) -> None:
        who = envelope.payload["user"]["id"]
        both.wait()
        if first.acquire(blocking=False):
            stage.workspace.put_message(replace(card, blocks=(), text=f"Approved by <@{who}>"))
        else:
            stage.say(BOT_USER, "Already decided.", ephemeral_to=who)

    stage.app.answer = decide
    ana, ben = window(context, stage, ANA), window(context, stage, BEN)
    clicks = "document.querySelector('.button.primary').click()"
    ana.evaluate(clicks)
    ben.evaluate(clicks)
    for page in (ana, ben):
        expect(page.get_by_text("Approved by @")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_card_leads_to_the_window_of_another_person(context: BrowserContext, stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    page = window(context, stage)
    with context.expect_page() as opened:
        page.get_by_role("article").get_by_role("link", name="Ben").click()
    expect(opened.value.get_by_text("You are Ben and can decide.")).to_be_visible()
    assert opened.value.url.endswith(f"#m-{card.ts}")


def test_a_form_shows_its_errors_at_the_fields_and_keeps_what_was_typed(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    stage.open_modal(ANA, edit_modal())
    text = page.get_by_label("Text message")
    expect(text).to_be_focused()
    text.fill("A text of my own")
    stage.app.answer = lambda envelope: {"response_action": "errors", "errors": {"text": "Say where to meet."}}
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Please complete this required field.")).to_be_visible()
    expect(text).to_have_value("A text of my own")
    page.get_by_label("Easy").check()
    page.keyboard.press("Control+Enter")
    expect(text).to_be_focused()
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(text).to_have_accessible_description(re.compile("Under 300 characters.*Say where to meet"))
    expect(page.get_by_label("Easy")).to_be_checked()
    stage.app.answer = lambda envelope: None
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    values = stage.app.seen[-1].payload["view"]["state"]["values"]
    assert values["text"]["value"]["value"] == "A text of my own"


def test_escape_closes_the_form_and_the_focus_returns(context: BrowserContext, stage: Stage) -> None:
    stage.say(BOT_USER, "card", blocks=approval_card())
    page = window(context, stage)
    edit = page.get_by_role("button", name="Edit", exact=True)
    stage.app.answer = lambda envelope: stage.open_modal(ANA, edit_modal()) and None
    edit.press("Enter")
    expect(page.get_by_role("dialog", name="Edit and approve")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(edit).to_be_focused()
    assert stage.workspace.modals(ANA) == []


def test_what_is_being_typed_survives_an_update_of_the_form(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    view = stage.open_modal(ANA, edit_modal())
    page.get_by_label("Why you changed it").fill("shorter")
    blocks = [{"type": "section", "block_id": "s", "text": {"type": "mrkdwn", "text": "Updated"}}, *view.blocks]
    stage.workspace.put_view(replace(view, hash="2.b", view={**view.view, "blocks": blocks}))
    expect(page.get_by_text("Updated")).to_be_visible()
    expect(page.get_by_label("Why you changed it")).to_have_value("shorter")


def test_long_text_unfolds_and_stays_so_when_the_message_changes(context: BrowserContext, stage: Stage) -> None:
    message = stage.say(BEN, "word " * 300 + "end")
    page = window(context, stage)
    page.get_by_role("button", name="See more").click()
    expect(page.get_by_role("button", name="See less")).to_have_attribute("aria-expanded", "true")
    stage.workspace.put_message(replace(message, text=message.text + " changed"))
    expect(page.get_by_text("end changed")).to_be_visible()
    expect(page.get_by_role("button", name="See less")).to_be_visible()


def test_the_lab_kills_the_bot_and_the_page_says_so(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    page.get_by_role("button", name="Kill the bot").click()
    expect(page.get_by_role("banner")).to_contain_text("Signoff is stopped")
    expect(page.get_by_role("button", name="Kill the bot")).to_be_disabled()
    page.get_by_role("button", name="Start the bot").click()
    expect(page.get_by_role("banner")).to_contain_text("Signoff is running")
    page.get_by_role("button", name="Rate limit the next 3 calls").click()
    expect(page.get_by_text("3 left")).to_be_visible()


def test_a_text_that_goes_out_appears_on_the_phone(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    expect(page.get_by_role("log", name="Texts on the phone")).to_be_empty()
    stage.texts.append({"to": "+1 503 555 0134", "body": "Meet at 08:30", "at": 1_780_000_000})
    expect(page.get_by_role("log", name="Texts on the phone")).to_contain_text("Meet at 08:30")


def test_somebody_new_joins_a_channel_and_can_write_there(context: BrowserContext, stage: Stage) -> None:
    stage.workspace.leave(HIKES, BEN)
    page = window(context, stage, BEN)
    expect(page.get_by_role("combobox")).to_have_count(0)
    page.get_by_role("button", name="Join #hikes").click()
    expect(page.get_by_role("combobox", name="Message #hikes")).to_be_focused()
    assert BEN in stage.workspace.channels()[1].members


def test_a_draft_survives_a_look_at_another_channel(context: BrowserContext, stage: Stage) -> None:
    page = window(context, stage)
    page.keyboard.type("half a thought")
    page.get_by_role("link", name="general").click()
    expect(page.get_by_role("combobox", name="Message #general")).to_have_value("")
    page.get_by_role("link", name="hikes").click()
    expect(page.get_by_role("combobox", name="Message #hikes")).to_have_value("half a thought")


def test_a_narrow_window_hides_the_sidebar_behind_a_button(browser: Browser, stage: Stage) -> None:
    furnish(stage)
    with watched(browser, 420, 800) as context:
        page = window(context, stage)
        sidebar = page.get_by_role("navigation", name="Conversations")
        expect(sidebar).to_be_hidden()
        page.get_by_role("button", name="Conversations").click()
        expect(sidebar).to_be_visible()
        page.keyboard.press("Escape")
        expect(sidebar).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_a_menu_and_a_date_in_a_message_are_sent_when_chosen(context: BrowserContext, stage: Stage) -> None:
    options = [{"text": {"type": "plain_text", "text": name}, "value": name.lower()} for name in ("Easy", "Hard")]
    pace = {"type": "plain_text", "text": "Pace"}
    elements = [
        {"type": "static_select", "action_id": "pace", "options": options, "placeholder": pace},
        {"type": "datepicker", "action_id": "day", "initial_date": "2026-12-05"},
        {"type": "overflow", "action_id": "more", "options": options},
        {"type": "multi_static_select", "action_id": "who", "options": options},
    ]
    stage.say(BOT_USER, "menus", blocks=({"type": "actions", "block_id": "b", "elements": elements},))
    page = window(context, stage)
    page.get_by_role("combobox", name="Pace").select_option("hard")
    page.get_by_label("day").fill("2026-12-06")
    page.get_by_label("more", exact=True).click()
    page.get_by_role("button", name="Easy").click()
    page.get_by_text("Select options").click()
    page.get_by_role("checkbox", name="Easy").check()
    stage.workspace.wait(lambda: len(stage.app.seen) >= 4)
    actions = {one["action_id"]: one for envelope in stage.app.seen for one in envelope.payload["actions"]}
    assert actions["pace"]["selected_option"]["value"] == "hard"
    assert actions["day"]["selected_date"] == "2026-12-06"
    assert actions["more"]["selected_option"]["value"] == "easy"
    assert [one["value"] for one in actions["who"]["selected_options"]] == ["easy"]
