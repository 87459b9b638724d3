"""The command line, each command in a process of its own: everything that Slack does, without Slack or beside it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bot
from bot.__main__ import app
from bot.sandbox.server import BOT_TOKEN
from tests.bot.scene import ANA, BEN, CLEO, HIKES, Scene, has_button

REQUEST = "a dry morning hike on Saturday"
TEXT = "Hike Saturday: Heron Flats at 8:00. Bring water and a rain jacket."


@dataclass
class Shell:
    """A folder to type commands in."""

    folder: Path
    settings: dict[str, str] = field(default_factory=lambda: {"SIGNOFF_MODEL_SCRIPT": "straight"})

    def __call__(self, *typed: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for its end."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNOFF_", "SLACK_"))}
        environment = {**kept, "PYTHONPATH": str(Path(bot.__file__).parent.parent), **self.settings, **settings}
        command = [sys.executable, "-m", "bot", *typed]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def told(self, *typed: str, code: int = 0) -> Any:
        """What a command prints as JSON."""
        done = self(*typed, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def refused(self, *typed: str, **settings: str) -> str:
        """The sentence with which a command is refused; there is nothing else on standard error, and no traceback."""
        done = self(*typed, **settings)
        assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
        assert done.stderr.startswith("signoff: "), done.stderr
        assert "Traceback" not in done.stderr
        return " ".join(done.stderr.removeprefix("signoff: ").split())

    def waiting(self) -> tuple[str, str]:
        """A run that waits for a decision: its thread id and the approval's."""
        started = self.told("start", "plan-hike", REQUEST, "--as", ANA, "--wait")
        assert started["status"] == "waiting"
        shown = self.told("show", started["thread_id"])
        return started["thread_id"], shown["approvals"][0]["id"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str, str]:
    """A folder with a run that waits, which no test decides about."""
    shell = Shell(tmp_path_factory.mktemp("paused"))
    return (shell, *shell.waiting())


@pytest.mark.slow
def test_a_run_goes_from_start_to_text_with_nothing_configured(shell: Shell) -> None:
    thread_id, approval = shell.waiting()
    edited = shell.told("decide", approval, "edit", "--as", BEN, "--set", f"text={TEXT}", "--version", "1")
    assert (edited["result"], edited["status"], edited["version"]) == ("settled", "approved", 2)
    assert edited["run"] == {"thread_id": thread_id, "status": "finished"}

    sent = shell.told("practice", "outbox")
    assert [(entry["kind"], entry["body"]) for entry in sent] == [("sms", TEXT), ("post", TEXT)]
    traced = shell.told("trace", thread_id)
    assert traced["status"] == "finished"
    assert [step["node"] for step in traced["steps"]][:2] == ["input", "prepare"]
    assert traced["calls"] > 3
    listed = shell.told("runs")
    assert [(run["thread_id"], run["status"], run["who"]) for run in listed] == [(thread_id, "finished", ANA)]
    again = shell.told("decide", approval, "approve", "--as", CLEO, code=1)
    assert (again["result"], again["refusal"]) == ("refused", "not_pending")
    assert f"<@{BEN}>" in again["sentence"]


@pytest.mark.slow
def test_a_decline_ends_the_run_with_its_reason(shell: Shell) -> None:
    thread_id, approval = shell.waiting()
    declined = shell.told("decide", approval, "decline", "--as", BEN, "--reason", "too far")
    assert declined["run"] == {"thread_id": thread_id, "status": "declined"}
    assert shell.told("practice", "outbox") == []


@pytest.mark.slow
def test_a_question_is_answered_and_the_run_goes_on(shell: Shell) -> None:
    shell.settings["SIGNOFF_MODEL_SCRIPT"] = "needs_user"
    thread_id, question = shell.waiting()
    choice = shell.told("show", thread_id)["approvals"][0]["choices"][0]["value"]
    assert shell.refused("answer", question, "a thousand miles", "--as", ANA)
    answered = shell.told("answer", question, choice, "--as", ANA)
    assert answered["run"] == {"thread_id": thread_id, "status": "waiting"}
    kinds = [asked["kind"] for asked in shell.told("show", thread_id)["approvals"]]
    assert kinds == ["question", "review"]


