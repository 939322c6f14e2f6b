"""Audits where labels are missing: the doubly robust mean, sharp bounds, and nothing else where none is missing."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import halls, solved
from scipy import stats
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Happiness, MissingLabels, audit, compare
from felicific._audit.debiased import Debiased, Supposed
from felicific._people.labels import LabelBeliefs
from felicific._people.people import People
from felicific._problem.problem import Problem
from felicific._statistics.intervals import Sample, of_few, sample_of
from felicific.exceptions import ConstraintError, DataError, HappinessError
from felicific.sklearn import make_scorer

MONEY = "decision * y * amount"
ASKED = {"happiness": ["equal_opportunity", MONEY, "decision * amount"], "sensitive_features": "g"}
CLASSES = {"decisions": [0, 1]}


def logistic(t):
    return 1.0 / (1.0 + np.exp(-t))


def make_table(n=600, seed=0, labels=2):
    """People of two groups, of whom some have no label; with the probabilities of that."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, 2, n), rng.normal(size=n)
    score = logistic(x - 0.3 * group + 0.3)
    probabilities = logistic(0.8 * x - 0.4 * group + 0.5)
    truth = (rng.random(n) < score).astype(float) + (rng.random(n) < 0.3) * (labels > 2)
    decided = (score + rng.normal(0, 0.2, n) > 0.5).astype(int) + (labels > 2) * rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "g": np.where(group, "b", "a"),
            "x": x,
            "amount": np.exp(rng.normal(size=n)),
            "score": score,
            "proba": probabilities,
            "d": decided,
            "other": np.where(rng.random(n) < 0.05, 1 - decided, decided),
            "full": truth.astype(int),
            "y": np.where(rng.random(n) < probabilities, truth, np.nan),
            "w": rng.integers(1, 4, n),
        }
    )


def audited(table, said="at_random", decisions="d", **more):
    return audit(decisions, table, "y", missing_labels=said, **CLASSES, **ASKED | more)


def cells_of(table):
    """How likely each person's label is 1, and was to be seen, by group and decision; by counting."""
    m, e = np.zeros(len(table)), np.zeros(len(table))
    for _, rows in table.groupby(["g", "d"]).groups.items():
        part = table.loc[rows]
        known = part["y"].notna()
        e[table.index.get_indexer(rows)] = known.mean()
        m[table.index.get_indexer(rows)] = part["y"][known].mean()
    return m, e


def robust(table, m, e, value):
    """The doubly robust mean, person by person."""
    total = []
    for i, row in enumerate(table.itertuples()):
        believed = (1.0 - m[i]) * value(row, 0) + m[i] * value(row, 1)
        seen = not math.isnan(row.y)
        total.append(believed + ((value(row, int(row.y)) - believed) / e[i] if seen else 0.0))
    return np.array(total)


def test_means_are_doubly_robust():
    """Of plain decisions, by group and decision: the loss, a happiness of x and y, and a conditional rate."""
    table = make_table()
    m, e = cells_of(table)
    found = audited(table)
    loss = robust(table, m, e, lambda row, y: float(row.d != y))
    assert found.loss.estimate == pytest.approx(loss.mean(), rel=1e-12)
    money = robust(table, m, e, lambda row, y: row.d * y * row.amount)
    good = robust(table, m, e, lambda row, y: float(y == 1))
    hired = robust(table, m, e, lambda row, y: float(row.d == 1 and y == 1))
    for group in ("a", "b"):
        rows = (table["g"] == group).to_numpy()
        assert found[MONEY].means[group].estimate == pytest.approx(money[rows].mean(), rel=1e-12)
        rate = hired[rows].mean() / good[rows].mean()
        assert found["equal_opportunity"].means[group].estimate == pytest.approx(rate, rel=1e-12)
        assert found[MONEY].means[group].n == rows.sum()
    # The interval of the loss: t, with as many degrees of freedom as the few who weigh much leave.
    away = loss - loss.mean()
    df = (away**2).sum() ** 2 / (away**4).sum()
    cube = stats.skew(loss) * loss.std(ddof=1) ** 3 / len(loss) ** 2
    limits = halls(loss.mean(), loss.std(ddof=1) / math.sqrt(len(loss)), cube, df, 0.025)
    assert (found.loss.low, found.loss.high) == pytest.approx(limits)
    # And that of the rate, linearised.
    rows = (table["g"] == "a").to_numpy()
    rate = hired[rows].mean() / good[rows].mean()
    line = rate + (hired[rows] - rate * good[rows]) / good[rows].mean()
    away = line - rate
    df = (away**2).sum() ** 2 / (away**4).sum()
    cube = stats.skew(line) * line.std(ddof=1) ** 3 / rows.sum() ** 2
    limits = halls(rate, line.std(ddof=1) / math.sqrt(rows.sum()), cube, df, 0.025)
    assert found["equal_opportunity"].means["a"].high == pytest.approx(limits[1])


