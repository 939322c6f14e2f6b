"""What is audited: the decisions of a classifier or of any system, and the classes they are of."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured, groups_compared
from felicific._audit.missing import Scored
from felicific._people.checks import check_length, check_proba, predict_proba
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.apply import refuse_several, with_remembered
from felicific._policy.policy import Policy
from felicific._problem.change import baseline_words, every_group_loses, nothing_to_repair
from felicific._problem.criteria import CRITERIA
from felicific._problem.decisions import as_decisions as listed_decisions
from felicific._problem.decisions import label_positions
from felicific._problem.happiness import measured
from felicific._problem.problem import Problem
from felicific._tables.engine import find_engine
from felicific._tables.memory import (
    as_objects,
    as_vector,
    column_names,
    distinct,
    exact_array,
    null_rows,
    select_columns,
)
from felicific._typing import Array, Floats, Table
from felicific.exceptions import DataError, FittedRowsWarning, HappinessError

if TYPE_CHECKING:
    from felicific._audit.audit import Asked


def as_decisions(decisions: Any, rows: int | None) -> Array:
    """One decision per person, or the probability of each decision, as an array."""
    array = decisions.to_numpy() if hasattr(decisions, "to_numpy") else np.asarray(decisions)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise DataError(
            f"The decisions have shape {array.shape}.",
            "Pass one decision per person, or probabilities of shape (n, classes).",
        )
    if not len(array):
        raise DataError("There are no decisions.", "Pass at least one row of every group.")
    check_length(array, len(array) if rows is None else rows, "decisions")
    return as_vector(decisions, "decisions") if array.ndim == 1 else array


def checked_columns(policy: Policy | None, columns: Roles, X: Table, asked: Asked) -> Roles:
    """With what a policy remembers; it needs what it decides by, and nothing else does."""
    if policy is None:
        if columns.score is not None or columns.predicted is not None:
            raise DataError("score= and predicted= are what a Policy decides by.", "Pass a Policy first.")
        return columns
    columns = _with_columns(policy, columns, X)
    if asked.happiness is None:
        asked.happiness = happiness_of(policy)
    if columns.score is None and (policy.needs_proba or columns.predicted is None):
        raise DataError(
            f"The policy decides by {policy.applied_to}.", "Name their columns in score= (or predicted=)."
        )
    if policy.of_values:
        refuse_several(columns.score)
    return columns


def _with_columns(policy: Policy, named: Roles, X: Table) -> Roles:
    """With the columns that a policy remembers, where nobody names others.

    Those that it can do without are taken where the table has them.
    """
    columns, own = with_remembered(policy, named), policy.roles
    if policy.infers_group and columns.group_proba is None:
        raise DataError(
            "This policy infers the group from x, and does not know which columns say how likely each group is.",
            "Audit the FairClassifier itself, or fit with Individual(group_proba={group: column}).",
        )
    engine = find_engine(X)
    there = own.remembered([] if X is None else column_names(X) if engine is None else engine.names)
    roles = {"y": there.y, "baseline": there.baseline}
    roles |= {"predicted": there.predicted} if policy.needs_proba else {}
    if named.group is None and own.group is not None:
        columns = replace(columns, group=own.group, columns_only=True)
    return replace(columns, **{role: name for role, name in roles.items() if getattr(columns, role) is None})


def happiness_of(policy: Policy) -> list[Any]:
    """What makes a person happy, as far as a policy knows it: its functions, if it is individual, or its criteria."""
    own = [policy.measures[j] for j in measured(policy.measures)]
    if getattr(policy, "happiness", ()):
        names = {measure.name for measure in own}
        return [part for part in policy.happiness if part.name in names]  # type: ignore[attr-defined]  # it has
    families = dict.fromkeys(measure.family for measure in own)
    if not all(family in CRITERIA for family in families):
        raise HappinessError(
            "The policy does not keep what makes a person happy.", "Say it again: happiness=, as for the fit."
        )
    return list(families)


def in_order(array: Array, decisions: Any, known: Array) -> Array:
    """Probabilities with a column for every decision as it is listed, in the order of the known ones."""
    if array.ndim != 2 or decisions is None:
        return array
    listed = listed_decisions(decisions)
    if array.shape[1] != len(listed):
        raise DataError(
            f"The probabilities have {array.shape[1]} columns, and {len(listed)} decisions are listed.",
            "Pass a column for every decision, in the order of decisions=.",
        )
    return np.asarray(array[:, label_positions(known, listed)])


def find_classes(array: Array, y: Array | None, classes: Any = None, decisions: Any = None) -> Array:
    """The classes there are: as they are named, else those that are or may be decided, and the labels."""
    if classes is not None:
        known = list(classes)
    elif decisions is not None:  # labels that may not all be decided are the classes
        options, labels = listed_decisions(decisions), [] if y is None else distinct(y)
        known = labels if {*labels} - {*options.tolist()} else distinct(options)
    elif array.ndim == 2:
        known = distinct(y) if y is not None else []
        if len(known) != array.shape[1]:
            raise DataError(
                f"The decisions are probabilities of {array.shape[1]} classes, and nobody said which.",
                "List them in the order of the columns: decisions=[...], from the worst to the best for the person.",
            )
    else:
        held = np.delete(array, null_rows(array))  # missing ones are refused by row later
        held = as_objects(held.tolist()) if held.dtype.kind == "O" else held
        if y is not None and y.dtype.kind == "O":
            y = exact_array(np.delete(y, null_rows(y)).tolist())
        if held.dtype.kind == "f" and bool((held != np.rint(held)).any()):
            raise DataError(
                "The decisions are fractions.",
                "Probabilities of decisions have one column per class. Amounts can be audited, with "
                "decisions=(low, high), and not monitored.",
            )
        if y is not None and (held.dtype.kind in "OU") != (y.dtype.kind in "OU"):
            raise DataError(
                f"The decisions are {held.dtype} and the labels {y.dtype}.",
                "Use the same values for both, or list what may be decided: decisions=[...].",
            )
        several = [held] if y is None else [held, y]
        known = distinct(exact_array([value for values in several for value in distinct(values)]))
    if len(known) < 2 or len(set(known)) < len(known):
        raise DataError(
            f"The decisions are {known}.", "List all that may be decided, at least two: decisions=[...]."
        )
    made = exact_array(known)
    return made if made.dtype.kind != "U" or array.dtype.kind != "O" else made.astype(object)


def last_step(estimator: Any) -> Any:
    """The classifier itself, where it is the last step of a pipeline."""
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def has_policy(estimator: Any) -> bool:
    """Whether this is a fitted FairClassifier, alone or at the end of a pipeline."""
    return hasattr(last_step(estimator), "policy_")


def decides_amounts(estimator: Any) -> bool:
    """Whether this is a fitted FairRegressor, alone or at the end of a pipeline: it tells the amounts that it decides.

    It has what a FairClassifier has (``happiness``, ``loss``, ``gap``, ``sensitive_features_`` ...), and in place of a
    ``policy_`` the method ``amounts_of(X, sensitive_features=None)``, one amount for every row.
    """
    return hasattr(last_step(estimator), "amounts_of")


def predicts_numbers(estimator: Any) -> bool:
    """Whether this is a regressor, by what it says of itself."""
    from sklearn.base import is_regressor

    return decides_amounts(estimator) or (hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator))


def amounts_by(estimator: Any, X: Table, sensitive_features: Any) -> Array:
    """What a FairRegressor decides."""
    passed = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
    if hasattr(estimator, "steps"):
        X, estimator = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X, estimator[-1]
    return as_vector(estimator.amounts_of(X, **passed), "amounts")


def without_policy(estimator: Any, X: Table) -> tuple[Array, tuple[float, float]]:
    """What the model of a FairClassifier decides by itself, and the shares of rows fitted on and recalibrated for.

    Of a pipeline, its last step sees the rows as the steps before make them.
    """
    fair = estimator
    if hasattr(estimator, "steps"):
        fair, X = estimator[-1], estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
    return fair._without_policy(X), fair._shares_fitted(X)


def decided_by(estimator: Any, X: Table, sensitive_features: Any, *, by_proba: bool) -> Array:
    """Decision probabilities of a FairClassifier, ``by_proba``, or the decisions of any other classifier."""
    passed = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
    if by_proba:
        return np.asarray(estimator.predict_proba(X, **passed))
    return as_vector(estimator.predict(features_of(estimator, X)), "predictions")


def scored_by(estimator: Any, X: Table, classes: Array, *, fair: bool) -> Scored:
    """What the model by which is decided says of people whose labels are missing."""
    if not fair:
        features = features_of(estimator, X)
        able = hasattr(estimator, "predict_proba")
        return Scored(_proba(estimator, features, classes) if able else None, X, features)
    last = last_step(estimator)
    if last is not estimator and len(estimator.steps) > 1:
        X = estimator[:-1].transform(X)
    features, score = last._model_says(X)
    checked = None if score is None else check_proba(score, len(classes), np.arange(len(score)))
    return Scored(checked, X, features, getattr(last, "_labels_of", None))


def _proba(model: Any, features: Table, classes: Array) -> Floats:
    score = predict_proba(model, features, classes)
    return check_proba(score, len(classes), np.arange(len(score)))


def features_of(estimator: Any, X: Table) -> Table:
    """The columns that a model was trained on, when it remembers them and the table has names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns"):
        return X
    return select_columns(X, list(names), "the model")


