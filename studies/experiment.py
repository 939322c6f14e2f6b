"""The experiment that the paper's studies share: a forest, four methods, two policies, and what they do to people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from felicific import Budget, Gap, Happiness, Policy, aggregate, frontier, solve
from felicific.datasets import Dataset

Floats = NDArray[np.float64]

OWN = "own happiness"
#: The criteria in the order of the columns 1, 2, 3 of the paper's files; column 0 is the own happiness.
CRITERIA = {
    name: name.replace(" ", "_") for name in ("equalized odds", "statistical parity", "overall accuracy")
}
METHODS = (OWN, *CRITERIA)
POLICIES = {"soft-label": "the paper's policy", "score": "the score policy of felicific, changes free"}
PARTS = ("validation", "test")

SHARES = (0.20, 0.16)  # of the people who train the forest and who fit the policies; all others are the test
UNUSED = ("ApplicationDate",)  # not a feature: another value in every row of the loans


def split(n: int, seed: int) -> list[NDArray[np.intp]]:
    """Rows of train, validation and test: 20, 16 and 64 % of ``n``, at random by a fixed seed."""
    n_train, n_validation = (round(share * n) for share in SHARES)
    return np.split(np.random.default_rng(seed).permutation(n), [n_train, n_train + n_validation])


def make_forest(X: pd.DataFrame, seed: int) -> Any:
    """One-hot encoding and a random forest of scikit-learn's own settings, for tables like ``X``.

    One thread: with several, the trees' votes are summed in the order in which the threads end, and the last bits of
    a score differ from run to run.
    """
    text = [name for name in X.columns if name not in UNUSED and X[name].to_numpy().dtype == object]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text),
        ("drop", [name for name in UNUSED if name in X.columns]),
        remainder="passthrough",
    )
    return make_pipeline(encoder, RandomForestClassifier(random_state=seed, n_jobs=1))


@dataclass(frozen=True, eq=False)
class People:
    """Some people, and the model's probabilities for them."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    score: Floats
    group: NDArray[Any]
    happiness: Happiness

    @property
    def groups(self) -> list[Any]:
        """The two groups, sorted."""
        return sorted(set(self.group.tolist()))

    @cached_property
    def worth(self) -> Floats:
        """Happiness of everybody when refused, and when approved."""
        return np.array([self.happiness.function(decision, self.X) for decision in (0, 1)], dtype=float)

    def measure(self, chance: Floats) -> dict[str, float]:
        """Accuracy, difference of the group means and its standard error, when approved with these chances.

        The error is that of the difference of two means, from the variances within the groups: it says how far the
        gap among other people would be, were the same policy used on them.
        """
        refused, approved = self.worth
        gained = chance * approved + (1 - chance) * refused
        first, second = (gained[self.group == group] for group in self.groups)
        error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
        accuracy = np.where(self.y == 1, chance, 1 - chance).mean()
        return {"accuracy": accuracy, "difference": first.mean() - second.mean(), "error": error}


# ---------------------------------------------------------------------------------------------------------
# Frontiers, and ties between optimal policies


@dataclass(frozen=True, eq=False)
class Line:
    """A method's frontier: the gap allowed at every breakpoint, and its policies there at both ends of their ties.

    A criterion can be indifferent between policies that treat the groups very differently: equal accuracy does not
    care on which side the more accurate group's errors are made. Of the optimal policies at a breakpoint these are the
    two that differ most in the difference of the groups' mean happiness. Their middle is optimal too, and leans to
    neither group.
    """

    eps: Floats
    low: list[Policy]
    high: list[Policy]


def fit_lines(people: People, policy: str) -> dict[str, Line]:
    """The frontier of every method, exactly."""
    sums = partial(
        aggregate,
        people.X,
        score=people.score,
        y=people.y,
        sensitive_features=people.group,
        happiness=[people.happiness, *CRITERIA.values()],
        policy=policy,
    )
    count = {group: float((people.group == group).sum()) for group in people.groups}

    def ahead(decision: Any, x: Any, group: Any) -> Any:
        """What a person adds to the difference between the first group's mean happiness and the second's."""
        sign = np.where(group == people.groups[0], 1 / count[people.groups[0]], -1 / count[people.groups[1]])
        return sign * people.happiness.function(decision, x)

    def behind(decision: Any, x: Any, group: Any) -> Any:
        return -ahead(decision, x, group)

    whole, ends = sums(), [sums(loss=ahead), sums(loss=behind)]
    own = frontier(whole, constraints=[Gap(people.happiness.name, 1.0, min_people=0)], change_cost=0)
    found = {OWN: Line(own.tau, own.policies, own.policies)}
    for method, criterion in CRITERIA.items():
        line = frontier(whole, constraints=[Gap(criterion, 1.0, min_people=0)], change_cost=0)
        places = [
            [Gap(criterion, eps, min_people=0), Budget("overall_accuracy", at_least=1 - loss)]
            for eps, loss in zip(line.tau.tolist(), line.loss.tolist(), strict=True)
        ]
        low, high = ([solve(end, constraints=place, change_cost=0) for place in places] for end in ends)
        found[method] = Line(line.tau, low, high)
    return found


