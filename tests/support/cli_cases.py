"""Run the command line in process: what a command prints, and its exit code."""

import sys
import warnings

import pytest

pytest.importorskip("typer", reason="typer is not installed")
pytest.importorskip("rich", reason="rich is not installed")

from typer.testing import CliRunner

from dropdtw import cli
from dropdtw.cli.app import app


def run(*arguments, **options):
    """Run a command in process; it must succeed."""
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False, **options)
    assert done.exit_code == 0, done.output
    return done


def call(monkeypatch, capsys, *arguments):
    """Run `dropdtw …` as a program; returns its exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["dropdtw", *map(str, arguments)])
    with warnings.catch_warnings(), pytest.raises(SystemExit) as left:
        cli.main()
    said = capsys.readouterr()
    return left.value.code, said.out, said.err
