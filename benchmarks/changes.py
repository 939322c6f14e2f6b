"""What ``change_cost="auto"`` does to people it was not fitted on, beside free changes, for every kind of policy.

    python benchmarks/changes.py [--seeds 4] [--only score] [--first-seed 0]

A model is fitted on some rows, the policy on others, and everything is measured on the rest by decision probabilities.
A cell is a data set, or a small or a rare-group draw of one, with a criterion; differences are paired means over seeds.
Fills its block of docs/evidence/policies.md when every kind is measured.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from shared import EVIDENCE, fill, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import OrdinalEncoder

from felicific._fit.fit import fit_policy
from felicific._fit.fitted import achieved
from felicific._people.folds import folds_by_key
from felicific._people.people import People
from felicific._policy.fit_individual import found_by_people
from felicific._policy.lottery import faces_lottery, make_salt
from felicific._problem.problem import Problem
from felicific._program.changes import cost_by_sums, found_by_sums
from felicific._program.signals import Individual, Score
from felicific._program.summing import sum_people
from felicific.datasets import adult, financial_loans, synthetic_loans
from felicific.exceptions import InfeasibleError

GAPS = {"0": 0.0, ".05": 0.05, "slack": None}
CRITERIA = ("statistical_parity", "equalized_odds")
KINDS: dict[str, Any] = {"score": Score(), "individual": Individual()}
TRAINED, TESTED = 3_000, 12_000


@dataclass(frozen=True)
class Data:
    """Rows of one data set: features as numbers, labels 0, 1, ..., and groups."""

    x: Any
    y: Any
    group: Any


@dataclass(frozen=True)
class Draw:
    """What one cell is drawn like: from which data, how many rows, and how many of them of the last group."""

    name: str
    data: Callable[[], Data]
    rows: int
    rare: int | None = None
    multiclass: bool = False


def _plain(frame: Any) -> Any:
    text = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    numbers = frame.copy()
    numbers[text] = OrdinalEncoder().fit_transform(frame[text].astype(str))
    return numbers.to_numpy(dtype=np.float64)


@cache
def adult_by(group: str) -> Data:
    """Adult by sex, or by race (White and Black)."""
    found = adult()
    keep = found.X["race"].isin(["White", "Black"]).to_numpy() if group == "race" else slice(None)
    frame = found.X[keep]
    codes = (frame[group].astype(str) == {"sex": "Female", "race": "Black"}[group]).to_numpy(dtype=int)
    return Data(_plain(frame), np.asarray(found.y)[keep].astype(int), codes)


@cache
def hours() -> Data:
    """Adult in three classes: below 40 hours a week, 40, above; predicted from the rest and the income."""
    found = adult()
    name = next(name for name in found.X if "hours" in name)
    worked = found.X[name].to_numpy()
    frame = found.X.drop(columns=name).assign(income=np.asarray(found.y))
    codes = (frame["sex"].astype(str) == "Female").to_numpy(dtype=int)
    return Data(_plain(frame), np.digitize(worked, [40, 41]), codes)


@cache
def loans() -> Data:
    """The financial loans by age group (the public file if it is at hand, else the simulator's)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = financial_loans()
    frame = found.X.drop(columns=[name for name in found.X if "Date" in name])
    names = frame["age_group"].astype(str)
    return Data(
        _plain(frame), np.asarray(found.y).astype(int), (names == sorted(set(names))[0]).to_numpy(int)
    )


@cache
def synthetic() -> Data:
    """The synthetic loans."""
    found = synthetic_loans(24_000)
    codes = (found.X["sex"].astype(str) == "Female").to_numpy(int)
    return Data(_plain(found.X), np.asarray(found.y).astype(int), codes)


def _draws() -> list[Draw]:
    sex, race = (lambda: adult_by("sex")), (lambda: adult_by("race"))
    found = [Draw("Adult", sex, 5_000), Draw("loans", loans, 5_000), Draw("synthetic", synthetic, 5_000)]
    found += [Draw(f"Adult, {n} rows", sex, n) for n in (200, 500, 1_000)]
    found += [Draw(f"Adult, {n} rows of a group", race, 1_500, n) for n in (30, 60, 100)]
    return found + [Draw(f"Adult hours, {n} rows", hours, n, None, True) for n in (1_000, 5_000)]


def split(draw: Draw, seed: int) -> tuple[Data, Any, Any, Any]:
    """Data, and numbers of the rows to train the model on, to fit the policy on and to measure on."""
    data, rng = draw.data(), np.random.default_rng(seed)
    order = rng.permutation(len(data.y))
    trained, rest = order[:TRAINED], order[TRAINED:]
    if draw.rare is None:
        return data, trained, rest[: draw.rows], rest[draw.rows : draw.rows + TESTED]
    of_group = data.group[rest] == 1
    fitted = np.concatenate([rest[of_group][: draw.rare], rest[~of_group][: draw.rows]])
    left = np.setdiff1d(rest, fitted, assume_unique=True)
    return data, trained, fitted, rng.permutation(left)[:TESTED]


def asked(labels: int, criterion: str, gap: float | None, loss: Any = "error") -> Problem:
    """What is required of the policy."""
    return Problem.of(np.arange(labels), criterion, loss=loss, gap=gap)


def people_of(data: Data, rows: Any, proba: Any, problem: Problem) -> People:
    """Some rows as people in five folds."""
    return People.of(
        data.x[rows],
        problem,
        group=data.group[rows],
        y=data.y[rows],
        proba=proba,
        fold=folds_by_key(rows, 5),
        n_folds=5,
    ).with_scores


def found(kind: Any, problem: Problem, people: People) -> float:
    """The cost that "auto" finds, whether it is the default of the kind or not."""
    if kind.sees_x:
        return found_by_people(problem, people, kind)
    sums = sum_people(people, problem, kind).joined()
    if kind.weighs_changes(len(problem.labels)):
        return cost_by_sums(sums, "auto", problem.requirements)
    return found_by_sums(sums)


def measured(policy: Any, problem: Problem, people: People) -> list[float]:
    """Accuracy, largest gap, and shares of people changed and drawn by lottery."""
    odds = policy.odds_of(people)
    outcome = achieved(problem, people, odds)
    changed = 1.0 - odds[np.arange(len(odds)), people.decisions_today()].mean()
    return [1.0 - outcome.loss, float(outcome.gaps.max()), float(changed), float(faces_lottery(odds).mean())]


def compared(draw: Draw, kind: Any, seed: int) -> Iterator[tuple[str, str, float, list[float], list[float]]]:
    """For every criterion and gap: the cost found, and what is measured with free changes and with that cost."""
    data, trained, fitted, tested = split(draw, seed)
    model = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
    model.fit(data.x[trained], data.y[trained])
    labels = int(data.y.max()) + 1
    plain = asked(labels, CRITERIA[0], None)
    here, there = (
        people_of(data, rows, model.predict_proba(data.x[rows]), plain) for rows in (fitted, tested)
    )
    salt = make_salt(seed)
    for criterion in CRITERIA[:1] if draw.multiclass else CRITERIA:
        for name, gap in GAPS.items():
            problem = asked(labels, criterion, gap)
            cost = found(kind, problem, here)
            try:
                both = [
                    measured(fit_policy(problem, here, kind, salt=salt, change_cost=c).policy, problem, there)
                    for c in (0.0, cost)
                ]
            except InfeasibleError:
                continue
            yield criterion, name, cost, *both


def rows_of(cells: dict[tuple[str, str, str, str], Any]) -> list[list[str]]:
    """A line of the table for every kind of policy and gap."""
    lines = []
    for kind in dict.fromkeys(key[0] for key in cells):
        for gap in GAPS:
            means = np.array(
                [np.mean(cells[key], axis=0) for key in cells if key[0] == kind and key[3] == gap]
            )
            if not len(means):
                continue
            apart = means[:, 1] - means[:, 0]
            free, cost = means.mean(axis=0)
            lines.append(
                [
                    kind,
                    gap,
                    f"{100 * apart[:, 0].mean():+.2f}",
                    f"{(apart[:, 0] >= -1e-9).sum()} of {len(apart)}",
                    f"{100 * apart[:, 0].min():+.2f}",
                    f"{apart[:, 1].mean():+.4f}",
                    f"{free[2]:.1%} -> {cost[2]:.1%}",
                    f"{free[3]:.1%} -> {cost[3]:.1%}",
                ]
            )
    return lines


HEAD = [
    "policy",
    "gap asked",
    "accuracy (points)",
    "not worse in",
    "worst",
    "test gap",
    "people changed",
    "lottery",
]


def wrong_threshold(seeds: range, rows: int = 1_500) -> list[str]:
    """Test loss where one mistake costs ten times the other, so that today's threshold is wrong, by cost of changes."""
    matrix = [[0.0, 1.0], [10.0, 0.0]]
    kind, losses, costs = Score(), [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        group, score = rng.integers(0, 2, 20_000), rng.beta(2, 2, 20_000)
        data = Data(score[:, None], (rng.random(20_000) < score).astype(int), group)
        problem = asked(2, CRITERIA[0], None, matrix)
        here, there = (
            people_of(data, part, score[part], problem)
            for part in (np.arange(rows), np.arange(rows, len(score)))
        )
        costs.append(found(kind, problem, here))
        tried = (0.0, costs[-1], 10.0)
        policies = [
            fit_policy(problem, here, kind, salt=make_salt(seed), change_cost=c).policy for c in tried
        ]
        losses.append([achieved(problem, there, policy.odds_of(there)).loss for policy in policies])
    free, auto, never = np.mean(losses, axis=0)
    chosen = ", ".join(f"{cost:g}" for cost in sorted(set(costs)))
    return [f"{free:.4f}", f"{auto:.4f}", f"{never:.4f}", chosen]


def main() -> None:
    """Run everything that is asked for."""
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told.add_argument("--seeds", type=int, default=4)
    told.add_argument("--first-seed", type=int, default=0)
    told.add_argument("--only", choices=[*KINDS, "threshold"])
    given = told.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    cells: dict[tuple[str, str, str, str], Any] = {}
    costs: dict[tuple[str, str], list[float]] = {}
    for draw in _draws() if given.only != "threshold" else []:
        for name, kind in KINDS.items():
            if given.only not in (None, name):
                continue
            title = f"{name}, three classes" if draw.multiclass else name
            for seed in seeds:
                for criterion, gap, cost, free, charged in compared(draw, kind, seed):
                    cells.setdefault((title, draw.name, criterion, gap), []).append([free, charged])
                    costs.setdefault((title, draw.name), []).append(cost)
            print(title, draw.name, sorted(set(costs.get((title, draw.name), []))), flush=True)
    if given.only is None:
        fill(EVIDENCE / "policies.md", "changes", table(HEAD, rows_of(cells)))
    head = ["loss 10:1", "free changes", "auto", "as today", "costs chosen"]
    print("\n" + table(head, [["score", *wrong_threshold(range(10))]]))


if __name__ == "__main__":
    main()