def test_known_probabilities_are_taken():
    """With a column of probabilities the chance of a label is the column, not the share of the cell."""
    table = make_table()
    found = audited(table, MissingLabels(label_proba="proba"))
    e, have = table["proba"].to_numpy(), table["y"].notna().to_numpy()
    m = np.zeros(len(table))
    for _, rows in table.groupby(["g", "d"]).groups.items():
        m[table.index.get_indexer(rows)] = table.loc[rows, "y"].mean()
    assert 0 < have.sum() < len(table)
    loss = robust(table, m, e, lambda row, y: float(row.d != y)).mean()
    assert found.loss.estimate == pytest.approx(loss, rel=1e-12)
    assert found.labels.source == "label_proba"
    halves = table.assign(first=table["proba"] / 2, second=table["proba"] / 2)
    assert audited(halves, MissingLabels(label_proba=["first", "second"])).loss == found.loss
    assert audited(table, MissingLabels(label_proba=table["proba"].to_numpy())).loss == found.loss


def test_what_ignores_labels_is_as_it_was():
    """Bit for bit, with its method; whatever is said of missing labels."""
    table = make_table()
    plain = audit("d", table, happiness=["decision * amount", "statistical_parity"], sensitive_features="g")
    for said in ("at_random", "unknown", MissingLabels(label_proba="proba", max_odds_ratio=2)):
        found = audited(
            table, said, happiness=["equal_opportunity", "decision * amount", "statistical_parity"]
        )
        for part in plain.measures:
            same = found[part.measure.name]
            assert (same.means, same.gap, same.bias) == (part.means, part.gap, part.bias)


@pytest.mark.parametrize(
    "said", ["at_random", "unknown", MissingLabels(label_proba="proba", max_odds_ratio=3)]
)
def test_complete_labels_are_audited_as_without(said):
    """Where no label is missing nothing is said of missing ones, and every number is the same."""
    table = make_table().assign(y=lambda rows: rows["full"])
    assert audited(table, said).to_dict() == audited(table, None).to_dict()


# ---------------------------------------------------------------------------------------------------------
# What is hidden


def people_of(n, labels, seed, standing=True):
    """Chances, labels and values of a few people, drawn at random."""
    rng = np.random.default_rng(seed)
    known = rng.integers(-1, labels, n)
    known[:2] = -1, 0
    chances = rng.dirichlet(np.ones(labels), n)
    stands = np.where(known >= 0, rng.uniform(0, 2, n) * standing, 0.0)
    return known, chances, stands, rng.normal(size=(n, labels)), rng.uniform(0.5, 2.0, n)


def vertices(labels, max_odds_ratio):
    return [np.array(t) for t in itertools.product((1.0, max_odds_ratio), repeat=labels)]


def naive_psi(label, m, stands, t):
    """The weights of labels of one person, by the formula."""
    u = m * t / (m * t).sum()
    if label < 0:
        return u
    truth = np.eye(len(m))[label]
    r = truth - m
    return truth + stands * (t * r - u * (t * r).sum()) / (m * t).sum()


