"""Fit: from people to a policy of amounts, along its frontier, and to people without labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from felicific._people.people import People
from felicific._policy.line_search import LineSearch, gap_of, ranks_of, unbound
from felicific._policy.lines import Line
from felicific._policy.lottery import make_salt
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_outcome import (
    AmountOutcome,
    held_people,
    numbers_of,
    outcome_of_amounts,
    outcome_of_lines,
    people_of_bins,
)
from felicific._problem.change import Intersections, harms_by_name, worst_harm
from felicific._problem.constraints import check_constraints, refuse_nothing
from felicific._problem.happiness import written
from felicific._problem.linear import Goal, goals_of
from felicific._problem.numeric import Allowed, NumericProblem
from felicific._problem.requirement import Requirement, rows_of
from felicific._problem.requirements import left_out_by
from felicific._problem.unions import compared, unions_of
from felicific._program.aggregates import Aggregates
from felicific._program.calibration import Calibration, Method, calibrate
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.levels import Bins, level_aggregates
from felicific._program.numeric import AmountAggregates
from felicific._program.predicted import FINE, Predicted, Scale, sum_predicted
from felicific._typing import GapLike
from felicific.exceptions import ConstraintError, DataError, HappinessError

#: A policy of amounts of whichever kind.
AnyPolicy = TypeVar("AnyPolicy", bound=AmountPolicy)

#: A distance that is missed by more is spoken of.
MISSED = 0.005

#: A bin that holds a larger share of a group is spoken of.
CROWDED = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedAmounts:
    """A policy of amounts with what it takes to move it.

    Attributes
    ----------
    problem : NumericProblem
        What was asked.
    policy : AmountPolicy
        With what it does to the people it was fitted on.
    sums, calibration, allowed :
        What lines are found from.
    people : People, or None
        The people; never stored.
    kept_residual : float, or None
        Of people without labels, what labels varied around calibrated predictions before.
    """

    problem: NumericProblem
    policy: AmountPolicy
    sums: Predicted
    calibration: Calibration
    allowed: Allowed
    people: People | None
    kept_residual: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        # People stay out of files, and a frontier is solved again from what is kept.
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"people": None}

    @property
    def free(self) -> AmountPolicy:
        """The policy of least loss without any requirement."""
        return self.solved(unbound(self.problem)).policy

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What was asked of the policy besides gaps of all groups."""
        people, _ = _measured_on(self.people, self.sums)
        ends = ends_of(
            replace(self.problem, allowed=self.allowed), comparing(self.problem, people), self.sums
        )
        return goals_of(rows_of(self.problem.requirements, ends))

    def moved(self, gap: GapLike) -> FittedAmounts:
        """The policy of least loss at another gap, found anew."""
        return self.solved(self.problem.with_widths(gap))

    def solved(self, problem: NumericProblem) -> FittedAmounts:
        """The same people under another problem."""
        people, within = _measured_on(self.people, self.sums)
        policy = _policy(
            problem, self.sums, self.calibration, self.allowed, people, within + (self.kept_residual or 0.0),
            salt=self.policy.salt, randomize=self.policy.randomize, out_of_fold=self.policy.out_of_fold,
            expected=self.policy.expected, rows=self.people is not None,
        )  # fmt: skip
        return replace(self, problem=problem, policy=policy)

    def recalibrated(self, people: People) -> FittedAmounts:
        """Fitted anew to people without labels: what a prediction means stays, how people are spread is new."""
        if self.problem.loss.function is not None and not self.problem.squared:
            raise DataError(
                f"The loss {self.problem.loss.name!r} looks at labels, of which new people have none.",
                "Recalibrate a policy of loss='squared', or fit again on people with labels.",
            )
        for part in self.problem.happiness:
            if "y" in part.asks:
                raise HappinessError(
                    f"The happiness {part.name!r} looks at the label y, of which new people have none.",
                    "Recalibrate a policy whose happiness does not; or fit again on people with labels.",
                )
        check_new_people(people, self.sums.groups)
        sums = sum_predicted(replace(people, y=None), Scale.of(people.prediction))
        expected = replace(people, y=self.calibration.of(people.prediction, people.codes))
        policy = _policy(
            self.problem, sums, self.calibration, self.allowed, expected, self.residual,
            salt=self.policy.salt, randomize=self.policy.randomize, out_of_fold=False, expected=True,
        )  # fmt: skip
        return FittedAmounts(
            problem=self.problem, policy=policy, sums=sums, calibration=self.calibration, allowed=self.allowed,
            people=expected, kept_residual=self.residual,
        )  # fmt: skip

    @cached_property
    def residual(self) -> float:
        """What labels vary around calibrated predictions, per person; of people without labels, as it was of others."""
        if self.kept_residual is not None:
            return self.kept_residual
        people, within = _measured_on(self.people, self.sums)
        if people.y is None:
            return math.nan
        calibrated = self.calibration.of(people.prediction, people.codes)
        return within + float(np.average((people.y - calibrated) ** 2, weights=people.weights))


