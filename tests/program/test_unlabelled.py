"""Sums over people of whom some have no label, against the table in which every missing label is each of the labels."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from naive import LAZY
from scipy.optimize import minimize

from felicific import (
    Budget,
    Floor,
    Gap,
    Individual,
    MissingLabels,
    Policy,
    Ratio,
    Score,
    WorseOff,
    aggregate,
    frontier,
    solve,
)
from felicific._program.aggregates import Aggregates
from felicific._statistics.labels import (
    fit_curve,
    fit_label_curve,
    label_weights,
    log_shares,
    tilted,
    tilted_by,
)
from felicific.exceptions import AggregatesError, ConstraintError, DataError

#: Happiness of the decision and the label alone, by name; and one that looks at x besides.
APART = ("decision * amount", "equal_opportunity", "equalized_odds", "statistical_parity", "decision * y")


def world(n=900, classes=2, seed=0, known=True):
    """People with scores, labels of whom some are missing, and the chances of having one."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    base = rng.normal(size=(n, classes))
    base[:, -1] += 0.4 - 0.3 * group
    score = np.exp(base) / np.exp(base).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(classes, p=row) for row in score])
    probabilities = 1.0 / (1.0 + np.exp(-0.6 * (base[:, -1] - base[:, 0] - 0.5 * group + 0.6)))
    seen = rng.random(n) < probabilities
    table = pd.DataFrame(
        {
            "g": np.array(["a", "b"], dtype=object)[group],
            "amount": rng.integers(1, 40, n) / 4,
            "proba": probabilities,
            "truth": truth,
            "y": np.where(seen, truth, np.nan),
            "w": rng.integers(1, 4, n).astype(float),
            **{f"p{k}": score[:, k] for k in range(classes)},
        }
    )
    return table


def roles(classes=2, **more):
    return {"score": {k: f"p{k}" for k in range(classes)}, "y": "y", "sensitive_features": "g", **more}