# ---------------------------------------------------------------------------------------------------------
# Beside an audit: what would be decided without the policy, and whether it was fitted on these very rows


OTHERS = "the intervals do not speak of other people"


@dataclass(frozen=True)
class Beside:
    """What an audit of a policy knows besides its decisions.

    Attributes
    ----------
    means : array of shape (groups, measures), or None
        What the model's own decisions, or those of ``baseline``, do to the same people.
    fitted, recalibrated : float
        Share of the rows that it was fitted on, and recalibrated for.
    out_of_fold : bool
        Whether what it states of those rows is by predictions out of fold.
    baseline : bool
        Whether somebody named the baseline.
    policy : Policy, or None
        That of a FairClassifier.
    """

    means: Floats | None = None
    fitted: float = 0.0
    recalibrated: float = 0.0
    out_of_fold: bool = False
    baseline: bool = False
    policy: Policy | None = None

    def notes(self, persons: Measured, widths: list[float], shown: bool) -> list[str]:
        """What is to be said; whether every gap asked about is ``shown`` to be small enough says the audit."""
        found = fitted_notes(self.fitted, self.recalibrated, self.out_of_fold)
        groups = [repr(group) for group in persons.groups]
        means = persons.means if self.means is None else self.means
        gaps = np.array([np.ptp(means[groups_compared(persons, j), j]) for j in range(len(persons.measures))])
        if self.means is None:
            where = f"on these rows ({'shown' if shown else 'not shown'} of people like these)"
            return [*found, *nothing_to_repair(persons.measures, gaps, widths, where)]
        words = baseline_words(self.baseline)
        found += nothing_to_repair(persons.measures, gaps, widths, f"on these rows, {words.name}")
        where = f"on these rows, compared with {words.whole}"
        means = persons.means
        return found + every_group_loses(persons.measures, groups, self.means, means, where, by_policy=True)


