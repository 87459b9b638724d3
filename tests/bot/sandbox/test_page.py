"""The page answers only itself, shows what is there, does what is asked, and tells open windows what changed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.conversation import SHOWN
from bot.sandbox.lab import Fault
from bot.sandbox.markup import Html
from bot.sandbox.messages import Piece
from bot.sandbox.place import field_name
from bot.sandbox.records import BOT_USER, SLACKBOT, Timing
from bot.sandbox.stream import Put, list_changes
from tests.bot.sandbox.page_stage import ANA, BEN, CLEO, HIKES, Stage, approval_card, edit_modal, furnish

HOST = "localhost:3000"
HERE = {"HTTP_HOST": HOST, "HTTP_ORIGIN": f"http://{HOST}", "CONTENT_TYPE": "application/json"}


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage(Timing(ack_seconds=0.05))
    yield stage
    stage.close()


class Answer:
    """What came back: status, headers, and the body, read only when asked for."""

    def __init__(self, stage: Stage, environ: dict[str, Any]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body: Iterable[bytes] = stage.page(environ, self._start)

    def _start(self, status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        self.status = int(status.split(maxsplit=1)[0])
        self.headers = dict(headers)

    @property
    def text(self) -> str:
        return b"".join(self.body).decode()

    @property
    def trouble(self) -> str:
        assert self.status == 200, self.text
        return str(json.loads(self.text)["trouble"])


def get(stage: Stage, path: str = "/", headers: dict[str, str] | None = None, **query: str) -> Answer:
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": urlencode(query), "HTTP_HOST": HOST}
    return Answer(stage, environ | (headers or {}))


def post(stage: Stage, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "QUERY_STRING": "", "wsgi.input": io.BytesIO(sent)}
    return Answer(stage, environ | {"CONTENT_LENGTH": str(len(sent))} | (HERE if headers is None else headers))


def window(stage: Stage, person: str = ANA, channel: str = HIKES, **query: str) -> str:
    return get(stage, **{"as": person, "channel": channel, **query}).text


class Text(HTMLParser):
    """The words of a document, and its elements."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


# --- who may talk to it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "localhost"])
def test_it_answers_on_loopback(stage: Stage, host: str) -> None:
    assert get(stage, headers={"HTTP_HOST": host}, **{"as": ANA}).status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "192.168.0.4:3000", "", "[::1"])
def test_a_name_of_somebody_elses_is_refused(stage: Stage, host: str) -> None:
    answer = get(stage, headers={"HTTP_HOST": host}, **{"as": ANA})
    assert answer.status == 403
    assert "only on localhost" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {**HERE, "HTTP_ORIGIN": "http://evil.example"},
        {**HERE, "HTTP_ORIGIN": "http://localhost:4000"},
        {**HERE, "HTTP_ORIGIN": "null"},
        {**HERE, "HTTP_SEC_FETCH_SITE": "cross-site"},
        {**HERE, "HTTP_SEC_FETCH_SITE": "same-site"},
        {"HTTP_HOST": HOST, "CONTENT_TYPE": "application/json"},
        {**HERE, "CONTENT_TYPE": "text/plain"},
        {**HERE, "HTTP_HOST": "evil.example", "HTTP_ORIGIN": "http://evil.example"},
    ],
)
def test_nobody_else_can_make_it_do_something(stage: Stage, headers: dict[str, str]) -> None:
    answer = post(stage, "/do/post", {"as": ANA, "channel": HIKES, "text": "hello"}, headers)
    assert answer.status == 403
    assert stage.workspace.messages(HIKES) == []


def test_every_answer_forbids_scripts_of_others(stage: Stage) -> None:
    for answer in (get(stage, **{"as": ANA}), get(stage, "/nowhere"), post(stage, "/do/post", b"{", {})):
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_has_no_script_or_style_inside_and_loads_nothing_from_elsewhere(stage: Stage) -> None:
    furnish(stage)
    shown = Text(window(stage))
    scripts = [attributes for tag, attributes in shown.tags if tag == "script"]
    assert scripts == [{"src": "/static/app.js", "type": "module"}]
    assert [tag for tag, _ in shown.tags if tag in ("style", "iframe", "object", "embed")] == []
    for _, attributes in shown.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert (attributes.get("src") or "/").startswith("/")


