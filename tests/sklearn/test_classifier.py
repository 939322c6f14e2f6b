"""FairClassifier: what it says it does is what its decisions do."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import Budget, FairClassifier, Floor, Happiness, Score
from felicific._tables.groups import resolve_groups
from felicific.exceptions import DataError, GroupError, InfeasibleError

N = 300
EPSILON = 1e-12


def make_loans(n=N, seed=1):
    """People of three groups, three labels 0, 1, 2, and loans of very different size."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["F", "M"], n), rng.choice(["a", "b & c", "d"], n)
    score = rng.normal(size=n) + 0.9 * (sex == "M") - 0.4 * (race == "a")
    table = pd.DataFrame(
        {
            "score": score,
            "wealth": rng.normal(size=n),
            "loan": np.round(np.exp(rng.normal(10, 1, n)), 2),
            "sex": sex,
            "race": race,
            "id": [f"p{i}" for i in range(n)],
        }
    )
    y = np.digitize(score + table["wealth"] / 2 + rng.normal(size=n), [0.0, 1.0])
    return table, y


X3, Y3 = make_loans()
FEATURES = ["score", "wealth"]


def frozen(classes=3):
    y = Y3 if classes == 3 else (Y3 > 0).astype(int)
    return FrozenEstimator(LogisticRegression().fit(X3[FEATURES], y)), y


def funding(decision, x):
    return decision * x["loan"]


def relief(decision, x, y):
    """Looks at everything; negative, and a million times larger than a rate."""
    return np.where(y == decision, 0.0, -1.0) * x["loan"] * 10.0


def rich(x):
    return x["wealth"] > 0


def regret(decision, x, y):
    return abs(decision - y) * (1.0 + (x["sex"] == "F"))


# ---------------------------------------------------------------------------------------------------------
# A second, naive computation: one person and one decision at a time, with exact summation


@dataclass(frozen=True)
class NaiveMeasure:
    """One number per person and decision, and who is counted."""

    value: object
    among: object = None


MEASURES = {
    "funding": (funding, {"funding": NaiveMeasure(lambda d, r, y: d * r.loan)}),
    "among": (
        Happiness(funding, among=rich, name="rich"),
        {"rich": NaiveMeasure(lambda d, r, y: d * r.loan, lambda r, y: r.wealth > 0)},
    ),
    "relief": (relief, {"relief": NaiveMeasure(lambda d, r, y: 0.0 if y == d else -10.0 * r.loan)}),
    "accuracy": ("overall_accuracy", {"accuracy": NaiveMeasure(lambda d, r, y: float(d == y))}),
    "parity": (
        "statistical_parity",
        {f"share decided {k!r}": NaiveMeasure(lambda d, r, y, k=k: float(d == k)) for k in range(3)},
    ),
    "odds": (
        "equalized_odds",
        {
            f"share decided {k!r} among those labelled {label!r}": NaiveMeasure(
                lambda d, r, y, k=k: float(d == k), lambda r, y, label=label: y == label
            )
            for k in range(3)
            for label in range(3)
        },
    ),
    "both": (
        {"cash": funding, "hit": "overall_accuracy"},
        {
            "cash": NaiveMeasure(lambda d, r, y: d * r.loan),
            "hit": NaiveMeasure(lambda d, r, y: float(d == y)),
        },
    ),
}


def naive(score, table, y, group, measures, cost, weight=None):
    """Loss, {measure: {group: mean}} and {measure: gap} of decision probabilities, person by person."""
    weight = np.ones(len(y)) if weight is None else weight
    rows = list(table.itertuples(index=False))
    decisions = range(score.shape[1])
    total = math.fsum(weight)
    loss = math.fsum(
        w * p[d] * cost(d, r, t) for w, p, r, t in zip(weight, score, rows, y, strict=True) for d in decisions
    )
    means = {}
    for name, measure in measures.items():
        means[name] = {}
        for z in sorted(set(group)):
            counted = [
                i
                for i in range(len(y))
                if group[i] == z and (measure.among is None or measure.among(rows[i], y[i]))
            ]
            happy = math.fsum(
                weight[i] * score[i, d] * measure.value(d, rows[i], y[i]) for i in counted for d in decisions
            )
            means[name][z] = happy / math.fsum(weight[i] for i in counted)
    gaps = {name: max(found.values()) - min(found.values()) for name, found in means.items()}
    return loss / total, means, gaps


