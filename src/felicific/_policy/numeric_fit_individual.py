"""Individual amounts: from people to a policy that looks at each of them, along its frontier, and to other people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from felicific._people.people import People
from felicific._policy.numeric_fit import (
    FittedAmounts,
    check_new_people,
    comparing,
    ends_of,
    meets,
    range_of,
    with_notes,
)
from felicific._policy.numeric_individual import IndividualAmountPolicy
from felicific._policy.numeric_outcome import AmountOutcome, outcome_of_amounts
from felicific._problem.linear import Linear
from felicific._problem.numeric import Allowed, NumericProblem
from felicific._problem.requirement import rows_of
from felicific._program.calibration import Calibration, Method, calibrate
from felicific._program.predicted import Predicted, Scale, sum_predicted
from felicific._program.solution import conflict_error, irreducible
from felicific._program.squares import Squares, worth_of_people
from felicific._typing import Floats
from felicific.exceptions import ConstraintError, DataError, HappinessError

#: How often rows are moved by what really comes of amounts, and by how little they are missed then.
TRIES, MET = 60, 1e-11


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedIndividualAmounts(FittedAmounts):
    """An individual policy of amounts with what it takes to move it: the people, who are never stored."""

    policy: IndividualAmountPolicy

    def solved(self, problem: NumericProblem) -> FittedIndividualAmounts:
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

    def recalibrated(self, people: People) -> FittedIndividualAmounts:
        """Fitted anew to people without labels: what a prediction means stays, who they are is new."""
        check_new_people(people, self.sums.groups)
        expected = replace(people, y=self.calibration.of(people.prediction, people.codes))
        sums = sum_predicted(replace(people, y=None), self.sums.scale)
        policy = _policy(
            self.problem, sums, self.calibration, self.allowed, expected,
            salt=self.policy.salt, out_of_fold=False, residual=self.residual,
        )  # fmt: skip
        return replace(self, policy=policy, sums=sums, people=expected, kept_residual=self.residual)


def check_individual(problem: NumericProblem) -> None:
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
    problem: NumericProblem,
    people: People,
    *,
    calibration: Method = "affine",
    salt: str,
    out_of_fold: bool = False,
) -> FittedIndividualAmounts:
    """Fit an individual policy of amounts to people in memory."""
    check_individual(problem)
    sums = sum_predicted(people, Scale.of(people.prediction))
    lines = calibrate(sums, calibration, sees_group=problem.sees_group)
    allowed = problem.allowed.within(range_of(sums, lines))
    policy = _policy(problem, sums, lines, allowed, people, salt=salt, out_of_fold=out_of_fold, residual=None)
    return FittedIndividualAmounts(
        problem=problem, policy=policy, sums=sums, calibration=lines, allowed=allowed, people=people
    )


def _policy(
    problem: NumericProblem,
    sums: Predicted,
    calibration: Calibration,
    allowed: Allowed,
    people: People,
    *,
    salt: str,
    out_of_fold: bool,
    residual: float | None,
) -> IndividualAmountPolicy:
    """Solve, and measure on people; of people without labels, ``residual`` is what these vary."""
    people, problem = comparing(problem, people), replace(problem, allowed=allowed)

    def stated(amounts: Floats) -> AmountOutcome:
        outcome = outcome_of_amounts(problem, people, amounts)
        return replace(outcome, loss=outcome.loss + (residual or 0.0))

    calibrated = calibration.of(people.prediction, people.codes)
    batch, chances = people.batch, None if problem.sees_group else people.group_proba
    expected = worth_of_people(problem.happiness, batch, allowed.ends, people.groups, chances)
    baseline = outcome_of_amounts(problem, people, people.decided_baseline)
    if residual is not None:
        baseline = replace(baseline, loss=math.nan)
    unconstrained = stated(np.clip(calibrated, *allowed.ends))
    weights, prices = (
        np.zeros((len(people.groups), len(problem.measures))),
        dict.fromkeys(problem.widths_asked, 0.0),
    )
    if not meets(problem, unconstrained):
        real = worth_of_people(problem.happiness, batch, allowed.ends, people.groups, None)
        ends = ends_of(problem, people, sums)
        squares = [
            Squares(
                calibrated, people.weights, people.codes, len(people.groups), worth, ends.origin, allowed.ends
            )
            for worth in (expected, real)
        ]
        rows = [row for row in rows_of(problem.requirements, ends) if isinstance(row, Linear)]
        weights, prices = solve_weights(squares[0], squares[1], rows)
    policy = IndividualAmountPolicy(
        groups=sums.groups,
        lines=(),
        measures=problem.measures,
        outcome=unconstrained,
        baseline=baseline,
        unconstrained=unconstrained,
        prices=prices,
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
        left_out=people.left_out,
        weights=weights[None],
        shares=np.ones((len(people.groups), 1)),
        calibration=calibration,
        happiness=problem.happiness,
    )
    amounts = policy.given_worth(calibrated, people.codes, expected)
    policy = replace(policy, outcome=stated(amounts))
    return with_notes(problem, policy, sums, calibration)


def solve_weights(expected: Squares, real: Squares, rows: list[Linear]) -> tuple[Floats, dict[str, float]]:
    """Weights of least squared error whose real means meet rows, and the prices of these.

    People are moved by what is expected of them; rows move by what really comes of it, until they are met.
    """
    off, same = np.zeros(real.counted.shape), expected.worth is real.worth
    answer, least = None, math.inf
    for _ in range(TRIES):
        found = expected.solve([row.shifted(off) for row in rows])
        if found is None:
            if answer is None:
                raise conflict_error(irreducible([*rows], expected.meets))
            break
        means = real.means(np.clip(found.aims, *real.bounds))
        missed = max((row.excess(means, real.swing) for row in rows), default=0.0)
        if answer is None or missed < least:
            answer, least = found, missed
        if same or missed <= MET:
            break
        off = means - found.means
    assert answer is not None, "at least one was tried"
    prices: dict[str, float] = {}
    for row, duals, level in zip(rows, answer.duals, answer.levels, strict=True):
        prices[row.name] = prices.get(row.name, 0.0) + row.price(duals, level, answer.means)
    return answer.weights, prices
