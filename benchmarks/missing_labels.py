"""Missing labels: what is lost by not knowing them, what is promised and kept, and what the loop does.

    python benchmarks/missing_labels.py [part ...] [--worlds N] [--seed 0] [--by felicific|naive] [--jobs 2]

Every world is simulated, so that the truth is known: a policy is scored by the true probabilities of the labels on
fresh people, never by labels drawn once. ``naive`` is the second implementation of ``tests/naive_labels.py`` (the
expanded table handed to a plain fit), ``felicific`` is the library's own and fills ``docs/evidence/missing-labels.md``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # worlds are what runs side by side

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from shared import EVIDENCE, fill, table
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Score, aggregate, audit, solve
from felicific.exceptions import DataError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import naive_labels as naive

MISSING = naive.MISSING
FRESH = 100_000
FEATURES = ("x1", "x2")
SIXTY_BINS = Score(bins=60)

#: How the naive implementation fits the probabilities of a missing label: part ``curves`` compares the ways.
CURVE = {"penalty": 1.0}
REFUSED = "worlds that were refused"
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
        The chance of a label for those whom the officer refuses; the probabilities are then known: 1 or this.
    favoured : float
        By how much the odds of a label are multiplied for the good.
    worse : float
        By how much the odds of the unlabelled to be good differ from those of labelled people alike: lower by
        this factor above the middle, higher below it. Labels are then drawn after it is known who has one.
    """

    c: float = 0.0
    k: float = 1.7
    lottery: float = 0.0
    favoured: float = 1.0
    worse: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """Columns: x1, x2, group, amount, truth (probabilities of both labels), y, label.

        And probabilities where known.
        """
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
            approved = np.where(
                y == 1, approved * self.favoured / (1 - approved + approved * self.favoured), approved
            )
            seen = rng.random(n) < approved
        probabilities = np.where(seen, 1.0, self.lottery)
        known = seen | (rng.random(n) < self.lottery)
        return {
            "x1": x1,
            "x2": x2,
            "group": np.array(["A", "B"])[z],
            "amount": amount,
            "truth": np.column_stack([1.0 - good, good]),
            "y": y,
            "label": np.where(known, y, MISSING),
            "proba": probabilities if self.lottery else np.full(n, np.nan),
        }


