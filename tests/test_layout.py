"""Holds the code to the house style where no linter does: sizes, names, docstrings, no mocks, no registry's address."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("bot", "graphs", "storage")
LONGEST_FILE = 400
LONGEST_FUNCTION = 40
MEDIAN_FUNCTION = 8
SAYS_NOTHING = {"common", "helpers", "manager", "misc", "service", "utils"}
MOCKS = "unittest" + ".mock"
REGISTRIES = (
    ("pypi", "org"),
    ("python" + "hosted", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("crates", "io"),
    ("deb", "debian", "org"),
    ("proxy", "golang", "org"),
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_generated(path: Path) -> bool:
    """A migration is a record of what was done to a schema: its length is the schema's."""
    return "migrations/versions" in path.as_posix()


def tracked() -> list[Path]:
    """Every file that is or would be committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def body_length(function: Function) -> int:
    """Lines of the body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of all that is imported, each also by the name of what it was taken from."""
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def lengths() -> dict[str, int]:
    """Length of every function, by its place."""
    return {
        f"{named(path)}:{function.lineno} {function.name}": body_length(function)
        for path in modules(*PACKAGES)
        if not is_generated(path)
        for function in functions(ast.parse(path.read_text("utf-8")))
    }


def test_no_function_is_longer_than_a_screen() -> None:
    assert {place: length for place, length in lengths().items() if length > LONGEST_FUNCTION} == {}


def test_most_functions_are_a_few_lines() -> None:
    assert median([0, *lengths().values()]) <= MEDIAN_FUNCTION


def test_no_file_is_too_long_to_read() -> None:
    sizes = {named(path): len(path.read_text("utf-8").splitlines()) for path in modules(*PACKAGES)}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_every_module_is_named_for_what_it_does() -> None:
    names = {path: {part.removesuffix(".py") for part in path.relative_to(ROOT).parts} for path in modules(*PACKAGES)}
    assert [named(path) for path, parts in names.items() if parts & SAYS_NOTHING] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [p for p in modules(*PACKAGES, "tests") if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]
    assert [named(path) for path in silent] == []


def test_every_folder_of_code_is_a_package() -> None:
    """Otherwise the import contracts pass over it in silence."""
    folders = {path.parent for path in modules(*PACKAGES) if "migrations" not in path.parts}
    assert [named(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_no_test_mocks() -> None:
    mocking = [p for p in modules("tests") if MOCKS in imported(ast.parse(p.read_text("utf-8")))]
    assert [named(path) for path in mocking] == []


def test_no_file_names_a_package_registry() -> None:
    hosts = [".".join(pieces).encode() for pieces in REGISTRIES]
    contents = {named(path): path.read_bytes() for path in tracked()}
    assert [(name, host) for name, content in contents.items() for host in hosts if host in content] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_holds_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert "--hash=sha256:" in text
    assert [line for line in text.splitlines() if "://" in line or "index-url" in line or " @ " in line] == []


def test_both_locks_hold_the_same_versions() -> None:
    run, dev = (
        {line.split()[0] for line in (ROOT / name).read_text("utf-8").splitlines() if "==" in line}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert run - dev == set()


def test_a_body_is_counted_without_its_docstring() -> None:
    (function,) = functions(ast.parse('def f():\n    """Say.\n\n    More.\n    """\n    a = 1\n\n    return a\n'))
    assert body_length(function) == len(["a = 1", "", "return a"])


@pytest.mark.parametrize("source", [f"import {MOCKS}", "from unittest import mock", f"from {MOCKS} import Mock"])
def test_a_mock_is_found_however_it_is_imported(source: str) -> None:
    assert MOCKS in imported(ast.parse(source))
