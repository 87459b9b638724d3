"""In CI a skip is a failure: there everything a test can want is installed, so a skip hides what is not proved."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def is_refused(report: pytest.TestReport | pytest.CollectReport, allowed: bool) -> bool:
    """Tell whether this report skips what CI must run; an expected failure is no skip."""
    return os.environ.get("CI") == "true" and report.skipped and not allowed and not hasattr(report, "wasxfail")


def refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn the skip into a failure that keeps the reason."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} may not be skipped in CI ({reason}). Install it in .ci/run."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Refuse the skip of a test, unless it is marked `allowed_skip`."""
    report = yield
    if is_refused(report, allowed=item.get_closest_marker("allowed_skip") is not None):
        refuse(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse the skip of a whole file: it could never be told from one that was forgotten."""
    report = yield
    if is_refused(report, allowed=False):
        refuse(report)
    return report