def bins_of(table, classes):
    """The fine bin of everybody, as the documentation of Score says it."""
    if classes == 2:
        return np.ceil(4096 * table["p1"]).astype(int) + (table["p1"] > 0.5)
    score = table[[f"p{k}" for k in range(classes)]].to_numpy()
    fine = max(32, 4096 // classes)
    return score.argmax(axis=1) * (fine + 1) + np.ceil(fine * score.max(axis=1)).astype(int)


def expanded(table, classes, probabilities=None, weight=None):
    """Everybody without a label repeated for each, with its chance as the weight; chances by group and fine bin."""
    columns = [f"p{k}" for k in range(classes)]
    weight = np.ones(len(table)) if weight is None else table[weight].to_numpy()
    place = table["g"].astype(str) + " " + bins_of(table, classes).astype(str)
    score = table[columns].to_numpy()
    mean = pd.DataFrame(score * weight[:, None]).groupby(place.to_numpy()).transform("sum").to_numpy()
    mean = mean / pd.Series(weight).groupby(place.to_numpy()).transform("sum").to_numpy()[:, None]
    labelled = table["y"].notna().to_numpy()
    chances = np.zeros((len(table), classes))
    for group in ("a", "b"):
        own = (table["g"] == group).to_numpy()
        if probabilities is None:
            e = (
                fit_label_curve(mean[own], (weight * labelled)[own], (weight * ~labelled)[own])
                .label_proba(mean[own])
                .clip(0.02)
            )
        else:
            e = table[probabilities].to_numpy()[own]
        omega = np.where(labelled[own], (1 - e) / e, 0.0) * weight[own]
        counts = np.eye(classes)[table["truth"].to_numpy()[own]] * omega[:, None]
        squares = (np.where(labelled[own], (1 - e) / e, 0.0) ** 2 * weight[own]).sum()
        chances[own] = fit_curve(mean[own], counts, omega.sum() ** 2 / squares).chances(mean[own])
    parts = [table[labelled].assign(v=weight[labelled])]
    for k in range(classes):
        parts.append(table[~labelled].assign(y=float(k), v=(weight * chances[:, k])[~labelled]))
    return pd.concat(parts)


@pytest.mark.parametrize("calibration", ["none", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_individual_policies_are_those_of_the_expanded_table(calibration, classes):
    """So are individual policies, by the chances of each person: calibrated for everybody, valued by both."""
    table = world(n=500, classes=classes, seed=11)
    columns = [f"p{k}" for k in range(classes)]
    labelled = table["y"].notna().to_numpy()
    chances = np.zeros((len(table), classes))
    for group in ("a", "b"):
        own = (table["g"] == group).to_numpy()
        omega = np.where(labelled, (1 - table["proba"]) / table["proba"], 0.0)
        held = own & labelled
        counts = np.eye(classes)[table["truth"][held]] * omega[held][:, None]
        effective = omega[held].sum() ** 2 / (omega[held] ** 2).sum()
        curve = fit_curve(table[columns].to_numpy()[held], counts, effective)
        chances[own] = curve.chances(table[columns].to_numpy()[own])
    parts = [table[labelled].assign(v=1.0)]
    parts += [table[~labelled].assign(y=float(k), v=chances[~labelled, k]) for k in range(classes)]
    asked = {
        "happiness": "equal_opportunity",
        "gap": 0.05,
        "random_state": 0,
        "policy": Individual(calibration),
    }
    found = solved(table, **roles(classes), missing_labels=MissingLabels(label_proba="proba"), **asked)
    wanted = solved(pd.concat(parts), **roles(classes, sample_weight="v"), **asked)
    assert found.loss == pytest.approx(wanted.loss, abs=1e-9)
    np.testing.assert_allclose(found.outcome.means, wanted.outcome.means, atol=1e-9)


def columns_of(table):
    """The columns as arrays, labels as whole numbers or None."""
    labels = np.array([None if np.isnan(label) else int(label) for label in table["y"]], dtype=object)
    return {name: table[name].to_numpy() for name in table.columns} | {"y": labels}


def assert_same(found, wanted):
    """Two policies that do the same."""
    assert found.loss == pytest.approx(wanted.loss, abs=1e-9)
    for name, gap in wanted.gaps.items():
        assert found.gaps[name] == pytest.approx(gap, abs=1e-9)
    np.testing.assert_allclose(found.outcome.means, wanted.outcome.means, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("happiness", APART)
@pytest.mark.parametrize("probabilities", [None, "proba"])
def test_it_is_the_fit_to_the_expanded_table(classes, happiness, probabilities):
    """A policy of cells is that of the table in which every missing label is each of the labels, with its chance."""
    table = world(classes=classes)
    said = MissingLabels(label_proba=probabilities)
    asked = {"happiness": happiness, "random_state": 0, "gap": 0.01, "policy": Score(bins=20)}
    found = solved(table, **roles(classes), missing_labels=said, **asked)
    wanted = solved(expanded(table, classes, probabilities), **roles(classes), sample_weight="v", **asked)
    assert_same(found, wanted)


@pytest.mark.parametrize("probabilities", [None, "proba"])
def test_weights_and_blind_policies_are_those_of_the_expanded_table(probabilities):
    """Weights multiply everything, and a policy that does not see the group is fitted to the same people."""
    table = world(seed=1)
    asked = {"happiness": "equal_opportunity", "random_state": 0, "gap": 0.02, "policy": Score(bins=20)}
    for blind in (True, False):
        found = solved(
            table,
            **roles(sample_weight="w"),
            missing_labels=MissingLabels(label_proba=probabilities),
            sees_group=blind,
            **asked,
        )
        whole = expanded(table, 2, probabilities, "w")
        assert_same(found, solved(whole, **roles(sample_weight="v"), sees_group=blind, **asked))


def test_labels_go_by_their_signal():
    """Without a curve along the score, chances are what was seen of the signal: by group and predicted class."""
    table = world(seed=2)
    own, labelled, parts = (table["p1"] > 0.5).to_numpy(), table["y"].notna().to_numpy(), []
    parts.append(table[labelled].assign(v=1.0))
    for k in (0, 1):
        chance = np.zeros(len(table))
        for group, side in itertools.product(("a", "b"), (True, False)):
            here = (table["g"] == group).to_numpy() & (own == side)
            chance[here] = (table["truth"][here & labelled] == k).mean()
        parts.append(table[~labelled].assign(y=float(k), v=chance[~labelled]))
    asked = {"happiness": "equal_opportunity", "random_state": 0, "gap": 0.02, "policy": "label"}
    found = solved(table, **roles(), missing_labels="at_random", **asked)
    assert_same(found, solved(pd.concat(parts), **roles(sample_weight="v"), **asked))


def test_soft_labels_go_by_their_signal():
    """Everybody has both signals, with the model's probabilities: those who were seen, and those who were not."""
    table = world(seed=2)
    asked = roles(happiness="decision", policy="soft-label", missing_labels="at_random")
    sums = aggregate(table, **asked).completed()
    labelled = table["y"].notna().to_numpy()
    for (z, group), s, d in itertools.product(enumerate(("a", "b")), (0, 1), (0, 1)):
        own = (table["g"] == group).to_numpy()
        share, truth = table[f"p{s}"].to_numpy(), table["truth"].to_numpy()
        seen, others = share * (own & labelled), share * (own & ~labelled)
        wrong = (seen * (truth != d)).sum()  # of those with a label; of the others as often
        assert sums.loss[z, s, d] == pytest.approx(wrong + others.sum() * wrong / seen.sum(), rel=1e-9)


def test_what_looks_at_the_label_and_at_x_is_corrected():
    """Sums of such a function are doubly robust: supposed of the unlabelled, plus what the labelled are off by."""
    table = world(seed=3)
    asked = {"happiness": {"profit": "decision * y * amount"}, "policy": Score(bins=20)}
    sums = aggregate(table, **roles(), missing_labels=MissingLabels(label_proba="proba"), **asked).completed()
    whole = expanded(table, 2, "proba")
    plain = aggregate(whole, **roles(sample_weight="v"), **asked)
    # By hand: chances of everybody, the labelled included.
    labelled = table["y"].notna().to_numpy()
    supposed = whole[len(table[labelled]) :]
    chance = pd.Series(supposed["v"].to_numpy()[len(supposed) // 2 :], index=table.index[~labelled])
    assert chance.between(0, 1).all()
    total = sums.value[..., 1, 0].sum(axis=1) + sums.origin[0] * sums.among[..., 0].sum(axis=1)
    left = plain.value[..., 1, 0].sum(axis=1) + plain.origin[0] * plain.among[..., 0].sum(axis=1)
    omega = np.where(labelled, (1 - table["proba"]) / table["proba"], 0.0)
    for z, group in enumerate(("a", "b")):
        own = (table["g"] == group).to_numpy() & labelled
        mean = _mean_proba(table)[own]
        squares = (omega[own] ** 2).sum()
        curve = fit_curve(
            mean, np.eye(2)[table["truth"][own]] * omega[own][:, None], omega[own].sum() ** 2 / squares
        )
        off = omega[own] * table["amount"][own] * (table["truth"][own] - curve.chances(mean)[:, 1])
        assert total[z] == pytest.approx(left[z] + off.sum(), rel=1e-9)


def _mean_proba(table):
    place = (table["g"].astype(str) + " " + bins_of(table, 2).astype(str)).to_numpy()
    return table[["p0", "p1"]].groupby(place).transform("mean").to_numpy()


@pytest.mark.parametrize(
    "said",
    ["at_random", MissingLabels(label_proba="proba"), MissingLabels(label_proba="proba", max_odds_ratio=2)],
)
@pytest.mark.parametrize("happiness", ["equal_opportunity", "decision * y * amount", "decision * amount"])
def test_parts_add_to_the_whole(said, happiness):
    """Aggregates of parts of a table, one of them without any missing label, add to those of the table."""
    if happiness == "equal_opportunity" and said != "at_random" and said.max_odds_ratio > 1:
        return  # refused by name, see below
    table = world()
    table.loc[:100, "y"] = table["truth"][:101].astype(float)
    table.loc[:100, "proba"] = 1.0
    asked = roles(happiness=happiness, missing_labels=said)
    parts = [aggregate(part, **asked) for part in (table[:101], table[101:500], table[500:])]
    one, other = sum(parts).completed(), aggregate(table, **asked).completed()
    for name in (
        "mass",
        "loss",
        "value",
        "among",
        "baseline_loss",
        "baseline_value",
        "baseline_mass",
        "least_loss",
    ):
        left, right = getattr(one.around(other.origin), name), getattr(other, name)
        assert (left is None) == (right is None)
        if left is not None:
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    for name in ("people", "labelled", "standing", "effective", "below", "evidence", "seen", "imputed"):
        np.testing.assert_allclose(getattr(one.labels, name), getattr(other.labels, name), rtol=1e-9)


@pytest.mark.parametrize("library", sorted(LAZY))
@pytest.mark.parametrize("happiness", ["equal_opportunity", "decision * y * amount"])
@pytest.mark.parametrize("probabilities", [None, "proba"])
def test_engines_are_memory(library, happiness, probabilities, tmp_path):
    """Lazy tables give the numbers of tables in memory."""
    table = world(n=400, seed=5)
    asked = roles(happiness=happiness, missing_labels=MissingLabels(label_proba=probabilities))
    here = aggregate(table, **asked).completed()
    there = aggregate(LAZY[library](columns_of(table), tmp_path), **asked).completed()
    for name in ("mass", "loss", "value", "among"):
        np.testing.assert_allclose(
            getattr(there.around(here.origin), name), getattr(here, name), rtol=1e-9, atol=1e-9
        )


@pytest.mark.slow
def test_files_round_trip():
    """Aggregates and policies of people of whom some have no label come back as they were."""
    table = world()
    for said in (
        MissingLabels(label_proba="proba", max_odds_ratio=math.inf),
        MissingLabels(label_proba="proba", max_odds_ratio=2),
        "at_random",
    ):
        sums = aggregate(table, **roles(happiness="decision * y * amount", missing_labels=said))
        back = Aggregates.from_json(sums.to_json())
        assert back.to_json() == sums.to_json()
        policy = solve(back, gap={}, random_state=0)
        again = Policy.from_json(policy.to_json())
        assert again.to_json() == policy.to_json()
        assert again.loss_range == policy.loss_range
        assert again.labels.to_dict() == policy.labels.to_dict()
        assert policy.loss == pytest.approx(solve(sums, gap={}, random_state=0).loss, abs=1e-12)
    content = json.loads(policy.to_json())
    assert content["labels"]["source"] == "score"


def test_a_table_without_missing_labels_is_as_it_was():
    """What is said of missing labels changes nothing, bit for bit, where none is missing."""
    table = world()
    table["y"] = table["truth"]
    for happiness in ("equalized_odds", "decision * y * amount"):
        for policy in ("score", "label", "individual"):
            asked = roles(happiness=happiness, gap=0.05, policy=policy, random_state=0)
            plain = solved(table, **asked)
            assert solved(table, **asked, missing_labels="at_random").to_json() == plain.to_json()
            said = MissingLabels(label_proba="proba", max_odds_ratio=3)
            assert solved(table, **asked, missing_labels=said).to_json() == plain.to_json()


# ---------------------------------------------------------------------------------------------------------
# The chances of labels


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_curve_has_the_greatest_likelihood_and_no_bias(k):
    """Newton's method finds what a general optimiser does, and the chances of every label sum to what was seen."""
    rng = np.random.default_rng(k)
    score = rng.dirichlet(np.ones(k), 300)
    counts = np.eye(k)[[rng.choice(k, p=row**0.7 / (row**0.7).sum()) for row in score]] * rng.exponential(
        size=(300, 1)
    )
    curve = fit_curve(score, counts, 100.0)
    chances = curve.chances(score)
    np.testing.assert_allclose(
        (counts.sum(axis=1)[:, None] * chances).sum(axis=0), counts.sum(axis=0), rtol=1e-9
    )

    def minus(place):
        scores = np.append(0.0, place[:-1]) + place[-1] * log_shares(score)
        scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return -(counts * scores).sum() * 100.0 / counts.sum() + (place[-1] - 1.0) ** 2 / 2

    best = minimize(
        minus,
        np.append(np.zeros(k - 1), 1.0),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000},
    )
    np.testing.assert_allclose([*curve.shift[1:], curve.slope], best.x, atol=1e-4)


def test_a_label_nobody_has_stays_without_chance():
    """A class that no labelled person has gets no chance; one class alone gets all."""
    score = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    counts = np.zeros((50, 3))
    counts[:, 0] = counts[:, 2] = 1.0
    assert (fit_curve(score, counts, 50.0).chances(score)[:, 1] == 0).all()
    counts[:, 2] = 0.0
    assert (fit_curve(score, counts, 50.0).chances(score)[:, 0] == 1).all()


# ---------------------------------------------------------------------------------------------------------
# What is hidden


@pytest.mark.parametrize("max_odds_ratio", [1.0, 1.5, 4.0])
def test_the_worst_tilt_is_the_worst_vertex(max_odds_ratio):
    """No vertex of t between 1 and G makes more of a linear function, for up to five labels."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        k = int(rng.integers(2, 6))
        m, f = rng.dirichlet(np.ones(k)), rng.normal(size=k)
        worst, t = tilted(m, f, max_odds_ratio)
        every = [tilted_by(m, np.array(v)) @ f for v in itertools.product([1.0, max_odds_ratio], repeat=k)]
        assert worst @ f == pytest.approx(max(every), abs=1e-12)
        np.testing.assert_allclose(tilted_by(m, t), worst)
    assert tilted(np.array([0.9, 0.1]), np.array([0.0, 1.0]), math.inf)[0].tolist() == [0.0, 1.0]


def test_label_weights_sum_to_one():
    """Whatever is hidden, the weights of the labels of a person sum to one."""
    rng = np.random.default_rng(1)
    m = rng.dirichlet(np.ones(3), 40)
    labels = rng.integers(-1, 3, 40)
    omega = np.where(labels >= 0, rng.exponential(size=40), 0.0)
    worst, t = tilted(m, rng.normal(size=(40, 3)), 2.5)
    for found in (label_weights(labels, m, omega), label_weights(labels, m, omega, t, worst)):
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("max_odds_ratio", [1.5, 3.0, math.inf])
def test_the_loss_is_the_worst_of_every_decision(classes, max_odds_ratio):
    """Sums of the worst loss are those of a loop over people and vertices; the frontier is one of worst cases."""
    table, cost = world(n=300, classes=classes), np.arange(classes**2).reshape(classes, classes) % 4.0
    asked = roles(classes, happiness="decision * amount", loss=cost, policy=Score(bins=10))
    raw = aggregate(table, **asked, missing_labels=MissingLabels(label_proba="proba"))
    sums, plain = raw.completed(max_odds_ratio), raw.completed()
    whole = expanded(table, classes, "proba")
    n = int(table["y"].notna().sum())
    wanted = np.zeros((2, classes))
    for label in range(classes):
        part = whole[:n][whole[:n]["y"] == label]
        for z, group in enumerate(("a", "b")):
            wanted[z] += (part["g"] == group).sum() * cost[label]
    others = [whole[n:][whole[n:]["y"] == k] for k in range(classes)]
    chances = np.column_stack([part["v"].to_numpy() for part in others])
    corners = [np.array(t) for t in itertools.product([1.0, min(max_odds_ratio, 1e12)], repeat=classes)]
    for row, group in zip(chances, others[0]["g"], strict=True):
        for d in range(classes):
            wanted[int(group == "b"), d] += max(tilted_by(row, t) @ cost[:, d] for t in corners)
    np.testing.assert_allclose(sums.loss.sum(axis=1), wanted, rtol=1e-8)
    assert (sums.least_loss <= plain.loss + 1e-9).all()
    assert (plain.loss <= sums.loss + 1e-9).all()
    line = frontier(raw.completed(max_odds_ratio))
    policy = solve(raw.completed(max_odds_ratio), gap=0.0, random_state=0)
    assert policy.loss == pytest.approx(float(line.loss[0]), abs=1e-9)
    least, most = policy.loss_range
    assert least <= solve(raw, gap=0.0, random_state=0).loss <= most


def test_ends_close_as_nothing_is_hidden():
    """Where a ratio comes near 1, worst cases and ends come near what is supposed where nothing is, of x and y too."""
    table = world(seed=9)
    for happiness, loss in (("decision * y * amount", "error"), ("decision", "(decision != y) * amount")):
        raw = aggregate(
            table,
            **roles(happiness={"h": happiness}, loss=loss),
            missing_labels=MissingLabels(label_proba="proba"),
        )
        plain, near = raw.completed(), raw.completed(1 + 1e-9)
        np.testing.assert_allclose(near.loss, plain.loss, atol=1e-6)
        np.testing.assert_allclose(near.least_loss, plain.loss, atol=1e-6)
        np.testing.assert_allclose(near.baseline_loss, plain.baseline_loss, atol=1e-6)
        for j in range(near.value.shape[3]):
            np.testing.assert_allclose(near.value[..., j], plain.value[..., 0], atol=1e-6)
            np.testing.assert_allclose(near.baseline_value[..., j], plain.baseline_value[..., 0], atol=1e-6)


def test_ends_of_happiness_hold_every_truth():
    """Whatever labels hidden reasons allow, means lie between the ends, and no gap is larger than the one stated."""
    table, max_odds_ratio, rng = world(n=400, seed=7), 2.0, np.random.default_rng(0)
    for happiness in ("decision * y", "decision * y * amount - 3 * decision"):
        raw = aggregate(
            table,
            **roles(happiness={"h": happiness}, policy=Score(bins=10)),
            missing_labels=MissingLabels(label_proba="proba"),
        )
        sums = raw.completed(max_odds_ratio)
        policy = solve(raw.completed(max_odds_ratio), gap=0.4, random_state=0)
        names = [measure.name for measure in policy.measures]
        low, high = (policy.outcome.means[:, names.index(f"h, at {end}")] for end in ("least", "most"))
        assert policy.gap <= 0.4 + 1e-9
        assert policy.gap == pytest.approx(max(high[0] - low[1], high[1] - low[0], 0.0), abs=1e-9)
        whole = expanded(table, 2, "proba")
        n = int(table["y"].notna().sum())
        known, others = whole[:n], whole[n:]
        bad, good = others[others["y"] == 0], others[others["y"] == 1]
        probabilities = policy.probabilities(known[["p0", "p1"]].to_numpy(), known["g"])[:, 1]
        chance = policy.probabilities(bad[["p0", "p1"]].to_numpy(), bad["g"])[:, 1]
        bonus, cost = (0.0, 0.0) if happiness == "decision * y" else (1.0, 3.0)

        def value(rows, bonus=bonus, cost=cost):
            return (rows["y"] * (rows["amount"] if bonus else 1.0) - cost).to_numpy()

        for _ in range(20):
            t = rng.choice([1.0, max_odds_ratio], size=(len(bad), 2))
            u = tilted_by(np.column_stack([bad["v"], good["v"]]), t)[:, 1]
            mean = np.zeros(2)
            for z, group in enumerate(("a", "b")):
                here, there = (known["g"] == group).to_numpy(), (bad["g"] == group).to_numpy()
                total = (probabilities * value(known))[here].sum()
                total += (chance * ((1 - u) * value(bad) + u * value(good)))[there].sum()
                mean[z] = total / (here.sum() + there.sum())
            assert (low - 1e-9 <= mean).all()
            assert (mean <= high + 1e-9).all()
            assert abs(mean[0] - mean[1]) <= policy.gap + 1e-9
        assert sums.measures[0].ends == ("h, at least", "h, at most")


def test_floors_and_budgets_hold_at_the_end_that_matters():
    """A floor holds at the least, a budget at the most that happiness can be; who loses is not known."""
    table = world(seed=8)
    raw = aggregate(
        table,
        **roles(happiness={"h": "decision * y"}, policy=Score(bins=10)),
        missing_labels=MissingLabels(label_proba="proba"),
    )
    asked = [Floor("h", 0.3), Budget("h", at_most=0.5)]
    policy = solve(raw.completed(2.0), gap={}, constraints=asked, random_state=0)
    names = [measure.name for measure in policy.measures]
    low, high = (policy.outcome.means[:, names.index(f"h, at {end}")] for end in ("least", "most"))
    assert (low >= 0.3 - 1e-9).all()
    share = table["g"].value_counts(normalize=True)[["a", "b"]].to_numpy()
    assert share @ high <= 0.5 + 1e-9
    for asked in (
        Ratio("h", 0.8),
        Floor("h", "baseline"),
        Budget("h", exactly=0.4),
        Gap("h", 0.1, between="g"),
    ):
        with pytest.raises(ConstraintError, match="hidden reasons leave open"):
            solve(raw.completed(2.0), gap={}, constraints=[asked])
    with pytest.raises(ConstraintError, match="do not say who gets less"):
        solve(raw.completed(2.0), gap={}, constraints=[WorseOff(0.1)])


# ---------------------------------------------------------------------------------------------------------
# Errors


def test_nothing_said_is_an_error_with_the_words_of_the_page():
    """Missing labels of which nothing is said are counted by group, and the remedy lists what can be said."""
    table = world()
    with pytest.raises(DataError) as error:
        solved(table, **roles(happiness="decision", gap=0.0))
    text = str(error.value)
    gone = int(table["y"].isna().sum())
    assert (
        f"The label is missing in {gone:,} of {len(table):,} rows ({100 * gone / len(table):.0f} %): " in text
    )
    assert "% of 'b', " in text
    assert "first in row " in text
    assert "Leaving them out would fit the policy to the people who have one." in text
    assert (
        "missing_labels='at_random', MissingLabels(label_proba=column), MissingLabels(max_odds_ratio=3) or 'unknown'"
        in text
    )
    assert "Drop the rows only if labels were lost by chance." in text


def test_labels_nobody_looks_at_may_be_missing(tmp_path):
    """Where neither the loss nor happiness looks at labels, a missing one is no error, in memory and on engines."""
    table = world()
    asked = roles(happiness="decision", loss="changes", gap=0.02, random_state=0)
    wanted = solved(table.drop(columns="y"), **asked | {"y": None, "classes": [0, 1]})
    assert solved(table, **asked).loss == pytest.approx(wanted.loss, abs=1e-12)
    for library in LAZY:
        lazy = LAZY[library](columns_of(table), tmp_path)
        assert solved(lazy, **asked | {"classes": [0, 1]}).loss == pytest.approx(wanted.loss, abs=1e-12)


def test_probabilities_that_cannot_be_are_refused():
    """Probabilities outside 0 to 1, missing, 0 for somebody with a label, or not those that labels were seen with."""
    table = world()
    labelled = int(np.flatnonzero(table["y"].notna())[0])

    def wrong(change, match):
        bad = table.copy()
        change(bad)
        with pytest.raises(DataError, match=match):
            solved(
                bad, **roles(happiness="decision", gap=0.0), missing_labels=MissingLabels(label_proba="proba")
            )

    wrong(
        lambda t: t.__setitem__("proba", t["proba"].where(t.index != 7, 1.2)),
        "label_proba of row 7 is 1.2",
    )
    wrong(lambda t: t.__setitem__("proba", t["proba"].where(t.index != 7)), "'proba' is missing")
    wrong(
        lambda t: t.__setitem__("proba", t["proba"].where(t.index != labelled, 0.0)),
        f"Row {labelled} has a label",
    )
    wrong(
        lambda t: t.__setitem__("proba", (t["proba"] * 0.7).clip(lower=0.01)),
        "not the probabilities with which labels were seen",
    )
    for max_odds_ratio in (0.5, "much", math.nan, True):
        with pytest.raises(DataError, match="max_odds_ratio is"):
            MissingLabels(max_odds_ratio=max_odds_ratio)
    with pytest.raises(DataError, match="clip is"):
        MissingLabels(clip=0.0)
    with pytest.raises(DataError, match="missing_labels is 'explain'"):
        aggregate(table, **roles(happiness="decision"), missing_labels="explain")
    with pytest.raises(AggregatesError, match="no missing labels"):
        aggregate(table.assign(y=table["truth"]), **roles(happiness="decision")).completed(2)


def test_columns_of_probabilities_are_added_up():
    """Several columns are the chances of several ways to a label, which are added."""
    table = world()
    table["one"], table["other"] = 0.25 * table["proba"], 0.75 * table["proba"]
    asked = roles(happiness="equal_opportunity", gap=0.0, random_state=0)
    wanted = solved(table, **asked, missing_labels=MissingLabels(label_proba="proba")).loss
    assert solved(
        table, **asked, missing_labels=MissingLabels(label_proba=["one", "other"])
    ).loss == pytest.approx(wanted, abs=1e-12)


def test_nobody_alike_is_refused():
    """Below a cut-off nobody has a label: chances that are estimated are no answer, and the remedy says what is."""
    table = world(n=3000)
    table["y"] = np.where(table["p1"] > 0.55, table["truth"], np.nan)
    with pytest.raises(DataError, match=r"nobody alike has a label \(scores below 0.5") as error:
        solved(table, **roles(happiness="decision", gap=0.0), missing_labels="at_random")
    assert "Exploration in the next round" in str(error.value)
    table["y"] = table["y"].where(table["g"] == "a")
    with pytest.raises(DataError, match="Nobody of the group 'b' has a label"):
        solved(table, **roles(happiness="decision", gap=0.0), missing_labels="at_random")
    # Where nothing is assumed, bounds are all there is.
    unknown = solved(world(n=3000), **roles(happiness="decision", gap=0.0), missing_labels="unknown")
    assert unknown.loss_range[0] < unknown.loss_range[1]


def test_aggregates_that_were_summed_otherwise_refuse_to_add():
    """With and without missing labels, by other probabilities, or with other assumptions."""
    table = world()
    said = [
        None,
        "at_random",
        MissingLabels(label_proba="proba"),
        MissingLabels(label_proba="proba", max_odds_ratio=2),
    ]
    made = [
        aggregate(
            table if one else table.assign(y=table["truth"]),
            **roles(happiness="decision"),
            missing_labels=one,
        )
        for one in said
    ]
    for one, other in itertools.permutations(made, 2):
        with pytest.raises(AggregatesError):
            one + other
    with pytest.raises(AggregatesError, match="cannot be merged"):
        made[1].merged(5)


def test_hidden_conditional_rates_are_refused_in_the_program():
    """Who is counted depends on the label: the program raises and points to the audit and to Exploration."""
    table = world()
    for happiness in ("equal_opportunity", "equalized_odds", "precision_parity"):
        with pytest.raises(ConstraintError, match="depends on the label") as error:
            solved(
                table,
                **roles(happiness=happiness, gap=0.05),
                missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=2),
            )
        assert "an audit with MissingLabels(max_odds_ratio=...)" in str(error.value)
        assert "by Exploration" in str(error.value)