@pytest.mark.parametrize("name", ["app.js", "style.css", "icon.svg"])
def test_what_the_page_needs_is_served(stage: Stage, name: str) -> None:
    answer = get(stage, f"/static/{name}")
    assert answer.status == 200
    assert answer.text


@pytest.mark.parametrize("path", ["/static/../page.py", "/static/..", "/static/", "/static/.x", "/static/a/b", "/x"])
def test_nothing_else_is_served(stage: Stage, path: str) -> None:
    assert get(stage, path).status == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"as": "U0ANA0001"}', b"\xff"])
def test_a_request_that_cannot_be_read_is_refused(stage: Stage, body: bytes) -> None:
    assert post(stage, "/do/post", body).status == 400


def test_changes_take_post_and_pages_take_get(stage: Stage) -> None:
    assert get(stage, "/do/post").status == 405
    assert post(stage, "/", {}).status == 405
    assert post(stage, "/do/nothing", {}).status == 404


# --- what is seen ----------------------------------------------------------------------------------------------------


def test_without_a_name_the_first_person_is_chosen(stage: Stage) -> None:
    answer = get(stage)
    assert (answer.status, answer.headers["Location"]) == (302, f"/?as={ANA}")


@pytest.mark.parametrize("query", [{"as": "U0NOBODY"}, {"as": BOT_USER}, {"as": ANA, "channel": "C0NONE"}])
def test_who_or_what_is_not_there_is_said_so(stage: Stage, query: dict[str, str]) -> None:
    assert get(stage, **query).status == 404


def test_a_private_channel_is_only_for_its_members(stage: Stage) -> None:
    stage.say(BOT_USER, "a secret", channel="C0OPS0001")
    assert "a secret" in window(stage, BEN, "C0OPS0001")
    assert get(stage, **{"as": CLEO, "channel": "C0OPS0001"}).status == 404
    assert "ops" not in Text(window(stage, CLEO)).words


def test_messages_are_grouped_dated_and_signed(stage: Stage) -> None:
    stage.say(ANA, "yesterday's", 24 * 3600)
    stage.say(BEN, "first", 100)
    stage.say(BEN, "second", 90)
    stage.say(BOT_USER, "third", 80)
    shown = Text(window(stage))
    assert [a["class"] for tag, a in shown.tags if tag == "article"] == [
        "message",
        "message",
        "message compact",
        "message",
    ]
    assert shown.words.index("Yesterday") < shown.words.index("yesterday's") < shown.words.index("Today")
    assert shown.words.count("APP") == 1


def test_messages_minutes_apart_are_not_grouped(stage: Stage) -> None:
    stage.say(BEN, "first", 900)
    stage.say(BEN, "second", 300)
    assert [a["class"] for tag, a in Text(window(stage)).tags if tag == "article"] == ["message", "message"]


def test_only_the_latest_messages_are_shown_and_that_is_said(stage: Stage) -> None:
    assert "the very beginning of #hikes" in window(stage)
    for n in range(SHOWN + 1):
        stage.say(BEN, f"message {n};", 1000 - n)
    words = Text(window(stage)).words
    assert "Earlier messages are not shown" in words
    assert "message 0;" not in words
    assert "message 1;" in words


def test_times_are_in_the_viewers_zone(stage: Stage) -> None:
    stage.say(BEN, "hello", 100)
    ana, ben = (next(a["title"] for tag, a in Text(window(stage, who)).tags if tag == "time") for who in (ANA, BEN))
    assert str(ana).endswith(("PST", "PDT"))
    assert str(ben).endswith(("EST", "EDT"))


