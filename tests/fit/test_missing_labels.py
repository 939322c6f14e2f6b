"""Policies that are tried on people of whom some have no label: the values of an audit, and what they promise."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import solved, traced

from felicific import Happiness, MissingLabels, aggregate, solve
from felicific._audit.band import band_of
from felicific._audit.measure_people import measured_of
from felicific._audit.methods import measure_loss, sample_of
from felicific._fit.certificate import a_priori
from felicific._fit.fitted import achieved, outcome_of
from felicific._fit.safety import LOSS_SHARE, Trial, certify
from felicific._fit.tryout import Tryout
from felicific._people.labels import LabelBeliefs
from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._statistics.gaps import spread_of

HAPPINESS = {
    "hired": "equal_opportunity",
    "money": "decision * y * amount",
    "paid": Happiness("decision * amount", bounds=(0, 60)),
    "some": Happiness("decision * y", among="amount > 1"),
}


def table_of(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, 2, n), rng.normal(size=n)
    score = 1.0 / (1.0 + np.exp(-x + 0.3 * group))
    probabilities = 1.0 / (1.0 + np.exp(-0.8 * x - 0.5))
    truth = (rng.random(n) < score).astype(float)
    return pd.DataFrame(
        {
            "g": np.where(group, "b", "a"),
            "amount": np.exp(rng.normal(size=n)),
            "score": score,
            "proba": probabilities,
            "full": truth.astype(int),
            "y": np.where(rng.random(n) < probabilities, truth, np.nan),
        }
    )


def people_of(table, problem, max_odds_ratio=1.0, weight=None):
    """With what is believed of labels."""
    people = People.of(
        table,
        problem,
        group=table["g"].to_numpy(),
        y=table["y"].to_numpy(),
        score=np.column_stack([1.0 - table["score"], table["score"]]),
        weight=weight,
        missing=MissingLabels(label_proba="proba", max_odds_ratio=max_odds_ratio),
        label_proba=table["proba"].to_numpy(),
    )
    return LabelBeliefs.of(people).of_people(people)


@pytest.mark.parametrize("max_odds_ratio", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_trial_has_the_values_of_an_audit(max_odds_ratio, weighted):
    """Person by person, of every measure and the loss, at both ends; and outcomes are the means of them."""
    table, problem = table_of(), Problem.of(np.array([0, 1]), HAPPINESS)
    weight = np.random.default_rng(2).integers(1, 4, len(table)).astype(float) if weighted else None
    people = people_of(table, problem, max_odds_ratio, weight)
    asked = {"score": "score", "y": "full", "sensitive_features": "g", "gap": {"hired": 0.05}}
    policy = solved(table_of(seed=1), happiness=HAPPINESS, random_state=0, **asked)
    tried, exact = Tryout(problem, people), measured_of(policy.decided(people), problem)
    found = tried.persons(policy)
    ways = [(found, exact), *(zip(found.ends, exact.ends, strict=True) if max_odds_ratio > 1 else ())]
    assert (found.ends is None) == (max_odds_ratio == 1.0)
    for one, other in ways:
        inside = np.ones_like(one.values, dtype=bool) if other.inside is None else other.inside
        own = np.where(inside, one.values + one.origin, 0.0)
        assert own == pytest.approx(np.where(inside, other.values + other.origin, 0.0), abs=1e-9)
        assert one.losses == pytest.approx(other.losses, abs=1e-12)
        assert one.means == pytest.approx(other.means, abs=1e-9)
    assert found.reach[:-1, :-1] == pytest.approx(exact.reach[:-1, :-1], rel=1e-9)
    assert found.reach[-1, -1] == pytest.approx(exact.reach[-1, -1], rel=1e-9)
    probabilities = tried.probabilities(policy)
    for outcome in (
        tried.outcome(probabilities),
        achieved(problem, people, probabilities),
        outcome_of(exact),
    ):
        worst = exact if max_odds_ratio == 1.0 else exact.ends[1]
        assert outcome.loss == pytest.approx(np.average(worst.losses, weights=weight), rel=1e-9)
        assert outcome.means == pytest.approx(exact.means, rel=1e-9)
    least, most = (exact, exact) if max_odds_ratio == 1.0 else exact.ends
    gap = max(most.means[0, 1] - least.means[1, 1], most.means[1, 1] - least.means[0, 1])
    assert tried.outcome(probabilities).gaps[1] == pytest.approx(gap, rel=1e-9)


def test_complete_labels_are_tried_as_they_were():
    """Where nobody lacks a label, whatever is said of missing ones changes no bit."""
    table, problem = table_of(), Problem.of(np.array([0, 1]), HAPPINESS)
    table["y"] = table["full"]
    people = people_of(table, problem, 2.0)
    policy = solved(
        table_of(seed=1), happiness=HAPPINESS, score="score", y="full", sensitive_features="g", gap={}, random_state=0
    )  # fmt: skip
    plain = Tryout(problem, replace(people, missing=None, label_proba=None, chances=None)).persons(policy)
    found = Tryout(problem, people).persons(policy)
    assert (found.values == plain.values).all()
    assert (found.losses == plain.losses).all()
    assert (found.rates == plain.rates).all()
    assert found.debiased is None


@pytest.mark.parametrize("max_odds_ratio", [1.0, 1.5])
def test_a_band_holds_both_ends(max_odds_ratio):
    """Its limits are those of the least below, and of the most above."""
    table, problem = table_of(), Problem.of(np.array([0, 1]), {"hired": "equal_opportunity"})
    people = people_of(table, problem, max_odds_ratio)
    line = traced(
        table_of(seed=1), happiness={"hired": "equal_opportunity"}, score="score", y="full", sensitive_features="g"
    )  # fmt: skip
    tried = Tryout(problem, people)
    band = band_of(line, tried.persons, 0.9)
    tail = 0.1 / (2.0 * len(line.tau) * 3)
    for i in (0, len(line.tau) - 1):
        persons = tried.persons(line.policies[i])
        measure, loss = sample_of(persons, 0), measure_loss(persons)
        low, high = (side + measure.origin for side in measure.limits(tail))
        assert band.low[i, :, 0] == pytest.approx(low)
        assert band.high[i, :, 0] == pytest.approx(high)
        assert band.loss_high[i] == pytest.approx(loss.limits(tail)[1][0])


@pytest.mark.parametrize("max_odds_ratio", [1.0, 1.3])
def test_a_promise_rests_on_debiased_values(max_odds_ratio):
    """What is shown is the worst that is left open; the loss is the end of a two-sided interval; both are said."""
    asked = {
        "happiness": {"hired": "equal_opportunity"},
        "score": "score",
        "sensitive_features": "g",
        "y": "full",
    }
    problem = Problem.of(np.array([0, 1]), asked["happiness"], gap=0.6)
    line = traced(table_of(seed=1), **asked)
    held = Tryout(problem, people_of(table_of(4000), problem, max_odds_ratio))
    fitted = Tryout(problem, people_of(table_of(4000, 1), problem, max_odds_ratio))
    start = line.at(gap=0.3)
    trial = Trial(0.9, problem.comparisons, fitted.persons(start))
    finish = lambda policy: replace(policy, salt="0" * 32)  # noqa: E731
    policy, certificate = certify(start, line, trial, held.persons, finish)
    persons = held.persons(policy)
    measure = sample_of(persons, 0, large=True)
    (shown,) = trial.shows(persons, policy.salt)
    assert shown.passed
    assert not shown.surely
    if max_odds_ratio > 1.0:
        assert spread_of(measure.limits(trial.level / 2.0))[1] <= 0.6
        low, high = measure.limits(trial.level / 2.0)
        tight = replace(
            trial, claims=(replace(trial.claims[0], at_most=0.999 * max(high[0] - low[1], high[1] - low[0])),)
        )
        assert not tight.shows(persons, policy.salt)[0].passed
        assert "if reasons outside the table change the odds of having a label at most 1.3-fold" in str(
            certificate
        )
    else:
        assert "if the odds of having a label are known" in str(certificate)
    loss, _ = trial.loss_bound(persons, 3)
    assert loss == measure_loss(persons).limits(LOSS_SHARE * trial.gamma / 6.0)[1][0]


def test_nothing_is_promised_in_advance():
    """The bound for all policies of a kind counts people whose label is known."""
    asked = {"happiness": "decision", "score": "score", "sensitive_features": "g", "y": "y"}
    sums = aggregate(table_of(), missing_labels="at_random", **asked)
    policy = solve(sums, gap=0.1, random_state=0)
    problem = Problem.of(np.array([0, 1]), "decision")
    found = a_priori(policy, sums, problem.loss, 0.95)
    assert found.basis == "none"
    assert "labels are missing" in found.sentence
