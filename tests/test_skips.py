"""Proves that a skip fails in CI and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest_plugins = ["pytester"]

SKIPPED = """
    import pytest

    def test_of_a_browser():
        pytest.skip("no Chromium here")
"""
ALLOWED = """
    import pytest

    @pytest.mark.allowed_skip
    def test_of_another_system():
        pytest.skip("not on this system")
"""
WHOLE_FILE = """
    import pytest

    pytest.skip("no server here", allow_module_level=True)
"""
EXPECTED_FAILURE = """
    import pytest

    @pytest.mark.xfail(reason="known")
    def test_of_a_known_bug():
        raise AssertionError
"""


Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the tests in a source, inside or outside of CI."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nmarkers =\n    allowed_skip: may be skipped in CI too")

    def run_source(source: str, ci: bool) -> pytest.RunResult:
        monkeypatch.setenv("CI", "true") if ci else monkeypatch.delenv("CI", raising=False)
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess("-p", "tests.skips")

    return run_source


def test_a_skipped_test_fails_in_ci_and_tells_why(run: Run) -> None:
    result = run(SKIPPED, ci=True)
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*may not be skipped in CI (Skipped: no Chromium here)*"])


def test_a_skipped_file_fails_in_ci_and_tells_why(run: Run) -> None:
    result = run(WHOLE_FILE, ci=True)
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*may not be skipped in CI (Skipped: no server here)*"])


@pytest.mark.parametrize("source", [SKIPPED, WHOLE_FILE], ids=["test", "file"])
def test_a_skip_is_a_skip_elsewhere(run: Run, source: str) -> None:
    assert run(source, ci=False).parseoutcomes() == {"skipped": 1}


def test_a_skip_that_is_marked_as_allowed_stays_one_in_ci(run: Run) -> None:
    assert run(ALLOWED, ci=True).parseoutcomes() == {"skipped": 1}


def test_an_expected_failure_is_no_skip(run: Run) -> None:
    assert run(EXPECTED_FAILURE, ci=True).parseoutcomes() == {"xfailed": 1}
