"""Missing labels: what is lost by not knowing them, what is promised and kept, and what the loop does.

    python benchmarks/missing_labels.py [part ...] [--worlds N] [--seed 0] [--by naive|felicific] [--jobs 2]

Every world is simulated, so that the truth is known: a policy is scored by the true probabilities of the labels on
fresh people, never by labels drawn once. ``naive`` is the second implementation of ``tests/naive_labels.py`` (the
expanded table handed to a plain fit), ``felicific`` is the library's own.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # worlds are what runs side by side

import numpy as np
from joblib import Parallel, delayed
from shared import table
from sklearn.linear_model import LogisticRegression

from felicific import Happiness, Score, solve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import naive_labels as naive  # noqa: E402  the tests' own second implementation

MISSING = naive.MISSING
FRESH = 100_000
FEATURES = ("x1", "x2")
People = dict[str, np.ndarray]


def logistic(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


# ---------------------------------------------------------------------------------------------------------
# Worlds


@dataclass(frozen=True)
class World:
    """A lender: who is like what, who repays, and whose label is known.

    Attributes
    ----------
    c : float
        How much a trait outside the table says, to nature and to the officer.
    k : float
        How sharply the officer decides.
    lottery : float
        The chance of a label for those whom the officer refuses; the odds are then known: 1 or this.
    favoured : float
        By how much the odds of a label are multiplied for the good.
    worse : float
        By how much the odds of the unlabelled to be good differ from those of labelled people alike: lower by this
        factor above the middle, higher below it. Labels are then drawn after it is known who has one.
    """

    c: float = 0.0
    k: float = 1.7
    lottery: float = 0.0
    favoured: float = 1.0
    worse: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Columns: x1, x2, group, amount, truth (probabilities of both labels), y, label, and odds where known."""
        z = rng.integers(2, size=n)
        x1, x2, u = rng.normal(-0.3 * z), rng.normal(size=n), rng.normal(size=n)
        amount = np.exp(rng.normal(9.0, 0.5, n)) * (1.0 + 0.4 * z)
        lean = x1 + 0.7 * x2 + self.c * u
        good = logistic(lean + 0.4)
        approved = logistic(self.k * (lean - 0.9 * z))
        if self.worse != 1.0:
            apart = np.where(good > 0.5, 1.0 / self.worse, self.worse)
            seen = rng.random(n) < approved
            among = good * apart / (1.0 - good + good * apart)
            y = (rng.random(n) < np.where(seen, good, among)).astype(int)
            good = approved * good + (1.0 - approved) * among
        else:
            y = (rng.random(n) < good).astype(int)
            approved = np.where(y == 1, approved * self.favoured / (1 - approved + approved * self.favoured), approved)
            seen = rng.random(n) < approved
        odds = np.where(seen, 1.0, self.lottery)
        known = seen | (rng.random(n) < self.lottery)
        return {
            "x1": x1,
            "x2": x2,
            "group": np.array(["A", "B"])[z],
            "amount": amount,
            "truth": np.column_stack([1.0 - good, good]),
            "y": y,
            "label": np.where(known, y, MISSING),
            "odds": odds if self.lottery else np.full(n, np.nan),
        }


EXPLAINED = World()
GENTLE = World(k=0.8)
LOTTERY = World(c=0.8, lottery=0.02)


def features(people: People) -> np.ndarray:
    return np.column_stack([people[name] for name in FEATURES])


def model_of(people: People, labelled_only: bool = True) -> Any:
    """The lender's model: of the labelled."""
    rows = people["label"] != MISSING if labelled_only else slice(None)
    return LogisticRegression().fit(features(people)[rows], people["y"][rows])


# ---------------------------------------------------------------------------------------------------------
# Ways of fitting


@dataclass(frozen=True)
class Ask:
    """What is asked of a policy.

    Attributes
    ----------
    happiness, gap, loss, policy : object
        As :func:`felicific.solve` takes them.
    cost : array of shape (labels, decisions)
        The loss as a matrix, to score by.
    hidden : float
        By how much the odds of a label may differ among people alike.
    curve : dict
        How the probabilities of a missing label are fitted (``tests/naive_labels.py``).
    see_group : bool
    """

    happiness: Any = "decision * amount"
    gap: float = 0.0
    policy: Any = Score(cells=60)
    cost: Any = ((0.0, 1.0), (1.0, 0.0))
    hidden: float = 1.0
    curve: dict[str, Any] = field(default_factory=dict)
    see_group: bool = True

    @property
    def matrix(self) -> np.ndarray:
        return np.asarray(self.cost)


