"""Fairness criteria as special cases of happiness, against their definitions; and Hardt et al.'s predictor."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import (
    METRICS,
    Exact,
    GapAtMost,
    assert_optimal,
    decision_rates,
    derived_predictor_loss,
    equal_opportunity,
    equalized_odds,
    overall_accuracy,
    pair_gap,
    predictive_equality,
    statistical_parity,
)
from strategies import aggregates_of, examples, feasible_by_oracle, populations, small_ints

from felicific import Happiness, aggregate, solve
from felicific.exceptions import InfeasibleError

EVERY_LABEL = populations(every_label=True, n_measures=st.just(1))
EPS = st.sampled_from([0.0, 0.01, 0.1, 0.3])


def scores_of(rows):
    return rows.score if rows.soft else rows.predicted


@st.composite
def policies(draw, rows):
    """Any q[z, s, d]: multiples of 1/16, deterministic ones included."""
    G, K = rows.n_groups, rows.n_classes
    cuts = np.sort(draw(small_ints((G, K, K - 1), 0, 16)), axis=2)
    edges = np.concatenate([np.zeros((G, K, 1)), cuts, np.full((G, K, 1), 16)], axis=2)
    return np.diff(edges, axis=2) / 16


def metric_of(criterion, decisions, label, group, weight):
    """The oracle's gaps in the order of felicific's measures: of two decisions the rates of one say it all."""
    found = METRICS[criterion](decisions, label, group, weight)
    if decisions.shape[1] > 2:
        return found
    return {"statistical_parity": found[1:], "equalized_odds": found[:0:-2]}.get(criterion, found)


def as_eta(criterion, rows):
    """Write a criterion as happiness and membership, entry by entry, from its row in the design's table."""
    n, K = len(rows.label), rows.n_classes
    best = K - 1
    pairs = {
        "statistical_parity": [(k, None) for k in range(K)],
        "overall_accuracy": [("label", None)],
        "equalized_odds": [(k, truth) for truth in range(K) for k in range(K)],
        "equal_opportunity": [(best, best)],
        "predictive_equality": [(best, ("not", best))],
    }[criterion]
    if K == 2:
        pairs = {"statistical_parity": [(1, None)], "equalized_odds": [(1, 1), (1, 0)]}.get(criterion, pairs)
    eta, among = np.zeros((n, K, len(pairs))), np.zeros((n, len(pairs)), bool)
    for j, (choice, truth) in enumerate(pairs):
        for i in range(n):
            eta[i, rows.label[i] if choice == "label" else choice, j] = 1.0
            if truth is None:
                among[i, j] = True
            elif isinstance(truth, tuple):
                among[i, j] = rows.label[i] != truth[1]
            else:
                among[i, j] = rows.label[i] == truth
    return replace(rows, eta=eta, among=among)


# ---------------------------------------------------------------------------------------------------------
# The comparisons themselves


def test_the_metrics_on_a_case_counted_by_hand():
    """Four people in two groups: every rate below is counted on the fingers; a changed decision changes it."""
    decisions = np.array([[1.0, 0.0], [0.1, 0.9], [0.0, 1.0], [0.4, 0.6]])
    label, group, weight = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.array([2.0, 3.0, 1.0, 1.0])
    # Group 0: P(d=1) = 3 * .9 / 5; group 1: (1 + .6) / 2.
    assert statistical_parity(decisions, label, group, weight) == pytest.approx([0.26, 0.26])
    # Group 0: (2 * 1 + 3 * .9) / 5; group 1: (0 + .6) / 2.
    assert overall_accuracy(decisions, label, group, weight) == pytest.approx([0.64])
    # Label 0: 0 against 1; label 1: .9 against .6.
    assert equalized_odds(decisions, label, group, weight) == pytest.approx([1.0, 1.0, 0.3, 0.3])
    assert equal_opportunity(decisions, label, group, weight) == pytest.approx([0.3])
    assert predictive_equality(decisions, label, group, weight) == pytest.approx([1.0])
    assert equal_opportunity(decisions, label, group, weight, favourable=0) == pytest.approx([1.0])
    assert pair_gap([0.1, 0.7, 0.4]) == pytest.approx(0.6)
    for i in range(4):
        changed = decisions.copy()
        changed[i] = changed[i, ::-1]
        for metric in (statistical_parity, overall_accuracy, equalized_odds):
            before, after = (metric(d, label, group, weight) for d in (decisions, changed))
            assert after != pytest.approx(before, abs=1e-3)


# ---------------------------------------------------------------------------------------------------------
# The equivalences of the paper's section 4


