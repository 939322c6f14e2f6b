"""Candidates: what other ways of deciding on the same people there are, and what each says of everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._audit.beside import fitted_notes
from felicific._audit.decided import decided_by, features_of, has_policy, last_step, without_policy
from felicific._people.checks import as_columns, check_proba, predict_proba
from felicific._people.people import People, one_hot
from felicific._people.roles import probabilities_of
from felicific._problem.problem import Problem
from felicific._tables.memory import distinct, exact_array
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way of deciding, and what it says of some people.

    Attributes
    ----------
    name : str
    probabilities : array of shape (n, D)
        What it decides on each by itself.
    score : array of shape (n, L), or None
        Probabilities, for which a policy is found; None for a policy that is taken as it is.
    drawn : bool
        Whether it randomizes by itself.
    """

    name: str
    probabilities: Floats
    score: Floats | None
    drawn: bool = False

    def deciding(self, people: People, rows: Codes) -> People:
        """Some of the people, with what it decides on them by itself."""
        return replace(people, probabilities=self.probabilities[rows], drawn=self.drawn)


def check_candidates(candidates: Any) -> dict[str, Any]:
    """What is compared, by name; the first is what is done at present."""
    if not isinstance(candidates, Mapping):
        raise DataError(
            f"The candidates are a {type(candidates).__name__}.",
            "Name each: {'baseline': scores, 'other': model}; the first is what is done at present.",
        )
    if not candidates:
        raise DataError("There are no candidates.", "Name at least one: {'baseline': scores}.")
    for name, value in candidates.items():
        if not isinstance(name, str) or not name:
            raise DataError(f"A candidate is called {name!r}.", "Give it a name that is text.")
        if value is None:
            raise DataError(
                f"The candidate {name!r} is None.", "Pass probabilities, a column or a fitted model."
            )
        if _decides(value) and not hasattr(last_step(value), "classes_"):
            raise DataError(
                f"The candidate {name!r}, a {type(value).__name__}, is not fitted.",
                "Fit it on other people than these.",
            )
        if _decides(value) and not hasattr(value, "predict_proba"):
            raise DataError(
                f"The candidate {name!r}, a {type(value).__name__}, has no predict_proba, by which policies decide.",
                "Calibrate it (CalibratedClassifierCV), or pass probabilities.",
            )
    return dict(candidates)


def classes_of(candidates: Mapping[str, Any], labels: Array) -> Array:
    """The classes that there are: those of the labels, and those that models know."""
    every = list(distinct(labels))
    for name, value in candidates.items():
        known = list(getattr(last_step(value), "classes_", ()))
        if known and not set(known) & set(every):
            raise DataError(
                f"The candidate {name!r} knows the classes {known[:6]}, and the labels are {every[:6]}.",
                "Pass labels as the model was trained on.",
            )
        every += [value for value in known if value not in every]
    if len(every) < 2:
        raise DataError(
            f"y holds one class only: {every}.", "Pass rows of at least two classes; one leaves no decision."
        )
    return exact_array(distinct(exact_array(every)))


def read_candidate(name: str, value: Any, people: People, problem: Problem, n: int) -> Candidate:
    """What a candidate says of these people, who are some of n rows."""
    last, classes = last_step(value), problem.decisions
    if has_policy(last):
        passed = people.group if last.sensitive_features_ is None else None
        shares = without_policy(value, people.x)[1]
        fitted_notes(*shares, last.policy_.basis.out_of_fold)
        probabilities = _aligned(decided_by(value, people.x, passed, by_proba=True), last.classes_, classes)
        return Candidate(name, probabilities, None, last.policy_.is_randomized)
    if _decides(value):
        score = check_proba(
            predict_proba(value, features_of(value, people.x), classes), len(classes), people.rows
        )
        predicted = decided_by(value, people.x, None, by_proba=False)
        return Candidate(name, one_hot(predicted, classes, people.rows), score)
    named = isinstance(value, str | Mapping) or _names(value)
    given = probabilities_of(people.x, value, classes) if named else _values(name, value)
    if not named:
        if len(given) != n:
            raise DataError(
                f"The candidate {name!r} has {len(given)} probabilities for {n} rows.",
                "Pass one for every row.",
            )
        given = given[people.rows]
    score = check_proba(as_columns(given, len(classes)), len(classes), people.rows)
    return Candidate(name, np.eye(len(classes))[score.argmax(axis=1)], score)


def _values(name: str, value: Any) -> Array:
    array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        raise DataError(
            f"The candidate {name!r} is a {type(value).__name__} that holds no probabilities.",
            "Pass probabilities, the name of their column, or a fitted model.",
        )
    return array


def _names(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(name, str) for name in value)


def _decides(value: Any) -> bool:
    return not isinstance(value, str) and hasattr(value, "predict")


def _aligned(probabilities: Floats, known: Any, classes: Array) -> Floats:
    """Probabilities with a column for every class, also for those that a policy does not know."""
    found = np.zeros((len(probabilities), len(classes)))
    found[:, [classes.tolist().index(value) for value in np.asarray(known).tolist()]] = probabilities
    return found
