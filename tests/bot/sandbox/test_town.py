"""The sandbox as people use it: the page in a real browser, the bot as a child process, killed where it hurts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from bot.process import read_manifest
from bot.sandbox.town import Town
from tests.bot.sandbox.page_stage import ANA, BEN, CLEO, HIKES
from tests.browsers import watched

in_browser = pytest.mark.browser
PATIENCE = 20.0  # seconds until something that should happen at once is given up
STARTING = 60.0  # seconds a bot has to start on a busy machine
BRISK = {"SIGNOFF_MODEL_SCRIPT": "straight", "SIGNOFF_SWEEP_SECONDS": "0.3"}


@contextmanager
def windows(browser: Browser) -> Iterator[BrowserContext]:
    """People's windows, as patient as the tests."""
    with watched(browser) as context:
        context.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        yield context


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """People's windows on the town that the tests share."""
    with windows(browser) as context:
        yield context


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A town that the tests share, each with a request of its own."""
    pace = {"SIGNOFF_MODEL_SECONDS": "0.1", "SIGNOFF_REMIND_AFTER": "2s,4s"}
    with Town(tmp_path_factory.mktemp("town"), read_manifest(), 0, {**BRISK, **pace}) as town:
        town.start()
        assert town.connected(STARTING)
        yield town


def window(context: BrowserContext, town: Town, person: str, channel: str = HIKES) -> Page:
    """A person's window."""
    page = context.new_page()
    page.goto(f"{town.url}/?as={person}&channel={channel}")
    return page


def ask(page: Page, request: str) -> Locator:
    """Type the command; gives the message that tells how far the run is."""
    page.get_by_role("combobox").fill(f"/plan-hike {request}")
    page.keyboard.press("Enter")
    return _message(page, page.get_by_role("article").filter(has_text=request).filter(has_text="/plan-hike for"))


def card_of(page: Page, request: str) -> Locator:
    """The card of a request that waits for a decision, wherever it goes from there."""
    asked = page.get_by_role("article").filter(has_text=request)
    return _message(page, asked.filter(has=page.get_by_role("button", name="Approve draft")))


def _message(page: Page, found: Locator) -> Locator:
    """The message itself, which stays the same while what it says changes."""
    found = found.first
    expect(found).to_be_visible()
    return page.locator(f'[id="{found.get_attribute("id")}"]')


def ending(page: Page, request: str) -> Locator:
    """The message that tells how a run ended."""
    return page.get_by_role("article").filter(has_text=request).filter(has_text=re.compile(r"took \d"))


def bubbles(page: Page, text: str) -> Locator:
    """The texts on the phone that hold these words."""
    return page.get_by_role("log", name="Texts on the phone").locator(".bubble").filter(has_text=text)


def press(card: Locator, name: str) -> None:
    card.get_by_role("button", name=re.compile(f"^{name}")).click()


def sent(town: Town, text: str) -> list[tuple[str, str]]:
    """What really went out with these words: kind and text."""
    return [(one["kind"], one["body"]) for one in town.practice.outbox() if text in one["body"]]


