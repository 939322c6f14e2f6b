"""Beside an audit: what would be decided without the policy, and whether it was fitted on these very rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured, groups_compared
from felicific._people.people import People
from felicific._policy.policy import Policy
from felicific._problem.change import baseline_words, every_group_loses, nothing_to_repair
from felicific._problem.problem import Problem
from felicific._typing import Floats
from felicific.exceptions import FittedRowsWarning

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
