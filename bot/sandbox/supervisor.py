"""The bot as a child process of the sandbox: started, watched, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GRACE = 10.0  # seconds a bot has to stop at its next checkpoint before it is killed


class Supervisor:
    """Keeps one child running. `changed` is called whenever its state changes.

    `environment` is what the child gets on top of the process's own.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, changed: Callable[[], None]):
        self._command = list(command)
        self.environment = dict(environment)
        self._log = log
        self._changed = changed
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, or None while there is none."""
        child = self._child
        return child.pid if child and child.poll() is None else None

    @property
    def is_running(self) -> bool:
        """Whether the child lives."""
        return self.pid is not None

    def start(self) -> None:
        """Start the child, unless it runs."""
        with self._lock:
            if self.is_running:
                return
            with self._log.open("ab") as log:
                self._child = subprocess.Popen(
                    self._command,
                    env={**os.environ, **self.environment},
                    stdin=subprocess.PIPE,  # closed when this process ends in any way, which the child notices
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # otherwise Ctrl-C would reach it before we stop it in order
                )
            threading.Thread(target=self._watch, args=(self._child,), name="bot-watch", daemon=True).start()
        self._changed()

    def kill(self) -> None:
        """End the child at once, as a crash would."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Let the child stop in order; one that takes too long is killed."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            child.wait()

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.send_signal(number)

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        if child.stdin is not None:
            child.stdin.close()
        self._changed()
