"""Log lines go to standard error, whoever runs a command and however."""

from __future__ import annotations

import subprocess
import sys

import pytest
import structlog
import typer
from typer.testing import CliRunner

from bot.options import settings_for

LOGS = """
import structlog
from bot.options import settings_for

settings_for("sqlite:///unused.db")
structlog.get_logger().info("a line", thread_id="hike-1")
print('{"printed": true}')
"""


def test_they_never_mix_with_what_a_command_prints() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], check=True, capture_output=True, text=True)
    assert done.stdout == '{"printed": true}\n'
    assert "a line" in done.stderr
    assert "hike-1" in done.stderr


def test_a_command_run_in_process_leaves_them_where_they_belong(capsys: pytest.CaptureFixture[str]) -> None:
    app, before = typer.Typer(), structlog.get_config()

    @app.command()
    def command() -> None:
        settings_for("sqlite:///unused.db")
        structlog.get_logger().info("within")
        typer.echo("printed")

    try:
        result = CliRunner().invoke(app)
        assert (result.stdout, "within" in result.stderr) == ("printed\n", True)
        structlog.get_logger().info("afterwards")  # the command's own standard error is closed by now
        assert "afterwards" in capsys.readouterr().err
    finally:
        structlog.configure(**before)
