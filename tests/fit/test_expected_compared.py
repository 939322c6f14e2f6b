"""What to expect of requirements that compare others than all groups: gaps between attributes, and ratios."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_policies import Told
from sklearn.frozen import FrozenEstimator
from strategies import examples

from felicific import FairClassifier, Gap, Happiness, Policy, Ratio, aggregate, solve
from felicific._program.evidence import expected_ratio
from felicific.exceptions import ConstraintError, PolicyWarning

SIZES = {("F", "A"): 300, ("F", "B"): 40, ("M", "A"): 500, ("M", "B"): 60}


def make_people(sizes=SIZES, seed=0):
    """People of two attributes, whose scores and labels differ a little."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair, n in sizes.items() for _ in range(n)]
    n = len(pairs)
    score = 1 / (1 + np.exp(-rng.normal(0.3, 1.0, n)))
    columns = {"p0": 1 - score, "p1": score, "sex": [a for a, _ in pairs], "race": [b for _, b in pairs]}
    frame = pd.DataFrame(
        columns | {"amount": rng.integers(1, 9, n) * 10.0, "id": np.arange(n) + 10**6 * seed}
    )
    return frame, (rng.random(n) < score).astype(int)


def fit_both(X, y, *constraints, **options):
    said = {"sensitive_features": ["sex", "race"], "constraints": list(constraints), "happiness": "decision"}
    said |= {"change_cost": 0.0, "key": "id", "random_state": 0}
    return FairClassifier(FrozenEstimator(Told().fit(X, y)), **said | options).fit(X, y)


def naive(probabilities, X, column, measure, people=None, counted=None, draws=200_000):
    """The formula of the page, the groups being everybody of each value of a column."""
    rng = np.random.default_rng(4)
    n, mean, variance = [], [], []
    for value in sorted(set(X[column])):
        own = (X[column] == value).to_numpy() & (True if counted is None else counted)
        p, worth = probabilities[own, 1], X["amount"].to_numpy()[own]
        mean.append(np.mean(p * worth))
        variance.append(np.mean(p * worth**2) - mean[-1] ** 2)
        n.append(own.sum())
    n, mean, variance = map(np.array, (n, mean, variance))
    shrunk = (n * variance + 2 * (n * variance).sum() / n.sum()) / (n + 2)
    drawn = mean + rng.standard_normal((draws, len(n))) * np.sqrt(
        shrunk * (1 / n + 1 / (n if people is None else people))
    )
    drawn = np.maximum(drawn, 0.0) if measure == "ratio" else drawn
    low, high = drawn.min(axis=1), drawn.max(axis=1)
    return float((high - low).mean() if measure == "gap" else (low / high).mean())


@pytest.mark.parametrize("kind", ["score", "soft-label", "individual"])
@pytest.mark.parametrize("among", [None, "amount > 20"])
def test_gaps_and_ratios_between_attributes_are_those_of_a_naive_formula(kind, among):
    """Everybody of one sex is one group of the formula, whoever is counted and however many new people there are."""
    X, y = make_people()
    happy = Happiness("(decision == 1) * amount", among=among, name="funds")
    fair = fit_both(
        X,
        y,
        Gap("funds", 2.0, between="race"),
        Ratio("funds", 0.8, between="sex"),
        happiness=happy,
        policy=kind,
    )
    policy, probabilities = fair.policy_, fair.predict_proba(X)
    counted = None if among is None else (X["amount"] > 20).to_numpy()
    gap, ratio = policy.expected_reached().values()
    assert gap == pytest.approx(naive(probabilities, X, "race", "gap", counted=counted), rel=0.02)
    assert ratio == pytest.approx(naive(probabilities, X, "sex", "ratio", counted=counted), rel=0.02)
    twice = [
        2 * n for n in X[counted if among else np.ones(len(X), bool)]["race"].value_counts().sort_index()
    ]
    gap, _ = policy.expected_reached(2 * len(X)).values()
    assert gap == pytest.approx(naive(probabilities, X, "race", "gap", np.array(twice), counted), rel=0.02)


def test_a_new_mix_of_people_is_another_union():
    """With people given group by group, everybody of a sex is a mixture in the proportions of the new people."""
    X, y = make_people()
    policy = fit_both(X, y, Gap("decision", 0.3, between="sex")).policy_
    many = dict.fromkeys(policy.groups, 1000000000.0) | {"F & B": 1e3}
    evidence = replace(policy.basis.evidence, variance=np.zeros((4, 1)))
    means = policy.outcome.means.copy()
    means[:, 0] = [0.1, 0.9, 0.5, 0.5]  # F & A, F & B, M & A, M & B
    still = replace(policy, outcome=replace(policy.outcome, means=means, gaps=np.array([0.8])))
    still = replace(
        still, basis=replace(policy.basis, evidence=replace(evidence, number=np.full((4, 1), 1e12)))
    )
    (found,) = still.expected_reached(many).values()
    assert found == pytest.approx(0.4, abs=1e-3)