def check_new_people(people: People, groups: tuple[Any, ...]) -> None:
    """Refuse people of other groups than those of the fit."""
    if people.groups != groups:
        raise DataError(
            f"The groups of the new people are {list(people.groups)}, those of the fit {list(groups)}.",
            "Recalibrate on people of every group.",
        )


def fit_amounts(
    problem: NumericProblem,
    people: People,
    *,
    calibration: Method = "affine",
    salt: str,
    randomize: bool = True,
    out_of_fold: bool = False,
) -> FittedAmounts:
    """Fit a policy of amounts to people in memory."""
    scale = Scale.of(people.prediction)
    sums = sum_predicted(people, scale)
    if people.y is None and problem.loss.looks_at_y:
        raise DataError(
            "The loss looks at labels y, and there are none.", "Pass y, one number for everybody."
        )
    lines = calibrate(sums, calibration, sees_group=problem.sees_group)
    allowed = problem.allowed.within(range_of(sums, lines))
    policy = _policy(
        problem, sums, lines, allowed, people, 0.0, salt=salt, randomize=randomize, out_of_fold=out_of_fold
    )
    return FittedAmounts(
        problem=problem, policy=policy, sums=sums, calibration=lines, allowed=allowed, people=people
    )


def fit_sums(
    problem: NumericProblem,
    sums: Predicted,
    *,
    calibration: Method = "affine",
    salt: str,
    randomize: bool = True,
) -> FittedAmounts:
    """Fit a policy of amounts to people of whom only sums are known; what it does to them is stated bin by bin."""
    if sums.labels is None and calibration != "none":
        raise DataError(
            "The loss looks at labels y, and there are none.", "Pass y=, or policy=Score(calibration='none')."
        )
    empty = [group for group, weight in zip(sums.groups, sums.people.tolist(), strict=True) if weight == 0]
    if empty:
        raise DataError(f"Nobody is of the group {empty[0]!r}.", "Add the sums of all sites first.")
    lines = calibrate(sums, calibration)
    allowed = problem.allowed.within(range_of(sums, lines))
    people, within = people_of_bins(sums)
    policy = _policy(
        problem,
        sums,
        lines,
        allowed,
        people,
        within,
        salt=salt,
        randomize=randomize,
        out_of_fold=False,
        rows=False,
    )
    return FittedAmounts(
        problem=problem, policy=policy, sums=sums, calibration=lines, allowed=allowed, people=None
    )


def solve_amounts(sums: AmountAggregates, **settings: Any) -> AmountPolicy:
    """The policy of amounts of least loss; see :func:`felicific.solve`."""
    listed = check_constraints(settings["constraints"])
    refuse_nothing(settings["gap"], listed)
    return fitted_to_sums(sums, **settings | {"constraints": listed}).policy


def fitted_to_sums(
    sums: AmountAggregates,
    *,
    gap: GapLike = None,
    constraints: Iterable[Requirement] = (),
    change_cost: ChangeCost = 0.0,
    sees_group: bool = True,
    random_state: Any = None,
) -> FittedAmounts:
    """A policy of amounts with what it takes to move it."""
    if check_change_cost(change_cost) not in ("auto", 0.0):
        raise DataError(
            f"change_cost={change_cost!r} has no use where amounts are predicted.",
            "Leave change_cost= out: a change of an amount costs what the loss says.",
        )
    if not sees_group:
        raise DataError(
            "Amounts without the group are not found here.",
            "Leave sees_group= out, or use FairRegressor, which finds them.",
        )
    problem = sums.asked.problem(gap, constraints)
    return fit_sums(problem, sums.sums, calibration=sums.asked.calibration, salt=make_salt(random_state))


