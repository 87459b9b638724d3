"""Block Kit becomes the HTML a person expects, and nothing in it becomes markup that was not meant."""

from __future__ import annotations

import html
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.sandbox.mrkdwn import Reader, moment, mrkdwn, plain
from bot.sandbox.place import Place, field_name, named
from bot.sandbox.render import block_html, blocks_html

READER = Reader(
    "U0ANA0001",
    ZoneInfo("America/Los_Angeles"),
    {"U0ANA0001": "Ana", "U0BEN0002": "Ben", "U0EVIL": "<img src=x onerror=alert(1)>"},
    {"C0HIKES01": "hikes"},
)
PLACE = Place("m-1", READER)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ALLOWED_TAGS = _set(
    "a b blockquote button code details div em figcaption figure h2 h3 h4 h5 h6 hr img input label li ol optgroup "
    "option p pre s select small span strong summary table td template textarea th time tr ul"
)
ALLOWED_ATTRIBUTES = _set(
    "alt aria-controls aria-describedby aria-expanded aria-invalid aria-label aria-required autocomplete checked class "
    "data-channel data-control data-focus data-name datetime for href id label max maxlength min minlength name "
    "placeholder rel role rows selected src step tabindex target title type value"
)


class Markup(HTMLParser):
    """Collects what a browser would see: tags with attributes, and the text between them."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.others: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)


def assert_harmless(source: str) -> Markup:
    """Only known tags and attributes, no script, no address that runs something, nothing loaded from elsewhere."""
    seen = Markup(source)
    assert seen.others == []
    for tag, attributes in seen.tags:
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ALLOWED_ATTRIBUTES, attributes
        href = attributes.get("href")
        assert href is None or href.lower().startswith(("http://", "https://", "mailto:", "/?as="))
        src = attributes.get("src")
        assert src is None or src.startswith("data:image/") or (src.startswith("/") and src[1:2] not in ("/", "\\"))
    source.encode()
    return seen


def section(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "section", "block_id": "b", "text": {"type": "mrkdwn", "text": text}, **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


# --- mrkdwn ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*bold* and _italic_ and ~gone~", "<strong>bold</strong> and <em>italic</em> and <s>gone</s>"),
        ("*_both_*", "<strong><em>both</em></strong>"),
        ("2*3*4 and snake_case_name", "2*3*4 and snake_case_name"),
        ("* not bold *", "* not bold *"),
        ("`*code*`", "<code>*code*</code>"),
        ("before\n```\n*pre*\n&lt;b&gt;\n```\nafter", "before<pre>*pre*\n&lt;b&gt;</pre>after"),
        (">quoted\nplain", "<blockquote>quoted</blockquote>plain"),
        ("&gt;typed by a person", "&gt;typed by a person"),
        ("a &amp; b &lt;c&gt; &amp;lt;", "a &amp; b &lt;c&gt; &amp;lt;"),
        ("<!here> <!channel>", '<span class="mention me">@here</span> <span class="mention me">@channel</span>'),
        ("<@U0BEN0002>", '<span class="mention">@Ben</span>'),
        ("<@U0ANA0001|ana>", '<span class="mention me">@Ana</span>'),
        ("<@U0NOBODY|zoe>", '<span class="mention">@zoe</span>'),
        (
            "<#C0HIKES01>",
            '<a href="/?as=U0ANA0001&amp;channel=C0HIKES01" class="mention" data-channel="C0HIKES01">#hikes</a>',
        ),
        (":white_check_mark: :unheard_of:", "✅ :unheard_of:"),
        ("12:30:45", "12:30:45"),
        ("<javascript:alert(1)|Approve>", "Approve"),
        ("<http://[::1|an address that is none>", "an address that is none"),
        ("<script>alert(1)</script>", "scriptalert(1)/script"),
    ],
)
def test_mrkdwn_is_read_as_slack_reads_it(text: str, expected: str) -> None:
    assert mrkdwn(text, READER) == expected


def test_a_link_shows_where_it_really_leads() -> None:
    seen = assert_harmless(mrkdwn("<https://evil.example/a?b=1&amp;c=2|https://bank.example>", READER))
    assert seen.text == "https://bank.example"
    assert seen.tags[0][1]["title"] == "https://evil.example/a?b=1&c=2"
    assert seen.tags[0][1]["rel"] == "noopener noreferrer nofollow"


def test_a_bare_address_is_a_link_without_the_full_stop_after_it() -> None:
    seen = Markup(mrkdwn("See https://example.org/x_y_z.", READER))
    assert [attributes["href"] for _, attributes in seen.tags] == ["https://example.org/x_y_z"]
    assert seen.text == "See https://example.org/x_y_z."


def test_a_date_is_shown_in_the_readers_zone() -> None:
    at = int(datetime(2026, 12, 5, 16, 30, tzinfo=UTC).timestamp())
    seen = Markup(mrkdwn(f"<!date^{at}^{{date_long}} at {{time}}|fallback>", READER))
    assert seen.text == "Saturday, December 5, 2026 at 8:30 AM"


def test_a_date_out_of_range_shows_its_fallback() -> None:
    assert mrkdwn("<!date^999999999999999^{date}|the fallback>", READER) == "the fallback"


def test_a_time_tells_the_zone_on_hover() -> None:
    shown = moment(datetime(2026, 7, 1, 12, 0, tzinfo=UTC), READER)
    assert 'title="Wednesday, 01 July 2026, 05:00 PDT"' in shown


def test_names_are_text_too() -> None:
    seen = assert_harmless(mrkdwn("<@U0EVIL>", READER))
    assert seen.text == "@<img src=x onerror=alert(1)>"


def test_plain_text_reads_nothing_but_emoji() -> None:
    assert plain("*a* <@U0BEN0002> &amp; :tada:") == "*a* &lt;@U0BEN0002&gt; &amp;amp; 🎉"


def test_what_cannot_be_printed_is_replaced() -> None:
    assert mrkdwn("a\x00b\ud800c", READER) == "a\ufffdb\ufffdc"


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_an_unknown_block_is_seen_and_hides_no_other() -> None:
    seen = assert_harmless(blocks_html([{"type": "hologram"}, section("still here")], PLACE))
    assert "Unsupported block: hologram" in seen.text
    assert "still here" in seen.text


@pytest.mark.parametrize("broken", [{"type": "section", "text": 7}, {"type": "actions"}, {}, {"type": ["x"]}, "text"])
def test_a_malformed_block_is_seen_as_such(broken: Any) -> None:
    assert "Unsupported block" in Markup(block_html(broken, "k", PLACE)).text


def test_a_button_carries_its_place_and_style_and_question() -> None:
    block = {
        "type": "actions",
        "block_id": 'de"cide',
        "elements": [
            {
                "type": "button",
                "action_id": "decline",
                "style": "danger",
                "text": words("Decline"),
                "confirm": {
                    "title": words("Sure?"),
                    "text": words("It ends."),
                    "confirm": words("Yes"),
                    "deny": words("No"),
                },
            }
        ],
    }
    seen = assert_harmless(block_html(block, "k", PLACE))
    button = next(attributes for tag, attributes in seen.tags if tag == "button")
    assert button["class"] == "button danger"
    assert named(str(button["data-name"])) == ('de"cide', "decline")
    assert ("template", {"class": "confirm"}) in seen.tags


def test_long_text_is_folded_behind_a_real_button() -> None:
    seen = Markup(block_html(section("word " * 200), "k", PLACE))
    button = next(attributes for tag, attributes in seen.tags if tag == "button")
    assert (button["aria-expanded"], button["aria-controls"]) == ("false", "k-fold")
    assert "See more" not in Markup(block_html(section("short"), "k", PLACE)).text


def test_an_error_is_tied_to_its_field() -> None:
    block = {
        "type": "input",
        "block_id": "text",
        "label": words("Text"),
        "hint": words("Short."),
        "element": {"type": "plain_text_input", "action_id": "v", "multiline": True, "max_length": 300},
    }
    place = Place("v-1", READER, errors={"text": "Too long."})
    seen = assert_harmless(block_html(block, "k", place))
    field = next(attributes for tag, attributes in seen.tags if tag == "textarea")
    assert field["aria-invalid"] == "true"
    assert field["aria-describedby"] == "k-hint k-error"
    assert {"k-hint", "k-error"} <= {attributes.get("id") for _, attributes in seen.tags}
    label = next(attributes for tag, attributes in seen.tags if tag == "label")
    assert label["for"] == field["id"]


def test_what_was_entered_is_shown_instead_of_what_the_app_proposed() -> None:
    block = {
        "type": "input",
        "block_id": "b",
        "label": words("Text"),
        "element": {"type": "plain_text_input", "action_id": "a", "initial_value": "proposed"},
    }
    place = Place("v", READER, state={"b": {"a": {"type": "plain_text_input", "value": "typed"}}})
    assert 'value="typed"' in block_html(block, "k", place)
    assert 'value="proposed"' in block_html(block, "k", PLACE)


def test_a_first_line_break_in_a_text_area_is_kept() -> None:
    block = {
        "type": "input",
        "block_id": "b",
        "label": words("Text"),
        "element": {"type": "plain_text_input", "action_id": "a", "multiline": True, "initial_value": "\nsecond line"},
    }
    assert ">\n\nsecond line</textarea>" in block_html(block, "k", PLACE)


@pytest.mark.parametrize("kind", ["static_select", "multi_static_select", "radio_buttons", "checkboxes"])
def test_the_proposed_option_is_chosen(kind: str) -> None:
    options = [{"text": words("Easy"), "value": "easy"}, {"text": words("Hard"), "value": "hard"}]
    many = kind in ("multi_static_select", "checkboxes")
    initial = {"initial_options": [options[1]]} if many else {"initial_option": options[1]}
    block = {
        "type": "input",
        "block_id": "b",
        "label": words("Pace"),
        "element": {"type": kind, "action_id": "a", "options": options, **initial},
    }
    seen = assert_harmless(block_html(block, "k", PLACE))
    chosen = [a["value"] for tag, a in seen.tags if tag in ("option", "input") and ("selected" in a or "checked" in a)]
    assert chosen == ["hard"]


@pytest.mark.parametrize("kind", ["email_text_input", "url_text_input", "number_input", "datepicker", "timepicker"])
def test_a_field_of_its_kind_asks_for_that_kind(kind: str) -> None:
    element = {"type": kind, "action_id": "a", "min_value": "1", "is_decimal_allowed": True}
    block = {"type": "input", "block_id": "b", "label": words("L"), "optional": True, "element": element}
    seen = assert_harmless(block_html(block, "k", PLACE))
    field = next(attributes for tag, attributes in seen.tags if tag == "input")
    assert field["type"] == kind.removesuffix("_text_input").removesuffix("_input").removesuffix("picker")
    assert "aria-required" not in field
    assert "(optional)" in seen.text


@pytest.mark.parametrize(
    ("address", "loaded"),
    [
        ("data:image/png;base64,AAAA", True),
        ("/static/icon.svg", True),
        ("https://elsewhere.example/track.png", False),
        ("//elsewhere.example/track.png", False),
        ("/\\elsewhere.example/track.png", False),
        ("data:text/html,<script>", False),
    ],
)
def test_only_pictures_from_here_are_loaded(address: str, loaded: bool) -> None:
    seen = assert_harmless(block_html({"type": "image", "image_url": address, "alt_text": "A map"}, "k", PLACE))
    assert ("img" in [tag for tag, _ in seen.tags]) is loaded
    assert loaded or "A map" in seen.text


def test_rich_text_and_tables_are_drawn() -> None:
    rich = {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "text", "text": "bold", "style": {"bold": True}},
                    {"type": "user", "user_id": "U0BEN0002"},
                    {"type": "link", "url": "javascript:alert(1)", "text": "no"},
                ],
            },
            {
                "type": "rich_text_list",
                "style": "ordered",
                "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]}],
            },
        ],
    }
    shown = block_html(rich, "k", PLACE)
    assert "<strong>bold</strong>" in shown
    assert "<li>one</li>" in shown
    assert_harmless(shown)
    table = {"type": "table", "rows": [[{"type": "raw_text", "text": "<km>"}], [{"type": "raw_text", "text": "9.4"}]]}
    assert "<th>&lt;km&gt;</th>" in block_html(table, "k", PLACE)


def test_a_markdown_block_is_read_as_markdown() -> None:
    text = "# Plan\n- one\n- **two**\n\n1. first\n> said\n\n[map](https://example.org) and `code`\n```\n<raw>\n```"
    shown = block_html({"type": "markdown", "text": text}, "k", PLACE)
    for part in ("<h3>Plan</h3>", "<ul><li>one</li><li><strong>two</strong></li></ul>", "<ol><li>first</li></ol>"):
        assert part in shown
    for part in ("<blockquote>said</blockquote>", 'href="https://example.org"', "<pre>&lt;raw&gt;</pre>"):
        assert part in shown


def test_the_name_of_a_field_reads_back() -> None:
    assert named(field_name('a"|b', "c\nd")) == ('a"|b', "c\nd")
    with pytest.raises(ValueError, match="not the name of a field"):
        named('["only one"]')


# --- nothing gets through --------------------------------------------------------------------------------------------

HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' onmouseover='alert(1)",
        "<javascript:alert(1)|x>",
        "<JaVaScRiPt:alert(1)>",
        "<data:text/html,<script>|x>",
        '<https://a.example/" onclick="x|label>',
        "<!date^0^{date}^javascript:alert(1)|f>",
        "<@U0EVIL>",
        "<!--",
        "<![CDATA[",
        "<?php",
        "</textarea><script>",
        "</template><script>",
        "&lt;script&gt;",
        "&#60;script&#62;",
        "[x](javascript:alert(1))",
        "```<b>```",
        "*<b>*",
        "_`<i>`_",
        ">",
        "\x00",
        "\ud83d",
        "\u202e",
    ]
)
TEXT = st.lists(st.one_of(HOSTILE, st.text(max_size=12)), max_size=6).map("".join)
PLAIN = TEXT.map(words)
MRKDWN = TEXT.map(lambda text: {"type": "mrkdwn", "text": text})
EITHER = st.one_of(PLAIN, MRKDWN)
OPTIONS = st.lists(
    st.fixed_dictionaries({"text": EITHER, "value": TEXT, "description": EITHER}), min_size=1, max_size=3
)
CONFIRM = st.fixed_dictionaries({"title": PLAIN, "text": EITHER, "confirm": PLAIN, "deny": PLAIN})
ELEMENT = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("button"), "action_id": TEXT, "text": PLAIN},
        optional={"style": TEXT, "url": TEXT, "value": TEXT, "confirm": CONFIRM, "accessibility_label": TEXT},
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["static_select", "multi_static_select", "overflow", "radio_buttons", "checkboxes"]
            ),
            "action_id": TEXT,
            "options": OPTIONS,
        },
        optional={"placeholder": PLAIN, "confirm": CONFIRM},
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["plain_text_input", "number_input", "email_text_input", "url_text_input", "datepicker", "users_select"]
            ),
            "action_id": TEXT,
        },
        optional={
            "initial_value": TEXT,
            "initial_date": TEXT,
            "placeholder": PLAIN,
            "multiline": st.booleans(),
            "max_length": TEXT,
        },
    ),
    st.fixed_dictionaries({"type": TEXT, "action_id": TEXT}),
)
PICTURE = st.fixed_dictionaries({"type": st.just("image"), "image_url": TEXT, "alt_text": TEXT})
BLOCK = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("section"), "block_id": TEXT, "text": EITHER},
        optional={"fields": st.lists(EITHER, max_size=3), "accessory": st.one_of(ELEMENT, PICTURE)},
    ),
    st.fixed_dictionaries({"type": st.just("header"), "text": PLAIN}),
    st.fixed_dictionaries({"type": st.just("context"), "elements": st.lists(st.one_of(EITHER, PICTURE), max_size=3)}),
    st.fixed_dictionaries({"type": st.just("actions"), "block_id": TEXT, "elements": st.lists(ELEMENT, max_size=3)}),
    st.fixed_dictionaries(
        {"type": st.just("input"), "block_id": TEXT, "label": PLAIN, "element": ELEMENT}, optional={"hint": PLAIN}
    ),
    st.fixed_dictionaries({"type": st.just("image"), "image_url": TEXT, "alt_text": TEXT, "title": PLAIN}),
    st.fixed_dictionaries({"type": st.just("markdown"), "text": TEXT}),
    st.fixed_dictionaries({"type": TEXT}),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "text", "elements", "element", "options", "fields", "accessory", "rows", "style"]),
            st.one_of(
                inner, st.sampled_from(["section", "actions", "input", "button", "rich_text", "table", "mrkdwn"])
            ),
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(TEXT)
def test_no_mrkdwn_yields_markup_outside_the_allowed_set(text: str) -> None:
    assert_harmless(mrkdwn(text, READER))


@given(st.lists(BLOCK, max_size=3))
def test_no_block_yields_markup_outside_the_allowed_set(blocks: list[dict[str, Any]]) -> None:
    assert_harmless(blocks_html(blocks, PLACE))


@given(ANYTHING)
def test_whatever_json_an_app_sends_is_drawn_without_an_error(block: Any) -> None:
    assert_harmless(block_html(block, "k", PLACE))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=80))
def test_escaped_text_reads_as_it_was_written(text: str) -> None:
    marks = str.maketrans(dict.fromkeys("*_~`:>", " "))
    written = text.translate(marks)
    assert Markup(mrkdwn(html.escape(written, quote=False), READER)).text == written


@given(TEXT)
def test_plain_text_and_pre_keep_every_character_but_the_unprintable(text: str) -> None:
    seen = assert_harmless(plain(text))
    assert list(_printable(seen.text)) == list(_printable(text)) or ":" in text


def _printable(text: str) -> Iterator[str]:
    return (character for character in text if character.isprintable() and character != "\ufffd")