def error(d, r, t):
    return float(d != t)


COST = np.array([[0.0, 1.0, 3.0], [2.0, -0.5, 1.0], [4.0, 1.0, 0.0]])
LOSSES = {
    "error": ("error", error),
    "matrix": (COST, lambda d, r, t: COST[t, d]),
    "function": (regret, lambda d, r, t: abs(d - t) * (2.0 if r.sex == "F" else 1.0)),
}


def check_truth(fair, table, y, group, measures, cost, weight=None):
    """What a fitted classifier says of the rows it was fitted on is what its probabilities do to them."""
    score = fair.predict_proba(table)
    assert score.shape == (len(y), len(fair.classes_))
    assert (score >= 0).all()
    assert np.abs(score.sum(axis=1) - 1).max() < EPSILON
    loss, means, gaps = naive(score, table, y, group, measures, cost, weight)
    assert fair.loss_ == fair.policy_.loss == pytest.approx(loss, rel=EPSILON, abs=EPSILON)
    assert fair.gaps_ == fair.policy_.gaps
    assert set(fair.gaps_) == set(gaps)
    for name, found in means.items():
        size = max(abs(mean) for mean in found.values())
        assert fair.policy_.means[name] == pytest.approx(found, rel=EPSILON, abs=EPSILON * size)
        assert fair.gaps_[name] == pytest.approx(gaps[name], rel=EPSILON, abs=EPSILON * size)
    one_hot = (score > 0).sum(axis=1) == 1
    assert fair.share_randomized_ == pytest.approx(np.average(~one_hot, weights=weight), abs=EPSILON)
    return means, gaps


@pytest.mark.parametrize("policy", ["label", "soft-label"])
@pytest.mark.parametrize("name", MEASURES)
def test_stated_loss_and_gaps_are_real(name, policy):
    """For a frozen model, loss_ and gaps_ are what predict_proba does to the same rows, at gap 0 too."""
    model, y = frozen()
    happiness, measures = MEASURES[name]
    fair = FairClassifier(
        model, happiness=happiness, gap=0.0, policy=policy, sensitive_features="sex", random_state=0
    ).fit(X3, y)
    means, gaps = check_truth(fair, X3, y, X3["sex"].to_numpy(), measures, error)
    for measure, gap in gaps.items():
        assert gap <= 1e-9 * max(abs(mean) for mean in means[measure].values())


