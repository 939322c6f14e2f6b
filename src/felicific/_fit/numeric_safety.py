r"""Safe fitting of amounts: lines whose gaps were shown, on people held out, to be at most what was asked.

Candidates aim at more and more of the gaps that were asked for, from none of them to all. They are tested in that
order, and the first failure ends it; the last to pass is returned, so that P(returned and violating) is at most
:math:`\gamma`, however many candidates there are. Gaps of means are tested as those of classes are
(:mod:`felicific._fit.safety`); that distributions are close, by the inequality of Dvoretzky, Kiefer and Wolfowitz.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured
from felicific._fit.certificate import Certificate, tested
from felicific._fit.safety import Shown, Trial
from felicific._people.checks import WeightKind
from felicific._people.people import People
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import FittedAmounts
from felicific._problem.happiness import written
from felicific._problem.numeric import NumericProblem, parity_measure
from felicific._problem.unions import compared_groups
from felicific._statistics.distributions import Distributions
from felicific.exceptions import CertificateError, ConstraintError

#: Shares of the gaps asked for that candidates aim at, tightest first.
AIMS = np.linspace(0.0, 1.0, 13)

#: How a distance is shown.
DKW = "the Dvoretzky-Kiefer-Wolfowitz inequality"


def check_certifiable(problem: NumericProblem) -> None:
    """Refuse at once what no number of rows could show, and what no test is there for."""
    asked = problem.widths_asked
    if not asked:
        raise ConstraintError(
            "No gap was asked for, so there is nothing to be confident of.",
            "Give a gap together with confidence=, or leave confidence= out.",
        )
    if any(width == 0 for width in asked.values()):
        raise ConstraintError(
            "A gap of 0 can never be shown, with any number of rows: sampling error is always left.",
            "Allow a small gap with confidence=.",
        )
    if problem.kept:
        raise ConstraintError(
            f"{problem.kept[0]!r} is not tested on people held out, where amounts are given.",
            "Ask for gaps alone with confidence=, or leave confidence= out and audit the policy on other people.",
        )


@dataclass(frozen=True)
class _Test:
    """What people held out say of one candidate."""

    fitted: FittedAmounts
    persons: Measured
    shown: list[Shown]
    distance: float
    p_value: float

    def failed(self, level: float) -> bool:
        """Whether anything could not be shown."""
        return self.p_value > level or not all(part.passed for part in self.shown)


def certify_amounts(
    fitted: FittedAmounts, held: People, confidence: float, weight_kind: WeightKind = None
) -> tuple[FittedAmounts, Certificate]:
    """The loosest of some policies that is shown on people held out to keep the gaps that were asked for.

    Sampling weights (``weight_kind``) make no people: what they show is what so many unequal ones tell.
    """
    problem = fitted.problem
    assert fitted.people is not None, "people are there while they are fitted to"
    before = _persons(problem, fitted.people, fitted.policy, weight_kind)
    trial = Trial(confidence, problem.comparisons, before)
    chosen: _Test | None = None
    for aim in AIMS.tolist():
        candidate = fitted.moved({name: aim * width for name, width in problem.widths_asked.items()})
        test = _tried(candidate, problem, held, trial, weight_kind)
        if test.failed(trial.level):
            if chosen is None:
                raise _failure(problem, test, trial, held)
            break
        chosen = test
    assert chosen is not None, "there is a tightest one"
    return chosen.fitted, _certificate(problem, chosen, trial, held)


def _tried(
    candidate: FittedAmounts,
    problem: NumericProblem,
    held: People,
    trial: Trial,
    weight_kind: WeightKind,
) -> _Test:
    """Test a candidate on people held out."""
    persons = _persons(problem, held, candidate.policy, weight_kind)
    shown = trial.shows(persons, candidate.policy.salt)
    if problem.distance is None:
        return _Test(candidate, persons, shown, 0.0, 0.0)
    amounts = candidate.policy.given_to(held)
    sampling = weight_kind == "sampling"
    every = Distributions.of(amounts, held.codes, len(held.groups), held.weight, sampling=sampling)
    known = every.only(compared_groups(candidate.policy.left_out, problem.parity, held.groups))
    return _Test(candidate, persons, shown, known.furthest.distance, known.p_values(problem.distance)[1])


def _persons(
    problem: NumericProblem, people: People, policy: AmountPolicy, weight_kind: WeightKind
) -> Measured:
    """What a policy does to everybody."""
    decided = replace(people.given(policy.given_to(people)), weight_kind=weight_kind)
    return measured_of(replace(decided, left_out=policy.left_out), problem)


def _certificate(problem: NumericProblem, test: _Test, trial: Trial, held: People) -> Certificate:
    """What was shown of the one that was chosen."""
    loss, roughly = trial.loss_bound(test.persons, len(AIMS))
    measures = (*([parity_measure(problem.parity)] if problem.parity else []), *problem.measures)
    rough = tuple(problem.measures[part.claim.j].name for part in test.shown if not part.surely) + (
        ("loss",) if roughly else ()
    )
    methods = list(dict.fromkeys([part.method for part in test.shown]))
    if problem.distance is not None:
        methods.append(DKW)
    smallest = int(
        min(np.bincount(held.codes, held.weights).min(), *(part.smallest for part in test.shown), math.inf)
    )
    return tested(
        measures,
        problem.widths_asked,
        loss,
        trial.confidence,
        len(held),
        smallest,
        methods,
        problem.loss.name,
        rough,
        (),
        [],
        "",
    )


def _failure(problem: NumericProblem, test: _Test, trial: Trial, held: People) -> CertificateError:
    """What could not be shown of the tightest policy."""
    counts = np.bincount(held.codes, held.weights)
    smallest = int(counts.min())
    if problem.distance is not None and test.p_value > trial.level:
        root = math.sqrt(math.log(2.0 * len(counts) / trial.level))
        scale = np.sort(1.0 / np.sqrt(2.0 * counts))[-2:].sum()
        could = test.distance + root * float(scale)
        room = problem.distance - 0.5 * test.distance
        rows = None
        if room > 0:
            rows = int(float(f"{2.0 * (root / room) ** 2 / 0.6:.2g}"))
        return CertificateError(
            f"No policy could be shown to keep the distributions at most {problem.distance:g} apart: on people held "
            f"out ({smallest:,} in the smallest group) the tightest one leaves {test.distance:.3g}, and with "
            f"confidence at most {could:.3g} could be shown.",
            f"Ask for a gap of about {min(1.1 * could, 1.0):.2g}"
            + (f", or pass about {rows:,} rows in the smallest group." if rows else ", or pass more rows."),
            rows,
        )
    worst = next(part for part in test.shown if not part.passed)
    measure = problem.measures[worst.claim.j]
    error = worst.error if math.isfinite(worst.error) else 0.0
    return CertificateError(
        f"No policy could be shown to keep the gap of {measure.name!r} at most "
        f"{measure.quantity(worst.claim.at_most)}: on people held out ({smallest:,} in the smallest group) the "
        f"tightest one has {measure.quantity(float(f'{worst.gap:.4g}'))} with a standard error of "
        f"{measure.quantity(float(f'{error:.3g}'))}.",
        f"Ask for about {written(max(worst.gap + 3 * error, 1.1 * worst.claim.at_most), 3)}, or pass more rows of the "
        "smallest group.",
    )
