"""The solution of the program: found, checked in the user's units, or explained why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from felicific._problem.fractions import FractionGap, FreeLevel
from felicific._problem.happiness import Measure
from felicific._problem.linear import Goal, Rows, goals_of
from felicific._problem.requirement import Requirement, rows_of
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.fractions import TOLERANCE as LEVEL
from felicific._program.fractions import (
    Answered,
    Level,
    exchanged,
    find_level,
    free_row,
    least_eased,
    loss_spread,
)
from felicific._program.highs import Answer, Levels, run_model
from felicific._program.model import TOLERANCE, Program, build, changes_of, policy_of, priced, prices_of
from felicific._program.one_gap import one_gap, unasked
from felicific._typing import Floats, Lazy
from felicific.exceptions import InfeasibleError, SolverError

#: How far beside the best level of a fraction prices are looked at, relative to it, until it lies between.
BESIDE = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


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
    program = _asked(aggregates, requirements, sees_group, change_cost)
    return _solved(aggregates, program, tolerance, start)


def solve_beside_free(
    aggregates: Aggregates,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool = True,
    change_cost: ChangeCost = 0.0,
) -> tuple[Solution, Lazy[Solution]]:
    """The same, and what is best where nothing is required."""
    program = _asked(aggregates, requirements, sees_group, change_cost)
    found = _solved(aggregates, program)
    free = Lazy(lambda: _solved(aggregates, program.asking([]))) if requirements else Lazy.of(found)
    return found, free


def _asked(
    aggregates: Aggregates, requirements: Sequence[Requirement], sees_group: bool, change_cost: ChangeCost
) -> Program:
    aggregates.check_complete()
    rows = rows_of(requirements, aggregates)
    return build(aggregates, rows, sees_group=sees_group, change_cost=change_cost)


def _solved(
    aggregates: Aggregates, asked: Program, tolerance: float = LEVEL, start: float | None = None
) -> Solution:
    """The checked solution of a program of some aggregates."""
    level, program = _level(asked, tolerance, start), asked
    if level is not None:
        program = asked.asking(at_level(asked.rows, level.level))

    def checked(q: Floats, objective: float, prices: dict[str, float]) -> Solution:
        check_solution(program, q, objective)
        return Solution(q, aggregates.evaluate(q), prices, goals_of(asked.rows), level)

    try:
        return checked(*(_by_hulls(program) or _by_program(program, level)))
    except SolverError:  # numbers that are hard to tell apart: cell by cell, with all the care there is
        return checked(*_by_program(program, level, plain=True))


def _by_hulls(program: Program) -> tuple[Floats, float, dict[str, float]] | None:
    """The policy, its cost and prices of a program that no solver is needed for; None of any other."""
    if not program.rows:
        free = unasked(program)
        return None if free is None else (*free, {})
    found = one_gap(program, program.rows)
    if found is None:
        return None
    if not found.feasible:
        raise _explain(program)
    place = found.place(found.width)
    return found.policy(place), found.objective(place), found.price(place)


def _by_program(
    program: Program, level: Level | None, *, plain: bool = False
) -> tuple[Floats, float, dict[str, float]]:
    """The same by a linear program."""
    answer = run_model(program, program.rows, changes=changes_of(program), plain=plain)
    if not answer.feasible:
        answer = _within_rounding(program)
    prices = prices_of(program, answer) if level is None else prices_at(program, answer, level.level)
    objective = program.charged(answer.columns)
    return policy_of(program, answer.columns), objective, prices


def prices_at(program: Program, answer: Answer, level: float) -> dict[str, float]:
    r"""Prices at the best level t of the fractions that the rows of a program compare.

    The least loss :math:`L(t, \epsilon)` mostly has a kink at the best t, which moves with :math:`\epsilon`. With the
    slopes :math:`s_- \le 0 \le s_+` of L in t beside it, and the prices :math:`p_\pm` there, the price is
    :math:`(s_+ p_- - s_- p_+) / (s_+ - s_-)`: the mixture of both that a little more of t does not change.
    """
    found = prices_of(program, answer)
    place = next(i for i, row in enumerate(program.rows) if isinstance(row, FreeLevel))
    free = cast(FreeLevel, program.rows[place])
    if not found[free.name]:
        return found
    eased = free.eased(BESIDE[1])
    program, free = program.asking(exchanged(program.rows, free, eased)), eased
    model = Levels(program, program.rows, free)
    for step in BESIDE:
        beside = []
        for side in (-1.0, 1.0):
            t = level + side * step * (abs(level) or 1.0)
            there = program.asking(exchanged(program.rows, free, free.between(t, t)))
            other = model.at(cast(FreeLevel, there.rows[place]))
            if not other.feasible:
                return found
            beside.append((free.slope(*priced(there, other, place)), prices_of(there, other)))
        (left, before), (right, after) = beside
        if left <= 0.0 <= right and left < right:
            return {name: (right * before[name] - left * after[name]) / (right - left) for name in found}
    return found


def _level(program: Program, tolerance: float, start: float | None) -> Level | None:
    """The level at which fractions are compared, if they are."""
    free = free_row(program.rows)
    if free is None:
        return None
    level = search_level(program, program.rows, free, tolerance * loss_spread(program), start)
    if level is None:
        raise _explain(program)
    return level


def at_level(rows: Sequence[Row], level: float) -> list[Row]:
    """The rows, with the level of the one that was searched for."""
    return [row.between(level, level) if isinstance(row, FreeLevel) else row for row in rows]


def search_level(
    program: Program, rows: Sequence[Row], free: FreeLevel, tolerance: float, start: float | None = None
) -> Level | None:
    """Branch and bound over the level of one of the rows; None when no level meets all of them."""
    model = Levels(program, rows, free)

    def solve(row: FreeLevel) -> Answered | None:
        if math.isinf(
            row.high - row.low
        ):  # of equally good answers that which changes least, which may be all it takes
            answer = run_model(program, exchanged(rows, free, row), changes=changes_of(program))
        else:
            answer = model.at(row)
        return answered(program, answer, row) if answer.feasible else None

    return find_level(free, solve, tolerance, start)


def answered(program: Program, answer: Answer, free: FreeLevel) -> Answered:
    """Loss and fractions of an answer."""
    means = program.aggregates.linear_means(policy_of(program, answer.columns))
    top, bottom = free.fraction.parts(means[:, [free.fraction.j, free.fraction.over]])
    objective = program.charged(answer.columns)
    return Answered(program.least_loss + objective * program.cost_scale, top / np.maximum(bottom, 1e-300))


def can_meet(program: Program, rows: Sequence[Row]) -> bool:
    """Whether some policy meets these rows."""
    free = free_row(rows)
    if free is None:
        found = one_gap(program, rows)
        return run_model(program, rows).feasible if found is None else found.feasible
    return search_level(program, rows, free, math.inf) is not None


def _within_rounding(program: Program) -> Answer:
    """Meet requirements that only rounding keeps out of reach, such as the least gap itself; else explain."""
    elastic = run_model(program, program.rows, elastic=True)
    largest = max(1.0, float(np.abs(program.constants - program.constants.mean(axis=0)).max(initial=0.0)))
    excess = float(elastic.columns[-1]) if elastic.feasible else math.inf
    limit = max(TOLERANCE, 1e-14 * largest)
    if excess > limit:
        raise _explain(program)
    scales = {
        owner: row.scale for owner, row in zip(elastic.model.owners, elastic.model.written, strict=True)
    }
    for margin in (1e-12, 1e-10, limit, 10 * limit):
        wider = [
            row.relaxed((excess + margin) * scales.get(position, 1.0))
            for position, row in enumerate(program.rows)
        ]
        answer = run_model(program, wider, changes=changes_of(program))
        if answer.feasible:
            return answer
    raise _explain(program)


def check_solution(program: Program, q: Floats, objective: float) -> None:
    """Compare what was asked with what q really does, in the user's units."""
    aggregates = program.aggregates
    claimed = program.least_loss + objective * program.cost_scale
    faults = []
    allowed = TOLERANCE * max(program.cost_scale, abs(program.least_loss), program.largest_loss)
    found = program.value(q)
    if not abs(found - claimed) <= allowed:  # so written, a NaN fails too
        faults.append(f"the loss is {found!r}, not {claimed!r}")
    # The largest swing of a group's mean that decisions can cause is the natural unit of its errors.
    swing = program.swing
    means = aggregates.linear_means(q)
    for row in program.rows:
        unit = 1.0 if row.chance is not None else max(float(swing[row.j]), float(program.scales[row.j]))
        told = means[:, row.at] if row.chance is None else program.chances(row.chance, q)
        if not row.met(told, TOLERANCE * unit):
            faults.append(f"it does not meet: {row.words}")
    if faults:
        raise SolverError(
            "The solver's answer failed its check: " + "; ".join(faults) + ".",
            "Please report it, with the aggregates if you can share them.",
        )


