"""A process of its own: takes up a run after everything is imported, or imports; prints milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def ask_child(bytecode: Path, *given: Any) -> float:
    """Run this module with arguments and read the milliseconds it printed; what was prepared for it is on disk.

    Bytecode is kept below `bytecode`, otherwise compiling is measured where Python may not write beside its sources.
    """
    command = [sys.executable, "-m", "tests.benchmarks.child", json.dumps(given)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    os.sync()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout)


def _resume_ours(url: str, thread_id: str, interrupt_id: str, messages: int) -> float:
    from tests.benchmarks import ours

    return ours.answer(url, thread_id, interrupt_id, messages)


def _resume_theirs(where: str, messages: int) -> float:
    from tests.benchmarks import peers

    return peers.answer(where, messages)


def _import_engine() -> float:
    """What the engine adds to pydantic, where a model has been defined, which loads the rest of that."""
    from pydantic import BaseModel, JsonValue, TypeAdapter

    class Model(BaseModel):
        value: JsonValue = None

    Model(value=1)
    TypeAdapter(list[int])
    began = time.process_time()
    import graphs.engine  # noqa: F401

    return (time.process_time() - began) * 1000


def _import_langgraph() -> float:
    import pydantic  # noqa: F401

    began = time.process_time()
    import langgraph.graph  # noqa: F401

    return (time.process_time() - began) * 1000


_JOBS = {
    "resume-ours": _resume_ours,
    "resume-theirs": _resume_theirs,
    "import-engine": _import_engine,
    "import-langgraph": _import_langgraph,
}

if __name__ == "__main__":
    job, *arguments = json.loads(sys.argv[1])
    sys.stdout.write(str(_JOBS[job](*arguments)))
