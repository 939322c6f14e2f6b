"""Fit: from people to a policy of amounts, along its frontier, and to people without labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from felicific._amounts.allowed import Allowed
from felicific._amounts.calibration import Method, calibrate
from felicific._amounts.cells import Cells, cell_ground, check_cells, solve_cells
from felicific._amounts.frontier import AmountFrontier
from felicific._amounts.levels import level_aggregates, shared_grid, solve_levels
from felicific._amounts.outcome import (
    held_people,
    losses,
    numbers_of,
    outcome_of_amounts,
    outcome_of_lines,
    people_of_bins,
)
from felicific._amounts.people import AmountPeople
from felicific._amounts.problem import LinesProblem
from felicific._amounts.scale import FINE, Scale
from felicific._amounts.shapes import Ranks
from felicific._amounts.solve import SolvedLines, free_lines, means_of_amounts, ranks_of, solve_lines
from felicific._amounts.sums import AmountSums, sum_amounts
from felicific._audit.requirements import Stated
from felicific._people.evaluate import is_straight
from felicific._policy.amounts import AmountPolicy
from felicific._policy.lines import AmountOutcome, Calibration, Line
from felicific._problem.change import Intersections, harms_by_name, worst_harm
from felicific._problem.happiness import written
from felicific._problem.linear import goals_of
from felicific._problem.requirement import rows_of
from felicific._problem.requirements import left_out_by
from felicific._problem.unions import compared, unions_of
from felicific._typing import Floats, GapLike
from felicific.exceptions import DataError, HappinessError

#: A policy of amounts of whichever kind.
AnyPolicy = TypeVar("AnyPolicy", bound=AmountPolicy)

#: How often a distance is aimed at more tightly, because people in their bins turned out to be further apart.
TRIES = 4

#: A gap may be wider than asked for by this share of it, which is rounding.
MET = 1e-9

#: A distance that is missed by more is spoken of.
MISSED = 0.005

#: A bin that holds a larger share of a group is spoken of.
CROWDED = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedAmounts:
    """A policy of amounts with what it takes to move it.

    Attributes
    ----------
    problem : LinesProblem
        What was asked.
    policy : AmountPolicy
        With what it does to the people it was fitted on.
    sums, calibration, allowed :
        What lines are found from.
    people : AmountPeople, or None
        The people; never stored.
    kept_residual : float, or None
        Of people without labels, what labels varied around calibrated predictions before.
    """

    problem: LinesProblem
    policy: AmountPolicy
    sums: AmountSums
    calibration: Calibration
    allowed: Allowed
    people: AmountPeople | None
    kept_residual: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        # People stay out of files, and a frontier is solved again from what is kept.
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"people": None}

    @cached_property
    def frontier(self) -> AmountFrontier:
        """The least loss for every gap."""
        return AmountFrontier.of(self)

    @property
    def free(self) -> AmountPolicy:
        """The policy of least loss without any requirement."""
        return self.solved(replace(self.problem, requirements=(), parity_gap=math.inf)).policy

    @property
    def stated(self) -> Stated:
        """What was asked of the policy besides gaps of all groups, which other people are held against."""
        policy = self.policy
        people, _ = _measured_on(self.people, self.sums)
        _, sums = comparing(self.problem, people, self.sums)
        means = means_of_amounts(self.problem, sums, self.allowed, policy.baseline.means)
        asked = goals_of(rows_of(self.problem.requirements, means))
        return Stated(policy.groups, policy.measures, {}, asked)

    def moved(self, gap: GapLike) -> FittedAmounts:
        """The policy of least loss at another gap, found anew."""
        return self.solved(self.problem.with_widths(gap))

    def solved(self, problem: LinesProblem) -> FittedAmounts:
        """The same people under another problem."""
        people, within = _measured_on(self.people, self.sums)
        policy = _policy(
            problem, self.sums, self.calibration, self.allowed, people, within + (self.kept_residual or 0.0),
            salt=self.policy.salt, randomize=self.policy.randomize, out_of_fold=self.policy.out_of_fold,
            expected=self.policy.expected, rows=self.people is not None,
        )  # fmt: skip
        return replace(self, problem=problem, policy=policy)

    def recalibrated(self, people: AmountPeople) -> FittedAmounts:
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
        sums = sum_amounts(replace(people, y=None), Scale.of(people.prediction))
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


def check_new_people(people: AmountPeople, groups: tuple[Any, ...]) -> None:
    """Refuse people of other groups than those of the fit."""
    if people.groups != groups:
        raise DataError(
            f"The groups of the new people are {list(people.groups)}, those of the fit {list(groups)}.",
            "Recalibrate on people of every group.",
        )


def fit_amounts(
    problem: LinesProblem,
    people: AmountPeople,
    *,
    calibration: Method = "affine",
    salt: str,
    randomize: bool = True,
    out_of_fold: bool = False,
) -> FittedAmounts:
    """Fit a policy of amounts to people in memory."""
    scale = Scale.of(people.prediction)
    sums = sum_amounts(people, scale)
    if people.y is None and problem.loss.looks_at_y:
        raise DataError(
            "The loss looks at labels y, and there are none.", "Pass y, one number for everybody."
        )
    lines = calibrate(sums, calibration, sees_group=problem.sees_group)
    allowed = problem.allowed.within(range_of(sums, lines))
    if not problem.squared and problem.sees_group and not problem.of_people:
        grid = allowed.grid

        def cost(part: slice) -> Floats:
            some = people.take(np.arange(part.start, part.stop))
            return np.stack([losses(problem, some, np.full(len(some), level)) for level in grid.tolist()])

        sums = sum_amounts(people, scale, cost, len(grid))
    policy = _policy(
        problem, sums, lines, allowed, people, 0.0, salt=salt, randomize=randomize, out_of_fold=out_of_fold
    )
    return FittedAmounts(
        problem=problem, policy=policy, sums=sums, calibration=lines, allowed=allowed, people=people
    )


def fit_sums(
    problem: LinesProblem,
    sums: AmountSums,
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


def range_of(sums: AmountSums, calibration: Calibration) -> tuple[float, float]:
    """The least and the largest calibrated prediction."""
    ends = [calibration.at(z, sums.ends[z]) for z in range(len(sums.groups))]
    return float(np.min(ends)), float(np.max(ends))


def _measured_on(people: AmountPeople | None, sums: AmountSums) -> tuple[AmountPeople, float]:
    """The people that outcomes are measured on: themselves, else their bins with what labels vary within them."""
    return (people, 0.0) if people is not None else people_of_bins(sums)


def comparing(
    problem: LinesProblem, people: AmountPeople, sums: AmountSums
) -> tuple[AmountPeople, AmountSums]:
    """People and their sums, with whom the gaps of a problem do not compare."""
    numbers = numbers_of(problem, people)
    # Of a share of everybody the weights count, as in the sums.
    counts = problem.measures, people.groups, numbers, numbers_of(problem, people, weighed=True)
    left_out = left_out_by(problem.requirements, *counts)
    if problem.parity and problem.distance is not None:
        whom = problem.parity_whom
        every = held_people(people, weighed=whom.min_people < 1)
        _, few = compared(people.groups, (), every, whom, problem.parity)
        left_out |= {problem.parity: few} if few.people else {}
    return replace(people, left_out=left_out), replace(sums, left_out=left_out, counted=numbers)


def _policy(
    problem: LinesProblem,
    sums: AmountSums,
    calibration: Calibration,
    allowed: Allowed,
    people: AmountPeople,
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
    people, sums = comparing(problem, people, sums)

    def stated(lines: Sequence[Line]) -> AmountOutcome:
        outcome = outcome_of_lines(problem, people, lines, randomize=randomize)
        return replace(outcome, loss=outcome.loss + within)

    baseline = outcome_of_amounts(problem, people, people.decided_baseline)
    baseline = replace(baseline, loss=math.nan if expected else baseline.loss + within)
    ranks = ranks_of(sums, people if rows else None)
    free = free_lines(calibration, allowed, ranks) if problem.squared else None
    solver = _solver(problem, sums, calibration, allowed, people, ranks, baseline.means, stated)
    if free is None:
        free = solver(replace(problem, requirements=(), parity_gap=math.inf)).lines
    unconstrained = stated(free)
    lines, prices = free, dict.fromkeys(problem.widths_asked, 0.0)
    outcome = unconstrained
    if not meets(problem, unconstrained):
        lines, prices, outcome = _solved(problem, solver, stated)
    drawn = [line.drawing(people.prediction[people.codes == z]) >= 0 for z, line in enumerate(lines)]
    weights = [people.weights[people.codes == z] for z in range(len(lines))]
    lucky = sum(float(weight[some].sum()) for weight, some in zip(weights, drawn, strict=True))
    policy = AmountPolicy(
        groups=sums.groups,
        lines=lines if problem.sees_group else lines[:1],
        measures=problem.measures,
        outcome=outcome,
        baseline=baseline,
        unconstrained=unconstrained,
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
        left_out=sums.left_out,
    )
    return with_notes(problem, policy, sums, calibration)


def _solver(
    problem: LinesProblem,
    sums: AmountSums,
    calibration: Calibration,
    allowed: Allowed,
    people: AmountPeople,
    ranks: tuple[Ranks, ...],
    baseline: Floats,
    stated: Callable[[Sequence[Line]], AmountOutcome],
) -> Callable[[LinesProblem], SolvedLines]:
    """What finds lines for a problem of the same people, whatever the gaps asked for."""
    if problem.sees_group and not problem.of_people:
        return lambda aimed: solve_lines(
            aimed, sums, calibration, allowed, ranks, baseline, distance=aimed.distance
        )
    cells = Cells.of(people, sums.scale, sees_group=problem.sees_group)
    calibrated = calibration.of(people.prediction, people.codes)
    straight = allowed.listed is None and is_straight(
        problem.happiness, people.batch(slice(0, len(people))), allowed.ends
    )
    if straight and problem.squared:
        ground = cell_ground(problem, people, cells, calibrated, allowed.ends, baseline)
        return lambda aimed: solve_cells(aimed, ground, calibration, ranks, stated)
    grid = allowed.grid if problem.sees_group or allowed.listed else shared_grid(allowed)
    aggregates = level_aggregates(problem, people, cells, calibrated, grid)
    return lambda aimed: solve_levels(aimed, aggregates, cells, ranks, mean=straight and problem.convex)


def _solved(
    problem: LinesProblem,
    solver: Callable[[LinesProblem], SolvedLines],
    stated: Callable[[Sequence[Line]], AmountOutcome],
) -> tuple[tuple[Line, ...], dict[str, float], AmountOutcome]:
    """Lines that meet the gaps that were asked for; these are aimed at more tightly where bins hide some of them."""
    asked = problem.widths_asked
    aims, best, least = dict(asked), None, math.inf
    for _ in range(TRIES):
        aimed = problem if aims == asked else problem.with_widths(aims)
        solved = solver(aimed)
        outcome = stated(solved.lines)
        over = {name: _gap(problem, outcome, name) - width for name, width in asked.items()}
        worst = max((excess for excess in over.values()), default=0.0)
        if best is None or worst < least:
            best, least = (solved.lines, solved.prices, outcome), worst
        too_wide = [name for name, excess in over.items() if excess > MET * asked[name] and aims[name] > 0]
        if not too_wide:
            break
        aims |= {name: max(aims[name] - 1.1 * over[name] - 1e-4 * asked[name], 0.0) for name in too_wide}
    assert best is not None, "at least one was tried"
    return best


def _gap(problem: LinesProblem, outcome: AmountOutcome, name: str) -> float:
    """A gap of an outcome by its name."""
    if name == problem.parity:
        assert outcome.distance is not None, "it is measured"
        return outcome.distance.value
    return float(outcome.gaps[[part.name for part in problem.measures].index(name)])


def meets(problem: LinesProblem, outcome: AmountOutcome) -> bool:
    """Whether amounts that nothing was asked of meet what was asked."""
    if any(not one.is_plain_gap for one in problem.requirements):
        return False
    return all(_gap(problem, outcome, name) <= width for name, width in problem.widths_asked.items())


def with_notes(
    problem: LinesProblem, policy: AnyPolicy, sums: AmountSums, calibration: Calibration
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
    problem: LinesProblem, policy: AmountPolicy, sums: AmountSums, calibration: Calibration
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
