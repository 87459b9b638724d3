"""Views as HTML: the modal on top of a person's stack, and the app's Home tab."""

from __future__ import annotations

from bot.sandbox.markup import Html, element, stamped
from bot.sandbox.place import Place, text_html
from bot.sandbox.records import APP_NAME, View
from bot.sandbox.render import blocks_html
from bot.sandbox.screen import Screen


def modal(screen: Screen) -> Html:
    """The form on top of the person's stack; nothing while no modal is open."""
    open_views = screen.workspace.modals(screen.me.id)
    return _form(open_views[-1], screen, pushed=len(open_views) > 1) if open_views else Html("")


def _form(view: View, screen: Screen, *, pushed: bool) -> Html:
    close = element(
        "button", "✕", type="button", class_="icon", data_close=True, aria_label="Close", title="Close (Esc)"
    )
    title = element("h2", text_html(view.view["title"], screen.reader), id="modal-title")
    trouble = [element("p", "⚠️ ", view.trouble, class_="trouble", role="alert")] if view.trouble else []
    blocks = blocks_html(view.blocks, place_of(view, screen))
    return stamped(
        "form",
        element("header", title, close),
        element("div", *trouble, blocks, class_="modal-body blocks"),
        element("footer", *_buttons(view, screen, pushed=pushed)),
        id="modal-form",
        data_view=view.id,
        data_hash=view.hash,
        method="dialog",
        novalidate=True,
    )


def _buttons(view: View, screen: Screen, *, pushed: bool) -> list[Html]:
    """The way out and the way on; the labels are the app's."""
    submit, close = view.view.get("submit"), view.view.get("close")
    leave = text_html(close, screen.reader) if close else "Back" if pushed else "Cancel" if submit else "Close"
    buttons = [element("button", leave, type="button", class_="button", data_close=True)]
    if submit:
        label = text_html(submit, screen.reader)
        buttons.append(element("button", label, type="submit", class_="button primary", title="Ctrl+Enter"))
    return buttons


def home(screen: Screen) -> Html:
    """What the app published for this person, or a sentence where it has not yet."""
    view = screen.workspace.home(screen.me.id)
    if view is None:
        note = f"{APP_NAME} has not shown anything here yet. It does so when it is running."
        return stamped("div", element("p", note, class_="empty"), id="home-view")
    blocks = element("div", blocks_html(view.blocks, place_of(view, screen)), class_="blocks")
    return stamped("div", blocks, id="home-view", data_view=view.id)


def place_of(view: View, screen: Screen) -> Place:
    """Where a view's blocks are drawn."""
    return Place(f"v-{view.id}", screen.reader, view.state, view.errors)