@pytest.mark.parametrize("policy", ["label", "soft-label"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("share", [0.0, 0.4, None])
def test_stated_loss_is_real_for_every_loss(loss, policy, share):
    """The same with costs, for weighted rows, at part of the baseline's gap and without a requirement."""
    model, y = frozen()
    wanted, cost = LOSSES[loss]
    happiness, measures = MEASURES["funding"]
    weight = np.random.default_rng(3).uniform(0.1, 3.0, N)
    fair = FairClassifier(
        model,
        happiness=happiness,
        gap={},
        policy=policy,
        loss=wanted,
        sensitive_features="race",
        random_state=0,
    ).fit(X3, y, sample_weight=weight)
    if share is not None:
        fair.set_params(gap=share * fair.gaps_["funding"]).fit(X3, y, sample_weight=weight)
    _, gaps = check_truth(fair, X3, y, X3["race"].to_numpy(), measures, cost, weight)
    if share is not None:
        assert gaps["funding"] <= fair.gap + 1e-9 * X3["loan"].max()
        assert gaps["funding"] == pytest.approx(fair.gap, abs=1e-6 * X3["loan"].max())


def test_no_requirement_changes_no_better_decision():
    """Without a requirement the loss is at most the model's own, and no lottery is held."""
    model, y = frozen()
    fair = FairClassifier(model, happiness=funding, gap={}, sensitive_features="sex").fit(X3, y)
    assert fair.loss_ <= np.mean(model.predict(X3[FEATURES]) != y) + EPSILON
    assert fair.share_randomized_ == 0.0
    assert (fair.predict(X3) == fair.classes_[fair.predict_proba(X3).argmax(axis=1)]).all()


@pytest.mark.parametrize("policy", ["label", "soft-label"])
def test_decisions_converge_to_the_probabilities(policy):
    """One person under many keys is decided as often as predict_proba says."""
    model, y = frozen()
    fair = FairClassifier(
        model,
        gap=0.0,
        happiness="statistical_parity",
        policy=policy,
        sensitive_features="sex",
        key="id",
        random_state=0,
    ).fit(X3, y)
    score = fair.predict_proba(X3)
    person = int(np.argmin(np.abs(score.max(axis=1) - 0.5)))
    assert 0 < score[person].max() < 1
    n = 4000
    twins = pd.concat([X3.iloc[[person]]] * n).assign(id=[f"twin {i}" for i in range(n)])
    counts = np.array([(fair.predict(twins) == k).sum() for k in fair.classes_])
    q = score[person]
    assert (np.abs(counts - n * q) <= 5 * np.sqrt(n * q * (1 - q))).all()


def test_decisions_on_the_fitted_rows():
    """On many people the drawn decisions have the loss and the gap that were stated, up to chance."""
    table, y = make_loans(6000, seed=5)
    y = (y > 0).astype(int)
    model = FrozenEstimator(LogisticRegression().fit(table[FEATURES], y))
    fair = FairClassifier(
        model, gap=0.0, happiness="statistical_parity", sensitive_features="sex", key="id", random_state=1
    ).fit(table, y)
    drawn, score = fair.predict(table), fair.predict_proba(table)
    spread = np.sqrt((score[:, 0] * score[:, 1]).sum()) / len(y)
    assert abs((drawn != y).mean() - fair.loss_) < 5 * spread
    assert fair.score(table, y) == (drawn == y).mean()
    rates = [drawn[table["sex"] == z].mean() for z in ("F", "M")]
    assert abs(rates[0] - rates[1]) < 20 * spread


# ---------------------------------------------------------------------------------------------------------
# Groups


def pairs(table):
    return table[["sex", "race"]]


def test_ways_to_name_the_groups_agree():
    """Columns named, a callable, and values passed to fit and predict give the same policy and decisions."""
    model, y = frozen()
    common = {"happiness": "statistical_parity", "gap": 0.0, "policy": "score", "random_state": 0}
    named = FairClassifier(model, sensitive_features=["sex", "race"], **common).fit(X3, y)
    called = FairClassifier(model, sensitive_features=pairs, **common).fit(X3, y)
    expected = {f"{s} & {r}" for s in ("F", "M") for r in ("a", "b \\& c", "d")}
    assert set(named.groups_) == expected
    others = [(called, {})]
    values = pairs(X3)
    for groups in (values, values.to_numpy(), values.to_numpy().tolist(), ("sex", "race"), pairs):
        passed = FairClassifier(model, **common).fit(X3, y, sensitive_features=groups)
        others.append((passed, {"sensitive_features": groups}))
    # What is passed wins over what is named.
    overruled = FairClassifier(model, sensitive_features="sex", **common).fit(
        X3, y, sensitive_features=values
    )
    others.append((overruled, {"sensitive_features": values}))
    for other, passed in others:
        assert other.groups_ == named.groups_
        assert (other.policy_.q == named.policy_.q).all()
        assert (other.predict_proba(X3, **passed) == named.predict_proba(X3)).all()
        assert (other.predict(X3, **passed) == named.predict(X3)).all()
        assert other.score(X3, y, **passed) == named.score(X3, y)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("columns", [["sex"], ["sex", "race"], ["sex", "race", "band"]])
def test_named_columns_in_small_batches(columns, rows):
    """Named columns are columns, also when a batch has as many rows as there are names."""
    model, y = frozen()
    table = X3.assign(band="x")
    fair = FairClassifier(
        model, gap=0.0, happiness="statistical_parity", sensitive_features=columns, random_state=0
    )
    fair.fit(table, y)
    assert (fair.predict_proba(table.iloc[:rows]) == fair.predict_proba(table)[:rows]).all()


def test_groups_in_a_single_column_keep_their_type():
    """Integers, booleans, floats and strings stay what they are."""
    model, y = frozen()
    male = (X3["sex"] == "M").to_numpy()
    for values, expected in [
        (male, (False, True)),
        (male.astype(int), (0, 1)),
        (np.where(male, 1.5, -1.0), (-1.0, 1.5)),
        (np.where(male, "m", "f"), ("f", "m")),
        (np.where(male, "m", "f").astype(object), ("f", "m")),
    ]:
        fair = FairClassifier(model, gap=0.0, happiness="statistical_parity").fit(
            X3, y, sensitive_features=values
        )
        assert fair.groups_ == expected
        assert [type(group) for group in fair.groups_] == [type(group) for group in expected]


names = st.lists(st.sampled_from(["a", "b", " ", "&", " & ", "\\", "\\&", "\\\\"]), max_size=4).map("".join)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=8))
@example([("a & b", "a"), ("a", "b & a")])
@example([("a\\", "& a"), ("a", "\\& a")])
def test_hostile_intersections_never_collide(rows):
    """Two people are in one intersection exactly when they agree in every column, whatever the names hold."""
    table = {"one": np.array([a for a, _ in rows], object), "two": np.array([b for _, b in rows], object)}
    found = resolve_groups(table, table)
    for i, mine in enumerate(rows):
        for j, theirs in enumerate(rows):
            assert (found[i] == found[j]) == (mine == theirs)