AT_RANDOM = World()
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
        As :func:`felicific.aggregate` and :func:`felicific.solve` take them.
    cost : array of shape (labels, decisions)
        The loss as a matrix, to score by.
    max_odds_ratio : float
        By how much the odds of a label may differ among people alike.
    curve : dict, or "shares"
        How the naive implementation fits the probabilities of a missing label: options of its ``curves``; or the
        labels' shares by group and predicted label.
    sees_group : bool
    """

    happiness: Any = "decision * amount"
    gap: float = 0.0
    policy: Any = SIXTY_BINS
    cost: Any = ((0.0, 1.0), (1.0, 0.0))
    max_odds_ratio: float = 1.0
    curve: Any = field(default_factory=lambda: CURVE)
    sees_group: bool = True

    @property
    def matrix(self) -> np.ndarray:
        """The cost, to calculate with."""
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
        """The probabilities of every decision."""
        score = self.model.predict_proba(features(people))
        if self.policy.kind == "label":
            score = self.model.classes_[score.argmax(axis=1)]
        x = {name: column for name, column in people.items() if column.ndim == 1}
        return np.asarray(
            self.policy.probabilities(score, people["group"] if self.policy.sees_group else None, x)
        )


def true_loss(fitted: Fitted, ask: Ask, people: People) -> float:
    """By the true probabilities."""
    return float(((people["truth"] @ ask.matrix) * fitted.decisions(people)).sum(axis=1).mean())


def chances(
    people: People, folds: int = 5, clip: float = 0.02
) -> tuple[np.ndarray, Callable[[People], np.ndarray]]:
    """The chance of a label, one logistic model a group: of these people by folds, and of others by all of them."""
    X, known = features(people), people["label"] != MISSING
    fold = np.arange(len(known)) % folds  # the people are drawn independently
    found, models = np.empty(len(known)), {}
    for name in np.unique(people["group"]):
        mine = people["group"] == name
        models[name] = labelled_model(X[mine], known[mine])
        for one in range(folds):
            rest, held = mine & (fold != one), mine & (fold == one)
            found[held] = labelled_model(X[rest], known[rest]).predict_proba(X[held])[:, 1]

    def of(others: People) -> np.ndarray:
        told = np.empty(len(others["group"]))
        for name, model in models.items():
            mine = others["group"] == name
            told[mine] = model.predict_proba(features(others)[mine])[:, 1]
        return told.clip(clip)

    return found.clip(clip), of


def labelled_model(X: np.ndarray, known: np.ndarray) -> Any:
    """Who has a label; in a loop it may be everybody of a group."""
    if known.all():
        return DummyClassifier(strategy="constant", constant=1).fit(X[:2], [0, 1])
    return LogisticRegression().fit(X, known)


def columns_of(people: People) -> People:
    """What a policy may look at."""
    return {name: people[name] for name in (*FEATURES, "group", "amount") if name in people}


def solved(columns: People, score: np.ndarray, y: Any, weight: Any, ask: Ask, loss: Any = None) -> Any:
    """A plain fit of the library, without missing labels."""
    table_of = columns | {"y": y, "w": weight, "own": score.argmax(axis=1)}
    names = [f"p{k}" for k in range(score.shape[1])]
    table_of |= {name: score[:, k] for k, name in enumerate(names)}
    measured = {
        "happiness": ask.happiness,
        "loss": ask.matrix if loss is None else loss,
        "policy": ask.policy,
    }
    asked = {"gap": ask.gap, "sees_group": ask.sees_group, "random_state": 0}
    if ask.policy == "individual":
        fair = FairClassifier(names, sensitive_features="group", change_cost=0.0, **measured, **asked)
        rows = pd.DataFrame(table_of)
        return fair.fit(rows.drop(columns=["y", "w"]), rows["y"], sample_weight=rows["w"]).policy_
    classes = list(range(score.shape[1]))
    roles = {
        "score": names,
        "y": "y",
        "sample_weight": "w",
        "sensitive_features": "group",
        "classes": classes,
    }
    return solve(aggregate(table_of, **roles, **measured), **asked)


def fit_oracle(people: People, model: Any, ask: Ask) -> Fitted:
    """All labels are known."""
    policy = solved(
        columns_of(people), model.predict_proba(features(people)), people["y"], np.ones(len(people["y"])), ask
    )
    return Fitted(policy, model, policy.loss)


def fit_left_out(people: People, model: Any, ask: Ask) -> Fitted:
    """The unlabelled are left out."""
    return fit_oracle(
        {name: column[people["label"] != MISSING] for name, column in people.items()}, model, ask
    )


def fit_uncorrected(people: People, model: Any, ask: Ask) -> Fitted:
    """A missing label is what the model says."""
    score = model.predict_proba(features(people))
    columns, y, w, at = naive.expanded(columns_of(people), people["label"], np.ones(len(score)), score)
    policy = solved(columns, score[at], y, w, ask)
    return Fitted(policy, model, policy.loss)


def imputed(people: People, model: Any, ask: Ask) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any, Any]:
    """The model's probabilities, omega, m, the curves behind it, and the chance of a label for others."""
    score = model.predict_proba(features(people))
    if np.isnan(people["proba"]).any():
        probabilities, of = chances(people)
    else:
        probabilities, of = people["proba"], lambda others: others["proba"]
    omega = naive.omega_of(people["label"], probabilities)
    fit = naive.shares if ask.curve == "shares" else partial(naive.curves, **ask.curve)
    curve = fit(score, people["label"], people["group"], omega)
    return score, omega, curve(score, people["group"]), curve, of


def fit_naive(people: People, model: Any, ask: Ask) -> Fitted:
    """The expanded table; with ``max_odds_ratio``, each decision costs the unlabelled its own worst case."""
    score, _, m, curve, of = imputed(people, model, ask)
    columns, label, ones = columns_of(people), people["label"], np.ones(len(score))
    if ask.max_odds_ratio == 1.0:
        columns, y, w, at = naive.expanded(columns, label, ones, m)
        policy = solved(columns, score[at], y, w, ask)
        return Fitted(policy, model, policy.loss, of, curve)
    costs = worst_costs(label, m, ask)
    columns |= {f"cost{d}": costs[:, d] for d in range(costs.shape[1])}
    loss = " + ".join(f"cost{d} * (decision == {d})" for d in range(costs.shape[1]))
    policy = solved(columns, score, np.where(label == MISSING, 0, label), ones, ask, loss)
    return Fitted(policy, model, policy.loss, of, curve)


def worst_costs(label: np.ndarray, m: np.ndarray, ask: Ask) -> np.ndarray:
    """What each decision costs each person at worst."""
    found = np.empty((len(m), ask.matrix.shape[1]))
    for d in range(found.shape[1]):
        values = np.broadcast_to(ask.matrix[:, d], m.shape)
        tilt = naive.sorted_tilt(m, values, ask.max_odds_ratio)
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
        tilt = naive.sorted_tilt(m, values, ask.max_odds_ratio)
        total += q[:, d] * (naive.psi(people["label"], m, omega, tilt) * values).sum(axis=1)
    return total


# ---------------------------------------------------------------------------------------------------------
# The library's own


@dataclass(frozen=True)
class Own(Fitted):
    """A FairClassifier that was fitted with missing labels."""

    fair: Any = None


