"""Harm to intersections: counted as a loop over people counts it, and each fit that does it warns, others do not."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

from felicific import FairClassifier, FairRegressor, Gap, Happiness, Policy
from felicific._policy.numeric import AmountPolicy
from felicific._problem.criteria import ROWS
from felicific._problem.happiness import resolve_happiness
from felicific.exceptions import PolicyWarning

BOTH = [Gap("worth", 0.02, between="race"), Gap("worth", 0.02, between="sex")]
HARM = ("An intersection loses more than its groups", "The gap between intersections widens")


def people(*shares, high=(0.9, 0.9, 0.9, 0.9), n=(300, 300, 300, 300), seed=0):
    """White women, white men, Black women and Black men, with the shares that the model approves and their scores."""
    rng, rows = np.random.default_rng(seed), []
    for (race, sex), share, score, size in zip(product("WB", "FM"), shares, high, n, strict=True):
        good = np.arange(size) < round(share * size)
        scores = np.where(good, score, 0.1) + rng.uniform(-0.03, 0.03, size)
        rows.append(
            pd.DataFrame({"race": race, "sex": sex, "score": scores, "loan": rng.uniform(1, 9, size)})
        )
    table = pd.concat(rows, ignore_index=True)
    return table.assign(y=(rng.random(len(table)) < table["score"]).astype(int))


def fitted(table, happiness="decision", weight=None, **settings):
    settings = {
        "sensitive_features": ["race", "sex"],
        "random_state": 0,
        "happiness": {"worth": happiness},
    } | settings
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fair = FairClassifier("score", **settings).fit(table, table["y"], sample_weight=weight)
    return fair, [str(one.message) for one in found if one.category is PolicyWarning]


def naive(table, before, after, weight, points):
    """By how much each intersection of 30 people falls that falls 5 points more than its groups; and the gaps."""

    def mean(numbers, inside):
        total = sum(w for w, one in zip(weight, inside, strict=True) if one)
        return sum(w * number for w, number, one in zip(weight, numbers, inside, strict=True) if one) / total

    falls, means = {}, []
    for race, sex in product("WB", "FM"):
        own = [(table["race"] == race) & (table["sex"] == sex), table["race"] == race, table["sex"] == sex]
        was, now = ([mean(numbers, inside) for inside in own] for numbers in (before, after))
        if own[0].sum() < 30:
            continue
        means.append((was[0], now[0]))
        fall, others = was[0] - now[0], max(was[i] - now[i] for i in (1, 2))
        if fall - others >= (0.05 if points else 0.05 * was[0]):
            falls[f"{race} & {sex}"] = fall
    return falls, means


@pytest.mark.parametrize("seed", range(12))
def test_harm_is_what_a_loop_over_people_finds(seed):
    """With and without weights and between=, of shares and of dollars; warned of in at most two sentences, or not."""
    rng = np.random.default_rng(seed)
    table = people(
        *rng.uniform(0.1, 0.9, 4), high=rng.uniform(0.54, 0.9, 4), n=rng.integers(20, 400, 4), seed=seed
    )
    money, weight = seed % 3 == 2, rng.uniform(0.2, 3.0, len(table)) if seed % 2 else np.ones(len(table))
    constraints = [gap.at(gap.at_most * (5.0 if money else 1.0)) for gap in BOTH]
    settings = {"constraints": constraints} if seed % 4 else {"gap": 0.1}
    fair, said = fitted(table, "decision * loan" if money else "decision", weight, **settings)
    worth = table["loan"] if money else 1.0
    before, after = worth * (table["score"] > 0.5), worth * fair.predict_proba(table)[:, 1]
    falls, means = naive(table, before, after, weight, not money)
    found = fair.impact_["proposed"]
    assert found.harmed == ({"worth": pytest.approx(falls)} if falls else {})
    was, now = np.ptp(means, axis=0)
    least = 0.01 * max(mean for mean, _ in means) if money else 0.01
    assert found.widened == ({"worth": pytest.approx(now - was)} if now - was >= least and seed % 4 else {})
    assert any(text.startswith(HARM) for text in said) == bool(found.harmed or found.widened)
    assert len(said) <= 1
    assert all(text.count(". ") <= 1 for text in said)
    assert fair.impact_["baseline"].harmed == fair.impact_["baseline"].widened == {}
    assert Policy.from_json(fair.policy_.to_json()).outcomes["proposed"].to_dict() == found.to_dict()


def test_white_women_who_pay_for_both_gaps_are_named():
    """A gap by race and one by sex, closed at the expense of white women: warned, counted and printed."""
    table = people(0.88, 0.5, 0.4, 0.3, high=(0.54, 0.9, 0.9, 0.9), n=(600, 1000, 600, 600))
    fair, (said,) = fitted(table, constraints=BOTH)
    assert "mean 'worth' falls from 0.88 to 0.5" in said
    assert "in group 'W & F'" in said
    assert said in repr(fair)
    assert [*fair.impact_["proposed"].to_dict()["harmed"]["worth"]] == ["W & F"]
    assert any("'W & F'" in text and text.startswith(HARM[0]) for text in fair.policy_.impact())
    one, quiet = fitted(table, gap=0.3, sensitive_features="sex")
    assert (quiet, one.impact_["proposed"].harmed) == ([], None)


def test_where_nobody_is_harmed_nothing_is_said():
    """Groups that differ by one attribute alone, brought together: no intersection moves otherwise than its groups."""
    fair, said = fitted(people(0.6, 0.6, 0.4, 0.4), constraints=BOTH)
    assert said == []
    assert fair.impact_["proposed"].harmed == fair.impact_["proposed"].widened == {}


def test_amounts_name_whom_they_harm():
    """A policy of amounts counts and warns alike, and its file keeps both."""
    table = people(1.0, 0.2, 0.2, 0.2, n=(400, 900, 900, 400))
    gaps = [Gap("decision", 0.01, between=one) for one in ("race", "sex")]
    hours = FairRegressor("score", happiness="decision", constraints=gaps, sensitive_features=["race", "sex"])
    with pytest.warns(PolicyWarning, match=f"{HARM[0]}.*'W & F'"):
        hours.fit(table, table["y"])
    found = hours.impact_["proposed"]
    was, now = (hours.impact_[name].means[:, 0] for name in ("baseline", "proposed"))
    place = hours.groups_.index("W & F")
    assert found.harmed == {"decision": {"W & F": pytest.approx(was[place] - now[place])}}
    again = AmountPolicy.from_json(hours.policy_.to_json())
    assert again.impact() == hours.policy_.impact()
    assert any("'W & F'" in text for text in again.impact()[3:])


def test_fewer_false_positives_harm_no_group():
    """Of criteria, more is better of decisions for everybody, and for those whose label speaks for the best one."""
    better = {
        part.measure.name
        for order in ([0, 1], [1, 0])
        for row in ROWS
        for part in resolve_happiness(row.name, [0, 1], order=order)
        if part.measure.more_is_better
    }
    assert better == {"selection rate", "true positive rate", "true negative rate"}
    assert Happiness("decision").measure.more_is_better
    many = resolve_happiness("equalized_odds", ["no", "maybe", "yes"], order=["no", "maybe", "yes"])
    (best,) = [part.measure.name for part in many if part.measure.more_is_better]
    assert best == "share decided 'yes' among those labelled 'yes'"