@dataclass(frozen=True)
class Fitted:
    """A policy, and what it takes to say what it does to others.

    Attributes
    ----------
    policy : Policy
    model : classifier
    stated : float
        The loss it states.
    chances : callable
        The chance of a label, of people.
    curves : naive.Curves or None
    """

    policy: Any
    model: Any
    stated: float
    chances: Callable[[People], np.ndarray] | None = None
    curves: Any = None

    def decisions(self, people: People) -> np.ndarray:
        """The odds of every decision."""
        proba = self.model.predict_proba(features(people))
        if self.policy.kind == "label":
            proba = self.model.classes_[proba.argmax(axis=1)]
        x = {name: column for name, column in people.items() if column.ndim == 1}
        return np.asarray(self.policy.odds(proba, people["group"] if self.policy.see_group else None, x))


def true_loss(fitted: Fitted, ask: Ask, people: People) -> float:
    """By the true probabilities."""
    return float(((people["truth"] @ ask.matrix) * fitted.decisions(people)).sum(axis=1).mean())


def chances(people: People, folds: int = 5, clip: float = 0.02) -> tuple[np.ndarray, Callable[[People], np.ndarray]]:
    """The chance of a label, one logistic model a group: of these people by folds, and of others by all of them."""
    X, known = features(people), people["label"] != MISSING
    fold = np.arange(len(known)) % folds  # the people are drawn independently
    found, models = np.empty(len(known)), {}
    for name in np.unique(people["group"]):
        mine = people["group"] == name
        models[name] = LogisticRegression().fit(X[mine], known[mine])
        for one in range(folds):
            rest, held = mine & (fold != one), mine & (fold == one)
            found[held] = LogisticRegression().fit(X[rest], known[rest]).predict_proba(X[held])[:, 1]

    def of(others: People) -> np.ndarray:
        told = np.empty(len(others["group"]))
        for name, model in models.items():
            mine = others["group"] == name
            told[mine] = model.predict_proba(features(others)[mine])[:, 1]
        return told.clip(clip)

    return found.clip(clip), of


def columns_of(people: People) -> People:
    """What a policy may look at."""
    return {name: people[name] for name in (*FEATURES, "group", "amount") if name in people}


def solved(columns: People, proba: np.ndarray, y: Any, weight: Any, ask: Ask, loss: Any = None) -> Any:
    """A plain fit of the library, without missing labels."""
    table_of = columns | {"y": y, "w": weight, "own": proba.argmax(axis=1)}
    names = [f"p{k}" for k in range(proba.shape[1])]
    table_of |= {name: proba[:, k] for k, name in enumerate(names)}
    return solve(
        table_of,
        proba=names,
        y="y",
        sample_weight="w",
        sensitive_features="group",
        classes=list(range(proba.shape[1])),
        happiness=ask.happiness,
        gap=ask.gap,
        policy=ask.policy,
        loss=ask.matrix if loss is None else loss,
        group_at_predict=ask.see_group,
        random_state=0,
    )


def fit_oracle(people: People, model: Any, ask: Ask) -> Fitted:
    """All labels are known."""
    policy = solved(columns_of(people), model.predict_proba(features(people)), people["y"], np.ones(len(people["y"])), ask)
    return Fitted(policy, model, policy.loss)


def fit_left_out(people: People, model: Any, ask: Ask) -> Fitted:
    """The unlabelled are left out."""
    return fit_oracle({name: column[people["label"] != MISSING] for name, column in people.items()}, model, ask)


def fit_uncorrected(people: People, model: Any, ask: Ask) -> Fitted:
    """A missing label is what the model says."""
    proba = model.predict_proba(features(people))
    columns, y, w, at = naive.expanded(columns_of(people), people["label"], np.ones(len(proba)), proba)
    policy = solved(columns, proba[at], y, w, ask)
    return Fitted(policy, model, policy.loss)


