"""Every limit Slack puts on what an app sends, the one place for them.

Sources: "ref" is the Block Kit reference (docs.slack.dev/reference/block-kit), "method" the page of the method named,
"surface" docs.slack.dev/surfaces/modals, "handling" docs.slack.dev/interactivity/handling-user-interaction, "rates"
docs.slack.dev/apis/web-api/rate-limits. Lengths are characters, sizes bytes, times seconds, unless the name says more.
"""

from __future__ import annotations

from typing import Final

# Messages.
MESSAGE_BLOCKS: Final = 50  # ref
MESSAGE_TEXT_ADVISED: Final = 4_000  # method chat.postMessage: longer texts are hard to read
MESSAGE_TEXT_TRUNCATED: Final = 40_000  # method chat.postMessage: cut there, with the warning message_truncated
UPDATE_TEXT: Final = 4_000  # method chat.update: msg_too_long beyond it
MESSAGE_BLOCKS_TEXT: Final = (
    12_000  # undocumented: msg_blocks_too_long, reported at 12,000 to 13,300 (bolt-js 2509, 2867)
)
METADATA_BYTES: Final = 64 * 1024  # method chat.postMessage: metadata_too_large; the figure is ours, Slack names none
MARKDOWN_TEXT: Final = 12_000  # ref, summed over all markdown blocks of a message

# Views.
VIEW_BYTES: Final = 250_000  # method views.open: view_too_large beyond 250 KB
VIEW_BLOCKS: Final = 100  # ref
VIEW_TITLE: Final = 24  # ref
VIEW_SUBMIT: Final = 24  # ref
VIEW_CLOSE: Final = 24  # ref
VIEW_PRIVATE_METADATA: Final = 3_000  # ref
VIEW_CALLBACK_ID: Final = 255  # ref
VIEW_EXTERNAL_ID: Final = 255  # ref
VIEW_STACK: Final = 3  # surface: push_limit_reached beyond it

# Blocks (ref).
BLOCK_ID: Final = 255
ACTION_ID: Final = 255
SECTION_TEXT: Final = 3_000
SECTION_FIELDS: Final = 10
SECTION_FIELD: Final = 2_000
HEADER_TEXT: Final = 150
CONTEXT_ELEMENTS: Final = 10
CONTEXT_TEXT: Final = 3_000
ACTIONS_ELEMENTS: Final = 25
CONTEXT_ACTIONS_ELEMENTS: Final = 5
INPUT_LABEL: Final = 2_000
INPUT_HINT: Final = 2_000
IMAGE_URL: Final = 3_000
IMAGE_ALT_TEXT: Final = 2_000
IMAGE_TITLE: Final = 2_000
TABLE_ROWS: Final = 100
TABLE_COLUMNS: Final = 20
PLAN_TASKS: Final = 50

# Elements and objects (ref).
BUTTON_TEXT: Final = 75
BUTTON_VALUE: Final = 2_000
BUTTON_URL: Final = 3_000
ACCESSIBILITY_LABEL: Final = 75
CONFIRM_TITLE: Final = 100
CONFIRM_TEXT: Final = 300
CONFIRM_BUTTON: Final = 30
OPTION_TEXT: Final = 75
OPTION_VALUE: Final = 150
OPTION_DESCRIPTION: Final = 75
OPTION_URL: Final = 3_000
OPTION_GROUP_LABEL: Final = 75
OPTION_GROUPS: Final = 100
SELECT_OPTIONS: Final = 100
OVERFLOW_OPTIONS: Final = 5
CHECKBOX_OPTIONS: Final = 10
RADIO_OPTIONS: Final = 10
PLACEHOLDER: Final = 150
INPUT_TEXT: Final = 3_000  # the longest min_length, max_length and text of a plain_text_input

# Times and uses.
ACK_SECONDS: Final = 3.0  # handling: commands, actions and submissions
TRIGGER_SECONDS: Final = 3.0  # method views.open: expired_trigger_id beyond it
RESPONSE_URL_SECONDS: Final = 1_800.0  # handling: 30 minutes
RESPONSE_URL_USES: Final = 5  # handling
EVENT_RETRIES: Final = 3  # docs.slack.dev/apis/events-api: nearly at once, after one minute, after five
EVENT_RETRY_SECONDS: Final = (0.0, 60.0, 300.0)
SIGNATURE_SECONDS: Final = 300.0  # docs.slack.dev/authentication/verifying-requests-from-slack: refuse older requests
SOCKETS: Final = 10  # docs.slack.dev/apis/events-api/using-socket-mode: too_many_websockets beyond it

# Rates (rates): chat.postMessage about one message a second and channel; the tiers are calls a minute.
POSTS_PER_CHANNEL_SECOND: Final = 1
TIER_PER_MINUTE: Final = {1: 1, 2: 20, 3: 50, 4: 100}
