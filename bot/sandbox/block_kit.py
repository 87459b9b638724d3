"""Check messages and views as Slack checks them: known types, required fields, every limit, unique ids."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot import limits
from bot.sandbox.block_shapes import BLOCKS, MESSAGE_BLOCKS, VIEW, VIEW_BLOCKS
from bot.sandbox.records import JsonObject, ViewKind
from bot.sandbox.shapes import Problem

__all__ = ["Problem", "check_message", "check_view", "text_length", "with_ids"]


def check_message(blocks: Any) -> list[Problem]:
    """What is wrong with the blocks of a message; pointers start at `/blocks`."""
    if not isinstance(blocks, list):
        return [Problem("must provide an array", "/blocks")]
    problems = _too_many(blocks, limits.MESSAGE_BLOCKS, "/blocks") + list(_blocks(blocks, MESSAGE_BLOCKS, "/blocks"))
    if sum(len(text) for text in _markdown(blocks)) > limits.MARKDOWN_TEXT:
        problems.append(Problem(f"must be less than {limits.MARKDOWN_TEXT + 1} characters in all markdown", "/blocks"))
    return problems


def check_view(view: Mapping[str, Any], kind: ViewKind) -> list[Problem]:
    """What is wrong with a modal or home view; pointers start at `/view`."""
    if view.get("type") != kind:
        return [Problem(f"must be of type {kind}", "/view/type")]
    problems = list(VIEW[kind](view, "/view"))
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        return problems
    problems += _too_many(blocks, limits.VIEW_BLOCKS, "/view/blocks")
    problems += _blocks(blocks, VIEW_BLOCKS, "/view/blocks")
    if kind == "modal" and not view.get("submit") and any(_type(block) == "input" for block in blocks):
        problems.append(Problem("missing required field: submit", "/view"))
    return problems


def text_length(blocks: Iterable[Any]) -> int:
    """The characters of all text in these blocks, which a posted message must keep within 12,000."""
    return sum(len(text) for block in blocks for text in _texts(block))


def with_ids(blocks: Iterable[JsonObject]) -> list[JsonObject]:
    """The blocks with a block_id on each and an action_id on each element, made up where missing."""
    return [_with_ids(block) for block in blocks]


def _with_ids(block: JsonObject) -> JsonObject:
    full = {"block_id": secrets.token_urlsafe(4), **block}
    for name in ("accessory", "element"):
        if isinstance(full.get(name), dict):
            full[name] = _with_action_id(full[name])
    if full["type"] in ("actions", "context_actions"):
        full["elements"] = [_with_action_id(element) for element in full["elements"]]
    return full


def _with_action_id(element: JsonObject) -> JsonObject:
    return element if element["type"] == "image" else {"action_id": secrets.token_urlsafe(4), **element}


def _blocks(blocks: list[Any], known: frozenset[str], at: str) -> Iterator[Problem]:
    for index, block in enumerate(blocks):
        kind, pointer = _type(block), f"{at}/{index}"
        if kind not in known:
            yield Problem(f"unsupported type: {kind}", f"{pointer}/type")
        else:
            yield from BLOCKS[kind](block, pointer)
            yield from _repeated_actions(block, pointer)
    yield from _repeated_blocks(blocks, at)


def _repeated_blocks(blocks: list[Any], at: str) -> Iterator[Problem]:
    ids = Counter(block.get("block_id") for block in blocks if isinstance(block, dict))
    for index, block in enumerate(blocks):
        id = block.get("block_id") if isinstance(block, dict) else None
        if id is not None and ids[id] > 1:
            yield Problem(f"`block_id` {id} already exists", f"{at}/{index}/block_id")


def _repeated_actions(block: JsonObject, at: str) -> Iterator[Problem]:
    elements = block.get("elements")
    if _type(block) != "actions" or not isinstance(elements, list):
        return
    ids = Counter(element.get("action_id") for element in elements if isinstance(element, dict))
    for index, element in enumerate(elements):
        id = element.get("action_id") if isinstance(element, dict) else None
        if id is not None and ids[id] > 1:
            yield Problem(f"`action_id` {id} already exists", f"{at}/elements/{index}/action_id")


def _too_many(items: list[Any], most: int, at: str) -> list[Problem]:
    return [Problem(f"no more than {most} items allowed", at)] if len(items) > most else []


def _type(block: Any) -> str:
    return str(block.get("type")) if isinstance(block, dict) else type(block).__name__


def _markdown(blocks: list[Any]) -> Iterator[str]:
    return (str(block.get("text", "")) for block in blocks if _type(block) == "markdown")


def _texts(value: Any) -> Iterator[str]:
    """Every string under a `text` key, however deep."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name == "text" and isinstance(part, str):
                yield part
            else:
                yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