def test_a_private_answer_is_seen_by_one_person_only(stage: Stage) -> None:
    stage.say(BOT_USER, "just for Ana", ephemeral_to=ANA)
    assert "Only visible to you" in window(stage, ANA)
    assert "just for Ana" not in window(stage, BEN)


def test_a_card_with_buttons_offers_the_other_people_of_the_channel(stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    shown = Text(window(stage))
    assert "You are Ana and can decide. Open as Ben · Cleo" in shown.words
    assert "You are Cleo. Ana or Ben can decide: open as Ana · Ben" in Text(window(stage, CLEO)).words
    assert f"/?as={BEN}&channel={HIKES}#m-{card.ts}" in [a.get("href") for _, a in shown.tags]
    stage.say(BOT_USER, "settled", channel="C0OPS0001", blocks=approval_card()[:3])
    assert "You are Ana" not in window(stage, ANA, "C0OPS0001")


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ("Asked by <@U0BEN0002> · <@U0CLEO003> may answer", "You are Ana. Cleo can answer: open as Cleo"),
        (
            "anyone in <#C1> but <@U0ANA0001> may decide",
            "You are Ana. Ben or Cleo can decide: open as Ben · Cleo",
        ),
        ("anyone in <#C0HIKES01> may decide", "You are Ana. Open as Ben · Cleo"),
        ("Nobody is named", ""),
    ],
)
def test_whoever_may_decide_by_the_cards_own_words_is_offered(stage: Stage, told: str, hint: str) -> None:
    button = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "Run log"}, "value": "1"}
    line = {"type": "context", "elements": [{"type": "mrkdwn", "text": told}]}
    stage.say(BOT_USER, "card", blocks=(line, {"type": "actions", "block_id": "b", "elements": [button]}))
    words = Text(window(stage)).words
    assert hint in words if hint else "You are Ana" not in words


def test_unread_messages_are_counted_and_marked(stage: Stage) -> None:
    stage.say(BEN, "old", 100)
    stage.workspace.mark_read(ANA, HIKES)
    stage.say(BEN, "new one", 50)
    stage.say(CLEO, "another", 40)
    assert "2 unread" in Text(window(stage, ANA, "C0GENERAL")).words
    words = Text(window(stage)).words
    assert words.index("old") < words.index("New") < words.index("new one")


def test_a_thread_opens_beside_the_channel(stage: Stage) -> None:
    root = stage.say(BEN, "root", 100)
    stage.say(CLEO, "an answer", 50, thread_ts=root.ts)
    assert "an answer" not in window(stage)
    assert "1 reply" in window(stage)
    assert "an answer" in window(stage, thread=root.ts)


def test_the_home_tab_shows_what_was_published(stage: Stage) -> None:
    assert "has not shown anything here yet" in window(stage, channel="home")
    furnish(stage)
    assert "Waiting for you" in window(stage, channel="home")
    assert "Waiting for you" not in window(stage, BEN, "home")


def test_a_person_as_channel_is_the_conversation_with_them(stage: Stage) -> None:
    assert "Message Ben" in window(stage, channel=BEN)
    assert len([one for one in stage.workspace.channels() if one.kind == "im"]) == 1
    window(stage, BEN, ANA)
    assert len([one for one in stage.workspace.channels() if one.kind == "im"]) == 1


def test_the_commands_of_the_manifest_are_offered(stage: Stage) -> None:
    offered = [a["data-insert"] for tag, a in Text(window(stage)).tags if tag == "li" and "data-insert" in a]
    assert offered[:3] == ["/plan-hike", "/change-request", "/signoff"]
    assert {"@ben", "#hikes"} <= set(offered)


def test_what_is_not_real_is_labelled(stage: Stage) -> None:
    assert Text(window(stage)).words.count("Simulated model") == 2


def test_the_phone_shows_the_texts(stage: Stage) -> None:
    stage.texts.append({"to": "+1 503 555 0134", "body": "Meet <b>08:30</b>", "at": 1_780_000_000.5})
    stage.texts.append({"to": "+1 503 555 0135", "body": "second", "at": "2026-12-05T08:30:00"})
    words = Text(window(stage)).words
    assert "Meet <b>08:30</b>" in words
    assert words.index("08:30") < words.index("second")


