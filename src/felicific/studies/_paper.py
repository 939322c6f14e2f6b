"""Section 5 of the paper: three data sets, a forest, four methods, two policies; from data to numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._program.signals import Score, Signal, SoftLabel
from felicific.datasets import Dataset, adult, financial_loans, synthetic_loans
from felicific.exceptions import DataError
from felicific.studies._baseline import make_forest, split
from felicific.studies._tracks import METHODS, People, Track, fit, follow

#: The paper's policy, and ours.
POLICIES: dict[str, Callable[[], Signal]] = {"soft-label": SoftLabel, "score": Score}
PARTS = ("validation", "test")

#: Fewer people leave some group without anybody to measure a rate among.
FEWEST = 400


@dataclass(frozen=True)
class Settings:
    """What can be chosen when a study is run.

    Attributes
    ----------
    seeds : int
        Runs, with the seeds 0, 1, ...; each draws its own split and forest (and, where they are simulated, people).
    rows : int, optional
        Use this many people; by default all there are (synthetic: 48,842).
    loans : path, optional
        The public file of the loans.
    group : str, optional
        Another group column of the loans; see :func:`two_groups`.
    """

    seeds: int = 1
    rows: int | None = None
    loans: Any = None
    group: str | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """One seed: plain facts, and the track of every (policy, people, method).

    Of the data everything is kept but the rows.
    """

    seed: int
    data: Dataset
    facts: dict[str, Any]
    tracks: dict[tuple[str, str, str], Track]
    groups: tuple[Any, ...]


def load(name: str, seed: int, settings: Settings) -> Dataset:
    """The people of a study; with ``rows``, so many of them at random."""
    if name == "synthetic":
        return synthetic_loans(settings.rows or 48_842, seed=seed, as_frame="pandas")
    data = adult(as_frame="pandas") if name == "adult" else _loans(seed, settings)
    if settings.rows is None or settings.rows >= len(data.y):
        return data
    some = np.random.default_rng(seed).permutation(len(data.y))[: settings.rows]
    return replace(data, X=data.X.iloc[some].reset_index(drop=True), y=data.y[some])


def _loans(seed: int, settings: Settings) -> Dataset:
    data = financial_loans(settings.loans, seed=seed, as_frame="pandas")
    if settings.group is None:
        return data
    X = data.X.drop(columns=data.sensitive_features)
    if settings.group not in X.columns:
        raise DataError(
            f"The loans have no column {settings.group!r}.", f"Choose one of {', '.join(X.columns)}."
        )
    column = f"group by {settings.group}"
    X[column] = two_groups(X[settings.group].to_numpy())
    return replace(data, X=X, sensitive_features=column)


def two_groups(values: Any) -> Any:
    """Two groups of a column: its two values, below the median or not, or its commonest value or another."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) == 2:
        return np.array([str(value) for value in values.tolist()], dtype=object)
    if np.issubdtype(found.dtype, np.number):
        middle = float(np.median(values))
        return np.where(values < middle, f"below {middle:g}", f"{middle:g} and above").astype(object)
    common = str(found[counts.argmax()])
    return np.where(values == common, common, f"not {common}").astype(object)


def run(name: str, seed: int, settings: Settings, say: Callable[[str], None]) -> Run:
    """Split, train, fit every frontier on validation, follow it on validation and test."""
    say(f"{name}, seed {seed}: reading the people")
    data = load(name, seed, settings)
    if len(data.y) < FEWEST:
        raise DataError(f"{len(data.y)} people are too few to split.", f"Use at least {FEWEST}.")
    rows = dict(zip(("train", *PARTS), split(len(data.y), seed), strict=True))
    say(f"{name}, seed {seed}: training a random forest on {len(rows['train']):,} people")
    X_train = data.X.iloc[rows["train"]]
    forest = make_forest(X_train, seed).fit(X_train, data.y[rows["train"]])
    people = {}
    for part, chosen in rows.items():
        X, y = data.X.iloc[chosen], data.y[chosen]
        people[part] = People.of(X, y, forest.predict_proba(X), data.happiness, data.sensitive_features)
    facts: dict[str, Any] = {
        "seed": seed,
        "people": {part: len(chosen) for part, chosen in rows.items()},
        "validation people by group": _counts(people["validation"]),
        "forest": {part: _forest_accuracy(some) for part, some in people.items()},
        "policies": {},
    }
    tracks: dict[tuple[str, str, str], Track] = {}
    for policy, signal in POLICIES.items():
        say(f"{name}, seed {seed}: frontiers of the {policy} policy")
        found = _tracks(people, signal())
        tracks |= {(policy, part, method): track for (part, method), track in found.items()}
        facts["policies"][policy] = {part: _numbers(people[part], policy, part, found) for part in PARTS}
    return Run(seed, replace(data, X=None, y=data.y[:0]), facts, tracks, people["validation"].groups)


def _tracks(people: dict[str, People], signal: Signal) -> dict[tuple[str, str], Track]:
    """Fit on validation, follow on validation and test."""
    fitted = people["validation"].moments(signal).joined()
    moments = {"validation": fitted, "test": people["test"].moments(fitted.signal)}
    lines = fit(fitted)
    return {
        (part, method): follow(lines[method], people[part], moments[part])
        for part in PARTS
        for method in METHODS
    }


def _counts(people: People) -> dict[str, int]:
    return {str(group): int((people.group == group).sum()) for group in people.groups}


def _forest_accuracy(people: People) -> dict[str, float]:
    """Soft: of a label drawn from the probabilities. Hard: of the most probable label."""
    own = people.proba[np.arange(len(people.y)), people.y]
    return {
        "soft": float(own.mean()),
        "hard": float((people.proba.argmax(axis=1) == people.y).mean()),
    }


def _numbers(
    people: People, policy: str, part: str, tracks: dict[tuple[str, str], Track]
) -> dict[str, dict[str, Any]]:
    """The classifier as it is, and of every method the ends of its frontier and its closest approach to gap 0."""
    as_it_is = people.proba if policy == "soft-label" else np.eye(2)[people.proba.argmax(axis=1)]
    found: dict[str, dict[str, Any]] = {"unprocessed": people.measure(as_it_is)}
    ours = tracks["validation", METHODS[0]]
    for method in METHODS:
        track = tracks[part, method]
        closest = track.at(track.closest)
        if part == "validation":
            closest["accuracy of own happiness at that gap"] = ours.accuracy_at(closest["gap"])
        found[method] = {
            "at eps 0": track.at(0),
            "at least loss": track.at(len(track.eps) - 1),
            "closest to gap 0": closest,
        }
    return found