def irreducible(rows: Sequence[Row], feasible: Callable[[list[Row]], bool]) -> list[Row]:
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


def conflict_error(conflict: Sequence[Row], *, proven: bool = True) -> InfeasibleError:
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
    row: Row, measure: Measure, least: float, note: str = "", *, proven: bool = True
) -> InfeasibleError:
    """Say which gap can be reached when the one asked for cannot."""
    return InfeasibleError(
        f"{_none(proven)} brings the {row.words}: the least {'reachable gap' if proven else 'gap found'} is "
        f"{measure.quantity(rounded_up(least))}{note}.",
        "Allow at least that gap, or let the policy see more (another policy=).",
        (row.words,),
        least,
    )


def _explain(program: Program) -> InfeasibleError:
    """Say why no policy meets the requirements: the least gap, or an irreducible conflict."""
    conflict = irreducible(program.rows, lambda rows: can_meet(program, rows))
    row = conflict[0]
    if len(conflict) == 1 and isinstance(row, FractionGap):
        return _least_fraction(program, row)
    if len(conflict) > 1 or row.width is None:
        return conflict_error(conflict)
    least, note = least_gap(program, row), ""
    measure, signal = program.aggregates.measures[row.j], program.aggregates.signal
    relaxed = signal.relaxed()
    if relaxed is not None:
        free = replace(program.aggregates, signal=relaxed)
        least_free = least_gap(build(free, program.rows, sees_group=program.sees_group), row)
        if least_free < least * (1 - 1e-6):
            note = f" ({measure.quantity(rounded_up(least_free))} if it need not be monotone)"
    return gap_error(row, measure, least, note)


def _least_fraction(program: Program, row: FractionGap) -> InfeasibleError:
    """Say which gap of a fraction can be reached, if somebody can be counted at all."""
    answer = run_model(program, [row.within(math.inf)])
    if not answer.feasible:
        return conflict_error([row])
    ratios = answered(program, answer, row).ratios
    most = float(ratios.max() - ratios.min()) * (1.0 + 1e-9)
    least = least_eased(lambda width: can_meet(program, [row.within(width)]), most)
    return gap_error(row, program.aggregates.measures[row.j], least)


def least_gap(program: Program, row: Row) -> float:
    """Least gap of one measure that any policy reaches."""
    tight = program.asking([row.moved(0.0)])
    found = one_gap(program, tight.rows)
    if found is not None:
        return found.least * found.scale
    answer = run_model(tight, tight.rows, elastic=True)
    if not answer.feasible:
        raise SolverError("The least gap has no answer.", "Please report it, with the aggregates if you can.")
    return row.reached(program.aggregates.relative_means(policy_of(program, answer.columns))[:, row.at])


def rounded_up(number: float) -> float:
    """Six digits, rounded up: asking for the number that a message names must succeed."""
    if number == 0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(abs(number))) - 5)
    return math.ceil(number / digit) * digit