def frame(people: People) -> tuple[pd.DataFrame, np.ndarray, dict[str, Any]]:
    """People as the library takes them, their labels with nan, and the known probabilities if there are any."""
    known = not np.isnan(people["proba"]).any()
    X = pd.DataFrame(columns_of(people) | ({"proba": people["proba"]} if known else {}))
    X["id"] = np.arange(len(X))
    y = np.where(people["label"] == MISSING, np.nan, people["label"])
    return X, y, {"label_proba": "proba"} if known else {}


def fit_own(people: People, model: Any, ask: Ask, at_least: float = 0.0) -> Fitted:
    """``FairClassifier(missing_labels=...)``."""
    from felicific import Exploration, MissingLabels

    X, y, probabilities = frame(people)
    named = copy(model)
    named.feature_names_in_ = np.array(FEATURES, dtype=object)  # the model's own columns of the table
    fair = FairClassifier(
        FrozenEstimator(named),
        happiness=ask.happiness,
        gap=ask.gap,
        policy=ask.policy,
        loss=ask.matrix,
        change_cost=0.0,
        sensitive_features="group",
        sees_group=ask.sees_group,
        missing_labels=MissingLabels(max_odds_ratio=ask.max_odds_ratio, **probabilities),
        constraints=[Exploration(at_least=at_least)] if at_least else [],
        key="id",
        random_state=0,
    ).fit(X, y)
    return Own(fair.policy_, model, fair.loss_, fair=fair)


def audit_own(fitted: Own, max_odds_ratio: float, people: People, **how: Any) -> Any:
    """``audit(missing_labels=...)``."""
    from felicific import MissingLabels

    X, y, probabilities = frame(people)
    return audit(
        fitted.fair, X, y, missing_labels=MissingLabels(max_odds_ratio=max_odds_ratio, **probabilities), **how
    )


WAYS: dict[str, Callable[[People, Any, Ask], Fitted]] = {
    "oracle": fit_oracle,
    "naive": fit_naive,
    "felicific": fit_own,
    "uncorrected": fit_uncorrected,
    "left out": fit_left_out,
}


# ---------------------------------------------------------------------------------------------------------
# Running worlds


def run(
    one: Callable[..., dict[str, float]], worlds: int, seed: int, jobs: int, **how: Any
) -> dict[str, np.ndarray]:
    """What each world gives, by name; and in how many worlds the library refused to say anything."""
    tried = Parallel(n_jobs=jobs, batch_size=4)(
        delayed(_quietly)(one, [seed, world], how) for world in range(worlds)
    )
    found = [part for part in tried if part is not None]
    named = {name: np.array([part[name] for part in found]) for name in found[0]}
    return named | {REFUSED: np.array(worlds - len(found))}


def _quietly(
    one: Callable[..., dict[str, float]], seed: list[int], how: dict[str, Any]
) -> dict[str, float] | None:
    warnings.simplefilter("ignore")
    try:
        return one(np.random.default_rng(seed), **how)
    except DataError as error:
        if "nobody alike has a label" not in str(error):
            raise
        return None


def told(values: np.ndarray, digits: int = 4) -> str:
    """Mean and its standard error."""
    return f"{values.mean():.{digits}f} +- {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def loss_world(
    rng: np.random.Generator, world: Any, n: int, asks: dict[str, tuple[str, Ask]], factor: float = 1.0
) -> dict[str, float]:
    """True loss, and how far the stated one is off, of several ways of fitting the same people.

    With a ``factor`` the model is too sure of itself, or not sure enough.
    """
    model = model_of(world.draw(4_000, rng))
    model.coef_, model.intercept_ = factor * model.coef_, factor * model.intercept_
    people, fresh = world.draw(n, rng), world.draw(FRESH, rng)
    found = {}
    for name, (way, ask) in asks.items():
        fitted = WAYS[way](people, model, ask)
        found[name] = true_loss(fitted, ask, fresh)
        found[f"{name}, off"] = abs(fitted.stated - found[name])
    return found


# ---------------------------------------------------------------------------------------------------------
# a. True loss against the oracle


def show(given: argparse.Namespace, part: str, text: str) -> None:
    """Fill a block of the page, of the library alone; what the second implementation finds is printed."""
    if given.by == "felicific" and part != "curves":
        fill(EVIDENCE / "missing-labels.md", f"missing labels: {part}", text)
    else:
        print(f"\n{text}")


