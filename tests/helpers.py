"""Small things that several test files need."""

import inspect
import re
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import typer
from scipy import stats

from felicific import FairClassifier, Individual, Score, aggregate, frontier, solve
from felicific._audit import methods
from felicific._fit.fit import FittedIndividual
from felicific._frontier.breakpoints import Closing
from felicific._frontier.individual import individual_frontier
from felicific._people.lazy import labelled_people
from felicific._people.roles import Roles
from felicific._policy.fit_individual import ground_of
from felicific._policy.lottery import make_salt
from felicific._problem.decisions import predicts_amounts
from felicific._problem.missing_labels import resolve_missing_labels
from felicific._problem.problem import problem_of
from felicific._program.aggregates import Aggregates
from felicific._program.numeric import AmountAggregates
from felicific._program.signal_names import resolve_policy
from felicific._program.sums import aggregate_roles
from felicific._tables.engine import find_engine
from felicific.cli import app


@contextmanager
def by(method):
    """Intervals by one method, where audits choose: the loss has its own where it is exact."""
    own = methods._best

    def of_loss(*about):
        best = own(*about)
        return best if best == "exact" else method

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
        model,
        policy=policy_of(policy, randomize=randomize, group_proba=group_proba),
        **{"gap": None if settings.get("constraints") else 0.0} | settings,
    )


def solved(table, **settings):
    """The policy of least loss for a table: of its aggregates, or an individual one of the people themselves."""
    settings = {"gap": None if settings.get("constraints") else 0.0} | settings
    if is_individual(table, settings):
        return fitted_individual(table, **settings).policy
    of_sums = {name: settings.pop(name) for name in set(settings) & settings_of(solve)}
    return solve(summed(table, of_sums, settings), **of_sums)


def traced(table, **settings):
    """The frontier of a table, as :func:`solved`."""
    if is_individual(table, settings):
        closed, move = settings.pop("gap", None), settings.pop("move", None)
        fitted = fitted_individual(table, **settings, gap={})
        problem, policy = fitted.problem, fitted.policy
        closing = Closing.of(closed, settings.get("constraints", ()), problem.measures, move)
        ground = partial(ground_of, problem, fitted.people, policy.calibration, policy.origin)
        return individual_frontier(problem, partial(ground, change_cost=policy.change_cost), policy, closing)
    of_sums = {name: settings.pop(name) for name in set(settings) & settings_of(frontier)}
    return frontier(summed(table, of_sums, settings), **of_sums)


def settings_of(function):
    """The names of what may be asked of aggregates."""
    return set(inspect.signature(function).parameters) - {"aggregates"}


def summed(table, asked, settings):
    """The aggregates of a table, with what the constraints speak of."""
    if isinstance(table, Aggregates | AmountAggregates):
        assert not settings, "aggregates were summed up already"
        return table
    every = {name: one.default for name, one in inspect.signature(aggregate).parameters.items()}
    del every["table"]
    if predicts_amounts(
        *((every | settings)[name] for name in ("score", "predicted", "loss", "decisions", "policy"))
    ):
        return aggregate(table, **settings)
    every |= settings
    roles = Roles(
        *(every[name] for name in ("sensitive_features", "y", "score", "predicted", "baseline")),
        weight=every["sample_weight"],
        key=every["key"],
        weight_kind=every["weight_kind"],
        missing_labels=resolve_missing_labels(every["missing_labels"]),
        listed=every["decisions"] is not None,
    )
    problem = {name: every[name] for name in ("decisions", "happiness", "loss")} | {
        "constraints": asked.get("constraints", ())
    }
    of_classes = partial(problem_of, **problem)
    return aggregate_roles(table, roles, of_classes, every["policy"], every["classes"], every["groups"])


def is_individual(table, settings):
    """Whether an individual policy of people in memory is asked for; elsewhere ``aggregate`` refuses it."""
    asked = [settings.get(name) for name in ("score", "predicted", "loss", "decisions", "policy")]
    named = isinstance(asked[-1], Individual) or asked[-1] == "individual"
    return named and find_engine(table) is None and not predicts_amounts(*asked)


def fitted_individual(
    table, *, policy, gap=None, constraints=(), change_cost=0.0, sees_group=True, random_state=None, happiness,
    sensitive_features, score, y=None, loss="error", classes=None, decisions=None,
    baseline=None, predicted=None, sample_weight=None, missing_labels=None, group_proba=None,
):  # fmt: skip
    """An individual policy, fitted to people in memory without a model of theirs."""
    constraints = tuple(constraints)
    columns = Roles(
        sensitive_features, y, score, predicted, baseline, weight=sample_weight,
        group_proba=group_proba, missing_labels=resolve_missing_labels(missing_labels), listed=decisions is not None,
    )  # fmt: skip
    asked = partial(
        problem_of, decisions=decisions, happiness=happiness, loss=loss,
        gap=gap, constraints=constraints, sees_group=sees_group,
    )  # fmt: skip
    with labelled_people(table, columns, asked, classes) as (people, problem):
        return FittedIndividual.fit(
            problem, people, resolve_policy(policy), salt=make_salt(random_state), randomize=True,
            change_cost=change_cost,
        )  # fmt: skip


def halls(mean, error, cube, df, tail):
    """Hall's limits, the wider of them and Student's on each side; ``cube`` is the third moment of the mean."""
    g, t = cube / error**3, stats.t.ppf(1.0 - tail, df)
    down, up = (3.0 / g * (np.cbrt(1.0 + g * (side - g / 6.0)) - 1.0) for side in (t, -t))
    return mean - error * max(t, down), mean + error * max(t, -up)