def test_intersections_do_not_depend_on_storage():
    """An integer column that arrives as floats, as from a table with holes, means the same intersections."""
    model, y = frozen()
    band = np.arange(N) % 2
    fair = FairClassifier(model, gap=0.0, happiness="statistical_parity", sensitive_features=["sex", "band"])
    fair.set_params(random_state=0).fit(X3.assign(band=band), y)
    again = fair.predict_proba(X3.assign(band=band.astype(float)))
    assert (again == fair.predict_proba(X3.assign(band=band))).all()


# ---------------------------------------------------------------------------------------------------------
# Weights


@pytest.mark.parametrize("policy", ["label", "soft-label"])
def test_weight_two_is_the_row_twice(policy):
    """Integer weights and repeated rows give the same policy; weight 0 is the row absent."""
    model, y = frozen()
    weight = np.random.default_rng(0).integers(0, 4, N)
    common = {"happiness": ["overall_accuracy", funding], "policy": policy, "sensitive_features": "sex"}
    weighted = FairClassifier(model, random_state=0, gap={"funding": 100.0}, **common)
    weighted.fit(X3, y, sample_weight=weight)
    rows = np.repeat(np.arange(N), weight)
    repeated = FairClassifier(model, random_state=0, gap={"funding": 100.0}, **common).fit(
        X3.iloc[rows], y[rows]
    )
    assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-9)
    assert weighted.gaps_ == pytest.approx(repeated.gaps_, rel=1e-6, abs=1e-6)
    assert weighted.share_randomized_ == pytest.approx(repeated.share_randomized_, abs=1e-12)
    assert np.abs(weighted.policy_.q - repeated.policy_.q).max() < 1e-8
    assert (weighted.predict(X3) == repeated.predict(X3)).all()


def test_weights_scale():
    """Multiplying all weights by a number changes nothing."""
    model, y = frozen()
    weight = np.random.default_rng(0).uniform(0.5, 2, N)
    fits = [
        FairClassifier(
            model, gap=0.0, happiness=funding, policy="label", sensitive_features="sex", random_state=0
        ).fit(X3, y, sample_weight=scale * weight)
        for scale in (1.0, 1e6, 1e-6)
    ]
    for other in fits[1:]:
        assert other.loss_ == pytest.approx(fits[0].loss_, rel=1e-9)
        assert np.abs(other.policy_.q - fits[0].policy_.q).max() < 1e-8


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"loan": np.nan}, id="happiness NaN"),
        pytest.param({"sex": "X"}, id="a group of its own"),
        pytest.param({"sex": None}, id="no group"),
    ],
)
def test_weight_zero_is_never_looked_at(change):
    """A row of weight 0 is absent: its happiness and its group may be anything."""
    model, y = frozen()
    table = X3.astype({"sex": object})
    for column, value in change.items():
        table.loc[7, column] = value
    weight = np.ones(N)
    weight[7] = 0
    common = {"happiness": funding, "gap": 0.0, "sensitive_features": "sex", "policy": "score"}
    common["random_state"] = 0
    fair = FairClassifier(model, **common).fit(table, y, sample_weight=weight)
    absent = FairClassifier(model, **common).fit(table.drop(index=7), np.delete(y, 7))
    assert fair.groups_ == absent.groups_ == ("F", "M")
    assert fair.loss_ == pytest.approx(absent.loss_, rel=1e-12)
    assert np.abs(fair.policy_.q - absent.policy_.q).max() < 1e-9


