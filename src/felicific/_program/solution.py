"""The solution of the program: found, checked in the user's units, or explained why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from felicific._problem.exploration import Chance
from felicific._problem.happiness import Measure
from felicific._problem.linear import FractionLevel, Goal, Linear, Rows, goals_of
from felicific._problem.requirement import Requirement, chances_of, rows_of
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.fractions import TOLERANCE as LEVEL
from felicific._program.fractions import (
    Answered,
    Level,
    UndecidedError,
    exchanged,
    find_level,
    fraction_level,
    least_eased,
)
from felicific._program.highs import TOLERANCE
from felicific._program.master import Answer, Master, solve_rows
from felicific._program.one_gap import one_gap, unasked
from felicific._program.program import Program
from felicific._typing import Floats, Lazy
from felicific.exceptions import InfeasibleError, SolverError

#: How far beside the best level of a fraction prices are looked at, relative to it, until it lies between.
BESIDE = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


#: What can be in conflict: rows, and chances that people keep.
Required = TypeVar("Required", bound=Rows | Chance)


@dataclass(frozen=True)
class Solution:
    """The optimum: the policy, what it does, and what each requirement costs.

    Attributes
    ----------
    q : array of shape (groups, signals, classes)
        Probability of every decision.
    outcome : Outcome
        Loss, group means and gaps, evaluated from ``q``.
    prices : dict of str to float
        For every gap (by measure name) and every other requirement (by its words): loss given up per unit
        by which it is tightened, what changed decisions cost included.
    goals : tuple of Goal
        What a policy is to remember of the requirements.
    level : Level or None
        Where fractions are compared, the level that was found and how well it is known.
    worth : array of shape (groups, measures), or None
        Of a mixture, what one more unit of every group's mean is worth.
    """

    q: Floats
    outcome: Outcome
    prices: dict[str, float]
    goals: tuple[Goal, ...] = ()
    level: Level | None = None
    worth: Floats | None = None


def solve_program(
    aggregates: Aggregates,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool = True,
    change_cost: ChangeCost = 0.0,
    tolerance: float = LEVEL,
    start: float | None = None,
) -> Solution:
    """Find the policy of least loss that meets every requirement; of several, the one nearest to the baseline.

    With a ``change_cost``, of least loss plus what changed decisions cost. Where
    fractions are compared, the loss is the least one but for ``tolerance``, relative to what decisions can change of
    it, and the search may ``start`` at the level of a neighbour.

    Raises
    ------
    InfeasibleError
        With the least reachable gap, or an irreducible set of conflicting requirements.
    SolverError
        When the answer fails its own check.
    """
    program, rows = written_program(aggregates, requirements, sees_group=sees_group, change_cost=change_cost)
    return _solved(aggregates, program, rows, tolerance, start)


def solve_beside_free(
    aggregates: Aggregates,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool = True,
    change_cost: ChangeCost = 0.0,
) -> tuple[Solution, Lazy[Solution]]:
    """The same, and what is best where nothing is required."""
    program, rows = written_program(aggregates, requirements, sees_group=sees_group, change_cost=change_cost)
    best = _solved(aggregates, program, rows)
    free = Lazy(lambda: _solved(aggregates, program.keeping([]), [])) if requirements else Lazy.of(best)
    return best, free


def written_program(
    aggregates: Aggregates,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool = True,
    change_cost: ChangeCost = 0.0,
) -> tuple[Program, list[Rows]]:
    """The program of some aggregates, where people keep the chances that are required, and the rows of the rest."""
    aggregates.check_complete()
    rows = rows_of(requirements, aggregates)
    chances = chances_of(requirements, aggregates.decisions.tolist(), aggregates.groups)
    return Program.of(aggregates, sees_group=sees_group, change_cost=change_cost, chances=chances), rows


def _solved(
    aggregates: Aggregates,
    program: Program,
    rows: Sequence[Rows],
    tolerance: float = LEVEL,
    start: float | None = None,
) -> Solution:
    """The checked solution of a program of some aggregates."""
    level = _level(program, rows, tolerance, start)
    swept = _by_hulls(program, linear_rows(rows)) if level is None else None
    if swept is not None:
        with suppress(SolverError):  # numbers that are hard to tell apart
            return _checked(program, aggregates, rows, *swept)
    return checked_solution(program, rows, level, aggregates)


def checked_solution(
    program: Program, rows: Sequence[Rows], level: Level | None = None, aggregates: Aggregates | None = None
) -> Solution:
    """The checked solution by the linear program; ``aggregates`` are those it was made of, if it holds others."""
    linear = linear_rows(rows, level)
    answer = solve_rows(program, linear)
    if answer is None:
        raise _explain(program, rows)
    prices = _prices_of(program, rows, linear, answer, level)
    sums = aggregates or program.aggregates
    return _checked(program, sums, rows, answer.q, answer.objective, prices, level, answer.worth)


def _checked(
    program: Program,
    aggregates: Aggregates,
    rows: Sequence[Rows],
    q: Floats,
    objective: float,
    prices: dict[str, float],
    level: Level | None = None,
    worth: Floats | None = None,
) -> Solution:
    check_solution(program, linear_rows(rows, level), q, objective)
    return Solution(q, aggregates.evaluate(q), prices, goals_of(rows), level, worth)


def _by_hulls(program: Program, rows: Sequence[Linear]) -> tuple[Floats, float, dict[str, float]] | None:
    """The policy, its cost and prices of a program that no solver is needed for; None of any other."""
    if program.lotteries is not None:  # whose chances have prices
        return None
    if not rows:
        free = unasked(program)
        return None if free is None else (*free, {})
    sweep = one_gap(program, rows)
    if sweep is None:
        return None
    if not sweep.feasible:
        raise _explain(program, rows)
    place = sweep.place(sweep.width)
    return sweep.policy(place), sweep.objective(place), sweep.price(place)


def _prices_of(
    program: Program,
    rows: Sequence[Rows],
    linear: Sequence[Linear],
    answer: Answer,
    level: Level | None = None,
) -> dict[str, float]:
    """Loss per unit of each requirement; requirements that read alike share a price."""
    prices = _prices(linear, answer)
    if level is not None:
        prices = _prices_at(program, rows, answer, prices, level.level)
    if program.lotteries is not None:
        prices |= program.lotteries.prices(program, answer)
    return prices


def _prices(linear: Sequence[Linear], answer: Answer) -> dict[str, float]:
    prices: dict[str, float] = {}
    for row, duals, level in zip(linear, answer.duals, answer.levels, strict=True):
        prices[row.name] = prices.get(row.name, 0.0) + row.price(duals, level, answer.means)
    return prices


def _prices_at(
    program: Program, rows: Sequence[Rows], answer: Answer, prices: dict[str, float], level: float
) -> dict[str, float]:
    r"""Prices at the best level t of the fractions that rows compare, from those where the level stays.

    The least loss :math:`L(t, \epsilon)` mostly has a kink at the best t, which moves with :math:`\epsilon`. With the
    slopes :math:`s_- \le 0 \le s_+` of L in t beside it, and the prices :math:`p_\pm` there, the price is
    :math:`(s_+ p_- - s_- p_+) / (s_+ - s_-)`: the mixture of both that a little more of t does not change.
    """
    place = next(i for i, row in enumerate(rows) if isinstance(row, FractionLevel))
    free = rows[place]
    assert isinstance(free, FractionLevel), "fractions are compared"
    if not answer.duals[place].any():
        return prices
    eased = free.between(level, level).eased(BESIDE[1])
    for step in BESIDE:
        each = []
        for side in (-1.0, 1.0):
            t = level + side * step * (abs(level) or 1.0)
            there = eased.between(t, t)
            linear = linear_rows(exchanged(rows, free, there))
            other = solve_rows(program, linear, nearest=False)
            if other is None:
                return prices
            slope = there.rows_by_level.slope(other.duals[place], 0.0, other.means)
            each.append((slope, _prices(linear, other)))
        (left, before), (right, after) = each
        if left <= 0.0 <= right and left < right:
            return {name: (right * before[name] - left * after[name]) / (right - left) for name in prices}
    return prices


def _level(program: Program, rows: Sequence[Rows], tolerance: float, start: float | None) -> Level | None:
    """The level at which fractions are compared, if they are."""
    free = fraction_level(rows)
    if free is None:
        return None
    level = None
    with suppress(UndecidedError):
        level = search_level(program, rows, free, tolerance * program.spread, start)
    if level is None:
        raise _explain(program, rows)
    return level


def linear_rows(rows: Sequence[Rows], level: Level | None = None) -> list[Linear]:
    """The rows as a program reads them, those of compared fractions at the level that was searched for."""
    linear = []
    for row in rows:
        if isinstance(row, FractionLevel):
            row = (row if level is None else row.between(level.level, level.level)).rows
        linear.append(row)
    return linear


def search_level(
    program: Program, rows: Sequence[Rows], free: FractionLevel, tolerance: float, start: float | None = None
) -> Level | None:
    """Branch and bound over the level of one of the rows; None when no level meets all of them."""

    def solve(row: FractionLevel) -> Answered | None:
        # Of equally good answers that which changes least may be all it takes.
        nearest = math.isinf(row.high - row.low)
        answer = solve_rows(program, linear_rows(exchanged(rows, free, row)), nearest=nearest)
        return None if answer is None else answered(answer, row)

    return find_level(free, solve, tolerance, start, _span(program, free))


def _span(program: Program, free: FractionLevel) -> tuple[float, float]:
    """The least and the largest fraction that a signal and a decision can have."""
    sums, (top, bottom) = program.aggregates, free.fraction.origin
    j, over = free.goal.j, free.fraction.over
    counted = sums.value[..., over] + bottom * sums.among[:, :, None, over]
    some = counted > program.rounding[over]
    fractions = (sums.value[..., j] + top * sums.among[:, :, None, j])[some] / counted[some]
    return float(fractions.min(initial=0.0)), float(fractions.max(initial=0.0))


def answered(answer: Answer, free: FractionLevel) -> Answered:
    """Loss and fractions of an answer."""
    return Answered(answer.value, free.fractions(answer.means))


def can_meet(program: Program, rows: Sequence[Rows]) -> bool:
    """Whether some policy meets these rows."""
    free = fraction_level(rows)
    if free is not None:
        return search_level(program, rows, free, math.inf) is not None
    linear = linear_rows(rows)
    sweep = one_gap(program, linear)
    return Master(program, linear).run(0.0) if sweep is None else sweep.feasible


def check_solution(program: Program, rows: Sequence[Linear], q: Floats, objective: float) -> None:
    """Compare what is required with what q really does, in the user's units."""
    aggregates = program.aggregates
    claimed = program.least_loss + objective * program.cost_scale
    faults = []
    allowed = TOLERANCE * max(program.cost_scale, abs(program.least_loss), program.largest_loss)
    real = program.value(q)
    if not abs(real - claimed) <= allowed:  # so written, a NaN fails too
        faults.append(f"the loss is {real!r}, not {claimed!r}")
    # The largest swing of a group's mean that decisions can cause is the natural unit of its errors.
    unit = np.maximum(program.swing, program.scales)
    means = aggregates.linear_means(q)
    faults += [f"it does not meet: {row.words}" for row in rows if not row.met(means, unit, TOLERANCE)]
    if program.lotteries is not None:
        chances = program.lotteries.missed(q, TOLERANCE)
        faults += [f"it does not meet: {chance.words}" for chance in chances]
    if faults:
        raise SolverError(
            "The solver's answer failed its check: " + "; ".join(faults) + ".",
            "Please report it, with the aggregates if you can share them.",
        )