@pytest.mark.parametrize(("labels", "max_odds_ratio"), [(2, 1.5), (2, 4.0), (3, 2.0), (4, 3.0)])
@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_ends_of_means_are_the_worst_of_all_vertices(labels, max_odds_ratio, end):
    """Person by person: the chances at which the value is worst, and there the debiased weights."""
    known, m, stands, value, weight = people_of(40, labels, labels)
    found, _ = Debiased(known, m, stands, max_odds_ratio, {0: Supposed(value)}).column(
        0, np.zeros(40, dtype=int), 1, weight, end
    )
    for i in range(40):
        worth = [end * (m[i] * t / (m[i] * t).sum()) @ value[i] for t in vertices(labels, max_odds_ratio)]
        t = vertices(labels, max_odds_ratio)[int(np.argmax(worth))]
        assert found[i] == pytest.approx(naive_psi(known[i], m[i], stands[i], t) @ value[i], abs=1e-12)


@pytest.mark.parametrize("max_odds_ratio", [1.0, 1.7, 5.0, math.inf])
@pytest.mark.parametrize("end", [-1.0, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_ends_of_conditional_rates_are_sharp(max_odds_ratio, end, seed):
    """The extreme ratio over every combination of vertices of nine people without a label."""
    rng = np.random.default_rng(seed)
    n, free = 16, 9
    known = np.concatenate([np.full(free, -1), [1], rng.integers(0, 2, n - free - 1)])
    m = rng.dirichlet(np.ones(2), n)
    eta, weight = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    among = np.tile([0.0, 1.0], (n, 1))
    part = Supposed(among * eta[:, None], among)
    asked = Debiased(known, m, np.zeros(n), max_odds_ratio, {0: part})
    found, inside = asked.column(0, np.zeros(n, dtype=int), 1, weight, end)
    assert inside is None
    ratios = []
    for tilt in itertools.product((False, True), repeat=free):
        good = (known == 1).astype(float)
        for i, raised in enumerate(tilt):
            up = (
                1.0
                if math.isinf(max_odds_ratio)
                else max_odds_ratio * m[i, 1] / (m[i, 0] + max_odds_ratio * m[i, 1])
            )
            down = 0.0 if math.isinf(max_odds_ratio) else m[i, 1] / (m[i, 1] + max_odds_ratio * m[i, 0])
            good[i] = up if raised else down
        ratios.append((weight * good * eta).sum() / (weight * good).sum())
    worst = max(ratios) if end > 0 else min(ratios)
    assert np.average(found, weights=weight) == pytest.approx(worst, abs=1e-11)


def test_nothing_hidden_leaves_nothing_open():
    """A ratio of nearly 1 bounds a number by itself, and one of 1 does not bound it at all; more opens more."""
    table = make_table()
    plain = audited(table, MissingLabels(label_proba="proba"))
    assert plain.loss.bounds is None
    last = None
    for max_odds_ratio in (1.0 + 1e-12, 1.5, 3.0, math.inf):
        found = audited(table, MissingLabels(label_proba="proba", max_odds_ratio=max_odds_ratio))
        parts = [found.loss, found["equal_opportunity"].means["a"], found[MONEY].means["b"], found[MONEY].gap]
        same = [plain.loss, plain["equal_opportunity"].means["a"], plain[MONEY].means["b"], plain[MONEY].gap]
        for now, before in zip(parts, same, strict=True):
            assert now.estimate == before.estimate
            assert now.low <= now.bounds[0] <= now.estimate <= now.bounds[1] <= now.high
            if max_odds_ratio < 1.1:
                assert now.bounds == pytest.approx((before.estimate,) * 2, abs=1e-9)
        if last is not None:
            for now, before in zip(parts, last, strict=True):
                assert now.bounds[0] <= before.bounds[0] + 1e-9
                assert now.bounds[1] >= before.bounds[1] - 1e-9
        last = parts


def test_unknown_labels_are_bounded_by_the_worst_of_each():
    """Nothing is assumed: the loss is from nobody to everybody without a label decided wrongly, as Manski has it."""
    table = make_table()
    found = audited(table, "unknown")
    gone = table["y"].isna()
    wrong = (table["d"] != table["y"]) & ~gone
    assert found.loss.bounds == pytest.approx((wrong.mean(), (wrong | gone).mean()))
    for group in ("a", "b"):
        rows = table[table["g"] == group]
        yes, none = rows["d"] == 1, rows["y"].isna()
        good = rows["y"] == 1
        low = (good & yes).sum() / (good | (none & ~yes)).sum()
        high = ((good | none) & yes).sum() / (good | (none & yes)).sum()
        assert found["equal_opportunity"].means[group].bounds == pytest.approx((low, high))


def test_a_gap_is_between_different_groups():
    """Its bounds are those over ordered pairs of different groups: a group's own doubt is none."""
    table = make_table()
    found = audited(table, MissingLabels(max_odds_ratio=2))
    (lo_a, hi_a), (lo_b, hi_b) = (found[MONEY].means[group].bounds for group in ("a", "b"))
    least = max(0.0, lo_a - hi_b, lo_b - hi_a)
    assert found[MONEY].gap.bounds == pytest.approx((least, max(hi_a - lo_b, hi_b - lo_a)))
    wide = audited(table, MissingLabels(max_odds_ratio=2), gap={MONEY: 1.0001 * found[MONEY].gap.high})
    assert wide[MONEY].test.verdict == "undecided"  # it has no bounds, so nothing can be shown to be at most
    assert wide[MONEY].test.p_exceeds <= 0.05
    at = audited(table, MissingLabels(max_odds_ratio=2), gap={MONEY: found[MONEY].gap.estimate})
    assert at[MONEY].test.verdict == "undecided"


def test_bounds_are_in_every_output():
    """In text, data, table and page where something is hidden, and columns are as they were where nothing is."""
    table = make_table()
    found, plain = audited(table, MissingLabels(max_odds_ratio=2)), audited(table)
    frame = found.to_frame()
    assert {*frame.columns} - {*plain.to_frame().columns} == {"bounds_low", "bounds_high"}
    loss = frame[frame["what"] == "loss"].iloc[0]
    assert (loss["bounds_low"], loss["bounds_high"]) == found.loss.bounds
    content = json.loads(json.dumps(found.to_dict()))
    assert content["loss"]["bounds"] == list(found.loss.bounds)
    assert content["labels"]["max_odds_ratio"] == 2.0
    assert "bounds" not in plain.to_dict()["loss"]
    assert json.loads(json.dumps(audited(table, "unknown").to_dict()))["labels"]["max_odds_ratio"] == "inf"
    for text in (str(found), found._repr_html_()):
        assert "hidden reasons leave" in text
        assert "if reasons outside the table change the odds of having a label at most 2-fold" in text
    assert "max_odds_ratio" not in str(plain)


# ---------------------------------------------------------------------------------------------------------
# Invariances


def numbers_of(found):
    frame = found.to_frame()
    columns = [name for name in ("estimate", "low", "high", "bounds_low", "bounds_high") if name in frame]
    return np.nan_to_num(frame.sort_values(["measure", "what", "group"])[columns].to_numpy(), nan=-1.0)


@pytest.mark.parametrize(
    "said", ["at_random", MissingLabels(label_proba="proba", max_odds_ratio=2), "unknown"]
)
def test_a_weight_of_two_is_the_row_twice(said):
    """Also of missing labels; and the order of rows does not matter."""
    table = make_table()
    weighted = audited(table, said, sample_weight="w")
    again = table.loc[table.index.repeat(table["w"])].reset_index(drop=True)
    assert numbers_of(weighted) == pytest.approx(numbers_of(audited(again, said)), rel=1e-9)
    mixed = audited(table.sample(frac=1.0, random_state=1), said)
    assert numbers_of(mixed) == pytest.approx(numbers_of(audited(table, said)), rel=1e-9)
    zero = pd.concat([table.assign(w=1), table.assign(w=0)], ignore_index=True)
    assert numbers_of(audited(zero, said, sample_weight="w")) == pytest.approx(
        numbers_of(audited(table, said)), rel=1e-12
    )


@pytest.mark.parametrize("said", ["at_random", MissingLabels(max_odds_ratio=2)])
def test_rows_that_are_clusters_of_one_are_rows(said):
    """Clusters of one person each, and sampling weights of one, change nearly nothing; pairs of equals count as one."""
    table = make_table().assign(own=lambda rows: np.arange(len(rows)))
    plain = audited(table, said)
    for more in ({"cluster": "own"}, {"sample_weight": np.ones(len(table)), "weight_kind": "sampling"}):
        assert numbers_of(audited(table, said, **more)) == pytest.approx(
            numbers_of(plain), rel=5e-3, abs=5e-3
        )
    doubled = pd.concat([table] * 2, ignore_index=True)
    alone, together = audited(doubled, said), audited(doubled, said, cluster="own")
    near, far = (
        found.loss.high - (found.loss.bounds or [found.loss.estimate])[-1] for found in (alone, together)
    )
    assert far == pytest.approx(math.sqrt(2.0) * near, rel=0.02)


def test_degrees_of_freedom_are_of_few():
    """One value that weighs much leaves about one of them; equal sizes leave all but one."""
    values = np.array([[-1.0, 100.0], [1.0, 0.0], [-1.0, 1.0], [1.0, -1.0]])
    codes = np.zeros(4, dtype=int)
    sample = sample_of(values, codes, 1)
    found = of_few(sample, values, codes, None, None, np.array([True, True]))
    assert isinstance(found, Sample)
    away = values[:, 1] - values[:, 1].mean()
    assert found.freedom[0].tolist() == pytest.approx([3.0, (away**2).sum() ** 2 / (away**4).sum()])
    only = of_few(sample, values, codes, None, None, np.array([False, True]))
    assert only.take(0).df is None
    assert only.take(1).df is not None


# ---------------------------------------------------------------------------------------------------------
# Where chances come from


def test_a_policy_is_audited_by_its_scores():
    """The chance of a label along the score in every group, and so the chances of labels; a note says so."""
    table = make_table()
    asked = {"score": "score", "sensitive_features": "g", "happiness": "equal_opportunity"}
    policy = solved(make_table(seed=9), y="full", gap=0.02, random_state=0, **asked)
    found = audit(policy, table, "y", missing_labels="at_random", **asked)
    assert found.labels.source == "score"
    assert any("nothing but score and group" in note for note in found.notes)
    score = np.column_stack([1.0 - table["score"], table["score"]])
    problem = Problem.of(np.array([0, 1]), "equal_opportunity")
    people = People.of(
        table, problem, group=table["g"].to_numpy(), y=table["y"].to_numpy(), score=score,
        missing=MissingLabels(),
    )  # fmt: skip
    known = LabelBeliefs.of(people, alike=True).of_people(people)
    q = policy.probabilities(score, table["g"].to_numpy())
    rows = table.assign(d=0)
    wrong = [q[:, 1], q[:, 0]]
    m, e = known.chances[:, 1], np.maximum(known.label_proba, 0.02)
    places = {index: i for i, index in enumerate(rows.index)}
    loss = robust(rows, m, e, lambda row, y: wrong[y][places[row.Index]])
    assert found.loss.estimate == pytest.approx(loss.mean(), rel=1e-12)
    assert found.requirements


def test_a_classifier_is_audited_by_its_probabilities():
    """As a policy is; and a classifier of who has a label takes the place of the score."""
    table = make_table(2000)
    model = LogisticRegression().fit(table[["x"]], table["full"])
    asked = {"happiness": "equal_opportunity", "sensitive_features": "g"}
    found = audit(model, table, "y", missing_labels="at_random", **asked)
    assert found.labels.source == "score"
    told = audit(model, table, "y", missing_labels=MissingLabels(label_proba=LogisticRegression()), **asked)
    assert told.labels.source == "model"
    assert told.loss.estimate == pytest.approx(found.loss.estimate, abs=0.02)
    truth = audit(model, table, "full", **asked).loss.estimate
    assert found.loss.low < truth < found.loss.high
    plain = audited(table, MissingLabels(label_proba=LogisticRegression()))
    assert plain.labels.source == "model"
    with pytest.raises(DataError, match="no column of numbers"):
        audit(
            table["d"].to_numpy(), None, table["y"], happiness="equal_opportunity",
            sensitive_features=table["g"].to_numpy(), missing_labels=MissingLabels(label_proba=LogisticRegression()),
        )  # fmt: skip


def test_three_labels():
    """Means of three labels, and what is too much for the worst case of three."""
    table = make_table(1500, labels=3)
    found = audit(
        "d", table, "y", happiness={"right": "decision == y", "low": Happiness("decision", among="y == 0")},
        sensitive_features="g", missing_labels=MissingLabels(max_odds_ratio=2), decisions=[0, 1, 2],
    )  # fmt: skip
    assert found["right"].means["a"].bounds[0] < found["right"].means["a"].estimate
    with pytest.raises(HappinessError, match="so does its `among`"):
        audit(
            "d", table, "y", happiness=Happiness("decision == y", among="y != 0"), sensitive_features="g",
            missing_labels=MissingLabels(max_odds_ratio=2), decisions=[0, 1, 2],
        )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Comparisons and scores


@pytest.mark.parametrize("said", ["at_random", MissingLabels(label_proba="proba", max_odds_ratio=2)])
def test_identical_decisions_change_nothing(said):
    """The change of every number that looks at missing labels is exactly 0, and so are its bounds."""
    table = make_table()
    change = compare(audited(table, said), audited(table, said))
    for part in (change.loss, *(mean for one in change.measures for mean in one.means.values())):
        assert part.estimate == 0.0
        assert part.bounds in (None, (0.0, 0.0))


def test_changes_are_paired():
    """By the same weights of labels: far narrower than the two intervals, and the difference of the two means."""
    table = make_table(2000)
    said = MissingLabels(label_proba="proba")
    one, other = audited(table, said), audited(table.assign(d=table["other"]), said)
    change = compare(one, other)
    assert "is taken for both" in change.remarks[0]
    assert change.loss.high - change.loss.low < other.loss.high - other.loss.low
    doubted = MissingLabels(label_proba="proba", max_odds_ratio=2)
    bounded = compare(audited(table, doubted), audited(table.assign(d=table["other"]), doubted))
    mean = bounded[MONEY].means["a"]
    assert mean.estimate == change[MONEY].means["a"].estimate
    assert mean.low < mean.bounds[0] < mean.estimate < mean.bounds[1] < mean.high
    assert bounded[MONEY].gap.bounds is not None
    with pytest.raises(DataError, match="same of missing labels"):
        compare(one, audited(table, doubted))


def test_a_scorer_scores_what_an_audit_measures():
    """Loss and gap of an audit with the same words about missing labels; at its worst where something is hidden."""
    table = make_table(1000)
    model = LogisticRegression().fit(table[["x"]], table["full"])
    for said in (
        "at_random",
        MissingLabels(label_proba="proba"),
        MissingLabels(label_proba="proba", max_odds_ratio=2),
    ):
        asked = {"happiness": "equal_opportunity", "sensitive_features": "g", "missing_labels": said}
        found = audit(model, table, "y", **asked)
        loss, gap = found.loss, found["equal_opportunity"].gap
        score = make_scorer(**asked)(_Columns(model), table, table["y"])
        assert score["neg_loss"] == pytest.approx(
            -(loss.bounds[1] if loss.bounds else loss.estimate), rel=1e-12
        )
        assert score["neg_gap"] == pytest.approx(-(gap.bounds[1] if gap.bounds else gap.estimate), rel=1e-9)


class _Columns:
    """A classifier of one column of a table."""

    def __init__(self, model):
        self.model, self.classes_, self.feature_names_in_ = model, model.classes_, ["x"]

    def predict(self, table):
        return self.model.predict(table[["x"]])

    def predict_proba(self, table):
        return self.model.predict_proba(table[["x"]])


# ---------------------------------------------------------------------------------------------------------
# Bad input


def test_missing_labels_have_to_be_explained(refuses):
    """An error where a happiness or a loss that was named looks at them; else the loss is left out, and it is said."""
    table = make_table()
    gone = int(table["y"].isna().sum())
    ignoring = {"happiness": "decision * amount", "sensitive_features": "g"}
    policy = solved(make_table(seed=9), y="full", score="score", gap=1.0, random_state=0, **ignoring)
    doors = {
        "column": lambda **more: audit("d", table, "y", **more),
        "arrays": lambda **more: audit(table["d"].to_numpy(), table, table["y"].to_numpy(), **more),
        "engine": lambda **more: audit("d", pl.from_pandas(table).lazy(), "y", **more),
        "policy": lambda **more: audit(policy, table, "y", score="score", **more),
        "policy on an engine": lambda **more: audit(
            policy, pl.from_pandas(table).lazy(), "y", score="score", **more
        ),
    }
    for door, call in doors.items():
        found = call(**ignoring)
        assert found.loss is None, door
        assert any(
            f"they are missing in {gone:,} rows: say what is known of them (missing_labels)" in note
            for note in found.notes
        ), door
        for more in ({"loss": "error"}, {"happiness": "equal_opportunity"}):
            with refuses(
                DataError, f"The label is missing in {gone} of 600 rows", remedy="Say what is known"
            ):
                call(**ignoring | more)


def test_fractions_are_refused_by_name(refuses):
    """Fractions of labels that are missing have no value."""
    table = make_table()
    with refuses(HappinessError, "'precision'", "depends on the decision"):
        audited(table, happiness="precision_parity")
    found = audited(
        table, MissingLabels(max_odds_ratio=2), happiness=["equal_opportunity", "statistical_parity"]
    )
    with refuses(ConstraintError, "Hidden reasons leave open what 'true positive rate' is"):
        found.ratios["true positive rate"]
    assert found.ratios["selection rate"].smallest.estimate > 0
    assert audited(table).ratios["equal_opportunity"].smallest.high > 0


def test_wrong_probabilities_are_refused(refuses):
    """Probabilities that are none, and those with which labels were not seen."""
    table = make_table()
    for probabilities, words in (
        (table["proba"] * 0.5, "these are not the probabilities with which labels were seen"),
        (table["proba"] + 1.0, "The label_proba of row 0 is"),
        (table["proba"].where(table["y"].isna(), 0.0), "has a label, and its label_proba is 0"),
    ):
        with refuses(DataError, words):
            audited(table.assign(proba=probabilities), MissingLabels(label_proba="proba"))
    with refuses(DataError, "max_odds_ratio is 0.5"):
        audited(table, MissingLabels(label_proba="proba", max_odds_ratio=0.5))
    with refuses(DataError, "missing_labels is 'explain'", remedy="'at_random'"):
        audited(table, "explain")


def test_no_overlap_is_refused(refuses):
    """Where nobody alike has a label; bounds that assume nothing are to be had all the same."""
    table = make_table()
    table["y"] = table["full"].where(table["d"] == 1).astype(float)
    with refuses(DataError, "nobody alike has a label", "decided 0", remedy="Use missing_labels='unknown'"):
        audited(table)
    assert audited(table, "unknown").loss.bounds[1] < 1.0
    lone = table.assign(y=table["full"].where(table["g"] == "a").astype(float))
    with refuses(DataError, "Nobody of the group 'b' has a label"):
        audited(lone, "unknown")
    policy = solved(
        table, y="full", score="score", gap=1.0, random_state=0, happiness=MONEY, sensitive_features="g"
    )
    cut = table.assign(y=table["full"].where(table["score"] > 0.6).astype(float))
    with refuses(DataError, "of the unlabelled of", "nobody alike has a label"):
        audit(
            policy,
            cut,
            "y",
            score="score",
            happiness=MONEY,
            sensitive_features="g",
            missing_labels="at_random",
        )


def test_labels_that_say_nothing_of_who_is_counted_are_refused(refuses):
    """One person who stands for a thousand others may make the share of those who are counted negative."""
    table = make_table(40).assign(proba=0.9, y=1.0)
    table.loc[table["g"] == "b", "y"] = [0.0, *[1.0] * int((table["g"] == "b").sum() - 2), np.nan]
    table.loc[table["g"].eq("b").idxmax(), "proba"] = 1e-4
    table.loc[table["y"].isna(), "proba"] = 1e-4
    with refuses(
        HappinessError, "labels of the group 'b' do not tell how many are counted by 'true positive rate'"
    ):
        audited(table, MissingLabels(label_proba="proba"), happiness="equal_opportunity")


def test_a_fair_classifier_says_what_it_believes_of_labels():
    """Where it was fitted with missing labels it is asked; probabilities that are known, or to be learnt.

    Come first.
    """
    table, other = (
        rows.assign(g=(rows["g"] == "b").astype(int)) for rows in (make_table(1500), make_table(1500, seed=4))
    )
    fair = FairClassifier(
        LogisticRegression(), happiness="equal_opportunity", gap=0.1, sensitive_features="g", random_state=0
    ).fit(other[["g", "x"]], other["full"])
    rows = table[["g", "x"]]
    plain = audit(fair, rows, table["y"], missing_labels="at_random")
    assert plain.labels.source == "score"
    asked = []

    def labels_of(X, group, score):
        asked.append((X, group, score))
        return np.column_stack([0.4 + 0.0 * score[:, 0], 0.6 + 0.0 * score[:, 0]]), np.full(len(score), 0.5)

    fair._labels_of = labels_of
    found = audit(fair, rows, table["y"], missing_labels="at_random")
    assert found.labels.source == "model"
    X, group, _ = asked[0]
    assert X.equals(rows)
    assert group.tolist() == table["g"].tolist()
    q = fair.predict_proba(rows)
    wrong, places = [q[:, 1], q[:, 0]], {index: i for i, index in enumerate(table.index)}
    half = np.full(len(table), 0.5)
    loss = robust(table, 0.6 + 0.0 * half, half, lambda row, y: wrong[y][places[row.Index]])
    assert found.loss.estimate == pytest.approx(loss.mean(), rel=1e-12)
    told = audit(fair, rows, table["y"], missing_labels=MissingLabels(label_proba=table["proba"].to_numpy()))
    assert told.labels.source == "label_proba"
    loss = robust(
        table, 0.6 + 0.0 * half, table["proba"].to_numpy(), lambda row, y: wrong[y][places[row.Index]]
    )
    assert told.loss.estimate == pytest.approx(loss.mean(), rel=1e-12)
    learnt = audit(fair, rows, table["y"], missing_labels=MissingLabels(label_proba=LogisticRegression()))
    assert learnt.labels.source == "model"
    assert learnt.loss.estimate != found.loss.estimate
    fair.missing_labels = "at_random"
    assert audit(fair, rows, table["y"]).loss == found.loss
    score = make_scorer()(fair, rows, table["y"])
    assert score["neg_loss"] == pytest.approx(-found.loss.estimate, rel=1e-12)
