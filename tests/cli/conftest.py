"""What several tests of commands need: a folder of files as an analyst has them, and a command line."""

import shlex
import sys

import pytest
from helpers import foreign_options, python_words
from shell_people import make_loans

from felicific.cli import run
from felicific.exceptions import FelicificError


@pytest.fixture(autouse=True)
def _options_exist(monkeypatch):
    """Every error that a test provokes names options that its command has."""
    cli = sys.modules["felicific.cli"]
    ending = cli.ending

    def checked(error, options):
        code, message = ending(error, options)
        if isinstance(error, FelicificError):
            assert not foreign_options(message, options), message
        return code, message

    monkeypatch.setattr(cli, "ending", checked)


@pytest.fixture
def loans(tmp_path, monkeypatch):
    """A folder with ``scores.csv``, and ``next.csv`` of people without labels."""
    monkeypatch.chdir(tmp_path)
    made = make_loans(600, 0)
    made.to_csv("scores.csv", index=False)
    make_loans(500, 1).drop(columns=["approved", "repaid"]).to_csv("next.csv", index=False)
    return made


@pytest.fixture
def command_line(capsys):
    """Run a command line; return exit code, output and messages, of which an error is one line."""

    def call(line, *more):
        code = run([*shlex.split(line), *more])
        found = capsys.readouterr()
        assert not python_words(found.err), found.err
        if code:
            assert len(found.err.strip().splitlines()) <= 1, found.err
        return code, found.out, found.err

    return call


@pytest.fixture
def done(command_line):
    """Run a command line that works; return what it prints."""

    def call(line, *more):
        code, out, err = command_line(line, *more)
        assert code == 0, err
        return out

    return call
