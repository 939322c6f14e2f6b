"""Score policies: score bins, thresholds per group, and what a naive second computation makes of them."""

import math
import re
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st
from oracles_policies import (
    Asked,
    Told,
    bins_of,
    cell_units,
    cells_of,
    chains_of,
    codes,
    fine_bin,
    least_gap,
    least_loss,
    make_people,
    outcome_of,
    proba_of,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from strategies import examples

from felicific import FairClassifier, Happiness, Score, aggregate, solve
from felicific._policy.cells import treated_alike
from felicific._program import signals as signals_module
from felicific._program.bins import find_boundary, fine_bins
from felicific._program.reweighted import reweighted
from felicific._program.signals import Label, ScoreCells
from felicific.exceptions import AggregatesError, DataError, GroupError, InfeasibleError

BINS = 4098


class Written:
    """Happiness or loss that stands in the table: column ``name_decision``."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, decision, x):
        return x[f"{self.__name__}_{decision}"]


class Counted:
    """Membership that stands in the table."""

    def __init__(self, name):
        self.name = name

    def __call__(self, x):
        return x[self.name]


def funding(decision, x):
    return decision * x["loan"]


def not_baseline(decision, x):
    """A loss that only the baseline's decisions avoid."""
    return (x["baseline"] != decision).astype(float)


@contextmanager
def least_together(people):
    """With three classes or more, treat neighbours alike until so few people of a group are together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signals_module, "LEAST", people)
        yield


# ---------------------------------------------------------------------------------------------------------
# Fine bins

#: Scores where bins begin and end, one step of a float beside them, and anything else from 0 to 1.
SCORES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1e-300, 1 - 2.0**-53]),
    st.integers(0, 4096).map(lambda k: k / 4096),
    st.integers(0, 4095).map(lambda k: math.nextafter(k / 4096, 1.0)),
    st.integers(1, 4096).map(lambda k: math.nextafter(k / 4096, 0.0)),
    st.floats(0.0, 1.0),
)


@examples
@given(st.lists(SCORES, min_size=1, max_size=8), SCORES)
def test_fine_bins_are_the_exact_ones(scores, boundary):
    """Bins are ceil(4096 p), plus one above the boundary, as in exact fractions; the boundary parts the bins."""
    scores = np.array([*scores, boundary])
    found = fine_bins(np.column_stack([1 - scores, scores]), boundary)
    assert found.tolist() == [fine_bin(p, boundary) for p in scores]
    assert found.min() >= 0
    assert found.max() < BINS
    assert (Score(boundary=boundary).baseline(2)[found] == (scores > boundary)).all()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_aggregates_over_bins_are_sums_person_by_person(dtype):
    """Mass, loss and value of every fine bin are those of a loop over people, in single precision too."""
    table, y = make_people(500, seed=3, coarse=64)
    table.loc[:3, "p1"] = [0.0, 0.5, 1.0, 0.3]
    score = np.column_stack([1 - table["p1"], table["p1"]]).astype(dtype)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    group = codes(table["group"])
    found = aggregate(
        {"loan": table["loan"].to_numpy()},
        score=score,
        y=y,
        sensitive_features=group,
        happiness=funding,
        policy=Score(),
        sample_weight=weight,
    )
    mass, loss, value = np.zeros((2, BINS)), np.zeros((2, BINS, 2)), np.zeros((2, BINS, 2))
    for i, (p0, p1) in enumerate(score.tolist()):
        s = fine_bin(p1 / (p0 + p1), 0.5)
        mass[group[i], s] += weight[i]
        for d in range(2):
            loss[group[i], s, d] += weight[i] * (y[i] != d)
            value[group[i], s, d] += weight[i] * d * table["loan"][i]
    assert (found.mass == mass).all()
    assert (found.loss == loss).all()
    shifted = found.value[..., 0] + found.origin[0] * found.among
    assert np.abs(shifted - value).max() <= 1e-9
    assert found.baseline_loss.sum() == (weight * (score.argmax(axis=1) != y)).sum()


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_bins_of_many_classes_are_those_of_a_loop(n_classes):
    """With more classes a bin is the likeliest class and a range of its probability, ties to the first class."""
    table, _ = make_people(300, n_classes, seed=n_classes, coarse=12)
    score = proba_of(table, n_classes)
    score[0], score[1] = np.eye(n_classes)[1], np.full(n_classes, 1 / n_classes)
    score[2] = np.eye(n_classes)[n_classes - 1]
    found = fine_bins(score, 0.5)
    assert found.tolist() == bins_of(score).tolist()
    assert found.max() < Score().size(n_classes)
    assert (Score().baseline(n_classes)[found] == score.argmax(axis=1)).all()


# ---------------------------------------------------------------------------------------------------------
# Joining bins to cells


@st.composite
def masses(draw, n_bins=BINS):
    """Where the people of some groups are: a few places, many, or one."""
    n_groups = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    mass = np.zeros((n_groups, n_bins))
    for z in range(n_groups):
        places = rng.integers(0, n_bins, draw(st.sampled_from([1, 3, 40, 2000])))
        np.add.at(mass[z], places, rng.choice([0.1, 1.0, 7.0], len(places)))
    return mass


@examples
@given(masses(), st.sampled_from([2, 3, 4, 10, 256, 5000]), SCORES)
def test_cells_are_few_alike_and_parted_by_the_boundary(mass, cells, boundary):
    """At most ``cells`` cells; none heavier than its share by more than one bin; the boundary is a cut."""
    of_bins, signal = Score(bins=cells, boundary=boundary).join(
        (mass / mass.sum(axis=1, keepdims=True)).mean(axis=0), 2
    )
    size = signal.size(2)
    assert size <= cells
    assert of_bins[0] == 0
    assert of_bins[-1] == size - 1
    assert set(np.diff(of_bins)) <= {0, 1}
    assert (np.flatnonzero(np.diff(of_bins)) + 1).tolist() == list(signal.cuts)
    baseline = Score(boundary=boundary).baseline(2)
    for s in range(size):
        assert len(set(baseline[of_bins == s])) == 1
    assert (signal.baseline(2)[of_bins] == baseline).all()
    # Every group has the same say, so a cell's share is the average of its shares of the groups.
    share = (mass / mass.sum(axis=1, keepdims=True)).mean(axis=0)
    heaviest = max(share[of_bins == s].sum() for s in range(size))
    assert heaviest <= 1 / (cells - 1) + share.max() + 1e-12


@examples
@given(
    st.integers(3, 5),
    st.integers(0, 10**6),
    st.sampled_from([6, 256, 700]),
    st.sampled_from([40, 500, 20_000]),
)
def test_cells_of_many_classes(n_classes, seed, cells, n):
    """No cell reaches over two predicted classes; there are as many as asked for, or one for every score."""
    size = Score().size(n_classes)
    rng = np.random.default_rng(seed)
    heavy = rng.dirichlet(np.full(size, rng.choice([0.02, 1.0])))  # many people at one score, or few at each
    mass = np.stack([rng.multinomial(n, heavy), rng.multinomial(30, heavy)]).astype(float)
    of_bins, signal = Score(bins=cells).join((mass / mass.sum(axis=1, keepdims=True)).mean(axis=0), n_classes)
    held, scores = np.bincount(of_bins, mass.sum(axis=0)), int((mass.sum(axis=0) > 0).sum())
    assert signal.size(n_classes) <= cells
    assert signal.size(n_classes) == cells or (held > 0).sum() == scores
    assert signal.least == 0
    assert (signal.baseline(n_classes)[of_bins] == Score().baseline(n_classes)).all()
    runs = [list(run) for run in signal.runs(n_classes)]
    assert [s for run in runs for s in run] == list(range(signal.size(n_classes)))
    for k, run in enumerate(runs):
        assert (Score().baseline(n_classes)[np.isin(of_bins, run)] == k).all()


def three_classes(n=4000, small=160, seed=0):
    """Probabilities of three classes, labels drawn from them, and groups of which one is small."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet([2.0, 2.0, 2.0], n + small)
    y = (rng.random(n + small)[:, None] > score.cumsum(axis=1)[:, :-1]).sum(axis=1)
    group = np.repeat(["large", "small"], [n, small])
    return {"score": score, "y": y, "sensitive_features": group, "happiness": "equalized_odds"}


def test_a_number_of_cells_is_kept_whatever_the_smallest_group_holds():
    """Score(bins=256) is 256 cells with three classes and a small group too, and not the label."""
    people = three_classes()
    policy = solved({"i": people["y"]}, policy=Score(bins=256), gap=0.02, random_state=0, **people)
    assert policy.signal.size(3) == 256
    assert not any("told apart" in sentence for sentence in policy.sentences())


def test_fewer_cells_than_labels_are_refused():
    """Every label needs a cell: two for three labels cannot be had, and no other number takes their place."""
    people = three_classes()
    with pytest.raises(DataError, match=r"Score\(bins=2\) has fewer bins than the 3 labels"):
        solved({"i": people["y"]}, policy=Score(bins=2), gap=0.02, **people)


def naive_stretches(mass, runs, least):
    """The first occupied cell of the stretch of every cell, one group and one person's mass at a time."""
    place = np.tile(np.arange(mass.shape[1]), (len(mass), 1))
    for z in range(len(mass)):
        for run in runs:
            parts = []
            for s in run:
                if parts and sum(mass[z, t] for t in parts[-1]) < least:
                    parts[-1].append(s)
                elif mass[z, s] > 0 or not parts:
                    parts.append([s])
                else:
                    parts[-1].append(s)
            while len(parts) > 1 and sum(mass[z, t] for t in parts[-1]) < least:
                parts[-2:] = [parts[-2] + parts[-1]]
            for part in parts:
                held = [s for s in part if mass[z, s] > 0]
                if held:
                    place[z, part] = held[0]
    return place


@pytest.mark.parametrize("sees_group", [True, False])
def test_a_small_group_limits_its_own_cells_and_nobody_elses(sees_group):
    """Unless a number is given, a group's neighbours are treated alike until 50 of its people are together.

    A policy that does not see the group has one table, which all people carry together. The sentences say how many
    cells are left, also after a file.
    """
    people = three_classes()
    policy = solved({"i": people["y"]}, gap=0.1, random_state=0, sees_group=sees_group, **people)
    mass = policy.mass if sees_group else policy.mass.sum(axis=0, keepdims=True)
    place = naive_stretches(mass, policy.signal.runs(3), 50)
    for z, own in enumerate(place):
        assert (policy.q[z] == policy.q[z][own]).all()
        held = np.bincount(own, mass[z])
        assert held[held > 0].min() >= 50 or (held > 0).sum() == 3
    counts = [len(set(own)) for own in place.tolist()]
    assert counts[0] > 60
    assert not sees_group or counts[1] == 3
    said = (
        f"{counts[0]} in group 'large', {counts[1]} in group 'small'"
        if sees_group
        else f"{counts[0]} in any group"
    )
    again = type(policy).from_json(policy.to_json())
    for found in (policy, again):
        assert f"Of {policy.signal.size(3)} score bins, {said} are told apart" in str(found)


@pytest.mark.parametrize("sees_group", [True, False])
def test_cells_treated_alike_share_what_is_known_of_them_when_recalibrated(sees_group):
    """On the very people it was fitted on, recalibrating changes nothing; with more people it learns no noise."""
    people = three_classes()
    found = aggregate({"i": people["y"]}, policy=Score(), **people).joined()
    same = reweighted(found, replace(found, measures=()), sees_group=sees_group)
    asked = {"gap": 0.1, "random_state": 0, "sees_group": sees_group}
    assert solved(same, **asked).loss == pytest.approx(solve(found, **asked).loss, abs=1e-12)
    many = reweighted(
        found, replace(found.with_sums(mass=found.mass * 1000), measures=()), sees_group=sees_group
    )
    mass = found.mass if sees_group else found.mass.sum(axis=0, keepdims=True)
    place = naive_stretches(mass, found.signal.runs(3), 50)
    for z in range(2):
        own = place[z if sees_group else 0]
        held = many.mass[z] > 0
        mean = many.loss[z][held] / many.mass[z][held][:, None]
        for stretch in set(own[held].tolist()):
            assert np.ptp(mean[own[held] == stretch], axis=0).max() <= 1e-12


@pytest.mark.parametrize("wrong", [{"bins": 1}, {"bins": 2.5}, {"boundary": -0.1}, {"boundary": 1.5}])
def test_impossible_scores_are_refused(wrong):
    """Too few cells, and a boundary that is no score, raise."""
    with pytest.raises(DataError):
        Score(**wrong)
    with pytest.raises(DataError):
        Score(boundary=math.nan)


def test_nobody_is_an_error_and_not_a_warning():
    """Aggregates of no people at all say so when they are solved."""
    nobody = aggregate(
        {"loan": np.empty(0)},
        score=np.empty((0, 2)),
        y=np.empty(0, int),
        classes=[0, 1],
        groups=["a", "b"],
        sensitive_features=np.empty(0, dtype="U1"),
        happiness=funding,
    )
    with pytest.raises(GroupError, match="is empty"):
        solve(nobody, gap=0.0)


# ---------------------------------------------------------------------------------------------------------
# The baseline's decisions are one of the policies


def check_baseline(fair, table, y):
    """The policy that changes nothing costs what the model costs, and can be found."""
    found = fair.aggregates_
    n_classes = len(fair.classes_)
    identity = np.eye(n_classes)[found.signal.baseline(n_classes)]
    q = np.tile(identity, (len(found.groups), 1, 1))
    own = np.asarray(fair.estimator_.predict(table[list(fair.estimator_.feature_names_in_)]))
    assert found.baseline.loss == pytest.approx(np.mean(own != y), abs=1e-12)
    assert found.evaluate(q).loss == pytest.approx(np.mean(own != y), abs=1e-12)
    again = FairClassifier(
        fair.estimator,
        happiness="statistical_parity",
        gap={},
        policy=fair.policy,
        loss=not_baseline,
        sensitive_features="group",
        random_state=0,
    ).fit(table.assign(baseline=own), y)
    assert again.loss_ == 0.0
    assert again.share_randomized_ == 0.0
    assert (again.predict(table.assign(baseline=own)) == own).all()


@pytest.mark.parametrize("cells", [2, 5, 256])
@pytest.mark.parametrize("threshold", [0.02, 0.3, 0.5, 0.61, 0.97])
def test_a_threshold_of_the_models_own_is_kept(threshold, cells):
    """With FixedThresholdClassifier at any threshold, the baseline's decisions are among the policies."""
    table, y = make_people(600, seed=5)
    features = ["loan", "wealth", "p1"]
    model = FixedThresholdClassifier(LogisticRegression(max_iter=1000), threshold=threshold)
    model.fit(table[features], y)
    fair = FairClassifier(
        FrozenEstimator(model),
        happiness=funding,
        gap={},
        policy=Score(bins=cells),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    check_baseline(fair, table, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threshold", [None, 0.25, 0.3, 0.5, 0.7])
def test_ties_at_the_threshold_are_kept(threshold, dtype):
    """The same when many people stand exactly at the threshold, at 0 and at 1."""
    table, y = make_people(400, seed=6, coarse=20)
    table.loc[:5, "p1"] = [0.0, 1.0, 0.5, 0.5, 0.3, 0.7]
    table["p0"] = 1 - table["p1"]
    model = Told(threshold=threshold, dtype=dtype).fit(table, y)
    fair = FairClassifier(
        FrozenEstimator(model), happiness=funding, gap={}, sensitive_features="group", random_state=0
    ).fit(table, y)
    check_baseline(fair, table, y)


@examples
@given(SCORES, st.integers(1, 3))
def test_the_boundary_parts_scores_however_near(low, steps):
    """A threshold between two scores is found, even when no float lies between them."""
    high = low
    for _ in range(steps):
        high = math.nextafter(high, 2.0)
    if high > 1:
        return
    scores = np.array([low, high, low, high])
    boundary = find_boundary(np.column_stack([1 - scores, scores]), np.array([0, 1, 0, 1]))
    assert ((scores > boundary) == [False, True, False, True]).all()


def test_single_precision_thresholds_are_found_among_normalised_scores():
    """Probabilities that sum to one only in single precision are normalised before the boundary is looked for.

    Raw, the second score is above the first; their sums differ, and normalised it is below. A boundary between
    the raw scores would swap the two people.
    """
    score = np.array([[0.69999999, 0.29999998], [0.70000008, 0.3], [0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
    normal = score.astype(float) / score.astype(float).sum(axis=1, keepdims=True)
    assert normal[0, 1] > normal[1, 1]
    table = pd.DataFrame(score, columns=["p0", "p1"]).loc[[0, 1, 2, 3] * 20].reset_index(drop=True)
    table["group"] = ["a", "b"] * 40
    table["loan"] = 1.0
    threshold = float(normal[0, 1])

    class Normalised(Told):
        """A model that applies its threshold to what the policy will see."""

        def predict(self, X):
            found = self.predict_proba(X).astype(float)
            return (found[:, 1] / found.sum(axis=1) >= self.threshold).astype(int)

    model = Normalised(threshold=threshold, dtype=np.float32).fit(table, None)
    y = np.arange(80) % 3 == 0
    fair = FairClassifier(
        FrozenEstimator(model), happiness=funding, gap={}, sensitive_features="group", random_state=0
    ).fit(table, y.astype(int))
    check_baseline(fair, table, y.astype(int))


@pytest.mark.parametrize("n_classes", [3, 4, 5])
@pytest.mark.parametrize("monotone", [True, False])
def test_the_baseline_is_among_the_policies_of_many_classes(n_classes, monotone):
    """With more classes too, ties included, the model's own decisions can be had."""
    table, y = make_people(500, n_classes, seed=7, coarse=10)
    fair = FairClassifier(
        FrozenEstimator(Told(n_classes).fit(table, y)),
        happiness=funding,
        gap={},
        policy=Score(monotone=monotone),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    check_baseline(fair, table, y)


# ---------------------------------------------------------------------------------------------------------
# The optimum


TWO = st.just(2)


@st.composite
def populations(draw, n_classes=TWO, most=120):
    """People with scores on a coarse or fine grid, written-down happiness, among, cost and weights."""
    seed = draw(st.integers(0, 10**6))
    K, G, J = draw(n_classes), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(4 * G, most))
    table, y = make_people(n, K, G, seed=seed, coarse=draw(st.sampled_from([0, 0, 8, 100])))
    score = proba_of(table, K)
    weight = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    eta = (
        rng.integers(-8, 9, (n, K, J)) / 4
        + draw(st.sampled_from([0.0, 1.0])) * codes(table["group"])[:, None, None]
    )
    among = rng.random((n, J)) < 0.7 if draw(st.booleans()) else np.ones((n, J), bool)
    for z in range(G):
        among[np.flatnonzero(codes(table["group"]) == z)[0]] = True
    cost = (
        rng.integers(0, 9, (n, K)) / 4 if draw(st.booleans()) else (np.arange(K) != y[:, None]).astype(float)
    )
    return {"y": y, "group": codes(table["group"]), "score": score, "weight": weight} | {
        "eta": eta,
        "among": among,
        "cost": cost,
    }


def aggregates_of(people, policy, rows=slice(None), **more):
    """Aggregates of written-down people."""
    _, K, J = people["eta"].shape
    x = {f"loss_{d}": people["cost"][rows, d] for d in range(K)}
    x |= {f"eta{j}_{d}": people["eta"][rows, d, j] for j in range(J) for d in range(K)}
    x |= {f"among{j}": people["among"][rows, j] for j in range(J)}
    happiness = [Happiness(Written(f"eta{j}"), among=Counted(f"among{j}")) for j in range(J)]
    return aggregate(
        x,
        score=people["score"][rows],
        y=people["y"][rows],
        classes=range(K),
        groups=range(int(people["group"].max()) + 1),
        sensitive_features=people["group"][rows],
        happiness=happiness,
        policy=policy,
        loss=Written("loss"),
        sample_weight=people["weight"][rows],
        **more,
    )


def units_of(people, signal, monotone, blind=False):
    """The naive program over the cells of a signal, some of them treated alike."""
    K = people["score"].shape[1]
    cell, group = cells_of(people["score"], signal.cuts, signal.boundary), people["group"]
    if signal.least:
        mass = np.zeros((1 if blind else int(group.max()) + 1, len(signal.cuts) + 1))
        np.add.at(mass, (0 * group if blind else group, cell), people["weight"])
        cell = naive_stretches(mass, signal.runs(K), signal.least)[0 * group if blind else group, cell]
    return cell_units(
        people["cost"],
        people["eta"],
        people["among"],
        people["weight"],
        people["group"],
        cell,
        int(people["group"].max()) + 1,
        len(signal.cuts) + 1,
        chains_of(signal.cuts, K) if monotone else (),
        blind,
    )


def attempt(found, **asked):
    """The policy and no error, or no policy and why there is none."""
    try:
        return solve(found, **asked), None
    except InfeasibleError as error:
        return None, error


def check_optimum(people, policy, fraction, sees_group=True):
    """Solve, and compare with the naive program; returns the policy, or None when the gap cannot be had."""
    found = aggregates_of(people, policy)
    free = solve(found, gap={}, sees_group=sees_group)
    signal = free.signal
    units = units_of(people, signal, policy.monotone, blind=not sees_group)
    J = people["eta"].shape[2]
    asked = Asked({j: fraction * free.outcome.gaps[j] for j in range(J)})
    gaps = {f"eta{j}": width for j, width in asked.gaps.items()}
    assert free.loss == pytest.approx(least_loss(units, Asked()), abs=1e-9)
    policy, error = attempt(found, gap=gaps, sees_group=sees_group)
    if error is not None and error.least_gap is not None:
        j = int(re.search(r"eta(\d)", error.conflict[0])[1])
        assert error.least_gap == pytest.approx(least_gap(units, j), abs=1e-9)
        assert error.least_gap > asked.gaps[j]
    if error is not None:
        assert least_loss(units, asked) is None
        return None
    assert policy.loss == pytest.approx(least_loss(units, asked), abs=1e-9)
    for j, width in asked.gaps.items():
        assert policy.outcome.gaps[j] <= width + 1e-9
    decisions = policy.probabilities(people["score"], people["group"])
    loss, means, gaps = outcome_of(
        decisions,
        people["cost"],
        people["eta"],
        people["among"],
        people["weight"],
        people["group"],
        len(policy.groups),
    )
    assert policy.loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert np.abs(policy.outcome.means - means).max() <= 1e-12 * max(1.0, np.abs(means).max())
    assert np.abs(policy.outcome.gaps - gaps).max() <= 1e-12 * max(1.0, np.abs(means).max())
    return policy


def check_monotone(q, signal, n_classes):
    """Along the score, the decision's probability never falls, not in an empty cell either."""
    for line, d in chains_of(signal.cuts, n_classes):
        assert np.diff(q[:, line, d], axis=1).min(initial=0.0) >= -1e-12


@examples
@given(
    populations(),
    st.sampled_from([2, 3, 8, 40, 4096]),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
)
def test_the_optimum_is_that_of_the_naive_program(people, cells, monotone, fraction, sees_group):
    """Loss, least gap and what predict_proba achieves agree with a program of all pairs over cells by hand."""
    policy = check_optimum(people, Score(bins=cells, monotone=monotone), fraction, sees_group)
    if policy is not None and monotone:
        check_monotone(policy.q, policy.signal, 2)


@examples
@given(
    populations(n_classes=st.integers(3, 5), most=90),
    st.sampled_from([5, 8, 40, None]),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
)
def test_the_optimum_of_many_classes(people, cells, monotone, fraction, sees_group):
    """The same with three to five classes, in so many cells, or with neighbours of few people treated alike."""
    with least_together(4):
        policy = check_optimum(people, Score(bins=cells, monotone=monotone), fraction, sees_group)
    if policy is not None and monotone:
        check_monotone(policy.q, policy.signal, people["score"].shape[1])


@examples
@given(populations(), st.sampled_from([4, 40]), st.sampled_from([0.0, 0.5]))
def test_free_cells_lose_no_more_than_monotone_ones(people, cells, fraction):
    """Dropping monotonicity never raises the loss, nor the least gap."""
    monotone, free = (aggregates_of(people, Score(bins=cells, monotone=kind)) for kind in (True, False))
    widths = fraction * solve(monotone, gap={}).outcome.gaps
    gap = {f"eta{j}": width for j, width in enumerate(widths.tolist())}
    try:
        best = solve(monotone, gap=gap)
    except InfeasibleError as error:
        if error.least_gap is not None:
            name = re.search(r"eta\d", error.conflict[0])[0]
            least = error.least_gap * (1 + 1e-9) + 1e-12
            assert solve(free, gap={name: least}).gaps[name] <= least + 1e-9
        return
    assert solve(free, gap=gap).loss <= best.loss + 1e-9


@examples
@given(populations(most=60), st.sampled_from([0.0, 0.4]), st.booleans())
def test_swapping_the_classes_changes_nothing(people, fraction, monotone):
    """Calling the classes by each other's names, the same loss, gaps and decisions' loss are reached.

    Scores lie strictly inside bins and every occupied bin is a cell, so neither bin edges nor ties tell the
    classes apart.
    """
    rng = np.random.default_rng(0)
    inside = (rng.permutation(4096)[: len(people["y"])] + 0.5) / 4096
    people["score"] = np.column_stack([1 - inside, inside])
    swapped = people | {
        "y": 1 - people["y"],
        "score": people["score"][:, ::-1],
        "eta": people["eta"][:, ::-1],
        "cost": people["cost"][:, ::-1],
    }
    score = Score(bins=4096, monotone=monotone)
    one, other = aggregates_of(people, score), aggregates_of(swapped, score)
    widths = fraction * solve(one, gap={}).outcome.gaps
    gap = {f"eta{j}": width for j, width in enumerate(widths.tolist())}
    (first, error), (second, opposite) = attempt(one, gap=gap), attempt(other, gap=gap)
    assert (error is None) == (opposite is None)
    if error is None:
        assert second.loss == pytest.approx(first.loss, abs=1e-9)
    elif error.conflict == opposite.conflict and error.least_gap is not None:
        assert opposite.least_gap == pytest.approx(error.least_gap, abs=1e-9)


def test_the_best_class_is_only_a_name():
    """Statistical parity of two classes is the same whichever is best, to the last probability."""
    table, y = make_people(300, seed=8)
    model = FrozenEstimator(Told().fit(table, y))
    fits = [
        FairClassifier(
            model,
            gap=0.0,
            happiness="statistical_parity",
            decisions=decisions,
            sensitive_features="group",
            change_cost=0,
            random_state=0,
        ).fit(table, y)
        for decisions in ([0, 1], [1, 0])
    ]
    assert (fits[0].policy_.q == fits[1].policy_.q).all()
    assert fits[0].loss_ == fits[1].loss_


# ---------------------------------------------------------------------------------------------------------
# Empty cells


@examples
@given(st.integers(0, 10**6), st.integers(3, 12), st.booleans(), st.sampled_from([2, 3]))
def test_empty_cells_keep_the_baselines_decision_within_the_monotone_bounds(
    seed, n_groups, monotone, n_classes
):
    """Few people in many groups: a cell with nobody is decided as by the baseline, moved only as order demands."""
    table, y = make_people(8 * n_groups, n_classes, n_groups, seed=seed)
    found = aggregate(
        {"loan": table["loan"].to_numpy()},
        score=proba_of(table, n_classes),
        y=y,
        classes=range(n_classes),
        sensitive_features=table["group"].to_numpy(),
        happiness="statistical_parity",
        policy=Score(bins=60, monotone=monotone),
    )
    policy = solve(found, gap=0.05)
    signal, q = policy.signal, policy.q
    baseline = signal.baseline(n_classes)
    empty = policy.mass == 0
    assert empty.sum() > policy.mass.size / 4
    if not monotone:
        assert (q[empty] == np.eye(n_classes)[np.tile(baseline, (n_groups, 1))[empty]]).all()
        return
    check_monotone(q, signal, n_classes)
    for line, d in chains_of(signal.cuts, n_classes):
        for z in range(n_groups):
            for place, s in enumerate(line):
                if not empty[z, s]:
                    continue
                low = max([q[z, t, d] for t in line[:place] if not empty[z, t]], default=0.0)
                high = min([q[z, t, d] for t in line[place + 1 :] if not empty[z, t]], default=1.0)
                wanted = float(baseline[s] == d)
                assert q[z, s, d] == pytest.approx(min(max(wanted, low), high), abs=1e-12)


@examples
@given(st.integers(0, 10**6), st.integers(3, 6))
def test_empty_cells_decide_nothing_that_their_neighbours_do_not(seed, n_groups):
    """When order keeps an empty cell from the baseline's decision, the rest goes where occupied cells send it."""
    table, y = make_people(8 * n_groups, 3, n_groups, seed=seed)
    found = aggregate(
        {"loan": table["loan"].to_numpy()},
        score=proba_of(table, 3),
        y=y,
        classes=range(3),
        sensitive_features=table["group"].to_numpy(),
        happiness="statistical_parity",
        policy=Score(bins=60),
    )
    policy = solve(found, gap=0.05)
    for line, k in chains_of(policy.signal.cuts, 3):
        for z in range(n_groups):
            held = [s for s in line if policy.mass[z, s] > 0]
            known = {k} | set(np.flatnonzero(policy.q[z, held].max(axis=0, initial=0.0)).tolist())
            for s in set(line) - set(held):
                assert set(np.flatnonzero(policy.q[z, s]).tolist()) <= known, (z, s, policy.q[z, s])


# ---------------------------------------------------------------------------------------------------------
# Aggregates add


@examples
@given(populations(), st.booleans())
def test_two_sites_are_one(people, monotone):
    """Summed site by site, the aggregates, the cells and the policy are those of the rows put together."""
    n = len(people["y"])
    score = Score(bins=12, monotone=monotone)
    whole = aggregates_of(people, score)
    parts = [aggregates_of(people, score, rows=slice(a, b)) for a, b in [(0, n // 3), (n // 3, n)]]
    together = sum(parts)
    assert (together.mass == whole.mass).all()
    assert np.abs(together.loss - whole.loss).max() <= 1e-9
    origin = whole.origin - together.origin
    moved = whole.value + (origin * whole.among)[:, :, None, :]
    assert np.abs(together.value - moved).max() <= 1e-9
    assert (together.rows == whole.rows).all()
    assert together.joined().signal == whole.joined().signal
    one, other = solve(whole, gap={}), solve(together, gap={})
    assert one.loss == pytest.approx(other.loss, abs=1e-12)


@pytest.mark.parametrize(
    "other",
    [Score(bins=11), Score(bins=12, boundary=0.4), Score(bins=12, monotone=False), Label()],
    ids=["cells", "boundary", "monotone", "kind"],
)
def test_other_cells_refuse_to_add(other):
    """Aggregates over other cells, another boundary or another kind of signal do not add; nor do cut ones."""
    table, y = make_people(80, seed=1)
    common = {
        "score": proba_of(table, 2),
        "y": y,
        "sensitive_features": table["group"].to_numpy(),
        "happiness": "statistical_parity",
    }
    mine = aggregate({"a": y}, policy=Score(bins=12), **common)
    theirs = aggregate({"a": y}, policy=other, **common)
    with pytest.raises(AggregatesError, match="disagree on signal"):
        mine + theirs
    with pytest.raises(AggregatesError, match="disagree on signal"):
        mine + mine.joined()
    assert ((mine.joined() + mine.joined()).mass == 2 * mine.joined().mass).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_the_row_twice(n_classes):
    """Whole weights are repeated rows: the same cells, policy and loss."""
    table, y = make_people(1200, n_classes, seed=2)
    weight = 1 + np.arange(1200) % 3
    repeated = np.repeat(np.arange(1200), weight)

    def fitted(rows, **more):
        return solve(
            aggregate(
                {"loan": table["loan"].to_numpy()[rows]},
                score=proba_of(table, n_classes)[rows],
                y=y[rows],
                sensitive_features=table["group"].to_numpy()[rows],
                happiness="statistical_parity",
                **more,
            ),
            gap=0.02,
        )

    one, other = fitted(np.arange(1200), sample_weight=weight), fitted(repeated)
    assert one.signal == other.signal
    assert one.loss == pytest.approx(other.loss, abs=1e-12)
    assert np.abs(one.q - other.q).max() <= 1e-9


# ---------------------------------------------------------------------------------------------------------
# Sentences

WHO = re.compile(
    r"In group '(?P<group>.)', a person(?: whom the model labels (?P<label>\d))? with (?:any|a) "
    r"(?:score for 1|probability of it)(?: above (?P<low>[0-9.e-]+))?(?: and| of)?"
    r"(?: at most (?P<high>[0-9.e-]+))? \([0-9.]+% of the group\) "
    r"(?:is always decided (?P<one>\d)(?:, not as the (?:model|label) says)?|is decided (?P<chances>.*), by lottery)\."
)


def rules_of(policy):
    """What the sentences say, as (group, label, low, high, {decision: probability})."""
    found = []
    for sentence in policy.rules():
        match = WHO.fullmatch(sentence)
        assert match, sentence
        low = -math.inf if match["low"] is None else float(match["low"])
        high = math.inf if match["high"] is None else float(match["high"])
        if match["one"] is not None:
            probabilities = {int(match["one"]): 1.0}
        else:
            parts = re.findall(r"(\d) with probability ([0-9.]+)%", match["chances"])
            probabilities = {int(d): float(percent) / 100 for d, percent in parts}
        found.append(
            (
                match["group"],
                None if match["label"] is None else int(match["label"]),
                low,
                high,
                probabilities,
            )
        )
    return found


def said(rules, group, score, label=None):
    """What the sentences say of one person: exactly one of them speaks of her."""
    mine = [
        probabilities
        for z, k, low, high, probabilities in rules
        if z == group and k == label and low < score <= high
    ]
    assert len(mine) == 1, (group, score, mine)
    return mine[0]


@pytest.mark.parametrize("threshold", [None, 0.3])
@pytest.mark.parametrize("happiness", [funding, "equalized_odds"])
def test_sentences_read_as_thresholds_that_decide(threshold, happiness):
    """Just below, at and just above every threshold that a sentence names, people are decided as it says.

    A sentence that prints 0.4307 for 1764/4096 = 0.430664 is wrong about everybody between the two.
    """
    table, y = make_people(900, seed=9)
    model = Told(threshold=threshold).fit(table, y)
    fair = FairClassifier(
        FrozenEstimator(model), gap=0.0, happiness=happiness, sensitive_features="group", random_state=0
    ).fit(table, y)
    policy = fair.policy_
    rules = rules_of(policy)
    for group in "ab":
        mine = [rule for rule in rules if rule[0] == group]
        assert 2 <= len(mine) <= 6
        named = sorted({side for rule in mine for side in rule[2:4] if math.isfinite(side)})
        assert named
        assert mine[0][2] == -math.inf
        assert mine[-1][3] == math.inf
        assert [rule[3] for rule in mine[:-1]] == [rule[2] for rule in mine[1:]]
        for edge in named:
            for score in (edge - 1e-7, edge, edge + 1e-7):
                probabilities = said(rules, group, score)
                done = policy.probabilities(np.array([[1 - score, score]]), [group])[0]
                assert probabilities.get(1, 0.0) == pytest.approx(done[1], abs=5.1e-5), (group, score)


def test_sentences_describe_everybody():
    """Away from the thresholds, by more than their last printed digit, sentences say what is done."""
    table, y = make_people(900, seed=9)
    fair = FairClassifier(
        FrozenEstimator(Told().fit(table, y)),
        gap=0.0,
        happiness=funding,
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    rules = rules_of(fair.policy_)
    done = fair.predict_proba(table)
    named = np.array([side for rule in rules for side in rule[2:4] if math.isfinite(side)])
    checked = 0
    for score, group, decided in zip(table["p1"], table["group"], done, strict=True):
        if np.abs(named - score).min() > 1e-4:
            assert said(rules, group, score).get(1, 0.0) == pytest.approx(decided[1], abs=5.1e-5)
            checked += 1
    assert checked > 800


@examples
@given(populations(n_classes=st.sampled_from([2, 2, 3])), st.sampled_from([0.0, 0.3]))
def test_no_two_sentences_in_a_row_say_the_same(people, fraction):
    """Neighbouring cells that are treated alike, up to the last digits of a float, share one sentence."""
    found = aggregates_of(people, Score(bins=40)).joined()
    widths = fraction * solve(found, gap={}).outcome.gaps
    try:
        policy = solve(found, gap={f"eta{j}": width for j, width in enumerate(widths.tolist())})
    except InfeasibleError:
        return
    q, runs = policy.q, policy.signal.runs(len(policy.classes))
    for z in range(len(policy.groups)):
        firsts = [first for first, _ in treated_alike(q[z], runs)]
        for run in runs:
            mine = [first for first in firsts if first in run]
            for before, after in pairwise(mine):
                assert np.abs(q[z, before] - q[z, after]).max() > 1e-9, (z, before, after)


def test_sentences_of_many_classes():
    """With three classes a sentence names the predicted class and a range of its probability, rightly."""
    table, y = make_people(2500, 3, seed=10)
    fair = FairClassifier(
        FrozenEstimator(Told(3).fit(table, y)),
        gap=0.0,
        happiness="statistical_parity",
        policy="score",
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    rules = rules_of(fair.policy_)
    done, score = fair.predict_proba(table), proba_of(table, 3)
    named = np.array([side for rule in rules for side in rule[2:4] if math.isfinite(side)])
    assert len(named)
    for line, group, decided in zip(score, table["group"], done, strict=True):
        k = int(line.argmax())
        if np.abs(named - line[k]).min() > 1e-4:
            probabilities = said(rules, group, line[k], k)
            for d in range(3):
                assert probabilities.get(d, 0.0) == pytest.approx(decided[d], abs=5.1e-5)


# ---------------------------------------------------------------------------------------------------------
# Out of reach


def crossed_people(n=400):
    """Group "a" gains from low scores what it loses by high ones; group "b" has 1 in any case.

    Deciding 1 below the middle only would give group "a" a mean of 1/2; no rising policy gives more than 0.
    """
    score = (np.arange(n) + 0.5) / n
    group = np.where(np.arange(n) % 2 == 0, "a", "b")
    gain = np.where(group == "b", 0.0, np.where(score < 0.5, 1.0, -1.0))
    base = np.where(group == "b", 1.0, 0.0)
    return {"gain": gain, "base": base}, score, group


def crossed(decision, x):
    return x["base"] + decision * x["gain"]


def test_both_least_gaps_are_named_and_can_be_had():
    """When order raises the least reachable gap, the error names both gaps, and both can be asked for.

    By hand: monotone 1 - 0, free 1 - 1/2.
    """
    x, score, group = crossed_people()

    def found(**kind):
        return aggregate(
            x,
            score=np.column_stack([1 - score, score]),
            y=(score > 0.5).astype(int),
            sensitive_features=group,
            happiness=Happiness(crossed, unit="$"),
            policy=Score(bins=20, **kind),
        )

    with pytest.raises(InfeasibleError) as caught:
        solve(found(), gap=0.2)
    error = caught.value
    assert error.least_gap == pytest.approx(1.0, abs=1e-9)
    monotone, free = re.search(
        r"least reachable gap is \$(\S+) \(\$(\S+) if it need not be monotone\)", str(error)
    ).groups()
    assert (float(monotone), float(free)) == (1.0, 0.5)
    assert solve(found(), gap=float(monotone)).gap <= 1.0 + 1e-9
    assert solve(found(monotone=False), gap=float(free)).gap <= 0.5 + 1e-9
    with pytest.raises(InfeasibleError) as caught:
        solve(found(monotone=False), gap=0.2)
    assert "monotone=False" not in str(caught.value)
    assert caught.value.least_gap == pytest.approx(0.5, abs=1e-9)


def test_one_least_gap_is_named_when_order_does_not_matter():
    """When the free cells reach no less, only one gap is named."""
    x, score, group = crossed_people()
    x["gain"] = np.where(group == "b", 0.0, 0.25)
    found = aggregate(
        x,
        score=np.column_stack([1 - score, score]),
        y=(score > 0.5).astype(int),
        sensitive_features=group,
        happiness=crossed,
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(found, gap=0.0)
    assert caught.value.least_gap == pytest.approx(0.75, abs=1e-9)
    assert "monotone=False" not in str(caught.value)


def test_a_cut_out_of_order_is_refused():
    """Cells whose cuts do not increase, or are no whole numbers, raise."""
    for cuts in [(3, 3), (0, 4), (5, 2), (1.5,)]:
        with pytest.raises(DataError):
            ScoreCells(cuts)
