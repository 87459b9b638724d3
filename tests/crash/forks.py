"""A process that has imported everything and forks a child for each run, so that a run starts in a few milliseconds."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.crash.stage import HANGS_AFTER

PROGRAMS = ("victim", "engine_victim", "racers")

Order = Mapping[str, Any]
Way = Literal["together", "relay", "here"]
"""`relay`: the first runs until it stops itself, the others run to their ends, then the first goes on. `here`: in the
server itself, which then has everything ready that the first run of a process makes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: what it said, or the signal that ended it, or neither if it raised (its log says what)."""

    said: Any
    signal: int  # 0 for none
    log: str
    stopped: bool = False


class Forks:
    """The client of one server; threads may share it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.warm: set[str] = set()
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.crash.forks", str(log)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, program: str, order: Order) -> Ended:
        """One child: `program` names the module of this package whose `run(order, meet)` it calls."""
        return self.group(program, [order])[0]

    def group(self, program: str, orders: Sequence[Order], way: Way = "together") -> list[Ended]:
        """A child for each order, side by side."""
        assert self._server.stdin is not None and self._server.stdout is not None
        with self._lock:
            line = json.dumps({"program": program, "orders": list(orders), "way": way})
            with suppress(BrokenPipeError):
                self._server.stdin.write(line.encode() + b"\n")
                self._server.stdin.flush()
            answer = self._server.stdout.readline()
        assert answer, f"the fork server has ended:\n{self._log.read_text()[-6000:]}"
        return [Ended(each["said"], each["signal"], str(self._log), each["stopped"]) for each in json.loads(answer)]

    def warm_up(self, program: str, order: Order) -> None:
        """Run an order in the server, so that its children need not make what every process makes once."""
        self.group(program, [order], "here")

    def close(self) -> None:
        """End the server."""
        self._server.communicate()


def serve(log: Path) -> None:
    """Fork children for the orders on standard input, one group a line, until it closes."""
    for name in PROGRAMS:
        importlib.import_module(f"tests.crash.{name}")
    answers = os.dup(1)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        gc.freeze()
        os.write(answers, json.dumps(_run_group(asked)).encode() + b"\n")


def _run_group(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    orders, program = asked["orders"], asked["program"]
    if asked["way"] == "here":
        said = importlib.import_module(f"tests.crash.{program}").run(orders[0], None)
        assert threading.active_count() == 1, "a thread is left, which no child would have"
        return [{"said": said, "signal": 0, "stopped": False}]
    if asked["way"] == "relay":
        first = Child(program, orders[0])
        first.stopped = first.wait(os.WUNTRACED)
        others = [Child(program, order) for order in orders[1:]]
        ended = [other.end() for other in others]
        os.kill(first.pid, signal.SIGCONT) if first.stopped else None
        return [first.end(), *ended]
    meet = Meeting(len(orders))
    children = [Child(program, order, meet) for order in orders]
    return [child.end() for child in children]


class Meeting:
    """Where the children of a group wait for each other; made before they are forked."""

    def __init__(self, size: int) -> None:
        import multiprocessing

        self._barrier = multiprocessing.get_context("fork").Barrier(size)

    def __call__(self) -> None:
        """Go on when everybody is here. Raises `BrokenBarrierError` if somebody will never come."""
        self._barrier.wait(HANGS_AFTER)

    def break_off(self) -> None:
        """Let nobody wait any more."""
        self._barrier.abort()


class Child:
    """A forked process; what it says arrives through a pipe."""

    def __init__(self, program: str, order: Order, meet: Meeting | None = None) -> None:
        self._out, inlet = os.pipe()
        self.stopped = False
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._out)
            _live(program, order, meet, inlet)
        os.close(inlet)

    def wait(self, options: int = 0) -> bool:
        """Wait until it stops (True) or ends (False)."""
        _pid, status = os.waitpid(self.pid, options)
        if os.WIFSTOPPED(status):
            return True
        self._status = status
        return False

    def end(self) -> dict[str, Any]:
        """What it said and how it ended."""
        with os.fdopen(self._out, "rb") as pipe:
            said = pipe.read()
        if self._status is None:
            self.wait()
        status = self._status or 0
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return {"said": json.loads(said) if said else None, "signal": ended, "stopped": self.stopped}


def _live(program: str, order: Order, meet: Meeting | None, inlet: int) -> None:
    """The whole life of a child."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS_AFTER)
        said = importlib.import_module(f"tests.crash.{program}").run(order, meet)
        with os.fdopen(inlet, "wb") as pipe:
            pipe.write(json.dumps(said).encode())
        os._exit(0)
    except BaseException:
        if meet is not None:
            meet.break_off()
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