@given(
    st.integers(2, 4).flatmap(
        lambda g: st.tuples(
            *(st.lists(st.floats(*ends), min_size=g, max_size=g) for ends in [(0, 5), (0, 2)])
        )
    )
)
@examples
def test_expected_ratio_against_a_loop(drawn):
    """Draw by draw: the smallest by the largest of means that are not negative, 1 where all are 0."""
    means, error = (np.array(part)[:, None] for part in drawn)
    half = np.random.default_rng(15).standard_normal((2_000, len(means)))
    found = []
    for row in (*half, *-half):
        off = [max(m + e * x, 0.0) for m, e, x in zip(means[:, 0], error[:, 0], row, strict=True)]
        found.append(min(off) / max(off) if max(off) > 0 else 1.0)
    assert expected_ratio(means, error)[0] == pytest.approx(np.mean(found))


def test_files_and_printed_objects_say_it():
    """Sentences, the printed object, the report and the file say what to expect of each comparison."""
    X, y = make_people()
    fair = fit_both(X, y, Gap("decision", 0.05, between="sex"), Ratio("decision", 0.7, between="race"))
    gap, ratio = fair.policy_.expected_reached().values()
    back = Policy.from_json(fair.policy_.to_json())
    assert back.expected_reached() == fair.policy_.expected_reached()
    assert [asked.number for asked in back.basis.requirements] == [0.05, 0.7]
    page = fair.report(*make_people(seed=1)).content["outlook"]
    for text in (repr(fair), str(fair.policy_), str(back), page):
        assert f"a gap of about {gap:.2g} (asked for: gap of 'decision' between groups by sex" in text
        assert f"a ratio of about {ratio:.2g} (asked for: mean 'decision' of every race" in text


# ---------------------------------------------------------------------------------------------------------
# What chance alone does


def warned(X, y, *constraints, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        fair = fit_both(X, y, *constraints, **options)
    return fair, [text for text in fair.policy_.cautions() if "by chance alone" in text]


LARGE = {("F", "A"): 3_000, ("F", "B"): 40, ("M", "A"): 3_000, ("M", "B"): 45}


@pytest.mark.parametrize(
    "asked",
    [
        Gap("decision", 0.02, between="race"),
        Gap("decision", 0.02, between=["sex", "race"]),
        Gap("decision", 0.02),
        Ratio("decision", 0.98, between="race"),
        Ratio("decision", 0.9),
    ],
)
def test_every_comparison_warns_where_few_are_compared(asked):
    """Whatever the requirement is written as, a sentence names the smallest group, its people and the number asked."""
    fair, found = warned(*make_people(LARGE), asked)
    assert len(found) == 1
    smallest = "85 people in 'B'" if asked.between == "race" else "40 people in 'F & B'"
    assert smallest in found[0]
    number = asked.at_most if isinstance(asked, Gap) else asked.at_least
    side = "least" if isinstance(asked, Gap) else "most"
    assert f"by chance alone, {number:g} was asked for: ask for at {side} that" in found[0]
    assert found[0] in repr(fair)
    assert found[0] in fair.policy_.sentences()
    assert found[0] in Policy.from_json(fair.policy_.to_json()).sentences()


def test_large_unions_are_quiet():
    """Everybody of a sex is many people, however few are of an intersection; so is what is not compared."""
    people = make_people(LARGE)
    for asked in (
        Gap("decision", 0.1, between="sex"),
        Ratio("decision", 0.8, between="sex"),
        Gap("decision", 0.1, min_people=100),
        Gap("decision", 0.0, between="sex"),
        Ratio("decision", 1.0, between="sex"),
    ):
        assert warned(*people, asked)[1] == [], asked


def test_remedies_of_the_warning_can_be_followed():
    """min_people= is named only where it leaves somebody to compare; asking for what it says ends the warning."""
    X, y = make_people(LARGE)
    _, (text,) = warned(X, y, Gap("decision", 0.02))
    assert "pool groups, or leave out those of fewer than 100 people (min_people)" in text
    assert warned(X, y, Gap("decision", 0.04, min_people=100))[1] == []
    _, (text,) = warned(X, y, Gap("decision", 0.02, between="race"))
    assert "min_people" not in text
    with pytest.raises(ConstraintError):
        fit_both(X, y, Gap("decision", 0.02, between="race", min_people=100))
    X, y = make_people({("F", "A"): 400, ("F", "B"): 400, ("M", "A"): 400, ("M", "B"): 400})
    for first, kind in ((Gap("decision", 0.01), "gap"), (Ratio("decision", 0.99), "ratio")):
        _, (text,) = warned(X, y, first)
        enough = float(re.search(f"A {kind} of about ([0-9.]+) of", text)[1])
        assert warned(X, y, first.at(enough))[1] == []


def test_sums_say_it_too():
    """Without scikit-learn, the sentences of the policy warn."""
    X, y = make_people(LARGE)
    said = {"score": ["p0", "p1"], "sensitive_features": ["sex", "race"], "happiness": "decision"}
    asked = [Gap("decision", 0.02, between="race")]
    policy = solve(aggregate(X, y=y, **said), constraints=asked, random_state=0)
    assert "85 people in 'B' by chance alone, 0.02 was asked for" in str(policy)
    assert [*policy.expected_reached()] == [*policy.reached]
