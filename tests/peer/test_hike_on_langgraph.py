"""The hike planner on LangGraph, from the same nodes and routers: the same step by step, and where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from graphs.engine import StateGraph
from graphs.engine.errors import NotNow, RunEnded, StaleInterrupt, UnknownThread, UnknownVersion
from graphs.hike.state import Hike
from graphs.plan_hike import FLOW
from graphs.ports import Nonsense
from tests.graphs.hike.stage import CHANNEL, GOOD_TEXT, GROUP, Stage, happy, judges, says, writes
from tests.peer.hike_scenes import AGAIN, EDITED, SCENES, OnTheirs, Scene, decides, on_ours, on_theirs
from tests.peer.langgraph_port import DELIVER, World, opened, ported

pytestmark = pytest.mark.peer

APPROVE, CHANGES = decides("approve"), decides("changes", reason="Start later.")
SENT = [("sms", GROUP, GOOD_TEXT), ("post", CHANNEL, GOOD_TEXT)]


@pytest.mark.parametrize("name", SCENES)
def test_the_hike_planner_does_the_same_on_both(name: str, tmp_path: Path) -> None:
    ours, theirs = on_ours(SCENES[name]), on_theirs(SCENES[name], tmp_path)
    assert [names for names, _ in ours.steps] == [names for names, _ in theirs.steps]
    for (names, our_state), (_, their_state) in zip(ours.steps, theirs.steps, strict=True):
        assert our_state == their_state, names
    assert ours == theirs


def test_the_scenes_go_everywhere() -> None:
    """Otherwise there were nodes and ways of which nothing is known."""
    seen = {name for scene in SCENES.values() for names, _ in on_ours(scene).steps for name in names}
    assert seen == {*FLOW.graph.nodes, DELIVER}


# ---- where they differ ----------------------------------------------------------------------------------------------


def shown_on_ours(scene: Scene) -> tuple[Stage, str, JsonValue]:
    """A run that shows its review: the stage, the question's id, and an approval."""
    stage = scene.stage()
    (ask,) = stage.plan().interrupts
    return stage, ask.id, APPROVE(ask.payload)


def shown_on_theirs(scene: Scene, folder: Path) -> tuple[OnTheirs, JsonValue]:
    run = OnTheirs(scene, folder)
    return run, APPROVE(run.start()["payload"])


def test_two_workers_that_resume_one_approval_send_once_here_and_twice_there(tmp_path: Path) -> None:
    """The second comes while the first is sending, which is when clicks are repeated: nothing seems to happen."""
    stage, ident, approval = shown_on_ours(Scene(happy()))
    refused: list[type[Exception]] = []

    class Interrupted:
        def perform(self, *given: Any) -> None:
            with pytest.raises((StaleInterrupt, NotNow)) as error:
                stage.runner.resume("run-1", {ident: approval})
            refused.append(error.type)
            stage.post.perform(*given)

    stage.runner.performer = Interrupted()
    assert stage.runner.resume("run-1", {ident: approval}).status == "finished"
    assert (refused, stage.post.sent) == ([StaleInterrupt], SENT)

    run, approval = shown_on_theirs(Scene(happy()), tmp_path)
    entered: list[str] = []

    def interrupted(effect: Any) -> Any:
        entered.append(effect["kind"])
        if len(entered) == 1:
            run.answer(approval)
        return run.send(effect)

    run.graph = ported(FLOW.graph, "send", World(run.stage.runner.deps, lambda: run.stage.time, interrupted))
    run.answer(approval)
    assert sorted(run.sent) == sorted(SENT * 2)


def test_a_late_click_is_refused_here_and_approves_what_it_has_not_seen_there(tmp_path: Path) -> None:
    """One person asks for changes, another clicks Approve under the old text. Given by id it is dropped there."""
    later = "Hike Sat 5 Dec: Fern Hollow, start 08:00. Bring water, layers and a lamp."
    scene = Scene([*happy(), *AGAIN[:2], writes(later)])
    stage, ident, approval = shown_on_ours(scene)
    stage.runner.resume("run-1", {ident: CHANGES(stage.runner.get_state("run-1").interrupts[0].payload)})
    with pytest.raises(StaleInterrupt):
        stage.runner.resume("run-1", {ident: approval})
    assert (stage.post.sent, stage.runner.get_state("run-1").status) == ([], "waiting")

    run, approval = shown_on_theirs(scene, tmp_path)
    before = run.asked_id()
    run.answer({**approval, "verdict": "changes"})  # type: ignore[dict-item]
    assert run.answer_by_id(before, approval)["payload"]["draft"]["text"]["value"] == later
    assert run.sent == []
    run.answer(approval)
    assert run.sent == SENT


