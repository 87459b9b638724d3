"""The views methods of the Web API."""

from __future__ import annotations

from typing import Any

from bot.sandbox import modals, wire
from bot.sandbox.permits import PermitRefused, Trigger
from bot.sandbox.records import JsonObject
from bot.sandbox.refusal import Refusal, invalid
from bot.sandbox.site import Arguments, Site


def open_view(site: Site, arguments: Arguments) -> JsonObject:
    """views.open."""
    view = _view(site, arguments)
    trigger = _exchange(site, arguments)
    return {"view": wire.view(modals.open_modal(site.workspace, trigger.user, view))}


def push_view(site: Site, arguments: Arguments) -> JsonObject:
    """views.push, on top of the modal in which the trigger arose."""
    view = _view(site, arguments)
    trigger = _exchange(site, arguments)
    return {"view": wire.view(modals.push(site.workspace, trigger.view_id, view))}


def update_view(site: Site, arguments: Arguments) -> JsonObject:
    """views.update, by view_id or external_id."""
    view = arguments.json("view", "invalid_arguments")
    id = arguments.text("view_id")
    if not id:
        id = modals.with_external_id(site.workspace, arguments.required("external_id"))
    return {"view": wire.view(modals.update(site.workspace, id, view, arguments.text("hash") or None))}


def publish_view(site: Site, arguments: Arguments) -> JsonObject:
    """views.publish."""
    if not site.allowed.home_tab:
        raise Refusal("not_enabled")
    person = site.workspace.person(arguments.required("user_id"))
    if person is None:
        raise invalid("invalid_arguments", ["[ERROR] user not found [json-pointer:/user_id]"])
    view = arguments.json("view", "invalid_arguments")
    return {"view": wire.view(modals.publish(site.workspace, person.id, view, arguments.text("hash") or None))}


def _view(site: Site, arguments: Arguments) -> Any:
    """The view, checked before the trigger is used up, so that a corrected call may still use it."""
    view = arguments.json("view", "invalid_arguments")
    modals.checked(site.workspace, view, "modal")
    return view


def _exchange(site: Site, arguments: Arguments) -> Trigger:
    try:
        return site.permits.exchange(arguments.required("trigger_id"))
    except PermitRefused as refused:
        raise Refusal(refused.code) from refused
