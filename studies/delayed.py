r"""Delayed impact: what equal approval does to credit scores later (Liu, Dean, Rolf, Simchowitz and Hardt 2018).

A loan that is repaid raises the borrower's credit score by 75 points, a default lowers it by 150. With :math:`\pi_z(s)`
the share of group z at score s and :math:`\rho_z(s)` the share of them who repay, a policy q changes the group's mean
score by

.. math:: \Delta_z(q) = \sum_s \pi_z(s) \, q_z(s) \, (75 \rho_z(s) - 150 (1 - \rho_z(s))),

which is linear in q: a happiness. The lender gains 1 by a loan that is repaid and loses ``ratio`` by a default. Shares
and rates are those of the published tables, so the aggregates are the population's and nothing is sampled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from felicific import Floor, Happiness, Score, aggregate, frontier
from felicific.datasets import fico
from studies.experiment import crossings
from studies.results import plain, table

TITLE = "Delayed impact: credit scores after equal approval"
RATIOS = (4, 10)  # both of Liu et al.
CHANGE, APPROVED = "change of credit score", "selection rate"
UNHARMED = "no group worse than under the baseline"

#: What shrinks along each frontier.
CRITERIA = {
    "statistical parity": "statistical_parity",
    "equal opportunity": "equal_opportunity",
    "happiness parity": CHANGE,
    f"statistical parity, {UNHARMED}": "statistical_parity",
    f"happiness parity, {UNHARMED}": CHANGE,
}


def score_change(decision: Any, y: Any) -> Any:
    """Points by which a person's score changes: nothing without a loan."""
    return decision * np.where(y == 1, 75.0, -150.0)


def population(ratio: float) -> tuple[Any, float]:
    """Aggregates of all people, and the lowest score that the baseline approves.

    There is a row for every group, score level and outcome, weighted by how many they are. The loss is the negative
    profit per applicant. The baseline is the most profitable single cutoff on the score, for everybody.
    """
    tables = fico()
    share = tables.totals[:, None] * tables.share
    profit = (share * (tables.repay - ratio * (1 - tables.repay))).sum(axis=0)
    first = int(profit[::-1].cumsum()[::-1].argmax())
    boundary = float(tables.scores[first - 1] + tables.scores[first]) / 200
    n_groups, n_levels = share.shape
    people = {
        "group": np.repeat(tables.groups, 2 * n_levels),
        "score": np.tile(np.repeat(tables.scores / 100, 2), n_groups),
        "repaid": np.tile([1, 0], n_groups * n_levels),
        "number": np.stack([share * tables.repay, share * (1 - tables.repay)], axis=2).ravel(),
    }
    change = Happiness(score_change, name=CHANGE, unit="points", bounds=(-150.0, 75.0))
    found = aggregate(
        people,
        score="score",
        predicted=(people["score"] > boundary).astype(int),
        y="repaid",
        sensitive_features="group",
        happiness=[change, "statistical_parity", "equal_opportunity"],
        policy=Score(boundary=boundary),
        loss=[[0.0, ratio], [0.0, -1.0]],
        sample_weight="number",
    )
    return found, float(tables.scores[first])


def lend(ratio: float) -> pd.DataFrame:
    """One lender: a row for every criterion, breakpoint and group; the baseline is the criterion "baseline ..."."""
    people, cutoff = population(ratio)
    names = [measure.name for measure in people.measures]
    j = [names.index(CHANGE), names.index(APPROVED)]
    rows = []

    def add(criterion: str, gap: float, loss: float, means: Any) -> None:
        for group, (change, approved) in zip(people.groups, means[:, j].tolist(), strict=True):
            rows.append((criterion, gap, -loss, group, change, approved))

    add(f"baseline (cutoff {cutoff:g})", np.nan, people.baseline.loss, people.baseline.means)
    for name, closed in CRITERIA.items():
        kept = [Floor(CHANGE, at_least="baseline")] if name.endswith(UNHARMED) else []
        line = frontier(people, gap={closed: 1.0}, constraints=kept, change_cost=0)
        for gap, loss, means in zip(line.tau.tolist(), line.loss.tolist(), line.means, strict=True):
            add(name, gap, loss, means)
    return pd.DataFrame(rows, columns=["criterion", "gap", "profit", "group", "change", "approved"])


def lowest(lender: pd.DataFrame) -> pd.Series:
    """The baseline's row of the group that it approves least often: the one that equal approval means to help."""
    baseline = lender[lender["gap"].isna()]
    return baseline.loc[baseline["approved"].idxmin()]


def states_table(lender: pd.DataFrame) -> str:
    """Profit, and approval and change of every group, under the baseline and at every criterion's least gap."""
    rows, groups = [], list(lender["group"].unique())
    for name, along in lender.groupby("criterion", sort=False):
        first = along.head(len(groups))
        gap, profit = first["gap"].iloc[0], first["profit"].iloc[0]
        cells = [
            f"{100 * a:.1f} %, {c:+.2f}" for a, c in zip(first["approved"], first["change"], strict=True)
        ]
        rows.append([str(name), "" if np.isnan(gap) else plain(gap), f"{profit:.4f}", *cells])
    groups = [f"{group}: approved, change" for group in groups]
    return table(["decides", "least gap", "profit per applicant", *groups], rows)


def harm_sentences(lender: pd.DataFrame) -> list[str]:
    """Say in words where each criterion begins to harm the group approved least often."""
    group, now = lowest(lender)[["group", "change"]]
    found = []
    for name in CRITERIA:
        along = lender[(lender["criterion"] == name) & (lender["group"] == group)]
        gaps, change = along["gap"].to_numpy(), along["change"].to_numpy()
        text = f"{name}: {group} scores change by {change.max():+.2f} at best (at a gap of "
        text += (
            f"{plain(gaps[change.argmax()])}) and by {change[0]:+.2f} at its least gap of {plain(gaps[0])}; "
        )
        text += f"{now:+.2f} under the baseline."
        for what, level in (("They are worse off than under the baseline", now), ("Their scores fall", 0.0)):
            passed = crossings(gaps, change, level)
            below = [f"at gaps below {plain(min(passed))}"] if passed and change[0] < level else []
            above = [f"at gaps above {plain(max(passed))}"] if passed and change[-1] < level else []
            text += f" {what} {' and '.join(below + above)}." if below + above else ""
        found.append(text)
    return found


def delayed_text(lenders: dict[int, pd.DataFrame]) -> str:
    """The tables of the study, and the sentences about harm below them."""
    parts = []
    for ratio, lender in lenders.items():
        parts += [f"### A default costs {ratio} repaid loans", states_table(lender)]
        parts.append("\n".join(f"- {line}" for line in harm_sentences(lender)))
    return "\n\n".join(parts)
