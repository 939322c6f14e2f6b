"""Help: what can be typed, whole words at any width, and nothing that is not typed."""

import re

import pytest
from typer.main import get_command

from felicific.cli import app

GROUP = get_command(app)
COMMANDS = {"": GROUP, **GROUP.commands}


def missing_words(text, command):
    """Words of a command's help that do not stand whole in its rendered text."""
    shown = set(re.split(r"[\s│]+", text))
    words = [word for line in (command.help or "").splitlines() for word in line.split()]
    for parameter in command.params:
        words += [*(parameter.help or "").split(), *[word for word in [parameter.metavar] if word]]
        words += parameter.opts if parameter.param_type_name == "option" else []
    return [word for word in words if word not in shown]


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_whole(name, width, done, monkeypatch):
    """No line is longer than the terminal, no word is cut, and no type stands behind a flag."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = done(f"{name} --help")
    assert max(map(len, text.splitlines())) <= width
    assert not re.search(r"<bool>|…|<str>|<int", text)
    assert missing_words(text, COMMANDS[name]) == []


def test_the_test_of_help_is_not_too_kind(done, monkeypatch):
    """On a terminal where words are cut, it finds them."""
    monkeypatch.setenv("COLUMNS", "34")
    assert missing_words(done("audit --help"), COMMANDS["audit"])


def test_everything_that_takes_a_value_says_what():
    """Every option but a flag has a word for its value, so that no name of a type of Python is shown."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            flag = getattr(parameter, "is_flag", False)
            assert flag or parameter.metavar, (name, parameter.name)


def test_what_is_missing_names_the_command(loans, command_line):
    """Where an option is needed only for a file of people, its lack is told as for any other command."""
    for line in ("fit scores.csv --out p.json", "frontier scores.csv", "audit scores.csv"):
        code, out, err = command_line(line)
        assert (code, out) == (2, "")
        assert err == f"felicific: Missing option '--group'. Try 'felicific {line.split()[0]} --help'.\n"