def test_a_draft_edited_while_it_waits_is_shown_anew_here_and_sent_as_it_was_there(tmp_path: Path) -> None:
    """There the node asks about the new text and is handed the answer to the old one, unless that is given by id."""
    stage, ident, approval = shown_on_ours(Scene(happy()))
    stage.runner.update_state("run-1", {"draft": EDITED})
    waiting = stage.runner.resume("run-1", {ident: approval})
    assert waiting.interrupts[0].payload["draft"]["text"]["value"] == EDITED  # type: ignore[index, call-overload]
    assert stage.post.sent == []

    run, approval = shown_on_theirs(Scene(happy()), tmp_path)
    before = run.asked_id()
    with opened(run.folder, run.graph) as graph:
        graph.update_state(run.config, {"draft": EDITED})
    assert run.answer_by_id(before, approval)["payload"]["draft"]["text"]["value"] == EDITED
    assert run.sent == []
    assert run.answer(approval) is None
    assert run.sent == SENT


def test_a_run_that_is_not_there_is_refused_here_and_started_there(tmp_path: Path) -> None:
    stage = Stage()
    with pytest.raises(UnknownThread):
        stage.runner.resume("nobody", {"0": True})

    run = OnTheirs(Scene([]), tmp_path)
    with pytest.raises(ValidationError, match="request"):  # of the first node, which has been started
        run.answer(True)
    with opened(run.folder, run.graph) as graph:
        assert graph.checkpointer is not None
        assert len(list(graph.checkpointer.list(run.config))) == 2  # type: ignore[union-attr]


def test_an_ended_run_says_so_here_and_nothing_there(tmp_path: Path) -> None:
    stage, ident, approval = shown_on_ours(Scene(happy()))
    stage.runner.resume("run-1", {ident: approval})
    with pytest.raises(RunEnded):
        stage.runner.resume("run-1", {ident: approval})

    run, approval = shown_on_theirs(Scene(happy()), tmp_path)
    assert [run.answer(approval), run.answer(approval)] == [None, None]
    assert run.sent == SENT


def test_a_paused_run_meets_another_version_never_here_and_ends_in_silence_there(tmp_path: Path) -> None:
    """In version 2 the node that waits is called otherwise."""
    second = StateGraph(Hike)
    new = {"approve": "sign_off"}
    for name, spec in FLOW.graph.specs.items():
        assert spec.run is not None
        second.add_node(new.get(name, name), spec.run)
    for source, targets in FLOW.graph.plain.items():
        for target in targets:
            second.add_edge(new.get(source, source), new.get(target, target))
    for source, branches in FLOW.graph.branches.items():
        for branch in branches:
            second.add_conditional_edges(new.get(source, source), branch.router, branch.targets)
    graph = second.compile(name="plan_hike", version=2)

    stage, ident, approval = shown_on_ours(Scene(happy()))
    runner = Stage().runner
    runner.store = stage.store
    runner.know(graph)
    with pytest.raises(UnknownVersion):
        runner.resume("run-1", {ident: approval})
    assert stage.runner.resume("run-1", {ident: approval}).status == "finished"

    run, approval = shown_on_theirs(Scene(happy()), tmp_path)
    run.graph = ported(graph, "send", World(run.stage.runner.deps, lambda: run.stage.time, run.send))
    assert run.answer(approval) is None
    assert (run.sent, run.history()[-1].next) == ([], ())


def test_a_call_that_has_returned_is_not_paid_again_by_a_retry_here_but_there(tmp_path: Path) -> None:
    """The evaluator's first answer is cut short, its second cannot be read: only the second has to be asked again."""
    cut = says("It is", "max_tokens")
    scene = Scene([*happy()[:3], cut, Nonsense("Half an answer."), judges(), judges(), writes()])
    assert [request.max_tokens for request in asked_of_the_evaluator(shown_on_ours(scene)[0])] == [4096, 8192, 8192]
    run, _ = shown_on_theirs(scene, tmp_path)
    assert [request.max_tokens for request in asked_of_the_evaluator(run.stage)] == [4096, 8192, 4096]


def asked_of_the_evaluator(stage: Stage) -> list[Any]:
    return stage.model.asked("You judge")