def test_weight_zero_label_unknown_to_the_model():
    """A row of weight 0 may hold a label that the model never saw."""
    model, y = frozen()
    odd, weight = y.copy(), np.ones(N)
    odd[3], weight[3] = 9, 0
    fair = FairClassifier(model, gap=0.0, happiness=funding, sensitive_features="sex").fit(
        X3, odd, sample_weight=weight
    )
    assert fair.classes_.tolist() == [0, 1, 2]


# ---------------------------------------------------------------------------------------------------------
# Requirements


def group_means(fair, value):
    """Mean of a measure by sex, naively."""
    _, means, _ = naive(
        fair.predict_proba(X3), X3, Y3, X3["sex"].to_numpy(), {"m": NaiveMeasure(value)}, error
    )
    return means["m"]


def test_floor_that_is_measured_nowhere_else():
    """A happiness that only a floor speaks of is measured, held up, and not given a gap."""
    model, y = frozen()
    free = FairClassifier(model, gap=0.0, happiness="overall_accuracy", sensitive_features="sex").fit(X3, y)
    level = 1.1 * max(group_means(free, lambda d, r, t: d * r.loan).values())
    fair = FairClassifier(
        model,
        happiness="overall_accuracy",
        gap=0.0,
        constraints=[Floor(funding, level, ["F"])],
        sensitive_features="sex",
    ).fit(X3, y)
    means = group_means(fair, lambda d, r, t: d * r.loan)
    assert means["F"] >= level * (1 - 1e-9)
    assert fair.policy_.means["funding"] == pytest.approx(means, rel=1e-12)
    assert set(fair.gaps_) == {"accuracy", "funding"}
    assert fair.gaps_["accuracy"] < 1e-9
    assert fair.gaps_["funding"] > 1.0
    assert fair.loss_ > free.loss_
    assert sum("at least" in words and "'funding'" in words for words in fair.policy_.prices) == 1


def test_floor_at_the_baseline():
    """The floor "baseline" is each group's own mean under the model's predictions, and binds when loans cost."""
    model, y = frozen()
    predicted = model.predict(X3[FEATURES])
    fair = FairClassifier(
        model,
        happiness="overall_accuracy",
        gap={},
        loss=funding,
        constraints=[Floor(Happiness(funding, name="cash", unit="$"), "baseline")],
        sensitive_features="sex",
    ).fit(X3, y)
    now = group_means(fair, lambda d, r, t: d * r.loan)
    for z in ("F", "M"):
        mine = (X3["sex"] == z).to_numpy()
        baseline = np.mean(predicted[mine] * X3["loan"].to_numpy()[mine])
        assert now[z] == pytest.approx(baseline, rel=1e-9)


def test_floor_for_some_groups():
    """A floor for one group leaves the other alone."""
    model, y = frozen()
    free = FairClassifier(model, happiness=funding, gap={}, sensitive_features="sex").fit(X3, y)
    level = 1.3 * free.policy_.means["funding"]["F"]
    fair = FairClassifier(
        model,
        happiness=funding,
        gap={},
        constraints=[Floor("funding", level, groups=["F"])],
        sensitive_features="sex",
    ).fit(X3, y)
    means = group_means(fair, lambda d, r, t: d * r.loan)
    assert means["F"] == pytest.approx(level, rel=1e-9)
    assert means["M"] == pytest.approx(free.policy_.means["funding"]["M"], rel=1e-9)