# --- what is done ----------------------------------------------------------------------------------------------------


def test_a_message_is_posted_with_mentions(stage: Stage) -> None:
    assert post(stage, "/do/post", {"as": ANA, "channel": HIKES, "text": "hi @ben <3"}).trouble == ""
    (message,) = stage.workspace.messages(HIKES)
    assert (message.user, message.text) == (ANA, f"hi <@{BEN}> &lt;3")
    assert 'class="mention">@Ben</span> &lt;3' in window(stage)


def test_an_answer_goes_into_its_thread(stage: Stage) -> None:
    root = stage.say(BEN, "root")
    post(stage, "/do/post", {"as": ANA, "channel": HIKES, "text": "yes", "thread": root.ts})
    assert [one.text for one in stage.workspace.messages(HIKES, thread_ts=root.ts)] == ["root", "yes"]


def test_a_command_reaches_the_app(stage: Stage) -> None:
    assert post(stage, "/do/command", {"as": ANA, "channel": HIKES, "text": "/plan-hike Saturday"}).trouble == ""
    (envelope,) = stage.app.seen
    assert (envelope.kind, envelope.payload["command"], envelope.payload["text"]) == (
        "slash_commands",
        "/plan-hike",
        "Saturday",
    )


def test_a_command_that_is_not_acked_is_told_to_the_person(stage: Stage) -> None:
    stage.app.silent = True
    post(stage, "/do/command", {"as": ANA, "channel": HIKES, "text": "/plan-hike Saturday"})
    (told,) = stage.workspace.messages(HIKES, ANA)
    assert (told.user, told.ephemeral_to) == (SLACKBOT, ANA)
    assert "did not respond in time" in window(stage)