def fitted_notes(fitted: float, recalibrated: float, out_of_fold: bool) -> list[str]:
    """What is said, and warned about, when so many of the rows were fitted on, or recalibrated for."""
    found = []
    if fitted:
        found.append(f"{_these(fitted)} rows that the policy was fitted on: {OTHERS}.")
        if out_of_fold:
            found[0] += " Its own loss and gaps are of predictions out of fold, and differ from these."
        warnings.warn(f"{found[0]} Use rows that it has not seen.", FittedRowsWarning, stacklevel=4)
    if recalibrated:
        found.append(f"{_these(recalibrated)} rows that it was recalibrated for: {OTHERS}.")
    return found


def _these(share: float) -> str:
    return "These are" if share > 0.99 else f"About {share:.0%} of these rows are"


def beside_policy(policy: Policy, persons: Measured, means: Floats) -> Beside:
    """Beside an audit of a policy; the same means, also without it, are those of the rows that it was fitted on."""
    baseline, names = policy.basis.baseline, [measure.name for measure in policy.measures]
    same = (
        baseline is not None
        and policy.groups == persons.groups
        and names == [measure.name for measure in persons.measures]
        and _same(policy.outcome.means, persons.means)
        and _same(baseline.means, means)
    )
    share = 1.0 if same and not policy.expected else 0.0
    return Beside(means, share, out_of_fold=policy.basis.out_of_fold)


def _same(one: Floats, other: Floats) -> bool:
    """Whether means agree in every digit, and are not those that any rows would give."""
    telling = bool(((one != 0.0) & (one != 1.0)).any())
    near = np.abs(one - other) <= 1e-10 * np.nanmax(np.abs(one))
    return telling and bool((near | (np.isnan(one) & np.isnan(other))).all())


def means_without(people: People, problem: Problem) -> Floats:
    """Group means of the baseline."""
    if people.amounts is not None:
        return measured_of(people.as_baseline, problem).means
    probabilities = np.eye(len(problem.decisions))[people.decisions_baseline()]
    persons = measured_of(replace(people, probabilities=np.asarray(probabilities)), problem)
    return persons.means
