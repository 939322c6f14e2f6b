"""Small things that several test files need."""

import re
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import typer

from felicific import FairClassifier, Individual, Score
from felicific._audit import methods
from felicific.cli import app


@contextmanager
def by(method):
    """Intervals by one method, where audits choose: what is exact in memory and on engines differs otherwise."""
    own = methods._best

    def of_loss(*about):
        best = own(*about)
        return best if best == "exact" or (method == "bernstein" and best == "t") else method

    chosen = mock.patch.object(methods, "_choose", return_value=method)
    with chosen, mock.patch.object(methods, "_best", of_loss):
        yield


def name_of(value):
    """A value as the name of a test, without addresses: every process must find the same names."""
    return re.sub(r"<(function|bound method) ([\w.<>]+) at 0x\w+>", r"\2", str(value))[:80]


def as_if_changed(sums):
    """Aggregates of happiness that decisions change for somebody, whatever these people say: idle ones are refused."""
    return replace(sums, changed=(True,) * len(sums.measures))


def python_words(text):
    """What nobody can type on the command line: arguments of Python, such as ``gap=``, and its requirements.

    An option may take NAME=VALUE itself, and what stands in quotes was named by the user.
    """
    typed = re.sub(r"--[\w-]+ ('[^']*'|\S+)|(?<![\w=])'[^']*'|(?<![\w=])\"[^\"]*\"", "", text)
    return re.findall(
        r"\b[a-z_]+=(?!=)|\b(?:Gap|Ratio|Floor|Budget|WorseOff|Exploration|Score)\(|\bfair\.", typed
    )


def foreign_options(text, options):
    """Options in a message of a command that are not its own; ``felicific other --option`` is another command's."""
    commands = typer.main.get_command(app).commands
    found = []
    for word in re.findall(r"felicific [a-z-]+|--[a-z][\w-]*", text):
        if word.startswith("felicific ") and word[10:] in commands:
            options = {option for parameter in commands[word[10:]].params for option in parameter.opts}
        elif word.startswith("--") and word not in options:
            found.append(word)
    return found


def at(n, row, value, fill, dtype=None):
    """A vector that is ``fill`` everywhere but in one row."""
    values = [fill] * n if not isinstance(fill, list | np.ndarray) else list(fill)
    values[row] = value
    return np.array(values, dtype=dtype)


def policy_of(policy="auto", *, randomize=True, group_proba=None):
    """What a policy sees, with what else can be said of it; "auto" is the score, or all of x that infers the group."""
    if randomize and group_proba is None:
        return policy
    kinds = {
        "score": Score(),
        "individual": Individual(),
        "auto": Score() if group_proba is None else Individual(),
    }
    about = {} if group_proba is None else {"group_proba": group_proba}
    return replace(kinds[policy] if isinstance(policy, str) else policy, randomize=randomize, **about)


def drawn_or_not(kinds):
    """Kinds of policy, each with a lottery and rounded; labels are always drawn."""
    return [(kind, drawn) for kind in kinds for drawn in (True, False) if drawn or "label" not in str(kind)]


def fair_classifier(model, *, policy="auto", randomize=True, group_proba=None, **settings):
    """A FairClassifier, of whose policy more is said."""
    return FairClassifier(
        model, policy=policy_of(policy, randomize=randomize, group_proba=group_proba), **settings
    )
