"""Bands: limits that hold along a whole frontier at once."""

import json

import numpy as np
import pytest
from conftest import make_people, refused

from felicific import FairClassifier, aggregate, frontier
from felicific.exceptions import ConstraintError, DataError, GroupError


def funding(decision, x):
    return decision * x["loan"]


SETTINGS = {"happiness": [funding, "equal_opportunity"], "sensitive_features": "group"}


@pytest.fixture(scope="module")
def fair():
    people = make_people(600, 0)
    model = FairClassifier(people.frozen("pandas"), gap=1.0, policy="label", random_state=0, **SETTINGS)
    return model.fit(people.table("pandas"), people.y)


def truth_along(fair, people, tau):
    """Group means of the policy at a position, person by person."""
    line = fair.frontier_
    policy = line.at(tau=tau)
    table = people.table("pandas")
    predicted = fair.estimator_.predict(fair._intake.features(table, fair.estimator_))
    q = policy.probabilities(predicted, people["group"])[:, 1]
    means = np.empty((2, 2))
    for z in (0, 1):
        rows = people["group"] == z
        means[z] = (q * people["loan"])[rows].mean(), q[rows & (people.y == 1)].mean()
    return means


def test_the_whole_band_holds_together(fair):
    """In at most 1 - confidence of the runs any position, between breakpoints too, leaves the band."""
    population = make_people(20_000, 50)
    taus = np.linspace(fair.frontier_.tau[0], fair.frontier_.tau[-1], 7)
    truths = [truth_along(fair, population, tau) for tau in taus]
    whole, rng = population.table("pandas"), np.random.default_rng(0)
    missed, narrow = 0, 0
    runs = 60
    for _ in range(runs):
        rows = rng.choice(20_000, 200)
        found = fair.frontier_on(whole.iloc[rows], population.y[rows], confidence=0.8)
        missed += any(
            (found.limits(tau)[0] > truth).any() or (found.limits(tau)[1] < truth).any()
            for tau, truth in zip(taus, truths, strict=True)
        )
        middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
        shrunk = type(found)(**(vars(found) | {"low": middle - 0.4 * half, "high": middle + 0.4 * half}))
        narrow += any(
            (shrunk.limits(tau)[0] > truth).any() or (shrunk.limits(tau)[1] < truth).any()
            for tau, truth in zip(taus, truths, strict=True)
        )
    assert missed / runs <= 0.2
    assert narrow / runs > 0.2  # so that the test can fail


def test_gaps_follow_from_the_limits(fair):
    """The gap at a position lies within what the limits leave open, and tables hold the same numbers."""
    people = make_people(800, 3)
    found = fair.frontier_on(people.table("pandas"), people.y, confidence=0.95)
    curve = fair.frontier_on(people.table("pandas"), people.y)
    for tau in np.linspace(found.tau[0], found.tau[-1], 5):
        low, high = found.gaps(tau)["funding"]
        assert 0.0 <= low <= np.interp(tau, curve.tau, curve.gaps[:, 0]) <= high
        assert found.losses(tau)[0] <= np.interp(tau, curve.tau, curve.loss) <= found.losses(tau)[1]
    at_breakpoints = curve.means[~curve.kink]
    np.testing.assert_allclose(found.means, at_breakpoints, atol=1e-9)
    table = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert table["largest gap of funding"][0] == found.gaps(found.tau[0])["funding"][1]
    assert len(found.to_frame()) == len(found.tau)
    with refused(ConstraintError, "not on this frontier"):
        found.gaps(found.tau[-1] + 1.0)


def test_without_scikit_learn(fair):
    """A frontier of aggregates and arrays of scores give the same band."""
    people, other = make_people(600, 0), make_people(500, 8)
    table = people.table("pandas")
    predicted = fair.estimator_.predict(fair._intake.features(table, fair.estimator_))
    line = frontier(
        aggregate(table, predicted=predicted, y=people.y, policy="label", **SETTINGS), random_state=0
    )
    scores = fair.estimator_.predict(fair._intake.features(other.table("pandas"), fair.estimator_))
    found = line.band(scores, other.table("pandas"), other.y, **SETTINGS)
    assert found.low.shape == (len(line), 2, 2)
    assert (found.low <= found.means).all()
    assert (found.means <= found.high).all()
    with refused(DataError, "scores for 500 rows"):
        line.band(scores[:-1], other.table("pandas"), other.y, **SETTINGS)
    with refused(DataError, "The frontier measures"):
        line.band(scores, other.table("pandas"), other.y, happiness=funding, sensitive_features="group")
    with refused(DataError, "confidence"):
        line.band(scores, other.table("pandas"), other.y, confidence=1.0, **SETTINGS)
    with refused(GroupError, "never fitted"):
        line.band(scores, other.table("pandas", group=other["group"] + 5), other.y, **SETTINGS)