@pytest.mark.parametrize("per", ["person", 1000])
@pytest.mark.parametrize("side", ["at_most", "at_least", "exactly"])
def test_budget(side, per):
    """A budget holds for all people together, per person or for a number of people."""
    model, y = frozen()
    common = {"happiness": "statistical_parity", "gap": 0.1, "sensitive_features": "sex"}
    free = FairClassifier(model, constraints=[Budget(funding, at_least=0)], **common).fit(X3, y)
    spent = (free.predict_proba(X3) @ [0, 1, 2] * X3["loan"]).mean()
    target = spent * (1.2 if side == "at_least" else 0.8)
    people = 1 if per == "person" else per
    budget = Budget(funding, **{side: target * people}, per=per)
    fair = FairClassifier(model, constraints=(budget,), **common).fit(X3, y)
    assert (fair.predict_proba(X3) @ [0, 1, 2] * X3["loan"]).mean() == pytest.approx(target, rel=1e-8)
    assert fair.loss_ > free.loss_
    assert max(gap for name, gap in fair.gaps_.items() if name != "funding") <= 0.1 + 1e-9
    price = next(price for words, price in fair.policy_.prices.items() if "all people together" in words)
    assert price > 0


def test_infeasible_requirements():
    """Requirements that exclude each other are named, in the user's words and units."""
    model, y = frozen()
    happy = Happiness(funding, name="cash", unit="$")
    fair = FairClassifier(
        model,
        happiness="overall_accuracy",
        gap={},
        constraints=[Floor(happy, 1e5, groups=["F"]), Budget("cash", at_most=1.0), Floor(happy, -5.0)],
        sensitive_features="sex",
    )
    with pytest.raises(InfeasibleError, match=r"\$100,000") as caught:
        fair.fit(X3, y)
    assert 1 <= len(caught.value.conflict) <= 2
    assert not any("-5" in words for words in caught.value.conflict)


def test_constraints_may_be_any_iterable():
    """Constraints are met however they are passed; a generator must not be used up on the way."""
    model, y = frozen()
    fair = FairClassifier(
        model,
        happiness=funding,
        gap={},
        constraints=iter([Floor("funding", 1e4)]),
        sensitive_features="sex",
    ).fit(X3, y)
    assert min(group_means(fair, lambda d, r, t: d * r.loan).values()) >= 1e4 * (1 - 1e-9)


@dataclass(frozen=True)
class Times:
    """A happiness that is an object, equal to its copies."""

    factor: float

    def __call__(self, decision, x):
        return self.factor * decision * x["loan"]


def test_constraint_on_a_copied_happiness():
    """A constraint and a measure that are equal, though not one object (clone copies both), are one."""
    model, y = frozen()
    fair = FairClassifier(
        model, happiness=Times(2.0), constraints=[Floor(Times(2.0), 0.0)], sensitive_features="sex"
    ).fit(X3, y)
    assert set(fair.gaps_) == {"Times"}


# ---------------------------------------------------------------------------------------------------------
# The gap


def test_gap_by_criterion_and_measure():
    """A gap is set for a whole criterion by its name, for one measure by its own, the rest are measured."""
    model, y = frozen()
    common = {"happiness": [funding, "statistical_parity"], "sensitive_features": "sex", "random_state": 0}
    common["policy"] = "score"
    free = FairClassifier(model, gap={}, **common).fit(X3, y)
    assert min(free.gaps_.values()) > 0.01
    parity = FairClassifier(model, gap={"statistical_parity": 0.02}, **common).fit(X3, y)
    limited = {name: gap for name, gap in parity.gaps_.items() if "decided" in name}
    assert len(limited) == 3
    assert max(limited.values()) <= 0.02 + 1e-9
    one = FairClassifier(model, gap={"share decided 2": 0.02}, **common).fit(X3, y)
    assert one.gaps_["share decided 2"] <= 0.02 + 1e-9
    assert one.gaps_["share decided 0"] > 0.03
    assert free.loss_ <= one.loss_ <= parity.loss_
    both = FairClassifier(
        model,
        gap={"statistical_parity": 0.02, "share decided 1": 0.0, "funding": 3e4},
        **common,
    ).fit(X3, y)
    assert both.gaps_["share decided 1"] <= 1e-9
    assert both.gaps_["share decided 0"] <= 0.02 + 1e-9
    assert FairClassifier(model, gap={}, **common).fit(X3, y).loss_ == free.loss_


