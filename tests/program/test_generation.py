"""Individual policies: column generation against the full program, its bound, its labels; and calibration."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_policies import (
    Asked,
    Told,
    codes,
    least_excess,
    least_gap,
    least_loss,
    make_people,
    outcome_of,
    person_units,
    proba_of,
)
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import isotonic_regression
from strategies import examples

from felicific import Budget, FairClassifier, Floor, Happiness, Individual, Policy
from felicific._policy.ledger import FEWEST_ROWS, Calibration, fit_calibration, fit_curve
from felicific._problem.constraints import requirements_of
from felicific._problem.happiness import Measure
from felicific._program import crowd as crowd_module
from felicific._program import generation as generation_module
from felicific._program.crowd import Crowd, Ledger, Ledgers
from felicific._program.generation import generate
from felicific.exceptions import DataError, InfeasibleError

# ---------------------------------------------------------------------------------------------------------
# Small crowds with written-down ledgers


SEEING = st.just(False)


@st.composite
def crowds(draw, blind=SEEING, most=30):
    """People with expected losses and happiness: coarse numbers make ties, fine ones make none."""
    K, G, J = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(2 * G, most))
    sees_group = not draw(blind)
    slots = 1 if sees_group else G
    group = np.concatenate([np.arange(G), np.arange(G), rng.integers(0, G, n - 2 * G)])
    if draw(st.booleans()):
        cost, effect = rng.integers(0, 5, (n, K)) / 4, rng.integers(-4, 5, (n, K, slots, J)) / 4
    else:
        cost, effect = rng.random((n, K)), rng.normal(size=(n, K, slots, J))
    among = rng.integers(0, 5, (n, slots, J)) / 4 if draw(st.booleans()) else np.ones((n, slots, J))
    among[: 2 * G] = 1.0
    weight = rng.integers(1, 4, n) * draw(st.sampled_from([0.1, 1.0])) if draw(st.booleans()) else np.ones(n)
    crowd = Crowd(
        decisions=np.arange(K),
        groups=tuple(range(G)),
        measures=tuple(Measure(f"c{j}", "", f"c{j}", looks_at_y=False, bounds=None) for j in range(J)),
        origin=np.zeros(J),
        weight=weight,
        group=group,
        own=cost.argmin(axis=1),
        sees_group=sees_group,
    )
    return crowd, Ledger(cost, effect * among[:, None], among)


def units_of(crowd, ledger):
    return person_units(
        ledger.cost,
        ledger.value,
        ledger.among,
        crowd.weight,
        crowd.group,
        len(crowd.groups),
        blind=not crowd.sees_group,
    )


@st.composite
def requirements(draw, crowd, hard=False):
    """What is asked, for the library and for the naive program."""
    G, J = len(crowd.groups), len(crowd.measures)
    widths = st.sampled_from([0.0, 0.1, 0.3])
    gaps = {j: draw(widths) for j in range(J) if hard or draw(st.integers(0, 3))}
    levels = st.sampled_from([-0.5, -0.2, 0.0, 0.2, 0.5] if not hard else [0.2, 0.5, 0.9])
    floors, budgets, constraints = [], [], []
    for _ in range(draw(st.integers(0, 2))):
        j, z, level = draw(st.integers(0, J - 1)), draw(st.integers(0, G - 1)), draw(levels)
        floors.append((j, z, level))
        constraints.append(Floor(f"c{j}", level, groups=[z]))
    if draw(st.booleans()):
        j, level = draw(st.integers(0, J - 1)), draw(levels)
        side = draw(st.sampled_from(["at_most", "at_least", "exactly"]))
        limits = {"at_most": (None, level), "at_least": (level, None), "exactly": (level, level)}[side]
        budgets.append((j, *limits))
        constraints.append(Budget(f"c{j}", **{side: level}))
    return (
        Asked(gaps, tuple(floors), tuple(budgets)),
        {f"c{j}": width for j, width in gaps.items()},
        constraints,
    )


@pytest.mark.parametrize(
    ("second", "loss", "gap"), [([0.0, 2.0], 0.0, 0.0), ([1.0, 2.0], 0.5, 0.0), ([2.0, 3.0], None, 1.0)]
)
def test_the_naive_program_is_right_by_hand(second, loss, gap):
    """One person per group: the first has happiness 0 or, at a cost of 1, 1; the other what is written.

    Equal by doing nothing; by paying for the first; or out of reach by 2 - 1.
    """
    cost = np.array([[0.0, 1.0], [0.0, 1.0]])
    value = np.array([[0.0, 1.0], second])[:, :, None, None]
    units = person_units(cost, value, np.ones((2, 1, 1)), np.ones(2), np.array([0, 1]), 2)
    found = least_loss(units, Asked({0: 0.0}))
    assert found is None if loss is None else found == pytest.approx(loss, abs=1e-12)
    assert least_gap(units, 0) == pytest.approx(gap, abs=1e-12)


@examples
@given(st.data())
def test_generation_finds_the_optimum_of_the_full_program(data):
    """A mixture of a few deterministic policies loses what the best of all policies loses, or neither exists.

    The full program has one variable per person and decision; gaps, floors and budgets, weights, several
    measures and groups, whether or not the policy sees the group.
    """
    crowd, ledger = data.draw(crowds(blind=st.booleans()))
    asked, gap, constraints = data.draw(requirements(crowd))
    units = units_of(crowd, ledger)
    best = least_loss(units, asked)
    try:
        found = generate(Ledgers(crowd, ledger), requirements_of(gap, constraints, crowd.measures))
    except InfeasibleError:
        assert best is None
        return
    assert best is not None
    assert found.plug_in.loss == pytest.approx(best, abs=1e-7)
    assert found.outcome.loss == found.plug_in.loss
    assert found.stopped == "duality gap closed"
    assert 0 <= found.duality_gap <= 1e-7
    for j, width in asked.gaps.items():
        assert found.outcome.gaps[j] <= width + 1e-9
    for j, z, level in asked.floors:
        assert found.outcome.means[z, j] >= level - 1e-9
    for j, low, high in asked.budgets:
        together = units.counted[:, j] @ found.outcome.means[:, j] / units.counted[:, j].sum()
        assert (-math.inf if low is None else low) - 1e-9 <= together
        assert together <= (math.inf if high is None else high) + 1e-9


def decisions_of(crowd, ledger, mixture):
    """Decision probabilities of a mixture, person by person, by the definition of its policies.

    Ties go to the decision that costs least, then to the first; a fixed policy decides alike about everybody.
    """
    n, K = ledger.cost.shape
    decided = np.zeros((n, K))
    for i in range(n):
        z = int(crowd.group[i])
        for m, alpha in enumerate(mixture.alpha.tolist()):
            kappa = (mixture.kappa[m, z : z + 1] if crowd.sees_group else mixture.kappa[m]).tolist()
            cost, value = ledger.cost[i].tolist(), ledger.value[i].tolist()
            gain = [0.0] * K
            for d in range(K):
                for weights, worth in zip(kappa, value[d], strict=True):
                    for weight, one in zip(weights, worth, strict=True):
                        gain[d] += weight * one
            total = [alpha * cost[d] - gain[d] for d in range(K)]
            size = max(max(abs(alpha * c), abs(g)) for c, g in zip(cost, gain, strict=True))
            tied = [d for d in range(K) if total[d] <= min(total) + 1e-11 * size]
            least = min(cost[d] for d in tied)
            chosen = next(d for d in tied if cost[d] <= least + 1e-11 * abs(least))
            if mixture.fixed[m] != crowd_module.CHOOSES:
                chosen = int(crowd_module.fixed_decisions(int(mixture.fixed[m]), crowd.own)[i])
            decided[i, chosen] += mixture.share[z, m]
    return decided


@examples
@given(st.data())
def test_the_mixture_does_what_is_stated(data):
    """Deciding each person by the definition of the policies and their shares, the stated outcome is reached."""
    crowd, ledger = data.draw(crowds())
    J = len(crowd.measures)
    try:
        found = generate(
            Ledgers(crowd, ledger),
            requirements_of(data.draw(st.sampled_from([0.0, 0.2])), (), crowd.measures),
        )
    except InfeasibleError:
        return
    mixture = found.mixture
    assert np.abs(mixture.share.sum(axis=1) - 1).max() <= 1e-12
    assert (mixture.share >= 0).all()
    decided = decisions_of(crowd, ledger, mixture)
    units = units_of(crowd, ledger)
    loss = (decided * units.loss).sum()
    means = np.einsum("zjid,id->zj", units.mean, decided)
    assert found.outcome.loss == pytest.approx(loss, abs=1e-9)
    assert np.abs(found.outcome.means - means).max() <= 1e-9
    assert np.abs(found.outcome.gaps - (means.max(axis=0) - means.min(axis=0))).max() <= 1e-9
    # A vertex of the master: no more policies are in use than groups and binding rows.
    assert (mixture.share > 0).sum() <= len(crowd.groups) + J * len(crowd.groups)


@examples
@given(st.data())
def test_the_bound_is_below_the_optimum_when_the_search_is_cut_short(data):
    """Stopped early, the loss is above the optimum by no more than the duality gap that is stated."""
    crowd, ledger = data.draw(crowds())
    gap = data.draw(st.sampled_from([0.0, 0.2]))
    best = least_loss(units_of(crowd, ledger), Asked(dict.fromkeys(range(len(crowd.measures)), gap)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation_module, "TOLERANCE", data.draw(st.sampled_from([1e-1, 1.0, 10.0])))
        try:
            found = generate(Ledgers(crowd, ledger), requirements_of(gap, (), crowd.measures))
        except InfeasibleError:
            return
    assert found.plug_in.loss >= best - 1e-9
    assert found.plug_in.loss - found.duality_gap <= best + 1e-9


def test_a_search_cut_short_is_really_short():
    """The test above has something to test: with a large tolerance the gap that is stated is not zero."""
    rng = np.random.default_rng(1)
    n = 60
    ledger = Ledger(rng.random((n, 3)), rng.normal(size=(n, 3, 1, 2)), np.ones((n, 1, 2)))
    measures = tuple(Measure(f"c{j}", "", f"c{j}", looks_at_y=False, bounds=None) for j in range(2))
    crowd = Crowd(
        np.arange(3), (0, 1), measures, np.zeros(2), np.ones(n), np.arange(n) % 2, np.zeros(n, int), True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation_module, "TOLERANCE", 1.0)
        short = generate(Ledgers(crowd, ledger), requirements_of(0.0, (), crowd.measures))
    whole = generate(Ledgers(crowd, ledger), requirements_of(0.0, (), crowd.measures))
    assert short.passes < whole.passes
    assert short.duality_gap > 1e-4
    assert short.plug_in.loss > whole.plug_in.loss


# ---------------------------------------------------------------------------------------------------------
# Out of reach


@examples
@given(st.data())
def test_out_of_reach_is_told_as_the_full_program_tells_it(data):
    """The least gap is that of the full program; a conflict conflicts, and no longer without any one part."""
    crowd, ledger = data.draw(crowds(most=16))
    # Far from each other: a constant per group that no decision can make up for.
    apart = data.draw(st.sampled_from([0.0, 1.0, 3.0])) * crowd.group
    ledger = replace(ledger, value=ledger.value + apart[:, None, None, None] * ledger.among[:, None])
    asked, gap, constraints = data.draw(requirements(crowd, hard=True))
    units = units_of(crowd, ledger)
    try:
        generate(Ledgers(crowd, ledger), requirements_of(gap, constraints, crowd.measures))
    except InfeasibleError as error:
        caught = error
    else:
        return
    parts = [(("gaps", j), f"gap of 'c{j}' at most {width:,.6g}") for j, width in asked.gaps.items()]
    parts += [
        (("floors", k), f"mean 'c{j}' of group {z} at least {level:,.6g}")
        for k, (j, z, level) in enumerate(asked.floors)
    ]
    if asked.budgets:
        parts.append((("budgets", 0), f"'c{asked.budgets[0][0]}' of all people together"))
    involved = [
        part for part, words in parts if any(text.startswith(words.strip()) for text in caught.conflict)
    ]
    assert len(involved) >= len(set(caught.conflict))
    only = Asked(
        {j: width for j, width in asked.gaps.items() if ("gaps", j) in involved},
        tuple(floor for k, floor in enumerate(asked.floors) if ("floors", k) in involved),
        asked.budgets if ("budgets", 0) in involved else (),
    )
    assert least_excess(units, only) > 1e-10
    if caught.least_gap is not None:
        assert len(caught.conflict) == 1
        assert not only.floors
        assert not only.budgets
        (j,) = only.gaps
        assert caught.least_gap == pytest.approx(least_gap(units, j), abs=1e-7)
        again = generate(
            Ledgers(crowd, ledger),
            requirements_of({f"c{j}": caught.least_gap * (1 + 1e-6) + 1e-9}, (), crowd.measures),
        )
        assert again.outcome.gaps[j] <= caught.least_gap * (1 + 1e-6) + 1e-8
        return
    if len(set(caught.conflict)) == len(involved):
        places = {
            "gaps": list(only.gaps),
            "floors": range(len(only.floors)),
            "budgets": range(len(only.budgets)),
        }
        for kind in places:
            for place in places[kind]:
                assert least_excess(units, only.without(kind, place)) <= 1e-8


# ---------------------------------------------------------------------------------------------------------
# Labels


def accuracy_ledgers(p, y, group):
    """Accuracy as happiness and error as loss, expected and real, for people of two groups."""
    p, y, group = np.array(p), np.array(y), np.array(group)
    n = len(p)
    expected, real = np.column_stack([1 - p, p]), np.eye(2)[y]
    ones = np.ones((n, 1, 1))
    measure = Measure("accuracy", "", "accuracy", looks_at_y=True, bounds=None)
    crowd = Crowd(
        np.arange(2), (0, 1), (measure,), np.zeros(1), np.full(n, 2.0), group, expected.argmax(axis=1), True
    )
    return (
        crowd,
        Ledger(1 - expected, expected[:, :, None, None].copy(), ones),
        Ledger(1 - real, real[:, :, None, None].copy(), ones),
    )


def test_three_people_whom_the_model_misjudges():
    """Equal accuracy of two groups can always be had by deciding at random, whatever the model believes.

    Group 0 holds one label of each kind: any constant decision is right half the time. Group 1 is one person
    of label 1, whom the model believes to be a 0; deciding 1 half the time gives her accuracy 1/2. The search
    must not call this out of reach because what it prices never decides 1.
    """
    crowd, expected, real = accuracy_ledgers([0.2, 0.2, 0.2], [0, 1, 1], [0, 0, 1])
    found = generate(Ledgers(crowd, expected, real), requirements_of(0.0, (), crowd.measures))
    assert found.outcome.gaps[0] <= 1e-9


def test_equal_accuracy_of_two_classes_is_never_out_of_reach():
    """Among all small crowds, none is told that equal accuracy cannot be had: 1/2 always can."""
    refused = []
    for n in (2, 3):
        for p in itertools.product([0.2, 0.6], repeat=n):
            for y in itertools.product([0, 1], repeat=n):
                crowd, expected, real = accuracy_ledgers(p, y, [0] + [1] * (n - 1))
                try:
                    found = generate(Ledgers(crowd, expected, real), requirements_of(0.0, (), crowd.measures))
                except InfeasibleError as error:
                    refused.append((p, y, error.least_gap))
                else:
                    assert found.outcome.gaps[0] <= 1e-9
    assert not refused, f"{len(refused)} crowds, the first {refused[0]}"


@pytest.mark.parametrize(
    ("seed", "n", "n_classes", "n_groups", "coarse"),
    [
        (1, 36, 2, 3, 8),
        (35, 36, 2, 3, 8),
        (17, 24, 2, 2, 4),
        (0, 36, 3, 3, 8),
        (3, 30, 4, 2, 0),
        (4, 200, 2, 6, 0),
    ],
)
@pytest.mark.parametrize("happiness", ["equalized_odds", "equal_opportunity"])
def test_equal_odds_are_never_out_of_reach(happiness, seed, n, n_classes, n_groups, coarse):
    """A constant decision has equal odds, so small noisy groups never make gap 0 impossible."""
    table, y = make_people(n, n_classes, n_groups, seed=seed, coarse=coarse)
    own = n_groups * n_classes
    y[own:] = np.random.default_rng(seed).integers(0, n_classes, n - own)
    fair = FairClassifier(
        FrozenEstimator(Told(n_classes).fit(table, y)),
        gap=0.0,
        happiness=happiness,
        policy="individual",
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    assert max(fair.gaps_.values()) <= 1e-9


def numbers_of(table, y, n_classes, measures, cost=None):
    """Cost (n, K), value (n, K, J) and among (n, J) of measures [(function(d, row, y), among(row, y))]."""
    rows = list(table.itertuples(index=False))
    n = len(y)
    value, among = np.zeros((n, n_classes, len(measures))), np.zeros((n, len(measures)), bool)
    costs = np.zeros((n, n_classes))
    for i, row in enumerate(rows):
        for d in range(n_classes):
            costs[i, d] = float(d != y[i]) if cost is None else cost(d, row, y[i])
        for j, (function, counted) in enumerate(measures):
            among[i, j] = counted(row, y[i])
            for d in range(n_classes):
                value[i, d, j] = function(d, row, y[i])
    return costs, value, among


def odds_measures(n_classes):
    return [
        (lambda d, row, y, k=k: float(d == k), lambda row, y, label=label: y == label)
        for label in range(n_classes)
        for k in range(n_classes)
        if n_classes > 2 or k == 1  # of two decisions one measure says it
    ]


@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (2, 4), (3, 2)])
@pytest.mark.parametrize("calibration", ["isotonic", "sigmoid", "none"])
def test_realised_probabilities_are_as_asked(gap, n_classes, n_groups, calibration):
    """The equalized-odds gap of predict_proba on the fitted rows, counted person by person, is at most ``gap``."""
    table, y = make_people(500, n_classes, n_groups, seed=2)
    fair = FairClassifier(
        FrozenEstimator(Told(n_classes).fit(table, y)),
        happiness="equalized_odds",
        gap=gap,
        policy=Individual(calibration),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    cost, value, among = numbers_of(table, y, n_classes, odds_measures(n_classes))
    group = codes(table["group"])
    decided = fair.predict_proba(table)
    assert np.abs(decided.sum(axis=1) - 1).max() <= 1e-12
    loss, _, gaps = outcome_of(decided, cost, value, among, np.ones(len(y)), group, n_groups)
    assert gaps.max() <= gap + 1e-9
    assert fair.loss_ == pytest.approx(loss, rel=1e-12)
    gaps = gaps[::-1] if n_classes == 2 else gaps  # true positives come first
    assert list(fair.gaps_.values()) == pytest.approx(gaps.tolist(), abs=1e-12)
    plug_in = fair.policy_.search.plug_in_gaps
    assert set(plug_in) == set(fair.gaps_)
    if calibration == "none" and gap == 0.0:
        assert max(plug_in.values()) > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_pricing_never_sees_the_label(seed):
    """Under any labels, each policy of the mixture decides by expected values alone.

    Labels are permuted inside the groups, so the real ledger changes and the expected one does not. The columns
    found before the labels are looked at are the same, and those of the final mixture, decided by hand from
    the expected ledger, reach exactly the outcome stated on the real one.
    """
    rng = np.random.default_rng(seed)
    n = 60
    p, group = rng.random(n), np.arange(n) % 2
    y = (rng.random(n) < p).astype(int)
    priced = []
    real_choose = crowd_module.choose

    def spy(alpha, kappa, cost, value):
        priced[-1].append((alpha, kappa.copy(), cost.copy(), value.copy()))
        return real_choose(alpha, kappa, cost, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd_module, "choose", spy)
        for permuted in (
            y,
            y[np.lexsort((rng.random(n), group))][np.argsort(np.argsort(group, kind="stable"))],
        ):
            crowd, expected, real = accuracy_ledgers(p, permuted, group)
            real = replace(real, cost=real.cost * 1.0)
            priced.append([])
            found = generate(Ledgers(crowd, expected, real), requirements_of(0.0, (), crowd.measures))
            decided = decisions_of(crowd, expected, found.mixture)
            loss, means, _ = outcome_of(
                decided, real.cost, real.value[:, :, 0], np.ones((n, 1), bool), np.ones(n), group, 2
            )
            assert found.outcome.loss == pytest.approx(loss, abs=1e-12)
            assert np.abs(found.outcome.means - means).max() <= 1e-12
            for alpha, kappa, cost, value in priced[-1]:
                assert np.isin(cost, expected.cost).all()
                assert np.isin(value, expected.value).all()
                assert np.isfinite(alpha)
                assert kappa.shape[-2:] == (1, 1)
    # Phase 1 and 2 on expected values come first, and are the same whatever the labels are.
    without = []
    priced.append(without)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd_module, "choose", spy)
        generate(Ledgers(crowd, expected), requirements_of(0.0, (), crowd.measures))
    assert without
    for run in priced[:2]:
        assert len(run) >= len(without)
        for mine, theirs in zip(without, run, strict=False):
            assert mine[0] == theirs[0]
            assert (mine[1] == theirs[1]).all()


@pytest.mark.parametrize("happiness", ["equalized_odds", "statistical_parity", "overall_accuracy"])
@pytest.mark.parametrize("calibration", ["isotonic", "none"])
@pytest.mark.parametrize("coarse", [0, 20])
def test_no_decision_hangs_on_the_last_digit_of_a_score(happiness, calibration, coarse):
    """Scores that differ by rounding only, as from another machine or batch, are decided alike.

    The multipliers of the master make somebody exactly indifferent: with coarse scores, everybody who has the
    same score as the person at the edge. Such ties must be broken by rule, not by rounding.
    """
    table, y = make_people(1000, seed=1, coarse=coarse)
    policy = (
        FairClassifier(
            FrozenEstimator(Told().fit(table, y)),
            gap=0.0,
            happiness=happiness,
            policy=Individual(calibration),
            sensitive_features="group",
            random_state=0,
        )
        .fit(table, y)
        .policy_
    )
    group, score = table["group"].to_numpy(), table["p1"].to_numpy()
    decided = policy.probabilities(np.column_stack([1 - score, score]), group, x=table)
    for noise in (2.0**-52, -(2.0**-52)):
        moved = (score * (1 + noise)).clip(max=1.0)
        again = policy.probabilities(np.column_stack([1 - moved, moved]), group, x=table)
        changed = np.abs(decided - again).max(axis=1) > 1e-9
        assert changed.sum() == 0, f"{changed.mean():.1%} of the people"


def funding(decision, x):
    return decision * x["loan"]


def test_a_happiness_that_ignores_the_label_needs_no_plug_in():
    """Expected and realised means agree for measures that ignore y, and differ for one that does not."""
    table, y = make_people(300, seed=4)
    fair = FairClassifier(
        FrozenEstimator(Told().fit(table, y)),
        happiness=[funding, "overall_accuracy"],
        gap={"funding": 0.0},
        policy=Individual("none"),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    plug_in = fair.policy_.search.plug_in_gaps
    assert plug_in["funding"] == pytest.approx(fair.gaps_["funding"], abs=1e-9)
    assert fair.gaps_["funding"] <= 1e-9
    assert abs(plug_in["accuracy"] - fair.gaps_["accuracy"]) > 1e-4


def test_the_stated_duality_gap_is_true_of_the_stated_plug_in_optimum():
    """search.plug_in_optimum is within search.duality_gap of the least plug-in loss, as both are documented."""
    table, y = make_people(120, seed=4)
    fair = FairClassifier(
        FrozenEstimator(Told().fit(table, y)),
        gap=0.0,
        happiness=funding,
        policy=Individual("none"),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    score, group = proba_of(table, 2), codes(table["group"])
    value = np.stack([np.zeros(len(y)), table["loan"].to_numpy()], axis=1)[:, :, None, None]
    units = person_units(1 - score, value, np.ones((len(y), 1, 1)), np.ones(len(y)), group, 2)
    best = least_loss(units, Asked({0: 0.0}))
    search = fair.policy_.search
    assert search.stopped == "duality gap closed"
    assert best - 1e-9 <= search.plug_in_optimum <= best + search.duality_gap + 1e-7
    assert search.plug_in_loss >= search.plug_in_optimum - 1e-9


# ---------------------------------------------------------------------------------------------------------
# End to end, on expected values: a policy that is recalibrated on rows without labels


COST = np.array([[0.0, 1.0, 3.0], [2.0, -0.5, 1.0], [4.0, 1.0, 0.0]])


def regret(decision, x, y):
    return np.abs(decision - y) * (1.0 + (x["group"] == "a"))


def relief(decision, x, y):
    return np.where(y == decision, 0.0, -1.0) * x["loan"]


def rich(x):
    return x["wealth"] > 0


def expected_numbers(table, score, cost, functions):
    """Expected cost (n, K), value (n, K, 1, J) and among (n, 1, J), person by person and label by label."""
    rows = list(table.itertuples(index=False))
    n, K = score.shape
    costs, value, among = (
        np.zeros((n, K)),
        np.zeros((n, K, 1, len(functions))),
        np.zeros((n, 1, len(functions))),
    )
    for i, row in enumerate(rows):
        for label in range(K):
            for d in range(K):
                costs[i, d] += score[i, label] * cost(d, row, label)
            for j, (function, counted) in enumerate(functions):
                if counted(row, label):
                    among[i, 0, j] += score[i, label]
                    for d in range(K):
                        value[i, d, 0, j] += score[i, label] * function(d, row, label)
    return costs, value, among


LOSSES = {
    "error": ("error", lambda d, row, y: float(d != y)),
    "matrix": (COST, lambda d, row, y: COST[y, d]),
    "function": (regret, lambda d, row, y: abs(d - y) * (2.0 if row.group == "a" else 1.0)),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_loss_is_expected_as_by_hand(loss, weighted):
    """Matrix, function and error: without labels, loss_ is the optimum of the full program of expected values."""
    table, y = make_people(70, 3, seed=5)
    wanted, cost = LOSSES[loss]
    functions = [
        (lambda d, row, y: d * row.loan, lambda row, y: row.wealth > 0),
        (lambda d, row, y: 0.0 if y == d else -row.loan, lambda row, y: True),
    ]
    fair = FairClassifier(
        FrozenEstimator(Told(3).fit(table, y)),
        happiness=[Happiness(funding, among=rich, name="cash"), relief],
        gap={"cash": 1.0, "relief": 2.0},
        loss=wanted,
        policy=Individual("none"),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y, sample_weight=np.arange(1.0, 71.0) if weighted else None)
    fair = fair.recalibrate(table.iloc[::-1])  # in another order, so that they are people without labels
    numbers = expected_numbers(table, proba_of(table, 3), cost, functions)
    units = person_units(*numbers, np.ones(len(y)), codes(table["group"]), 2)
    assert fair.loss_ == pytest.approx(least_loss(units, Asked({0: 1.0, 1: 2.0})), abs=1e-7)
    assert fair.gaps_["cash"] <= 1.0 + 1e-8
    assert fair.gaps_["relief"] <= 2.0 + 1e-8


def test_weight_two_is_the_row_twice():
    """Whole weights are repeated rows, whether or not the group is large enough to be calibrated by its rows."""
    table, y = make_people(400, seed=6)
    weight = 1 + np.arange(400) % 3
    repeated = np.repeat(np.arange(400), weight)
    options = {"happiness": "equalized_odds", "gap": 0.02, "policy": "individual"}
    options |= {"sensitive_features": "group", "random_state": 0}
    model = FrozenEstimator(Told().fit(table, y))
    one = FairClassifier(model, **options).fit(table, y, sample_weight=weight)
    other = FairClassifier(model, **options).fit(table.iloc[repeated], y[repeated])
    assert one.loss_ == pytest.approx(other.loss_, abs=1e-9)
    assert one.gaps_ == pytest.approx(other.gaps_, abs=1e-9)
    assert one.share_randomized_ == pytest.approx(other.share_randomized_, abs=1e-9)
    assert np.abs(one.predict_proba(table) - other.predict_proba(table)).max() <= 1e-7


def test_weights_of_a_small_group_are_repeated_rows_too():
    """Weight 2 is the row twice also where a group's rows are too few, and its people enough, to calibrate."""
    n = FEWEST_ROWS - 5
    rng = np.random.default_rng(0)
    p = rng.random(n)
    score, labels = np.column_stack([1 - p, p]), (rng.random(n) < p).astype(int)
    zero = np.zeros(n, dtype=int)
    heavy = fit_calibration("isotonic", score, labels, zero, 1, np.full(n, 2.0))
    twice = np.repeat(np.arange(n), 2)
    rows = fit_calibration("isotonic", score[twice], labels[twice], zero[twice], 1, np.ones(2 * n))
    assert np.abs(heavy.apply(score, zero) - rows.apply(score, zero)).max() <= 1e-12


