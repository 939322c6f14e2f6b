r"""The cost of a change: what a decision that is not today's is charged beside the loss.

.. math:: \min_q \; \mathrm{loss}(q) + c \cdot \text{share of people whose decision is not today's}

Found on some people, the least loss promises more than others will see of it; a cost of changes keeps decisions where
they are unless changing them is worth it. ``"auto"`` takes the largest of some costs that does as well as the best on
people that nothing was fitted to: without requirements on all folds but one, valued on that one, and within one paired
standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from felicific._problem.loss import CHANGES, loss_bounds
from felicific._problem.rows import Requirement, rows_of
from felicific._program.moments import Moments
from felicific._typing import Codes, Floats
from felicific.exceptions import DataError, MomentsError

#: What ``change_cost=`` may say.
ChangeCost: TypeAlias = float | Literal["auto"]

#: Costs that "auto" tries, as shares of the largest loss less the smallest, where today's decisions do not meet what is
#: asked. No higher ones: folds value what nothing is required of, and where something is, they would outweigh the loss.
GRID = (0.0, 0.02, 0.05, 0.1, 0.2)

#: Where today's decisions meet all that is asked, nothing has to change: up to a cost at which nothing does.
WIDE = (*GRID, 0.35, 0.5, 0.75, 1.0)


def check_change_cost(cost: Any) -> ChangeCost:
    """Insist on "auto" or a number that is not negative."""
    if isinstance(cost, str) and cost == "auto":
        return "auto"
    if isinstance(cost, bool) or not isinstance(cost, Real) or not 0.0 <= float(cost) < np.inf:
        raise DataError(
            f"change_cost is {cost!r}.",
            "Give 'auto', or what one changed decision costs in the unit of the loss: 0 or more.",
        )
    return float(cost)


def cost_by_sums(
    moments: Moments, asked: ChangeCost, requirements: Sequence[Requirement] = (), *, see_group: bool = True
) -> float:
    """What a change costs a policy that sees the cells of some sums, which hold folds if that is left to them."""
    if asked != "auto":
        return asked
    if moments.listed or not moments.signal.weighs_changes(len(moments.classes)):
        return 0.0  # of listed decisions nobody measured what a cost does to new people
    if moments.loss_name == CHANGES:
        return 0.0
    if moments.labels is not None:
        return 0.0  # folds share what is supposed of missing labels, so none is of people that nothing was fitted to
    grid = WIDE if met_today(moments, requirements) else GRID
    return found_by_sums(moments, grid, see_group=see_group)


def met_today(moments: Moments, requirements: Sequence[Requirement]) -> bool:
    """Whether today's decisions meet all that is asked, on the people of these sums."""
    assert moments.today_value is not None, "decisions that are classes are known today"
    means = moments.today_value.sum(axis=1) / moments.divisor
    rows = rows_of(requirements, moments)  # a decision of today's leaves nobody a chance
    return all(row.chance is None and row.met(means[:, row.at], 0.0) for row in rows)


def found_by_sums(moments: Moments, grid: Sequence[float] = GRID, *, see_group: bool = True) -> float:
    """The cost that "auto" finds on the folds of some sums, whatever they see."""
    mass, loss, today = moments.fold_mass, moments.fold_loss, moments.fold_today
    if mass is None or loss is None or today is None:
        raise MomentsError(
            "change_cost='auto' is found on folds, and these moments have none.",
            "Sum up with moments(..., folds=5), or give change_cost= a number (0: changes are free).",
        )

    folds, closed = range(moments.folds), Closed.of(moments, see_group=see_group)

    def others(sums: Floats) -> Floats:
        """Sums over all folds but each, fold by fold, group by group."""
        return np.concatenate([sums[:, :, [g for g in folds if g != f]].sum(axis=2) for f in folds])

    losses, moved = others(loss), others(mass)[:, :, None] - others(today)
    own = np.moveaxis(loss, 2, 0)

    @cache
    def by_fold(cost: float) -> Floats:
        chosen = closed.least(losses + cost * moved).reshape(own.shape)
        return np.asarray(np.einsum("fzsd,fzsd->f", own, chosen))

    def left_out(f: int, cost: float) -> float:
        return float(by_fold(cost)[f])

    return largest_as_good(left_out, mass.sum(axis=(0, 1)), _reach(moments), grid)