def test_a_click_reaches_the_app_as_the_person_of_the_window(stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    click = {"as": BEN, "channel": HIKES, "ts": card.ts, "name": field_name("decide", "approve"), "fields": []}
    assert post(stage, "/do/click", click).trouble == ""
    (envelope,) = stage.app.seen
    assert envelope.payload["user"]["id"] == BEN
    assert envelope.payload["actions"][0]["value"] == "ap_1.1"


def test_a_click_that_is_not_acked_is_told_below_the_message(stage: Stage) -> None:
    card = stage.say(BOT_USER, "card", blocks=approval_card())
    stage.app.silent = True
    click = {"as": ANA, "channel": HIKES, "ts": card.ts, "name": field_name("decide", "approve")}
    assert "did not answer within 3 seconds" in post(stage, "/do/click", click).trouble
    assert "did not answer within 3 seconds" in window(stage, ANA)
    assert "did not answer" not in window(stage, BEN)
    stage.app.silent = False
    post(stage, "/do/click", click)
    assert "did not answer" not in window(stage, ANA)


def test_what_cannot_be_done_is_explained(stage: Stage) -> None:
    gone = {"as": ANA, "channel": HIKES, "ts": "1.000001", "name": field_name("decide", "approve")}
    assert post(stage, "/do/click", gone).trouble == "This message is no longer there."
    assert "no person" in post(stage, "/do/home", {"as": "U0NOBODY"}).trouble


def test_a_form_with_an_empty_field_is_not_sent(stage: Stage) -> None:
    view = stage.open_modal(ANA, edit_modal())
    fields = [[field_name("text", "value"), "new"], [field_name("when", "value"), "2026-12-05"]]
    assert post(stage, "/do/submit", {"as": ANA, "view": view.id, "fields": fields}).trouble == ""
    assert stage.app.seen == []
    shown = window(stage)
    assert "Please complete this required field." in shown
    assert ">\nnew</textarea>" in shown


def test_errors_of_the_app_are_shown_at_their_fields(stage: Stage) -> None:
    view = stage.open_modal(ANA, edit_modal())
    stage.app.answer = lambda envelope: {"response_action": "errors", "errors": {"text": "Too long for a text."}}
    fields = [
        [field_name(key, "value"), value] for key, value in (("text", "new"), ("when", "2026-12-05"), ("pace", "easy"))
    ]
    post(stage, "/do/submit", {"as": ANA, "view": view.id, "fields": fields})
    (envelope,) = stage.app.seen
    assert envelope.payload["view"]["state"]["values"]["pace"]["value"]["selected_option"]["value"] == "easy"
    assert "Too long for a text." in window(stage)


def test_a_modal_is_closed(stage: Stage) -> None:
    view = stage.open_modal(ANA, edit_modal())
    assert "Edit and approve" in window(stage)
    post(stage, "/do/close", {"as": ANA, "view": view.id})
    assert "Edit and approve" not in window(stage)


def test_opening_home_is_told_to_the_app(stage: Stage) -> None:
    assert post(stage, "/do/home", {"as": ANA}).trouble == ""
    assert stage.app.seen[0].payload["event"]["type"] == "app_home_opened"


def test_reading_clears_the_count(stage: Stage) -> None:
    stage.say(BEN, "news")
    assert "1 unread" in Text(window(stage, ANA, "C0GENERAL")).words
    post(stage, "/do/read", {"as": ANA, "channel": HIKES})
    assert "unread" not in Text(window(stage, ANA, "C0GENERAL")).words


def test_the_lab_kills_and_starts_the_bot(stage: Stage) -> None:
    post(stage, "/do/lab/kill", {"as": ANA})
    assert "The bot is stopped." in Text(window(stage)).words
    post(stage, "/do/lab/start", {"as": ANA})
    assert stage.bot.asked == ["kill", "start"]


def test_the_lab_arms_and_clears_faults(stage: Stage) -> None:
    assert {one.name for one in stage.lab.faults()} >= {"twice", "ratelimited", "dropped", "slow", "refresh", "cut"}
    post(stage, "/do/lab/fault", {"as": ANA, "name": "ratelimited"})
    assert "3 left" in Text(window(stage)).words
    assert Fault("ratelimited", "Rate limit the next 3 calls", "3 left") in stage.lab.faults()
    post(stage, "/do/lab/clear", {"as": ANA})
    assert "3 left" not in Text(window(stage)).words
    assert post(stage, "/do/lab/fault", {"as": ANA, "name": "earthquake"}).status == 400


@pytest.mark.parametrize("name", ["twice", "command_twice", "ratelimited", "dropped", "server_error", "slow"])
def test_every_switch_of_the_lab_shows_that_it_is_on(stage: Stage, name: str) -> None:
    stage.lab.inject(name)
    assert [one.name for one in stage.lab.faults() if one.armed] == [name]


@pytest.mark.parametrize("name", ["refresh", "cut"])
def test_every_accident_of_the_lab_happens_at_once(stage: Stage, name: str) -> None:
    stage.lab.inject(name)
    assert len(stage.stand_in.faults.log()) == 1


# --- what open windows are told --------------------------------------------------------------------------------------


class Window:
    """An open window: reads the stream and keeps the puts it has seen."""

    def __init__(self, stage: Stage, person: str, channel: str = HIKES, **query: str) -> None:
        self.stream = iter(get(stage, "/events", **{"as": person, "channel": channel, **query}).body)
        assert next(self.stream).startswith(b"retry:")
        self.first = {put["target"]: put for put in self._until("phone" if not query else "thread")}

    def _until(self, target: str) -> list[dict[str, str]]:
        seen: list[dict[str, str]] = []
        while not seen or seen[-1]["target"] != target:
            seen.append(self.next())
        return seen

    def next(self) -> dict[str, str]:
        for event in self.stream:
            if event.startswith(b"event: put\n"):
                return dict(json.loads(event.decode().partition("data: ")[2]))
        raise AssertionError("The stream ended.")

    def wait_for(self, target: str) -> dict[str, str]:
        return self._until(target)[-1]


def test_a_window_is_first_told_everything(stage: Stage) -> None:
    stage.say(BEN, "hello")
    window = Window(stage, ANA)
    assert {"sidebar", "head", "modal", "log", "lab", "phone", "top-status"} == set(window.first)
    assert window.first["log"]["where"] == "all"
    assert "hello" in window.first["log"]["html"]


def test_a_new_message_is_appended_and_an_update_replaces(stage: Stage) -> None:
    stage.say(BEN, "hello", 60)
    window = Window(stage, ANA)
    message = stage.say(BOT_USER, "draft")
    appended = window.wait_for("log")
    assert appended["where"] == "append"
    assert "draft" in appended["html"]
    stage.workspace.put_message(type(message)(**{**_fields(message), "text": "final"}))
    replaced = window.wait_for(f"m-{message.ts}")
    assert replaced["where"] == "replace"
    assert "final" in replaced["html"]
    stage.workspace.delete_message(HIKES, message.ts)
    assert window.wait_for(f"m-{message.ts}")["where"] == "remove"


def test_a_modal_appears_only_in_the_window_of_its_person(stage: Stage) -> None:
    ana, ben = Window(stage, ANA), Window(stage, BEN)
    stage.open_modal(ANA, edit_modal())
    assert "Edit and approve" in ana.wait_for("modal")["html"]
    stage.open_modal(BEN, {**edit_modal(), "title": {"type": "plain_text", "text": "For Ben"}})
    assert "For Ben" in ben.wait_for("modal")["html"]


def test_a_text_and_the_state_of_the_bot_appear_by_themselves(stage: Stage) -> None:
    window = Window(stage, ANA)
    stage.texts.append({"to": "+1", "body": "on our way", "at": 1_780_000_000})
    assert "on our way" in window.wait_for("phone")["html"]
    stage.bot.state = "restarting"
    assert "restarting" in window.wait_for("lab")["html"]


def test_a_thread_is_kept_up_to_date(stage: Stage) -> None:
    root = stage.say(BEN, "root", 60)
    window = Window(stage, ANA, thread=root.ts)
    stage.say(CLEO, "an answer", thread_ts=root.ts)
    assert "an answer" in window.wait_for("thread")["html"]


def test_a_stream_ends_when_the_workspace_closes(stage: Stage) -> None:
    window = Window(stage, ANA)
    stage.close()
    assert [event for event in window.stream if event.startswith(b"event")] == []


def test_a_stream_ends_when_its_person_is_gone(stage: Stage) -> None:
    window = Window(stage, CLEO)
    person = stage.workspace.person(CLEO)
    assert person is not None
    stage.workspace.put_person(type(person)(**{**_fields(person), "deleted": True}))
    assert list(window.stream) == []


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


PIECES = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2)), max_size=8, unique_by=lambda pair: pair[0])


@given(PIECES, PIECES)
def test_the_steps_always_lead_to_the_list_that_should_be_shown(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    old, new = ([Piece(id, Html(f"<i id={id}>{version}</i>")) for id, version in pieces] for pieces in (before, after))
    shown = {one.id: str(one.html) for one in old}
    for put in list_changes("list", old, new):
        shown = _applied(shown, put, new)
    assert list(shown.items()) == [(one.id, str(one.html)) for one in new]


def _applied(shown: dict[str, str], put: Put, new: list[Piece]) -> dict[str, str]:
    match put.where:
        case "remove":
            return {id: html for id, html in shown.items() if id != put.target}
        case "replace":
            return {id: put.html if id == put.target else html for id, html in shown.items()}
        case "append":
            return {**shown, next(one.id for one in new if one.html == put.html): put.html}
    assert put.html == "".join(one.html for one in new)
    return {one.id: str(one.html) for one in new}


def test_what_did_not_change_is_not_sent_again() -> None:
    pieces = [Piece("a", Html("1")), Piece("b", Html("2"))]
    assert list(list_changes("list", pieces, pieces)) == []
    assert [put.where for put in list_changes("list", pieces, [*pieces, Piece("c", Html("3"))])] == ["append"]
