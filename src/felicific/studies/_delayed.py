r"""Delayed impact: what equal approval does to credit scores later (Liu, Dean, Rolf, Simchowitz and Hardt 2018).

A loan that is repaid raises the borrower's credit score by 75 points, a default lowers it by 150. With :math:`\pi_z(s)`
the share of group z at score s and :math:`\rho_z(s)` the share of them who repay, a policy q changes the group's mean
score by

.. math:: \Delta_z(q) = \sum_s \pi_z(s) \, q_z(s) \, (75 \rho_z(s) - 150 (1 - \rho_z(s))),

which is linear in q: a happiness. The lender gains 1 by a loan that is repaid and loses ``ratio`` by a default. Shares
and rates are those of the published tables, so the moments are the population's and nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from felicific._frontier.frontier import Frontier
from felicific._frontier.solve import frontier
from felicific._problem.happiness import Happiness
from felicific._problem.requirements import Budget, Floor
from felicific._program.moments import Moments, Outcome
from felicific._program.signals import Score
from felicific._program.sums import moments
from felicific._typing import Floats
from felicific.datasets import Fico, fico
from felicific.studies._tracks import write_csv

REPAID, DEFAULTED = 75.0, -150.0
RATIOS = (4.0, 10.0)  # both of Liu et al.
CHANGE, APPROVAL = "change of credit score", "statistical_parity(decision=1)"
UNHARMED = Floor(CHANGE, at_least="today")

#: Name, what shrinks along the frontier, and what must hold everywhere on it.
CRITERIA: dict[str, tuple[str, tuple[Floor | Budget, ...]]] = {
    "statistical parity": ("statistical_parity", ()),
    "equal opportunity": ("equal_opportunity", ()),
    "happiness parity": (CHANGE, ()),
    "statistical parity, no group worse than today": ("statistical_parity", (UNHARMED,)),
    "happiness parity, no group worse than today": (CHANGE, (UNHARMED,)),
}


def score_change(decision: Any, y: Any) -> Any:
    """Points by which a person's score changes: nothing without a loan."""
    return decision * np.where(y == 1, REPAID, DEFAULTED)


def cutoff(tables: Fico, ratio: float) -> int:
    """Position of the lowest score level of the most profitable single cutoff for everybody."""
    profit = (tables.totals[:, None] * tables.share * (tables.repay - ratio * (1 - tables.repay))).sum(axis=0)
    return int(profit[::-1].cumsum()[::-1].argmax())


def population(tables: Fico, ratio: float) -> Moments:
    """Moments of all people: a row for every group, score level and outcome, weighted by how many they are.

    The loss is the negative profit per applicant; today's decision is that of the most profitable single cutoff.
    """
    n_groups, n_levels = tables.share.shape
    share = tables.totals[:, None] * tables.share
    people = {
        "group": np.repeat(tables.groups, 2 * n_levels),
        "score": np.tile(np.repeat(tables.scores / 100, 2), n_groups),
        "repaid": np.tile([1, 0], n_groups * n_levels),
        "number": np.stack([share * tables.repay, share * (1 - tables.repay)], axis=2).ravel(),
    }
    first = cutoff(tables, ratio)
    boundary = float(tables.scores[first - 1] + tables.scores[first]) / 200
    return moments(
        people,
        proba=np.column_stack([1 - people["score"], people["score"]]),
        predicted=(people["score"] > boundary).astype(np.int64),
        y="repaid",
        sensitive_features="group",
        happiness=[
            Happiness(score_change, name=CHANGE, unit="points", bounds=(DEFAULTED, REPAID)),
            "statistical_parity",
            "equal_opportunity",
        ],
        policy=Score(boundary=boundary),
        loss=[[0.0, ratio], [0.0, -1.0]],
        sample_weight="number",
    ).joined()