def imputed(people: People, model: Any, ask: Ask) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any, Any]:
    """The model's probabilities, omega, m, the curves behind it, and the chance of a label for others."""
    proba = model.predict_proba(features(people))
    if np.isnan(people["odds"]).any():
        odds, of = chances(people)
    else:
        odds, of = people["odds"], lambda others: others["odds"]
    omega = naive.omega_of(people["label"], odds)
    curve = naive.curves(proba, people["label"], people["group"], omega, **ask.curve)
    return proba, omega, curve(proba, people["group"]), curve, of


def fit_naive(people: People, model: Any, ask: Ask) -> Fitted:
    """The expanded table; with ``hidden``, each decision costs the unlabelled its own worst case."""
    proba, _, m, curve, of = imputed(people, model, ask)
    columns, label, ones = columns_of(people), people["label"], np.ones(len(proba))
    if ask.hidden == 1.0:
        columns, y, w, at = naive.expanded(columns, label, ones, m)
        policy = solved(columns, proba[at], y, w, ask)
        return Fitted(policy, model, policy.loss, of, curve)
    costs = worst_costs(label, m, ask)
    columns |= {f"cost{d}": costs[:, d] for d in range(costs.shape[1])}
    loss = " + ".join(f"cost{d} * (decision == {d})" for d in range(costs.shape[1]))
    policy = solved(columns, proba, np.where(label == MISSING, 0, label), ones, ask, loss)
    return Fitted(policy, model, policy.loss, of, curve)


def worst_costs(label: np.ndarray, m: np.ndarray, ask: Ask) -> np.ndarray:
    """What each decision costs each person at worst."""
    found = np.empty((len(m), ask.matrix.shape[1]))
    for d in range(found.shape[1]):
        values = np.broadcast_to(ask.matrix[:, d], m.shape)
        tilt = naive.sorted_tilt(m, values, ask.hidden)
        u = m * tilt / (m * tilt).sum(axis=1, keepdims=True)
        found[:, d] = np.where(label == MISSING, (u * values).sum(axis=1), ask.matrix[label, d])
    return found


def loss_values(fitted: Fitted, ask: Ask, people: People) -> np.ndarray:
    """The debiased loss of each person, each decision at its own worst case where reasons may be hidden."""
    m = fitted.curves(fitted.model.predict_proba(features(people)), people["group"])
    omega = naive.omega_of(people["label"], fitted.chances(people))
    q, total = fitted.decisions(people), np.zeros(len(m))
    for d in range(q.shape[1]):
        values = np.broadcast_to(ask.matrix[:, d], m.shape)
        tilt = naive.sorted_tilt(m, values, ask.hidden)
        total += q[:, d] * (naive.psi(people["label"], m, omega, tilt) * values).sum(axis=1)
    return total


WAYS: dict[str, Callable[[People, Any, Ask], Fitted]] = {
    "oracle": fit_oracle,
    "naive": fit_naive,
    "uncorrected": fit_uncorrected,
    "left out": fit_left_out,
}


# ---------------------------------------------------------------------------------------------------------
# Running worlds


def run(one: Callable[..., dict[str, float]], worlds: int, seed: int, jobs: int, **how: Any) -> dict[str, np.ndarray]:
    """What each world gives, by name."""
    found = Parallel(n_jobs=jobs, batch_size=4)(delayed(_quietly)(one, [seed, world], how) for world in range(worlds))
    return {name: np.array([part[name] for part in found]) for name in found[0]}


def _quietly(one: Callable[..., dict[str, float]], seed: list[int], how: dict[str, Any]) -> dict[str, float]:
    warnings.simplefilter("ignore")
    return one(np.random.default_rng(seed), **how)


def told(values: np.ndarray, digits: int = 4) -> str:
    """Mean and its standard error."""
    return f"{values.mean():.{digits}f} +- {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def loss_world(rng: np.random.Generator, world: World, n: int, asks: dict[str, tuple[str, Ask]]) -> dict[str, float]:
    """True loss, stated minus true, of several ways of fitting the same people."""
    model = model_of(world.draw(4_000, rng))
    people, fresh = world.draw(n, rng), world.draw(FRESH, rng)
    found = {}
    for name, (way, ask) in asks.items():
        fitted = WAYS[way](people, model, ask)
        found[name] = true_loss(fitted, ask, fresh)
        found[f"{name}, off"] = abs(fitted.stated - found[name])
    return found
