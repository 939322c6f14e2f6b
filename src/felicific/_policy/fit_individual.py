"""Pricing: individual policies of people in a table that is not in memory.

Column generation asks the people one question after another: what would this deterministic policy do? Each is one pass
over the table, inside its engine: a map over batches or partitions and a sum. Nothing of a person is kept between two
passes but in the table itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._policy.calibration import Calibration, fit_curve
from felicific._policy.individual import IndividualPolicy, search_of
from felicific._policy.ledgers import Terms, expected_ledger, real_ledger
from felicific._policy.lottery import make_salt
from felicific._problem.requirements import requirements_of
from felicific._problem.rows import Requirement
from felicific._program.generation import Choice, Crowd, Ledgers, Sums, add_sums, generate, likeliest
from felicific._program.plan import Ask, Plan, Rows, fold_rows, make_plan
from felicific._program.query import engine_moments
from felicific._program.signals import FINE, Individual, Label
from felicific._program.summing import check_proba, encode_labels, resolve_loss
from felicific._tables.engine import Engine
from felicific._tables.groups import encode_groups
from felicific._tables.progress import shown

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def price_table(
    engine: Engine,
    ask: Ask,
    individual: Individual,
    *,
    gap: Any,
    constraints: Iterable[Requirement],
    random_state: Any,
) -> IndividualPolicy:
    """Fit an individual policy by passes over a table that is not in memory."""
    with shown():  # one line for all passes
        # One query looks at every row, finds the groups and a typical value of every component.
        moments = engine_moments(engine, replace(ask, signal=Label()))
        moments.check_complete()
        ask = replace(ask, groups=moments.groups)
        plan = make_plan(engine, ask)
        calibration = _calibrated(engine, ask, plan, individual.calibration)
        ground = _Table(engine, ask, plan, calibration, moments.origin)
        found = generate(ground, requirements_of(gap, constraints, ground.crowd.components))
    names = [component.name for component in ground.crowd.components]
    return IndividualPolicy(
        classes=ask.classes,
        groups=moments.groups,
        components=ground.crowd.components,
        outcome=found.outcome,
        prices=found.prices,
        salt=make_salt(random_state),
        see_group=True,
        mixture=found.mixture,
        calibration=calibration,
        origin=moments.origin,
        happiness=ask.happiness,
        loss_function=ask.loss,
        search=search_of(found, names),
    )


@dataclass(frozen=True)
class _Table:
    """The people of a table that is not in memory, as column generation asks for them."""

    engine: Engine
    ask: Ask
    plan: Plan
    calibration: Calibration
    origin: Floats
    passes: Iterator[int] = field(default_factory=partial(count, 1))

    @property
    def crowd(self) -> Crowd:
        """What is common to all people; nobody in particular."""
        nobody = np.empty(0, dtype=np.intp)
        return Crowd(
            classes=self.ask.classes,
            groups=tuple(self.ask.groups or ()),
            components=tuple(happiness.component for happiness in self.ask.happiness),
            origin=self.origin,
            weight=np.empty(0),
            group=nobody,
            own=nobody,
            see_group=True,
            likely=nobody,
        )

    @property
    def has_real(self) -> bool:
        """There are labels."""
        return True

    def totals(self) -> Sums:
        """Sums that no policy changes, by one pass."""
        found: Sums = self._pass(_totals)
        return found

    def columns(self, choices: list[Choice]) -> list[Sums]:
        """What some deterministic policies do, by one pass."""
        found: list[Sums] = self._pass(partial(_columns, choices)) if choices else []
        return found

    def _pass(self, question: Callable[[Ledgers], Any]) -> Any:
        step = partial(_asked, self.crowd, self.calibration, question)
        with shown(f"pass {next(self.passes)}"):
            return fold_rows(self.engine, self.ask, self.plan, step, add_sums)


def _totals(people: Ledgers) -> Sums:
    return people.totals()


def _columns(choices: list[Choice], people: Ledgers) -> list[Sums]:
    return people.columns(choices)


def _asked(
    crowd: Crowd, calibration: Calibration, question: Callable[[Ledgers], Any], ask: Ask, rows: Rows
) -> Any:
    """Put some people into ledgers and ask them."""
    rows, numbers = rows.present()
    n, k = len(rows.group), len(ask.classes)
    codes = encode_groups(rows.group, crowd.groups)
    proba = check_proba(rows.proba, k, numbers)
    likely = likeliest(proba)
    own = (
        likely
        if rows.predicted is None
        else encode_labels(rows.predicted, ask.classes, "prediction", numbers)
    )
    terms = Terms(ask.classes, crowd.groups, ask.happiness, resolve_loss(ask.loss, ask.classes)[1], True)
    belief = calibration.apply(proba, codes)
    weight = np.ones(n) if rows.weight is None else rows.weight
    people = replace(crowd, weight=weight, group=codes, own=own, likely=likely)
    return question(
        Ledgers(
            people,
            expected_ledger(terms, rows.table, belief, rows.group, crowd.origin),
            real_ledger(terms, rows.table, np.asarray(rows.y), rows.group, codes, crowd.origin),
        )
    )


# ---------------------------------------------------------------------------------------------------------
# Calibration: every group's probabilities are counted in fine bins, and the curves are fitted to the bins


def _calibrated(engine: Engine, ask: Ask, plan: Plan, method: str) -> Calibration:
    found: Sums = fold_rows(engine, ask, plan, _bins, add_sums)
    held, score, hits = found["weight"], found["score"], found["hits"]
    knots = []
    for z in range(len(ask.groups or ())):
        curves = []
        for c in range(len(ask.classes)):
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


def _bins(ask: Ask, rows: Rows) -> Sums:
    """Weight, scores and hits of every group, class and fine bin of its probability."""
    rows, numbers = rows.present()
    g, k, size = len(ask.groups or ()), len(ask.classes), FINE + 1
    proba = check_proba(rows.proba, k, numbers)
    codes = encode_groups(rows.group, ask.groups or ())
    labels = encode_labels(rows.y, ask.classes, "label", numbers)
    weight = np.ones(len(codes)) if rows.weight is None else rows.weight
    found = {name: np.zeros((g, k, size)) for name in ("weight", "score", "hits")}
    for c in range(k):
        index = codes * size + np.ceil(FINE * proba[:, c]).astype(np.intp)
        for name, numbers_of in (("weight", 1.0), ("score", proba[:, c]), ("hits", labels == c)):
            sums = np.bincount(index, weight * numbers_of, minlength=g * size)
            found[name][:, c] = sums.reshape(g, size)
    return found
