"""The measurements can be taken and read by programs; how good they are is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.slow
def test_a_workload_can_be_measured_alone_and_quickly() -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", "--only", "linear", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(done.stdout)
    assert {"system", "processors", "python", "sqlite", "langgraph", "load"} <= report["machine"].keys()
    sqlite, *others = report["figures"]
    assert {figure["store"] for figure in others} <= {"sqlite", "postgresql"}
    assert (sqlite["workload"], sqlite["store"], sqlite["unit"]) == ("linear loop, 300 steps", "sqlite", "ms a step")
    assert sqlite["values"].keys() == {"ours", "langgraph", "floor", "burr"}
    assert all(value > 0 for value in sqlite["values"].values())
    assert [target["label"] for target in sqlite["targets"]] == ["x floor", "x faster"]
    assert report["met"] == all(target["met"] for figure in report["figures"] for target in figure["targets"])


@pytest.mark.slow
def test_an_unknown_workload_is_refused_with_those_there_are() -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--only", "nothing"]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("nothing", "linear", "clicks"))