def range_of(sums: Predicted, calibration: Calibration) -> tuple[float, float]:
    """The least and the largest calibrated prediction."""
    ends = [calibration.at(z, sums.ends[z]) for z in range(len(sums.groups))]
    return float(np.min(ends)), float(np.max(ends))


def _measured_on(people: People | None, sums: Predicted) -> tuple[People, float]:
    """The people that outcomes are measured on: themselves, else their bins with what labels vary within them."""
    return (people, 0.0) if people is not None else people_of_bins(sums)


def comparing(problem: NumericProblem, people: People) -> People:
    """People, with whom the gaps of a problem do not compare."""
    # Of a share of everybody the weights count, as in the sums.
    numbers, weights = numbers_of(problem, people), numbers_of(problem, people, weighed=True)
    left_out = left_out_by(problem.requirements, problem.measures, people.groups, numbers, weights)
    if problem.parity and problem.distance is not None:
        whom = problem.parity_whom
        every = held_people(people, weighed=whom.min_people < 1)
        _, few = compared(people.groups, (), every, whom, problem.parity)
        left_out |= {problem.parity: few} if few.people else {}
    return replace(people, left_out=left_out)


def ends_of(problem: NumericProblem, people: People, sums: Predicted) -> Aggregates:
    """What the least and the largest amount are worth to every group."""
    groups = Bins.of(people, sums.scale, sees_group=True, number=1)
    return level_aggregates(
        problem, people, groups, people.prediction, np.array(problem.allowed.ends), sums.rows
    )


def check_cells(problem: NumericProblem, *, rows: bool) -> None:
    """Refuse what cells of the prediction cannot be asked for; ``rows``: people are there, not their sums alone."""
    if problem.parity:
        why = "does not see the group" if not problem.sees_group else f"also looks at {problem.of_people!r}"
        raise ConstraintError(
            f"{problem.parity!r} compares ranks within groups, which a policy that {why} does not hold.",
            "Ask for it alone, and let the policy see the group; or for means, 'decision' or 'decision >= 40'.",
        )
    if problem.of_people and not rows:
        raise DataError(
            f"The happiness {problem.of_people!r} looks at the people, and files never hold them.",
            "Fit again; or take policies along the frontier before it is stored.",
        )


def _policy(
    problem: NumericProblem,
    sums: Predicted,
    calibration: Calibration,
    allowed: Allowed,
    people: People,
    within: float,
    *,
    salt: str,
    randomize: bool,
    out_of_fold: bool,
    expected: bool = False,
    rows: bool = True,
) -> AmountPolicy:
    """Solve, and measure on people."""
    if problem.of_people or not problem.sees_group:
        check_cells(problem, rows=rows)
    people = comparing(problem, people)

    def stated(lines: Sequence[Line]) -> AmountOutcome:
        outcome = outcome_of_lines(problem, people, lines, randomize=randomize)
        return replace(outcome, loss=outcome.loss + within)

    baseline = outcome_of_amounts(problem, people, people.decided_baseline)
    baseline = replace(baseline, loss=math.nan if expected else baseline.loss + within)
    ranks = ranks_of(sums, people if rows else None)
    search = LineSearch(replace(problem, allowed=allowed), people, sums, calibration, ranks, stated)
    free = search.solve(unbound(search.problem))
    lines, outcome, prices = free.lines, free.outcome, dict.fromkeys(problem.widths_asked, 0.0)
    if not meets(problem, outcome):
        solved = search.solve(search.problem)
        lines, outcome, prices = solved.lines, solved.outcome, solved.prices
    drawn = [line.drawing(people.prediction[people.codes == z]) >= 0 for z, line in enumerate(lines)]
    weights = [people.weights[people.codes == z] for z in range(len(lines))]
    lucky = sum(float(weight[some].sum()) for weight, some in zip(weights, drawn, strict=True))
    policy = AmountPolicy(
        groups=sums.groups,
        lines=lines if problem.sees_group else lines[:1],
        measures=problem.measures,
        outcome=outcome,
        baseline=baseline,
        unconstrained=free.outcome,
        prices=prices,
        asked=problem.widths_asked,
        bounds=allowed.ends,
        listed=allowed.listed,
        loss_name=problem.loss.name,
        parity=problem.parity,
        salt=salt,
        randomize=randomize,
        sees_group=problem.sees_group,
        expected=expected,
        share_randomized=lucky / float(people.weights.sum()) if randomize else 0.0,
        out_of_fold=out_of_fold,
        roles=sums.roles,
        attributes=sums.attributes,
        left_out=people.left_out,
    )
    return with_notes(problem, policy, sums, calibration)


