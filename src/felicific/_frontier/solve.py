"""Frontier: the least loss for every gap, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from felicific._frontier.breakpoints import Closing
from felicific._frontier.frontier import Frontier, cell_frontier
from felicific._policy.lottery import make_salt
from felicific._policy.solve import compared_sums, completed_sums, is_of_amounts, with_limited_losses
from felicific._problem.constraints import check_constraints
from felicific._problem.exploration import refuse_chances
from felicific._problem.requirement import Requirement, chances_of, rows_of
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, check_change_cost, resolved
from felicific._program.program import check_size
from felicific._typing import RandomState


def frontier(
    aggregates: Aggregates,
    *,
    gap: Mapping[str, float] | Sequence[str] | None = None,
    constraints: Iterable[Requirement] = (),
    move: Requirement | None = None,
    change_cost: ChangeCost = "auto",
    sees_group: bool = True,
    random_state: RandomState = None,
) -> Frontier | Any:
    """The exact trade-off between loss and gap; of a ratio, the least loss for some values of it.

    Parameters
    ----------
    aggregates : Aggregates
        The sums over the labelled people, see :func:`felicific.aggregate`.
    gap : dict of measure or criterion to number, or list of measures or criteria; optional
        Which gaps are closed; by default those of all measures. With several, their gaps shrink together: in the
        proportions of the numbers, or else of their gaps when nothing is asked of them.
    constraints : sequence of Gap, Ratio, Floor, Budget, WorseOff and Exploration
        Requirements that hold everywhere on the frontier, but for those that move.
    move : one of the constraints, optional
        What moves along the frontier, alone. By default every Gap, in the proportions of their numbers; without any,
        the first Ratio. Of a Ratio, Floor, Budget or WorseOff its number moves, at 21 values from the tightest on.
    change_cost : number or "auto"
        As for :func:`felicific.solve`. With one, the frontier is that of loss plus what changed decisions cost.
    sees_group : bool
        False for policies that decide alike in all groups.
    random_state : None, int or NumPy generator
        Where the lottery's salt comes from.

    Returns
    -------
    Frontier
        A cheap object: it is solved when it is first looked at.

    Examples
    --------
    >>> from felicific import aggregate, frontier
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> line = frontier(aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision"))
    >>> [round(float(gap), 6) for gap in line.gaps[:, 0]], [round(float(loss), 6) for loss in line.loss]
    ([0.0, 0.25], [0.125, 0.0])
    """
    if is_of_amounts(aggregates):
        return import_module("felicific._frontier.numeric").frontier_of_amounts(
            aggregates, gap=gap, constraints=constraints, move=move, change_cost=change_cost,
            sees_group=sees_group, random_state=random_state,
        )  # fmt: skip
    joined = completed_sums(aggregates).joined()
    listed = tuple(one.named(joined.choices) for one in check_constraints(constraints))
    joined = with_limited_losses(joined, listed)
    move = None if move is None else move.named(joined.choices)
    closing = Closing.of(gap, listed, joined.measures, move)
    joined = compared_sums(joined, closing.requirements)
    cost = resolved(joined, check_change_cost(change_cost))
    # What is wrong with the requirements is said at once.
    check_size(joined)
    rows_of(closing.requirements, joined)
    chances = chances_of(closing.requirements, joined.decisions.tolist(), joined.groups)
    refuse_chances(chances, len(joined.groups), sees_group=sees_group)
    return cell_frontier(
        joined, closing, sees_group=sees_group, salt=make_salt(random_state), change_cost=cost
    )
