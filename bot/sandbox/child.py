"""The bot as the sandbox's child: `signoff serve`, which ends with the sandbox however that ended."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE = 10.0  # seconds to stop in order once nobody is there any more


def main() -> None:
    """Serve until told to stop, or until standard input, which the sandbox holds open, is closed."""
    threading.Thread(target=_follow, name="follow-sandbox", daemon=True).start()
    sys.argv = ["signoff", "serve"]
    runpy.run_module("bot", run_name="__main__")


def _follow() -> None:
    # Not through `sys.stdin`: its lock, held by a waiting thread, would make the end of the process fail.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
