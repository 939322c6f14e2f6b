"""Individual amounts: from people to a policy that looks at each of them, along its frontier, and to other people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._amounts.calibration import Method, calibrate
from felicific._amounts.fit import FittedAmounts, check_new_people, comparing, meets, range_of, with_notes
from felicific._amounts.ground import AmountGround
from felicific._amounts.outcome import outcome_of_amounts
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._amounts.scale import Scale
from felicific._amounts.sums import AmountSums, sum_amounts
from felicific._amounts.weights import SolvedWeights, solve_weights
from felicific._policy.amount_individual import IndividualAmountPolicy
from felicific._policy.lines import AmountOutcome, Calibration
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError, HappinessError


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedIndividualAmounts(FittedAmounts):
    """An individual policy of amounts with what it takes to move it: the people, who are never stored."""

    policy: IndividualAmountPolicy

    def solved(self, problem: LinesProblem) -> FittedIndividualAmounts:
        """The same people under another problem."""
        if self.people is None:
            raise DataError(
                "An individual policy is moved by looking at the people again, and files never hold them.",
                "Fit it again; or take policies along the frontier before it is stored.",
            )
        policy = _policy(
            problem, self.sums, self.calibration, self.allowed, self.people,
            salt=self.policy.salt, out_of_fold=self.policy.out_of_fold, residual=self._expected_residual,
        )  # fmt: skip
        return replace(self, problem=problem, policy=policy)

    @property
    def _expected_residual(self) -> float | None:
        """What labels vary around calibrated predictions, where people have none."""
        return self.residual if self.policy.expected else None

    def recalibrated(self, people: AmountPeople) -> FittedIndividualAmounts:
        """Fitted anew to people without labels: what a prediction means stays, who they are is new."""
        check_new_people(people, self.sums.groups)
        expected = replace(people, y=self.calibration.of(people.prediction, people.codes))
        sums = sum_amounts(replace(people, y=None), self.sums.scale)
        policy = _policy(
            self.problem, sums, self.calibration, self.allowed, expected,
            salt=self.policy.salt, out_of_fold=False, residual=self.residual,
        )  # fmt: skip
        return replace(self, policy=policy, sums=sums, people=expected, kept_residual=self.residual)


def check_individual(problem: LinesProblem) -> None:
    """Refuse what an individual policy of amounts cannot be asked for."""
    if problem.parity:
        raise ConstraintError(
            f"{problem.parity!r} compares the ranks of people within their groups, and an individual policy does not "
            "rank them.",
            "Use policy='score', or ask for a mean: 'decision'.",
        )
    if not problem.squared:
        raise DataError(
            f"The loss {problem.loss.name!r} needs every amount to be tried for everybody, which an individual policy "
            "of amounts does not.",
            "Use loss='squared', policy='score', or FairClassifier(decisions=[...]) with few amounts.",
        )
    if problem.allowed.listed is not None:
        raise DataError(
            "An individual policy gives any amount, and decisions= lists the only ones there are.",
            "Pass bounds, decisions=(low, high), or use policy='score'.",
        )
    for part in problem.happiness:
        if "y" in part.asks:
            raise HappinessError(
                f"The happiness {part.name!r} looks at the label y, which is not known when amounts are given.",
                "Use policy='score', whose score bins are summed with their labels.",
            )


def fit_individual_amounts(
    problem: LinesProblem,
    people: AmountPeople,
    *,
    calibration: Method = "affine",
    salt: str,
    out_of_fold: bool = False,
) -> FittedIndividualAmounts:
    """Fit an individual policy of amounts to people in memory."""
    check_individual(problem)
    sums = sum_amounts(people, Scale.of(people.prediction))
    lines = calibrate(sums, calibration, sees_group=problem.sees_group)
    allowed = problem.allowed.within(range_of(sums, lines))
    policy = _policy(problem, sums, lines, allowed, people, salt=salt, out_of_fold=out_of_fold, residual=None)
    return FittedIndividualAmounts(
        problem=problem, policy=policy, sums=sums, calibration=lines, allowed=allowed, people=people
    )


def _policy(
    problem: LinesProblem,
    sums: AmountSums,
    calibration: Calibration,
    allowed: Allowed,
    people: AmountPeople,
    *,
    salt: str,
    out_of_fold: bool,
    residual: float | None,
) -> IndividualAmountPolicy:
    """Solve, and measure on people; of people without labels, ``residual`` is what these vary."""
    people, sums = comparing(problem, people, sums)

    def stated(amounts: Floats) -> AmountOutcome:
        outcome = outcome_of_amounts(problem, people, amounts)
        return replace(outcome, loss=outcome.loss + (residual or 0.0))

    calibrated = calibration.of(people.prediction, people.codes)
    ground = AmountGround.of(problem, people, calibrated, allowed.ends)
    baseline = outcome_of_amounts(problem, people, people.decided_baseline)
    if residual is not None:
        baseline = replace(baseline, loss=math.nan)
    unconstrained = outcome = stated(np.clip(calibrated, *allowed.ends))
    shape = (1, len(people.groups), len(problem.measures))
    solved = SolvedWeights(np.zeros(shape), np.ones((shape[1], 1)), dict.fromkeys(problem.widths_asked, 0.0))
    if not meets(problem, unconstrained):
        solved = solve_weights(ground, problem.requirements)
    policy = IndividualAmountPolicy(
        groups=sums.groups,
        lines=(),
        measures=problem.measures,
        outcome=outcome,
        baseline=baseline,
        unconstrained=unconstrained,
        prices=solved.prices,
        asked=problem.widths_asked,
        bounds=allowed.ends,
        listed=None,
        loss_name=problem.loss.name,
        parity="",
        salt=salt,
        sees_group=problem.sees_group,
        expected=residual is not None,
        out_of_fold=out_of_fold,
        roles=sums.roles,
        attributes=sums.attributes,
        left_out=sums.left_out,
        weights=solved.weights,
        shares=solved.shares,
        calibration=calibration,
        happiness=problem.happiness,
    )
    amounts = policy.given_worth(calibrated, people.codes, ground.expected)
    policy = replace(policy, outcome=stated(amounts))
    return with_notes(problem, policy, sums, calibration)