@pytest.mark.parametrize("criterion", list(METRICS))
@examples
@given(st.data())
def test_gaps_of_any_policy_are_the_metric_of_its_decisions(criterion, data):
    """For any policy whatever, the gap that felicific reports is the metric computed from decision probabilities."""
    rows, _ = data.draw(EVERY_LABEL)
    q = data.draw(policies(rows))
    computed = aggregates_of(rows, "error", happiness=criterion)
    policy = replace(solve(computed, gap={}), q=q, outcome=computed.evaluate(q))
    decisions = policy.probabilities(scores_of(rows), rows.group)
    assert decisions.sum(axis=1) == pytest.approx(np.ones(len(decisions)), abs=1e-15)
    metric = metric_of(criterion, decisions, rows.label, rows.group, rows.weight)
    assert list(policy.gaps.values()) == pytest.approx(metric, rel=0, abs=1e-13)
    wrong = sum(w * (1 - decisions[i, rows.label[i]]) for i, w in enumerate(rows.weight)) / rows.weight.sum()
    assert policy.loss == pytest.approx(wrong, rel=0, abs=1e-13)


@pytest.mark.parametrize("criterion", list(METRICS))
@examples
@given(st.data())
def test_a_policy_solved_at_eps_has_the_metric_at_eps(criterion, data):
    """A solved policy satisfies the criterion's own definition on its decision probabilities, at the least loss."""
    rows, loss = data.draw(EVERY_LABEL)
    eps = data.draw(EPS)
    written = as_eta(criterion, rows)
    exact = Exact(written)
    wanted = [GapAtMost(j, eps) for j in range(written.n_measures)]
    computed = aggregates_of(rows, loss, happiness=criterion)
    if not feasible_by_oracle(exact, wanted):
        with pytest.raises(InfeasibleError):
            solve(computed, gap=eps)
        return
    policy = solve(computed, gap=eps)
    decisions = policy.probabilities(scores_of(rows), rows.group)
    metric = metric_of(criterion, decisions, rows.label, rows.group, rows.weight)
    assert max(metric) <= eps + 1e-9
    assert list(policy.gaps.values()) == pytest.approx(metric, rel=0, abs=1e-12)
    assert_optimal(exact, wanted, policy)


def solve_or_least(computed, eps):
    """Solve at eps, or where that cannot be at the least gap; return the gap that was asked for."""
    try:
        return eps, solve(computed, gap=eps)
    except InfeasibleError as error:
        least = error.least_gap
    assert least > eps
    return least, solve(computed, gap=least)


@pytest.mark.parametrize("criterion", list(METRICS))
@pytest.mark.parametrize("soft", [False, True], ids=["label", "soft-label"])
def test_two_to_five_classes_and_two_to_six_groups(criterion, soft):
    """For every number of classes and groups, eps is kept by the definition, or the least gap is and eps cannot be."""
    rng = np.random.default_rng(5)
    for K in (2, 3, 4, 5):
        for G in (2, 3, 4, 5, 6):
            n = 40 * G
            group, label = np.arange(n) % G, rng.integers(0, K, n)
            score = rng.dirichlet(np.ones(K), n) + 0.2 * (1 + group[:, None] / G) * np.eye(K)[label]
            score /= score.sum(axis=1, keepdims=True)
            arguments = {
                "score": score,
                "y": label,
                "sensitive_features": "group",
                "happiness": criterion,
                "policy": "soft-label" if soft else "label",
            }
            computed = aggregate({"group": group}, **arguments)
            eps, policy = solve_or_least(computed, 0.3 * max(computed.baseline.gaps))
            decisions = policy.probabilities(score, group)
            metric = metric_of(criterion, decisions, label, group, np.ones(n))
            assert list(policy.gaps.values()) == pytest.approx(metric, rel=0, abs=1e-12)
            assert max(metric) <= eps + 1e-9


@examples
@given(EVERY_LABEL, st.data())
def test_equalized_odds_is_the_papers_happiness(population, data):
    """``among`` gives the means of the paper's 1{d = k, y = l} / p(l | z), which has no ``among``."""
    rows, _ = population
    K, G = rows.n_classes, rows.n_groups
    share = np.zeros((G, K))
    for i in range(len(rows.label)):
        share[rows.group[i], rows.label[i]] += rows.weight[i]
    share /= share.sum(axis=1, keepdims=True)

    def of_paper(k, truth):
        def happiness(decision, y, group):
            return (decision == k) * (y == truth) / share[group, truth]

        return Happiness(happiness, name=f"{k} | {truth}")

    pairs = [(1, 1), (1, 0)] if K == 2 else [(k, truth) for truth in range(K) for k in range(K)]
    papers = [of_paper(k, truth) for k, truth in pairs]
    q = data.draw(policies(rows))
    one = aggregates_of(rows, "error", happiness=papers).evaluate(q)
    two = aggregates_of(rows, "error", happiness="equalized_odds").evaluate(q)
    assert one.means == pytest.approx(two.means, rel=0, abs=1e-13)
    assert one.gaps == pytest.approx(two.gaps, rel=0, abs=1e-13)