def follow(line: Line, people: People) -> pd.DataFrame:
    """What a method's frontier does to some people, from its least gap to the least loss.

    A row for every breakpoint, and where the groups change places: ``eps`` allowed, accuracy, gap of the own happiness,
    its standard error, and the least and the largest gap that ties allow. In between everything is a straight line.
    """
    low, high = (
        np.array([policy.probabilities(people.score, people.group)[:, 1] for policy in end])
        for end in (line.low, line.high)
    )
    middle = (low + high) / 2
    sides = [np.array([people.measure(row)["difference"] for row in end]) for end in (middle, low, high)]
    eps = distinct_numbers(np.concatenate([line.eps, *(crossings(line.eps, side) for side in sides)]))
    mix = np.column_stack([np.interp(eps, line.eps, one) for one in np.eye(len(line.eps))])
    track = pd.DataFrame([people.measure(chance) for chance in mix @ middle])
    ends = mix @ sides[1], mix @ sides[2]
    track["gap"] = track.pop("difference").abs()
    track["low"] = np.where(ends[0] * ends[1] < 0, 0.0, np.abs(ends).min(axis=0))
    track["high"] = np.abs(ends).max(axis=0)
    gaps = track[["gap", "low", "high"]]
    track[gaps.columns] = gaps.mask(gaps <= 1e-9 * gaps.max(axis=None), 0.0)  # what rounding leaves of a zero
    return track.assign(eps=eps)[["eps", "accuracy", "gap", "error", "low", "high"]]


def distinct_numbers(numbers: Floats) -> Floats:
    """Sorted, and one of those that differ by rounding only."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.diff(ordered, prepend=-math.inf) > 1e-12 * abs(ordered[-1])])


def crossings(places: Floats, numbers: Floats, level: float = 0.0) -> list[float]:
    """Where a piecewise straight line passes a level; touching it is not passing it."""
    above = numbers - level
    off = np.flatnonzero(np.abs(above) > 1e-9 * np.abs(above).max())
    found = []
    for i, j in pairwise(off.tolist()):
        if above[i] * above[j] < 0:
            # Either between two neighbours, or on a point that lies on the level itself.
            at, share = (i, above[i] / (above[i] - above[j])) if j == i + 1 else (i + 1, 0.0)
            found.append(float(places[at] + share * (places[j] - places[at])))
    return found


# ---------------------------------------------------------------------------------------------------------
# One seed


@dataclass(frozen=True, eq=False)
class Run:
    """One seed.

    ``tracks`` are by policy, people and method. ``numbers`` has a row for every policy, people, method and place: the
    classifier "as it is", the criterion met at "eps 0", and the method "closest" to gap 0.
    """

    people: dict[str, int]
    fewest: int  # validation people of the smaller group
    tracks: dict[tuple[str, str, str], pd.DataFrame]
    numbers: pd.DataFrame


def run(data: Dataset, seed: int, say: Callable[[str], None]) -> Run:
    """Split, train, fit every frontier on validation, follow it on validation and test."""
    rows = dict(zip(("train", *PARTS), split(len(data.y), seed), strict=True))
    say(f"seed {seed}: training a random forest on {len(rows['train']):,} people")
    X, y = data.X.iloc[rows["train"]], data.y[rows["train"]]
    forest = make_forest(X, seed).fit(X, y)
    people = {}
    for part, chosen in rows.items():
        X, y = data.X.iloc[chosen], data.y[chosen]
        group = X[data.sensitive_features].to_numpy(dtype=object)
        people[part] = People(X, y, forest.predict_proba(X), group, data.happiness)
    tracks: dict[tuple[str, str, str], pd.DataFrame] = {}
    numbers = []
    for policy in POLICIES:
        say(f"seed {seed}: frontiers of the {policy} policy")
        lines = fit_lines(people["validation"], policy)
        for part, some in people.items():
            score = some.score[:, 1]
            whole = some.measure(score if policy == "soft-label" else (score > 0.5).astype(float))
            whole["gap"] = abs(whole.pop("difference"))
            numbers.append((policy, part, "unprocessed", "as it is", whole))
        for part in PARTS:
            for method, line in lines.items():
                track = tracks[policy, part, method] = follow(line, people[part])
                numbers += [(policy, part, method, *place) for place in _places(track, tracks, policy)]
    names = ["policy", "people", "method", "place"]
    frame = pd.DataFrame([dict(zip(names, keys, strict=True)) | found for *keys, found in numbers])
    fewest = int(pd.Series(people["validation"].group).value_counts().min())
    return Run({part: len(chosen) for part, chosen in rows.items()}, fewest, tracks, frame.assign(seed=seed))


def _places(track: pd.DataFrame, tracks: dict[Any, pd.DataFrame], policy: str) -> list[tuple[str, Any]]:
    """A track where its criterion is met exactly, and where its gap is least; of those the most accurate."""
    near = track[track["gap"] <= track["gap"].min() + 1e-9 * max(track["gap"].max(), 1.0)]
    closest = track.loc[near["accuracy"].idxmax()].to_dict()
    own = tracks[policy, "validation", OWN]
    closest["own accuracy"] = np.interp(closest["gap"], own["gap"], own["accuracy"])
    return [("eps 0", track.iloc[0].to_dict()), ("closest", closest)]
