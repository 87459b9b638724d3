"""The sandbox's processes: one in a folder, a bot that ends with it, a command line that stops cleanly."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.process import read_manifest, stop_on_signal
from bot.sandbox.supervisor import Supervisor
from bot.sandbox.town import Town, TownError
from tests.bot.sandbox.page_stage import ANA, HIKES

PATIENCE = 60.0  # seconds until a process on a busy machine is given up


@contextmanager
def sandbox(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """`signoff sandbox` as a process of its own."""
    command = [sys.executable, "-m", "bot", "sandbox", "--folder", str(folder), "--port", "0", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_address_is_told_once_the_bot_is_connected_and_ctrl_c_stops_both(tmp_path: Path) -> None:
    with sandbox(tmp_path) as process:
        told = re.match(r"Signoff's sandbox: (http://127\.0\.0\.1:\d+) ", first_line(process))
        assert told
        with urllib.request.urlopen(told[1]) as page:
            assert "bot-status is-running" in page.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    Town(tmp_path, read_manifest()).close()  # the folder is free again


def test_ctrl_c_before_the_bot_is_connected_stops_as_well(tmp_path: Path) -> None:
    with Town(tmp_path, read_manifest()) as town:
        town.start()
        stop = threading.Event()
        stop.set()
        assert town.connected(PATIENCE, stop) is False
    assert not town.bot.is_running


def test_a_second_start_keeps_the_conversation_and_fresh_forgets_it(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("not the sandbox's")
    with Town(tmp_path, read_manifest()) as town:
        town.slack.people.post(ANA, HIKES, "remember me")
    with Town(tmp_path, read_manifest()) as town:
        assert [one.text for one in town.slack.workspace.messages(HIKES)] == ["remember me"]
    with Town(tmp_path, read_manifest(), fresh=True) as town:
        assert town.slack.workspace.messages(HIKES) == []
    assert (tmp_path / "mine.txt").exists()


def test_two_sandboxes_cannot_share_a_folder(tmp_path: Path) -> None:
    with Town(tmp_path, read_manifest()), pytest.raises(TownError, match=r"is running from .* already"):
        Town(tmp_path, read_manifest(), fresh=True)


def test_a_port_that_is_taken_is_told_and_nothing_is_left_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TownError, match=rf"Port {port} cannot be used"):
            Town(tmp_path, read_manifest(), port)
    assert threading.active_count() == before
    Town(tmp_path, read_manifest()).close()


def test_a_bot_that_cannot_start_says_why(tmp_path: Path) -> None:
    with Town(tmp_path, read_manifest(), 0, {"SIGNOFF_MODEL_SCRIPT": "nonsense"}) as town:
        town.start()
        with pytest.raises(TownError, match="The bot did not start: There is no simulated script 'nonsense'"):
            town.connected(PATIENCE)


def test_nothing_real_is_reached_whatever_the_environment_says(tmp_path: Path) -> None:
    program = (
        "import json, sys; from bot.settings import load_settings as l; s = l(); "
        "print(json.dumps([s.model, s.trails, s.sms, s.hikes_channel]))"
    )
    real = {"SIGNOFF_SMS": "twilio", "SIGNOFF_TRAILS": "open-meteo", "SIGNOFF_HIKES_CHANNEL": "C0REAL001"}
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in real.items()))
    with Town(tmp_path / "town", read_manifest()) as town:
        environment = {**os.environ, "PYTHONPATH": os.getcwd(), **town.bot.environment}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == '["simulated", "practice", "practice", "C0HIKES01"]'


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Only Linux tells whose children are whose.")
def test_the_bot_ends_with_a_sandbox_that_is_killed(tmp_path: Path) -> None:
    with sandbox(tmp_path) as process:
        first_line(process)
        threads = Path(f"/proc/{process.pid}/task").iterdir()
        children = [pid for thread in threads for pid in (thread / "children").read_text().split()]
        process.kill()
    assert len(children) == 1
    wait_for_end(int(children[0]))


def wait_for_end(pid: int) -> None:
    """Wait for a process that is no child of ours."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], PATIENCE)[0], f"process {pid} goes on"
    finally:
        os.close(handle)


def test_a_closed_terminal_stops_it_unless_that_is_ignored() -> None:
    with stop_on_signal() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert stop.is_set()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_child_that_is_killed_leaves_no_zombie(tmp_path: Path) -> None:
    changed = threading.Semaphore(0)
    supervisor = Supervisor([sys.executable, "-c", "input()"], {}, tmp_path / "log", lambda: changed.release())
    supervisor.start()
    assert changed.acquire(timeout=PATIENCE) and supervisor.is_running
    supervisor.kill()
    assert changed.acquire(timeout=PATIENCE) and supervisor.pid is None