def meets(problem: NumericProblem, outcome: AmountOutcome) -> bool:
    """Whether amounts that nothing was asked of meet what was asked."""
    if any(not one.is_plain_gap for one in problem.requirements):
        return False
    return all(gap_of(problem, outcome, name) <= width for name, width in problem.widths_asked.items())


def with_notes(
    problem: NumericProblem, policy: AnyPolicy, sums: Predicted, calibration: Calibration
) -> AnyPolicy:
    """The policy with what it does to intersections of attributes, and with what whoever fitted it should know."""
    notes = notes_of(problem, policy, sums, calibration)
    if len(policy.attributes) < 2 or policy.baseline.counted is None:
        return replace(policy, notes=tuple(notes))
    counted = policy.baseline.counted
    people = counted * (sums.rows / sums.people)[:, None]
    groups = Intersections(policy.groups, [*map(repr, policy.groups)], policy.attributes, counted, people)
    coarse = {
        part.j: policy.asked.get(problem.measures[part.j].name, 0.0)
        for part in problem.comparisons
        if any(
            len(union.members) > 1 for union in unions_of(policy.groups, policy.attributes, part.whom.between)
        )
    }
    where, outcomes = "compared with the baseline", {}
    for name in ("unconstrained", "outcome"):
        outcome = getattr(policy, name)
        harms = groups.harms(policy.measures, policy.baseline.means, outcome.means, coarse, where)
        harmed, widened = harms_by_name(harms, policy.measures, policy.groups)
        outcomes[name] = replace(outcome, harmed=harmed, widened=widened)
    return replace(policy, **outcomes, notes=(*worst_harm(harms), *notes))


def notes_of(
    problem: NumericProblem, policy: AmountPolicy, sums: Predicted, calibration: Calibration
) -> list[str]:
    """What whoever fitted it should know, the worst first."""
    notes = []
    for z in calibration.falling:
        notes.append(
            f"In group {sums.groups[z]!r} larger predictions go with smaller labels, or with the same: everybody there "
            "is taken for the group's mean. Use calibration='none' to keep the predictions as they are."
        )
    baseline, now = policy.gaps_in(policy.baseline), policy.gaps
    for name, width in policy.asked.items():
        far = MISSED if name == policy.parity else 1e-6 * (policy.bounds[1] - policy.bounds[0])
        if now[name] > width + far:
            randomized = (
                ""
                if policy.randomize
                else " Randomization (randomize=True) tells people apart who are predicted the same."
            )
            notes.append(
                f"The gap of {name!r} is {written(now[name])} on the fitted people, and {written(width)} was asked "
                f"for: predictions that many share leave it.{randomized}"
            )
    for name, width in policy.asked.items():
        if baseline[name] <= width and now[name] > baseline[name] * (1 + 1e-9) + 1e-12:
            notes.append(
                f"The baseline's gap of {name!r} is {written(baseline[name])}; the least loss uses the room up to "
                f"{written(width)}, and it becomes {written(now[name])}. Score(calibration='none') leaves predictions "
                "as they are where they meet what is asked."
            )
    crowded = sums.mass.max(axis=1) / sums.people
    z = int(crowded.argmax())
    if crowded[z] > CROWDED and np.ptp(sums.ends[z]) > 0:
        place = float(sums.scale.edge(int(sums.mass[z].argmax())))
        notes.append(
            f"{crowded[z]:.1%} of group {sums.groups[z]!r} are predicted about {written(place)}, in one of "
            f"{FINE:,} steps from {written(sums.scale.low)} to {written(sums.scale.high)}: predictions hardly tell "
            "them apart."
        )
    if not policy.sees_group and not policy.sees_x:
        notes.insert(
            0,
            "The policy sees the prediction alone: whoever is predicted the same gets the same, whatever their group, "
            "so bringing groups together moves everybody. An individual policy weighs how likely each group is and "
            "mostly costs less.",
        )
    less, more = policy.outcome.less, policy.outcome.more
    fell = policy.outcome.amounts < policy.baseline.amounts - 1e-9 * (policy.bounds[1] - policy.bounds[0])
    if less is not None and more is not None and fell.all():
        notes.insert(0, "Every group gets less on average than from the baseline.")
    return notes
