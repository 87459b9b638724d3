"""A small durable graph engine: typed state, supersteps, checkpoints, questions to people, effects as values."""

from __future__ import annotations

from graphs.engine.checkpoint import Spent
from graphs.engine.commands import Command, Halt, Later, Send
from graphs.engine.effects import Effect, Receipt
from graphs.engine.graph import Graph, RetryPolicy, StateGraph
from graphs.engine.runner import Runner
from graphs.engine.runtime import Runtime
from graphs.engine.shape import END, START
from graphs.engine.snapshot import Snapshot
from graphs.engine.state import (
    REMOVE_ALL,
    Message,
    Overwrite,
    RemoveMessage,
    State,
    add,
    add_messages,
    append,
    merge,
)
from graphs.engine.values import Value

__all__ = [
    "END",
    "REMOVE_ALL",
    "START",
    "Command",
    "Effect",
    "Graph",
    "Halt",
    "Later",
    "Message",
    "Overwrite",
    "Receipt",
    "RemoveMessage",
    "RetryPolicy",
    "Runner",
    "Runtime",
    "Send",
    "Snapshot",
    "Spent",
    "State",
    "StateGraph",
    "Value",
    "add",
    "add_messages",
    "append",
    "merge",
]