def test_loss_falls_as_the_gap_is_relaxed():
    """The loss is a falling, convex function of the gap, and a gap beyond the unconstrained one is free."""
    model, y = frozen()
    asked = {"happiness": funding, "gap": {}, "sensitive_features": "sex", "policy": "score"}
    fair = FairClassifier(model, **asked).fit(X3, y)
    free, most = fair.loss_, fair.gaps_["funding"]
    losses = [fair.set_params(gap=g).fit(X3, y).loss_ for g in np.linspace(0, most, 7)]
    assert (np.diff(losses) <= 1e-12).all()
    assert (np.diff(losses, 2) >= -1e-9).all()
    assert losses[-1] == pytest.approx(free, rel=1e-9)
    assert fair.set_params(gap=2 * most).fit(X3, y).loss_ == pytest.approx(free, rel=1e-12)


# ---------------------------------------------------------------------------------------------------------
# Without a lottery


@pytest.mark.parametrize("policy", [Score(bins=3), Score(bins=6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_rounded_decisions_are_what_is_stated(policy, weighted):
    """Without a lottery predict is the argmax, and loss_ and gaps_ are those of the rounded decisions."""
    model, y = frozen()
    weight = np.random.default_rng(1).uniform(0.2, 2, N) if weighted else None
    happiness, measures = MEASURES["both"]
    common = {"happiness": happiness, "gap": 0.0, "policy": policy, "sensitive_features": "sex"}
    common["random_state"] = 0
    drawn = FairClassifier(model, **common).fit(X3, y, sample_weight=weight)
    rounded = FairClassifier(model, **common | {"policy": replace(policy, randomize=False)}).fit(
        X3, y, sample_weight=weight
    )
    score = rounded.predict_proba(X3)
    assert set(np.unique(score)) == {0.0, 1.0}
    assert (score.argmax(axis=1) == drawn.predict_proba(X3).argmax(axis=1)).all()
    assert (rounded.predict(X3) == rounded.classes_[score.argmax(axis=1)]).all()
    assert drawn.share_randomized_ > 0
    assert rounded.share_randomized_ == 0.0
    check_truth(rounded, X3, y, X3["sex"].to_numpy(), measures, error, weight)
    assert max(rounded.gaps_.values()) > 0
    assert rounded.policy_.loss == rounded.loss_


# ---------------------------------------------------------------------------------------------------------
# What the model gets, and what happiness gets


def test_model_gets_exactly_its_own_columns(people):
    """A model that remembers its columns gets those, in its order, whatever else the table holds."""
    y = people.y
    for library in ("pandas", "polars"):
        X = people.table(library, name=np.where(y, "a", "b"))
        model = LogisticRegression().fit(people.table(library, ["wealth", "score"]), y)
        fair = FairClassifier(
            FrozenEstimator(model),
            happiness="statistical_parity",
            gap={},
            policy="label",
            sensitive_features=["name"],
        ).fit(X, y)
        assert fair.n_features_in_ == 7
        own = model.predict(people.table(library, ["wealth", "score"]))
        assert (
            fair.policy_.probabilities(own, people.table("numpy", name=X["name"])[:, -1])
            == fair.predict_proba(X)
        ).all()


def test_frozen_model_is_not_touched():
    """A frozen model is neither refitted nor copied."""
    model, y = frozen()
    before = model.estimator.coef_.copy()
    fair = FairClassifier(model, gap=0.0, happiness=funding, sensitive_features="sex").fit(X3, 2 - y)
    assert fair.estimator_ is model
    assert (model.estimator.coef_ == before).all()


def test_unseen_group_at_predict():
    """A group that was not there at fit raises at predict, and is named."""
    model, y = frozen()
    fair = FairClassifier(model, gap=0.0, happiness=funding, sensitive_features="sex").fit(X3, y)
    table = X3.head(3).assign(sex=["F", "X", "M"])
    for method in (fair.predict, fair.predict_proba):
        with pytest.raises(GroupError, match=r"'X'.*row 1.*known are 'F', 'M'"):
            method(table)


class Nameless(BaseEstimator):
    """A model of another library, which does not say what its classes are."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_a_model_that_does_not_say_its_classes_is_refused_by_name():
    """Nobody guesses which decision a column means."""
    X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
    fair = FairClassifier(FrozenEstimator(Nameless().fit(X)), happiness="statistical_parity", gap=0.5)
    with pytest.raises(DataError, match="a Nameless, has no classes_"):
        fair.fit(X, y, sensitive_features=["a", "b"] * 4)
