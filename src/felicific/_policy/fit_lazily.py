"""Fitting individual policies to people in a table that is not in memory.

Column generation asks the people one question after another: what would this deterministic policy do? Each is one pass
over the table, inside its engine: a map over batches or partitions and a sum. Nothing of a person is kept between two
passes but in the table itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from felicific._people.lazy import LazyPeople
from felicific._people.people import People
from felicific._policy.calibration import Calibration, fit_curve
from felicific._policy.fit_individual import check_baseline, check_calibration, ground_of, make_policy
from felicific._policy.individual import IndividualPolicy
from felicific._problem.problem import Problem
from felicific._problem.rows import Chance
from felicific._program.bins import FINE
from felicific._program.change_cost import ChangeCost
from felicific._program.crowd import Choice, Crowd, Ledgers, Mixture, Sums, add_sums
from felicific._program.generation import generate
from felicific._program.signals import Individual, Label
from felicific._program.sums import compute_aggregates
from felicific._tables.progress import progress_line
from felicific._typing import Floats
from felicific.exceptions import DataError


def fit_lazily(
    people: LazyPeople, individual: Individual, salt: str, change_cost: ChangeCost = 0.0
) -> IndividualPolicy:
    """Fit an individual policy by passes over a table that is not in memory."""
    cost = 0.0 if change_cost == "auto" else change_cost
    problem = people.problem
    if people.columns.missing_labels is not None:
        raise DataError(
            "Individual policies of people of whom some have no label need them in memory.",
            "Collect the table first, or use policy='score'.",
        )
    check_calibration(problem, individual)
    with progress_line():  # one line for all passes
        # One query looks at every row, finds the groups and a typical value of every measure.
        aggregates = compute_aggregates(people, problem, Label())
        aggregates.check_complete()
        known = people.columns.for_groups(aggregates.groups)
        people = replace(people, groups=aggregates.groups, columns=known)
        calibration = Calibration(())
        if problem.sees_group:
            calibration = _calibrated(people, individual.calibration)
        ground = _Table(people, calibration, aggregates.origin, cost, problem.chances(aggregates.groups))
        generated = generate(ground, problem.requirements)
    return make_policy(problem, ground.crowd, generated, calibration, salt)


@dataclass(frozen=True)
class _Table:
    """The people of a table that is not in memory, as column generation asks for them."""

    people: LazyPeople
    calibration: Calibration
    origin: Floats
    change_cost: float
    chances: tuple[Chance, ...] = ()
    passes: Iterator[int] = field(default_factory=partial(count, 1))

    @property
    def crowd(self) -> Crowd:
        """What is common to all people; nobody in particular."""
        nobody = np.empty(0, dtype=np.intp)
        return Crowd(
            decisions=self.people.problem.decisions,
            groups=tuple(self.people.groups or ()),
            measures=self.people.problem.measures,
            origin=self.origin,
            weight=np.empty(0),
            group=nobody,
            own=nobody,
            sees_group=self.people.problem.sees_group,
            likely=nobody if self.people.problem.takes_labels else None,
            knows_baseline=self.knows_baseline,
            baseline_given=self.people.columns.baseline is not None,
            attributes=self.people.columns.attributes,
            unknown=self.people.columns.missing_group,
            change_cost=self.change_cost,
        )

    @property
    def knows_baseline(self) -> bool:
        """Whether the baseline was given, or what the model predicts may be decided."""
        return self.people.columns.baseline is not None or self.people.problem.takes_labels

    @property
    def has_real(self) -> bool:
        """There are labels."""
        return True

    def totals(self) -> Sums:
        """Sums that no policy changes, by one pass."""
        sums: Sums = self._pass(_totals)
        return sums

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do, by one pass."""
        sums: list[Sums] = self._pass(partial(_columns, choices)) if choices else []
        return sums

    def keeping(self, chances: tuple[Chance, ...]) -> _Table:
        """The same people where these chances are kept."""
        return replace(self, chances=chances)

    def explored(self, mixture: Mixture) -> Sums:
        """Who has just the chance that people keep, by one pass."""
        sums: Sums = self._pass(partial(_explored, mixture))
        return sums

    def _pass(self, question: Callable[[Ledgers], Any]) -> Any:
        told = self.people.problem, self.calibration, self.origin, self.change_cost, self.chances
        step = partial(_asked, *told, question)
        with progress_line(f"pass {next(self.passes)}"):
            return self.people.fold(step, add_sums)


def _totals(people: Ledgers) -> Sums:
    return people.totals()


def _columns(choices: list[Choice], people: Ledgers) -> list[Sums]:
    return people.columns(choices)


def _explored(mixture: Mixture, people: Ledgers) -> Sums:
    return people.explored(mixture)


def _asked(
    problem: Problem,
    calibration: Calibration,
    origin: Floats,
    change_cost: float,
    chances: tuple[Chance, ...],
    question: Callable[[Ledgers], Any],
    people: People,
) -> Any:
    """Put some people into ledgers and ask them."""
    check_baseline(problem, people)
    ground = ground_of(problem, people, calibration, origin, change_cost=change_cost)
    return question(ground.keeping(chances))


# ---------------------------------------------------------------------------------------------------------
# Calibration: every group's probabilities are counted in fine bins, and the curves are fitted to the bins


def _calibrated(people: LazyPeople, method: str) -> Calibration:
    sums: Sums = people.fold(partial(_bins, len(people.problem.labels)), add_sums)
    held, score, hits = sums["weight"], sums["score"], sums["hits"]
    knots = []
    for z in range(len(held)):
        curves = []
        for c in range(held.shape[1]):
            bins = np.flatnonzero(held[z, c])
            w, h = held[z, c, bins], hits[z, c, bins]
            level = score[z, c, bins] / w
            # Those who were right and those who were wrong, each with their weight.
            right, wrong = h > 0, w - h > 0
            curves.append(
                fit_curve(
                    method,
                    np.concatenate([level[right], level[wrong]]),
                    np.concatenate([np.ones(right.sum()), np.zeros(wrong.sum())]),
                    np.concatenate([h[right], (w - h)[wrong]]),
                )
            )
        knots.append(tuple(curves))
    return Calibration(tuple(knots))


def _bins(k: int, people: People) -> Sums:
    """Weight, scores and hits of every group, class and fine bin of its probability."""
    g, size = len(people.groups), FINE + 1
    score, weight = np.asarray(people.with_scores.score), people.weights
    sums = {name: np.zeros((g, k, size)) for name in ("weight", "score", "hits")}
    for c in range(k):
        index = people.codes * size + np.ceil(FINE * score[:, c]).astype(np.intp)
        for name, numbers in (("weight", 1.0), ("score", score[:, c]), ("hits", people.labels == c)):
            counts = np.bincount(index, weight * numbers, minlength=g * size)
            sums[name][:, c] = counts.reshape(g, size)
    return sums
