"""What every store of runs promises: one suite over memory, SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphs.engine.checkpoint import (
    Checkpointer,
    Claim,
    EffectRow,
    Interrupt,
    Memory,
    Next,
    Pause,
    PendingWrite,
    Row,
    RunRecord,
    Spent,
    Task,
)
from graphs.engine.errors import (
    ClaimLost,
    EffectsPending,
    NotNow,
    RunEnded,
    StaleInterrupt,
    ThreadExists,
    UnknownInterrupt,
    UnknownThread,
    UnknownVersion,
)
from graphs.engine.memory import MemoryCheckpointer
from graphs.engine.values import dump
from graphs.flow import Policy
from storage import ledger
from storage.checkpoints import SqlCheckpointer
from storage.database import Database
from storage.leases import Heartbeat
from tests.databases import VENDORS, migrated

START = 1_800_000_000_000_000
SECOND = 1_000_000
KNOWN = {("flow", 1): "print"}
RUN = RunRecord("run", "flow", 1, "print", "run", model="m", who="U1", team="T1", channel="C1", max_steps=9)


@dataclass
class Clock:
    """Moved by hand, so that leases lapse when a test says so."""

    now: int = START

    def __call__(self) -> int:
        return self.now


@dataclass
class Stage:
    """A store, its clock, and how its effects get an outcome."""

    store: Checkpointer
    clock: Clock
    send: Callable[[Claim, EffectRow], None]

    def begin(self, run: RunRecord = RUN, after: Next | None = None) -> Claim:
        self.store.create(run, row(0, "input", full=True, thread=run.thread_id, after=after))
        return self.claim(run.thread_id)

    def claim(self, thread: str = "run") -> Claim:
        return self.store.claim(thread, KNOWN)

    def lapse(self) -> None:
        self.clock.now += 9 * SECOND

    def is_due(self) -> bool:
        try:
            self.claim()
        except NotNow:
            return False
        return True


def unguarded(flow: str, kind: str) -> bool:
    return kind != "free"


def in_memory() -> Stage:
    clock = Clock()
    store = MemoryCheckpointer(clock)
    return Stage(
        store, clock, lambda claim, effect: store.set_effect(effect, "sending", look_at=clock.now + 150 * SECOND)
    )


@contextmanager
def in_database(url: str) -> Iterator[Stage]:
    clock = Clock()
    database = Database(url, clock=clock)
    heartbeat = Heartbeat(database, interval=3600)  # no lease is renewed while a test lets it lapse
    store = SqlCheckpointer(
        database, policy_of=lambda flow: Policy(), guards=lambda flow, kind: kind != "free", heartbeat=heartbeat
    )

    def send(claim: Claim, effect: EffectRow) -> None:
        assert ledger.begin(database, claim, effect.key) is not None

    yield Stage(store, clock, send)
    heartbeat.close()
    database.close()


@pytest.fixture(params=["memory", *VENDORS])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "memory":
        yield in_memory()
        return
    with migrated(request.param, request, tmp_path) as url, in_database(url) as opened:
        yield opened


def row(step: int, source: Any = "step", *, full: bool = False, thread: str = "run", after: Next | None = None) -> Row:
    body = dump({"at": step}) if full else dump({"changed": step})
    return Row(thread, step, source, (after or Next()).to_text(), body, full, dump({"took": step}))


def write(key: str, value: Any, *, step: int = 0, task: str = "ask", thread: str = "run") -> PendingWrite:
    return PendingWrite(thread, step, task, key, dump(value))


def ask(name: str = "q1", *, step: int = 0, thread: str = "run", payload: Any = None, **kwargs: Any) -> Interrupt:
    return Interrupt(name, thread, step, "ask", name, "signal", payload or {"name": name}, **kwargs)


def effect(n: int = 0, kind: str = "free", *, step: int = 1) -> EffectRow:
    return EffectRow("run", step, n, "run", kind, "+1555", f"text {n}", "{}", "receipts")


ASKING = Next(tasks=(Task("ask", 0),))
CHILD = RunRecord("run/0.child", "inner", 1, "print", "run", parent="run")


# -- runs and checkpoints ---------------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was_created(stage: Stage) -> None:
    run = RUN._replace(pause_before=("send", "ask"))
    stage.store.create(run, row(0, "input", full=True))
    loaded = stage.store.load("run")
    assert loaded.run == run
    assert loaded.rows == (row(0, "input", full=True)._replace(at=START),)
    assert (loaded.writes, loaded.effects, loaded.open, loaded.steps) == ((), (), frozenset(), 0)


def test_a_run_that_is_begun_is_claimed_and_loaded_as_it_is_stored(stage: Stage) -> None:
    first = row(0, "input", full=True)
    claim = stage.store.begin(RUN, first)
    assert claim.loaded == stage.store.load("run")
    with pytest.raises(NotNow):
        stage.claim()
    with pytest.raises(ThreadExists):
        stage.store.begin(RUN, first)
    stage.lapse()
    taken = stage.claim()
    assert taken.loaded == claim.loaded
    with pytest.raises(ClaimLost):
        stage.store.commit(claim, row(1))


def test_the_last_step_ends_its_run_in_the_same_save(stage: Stage) -> None:
    claim = stage.begin()
    at = stage.store.commit(claim, row(1), ending="finished")
    loaded = stage.store.load("run")
    assert (loaded.run.ending, loaded.rows[-1].at, loaded.steps) == ("finished", at, 1)
    with pytest.raises(RunEnded):
        stage.claim()


def test_two_runs_of_one_name_are_refused(stage: Stage) -> None:
    stage.store.create(RUN, row(0, "input", full=True))
    with pytest.raises(ThreadExists):
        stage.store.create(RUN._replace(who="U2"), row(0, "input", full=True))
    assert stage.store.load("run").run.who == "U1"


def test_an_unknown_run_is_an_error_of_its_own(stage: Stage) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: stage.store.load("ghost"),
        lambda: stage.claim("ghost"),
        lambda: stage.store.history("ghost"),
        lambda: stage.store.interrupts("ghost"),
        lambda: stage.store.answer("ghost", "q1", 1),
        lambda: stage.store.reopen("ghost"),
        lambda: stage.store.edit("ghost", row(1, thread="ghost")),
        lambda: stage.store.delete("ghost"),
        lambda: stage.store.prune("ghost"),
    ]
    for call in calls:
        with pytest.raises(UnknownThread):
            call()


def test_only_rows_from_the_last_snapshot_on_are_loaded(stage: Stage) -> None:
    claim = stage.begin()
    for number in range(1, 6):
        stage.store.commit(claim, row(number, full=number == 3))
    loaded = stage.store.load("run")
    assert [each.step for each in loaded.rows] == [3, 4, 5]
    assert loaded.steps == 5


def test_history_goes_down_to_the_snapshot_that_the_oldest_row_needs(stage: Stage) -> None:
    claim = stage.begin()
    for number in range(1, 8):
        stage.store.commit(claim, row(number, full=number == 4))

    def steps(**kwargs: Any) -> list[int]:
        return [each.step for each in stage.store.history("run", **kwargs)]

    assert steps() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert steps(limit=2) == [7, 6, 5, 4]
    assert steps(limit=4) == [7, 6, 5, 4]
    assert steps(limit=5) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert steps(before=4, limit=1) == [3, 2, 1, 0]
    assert steps(before=0) == []


def test_pruning_keeps_the_head_resumable(stage: Stage) -> None:
    claim = stage.begin()
    for number in range(1, 6):
        stage.store.commit(claim, row(number, full=number == 3))
    stage.store.prune("run")
    assert [each.step for each in stage.store.history("run")] == [5, 4, 3]
    stage.store.commit(claim, row(6))
    assert [each.step for each in stage.store.load("run").rows] == [3, 4, 5, 6]


@pytest.mark.parametrize("text", ["nul \x00 in it", "half a pair \ud83d", "caf\u00e9 \U0001f3d4", ""])
def test_any_text_survives(stage: Stage, text: str) -> None:
    claim = stage.begin(RUN._replace(error=text))
    stage.store.commit(claim, row(1)._replace(body=dump({"text": text})), [effect()._replace(content=text)])
    stage.store.record(claim, [write("once:reply:0", text, step=1)])
    loaded = stage.store.load("run")
    assert loaded.run.error == text
    assert loaded.rows[-1].body == dump({"text": text})
    assert loaded.effects[0].content == text
    assert loaded.writes[0].value == dump(text)


# -- claims -----------------------------------------------------------------------------------------------------------


def test_one_of_two_gets_the_claim(stage: Stage) -> None:
    stage.begin()
    with pytest.raises(NotNow):
        stage.claim()


def test_a_run_that_is_not_due_is_not_claimed(stage: Stage) -> None:
    stage.store.create(RUN, row(0, "input", full=True), due=False)
    with pytest.raises(NotNow):
        stage.claim()


def test_a_version_or_structure_that_is_not_here_is_not_claimed(stage: Stage) -> None:
    stage.store.create(RUN, row(0, "input", full=True))
    for known in ({}, {("flow", 2): "print"}, {("flow", 1): "another print"}):
        with pytest.raises(UnknownVersion):
            stage.store.claim("run", known)


def test_a_lapsed_lease_is_taken_over_and_the_late_owner_saves_nothing(stage: Stage) -> None:
    late = stage.begin()
    stage.store.commit(late, row(1))
    stage.lapse()
    owner = stage.claim()
    saves: list[Callable[[], Any]] = [
        lambda: stage.store.commit(late, row(2), [effect(step=2)], [Memory("n", "k", "1")]),
        lambda: stage.store.record(late, [write("once:reply:0", 1, step=1)], Spent(1, 2, 3)),
        lambda: stage.store.pause(late, Pause(interrupts=[ask()])),
        lambda: stage.store.end(late, "run", "finished"),
        lambda: stage.store.adopt(late, CHILD, row(0, "input", full=True, thread=CHILD.thread_id)),
    ]
    for save in saves:
        late.lost = False
        with pytest.raises(ClaimLost):
            save()
    loaded = stage.store.load("run")
    assert (loaded.rows[-1].step, loaded.writes, loaded.effects, loaded.spent) == (1, (), (), Spent())
    assert (loaded.run.ending, loaded.open, stage.store.recall("n", "k")) == ("", frozenset(), None)
    stage.store.commit(owner, row(2))
    assert stage.store.load("run").rows[-1].step == 2


def test_a_lost_claim_stays_lost(stage: Stage) -> None:
    late = stage.begin()
    stage.lapse()
    owner = stage.claim()
    with pytest.raises(ClaimLost):
        stage.store.commit(late, row(1))
    assert late.lost
    with pytest.raises(ClaimLost):
        stage.store.commit(late, row(1))
    assert not owner.lost


def test_branches_of_one_claim_save_at_once(stage: Stage) -> None:
    claim = stage.begin(after=ASKING)
    names = [f"once:{branch}:{n}" for branch in range(8) for n in range(5)]

    def save(branch: int) -> None:
        for n in range(5):
            stage.store.record(claim, [write(f"once:{branch}:{n}", n)], Spent(1, 10, 1))

    threads = [threading.Thread(target=save, args=(branch,)) for branch in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded = stage.store.load("run")
    assert sorted(each.key for each in loaded.writes) == sorted(names)
    assert loaded.spent == Spent(40, 400, 40)
    stage.store.commit(claim, row(1))


# -- a superstep ------------------------------------------------------------------------------------------------------


def test_what_a_task_has_recorded_is_written_once(stage: Stage) -> None:
    claim = stage.begin(after=ASKING)
    stage.store.record(claim, [write("once:reply:0", "first")], Spent(1, 100, 20))
    stage.store.record(claim, [write("once:reply:0", "second"), write("result", {"a": 1})], Spent(0, 5, 5))
    loaded = stage.store.load("run")
    assert {each.key: each.value for each in loaded.writes} == {"once:reply:0": '"first"', "result": '{"a":1}'}
    assert loaded.spent == Spent(1, 105, 25)


def test_effects_come_with_their_step_in_order(stage: Stage) -> None:
    claim = stage.begin()
    stage.store.commit(claim, row(1), [effect(0), effect(1), effect(2)])
    assert stage.store.load("run").effects == (effect(0), effect(1), effect(2))
    stage.store.commit(claim, row(2, "receipt"))
    assert stage.store.load("run").effects == ()
    assert stage.store.effects("run", 1) == (effect(0), effect(1), effect(2))
    assert stage.store.load("run").steps == 1


def test_memories_are_kept_overwritten_and_forgotten_with_a_step(stage: Stage) -> None:
    claim = stage.begin()
    stage.store.commit(claim, row(1), (), [Memory("hikes", "last", '"Fern Hollow"'), Memory("hikes", "gone", "0")])
    stage.store.commit(claim, row(2), (), [Memory("hikes", "last", '{"at":false}'), Memory("hikes", "gone", None)])
    assert stage.store.recall("hikes", "last") == {"at": False}
    assert stage.store.recall("hikes", "gone") is None
    assert stage.store.recall("other", "last") is None


# -- pauses, answers, ends --------------------------------------------------------------------------------------------


def pause(stage: Stage, *asks: Interrupt, **kwargs: Any) -> None:
    claim = stage.begin(after=ASKING)
    stage.store.pause(claim, Pause(interrupts=asks or (ask(),), **kwargs))


def test_a_pause_asks_and_releases(stage: Stage) -> None:
    pause(stage, ask(path=("outer", "inner")), writes=[write("asked:0", "q1")])
    loaded = stage.store.load("run")
    assert loaded.open == {"q1"}
    assert [each.key for each in loaded.writes] == ["asked:0"]
    assert stage.store.interrupts("run") == (ask(path=("outer", "inner")),)
    assert not stage.is_due()


@pytest.mark.parametrize("value", [False, 0, "", None, {}, [], "yes", {"a": [1, None]}])
def test_an_answer_wakes_the_run_and_is_taken_up(stage: Stage, value: Any) -> None:
    pause(stage)
    stage.store.answer("run", "q1", value, by="U2")
    assert stage.store.load("run").open == {"q1"}
    loaded = stage.claim().loaded
    assert loaded == stage.store.load("run")
    assert [(each.task, each.key, each.value) for each in loaded.writes] == [("ask", "answer:q1", dump(value))]
    assert (loaded.open, stage.store.interrupts("run")) == (frozenset(), ())


def test_one_of_several_answers_leaves_the_others_open(stage: Stage) -> None:
    pause(stage, ask("q1"), ask("q2"), ask("q3"))
    stage.store.answer("run", "q2", 2)
    loaded = stage.claim().loaded
    assert loaded == stage.store.load("run")
    assert (loaded.open, [each.key for each in loaded.writes]) == ({"q1", "q3"}, ["answer:q2"])
    assert [each.id for each in stage.store.interrupts("run")] == ["q1", "q3"]


def test_a_wrong_answer_has_its_own_error_and_wakes_nobody(stage: Stage) -> None:
    pause(stage)
    other = RUN._replace(thread_id="other", root="other")
    stage.store.create(other, row(0, "input", full=True, thread="other"), due=False)
    with pytest.raises(UnknownInterrupt):
        stage.store.answer("run", "q9", 1)
    with pytest.raises(UnknownInterrupt):
        stage.store.answer("other", "q1", 1)
    assert not stage.is_due()
    stage.store.answer("run", "q1", 1)
    with pytest.raises(StaleInterrupt):
        stage.store.answer("run", "q1", 2)


def test_a_superseded_question_is_closed(stage: Stage) -> None:
    pause(stage)
    stage.store.answer("run", "q1", 1)
    claim = stage.claim()
    stage.store.pause(claim, Pause(interrupts=[ask("q2")], superseded=["q1"]))
    assert stage.store.load("run").open == {"q2"}
    with pytest.raises(StaleInterrupt):
        stage.store.answer("run", "q1", 1)


def test_a_run_that_sleeps_is_due_when_it_said(stage: Stage) -> None:
    pause(stage, wake_at=START + 60 * SECOND, error="The model is busy.")
    assert stage.store.load("run").run.error == "The model is busy."
    stage.clock.now = START + 59 * SECOND
    assert not stage.is_due()
    stage.clock.now = START + 60 * SECOND
    assert stage.is_due()


def test_an_answer_given_while_the_run_was_advanced_is_not_lost(stage: Stage) -> None:
    pause(stage, ask("q1"), ask("q2"))
    stage.store.answer("run", "q1", 1)
    claim = stage.claim()
    stage.store.answer("run", "q2", 2)
    stage.store.pause(claim, Pause(wake_at=START + 3600 * SECOND))
    assert stage.is_due()


def test_an_end_closes_everything_below(stage: Stage) -> None:
    claim = stage.begin(after=ASKING)
    stage.store.adopt(claim, CHILD, row(0, "input", full=True, thread=CHILD.thread_id))
    stage.store.commit(claim, row(1, after=ASKING), [effect()])
    stage.store.pause(claim, Pause(interrupts=[ask("q1", thread=CHILD.thread_id)], wake_at=START))
    claim = stage.claim()
    stage.store.end(claim, "run", "gave_up", "no more rounds")
    for thread in ("run", CHILD.thread_id):
        assert stage.store.load(thread).run.ending == "gave_up"
    assert stage.store.load("run").run.error == "no more rounds"
    assert [each.status for each in stage.store.load("run").effects] == ["cancelled"]
    assert (stage.store.interrupts("run"), stage.store.load("run").open) == ((), frozenset())
    with pytest.raises(RunEnded):
        stage.claim()
    with pytest.raises(StaleInterrupt):
        stage.store.answer("run", "q1", 1)
    with pytest.raises(ClaimLost):
        stage.store.commit(claim, row(2))


def test_a_child_ends_alone_and_keeps_its_ending(stage: Stage) -> None:
    claim = stage.begin()
    stage.store.adopt(claim, CHILD, row(0, "input", full=True, thread=CHILD.thread_id))
    stage.store.end(claim, CHILD.thread_id, "finished")
    assert (stage.store.load(CHILD.thread_id).run.ending, stage.store.load("run").run.ending) == ("finished", "")
    stage.store.end(claim, "run", "declined")
    assert stage.store.load(CHILD.thread_id).run.ending == "finished"


def test_a_child_is_adopted_once_and_counts_for_the_whole_tree(stage: Stage) -> None:
    claim, first = stage.begin(), row(0, "input", full=True, thread=CHILD.thread_id)
    stage.store.adopt(claim, CHILD, first)
    stage.store.commit(claim, row(1, thread=CHILD.thread_id))
    stage.store.adopt(claim, CHILD._replace(who="U9"), first)
    stage.store.commit(claim, row(1))
    loaded = stage.store.load(CHILD.thread_id)
    assert (loaded.run, loaded.rows[-1].step, loaded.steps) == (CHILD, 1, 2)


# -- tried again, edited, forgotten -----------------------------------------------------------------------------------


def test_a_failed_run_is_tried_again_with_what_it_had_open(stage: Stage) -> None:
    pause(stage, wake_at=START)
    claim = stage.claim()
    stage.store.adopt(claim, CHILD, row(0, "input", full=True, thread=CHILD.thread_id))
    stage.store.end(claim, "run", "failed", "the node broke")
    stage.clock.now += SECOND
    stage.store.reopen("run", max_steps=20)
    loaded = stage.store.load("run")
    assert (loaded.run.ending, loaded.run.error, loaded.run.max_steps) == ("", "", 20)
    assert stage.store.load(CHILD.thread_id).run.ending == ""
    assert [each.id for each in stage.store.interrupts("run")] == ["q1"]
    stage.store.answer("run", "q1", True)
    loaded = stage.claim().loaded
    assert loaded is not None
    assert [each.key for each in loaded.writes] == ["answer:q1"]


def test_a_halted_run_is_tried_again(stage: Stage) -> None:
    claim = stage.begin()
    stage.store.pause(claim, Pause(error="The run has used its 9 steps."))
    assert not stage.is_due()
    stage.store.reopen("run")
    assert stage.store.load("run").run == RUN
    assert stage.is_due()


@pytest.mark.parametrize("ending", ["finished", "declined", "gave_up", "expired", "cancelled"])
def test_a_run_that_ended_well_is_not_tried_again(stage: Stage, ending: str) -> None:
    stage.store.end(stage.begin(), "run", ending)
    with pytest.raises(RunEnded):
        stage.store.reopen("run")


def test_an_edit_goes_on_top_and_what_is_pending_stays(stage: Stage) -> None:
    pause(stage, writes=[write("asked:0", "q1")])
    stage.store.edit("run", row(1, "update", after=ASKING)._replace(author="U7"))
    loaded = stage.store.load("run")
    assert (loaded.rows[-1].source, loaded.rows[-1].author, loaded.open) == ("update", "U7", {"q1"})
    assert [each.key for each in loaded.writes] == ["asked:0"]
    assert loaded.steps == 0


def test_a_run_that_is_advanced_is_not_edited(stage: Stage) -> None:
    claim = stage.begin()
    with pytest.raises(NotNow):
        stage.store.edit("run", row(1, "update"))
    stage.store.commit(claim, row(1))
    stage.store.pause(claim, Pause())
    with pytest.raises(NotNow):
        stage.store.edit("run", row(1, "update"))


def test_an_edit_takes_the_run_from_a_late_owner(stage: Stage) -> None:
    late = stage.begin()
    stage.lapse()
    stage.store.edit("run", row(1, "update"))
    with pytest.raises(ClaimLost):
        stage.store.commit(late, row(1))


def test_a_run_is_not_forgotten_while_something_is_being_sent(stage: Stage) -> None:
    claim = stage.begin()
    stage.store.commit(claim, row(1), [effect()])
    stage.send(claim, effect())
    (sending,) = stage.store.effects("run", 1)
    assert (sending.status, sending.look_at) == ("sending", START + 150 * SECOND)
    with pytest.raises(EffectsPending):
        stage.store.delete("run")


def test_a_run_is_forgotten_with_its_children(stage: Stage) -> None:
    claim = stage.begin(after=ASKING)
    stage.store.adopt(claim, CHILD, row(0, "input", full=True, thread=CHILD.thread_id))
    stage.store.pause(claim, Pause(writes=[write("asked:0", 1)], interrupts=[ask("q1")]))
    stage.store.delete("run")
    for thread in ("run", CHILD.thread_id):
        with pytest.raises(UnknownThread):
            stage.store.load(thread)
    stage.store.create(RUN, row(0, "input", full=True, after=ASKING))
    loaded = stage.store.load("run")
    assert (loaded.writes, loaded.open) == ((), frozenset())
