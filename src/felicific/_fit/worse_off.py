"""What it costs that fewer people lose: the same requirements with a limit on who is worse off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from felicific._problem.happiness import LOSES
from felicific._problem.rows import Requirement
from felicific._problem.worse_off import WorseOff
from felicific._program.aggregates import Aggregates, Outcome
from felicific._program.change_cost import ChangeCost
from felicific._program.solution import solve_program
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError

#: What is left of the largest share of a group that loses, row by row.
LEFT = (0.5, 0.25, 0.0)


class WorseOffRow(NamedTuple):
    """The policy of least loss where few people lose.

    Attributes
    ----------
    at_most : float
        Share of each group that may get less than from the baseline's decision; of the first row what the policy
        itself does.
    loss : float or None
        Its loss; None where no policy meets the other requirements as well.
    loses : dict of group to float, or None
        Share of each group that gets less.
    """

    at_most: float
    loss: float | None
    loses: dict[object, float] | None


def price_of_worse_off(
    sums: Aggregates,
    q: Floats,
    requirements: Sequence[Requirement],
    *,
    sees_group: bool,
    change_cost: ChangeCost = 0.0,
) -> list[WorseOffRow]:
    """The loss of the policy ``q``, and of those where half as many lose, a quarter, and nobody; none if nobody does.

    ``sums`` count who loses.
    """
    names = [measure.name for measure in sums.measures]
    if LOSES not in names:  # of what is measured nobody can lose
        return []
    j = names.index(LOSES)

    def row(at_most: float, outcome: Outcome) -> WorseOffRow:
        shares = outcome.means[:, j].clip(min=0.0).tolist()
        return WorseOffRow(at_most, outcome.loss, dict(zip(sums.groups, shares, strict=True)))

    own = sums.evaluate(q)
    most = float(np.nanmax(own.means[:, j]))
    if most <= 1e-9:
        return []
    found = [row(most, own)]
    for left in LEFT:
        limit = WorseOff(left * most, groups=sums.groups)
        asked = (*requirements, limit)
        try:
            solution = solve_program(sums, asked, sees_group=sees_group, change_cost=change_cost)
            found.append(row(limit.at_most, solution.outcome))
        except InfeasibleError:
            found.append(WorseOffRow(limit.at_most, None, None))
    return found