@pytest.mark.parametrize("policy", ["individual", "score", "label"])
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_units_and_offsets_change_nothing(policy, unit, offset):
    """Happiness in other units, or a billion dollars richer in any case, leaves loss and decisions as they were."""
    table, y = make_people(200, seed=7)

    def scaled(decision, x):
        return unit * (offset * 64.0 + decision * x["loan"])

    options = {"policy": policy, "sensitive_features": "group", "random_state": 0}
    model = FrozenEstimator(Told().fit(table, y))
    plain = FairClassifier(model, happiness=funding, gap=0.5, **options).fit(table, y)
    other = FairClassifier(model, happiness=scaled, gap=0.5 * unit, **options).fit(table, y)
    # The numbers of `scaled` themselves carry an error of 64e9 x 2**-53 dollars.
    precision = 1e-9 if not offset or unit == 1e3 else 1e-4
    assert other.loss_ == pytest.approx(plain.loss_, abs=precision)
    assert other.gaps_["scaled"] == pytest.approx(unit * plain.gaps_["funding"], abs=unit * 2 * precision)
    assert np.abs(other.predict_proba(table) - plain.predict_proba(table)).max() <= 100 * precision
    assert other.share_randomized_ == plain.share_randomized_


# ---------------------------------------------------------------------------------------------------------
# Calibration