@pytest.mark.slow
def test_a_run_held_before_a_node_goes_on_when_it_is_resumed(shell: Shell) -> None:
    started = shell.told("start", "plan-hike", REQUEST, "--as", ANA, "--wait", "--pause-before", "evaluate")
    assert [step["node"] for step in shell.told("trace", started["thread_id"])["steps"]][-1] == "worker"
    resumed = shell.told("resume", started["thread_id"])
    assert resumed["status"] == "waiting"
    assert resumed["approvals"][-1]["kind"] == "review"


@pytest.mark.slow
def test_what_people_may_not_do_is_one_sentence_and_exit_code_1(paused: tuple[Shell, str, str]) -> None:
    shell, thread_id, approval = paused
    stale = shell.refused("decide", approval, "approve", "--as", BEN, "--version", "7")
    assert "newer draft, version 1" in stale
    stranger = shell.refused("decide", approval, "approve", "--as", "U0NOBODY9")
    assert "There is no 'U0NOBODY9' here" in stranger
    assert "no-such-flow" in shell.refused("start", "no-such-flow", REQUEST, "--as", ANA)
    shown = shell.told("show", thread_id)
    assert [(asked["status"], asked["version"]) for asked in shown["approvals"]] == [("pending", 1)]
    assert shell.told("practice", "outbox") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("approve", "--as", ANA), "somebody else has to approve it"),
        (("maybe", "--as", BEN), "is no verdict"),
        (("edit", "--as", BEN, "--set", "text"), "FIELD=VALUE"),
        (("edit", "--as", BEN, "--set", f"text={'x' * 300}"), "300"),
        (("changes", "--as", BEN), "Say what should change"),
        (("undo", "--as", BEN), "nothing to take back"),
    ],
)
def test_a_decision_that_does_not_count_changes_nothing(
    paused: tuple[Shell, str, str], typed: tuple[str, ...], sentence: str
) -> None:
    shell, thread_id, approval = paused
    url = f"sqlite:///{shell.folder / 'signoff.db'}"
    refused = CliRunner().invoke(app, ["decide", approval, *typed, "--database", url])
    assert refused.exit_code == 1
    assert sentence in " ".join(refused.output.split())
    shown = json.loads(CliRunner().invoke(app, ["show", thread_id, "--json", "--database", url]).stdout)
    assert [(asked["status"], asked["version"]) for asked in shown["approvals"]] == [("pending", 1)]


@pytest.mark.slow
def test_what_is_wrong_with_the_surroundings_is_said_with_what_to_do(paused: tuple[Shell, str, str]) -> None:
    shell, thread_id, _ = paused
    other = Shell(shell.folder.parent / "misspelt")
    other.folder.mkdir(exist_ok=True)
    (other.folder / "signoff.toml").write_text('databse_url = "sqlite:///x.db"\n')
    assert "Did you mean 'database_url'?" in other.refused("runs")
    assert "SIGNOFF_SWEEP_SECONDS" in shell.refused("runs", SIGNOFF_SWEEP_SECONDS="often")
    assert "SLACK_BOT_TOKEN" in shell.refused("serve")
    assert shell.refused("runs", "--database", f"sqlite:///{shell.folder / 'signoff.db' / 'inside.db'}")

    with closing(sqlite3.connect(shell.folder / "signoff.db")) as database:
        (before,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        database.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        database.commit()
        try:
            assert "install the newer version" in shell.refused("show", thread_id)
        finally:
            database.execute("UPDATE alembic_version SET version_num = ?", (before,))
            database.commit()


@pytest.mark.slow
def test_beside_a_running_bot_a_decision_typed_shows_on_its_card(new_scene: Callable[..., Scene]) -> None:
    scene = new_scene()
    scene.ask()
    card = scene.card()
    shell = Shell(
        scene.folder,
        {
            "SIGNOFF_DATABASE_URL": scene.database_url,
            "SIGNOFF_PRACTICE_FILE": str(scene.folder / "practice.db"),
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": "not needed here",
            "SLACK_API_URL": scene.slack.api_url,
        },
    )
    decided = shell.told("decide", scene.approval().id, "approve", "--as", CLEO)
    assert decided["result"] == "settled"
    scene.ended("finished")
    settled = scene.said("*Approved* by <@U0CLEO003>")
    assert (settled.ts, settled.channel, has_button(settled.blocks, "Approve")) == (card.ts, HIKES, False)
    assert len(scene.outbox()) == 1