def part_loss(given: argparse.Namespace) -> None:
    """True loss of what is fitted with missing labels, against all labels known."""
    worlds = {
        "at random, 4,000 rows": (AT_RANDOM, 4_000, 300),
        "lottery of 2 %, 4,000 rows": (LOTTERY, 4_000, 300),
        "lottery of 2 %, 20,000 rows": (LOTTERY, 20_000, 200),
    }
    asks = {way: (way, Ask()) for way in ("oracle", given.by, "uncorrected", "left out")}
    rows = []
    for name, (world, n, usual) in worlds.items():
        found = run(loss_world, given.worlds or usual, given.seed, given.jobs, world=world, n=n, asks=asks)
        more = told(found[given.by] - found["oracle"])
        rows.append(
            [
                name,
                *(told(found[way]) for way in asks),
                more,
                told(found[f"{given.by}, off"]),
                worlds_of(found),
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    show(
        given,
        "loss",
        table(["world", *asks, "more than the oracle", "stated off the truth by", "worlds"], rows),
    )


def worlds_of(found: dict[str, np.ndarray]) -> str:
    """How many worlds there were an answer in, and in how many it was refused because nobody alike has a label."""
    refused = int(found[REFUSED])
    return f"{len(next(iter(found.values()))):,}" + (f" ({refused:,} refused)" if refused else "")


def part_curves(given: argparse.Namespace) -> None:
    """Ways of fitting the probabilities of a missing label."""
    ways: dict[str, dict[str, Any]] = {
        "slope free": {"penalty": 0.0},
        "slope drawn to 1 by 1 label": {"penalty": 1.0},
        "by 4 labels": {"penalty": 4.0},
        "slope 1": {"slope": False},
    }
    asks = {"oracle": ("oracle", Ask())} | {name: ("naive", Ask(curve=how)) for name, how in ways.items()}
    rows = []
    for (name, world), factor in product(
        (("at_random", AT_RANDOM), ("lottery of 2 %", LOTTERY)), (1.0, 2.0, 0.5)
    ):
        found = run(
            loss_world,
            given.worlds or 100,
            given.seed,
            given.jobs,
            world=world,
            n=4_000,
            asks=asks,
            factor=factor,
        )
        for way in asks:
            more = told(found[way] - found["oracle"])
            rows.append(
                [
                    name,
                    f"{factor:g}",
                    way,
                    told(found[way]),
                    more,
                    told(found[f"{way}, off"]),
                    worlds_of(found),
                ]
            )
            print(*rows[-1], sep=" | ", flush=True)
    heads = [
        "world",
        "model's logits times",
        "curve",
        "true loss",
        "more than the oracle",
        "stated off by",
        "worlds",
    ]
    show(given, "curves", table(heads, rows))


# ---------------------------------------------------------------------------------------------------------
# b. Intervals of the loss


def coverage_world(rng: np.random.Generator, world: Any, by: str, ask: Ask) -> dict[str, float]:
    """Whether the interval of the loss on 4,000 people held out holds the truth, and whether each end does."""
    model = model_of(world.draw(4_000, rng))
    fitted = WAYS[by](world.draw(4_000, rng), model, ask)
    held = world.draw(4_000, rng)
    mean, low, high = loss_interval(fitted, ask, held, 0.95)
    one_sided = loss_interval(fitted, ask, held, 0.90)[2]
    truth = true_loss(fitted, ask, world.draw(FRESH, rng))
    return {
        "held": low <= truth <= high,
        "above": truth > high,
        "below": truth < low,
        "half": (high - low) / 2.0,
        "off": mean - truth,
        "one-sided": truth <= one_sided,
    }


def loss_interval(fitted: Fitted, ask: Ask, people: People, level: float) -> tuple[float, float, float]:
    """Estimate and ends; with ``max_odds_ratio``, the worst case and its ends."""
    if isinstance(fitted, Own):
        found = audit_own(fitted, ask.max_odds_ratio, people, confidence=level).loss
        return found.estimate, found.low, found.high
    return naive.t_interval(loss_values(fitted, ask, people), level)


COVERED = ("held", "above", "below", "one-sided")


def covered(found: dict[str, np.ndarray]) -> list[str]:
    shares = [f"{found[name].mean():.4f}" for name in COVERED]
    return [*shares, f"{found['half'].mean():.4f}", f"{found['off'].mean():+.4f}", worlds_of(found)]


COVERED_HEADS = [
    "two-sided 95 % holds",
    "truth above",
    "below",
    "one-sided 95 %",
    "half width",
    "bias",
    "worlds",
]


def part_coverage(given: argparse.Namespace) -> None:
    """How often the 95 % interval of the loss on 4,000 people held out holds the truth."""
    rows = []
    for name, world in (
        ("officer, k = .8", GENTLE),
        ("officer, k = 1.7", AT_RANDOM),
        ("lottery of 2 %", LOTTERY),
    ):
        found = run(
            coverage_world,
            given.worlds or 2_000,
            given.seed + 1,
            given.jobs,
            world=world,
            by=given.by,
            ask=Ask(),
        )
        rows.append([name, *covered(found)])
        print(*rows[-1], sep=" | ", flush=True)
    show(given, "coverage", table(["world", *COVERED_HEADS], rows))


# ---------------------------------------------------------------------------------------------------------
# c. Reasons outside the table


def hidden_world(
    rng: np.random.Generator, world: World, by: str, max_odds_ratio: Iterable[float], ask: Ask
) -> dict[str, float]:
    """Promises (upper ends) of the loss of policies fitted with some ratios; and intervals of rates of the good."""
    model = model_of(world.draw(4_000, rng))
    people, held, fresh = world.draw(4_000, rng), world.draw(4_000, rng), world.draw(FRESH, rng)
    found: dict[str, float] = {}
    fitted = None
    for one in max_odds_ratio:
        mine = replace(ask, max_odds_ratio=one)
        if isinstance(fitted, Own):  # it takes no new fit
            fair = fitted.fair.at(max_odds_ratio=one)
            fitted = Own(fair.policy_, model, fair.loss_, fair=fair)
        else:
            fitted = WAYS[by](people, model, mine)
        truth = true_loss(fitted, mine, fresh)
        found[f"loss {one:g}"] = truth
        if isinstance(fitted, Own):
            told = audit_own(fitted, one, held, happiness="equal_opportunity", gap=0.02)
            promise, rates = told.loss.high, told["equal_opportunity"].means
            rates = {name: (mean.low, mean.high) for name, mean in rates.items()}
        else:
            promise, rates = (
                loss_interval(fitted, mine, held, 0.95)[2],
                rate_intervals(fitted, one, held),
            )
        found[f"promise {one:g}"] = promise >= truth
        found[f"one-sided {one:g}"] = loss_interval(fitted, mine, held, 0.90)[2] >= truth
        found[f"rates {one:g}"] = rates_held(fitted, rates, fresh)
    return found


def rates_held(fitted: Fitted, rates: dict[Any, tuple[float, float]], fresh: People) -> float:
    """The share of groups whose rate of decision 1 among the good lies in its interval, outer ends."""
    q, held = fitted.decisions(fresh)[:, 1], []
    for name, (low, high) in rates.items():
        mine = fresh["group"] == name
        held.append(low <= np.average(q[mine], weights=fresh["truth"][mine, 1]) <= high)
    return float(np.mean(held))


def rate_intervals(fitted: Fitted, max_odds_ratio: float, people: People) -> dict[Any, tuple[float, float]]:
    """By group, the ends of the rate of decision 1 among the good."""
    q = fitted.decisions(people)[:, 1]
    m = fitted.curves(fitted.model.predict_proba(features(people)), people["group"])
    omega = naive.omega_of(people["label"], fitted.chances(people))
    among, found = np.broadcast_to(np.array([0.0, 1.0]), m.shape), {}
    for name in np.unique(people["group"]):
        mine = people["group"] == name
        given = people["label"][mine], m[mine], np.ones(mine.sum()), q[mine, None] * among[mine], among[mine]
        low, down = naive.rate_end(*given, max_odds_ratio, omega[mine], highest=False)
        high, up = naive.rate_end(*given, max_odds_ratio, omega[mine], highest=True)
        found[name] = low + naive.t_interval(down)[1], high + naive.t_interval(up)[2]
    return found


def part_hidden(given: argparse.Namespace) -> None:
    """Promises where reasons outside the table decide who has a label."""
    worlds = {
        "good labelled at 3 times the odds, k = .8": (World(k=0.8, favoured=3.0), (1.0, 3.0)),
        "good labelled at 3 times the odds, k = 1.7": (World(k=1.7, favoured=3.0), (1.0, 3.0)),
        "unlabelled 2.5 worse or better, k = .8": (World(k=0.8, worse=2.5), (1.0, 2.5)),
        "unlabelled 2.5 worse or better, k = 1.7": (World(k=1.7, worse=2.5), (1.0, 2.5)),
    }
    rows = []
    for (words, gap), (name, (world, max_odds_ratio)) in product(
        (("gap 0", 0.0), ("no gap", 1e9)), worlds.items()
    ):
        found = run(
            hidden_world,
            given.worlds or 300,
            given.seed + 2,
            given.jobs,
            world=world,
            by=given.by,
            max_odds_ratio=max_odds_ratio,
            ask=Ask(gap=gap),
        )
        for one in max_odds_ratio:
            shares = [
                f"{found[f'{what} {one:g}'].mean():.3f}" for what in ("promise", "one-sided", "rates", "loss")
            ]
            rows.append([name, words, f"{one:g}", *shares, worlds_of(found)])
            print(*rows[-1], sep=" | ", flush=True)
    heads = [
        "world",
        "asked",
        "max_odds_ratio",
        "promise held",
        "one-sided",
        "rates of groups held",
        "true loss",
        "worlds",
    ]
    show(given, "max_odds_ratio", table(heads, rows))


# ---------------------------------------------------------------------------------------------------------
# d. The loop


@dataclass(frozen=True)
class Loop:
    """An officer who reads a trait outside the table rightly in group A and wrongly in B, then policies."""

    def draw(self, n: int, rng: np.random.Generator, decide: Fitted | None = None) -> People:
        """People whose labels the officer's, or a policy's, decisions show; the policy's probabilities are known."""
        z = rng.integers(2, size=n)
        x1, x2, u = rng.normal(-0.3 * z), rng.normal(size=n), rng.normal(size=n)
        good = logistic(x1 + 0.7 * x2 + 1.2 * u + 0.2)
        people = {
            "x1": x1,
            "x2": x2,
            "group": np.array(["A", "B"])[z],
            "y": (rng.random(n) < good).astype(int),
        }
        people |= {"truth": np.column_stack([1.0 - good, good]), "amount": np.ones(n)}
        h = np.where(z == 0, 0.8, -1.5)
        probabilities = logistic(1.7 * (x1 + 0.7 * x2 + h * u - 0.9 * z - 0.3))
        if decide is not None:
            probabilities = decide.decisions(people)[:, 1]
        seen = rng.random(n) < probabilities
        probabilities = np.full(n, np.nan) if decide is None else probabilities
        return people | {"label": np.where(seen, people["y"], MISSING), "proba": probabilities}


@dataclass(frozen=True)
class Explored(Fitted):
    """Everybody keeps at least a chance of decision 1: q = delta + (1 - delta) q'."""

    at_least: float = 0.0

    def decisions(self, people: People) -> np.ndarray:
        """The probabilities of every decision."""
        q = super().decisions(people)
        return np.array([0.0, self.at_least]) + (1.0 - self.at_least) * q


def explored(way: str, people: People, model: Any, ask: Ask, at_least: float) -> Fitted:
    """With equal opportunity everybody good gains at_least alike: the gap of q' may be wider by 1 / (1 - at_least)."""
    if way == "felicific":
        return fit_own(people, model, ask, at_least)
    fitted = WAYS[way](people, model, replace(ask, gap=ask.gap / (1.0 - at_least)))
    if not at_least:
        return fitted
    always = fitted_loss_of_all(fitted, ask, people)
    stated = at_least * always + (1.0 - at_least) * fitted.stated
    return Explored(fitted.policy, model, stated, fitted.chances, fitted.curves, at_least)


def fitted_loss_of_all(fitted: Fitted, ask: Ask, people: People) -> float:
    """What it would cost to give everybody decision 1, as the fit believes."""
    if fitted.curves is None:
        weights = naive.one_hot(people["y"], 2)
    else:
        m = fitted.curves(fitted.model.predict_proba(features(people)), people["group"])
        weights = np.where((people["label"] == MISSING)[:, None], m, naive.one_hot(people["label"], 2))
    return float((weights @ ask.matrix[:, 1]).mean())


def true_gap(fitted: Fitted, people: People) -> float:
    """Rate of decision 1 among the good, A minus B."""
    q, good = fitted.decisions(people)[:, 1], people["truth"][:, 1]
    a, b = (
        np.average(q[rows], weights=good[rows]) for rows in (people["group"] == "A", people["group"] == "B")
    )
    return float(a - b)


#: The way of fitting, the chance that everybody keeps, and whether a fit takes all people that policies decided on
#: or those of the last round. Without a chance, the officer goes on choosing who is seen.
ARMS: dict[str, tuple[str, float, bool]] = {
    "oracle": ("oracle", 0.0, False),
    "left out": ("left out", 0.0, False),
    "at_random": ("design", 0.0, False),
    "Exploration(.02)": ("design", 0.02, False),
    "Exploration(.05)": ("design", 0.05, False),
    "Exploration(.02), all rounds": ("design", 0.02, True),
}


def loop_world(rng: np.random.Generator, by: str, rounds: int, n: int) -> dict[str, float]:
    """Gap among the good, loss, and stated minus true loss, after every round of every arm."""
    world, ask = Loop(), Ask(happiness="equal_opportunity", gap=0.02)
    model = model_of(world.draw(4_000, rng))
    first, fresh = world.draw(n, rng), world.draw(FRESH, rng)
    found = {}
    for arm, (way, at_least, all_rounds) in ARMS.items():
        people = first
        for round_ in range(rounds + 1):
            fitted = explored(by if way == "design" else way, people, model, ask, at_least)
            loss = true_loss(fitted, ask, fresh)
            found[f"{arm} {round_} gap"] = true_gap(fitted, fresh)
            found[f"{arm} {round_} loss"] = loss
            found[f"{arm} {round_} off"] = abs(fitted.stated - loss)
            last = world.draw(n, rng, fitted if at_least else None)
            kept = people if all_rounds and round_ else {name: column[:0] for name, column in last.items()}
            people = {name: np.concatenate([kept[name], column]) for name, column in last.items()}
    return found


def part_loop(given: argparse.Namespace) -> None:
    """Decide, observe, fit again: four rounds."""
    rounds = 4
    found = run(
        loop_world, given.worlds or 20, given.seed + 3, given.jobs, by=given.by, rounds=rounds, n=10_000
    )
    rows = []
    for arm in ARMS:
        for after in range(rounds + 1):
            gap, loss, off = (found[f"{arm} {after} {what}"] for what in ("gap", "loss", "off"))
            numbers = [told(gap, 3), told(np.abs(gap), 3), told(loss), told(off, 3)]
            rows.append([arm, str(after), *numbers, worlds_of(found)])
    heads = [
        "arm",
        "after round",
        "true gap among the good (A - B)",
        "its size",
        "true loss",
        "stated off by",
        "worlds",
    ]
    show(given, "loop", table(heads, rows))


# ---------------------------------------------------------------------------------------------------------
# e. What Exploration costs


def part_price(given: argparse.Namespace) -> None:
    """Exploration's price against the finite difference, all labels known."""
    rows, delta, step = [], 0.02, 1e-4
    by = "oracle" if given.by == "naive" else given.by
    for name, world in (("loop", Loop()), ("c = 0", AT_RANDOM), ("c = .8", LOTTERY)):
        rng = np.random.default_rng([given.seed, 4])
        model, people = model_of(world.draw(4_000, rng)), world.draw(12_000, rng)
        people |= {"label": people["y"], "proba": np.full(12_000, np.nan)}
        ask = Ask(happiness="equal_opportunity", gap=0.02)
        at = {d: explored(by, people, model, ask, d) for d in (0.0, delta - step, delta, delta + step)}
        slope = (at[delta + step].stated - at[delta - step].stated) / (2 * step)
        more = at[delta].stated - at[0.0].stated
        said = [price for key, price in at[delta].policy.prices.items() if str(key).startswith("chance of")]
        kept = int((at[delta].decisions(people)[:, 1] <= delta + 1e-9).sum())
        prices = [f"{slope:.6f}", *(f"{price:.6f}" for price in said or [np.nan])]
        rows.append([name, f"{more:.4f}", *prices, f"{kept:,}", f"{kept * delta:.0f}"])
    heads = ["world", "loss(.02) - loss(0)", "finite difference", "price", "at the bound", "explored"]
    show(given, "price", table(heads, rows))


# ---------------------------------------------------------------------------------------------------------
# f. Happiness that sees the table and the label


@dataclass(frozen=True)
class Repaid(World):
    """Whether somebody repays depends on the amount too, which the model does not see."""

    steep: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """As of the world, with other labels."""
        people = super().draw(n, rng)
        good = logistic(
            people["x1"] + 0.7 * people["x2"] + 0.4 - self.steep * (np.log(people["amount"]) - 9.0)
        )
        y = (rng.random(n) < good).astype(int)
        label = np.where(people["label"] == MISSING, MISSING, y)
        return people | {"truth": np.column_stack([1.0 - good, good]), "y": y, "label": label}


def fit_residual(people: People, model: Any, ask: Ask) -> Fitted:
    """Happiness amount * y * decision, with the residual term; the loss by the expanded table."""
    score, omega, m, curve, of = imputed(people, model, ask)
    label, columns = people["label"], columns_of(people)
    # Split among the copies of a row, psi y is what the residual term makes of the sum of y.
    columns["told"] = naive.psi(label, m, omega)[:, 1]
    columns, y, w, at = naive.expanded(columns, label, np.ones(len(score)), m)
    policy = solved(columns, score[at], y, w, replace(ask, happiness="amount * told * decision"))
    return Fitted(policy, model, policy.loss, of, curve)


WAYS["residual"] = fit_residual


def repaid_world(rng: np.random.Generator, ways: tuple[str, ...], n: int, world: Repaid) -> dict[str, float]:
    """The true gap in thousands, A minus B."""
    ask = Ask(happiness="amount * y * decision")
    model = model_of(world.draw(4_000, rng))
    people, fresh = world.draw(n, rng), world.draw(2 * FRESH, rng)
    found = {}
    for way in ways:
        worth = fresh["amount"] * fresh["truth"][:, 1] * WAYS[way](people, model, ask).decisions(fresh)[:, 1]
        a, b = (worth[fresh["group"] == name].mean() for name in ("A", "B"))
        found[way] = (a - b) / 1_000
    return found


def part_repaid(given: argparse.Namespace) -> None:
    """Happiness amount * y * decision where y depends on the amount, which the model does not see."""
    ways = (
        ("naive", "residual", "oracle", "left out")
        if given.by == "naive"
        else (given.by, "oracle", "left out")
    )
    rows = []
    for steep in (1.0, 2.0):
        world = Repaid(steep=steep)
        found = run(
            repaid_world, given.worlds or 30, given.seed + 5, given.jobs, ways=ways, n=8_000, world=world
        )
        for way in ways:
            rows.append(
                [f"{steep:g}", way, told(found[way], 3), told(np.abs(found[way]), 3), worlds_of(found)]
            )
    show(
        given,
        "repaid",
        table(["steepness", "fitted by", "true gap (A - B), thousands", "its size", "worlds"], rows),
    )


# ---------------------------------------------------------------------------------------------------------
# g. Three classes, labels, policies that do not see the group, costs


@dataclass(frozen=True)
class Three:
    """Three outcomes; the officer sees a trait outside the table only where a lottery tells of the refused."""

    lottery: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> People:
        """As of :class:`World`, with three labels."""
        z = rng.integers(2, size=n)
        x1, x2, u = rng.normal(-0.3 * z), rng.normal(size=n), rng.normal(size=n)
        lean = x1 + 0.7 * x2 + (0.8 if self.lottery else 0.0) * u
        good = naive.softmax(np.column_stack([-0.9 * lean, 0.2 + 0.5 * x2 - 0.3 * x1, 0.9 * lean]))
        y = (good.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=2)
        seen = rng.random(n) < logistic(1.2 * (lean - 0.7 * z))
        known = seen | (rng.random(n) < self.lottery)
        return {
            "x1": x1,
            "x2": x2,
            "group": np.array(["A", "B"])[z],
            "amount": np.exp(rng.normal(0.0, 0.5, n)) * (1.0 + 0.4 * z),
            "truth": good,
            "y": y,
            "label": np.where(known, y, MISSING),
            "proba": np.where(seen, 1.0, self.lottery) if self.lottery else np.full(n, np.nan),
        }


COSTS = ((0.0, 1.0, 3.0), (1.0, 0.0, 1.0), (2.0, 0.5, 0.0))
ERRORS = ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0))
UNEQUAL = ((0.0, 3.0), (1.0, 0.0))


