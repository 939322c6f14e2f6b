"""Fit: from people to a policy of amounts, along its frontier, and to people without labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.people import People
from felicific._policy.line_search import LineSearch, check_bins, gap_of, ranks_of, unbound
from felicific._policy.lines import Line
from felicific._policy.lottery import make_salt
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_individual import IndividualAmountPolicy
from felicific._policy.numeric_outcome import (
    AmountOutcome,
    outcome_of_amounts,
    outcome_of_lines,
    people_of_bins,
)
from felicific._problem.change import Intersections, harms_by_name, worst_harm
from felicific._problem.constraints import check_constraints, refuse_nothing
from felicific._problem.happiness import written
from felicific._problem.linear import Goal, Linear, goals_of
from felicific._problem.numeric import NumericProblem, check_individual
from felicific._problem.requirement import Requirement, rows_of
from felicific._problem.unions import LeftOutBy, compared, unions_of
from felicific._program.aggregates import Aggregates
from felicific._program.calibration import Calibration, Method, calibrate
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.levels import Bins, level_aggregates
from felicific._program.numeric import AmountAggregates
from felicific._program.predicted import FINE, Predicted, Scale, sum_predicted
from felicific._program.solution import conflict_error, irreducible
from felicific._program.squares import Squares, solve_unseen, worth_of_people
from felicific._typing import GapLike
from felicific.exceptions import DataError, HappinessError

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
        What was asked, with the bounds of the amounts.
    policy : AmountPolicy
        With what it does to the people it was fitted on.
    sums, calibration :
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
        return goals_of(rows_of(self.problem.requirements, ends_of(self.problem, people, self.sums)))

    def moved(self, gap: GapLike) -> FittedAmounts:
        """The policy of least loss at another gap, found anew."""
        return self.solved(self.problem.with_widths(gap))

    def solved(self, problem: NumericProblem) -> FittedAmounts:
        """The same people under another problem."""
        return self._anew(problem, self.people, expected=self.policy.expected)

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
        if people.groups != self.sums.groups:
            raise DataError(
                f"The groups of the new people are {list(people.groups)}, those of the fit {list(self.sums.groups)}.",
                "Recalibrate on people of every group.",
            )
        sums = sum_predicted(replace(people, y=None), Scale.of(people.prediction))
        likely = replace(people, y=self.calibration.of(people.prediction, people.codes))
        moved = replace(self, sums=sums, people=likely, kept_residual=self.residual)
        return moved._anew(self.problem, likely, expected=True, out_of_fold=False)

    def _anew(
        self, problem: NumericProblem, people: People | None, *, expected: bool, **said: bool
    ) -> FittedAmounts:
        """The policy for people, found anew."""
        own = self.policy
        if people is None and own.sees_x:
            raise DataError(
                "An individual policy is moved by looking at the people again, and files never hold them.",
                "Fit it again; or take policies along the frontier before it is stored.",
            )
        how: dict[str, Any] = {
            "salt": own.salt,
            "randomize": own.randomize,
            "out_of_fold": own.out_of_fold,
        } | said
        policy = _Fit(
            problem, self.sums, self.calibration, people, self.kept_residual if expected else None
        ).policy(individual=own.sees_x, **how)
        return replace(self, problem=problem, policy=policy)

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


def fit_amounts(
    problem: NumericProblem,
    people: People,
    *,
    calibration: Method = "affine",
    salt: str,
    randomize: bool = True,
    out_of_fold: bool = False,
    individual: bool = False,
) -> FittedAmounts:
    """Fit a policy of amounts to people in memory; an ``individual`` one looks at each of them."""
    if individual:
        check_individual(problem)
    if people.y is None and problem.loss.looks_at_y:
        raise DataError(
            "The loss looks at labels y, and there are none.", "Pass y, one number for everybody."
        )
    sums = sum_predicted(people, Scale.of(people.prediction))
    how = {"salt": salt, "randomize": randomize, "out_of_fold": out_of_fold, "individual": individual}
    return _fitted(problem, sums, people, calibration, **how)


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
    return _fitted(problem, sums, None, calibration, salt=salt, randomize=randomize)


def _fitted(
    problem: NumericProblem, sums: Predicted, people: People | None, calibration: Method, **how: Any
) -> FittedAmounts:
    """Calibrate, find the bounds of the amounts, and solve."""
    lines = calibrate(sums, calibration, sees_group=problem.sees_group)
    ends = [lines.at(z, sums.ends[z]) for z in range(len(sums.groups))]
    problem = replace(problem, allowed=problem.allowed.within((float(np.min(ends)), float(np.max(ends)))))
    policy = _Fit(problem, sums, lines, people).policy(**how)
    return FittedAmounts(problem=problem, policy=policy, sums=sums, calibration=lines, people=people)


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


def _measured_on(people: People | None, sums: Predicted) -> tuple[People, float]:
    """The people that outcomes are measured on: themselves, else their bins with what labels vary within them."""
    return (people, 0.0) if people is not None else people_of_bins(sums)


def ends_of(problem: NumericProblem, people: People, sums: Predicted) -> Aggregates:
    """What the least and the largest amount are worth to every group, with whom gaps do not compare."""
    groups = Bins.of(people, sums.scale, sees_group=True, number=1)
    grid = np.array(problem.allowed.ends)
    ends = level_aggregates(problem, people, groups, people.prediction, grid, sums.rows)
    return ends.comparing(problem.requirements)


@dataclass(frozen=True, eq=False)
class _Fit:
    """What a policy is found from; of people without labels, ``residual`` is what these vary."""

    problem: NumericProblem
    sums: Predicted
    calibration: Calibration
    known: People | None
    residual: float | None = None

    @cached_property
    def ends(self) -> Aggregates:
        """What the least and the largest amount are worth to every group."""
        return ends_of(self.problem, _measured_on(self.known, self.sums)[0], self.sums)

    @cached_property
    def people(self) -> People:
        """The people, or their bins, with whom gaps do not compare."""
        return replace(_measured_on(self.known, self.sums)[0], left_out=self.left_out)

    @property
    def left_out(self) -> LeftOutBy:
        """Whom gaps do not compare."""
        problem, ends = self.problem, self.ends
        if problem.distance is None:
            return ends.left_out
        whom = problem.parity_whom
        _, few = compared(
            ends.groups, (), ends.people if whom.min_people < 1 else ends.seen, whom, problem.parity
        )
        return {**ends.left_out, **({problem.parity: few} if few.people else {})}

    @cached_property
    def within(self) -> float:
        """What labels vary that nobody's amount tells."""
        return _measured_on(self.known, self.sums)[1] + (self.residual or 0.0)

    def _stated(self, outcome: AmountOutcome) -> AmountOutcome:
        """An outcome, with what labels vary that nobody sees."""
        return replace(outcome, loss=outcome.loss + self.within)

    def policy(self, *, individual: bool = False, randomize: bool = True, **how: Any) -> AmountPolicy:
        """Solve, and measure on people."""
        if not individual:
            check_bins(self.problem, rows=self.known is not None)
        problem, people = self.problem, self.people
        baseline = self._stated(outcome_of_amounts(problem, people, people.decided_baseline))
        said = {
            "groups": self.sums.groups,
            "measures": problem.measures,
            "baseline": baseline if self.residual is None else replace(baseline, loss=math.nan),
            "asked": problem.widths_asked,
            "bounds": problem.allowed.ends,
            "listed": problem.allowed.listed,
            "loss_name": problem.loss.name,
            "sees_group": problem.sees_group,
            "expected": self.residual is not None,
            "roles": self.sums.roles,
            "attributes": self.sums.attributes,
            "left_out": people.left_out,
            **how,
        }
        found = self._weights(said) if individual else self._lines(said, randomize=randomize)
        return with_notes(problem, found, self.sums, self.calibration)

    def _lines(self, said: dict[str, Any], *, randomize: bool) -> AmountPolicy:
        """A line for every group, or one for all."""
        problem, people = self.problem, self.people

        def stated(lines: Sequence[Line]) -> AmountOutcome:
            return self._stated(outcome_of_lines(problem, people, lines, randomize=randomize))

        search = LineSearch(
            problem, people, self.sums, self.calibration, ranks_of(self.sums, self.known), stated
        )
        best = free = search.solve(unbound(problem))
        prices = dict.fromkeys(problem.widths_asked, 0.0)
        if not meets(problem, free.outcome):
            best = search.solve(problem)
            prices = best.prices
        policy = AmountPolicy(
            lines=best.lines if problem.sees_group else best.lines[:1],
            outcome=best.outcome,
            unconstrained=free.outcome,
            prices=prices,
            parity=problem.parity,
            randomize=randomize,
            **said,
        )
        lucky = people.weights[policy.drawing(people.prediction, policy.codes_of(people))].sum()
        return replace(policy, share_randomized=float(lucky / people.weights.sum()))

    def _weights(self, said: dict[str, Any]) -> AmountPolicy:
        """Weights of what one more unit is worth to each."""
        problem, people = self.problem, self.people
        bounds, n_groups = problem.allowed.ends, len(people.groups)
        calibrated = self.calibration.of(people.prediction, people.codes)
        batch, chances = people.batch, None if problem.sees_group else people.group_proba
        expected = worth_of_people(problem.happiness, batch, bounds, people.groups, chances)
        free = self._stated(outcome_of_amounts(problem, people, np.clip(calibrated, *bounds)))
        weights, prices = (
            np.zeros((n_groups, len(problem.measures))),
            dict.fromkeys(problem.widths_asked, 0.0),
        )
        if not meets(problem, free):
            real = expected
            if chances is not None:
                real = worth_of_people(problem.happiness, batch, bounds, people.groups, None)
            squares = Squares(
                calibrated, people.weights, people.codes, n_groups, real, self.ends.origin, bounds
            )
            rows = [row for row in rows_of(problem.requirements, self.ends) if isinstance(row, Linear)]
            answer = squares.solve(rows) if real is expected else solve_unseen(expected, squares, rows)
            if answer is None:
                raise conflict_error(irreducible([*rows], squares.meets), proven=real is expected)
            weights, prices = answer.weights, answer.prices(rows)
        policy = IndividualAmountPolicy(
            lines=(),
            outcome=free,
            unconstrained=free,
            prices=prices,
            parity="",
            weights=weights,
            calibration=self.calibration,
            happiness=problem.happiness,
            **said,
        )
        amounts = policy.given_worth(calibrated, people.codes, expected)
        return replace(policy, outcome=self._stated(outcome_of_amounts(problem, people, amounts)))


def meets(problem: NumericProblem, outcome: AmountOutcome) -> bool:
    """Whether amounts that nothing was asked of meet what was asked."""
    if any(not one.is_plain_gap for one in problem.requirements):
        return False
    return all(gap_of(problem, outcome, name) <= width for name, width in problem.widths_asked.items())


def with_notes(
    problem: NumericProblem, policy: AmountPolicy, sums: Predicted, calibration: Calibration
) -> AmountPolicy:
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