@examples
@given(EVERY_LABEL, st.data())
def test_decisions_say_what_is_best(population, data):
    """Selection rates are of the best decision; true and false positives are of the last class, whatever is best."""
    rows, _ = population
    order = data.draw(st.permutations(range(rows.n_classes)))
    q = data.draw(policies(rows))
    decisions = (
        np.einsum("is,isd->id", rows.score, q[rows.group]) if rows.soft else q[rows.group, rows.predicted]
    )
    arguments = (decisions, rows.label, rows.group, rows.weight)
    for criterion in ("equal_opportunity", "predictive_equality", "overall_accuracy", "equalized_odds"):
        one, two = (
            dict(zip([part.name for part in sums.measures], sums.evaluate(q).gaps, strict=True))
            for sums in (
                aggregates_of(rows, "error", happiness=criterion, decisions=k) for k in (order, None)
            )
        )
        assert one == pytest.approx(two, rel=0, abs=1e-13)
    gaps = aggregates_of(rows, "error", happiness="statistical_parity", decisions=order).evaluate(q).gaps
    wanted = np.array(statistical_parity(*arguments))
    wanted = wanted[order[-1:]] if rows.n_classes == 2 else wanted[order]
    assert gaps == pytest.approx(wanted, rel=0, abs=1e-13)


@examples
@given(EVERY_LABEL)
def test_the_baseline_is_the_metric_of_the_models_own_decisions(population):
    """What felicific reports for the baseline equals the metric of the predicted labels themselves."""
    rows, _ = population
    own = np.eye(rows.n_classes)[rows.predicted]
    for criterion in METRICS:
        baseline = aggregates_of(rows, "error", happiness=criterion).baseline
        wanted = metric_of(criterion, own, rows.label, rows.group, rows.weight)
        assert baseline.gaps == pytest.approx(wanted, rel=0, abs=1e-13)


# ---------------------------------------------------------------------------------------------------------
# Hardt, Price and Srebro (2016)


def hardt_instance(counts):
    """Expand counts[z][label][prediction] to people with weights."""
    group, label, predicted = (axis.ravel() for axis in np.indices(counts.shape))
    return group, label, predicted, counts.ravel().astype(float)


def test_the_derived_predictor_on_cases_worked_out_by_hand():
    """Oracle of the oracle: three cases where geometry gives the answer at once.

    1. Both groups at (fpr, tpr) = (0, 1): nothing is lost.
    2. One group perfect, one at (1/2, 1/2), on the diagonal: only the diagonal is common, so with 12 of 16
       people negative, rejecting everybody (4 wrong of 16) is best.
    3. Groups at (1/5, 3/5) and (2/5, 4/5), half of the people positive. The lower of the two upper edges is
       t = 3 f up to (1/5, 3/5) for group 1 and t = 2 f up to (2/5, 4/5) for group 2; beyond, group 1's edge is
       t = 1/2 + f/2, which meets t = 2 f at (1/3, 2/3). Loss there: (1/3 + 1/3) / 2 = 1/3.
    """
    perfect = np.array([[[5, 0], [0, 5]], [[3, 0], [0, 7]]])
    group, label, predicted, weight = hardt_instance(perfect)
    assert derived_predictor_loss(label, predicted, group, weight) == 0
    blind = np.array([[[6, 0], [0, 2]], [[3, 3], [1, 1]]])
    group, label, predicted, weight = hardt_instance(blind)
    assert float(derived_predictor_loss(label, predicted, group, weight)) == 0.25
    crossing = np.array([[[4, 1], [2, 3]], [[3, 2], [1, 4]]])
    group, label, predicted, weight = hardt_instance(crossing)
    assert float(derived_predictor_loss(label, predicted, group, weight)) == pytest.approx(1 / 3, abs=1e-15)


def solve_equalized_odds(group, label, predicted, weight, loss="error"):
    computed = aggregate(
        {"group": group},
        y=label,
        predicted=predicted,
        policy="label",
        sensitive_features="group",
        happiness="equalized_odds",
        sample_weight=weight,
        loss=loss,
        classes=[0, 1],
    )
    return solve(computed, gap=0.0)


@examples
@given(
    st.integers(2, 6).flatmap(lambda groups: small_ints((groups, 2, 2), 0, 12)),
    st.sampled_from(["error", ((0, 1), (5, 0)), ((-1, 2), (1, 0.5))]),
)
def test_equalized_odds_at_zero_is_the_derived_predictor(counts, cost):
    """At eps 0 on predicted labels the loss is that of Hardt, Price and Srebro's derived predictor.

    Their optimum is found without a linear program, in exact fractions, among the vertices of the intersection
    of all groups' quadrilaterals. Groups may be better, worse or no better than chance.
    """
    assume((counts.sum(axis=2) > 0).all())
    group, label, predicted, weight = hardt_instance(counts)
    matrix = ((0, 1), (1, 0)) if cost == "error" else cost
    wanted = float(derived_predictor_loss(label, predicted, group, weight, matrix))
    policy = solve_equalized_odds(
        group, label, predicted, weight, cost if cost == "error" else np.array(cost)
    )
    scale = float(np.ptp(matrix))
    assert policy.loss == pytest.approx(wanted, rel=0, abs=1e-9 * scale)
    decisions = policy.probabilities(predicted, group)
    for truth in (0, 1):
        rates = decision_rates(decisions, group, weight, 1, label == truth)
        assert pair_gap(rates) <= 1e-9