class TestInTheBrowser:
    pytestmark = in_browser

    def test_a_draft_is_planned_changed_and_sent_once_as_it_was_approved(
        self, context: BrowserContext, town: Town
    ) -> None:
        ana, ben = window(context, town, ANA), window(context, town, BEN)
        progress = ask(ana, "Saturday, dry, to be edited")
        expect(progress).to_contain_text("✓ worker")
        expect(progress).to_contain_text("✋ approve")
        expect(progress.get_by_text("can decide")).to_have_count(0)
        expect(card_of(ana, "to be edited")).to_contain_text("You are Ana. Ben or Cleo can decide: open as Ben · Cleo")

        card = card_of(ben, "to be edited")
        expect(card).to_contain_text("You are Ben and can decide.")
        press(card, "Edit")
        text = ben.get_by_label("Text message")
        expect(text).to_be_focused()
        was = text.input_value()
        text.fill(f"{was} <!here>")
        ben.get_by_role("button", name="Submit").click()
        expect(text).to_have_attribute("aria-invalid", "true")
        expect(text).to_be_focused()
        expect(text).to_have_accessible_description(re.compile("cannot mention anybody"))
        expect(text).to_have_value(f"{was} <!here>")
        text.fill(f"{was} Leashed dogs only.")
        ben.keyboard.press("Control+Enter")
        expect(ben.get_by_role("dialog")).to_have_count(0)

        for page in (ana, ben):
            expect(bubbles(page, "Leashed dogs only.")).to_have_text(f"{was} Leashed dogs only.")
            shown = page.locator(f'[id="{card.get_attribute("id")}"]')
            expect(shown).to_contain_text("Approved by @Ben")
            expect(shown.locator("b, strong").filter(has_text="Leashed dogs only.")).to_be_visible()
            expect(shown.get_by_role("button")).to_have_count(0)
            expect(ending(page, "to be edited")).to_contain_text("✓ Text to +15035550134")
        assert sent(town, "Leashed dogs only.") == [("sms", f"{was} Leashed dogs only.")]

    def test_a_decline_is_told_with_its_reason_in_the_channel_and_to_whoever_asked(
        self, context: BrowserContext, town: Town
    ) -> None:
        ana, ben = window(context, town, ANA), window(context, town, BEN)
        before = len(town.practice.outbox())
        ask(ana, "Saturday, to be declined")
        card = card_of(ben, "to be declined")
        press(card, "Decline")
        reason = ben.get_by_label("Reason")
        expect(reason).to_be_focused()
        ben.get_by_role("button", name="Decline", exact=True).click()
        expect(ben.get_by_text("Please complete this required field.")).to_be_visible()
        reason.fill("The ferry does not run")
        ben.keyboard.press("Control+Enter")
        expect(card).to_contain_text("Declined by @Ben")
        expect(card).to_contain_text("The ferry does not run")
        notice = ana.get_by_role("article").filter(has_text="to be declined").filter(has_text="Nothing went out.")
        expect(notice).to_contain_text("The ferry does not run")
        ana.get_by_role("link", name=re.compile(r"Signoff.*unread")).click()
        direct = ana.get_by_role("log", name="Messages in Signoff").get_by_role("article")
        expect(direct.filter(has_text="to be declined")).to_contain_text("The ferry does not run")
        assert len(town.practice.outbox()) == before

    def test_of_two_who_approve_at_the_same_moment_one_wins_and_the_other_is_told(
        self, context: BrowserContext, town: Town
    ) -> None:
        ana, ben, cleo = (window(context, town, person) for person in (ANA, BEN, CLEO))
        ask(ana, "Saturday, for the two")
        cards = [card_of(page, "for the two") for page in (ben, cleo)]
        text = str(cards[0].locator(".blocks").inner_text()).split("GSM-7)\n")[1].split("\n")[0].strip()
        before = len(sent(town, text))
        # Both click what they see: the redrawn card must not be faster than the second click.
        town.slack.faults.slow("chat.update", 1.5)
        for card in cards:
            card.get_by_role("button", name="Approve draft").evaluate("button => { button.click() }")
        expect(cards[0]).to_contain_text(re.compile("Approved by @(Ben|Cleo)"))
        town.slack.faults.clear()
        is_ben = "Approved by @Ben" in cards[0].inner_text()
        loser, winner = (cleo, "Ben") if is_ben else (ben, "Cleo")
        told = loser.get_by_role("article").filter(has_text="Only visible to you")
        expect(told).to_contain_text(re.compile(f"@{winner} has already approved"))
        expect((ben if is_ben else cleo).get_by_text("Only visible to you")).to_have_count(0)
        expect(ending(ana, "for the two")).to_be_visible()
        assert [kind for kind, _ in sent(town, text)[before:]] == ["sms"]

    def test_people_are_reminded_while_a_card_waits_and_not_after(self, context: BrowserContext, town: Town) -> None:
        ana, ben = window(context, town, ANA), window(context, town, BEN)
        ask(ana, "Saturday, soon decided")
        first = card_of(ben, "soon decided")
        reminded = self.reminders(ben, first)
        expect(reminded).to_have_count(1)
        expect(reminded).to_contain_text("@Ben and @Cleo: 🔔 Still waiting for you")
        press(first, "Approve draft")
        expect(first).to_contain_text("Approved by")
        # The second card's second reminder comes later than the first one's would have.
        ask(ana, "Saturday, long undecided")
        second = card_of(ben, "long undecided")
        expect(self.reminders(ben, second)).to_have_count(2)
        expect(reminded).to_have_count(1)
        press(second, "Approve draft")
        expect(second).to_contain_text("Approved by")

    def reminders(self, page: Page, card: Locator) -> Locator:
        """The reminders that lead to a card."""
        place = str(card.get_attribute("data-ts")).replace(".", "")
        link = page.locator(f'a[href*="{place}"]').or_(page.locator(f'a[href*="{card.get_attribute("data-ts")}"]'))
        return page.get_by_role("article").filter(has_text="Still waiting for you").filter(has=link)

    def test_what_waits_is_approved_from_the_home_tab(self, context: BrowserContext, town: Town) -> None:
        ana = window(context, town, ANA)
        ask(ana, "Saturday, for the inbox")
        card = card_of(ana, "for the inbox")
        ben, cleo = window(context, town, BEN, "home"), window(context, town, CLEO, "home")
        main = ben.get_by_role("main")
        expect(main).to_contain_text("Approve sends this text message to +15035550134")
        main.get_by_role("button", name="Approve draft 1").click()
        expect(main).to_contain_text("Nothing waits for you.")
        expect(card).to_contain_text("Approved by @Ben")
        cleo.reload()
        expect(cleo.get_by_role("main")).to_contain_text("Nothing waits for you.")
        expect(cleo.get_by_role("main")).to_contain_text("Nothing of yours is under way.")

    def test_the_command_alone_opens_the_form_and_a_run_can_be_cancelled(
        self, context: BrowserContext, town: Town
    ) -> None:
        ana = window(context, town, ANA)
        ana.keyboard.type("/plan-hike ")
        ana.keyboard.press("Enter")
        form = ana.get_by_role("dialog", name="Plan hike")
        form.get_by_role("button", name="Start").click()
        expect(form.get_by_text("Please complete this required field.")).to_be_visible()
        form.get_by_label("What kind of hike?").fill("Saturday, from the form")
        form.get_by_role("button", name="Start").click()
        expect(form).to_have_count(0)
        card = card_of(ana, "from the form")
        progress = ana.get_by_role("article").filter(has_text="from the form").filter(has_text="/plan-hike for").first
        press(progress, "Cancel")
        ana.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
        expect(card).to_contain_text("Cancelled")
        expect(card.get_by_role("button")).to_have_count(0)

    def test_a_question_is_answered_with_a_button_and_the_run_goes_on(
        self, context: BrowserContext, town: Town
    ) -> None:
        ana = window(context, town, ANA)
        ask(ana, "Saturday, as far as you like [needs_user]")
        question = ana.get_by_role("article").filter(has_text="A question about plan hike")
        expect(question).to_contain_text("You are Ana and can answer.")
        press(question, "up to 45 min")
        expect(question).to_contain_text("Answered by @Ana")
        card = card_of(window(context, town, BEN), "as far as you like")
        press(card, "Approve draft")
        expect(card).to_contain_text("Approved by @Ben")

    def test_a_bot_that_is_killed_goes_on_where_it_was(self, browser: Browser, tmp_path: Path) -> None:
        journal = tmp_path / "calls"
        slow = {"SIGNOFF_MODEL_SECONDS": "2", "SIGNOFF_UNDO_SECONDS": "6", "SIGNOFF_MODEL_JOURNAL": str(journal)}
        with Town(tmp_path / "town", read_manifest(), 0, {**BRISK, **slow}) as town, windows(browser) as context:
            town.start()
            assert town.connected(STARTING)
            ana, ben = window(context, town, ANA), window(context, town, BEN)
            progress = ask(ana, "Saturday, whatever happens")
            expect(progress).to_contain_text("✓ tools")
            self.kill(ana)
            before = calls(journal)
            press(progress, "Run log")
            expect(progress.get_by_role("alert")).to_contain_text("The app could not be reached")

            self.start(ana)
            card = card_of(ben, "whatever happens")
            press(card, "Approve draft")
            expect(card).to_contain_text("Until then it can be undone.")
            self.kill(ana)
            assert town.practice.outbox() == []
            press(card, "Undo")
            expect(card.get_by_role("alert")).to_contain_text("so this did not count")

            self.start(ana)
            expect(ending(ana, "whatever happens")).to_contain_text("Finished")
            expect(bubbles(ana, "Hike")).to_have_count(1)
            assert [one["kind"] for one in town.practice.outbox()] == ["sms"]
            assert before and len({one["pid"] for one in calls(journal)}) == 2
            ids = [one["request_id"] for one in calls(journal)]
            assert len(ids) == len(set(ids))

    def kill(self, page: Page) -> None:
        """Press the page's button."""
        page.get_by_role("button", name="Kill the bot").click()
        expect(page.get_by_role("banner")).to_contain_text("Signoff is stopped")

    def start(self, page: Page) -> None:
        """Press the page's button and wait for the bot."""
        page.get_by_role("button", name="Start the bot").click()
        expect(page.get_by_role("banner")).to_contain_text("Signoff is running", timeout=STARTING * 1000)


def calls(journal: Path) -> list[dict[str, Any]]:
    """The model calls that were finished."""
    return [json.loads(line) for line in journal.read_text("utf-8").splitlines()] if journal.exists() else []
