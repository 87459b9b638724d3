"""A run that waits is taken to a new version of its flow, and goes on there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.app import build
from bot.commands import Start, start_run
from bot.decisions import Wish, decide
from bot.dispatch import advance
from bot.moving import move_run
from bot.parts import Parts
from bot.settings import load_settings
from graphs.catalog import Catalog
from graphs.engine.errors import GraphError, UnknownVersion, UpdateRefused
from graphs.flow import Flow
from storage import approvals, runs
from tests.bot.saying import New, Old, say

OLD = say(1, Old, "text")


def _open(folder: Path, *flows: Flow) -> Parts:
    return build(load_settings(database_url=f"sqlite:///{folder / 'signoff.db'}"), catalog=Catalog(flows))


def _waiting_run(folder: Path) -> str:
    parts = _open(folder, OLD)
    thread_id = start_run(
        parts, OLD, Start(form={"text": "hello"}, who="U0ANA0001", channel="C0HIKES01", team="T0SIGNOFF")
    )
    advance(parts.runner, thread_id)
    parts.close()
    return thread_id


def _mapped(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"words": values["text"], "tone": "kind", "decision": values["decision"]}


def test_a_waiting_run_goes_on_as_the_new_version_with_its_question_still_open(tmp_path: Path) -> None:
    thread_id = _waiting_run(tmp_path)
    parts = _open(tmp_path, say(2, New, "words", moves={1: _mapped}))
    asked = approvals.of_root(parts.database, thread_id)[0]

    move_run(parts, thread_id, 2, "U0BEN0002")

    assert decide(parts, asked.id, "U0BEN0002", Wish(verdict="approve")).result == "settled"
    advance(parts.runner, thread_id)
    run = runs.find(parts.database, thread_id)
    assert run is not None
    assert (run.ending, run.version) == ("finished", 2)
    state = parts.runner.get_state(thread_id).values.to_json()
    assert (state["words"], state["tone"]) == ("hello", "kind")
    parts.close()


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        (say(2, New, "words"), UnknownVersion),
        (say(2, New, "words", node="check", moves={1: _mapped}), GraphError),
        (say(2, New, "words", moves={1: lambda values: {"words": 7, "tone": "kind"}}), UpdateRefused),
        (say(2, New, "words", moves={1: lambda values: {"words": "x"}}), UpdateRefused),
        (say(2, New, "words", moves={1: lambda values: {**_mapped(values), "colour": "red"}}), UpdateRefused),
    ],
)
def test_what_does_not_fit_is_refused_and_the_run_stays_as_it_was(
    tmp_path: Path, flow: Flow, error: type[Exception]
) -> None:
    thread_id = _waiting_run(tmp_path)
    parts = _open(tmp_path, flow)
    with pytest.raises(error):
        move_run(parts, thread_id, 2, "U0BEN0002")
    run = runs.find(parts.database, thread_id)
    assert run is not None
    assert (run.version, run.fingerprint) == (1, OLD.graph.fingerprint)
    parts.close()