@st.composite
def scored(draw, n_classes=2):
    """Probabilities, labels, groups and weights of some people."""
    seed = draw(st.integers(0, 10**6))
    table, y = make_people(
        draw(st.sampled_from([40, 150])), n_classes, 2, seed, draw(st.sampled_from([0, 6]))
    )
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    return proba_of(table, n_classes), y, codes(table["group"]), weight


def blocks_by_hand(score, hit, weight):
    """Pool adjacent violators, in plain loops: [(weight, weighted score, weighted hits)] with rising rates."""
    levels = sorted(set(score.tolist()))
    blocks = []
    for level in levels:
        mine = score == level
        total = float(weight[mine].sum())
        blocks.append([total, total * level, float((weight * hit)[mine].sum())])
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][0] >= blocks[-1][2] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return blocks


@pytest.mark.parametrize("digits", [1, 2, 15])
def test_isotonic_curves_pass_through_scikit_learns(digits):
    """At the mean score of its block, every curve has the value of the usual isotonic regression, any weights given."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        score, weight = rng.random(200).round(digits), rng.random(200) + 0.01
        hit = (rng.random(200) < (score if seed % 4 else seed % 8 > 0)).astype(float)
        places, values = fit_curve("isotonic", score, hit, weight)
        levels, place = np.unique(score, return_inverse=True)
        mass = np.bincount(place, weight)
        rate = np.bincount(place, weight * hit) / mass
        fitted = isotonic_regression(rate, sample_weight=mass)
        pooled = [np.isclose(fitted, value, rtol=0, atol=1e-12) for value in values]
        assert np.array(pooled).sum() == len(fitted)
        centres = [np.average(levels[held], weights=mass[held]) for held in pooled]
        assert places == pytest.approx(centres, abs=1e-12)


@examples
@given(scored())
def test_isotonic_curves_hold_the_means_of_their_blocks(people):
    """Each group's curve rises, stays from 0 to 1, and at a pooled block's mean score is the block's mean."""
    score, y, group, weight = people
    found = fit_calibration("isotonic", score, y, group, 2, weight)
    assert len(found.knots) == 2
    for z in range(2):
        rows = group == z
        if rows.sum() < FEWEST_ROWS:
            continue
        places, values = found.knots[z][1]
        blocks = blocks_by_hand(score[rows, 1], y[rows] == 1, weight[rows])
        assert places == pytest.approx([b[1] / b[0] for b in blocks], abs=1e-12)
        assert values == pytest.approx([b[2] / b[0] for b in blocks], abs=1e-12)
        assert (np.diff(places) > 0).all()
        assert (np.diff(values) > 0).all()
        assert values[0] >= 0
        assert values[-1] <= 1
        # Of two classes, what is not the second one is the first.
        others = blocks_by_hand(score[rows, 0], y[rows] == 0, weight[rows])
        assert found.knots[z][0][0] == pytest.approx([b[1] / b[0] for b in others], abs=1e-12)
        assert found.knots[z][0][1] == pytest.approx([b[2] / b[0] for b in others], abs=1e-12)
    applied = found.apply(score, group)
    assert (applied >= 0).all()
    assert np.abs(applied.sum(axis=1) - 1).max() <= 1e-12
    for z in range(2):
        order = np.argsort(score[group == z, 1])
        assert (np.diff(applied[group == z][order, 1]) >= 0).all()