def irreducible(rows: Sequence[Required], feasible: Callable[[list[Required]], bool]) -> list[Required]:
    """Reduce conflicting requirements to some that conflict, but no longer once any one of them is dropped.

    A deletion filter over the requirements as the user wrote them: drop each in turn, and leave it out for
    good when the rest still conflicts. What can be dropped together is tried together, so that a thousand floors take
    few tries; the outcome is the same, because more requirements never conflict less.
    """
    conflict, waiting = list(rows), [list(rows)]
    while waiting:
        block = waiting.pop()
        rest = [row for row in conflict if not any(row is one for one in block)]
        if not feasible(rest):
            conflict = rest
        elif len(block) > 1:
            half = len(block) // 2
            waiting += [block[half:], block[:half]]
    return conflict


def conflict_error(conflict: Sequence[Rows | Chance], *, proven: bool = True) -> InfeasibleError:
    """Say in words which requirements conflict; not ``proven`` when the search for a policy was not exhaustive."""
    words = tuple(row.words for row in conflict)
    several = len(words) > 1
    return InfeasibleError(
        f"{_none(proven)} meets: {'; '.join(words)}" + (", all at once." if several else "."),
        ("Relax or drop any one of them" if several else "Relax it") + ", or let the policy see more.",
        words,
    )