def largest_as_good(
    left_out: Callable[[int, float], float], mass: Floats, reach: float, grid: Sequence[float] = GRID
) -> float:
    """The largest cost whose loss on people left out is within one paired standard error of the best.

    ``left_out(f, cost)`` is the sum of losses of fold f, of weight ``mass[f]``, under what the other folds choose.
    """
    held = np.flatnonzero(mass > 0).tolist()
    if reach <= 0.0 or len(held) < 2:
        return 0.0
    costs = reach * np.array(grid)
    losses = np.array([[left_out(f, cost) for f in held] for cost in costs.tolist()])
    best = losses[losses.sum(axis=1).argmin()]
    apart, total = losses - best, float(mass[held].sum())
    mean = apart.sum(axis=1) / total
    spread = np.square(apart - mean[:, None] * mass[held]).sum(axis=1)
    error = np.sqrt(spread * len(held) / (len(held) - 1)) / total
    as_good = mean <= error + 1e-12 * reach
    return float(costs[np.flatnonzero(as_good)[-1]])


def _reach(moments: Moments) -> float:
    """The largest loss less the smallest; where only sums are known, of the cells' means."""
    bounds = loss_bounds(moments.loss_name)
    if bounds is not None:
        return bounds[1] - bounds[0]
    held = moments.mass > 0
    means = moments.loss[held] / moments.mass[held][:, None]
    return float(means.max() - means.min())


@dataclass(frozen=True)
class Closed:
    """What the policy of least cost needs to know of a signal, where nothing is required: it has a closed form."""

    n_classes: int
    today: Codes
    chains: list[tuple[range, int]]
    alike: Codes | None
    see_group: bool
    n_groups: int

    @classmethod
    def of(cls, moments: Moments, *, see_group: bool) -> Closed:
        """Of the signal of some sums."""
        n, signal = len(moments.classes), moments.signal
        groups = len(moments.groups)
        return cls(n, signal.today(n), signal.chains(n), moments.alike(see_group), see_group, groups)

    def least(self, cost: Floats) -> Floats:
        """The policy of least ``cost[z, s, d]``; ties stay nearest to today's. Of several costs, one after the other.

        Where the probability of a decision may not fall along a chain of signals, it is taken from some signal on:
        from where the sum of what it costs more than the best other one is least.
        """
        times = len(cost) // self.n_groups
        alike = None if self.alike is None else np.tile(self.alike, (times, 1))
        if alike is not None:
            moved = np.zeros_like(cost)
            np.add.at(moved, (np.arange(len(cost))[:, None], alike), cost)
            cost = moved
        tables = cost if self.see_group else cost.reshape(times, self.n_groups, *cost.shape[1:]).sum(axis=1)
        whole = any(len(chain) == len(self.today) for chain, _ in self.chains)
        # Of decisions that cost the same, today's; a chain of all signals says it for all.
        chosen = np.empty(tables.shape[:2], dtype=np.intp) if whole else _cheapest(tables, self.today)
        for chain, decision in self.chains:
            part, here = tables[:, chain.start : chain.stop], self.today[chain.start : chain.stop]
            others = [d for d in range(self.n_classes) if d != decision]
            other = others[0] if len(others) == 1 else np.array(others)[part[:, :, others].argmin(axis=2)]
            extra = part[:, :, decision] - reduce(np.minimum, (part[:, :, d] for d in others))
            # What it costs to begin at each signal, or nowhere, more than to begin at the first.
            begin = np.concatenate([np.zeros((len(part), 1)), -extra.cumsum(axis=1)], axis=1)
            size = 1e-12 * np.abs(extra).sum(axis=1, keepdims=True)
            away = np.abs(np.arange(len(here) + 1) - np.flatnonzero(np.append(here == decision, True))[0])
            near = np.where(begin <= begin.min(axis=1, keepdims=True) + size, away, len(here) + 1)
            taken = np.arange(len(here)) >= near.argmin(axis=1)[:, None]
            chosen[:, chain.start : chain.stop] = np.where(taken, decision, other)
        q = np.repeat(np.eye(self.n_classes)[chosen], len(cost) // len(tables), axis=0)
        return np.asarray(q if alike is None else np.take_along_axis(q, alike[:, :, None], axis=1))


def _cheapest(cost: Floats, today: Codes) -> Codes:
    """The cheapest decision of every signal, today's where that costs no more."""
    own = cost[:, np.arange(len(today)), today]
    least = reduce(np.minimum, np.moveaxis(cost, 2, 0))  # faster than along the last axis, of few decisions
    return np.where(own <= least, today, cost.argmin(axis=2))