@pytest.mark.parametrize("method", ["isotonic", "sigmoid", "none"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_calibrated_probabilities_are_probabilities(method, n_classes):
    """Whatever the method and the number of classes, rows are from 0 to 1 and sum to one; "none" is as it was."""
    table, y = make_people(400, n_classes, 2, seed=8)
    score, group = proba_of(table, n_classes), codes(table["group"])
    score[5] = np.eye(n_classes)[0]
    found = fit_calibration(method, score, y, group, 2, np.ones(len(y)))
    new = np.vstack([score, np.eye(n_classes), np.full((1, n_classes), 1 / n_classes)])
    applied = found.apply(new, np.concatenate([group, np.zeros(n_classes + 1, dtype=int)]))
    assert applied.shape == new.shape
    assert (applied >= 0).all()
    assert (applied <= 1).all()
    assert np.abs(applied.sum(axis=1) - 1).max() <= 1e-12
    if method == "none":
        assert np.abs(applied - new).max() <= 1e-15
    else:
        # On the rows it was fitted on, and group by group, it brings the expected number of hits nearer.
        mine = group == 0
        raw, calibrated = score[mine] ** 2, found.apply(score[mine] ** 2, group[mine])
        assert not np.allclose(raw, calibrated)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_small_groups_keep_their_probabilities(method):
    """A group of fewer than 30 rows keeps what the model says; one of 30 does not."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], [FEWEST_ROWS - 1, FEWEST_ROWS])
    p = rng.random(len(group))
    score, y = np.column_stack([1 - p, p]), (rng.random(len(group)) < p / 2).astype(int)
    applied = fit_calibration(method, score, y, group, 2, np.ones(len(y))).apply(score, group)
    assert np.abs(applied - score)[group == 0].max() <= 1e-15
    assert np.abs(applied - score)[group == 1].max() > 0.01


@pytest.mark.parametrize("labels", ["parted", "all of one class", "backwards"])
def test_sigmoid_survives_labels_that_say_everything_or_nothing(labels):
    """Scores that part the labels, or labels of one class, still give a curve from 0 to 1, without a warning."""
    p = np.linspace(0.0, 1.0, 200)
    y = {"parted": p > 0.5, "all of one class": p < 0, "backwards": p < 0.5}[labels].astype(int)
    found = fit_calibration("sigmoid", np.column_stack([1 - p, p]), y, np.zeros(200, int), 1, np.ones(200))
    applied = found.apply(np.column_stack([1 - p, p]), np.zeros(200, int))[:, 1]
    assert (applied >= 0).all()
    assert (applied <= 1).all()
    if labels == "parted":
        assert (np.diff(applied) >= 0).all()
        assert np.abs(applied - y).mean() < 0.05
    if labels == "all of one class":
        assert applied.max() <= 1e-6


def test_a_class_nobody_has_is_given_no_chance():
    """When a group has none of a class among its labels, its calibrated probability there is zero."""
    table, y = make_people(300, 3, 2, seed=3)
    group = codes(table["group"])
    y = np.where((group == 0) & (y == 2), 1, y)
    found = fit_calibration("isotonic", proba_of(table, 3), y, group, 2, np.ones(len(y)))
    applied = found.apply(proba_of(table, 3), group)
    assert applied[group == 0, 2].max() == 0.0
    assert applied[group == 1, 2].max() > 0.1


def test_an_unknown_calibration_is_refused():
    """A name that is no calibration raises at once and lists those there are."""
    with pytest.raises(DataError, match="isotonic") as caught:
        Individual(calibration="platt")
    assert "sigmoid" in caught.value.remedy
    assert "none" in caught.value.remedy


def test_a_group_without_a_curve_is_not_decided_on_garbage():
    """Asking a calibration about a group it has no curve for raises instead of answering from nowhere."""
    one = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    calibration = Calibration(((one, one),))
    with pytest.raises((DataError, IndexError, ValueError)):
        calibration.apply(np.array([[0.5, 0.5]]), np.array([1]))


def test_policies_of_every_calibration_are_found_by_name():
    """The short name stands for isotonic calibration."""
    table, y = make_people(120, seed=1)
    options = {"happiness": funding, "gap": 0.0, "sensitive_features": "group", "random_state": 0}
    model = FrozenEstimator(Told().fit(table, y))
    short = FairClassifier(model, policy="individual", **options).fit(table, y)
    long = FairClassifier(model, policy=Individual(calibration="isotonic"), **options).fit(table, y)
    assert isinstance(short.policy_, Policy)
    assert (short.predict_proba(table) == long.predict_proba(table)).all()
