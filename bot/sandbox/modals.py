"""The stack of modals on a person's screen, and what apps and people may do to it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from bot import limits
from bot.sandbox import block_kit, form_state
from bot.sandbox.records import JsonObject, View, ViewKind
from bot.sandbox.refusal import Refusal, invalid
from bot.sandbox.workspace import Workspace

TROUBLE = "We had some trouble connecting. Try again?"


def open_modal(workspace: Workspace, user: str, view: Any) -> View:
    """Show a modal, in place of whatever this person had open; raises `Refusal`."""
    shown = checked(workspace, view, "modal")
    with workspace.lock:
        workspace.drop_views(one.id for one in workspace.modals(user))
        return _put(workspace, user, "modal", shown, below=None)


def push(workspace: Workspace, below: str, view: Any) -> View:
    """Show a modal on top of the open one with the id `below`; raises `Refusal`."""
    shown = checked(workspace, view, "modal")
    with workspace.lock:
        found = workspace.view(below)
        if found is None or found.kind != "modal":
            raise Refusal("not_found")
        if len(workspace.modals(found.user)) >= limits.VIEW_STACK:
            raise Refusal("push_limit_reached")
        return _put(workspace, found.user, "modal", shown, below=found)


def update(workspace: Workspace, id: str, view: Any, hash: str | None = None) -> View:
    """Exchange what an open view shows, keeping what was entered under unchanged ids; raises `Refusal`."""
    with workspace.lock:
        found = workspace.view(id)
        if found is None:
            raise Refusal("not_found")
        if hash is not None and hash != found.hash:
            raise Refusal("hash_conflict")
        return workspace.put_view(_shown(workspace, found, checked(workspace, view, found.kind, own=found.id)))


def publish(workspace: Workspace, user: str, view: Any, hash: str | None = None) -> View:
    """Show a view on a person's Home tab; raises `Refusal`."""
    with workspace.lock:
        found = workspace.home(user)
        if found is not None and hash is not None and hash != found.hash:
            raise Refusal("hash_conflict")
        shown = checked(workspace, view, "home", own=found.id if found else "")
        if found is None:
            return _put(workspace, user, "home", shown, below=None)
        return workspace.put_view(_shown(workspace, found, shown))


def with_external_id(workspace: Workspace, external_id: str) -> str:
    """The id of the open view with this external id; raises `Refusal`."""
    for view in workspace.views():
        if external_id and view.external_id == external_id:
            return view.id
    raise Refusal("not_found")


def answer_submission(workspace: Workspace, id: str, response: Any) -> str:
    """Do to the stack what the ack of a submission says; returns what is wrong with the ack, or the empty string."""
    with workspace.lock:
        view = workspace.view(id)
        if view is None:
            return ""
        try:
            problem = _respond(workspace, view, response)
        except Refusal as refusal:
            problem = json.dumps(refusal.answer())
        return problem


def trouble(workspace: Workspace, id: str) -> None:
    """Tell the person that the app did not take what they submitted."""
    with workspace.lock:
        view = workspace.view(id)
        if view is not None:
            workspace.put_view(replace(view, trouble=TROUBLE))


def checked(workspace: Workspace, view: Any, kind: ViewKind, own: str = "") -> JsonObject:
    """The view with all its block ids if Slack would take it; `own` is the view it replaces. Raises `Refusal`."""
    if not isinstance(view, dict):
        raise invalid("invalid_arguments", ["[ERROR] must provide an object [json-pointer:/view]"])
    if len(json.dumps(view).encode()) > limits.VIEW_BYTES:
        raise Refusal("view_too_large")
    if problems := block_kit.check_view(view, kind):
        raise invalid("invalid_arguments", [problem.sentence() for problem in problems])
    taken = {one.external_id for one in workspace.views() if one.id != own and one.external_id}
    if view.get("external_id") in taken:
        raise Refusal("duplicate_external_id")
    return {**view, "blocks": block_kit.with_ids(view["blocks"])}


def above(workspace: Workspace, view: View) -> list[View]:
    """This modal and the ones on top of it."""
    stack = workspace.modals(view.user)
    return stack[stack.index(view) :] if view in stack else []


def _respond(workspace: Workspace, view: View, response: Any) -> str:
    if response in (None, "", {}):
        workspace.drop_views(one.id for one in above(workspace, view))
        return ""
    action = response.get("response_action") if isinstance(response, dict) else None
    if action == "errors":
        return _show_errors(workspace, view, response.get("errors"))
    if action == "clear":
        workspace.drop_views(one.id for one in workspace.modals(view.user))
    elif action == "update":
        update(workspace, view.id, response.get("view"))
    elif action == "push":
        push(workspace, view.id, response.get("view"))
    else:
        return f"the answer to a submission needs a response_action, this is none: {json.dumps(response)[:200]}"
    return ""


def _show_errors(workspace: Workspace, view: View, errors: Any) -> str:
    inputs = {block["block_id"] for block in view.blocks if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors:
        return "response_action errors needs a mapping of block ids to sentences"
    if unknown := sorted(set(errors) - inputs):
        return f"response_action errors names blocks that are no inputs of the view: {', '.join(unknown)}"
    workspace.put_view(replace(view, errors={name: str(text) for name, text in errors.items()}, trouble=""))
    return ""


def _put(workspace: Workspace, user: str, kind: ViewKind, view: JsonObject, below: View | None) -> View:
    id = workspace.new_id("V")
    return workspace.put_view(
        View(
            id=id,
            hash=_hash(workspace),
            user=user,
            kind=kind,
            view=view,
            root_view_id=below.root_view_id if below else id,
            previous_view_id=below.id if below else None,
            state=form_state.initial(view["blocks"]),
        )
    )


def _shown(workspace: Workspace, found: View, view: JsonObject) -> View:
    state = form_state.initial(view["blocks"])
    for block_id, values in state.items():
        kept = found.state.get(block_id, {})
        same = {name: kept[name] for name, value in values.items() if kept.get(name, {}).get("type") == value["type"]}
        values.update(same)
    return replace(found, hash=_hash(workspace), view=view, state=state, errors={}, trouble="")


def _hash(workspace: Workspace) -> str:
    return f"{int(workspace.clock())}.{workspace.new_id('h')[-8:]}"