def _none(proven: bool) -> str:
    return "No policy of this kind" if proven else "No policy that was found"


def gap_error(
    row: Rows, measure: Measure, least: float, note: str = "", *, proven: bool = True
) -> InfeasibleError:
    """Say which gap can be reached when the one asked for cannot."""
    return InfeasibleError(
        f"{_none(proven)} brings the {row.words}: the least {'reachable gap' if proven else 'gap found'} is "
        f"{measure.quantity(rounded_up(least))}{note}.",
        "Allow at least that gap, or let the policy see more (another policy=).",
        (row.words,),
        least,
    )


def _explain(program: Program, rows: Sequence[Rows]) -> InfeasibleError:
    """Say why no policy meets the requirements: the least gap, or an irreducible conflict."""
    kept, proven = () if program.lotteries is None else program.lotteries.chances, True

    def feasible(some: Sequence[Rows | Chance]) -> bool:
        nonlocal proven
        chances = [one for one in some if isinstance(one, Chance)]
        there = program if len(chances) == len(kept) else program.keeping(chances)
        try:
            return can_meet(there, [one for one in some if not isinstance(one, Chance)])
        except UndecidedError:
            proven = False
            return False

    conflict = irreducible([*rows, *kept], feasible)
    row = conflict[0]
    if len(conflict) == 1 and isinstance(row, FractionLevel) and row.is_gap:
        return _least_fraction(program, row)
    if len(conflict) > 1 or not isinstance(row, Linear) or row.width is None:
        return conflict_error(conflict, proven=proven)
    program = program.keeping([])
    least, note = least_gap(program, row), ""
    measure, signal = program.aggregates.measures[row.goal.j], program.aggregates.signal
    relaxed = signal.relaxed()
    if relaxed is not None:
        free = replace(program.aggregates, signal=relaxed)
        least_free = least_gap(Program.of(free, sees_group=program.sees_group), row)
        if least_free < least * (1 - 1e-6):
            note = f" ({measure.quantity(rounded_up(least_free))} if it need not be monotone)"
    return gap_error(row, measure, least, note)


