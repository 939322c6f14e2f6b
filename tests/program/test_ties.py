"""Of several optimal policies, the one nearest to the baseline's decisions: against a second naive program."""

import numpy as np
import pytest
from naive_program import Naive
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Gap, Score, aggregate, frontier, solve
from felicific._program import generation

POLICIES = {"label": "label", "cells": Score(12), "free cells": Score(12, monotone=False)}


def sums(seed, policy, K=2):
    """People with few distinct numbers, so that many policies are equally good."""
    rng = np.random.default_rng(seed)
    n = 60
    group = rng.integers(0, 2, n)
    if K == 2:
        score = rng.choice([0.1, 0.2, 0.4, 0.6, 0.7, 0.9], n)
        score = np.column_stack([1 - score, score])
    else:
        score = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.5, 0.25, 0.25]])[
            rng.integers(0, 4, n)
        ]
    y = rng.integers(0, K, n)
    return aggregate(
        np.zeros((n, 1)),
        score=score,
        y=y,
        sensitive_features=group,
        happiness="equalized_odds",
        policy=policy,
    ).joined()


def naive_distance(computed):
    """Cost of every change, cell by cell in loops: people, times the share of the group up to the baseline's turn."""
    G, S, K = computed.loss.shape
    baseline = computed.signal.baseline(K).tolist()
    cost = np.zeros((G, S, K))
    runs = [list(run) for run in computed.signal.runs(K)]
    for z in range(G):
        for run in runs:
            people = [float(computed.mass[z, s]) for s in run]
            turns = [i for i in range(1, len(run)) if baseline[run[i]] != baseline[run[i - 1]]] or [0]
            for i, s in enumerate(run):
                middle = sum(people[:i]) + people[i] / 2
                far = min(abs(middle - sum(people[:turn])) for turn in turns) / max(sum(people), 1e-300)
                for d in range(K):
                    if d != baseline[s]:
                        cost[z, s, d] = people[i] * (far if len(run) > 1 else 1.0)
    return cost


def naive_nearest(computed, gap, distance=None):
    """Least total distance of any policy that is optimal at the gap."""
    distance = naive_distance(computed) if distance is None else distance
    largest = distance.max()
    closed = [Gap(measure, gap, min_people=0) for measure in computed.measures]
    return largest * Naive(computed).changes(closed, distance / largest)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_solution_is_the_nearest_of_the_optimal_ones(policy, seed):
    """Nothing that is optimal changes the baseline's decisions less."""
    computed = sums(seed, POLICIES[policy])
    changed = (naive_distance(computed) * solve(computed, gap=0.05).q).sum()
    assert changed == pytest.approx(naive_nearest(computed, 0.05), abs=1e-5)


@pytest.mark.parametrize("policy", POLICIES)
def test_points_of_the_frontier_are_the_nearest_too(policy):
    """At a breakpoint the frontier's policy changes as little as any that is as good."""
    computed = sums(7, POLICIES[policy])
    line = frontier(computed, gap={"equalized_odds": 1.0})
    for tau, policy_there in zip(line.tau, line.policies, strict=True):
        changed = (naive_distance(computed) * policy_there.q).sum()
        assert changed == pytest.approx(naive_nearest(computed, float(tau) + 1e-12), abs=1e-5)


def test_many_classes():
    """With three classes a change counts the more, the surer the model was."""
    computed = sums(3, Score(12), K=3)
    changed = (naive_distance(computed) * solve(computed, gap=0.1).q).sum()
    assert changed == pytest.approx(naive_nearest(computed, 0.1), abs=1e-5)


def test_who_is_indifferent_keeps_the_decision():
    """Where the loss does not care and nothing is asked, the baseline's decisions stay."""
    score = np.repeat([0.2, 0.4, 0.6, 0.8], 10)
    computed = aggregate(
        np.zeros((40, 1)),
        score=np.column_stack([1 - score, score]),
        y=np.arange(40) % 2,
        sensitive_features=np.repeat([0, 1], 20)[np.argsort(np.tile(np.arange(2), 20), kind="stable")],
        happiness="statistical_parity",
    ).joined()
    q = solve(computed, gap={}).q
    held = computed.mass > 0
    baseline = np.eye(2)[computed.signal.baseline(2)]
    assert (q[held] == np.broadcast_to(baseline, q.shape)[held]).all()


def test_individual_mixtures_change_least():
    """Of the mixtures of its columns that are optimal on the real labels, the one that changes the baseline least."""
    rng = np.random.default_rng(5)
    n = 300
    group = rng.integers(0, 2, n)
    score = np.clip(rng.beta(2, 3, n) + 0.15 * group, 0, 1)
    x = np.column_stack([score, group])
    y = (rng.random(n) < score).astype(int)
    made = []

    class Spy(generation.Generator):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    original, generation.Generator = generation.Generator, Spy
    try:
        fair = FairClassifier(
            FrozenEstimator(Told().fit(x, y)),
            happiness="equalized_odds",
            gap=0.02,
            policy="individual",
            sensitive_features=lambda x: x[:, 1],
        ).fit(x, y)
    finally:
        generation.Generator = original
    (found,) = made
    cost = found.ground.plug_in.cost
    far = np.square(cost - cost[np.arange(n), found.crowd.own][:, None])
    changed = (far * fair.predict_proba(x)).sum()
    computed = found.real.aggregates()
    least = naive_nearest(computed, 0.02, np.array(found.changed).T[:, None, :])
    assert changed == pytest.approx(least, rel=1e-6)
    assert computed.loss.shape[2] > 10


class Told(ClassifierMixin, BaseEstimator):
    """A model that reads the probability from the first column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_the_frontier_has_the_least_gap_of_the_optimal_ones(policy, seed):
    """A gap that leaves room: the solution is the nearest, the frontier's policy as good and of no larger gap."""
    computed = sums(seed, POLICIES[policy])
    most = {measure.name: 1.0 for measure in computed.measures}
    solved, there = solve(computed, gap=most), frontier(computed, gap=most).at(gap=most)
    assert there.loss == pytest.approx(solved.loss, abs=1e-9)
    assert max(there.gaps.values()) <= max(solved.gaps.values()) + 1e-9
