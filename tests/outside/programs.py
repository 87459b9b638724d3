"""Runs a program of one of those packages under Node.js, until it is told to stop."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.outside.npm import node

PATIENCE = 30.0  # seconds until a program that does not answer has failed


def free_port() -> int:
    """A port that nothing listens on; for programs that cannot choose one by themselves."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    script: Path, *arguments: str, port: int, log: Path, more: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a script that serves HTTP on `port`; its address. What it prints goes to `log`."""
    environment = {**os.environ, "NO_UPDATE_NOTIFIER": "1", **(more or {})}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [node(), script, *arguments], stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=log.parent
        )
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Another process's socket cannot be awaited, only tried."""
    end, pause = time.monotonic() + PATIENCE, threading.Event()
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{log.stem} did not start: {log.read_text('utf-8')}") from None
            pause.wait(0.02)