def _least_fraction(program: Program, row: FractionLevel) -> InfeasibleError:
    """Say which gap of a fraction can be reached, if somebody can be counted at all."""
    answer = solve_rows(program, [row.at_width(math.inf).rows])
    if answer is None:
        return conflict_error([row])
    fractions = answered(answer, row).ratios
    most = float(fractions.max() - fractions.min()) * (1.0 + 1e-9)
    least, proven = least_eased(lambda width: can_meet(program, [row.at_width(width)]), most)
    eased = row.at_width(least)
    level = search_level(program, [eased], eased, math.inf)
    there = None if level is None else solve_rows(program, linear_rows([eased], level), nearest=False)
    if there is not None:  # of few people a fraction moves by more than what is met but for rounding
        least = max(least, float(np.ptp(row.fractions(there.means))))
    return gap_error(row, program.aggregates.measures[row.goal.j], least, proven=proven)


def least_gap(program: Program, row: Linear) -> float:
    """Least gap of one measure that any policy reaches."""
    tight = row.at_width(0.0)
    sweep = one_gap(program, [tight])
    if sweep is not None:
        return sweep.least * sweep.scale
    wide = row.at_width(float(program.swing[row.goal.j]))
    answer = Master(program, [wide], on_ray=True).least()
    return row.reached(answer.means)


def rounded_up(number: float) -> float:
    """Six digits, rounded up: asking for the number that a message names must succeed."""
    if number == 0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(abs(number))) - 5)
    return math.ceil(number / digit) * digit