def beyond() -> dict[str, tuple[Any, Ask]]:
    """Worlds and what is asked in each."""
    label = Ask(policy="label", curve="shares")
    return {
        "3 classes, score, error, at random": (Three(), Ask(policy="score", cost=ERRORS)),
        "3 classes, score, costs, at random": (Three(), Ask(policy="score", cost=COSTS)),
        "3 classes, score, error, lottery 5 %": (Three(0.05), Ask(policy="score", cost=ERRORS)),
        "3 classes, score, costs, lottery 5 %": (Three(0.05), Ask(policy="score", cost=COSTS)),
        "3 classes, individual, costs, at random": (Three(), Ask(policy="individual", cost=COSTS)),
        "3 classes, individual, costs, lottery 5 %": (Three(0.05), Ask(policy="individual", cost=COSTS)),
        "3 classes, label, costs, at random": (Three(), replace(label, cost=COSTS)),
        "2 classes, score, cost 3 of a false 1, at random": (AT_RANDOM, Ask(cost=UNEQUAL)),
        "2 classes, label, at random": (AT_RANDOM, label),
        "2 classes, label, lottery 2 %": (LOTTERY, label),
        "2 classes, blind score, at random": (AT_RANDOM, Ask(sees_group=False, gap=2_000.0)),
        "2 classes, blind score, lottery 2 %": (LOTTERY, Ask(sees_group=False, gap=2_000.0)),
        "2 classes, individual, at random": (AT_RANDOM, Ask(policy="individual")),
    }