@dataclass(frozen=True, eq=False)
class Credit:
    """One lender: today, and the frontier of every criterion."""

    ratio: float
    cutoff: float
    groups: tuple[str, ...]
    today: Outcome
    lines: dict[str, Frontier]

    @property
    def lowest(self) -> int:
        """The group that is approved least often today: the one that equal approval means to help."""
        return int(self.means(self.today, APPROVAL).argmin())

    def means(self, outcome: Outcome, name: str) -> Floats:
        """Group means of a component."""
        return np.asarray(outcome.means[:, self._position(name)])

    def path(self, criterion: str, name: str) -> Floats:
        """Group means of a component at the breakpoints, of shape (breakpoints, groups)."""
        return np.asarray(self.lines[criterion].means[:, :, self._position(name)])

    def _position(self, name: str) -> int:
        components = next(iter(self.lines.values())).components
        return [component.name for component in components].index(name)


def lend(ratio: float, tables: Fico | None = None) -> Credit:
    """Solve everything about one lender."""
    tables = fico() if tables is None else tables
    whole = population(tables, ratio)
    lines = {
        name: frontier(whole, gap={family: 1.0}, constraints=constraints)
        for name, (family, constraints) in CRITERIA.items()
    }
    return Credit(ratio, float(tables.scores[cutoff(tables, ratio)]), whole.groups, whole.today, lines)


def crossings(places: Floats, numbers: Floats, level: float) -> list[float]:
    """Where a piecewise straight line passes a level; touching it is not passing it."""
    above = numbers - level
    off = np.flatnonzero(np.abs(above) > 1e-9 * np.abs(above).max())
    found = []
    for i, j in pairwise(off.tolist()):
        if above[i] * above[j] < 0:
            # Either between two neighbours, or on a point that lies on the level itself.
            share = above[i] / (above[i] - above[j]) if j == i + 1 else 0.0
            at = i if j == i + 1 else i + 1
            found.append(float(places[at] + share * (places[j] - places[at])))
    return found


def facts(credit: Credit) -> dict[str, Any]:
    """Numbers of one lender, by name."""

    def by_group(numbers: Floats) -> dict[str, float]:
        return dict(zip(credit.groups, numbers.tolist(), strict=True))

    def state(outcome: Outcome) -> dict[str, Any]:
        return {
            "profit per applicant": -outcome.loss,
            "approved": by_group(credit.means(outcome, APPROVAL)),
            "change": by_group(credit.means(outcome, CHANGE)),
        }

    z = credit.lowest
    now = float(credit.means(credit.today, CHANGE)[z])
    found: dict[str, Any] = {
        "lost by a default per unit gained by a repaid loan": credit.ratio,
        "today": {"cutoff": credit.cutoff, **state(credit.today)},
        "group approved least often today": credit.groups[z],
        "criteria": {},
    }
    for name, line in credit.lines.items():
        change, eps = credit.path(name, CHANGE)[:, z], line.tau
        found["criteria"][name] = {
            "breakpoints": len(line),
            "least gap": {"eps": float(eps[0]), **state(line.points[0].outcome)},
            "least loss": {"eps": float(eps[-1]), **state(line.points[-1].outcome)},
            "best for that group": {"eps": float(eps[change.argmax()]), "change": float(change.max())},
            "eps at which that group passes today's change": crossings(eps, change, now),
            "eps at which that group's change passes 0": crossings(eps, change, 0.0),
        }
    return found


def frontiers_csv(lenders: list[Credit]) -> str:
    """Every breakpoint: the lender, the criterion, the allowed gap, profit, and both means of every group."""
    header = ["ratio", "criterion", "eps", "profit"]
    header += [f"{what} {group}" for what in ("change", "approved") for group in lenders[0].groups]
    rows = []
    for credit in lenders:
        for name, line in credit.lines.items():
            numbers = np.column_stack(
                [line.tau, -line.loss, credit.path(name, CHANGE), credit.path(name, APPROVAL)]
            )
            rows += [[f"{credit.ratio:g}", name, *(f"{n:.12g}" for n in row)] for row in numbers.tolist()]
    return write_csv(header, rows)


def run(say: Callable[[str], None]) -> list[Credit]:
    """Both lenders."""
    lenders = []
    for ratio in RATIOS:
        say(f"delayed: a lender to whom a default costs {ratio:g} repaid loans")
        credit = lend(ratio)
        for line in credit.lines.values():
            len(line)  # solved here, while the message says so
        lenders.append(credit)
    return lenders
