"""The other way round: the least gap that policies of some cells reach at a loss, by one program and no frontier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from felicific._frontier.breakpoints import point_of
from felicific._policy.cells import CellPolicy, solve_cells
from felicific._problem.asked import requirements_of
from felicific._problem.rows import rows_of
from felicific._program.highs import Ray
from felicific._program.model import build, changes_of, policy_of
from felicific._program.moments import Moments
from felicific._typing import Floats


def least_gap_at(
    joined: Moments, widths: Floats, loss: float, *, see_group: bool, salt: str
) -> tuple[float, CellPolicy | None]:
    """The policy whose gaps are the least part of ``widths`` at no more than this loss, and that part.

    With one component its width does not matter. None, with the least loss there is, where no policy has so little.
    """
    cheapest = solve_cells(joined, (), see_group=see_group, salt=salt)
    names = [component.name for component in joined.components]
    gaps = dict(zip(names, widths.tolist(), strict=True))
    program = build(
        joined, rows_of(requirements_of(gaps, (), joined.components), joined), see_group=see_group
    )
    answer = Ray(program).least_at(loss, changes_of(program))
    if answer is None:
        return cheapest.loss, None
    q = policy_of(program, answer.columns)
    found = point_of(program, q)
    asked = {name: found.tau * width for name, width in gaps.items()}
    basis = replace(cheapest.basis, asked=asked)
    return found.tau, replace(cheapest, q=q, outcome=found.outcome, prices={}, basis=basis)


def widths_of(gaps: Floats) -> Floats:
    """Widths in the proportions of some gaps; one that is closed already is to stay nearly so."""
    present = gaps[gaps > 0]
    return np.where(gaps > 0, gaps, 1e-3 * present.min() if len(present) else 1.0)