def beyond_world(rng: np.random.Generator, world: Any, by: str, ask: Ask) -> dict[str, float]:
    """True losses, and whether the interval held."""
    asks = {way: (way, ask) for way in ("oracle", by, "left out")}
    seeds = rng.spawn(2)
    return loss_world(seeds[0], world, 4_000, asks) | coverage_world(seeds[1], world, by, ask)


def part_beyond(given: argparse.Namespace) -> None:
    """Three classes, costs, labels and policies that do not see the group."""
    rows = []
    for name, (world, ask) in beyond().items():
        found = run(
            beyond_world, given.worlds or 300, given.seed + 6, given.jobs, world=world, by=given.by, ask=ask
        )
        losses = [told(found[way]) for way in ("oracle", given.by, "left out")]
        rows.append([name, *losses, told(found[given.by] - found["oracle"]), *covered(found)])
        print(*rows[-1], sep=" | ", flush=True)
    heads = ["world", "oracle", given.by, "left out", "more than the oracle", *COVERED_HEADS]
    show(given, "beyond", table(heads, rows))


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "loss": part_loss,
    "curves": part_curves,
    "coverage": part_coverage,
    "max_odds_ratio": part_hidden,
    "loop": part_loop,
    "price": part_price,
    "repaid": part_repaid,
    "beyond": part_beyond,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--worlds", type=int, help="worlds of every row; by default as many as the pages say")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--by", choices=["felicific", "naive"], default="felicific")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        print(f"\n# {part}: {PARTS[part].__doc__}\n", flush=True)
        start = time.perf_counter()
        PARTS[part](given)
        print(f"\n{part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
