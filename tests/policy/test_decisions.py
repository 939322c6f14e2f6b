"""Decisions that are not labels: through every door, in every kind of policy, and what is refused of them."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import solved, traced
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from felicific import (
    FairClassifier,
    Floor,
    Individual,
    Policy,
    Score,
    WorseOff,
    aggregate,
    audit,
    load,
    solve,
)
from felicific._files import checksum
from felicific._problem.decisions import as_decisions
from felicific._statistics.sample_size import log_maps, log_staircases
from felicific.cli import run
from felicific.exceptions import AggregatesError, ConstraintError, DataError, HappinessError

REFER = ["refuse", "refer", "approve"]
COSTS = [[0, 0.2, 1], [0.6, 0.2, 0]]
SHARES = {"refuse": 0.0, "refer": 0.4, "approve": 1.0}
ROLES = {"score": "score", "y": "repaid", "sensitive_features": "sex"}
ASKED = ROLES | {"decisions": REFER, "loss": COSTS, "random_state": 0}


def funding(decision, x):
    return SHARES[decision] * x["loan"]


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    ability = rng.normal(size=n) + 0.5 * (sex == "m")
    score = 1.0 / (1.0 + np.exp(-ability))
    decided = np.where(score > 0.7, "approve", np.where(score > 0.4, "refer", "refuse"))
    return pd.DataFrame(
        {
            "sex": sex,
            "ability": ability,
            "score": score,
            "repaid": (rng.random(n) < score).astype(int),
            "loan": rng.gamma(2.0, 100.0, n),
            "decided": decided,
            "id": np.arange(n),
        }
    )


def classifier(**settings):
    table = people(400, 1)
    model = LogisticRegression().fit(table[["ability"]], table["repaid"])
    told = {"decisions": REFER, "loss": COSTS, "happiness": funding, "gap": 10.0, "random_state": 0}
    return FairClassifier(FrozenEstimator(model), sensitive_features="sex", **told | settings)


@pytest.mark.parametrize("kind", ["score", Score(monotone=False), "label", "soft-label", "individual"])
@pytest.mark.parametrize("baseline", [None, "decided"])
def test_what_a_policy_states_is_what_its_probabilities_do(kind, baseline):
    """Loss and gap of every kind of policy are those of its probabilities.

    Added up person by person from the cost matrix.
    """
    table = people()
    policy = solved(table, policy=kind, happiness=funding, gap=10.0, baseline=baseline, **ASKED)
    scores = table["score"] if policy.needs_proba else (table["score"] > 0.5).astype(int)
    probabilities = policy.probabilities(scores, table["sex"], table)
    assert probabilities.shape == (len(table), 3)
    loss = (probabilities * np.array(COSTS)[table["repaid"]]).sum(axis=1).mean()
    worth = (probabilities * [0.0, 0.4, 1.0]).sum(axis=1) * table["loan"]
    means = worth.groupby(table["sex"]).mean()
    assert policy.loss == pytest.approx(loss, abs=1e-9)
    assert policy.gap == pytest.approx(means.max() - means.min(), abs=1e-7)
    assert policy.gap <= 10.0 + 1e-6
    back = Policy.from_json(policy.to_json(), happiness=funding)
    assert back.decisions.tolist() == REFER
    assert np.array_equal(back.probabilities(scores, table["sex"], table), probabilities)


@pytest.mark.parametrize("kind", ["score", Score(monotone=False)])
@pytest.mark.parametrize("sees_group", [True, False])
@pytest.mark.parametrize(("gap", "floor"), [(2.0, 60.0), (40.0, 95.0), (1.0, 110.0)])
def test_prices_of_listed_decisions_are_the_slopes_of_the_loss(kind, sees_group, gap, floor):
    """Prices of a gap and of a floor lie between what a little less and a little more of each change the loss by."""
    sums = aggregate(people(), policy=kind, happiness=funding, decisions=REFER, loss=COSTS, **ROLES)

    def at(gap, floor):
        asked = {"gap": gap, "constraints": [Floor("funding", floor)]}
        return solve(sums, sees_group=sees_group, change_cost=0.0, random_state=0, **asked)

    here, step = at(gap, floor), 0.05
    assert any(here.prices.values())
    floors = sum(price for name, price in here.prices.items() if name != "funding")
    for price, tighter, looser in (
        (here.prices["funding"], (gap - step, floor), (gap + step, floor)),
        (floors, (gap, floor + step), (gap, floor - step)),
    ):
        rise, fall = at(*tighter).loss - here.loss, here.loss - at(*looser).loss
        assert fall / step * 0.99 - 1e-9 <= price <= rise / step * 1.01 + 1e-9


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_decisions_that_are_the_classes_change_nothing_but_which_is_best(kind):
    """Listing the classes themselves, in any order, finds the policy that is found without a list."""
    table = people()
    told = ROLES | {"happiness": "decision * loan", "gap": 5.0, "policy": kind, "random_state": 0}
    plain = solved(table, **told)
    for decisions in ([0, 1], [1, 0]):
        listed = solved(table, decisions=decisions, **told)
        assert listed.loss == plain.loss
        assert listed.basis.baseline.loss == plain.basis.baseline.loss
        seen = table["score"], table["sex"], table
        assert np.array_equal(listed.probabilities(*seen), plain.probabilities(*seen))
        back = Policy.from_json(listed.to_json())
        assert (listed.best, back.best, back.order) == (decisions[-1], decisions[-1], listed.order)
        noted = [text for text in back.sentences() if "counts as the best" in text]
        assert len(noted) == (decisions == [1, 0])


def test_the_selection_rate_is_of_the_best_decision():
    """Whichever is best, its rate is asked for, floored, steered and moved along the frontier by one name."""
    table = people()
    about = ROLES | {"happiness": "demographic_parity", "random_state": 0}
    for decisions in (None, [1, 0]):
        kept = {"constraints": [Floor("selection_rate", 0.3)], "decisions": decisions}
        policy = solved(table, gap={"statistical_parity": 0.02}, **about, **kept)
        assert list(policy.gaps) == ["selection rate"]
        assert next(iter(policy.prices)) == "selection rate"
        best = 1 if decisions is None else 0
        rates = policy.means["selection rate"]
        chance = policy.probabilities(table["score"], table["sex"])[:, best]
        for sex, rate in rates.items():
            assert chance[table["sex"] == sex].mean() == pytest.approx(rate)
        assert min(rates.values()) >= 0.3 - 1e-9
        assert policy.steer(gap=0.02).measure.name == "selection rate"
        line = traced(table, **about, decisions=decisions)
        assert line.at(gap=0.02).best == best
        assert line.gaps.shape[1] == 1


def test_labels_the_other_way_round_give_the_same_policy():
    """Whoever labels defaults gets the decisions of whoever labels repayments: the cost matrix tells which is which."""
    table = people()
    one = solved(table, happiness=funding, gap=10.0, **ASKED)
    turned = table.assign(repaid=1 - table["repaid"], score=1.0 - table["score"])
    told = ASKED | {"loss": COSTS[::-1]}
    other = solved(turned, happiness=funding, gap=10.0, **told)
    assert other.loss == pytest.approx(one.loss, abs=2e-3)  # cells of scores are open at the other end
    probabilities = other.probabilities(np.linspace(0.0, 1.0, 101), group=["f"] * 101)
    assert (np.diff(probabilities.cumsum(axis=1)[:, :-1], axis=0) >= -1e-9).all()
    assert (Policy.from_json(other.to_json()).rising, one.rising) == (False, True)


def test_names_of_decisions_change_nothing():
    """Other names for the same decisions give the same probabilities."""
    table = people()
    one = solved(table, happiness="distributional_parity", gap=0.02, **ASKED)
    other = solved(table, happiness="distributional_parity", gap=0.02, **ASKED | {"decisions": [8, 6.5, 4]})
    assert np.array_equal(one.q, other.q)


def test_criteria_of_listed_decisions():
    """Parity is about every decision, opportunity about the last, and the distribution about each or a better one."""
    table = people()

    def names(criterion):
        told = {name: part for name, part in ASKED.items() if name != "random_state"}
        return [one.name for one in aggregate(table, happiness=criterion, **told).measures]

    assert len(names("statistical_parity")) == 3
    assert len(names("equalized_odds")) == 6
    assert len(names("equal_opportunity")) == 1
    assert names("distributional_parity") == [
        "share decided 'refer' or better",
        "share decided 'approve' or better",
    ]
    policy = solved(table, happiness="equal_opportunity", gap=0.01, **ASKED)
    probabilities, good = policy.probabilities(table["score"], table["sex"]), table["repaid"] == 1
    rates = [probabilities[good & (table["sex"] == one), 2].mean() for one in ("f", "m")]
    assert abs(rates[0] - rates[1]) == pytest.approx(policy.gap, abs=1e-9)


def test_the_largest_gap_of_distributions_is_their_kolmogorov_smirnov_distance():
    """The gaps of distributional_parity are the differences of the groups' distributions at every decision."""
    table = people()
    policy = solved(table, happiness="distributional_parity", gap=0.05, **ASKED)
    probabilities = policy.probabilities(table["score"], table["sex"])
    one, other = (probabilities[table["sex"] == sex].mean(axis=0).cumsum() for sex in ("f", "m"))
    assert max(policy.gaps.values()) == pytest.approx(np.abs(one - other)[:-1].max(), abs=1e-9)


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.9"])
def test_losses_of_numbers(loss):
    """A named loss of numbers is the function that it names."""
    decisions = [0.0, 0.25, 0.5, 0.75, 1.0]
    functions = {
        "squared": lambda decision, y: (decision - y) ** 2,
        "absolute": lambda decision, y: np.abs(decision - y),
        "quantile:0.9": lambda decision, y: np.where(
            y > decision, 0.9 * (y - decision), 0.1 * (decision - y)
        ),
    }
    told = ROLES | {"decisions": decisions, "happiness": "decision", "gap": 0.05, "random_state": 0}
    one, other = solved(people(), loss=loss, **told), solved(people(), loss=functions[loss], **told)
    assert one.loss == pytest.approx(other.loss, abs=1e-9)


@pytest.mark.parametrize("baseline", [None, "decided"])
def test_engines_sum_up_the_same(baseline):
    """One list of decisions gives the same sums in memory, in lazy Polars, in DuckDB and batch by batch."""
    import duckdb

    table = people()
    told = ROLES | {"decisions": REFER, "loss": COSTS, "baseline": baseline}
    happiness = {"worth": "(decision == 'refer') * 0.4 * loan + (decision == 'approve') * loan"}
    expected = aggregate(table, happiness=happiness, **told)
    frame = pl.from_pandas(table)
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    for other in (frame.lazy(), relation, frame.to_arrow()):
        found = aggregate(other, happiness=happiness, **told)
        assert found.decisions.tolist() == REFER
        for name in ("mass", "loss", "value", "baseline_mass", "gains"):
            one, two = getattr(expected, name), getattr(found, name)
            assert (one is None) == (two is None)
            assert one is None or np.allclose(one, two, rtol=1e-12, atol=1e-9)
    policy = solve(expected, gap=10.0, random_state=0)
    here = policy.apply(table, score="score", sensitive_features="sex", key="id")["decision"].tolist()
    there = policy.apply(frame.lazy(), score="score", sensitive_features="sex", key="id").collect()
    assert there["decision"].to_list() == here
    sql = policy.to_sql(score="score", sensitive_features="sex", key="id")
    rows = duckdb.connect().from_arrow(frame.to_arrow()).project(f"{sql} AS d").fetchall()
    assert [row[0] for row in rows] == here


def test_a_classifier_decides_what_is_listed():
    """Predict gives decisions, predict_proba a column for each, classes_ stay labels; clones and copies do the same."""
    table = people()
    fair = classifier(baseline="decided").fit(table, table["repaid"])
    assert fair.classes_.tolist() == [0, 1]
    assert fair.decisions_.tolist() == REFER
    assert set(fair.predict(table)) <= set(REFER)
    assert fair.predict_proba(table).shape == (len(table), 3)
    assert fair.impact_["baseline"].changed.tolist() == [0.0, 0.0]
    # The column of the present decisions is not needed to decide.
    there = fair.predict_proba(table.drop(columns="decided"))
    assert np.array_equal(there, fair.predict_proba(table))
    again = clone(fair).fit(table, table["repaid"])
    assert again.loss_ == fair.loss_
    called = classifier(baseline=lambda X: X["decided"]).fit(table, table["repaid"])
    assert called.loss_ == fair.loss_
    assert fair.at(gap=20.0).loss_ <= fair.loss_ + 1e-12
    assert fair.recalibrate(people(500, 3)).gaps_["funding"] <= 10.0 + 1e-6


def test_score_is_minus_the_mean_loss_where_decisions_are_no_labels():
    """Score is the accuracy where every decision is a label, else minus the mean loss."""
    table, others = people(), people(500, 3)
    fair = classifier().fit(table, table["repaid"])
    probabilities = fair.predict_proba(others)
    expected = -(probabilities * np.array(COSTS)[others["repaid"]]).sum(axis=1).mean()
    assert fair.score(others, others["repaid"]) == pytest.approx(expected, abs=1e-12)
    labels = classifier(decisions=[0, 1], loss="error", happiness="decision", gap=0.1)
    labels.fit(table, table["repaid"])
    right = (labels.predict(others) == others["repaid"]).mean()
    assert labels.score(others, others["repaid"]) == right


def test_an_audit_of_a_classifier_measures_its_decisions():
    """audit(fair) measures what the probabilities do, with the loss of the cost matrix."""
    table, others = people(), people(500, 3)
    fair = classifier(baseline="decided").fit(table, table["repaid"])
    found = audit(fair, others, others["repaid"])
    assert found.loss.estimate == pytest.approx(-fair.score(others, others["repaid"]), abs=1e-9)


def test_staircases_are_counted():
    """There are C(S + D - 1, D - 1) staircases; of two decisions, the S + 1 thresholds."""
    assert log_staircases(7, 2) == pytest.approx(log_maps(7, 2, monotone=True))
    every = [(a, b) for a in range(4) for b in range(a, 4)]
    assert log_staircases(2, 4) == pytest.approx(np.log(len(every)))


def test_a_file_says_the_order():
    """Listed decisions stand in a file with their type and order; another order is refused."""
    policy = solved(people(), happiness="distributional_parity", gap=0.05, **ASKED)
    content = json.loads(policy.to_json())
    assert content["version"] == 2
    assert content["order"] == "worst first"
    rest = {name: part for name, part in content.items() if name not in ("format", "version", "sha256")}
    rest["order"] = "best first"
    wrong = {"format": "felicific policy", "version": 2, **rest, "sha256": checksum(rest)}
    with pytest.raises(ValueError, match="worst first"):
        Policy.from_json(json.dumps(wrong))


BAD = {
    "twice": (["a", "b", "a"], "'a' is listed twice"),
    "one": (["a"], "decisions are"),
    "none": ([], "decisions are"),
    "null": (["a", None], "missing"),
    "nan": ([0.0, float("nan")], "not finite"),
    "infinite": ([0.0, float("inf")], "not finite"),
    "true and one": ([True, 1, 2], "listed twice"),
    "one and 1.0": ([1, 1.0, 2], "listed twice"),
    "a word": ("abc", "not a list"),
    "a number": (3, "not a list"),
    "a tuple": ([(1, 2), "a"], "tuple"),
}


@pytest.mark.parametrize("name", BAD)
def test_lists_that_are_none(name, refuses):
    """A decision twice, fewer than two, missing, not finite, or of no type that a file can hold is refused."""
    decisions, words = BAD[name]
    with refuses(DataError, words, remedy="ist"):
        as_decisions(decisions)
    with refuses(DataError, words, remedy="ist"):
        solved(people(), happiness="distributional_parity", **ASKED | {"decisions": decisions})


@pytest.mark.parametrize(
    ("loss", "words", "remedy"),
    [
        (
            [[0, 1], [1, 0]],
            "shape (2, 2)",
            "2 rows for the labels 0, 1; 3 columns for refuse, refer, approve",
        ),
        (
            "error",
            "not every decision is one",
            "2 rows for the labels 0, 1; 3 columns for refuse, refer, approve",
        ),
        ("squared", "'refuse' is none", "cost matrix"),
        ("absolute", "'refuse' is none", "cost matrix"),
        ("quantile:0.5", "'refuse' is none", "cost matrix"),
    ],
)
def test_losses_that_do_not_fit(loss, words, remedy, refuses):
    """A matrix of another shape, the error rate and distances of words are refused."""
    with refuses(DataError, words, remedy=remedy):
        solved(people(), happiness="distributional_parity", **ASKED | {"loss": loss})


@pytest.mark.parametrize("q", ["0", "1", "x", "nan", ""])
def test_quantiles_that_are_none(q, refuses):
    """A quantile is a number between 0 and 1."""
    with refuses(DataError, "quantile", remedy="quantile:0.9"):
        solved(people(), happiness="decision", **ASKED | {"decisions": [0, 1, 2], "loss": f"quantile:{q}"})


def test_the_baseline_is_one_of_the_decisions(refuses):
    """A decision of the baseline that is none, or missing, is refused with its value and row."""
    table = people().assign(decided=lambda t: t["decided"].where(t.index != 17, "perhaps"))
    with refuses(DataError, "'perhaps'", "row 17", remedy="decision"):
        solved(table, happiness=funding, baseline="decided", **ASKED)
    table = people().assign(decided=lambda t: t["decided"].where(t.index != 17, None))
    with refuses(DataError, "missing", "row 17"):
        solved(table, happiness=funding, baseline="decided", **ASKED)


def test_what_compares_with_the_baseline_needs_one(refuses):
    """Floors at the baseline, changes and who is worse off are refused where there is no baseline."""
    table = people()
    with refuses(ConstraintError, "no baseline", remedy="baseline="):
        solved(table, happiness=funding, constraints=[Floor("funding", "baseline")], **ASKED)
    with refuses(HappinessError, "looks at the baseline, and there is none", remedy="baseline="):
        solved(table, happiness=funding, **ASKED | {"loss": "changes"})
    with refuses(HappinessError, "looks at the baseline, and there is none", remedy="baseline="):
        solved(table, happiness=funding, constraints=[WorseOff(0.1)], **ASKED)
    with refuses(AggregatesError, "no baseline"):
        solved(table, happiness=funding, change_cost=0.1, **ASKED)
    policy = solved(table, happiness=funding, gap=10.0, **ASKED)
    assert policy.basis.baseline is None
    assert any("least loss without requirements" in one for one in policy.impact())
    assert traced(table, happiness=funding, **ASKED).baseline is None
    assert solved(table, happiness=funding, baseline="decided", **ASKED | {"loss": "changes"}).loss >= 0.0


def test_accuracy_of_decisions_that_are_no_labels_is_refused(refuses):
    """Criteria that compare decisions with labels are refused."""
    for name in ("overall_accuracy", "error_rate_parity"):
        with refuses(HappinessError, "not every decision is one"):
            solved(people(), happiness=name, **ASKED)


def test_a_regressor_is_named_its_own_class(refuses):
    """A regressor in FairClassifier is refused, with FairRegressor as the remedy."""
    table = people()
    model = LinearRegression().fit(table[["ability"]], table["loan"])
    for estimator in (FrozenEstimator(model), LinearRegression()):
        fair = FairClassifier(estimator, gap=0.0, happiness="decision", sensitive_features="sex")
        with refuses(DataError, "LinearRegression is a regressor", remedy="FairRegressor"):
            fair.fit(table[["ability", "sex"]], table["repaid"])


def test_an_individual_policy_does_at_least_as_well_by_what_it_expects():
    """The individual policy's plug-in program is no worse than that of the score, whose policies it contains."""
    table = people(2_000, 5)
    told = ASKED | {"happiness": funding, "gap": 10.0, "policy": Individual("none")}
    policy = solved(table, **told)
    assert policy.search.plug_in_optimum <= solved(table, **told | {"policy": "score"}).loss + 0.02


def test_the_command_line_lists_decisions(tmp_path, monkeypatch, capsys):
    """The command line fits and refuses as the library does: words, ranges and matrices."""
    monkeypatch.chdir(tmp_path)
    people().to_csv("p.csv", index=False)
    roles = ["p.csv", "--score", "score", "--label", "repaid", "--group", "sex"]
    asked = ["--decisions", "refuse,refer,approve", "--loss", "[[0,.2,1],[.6,.2,0]]"]
    parity = ["--happiness", "distributional_parity", "--gap", ".05"]
    assert run(["fit", *roles, *asked, *parity, "--baseline", "decided", "--out", "p.json"]) == 0
    assert load("p.json").decisions.tolist() == REFER
    levels = ["--decisions", "0:1:.25", "--loss", "squared", "--happiness", "decision", "--gap", ".05"]
    assert run(["fit", *roles, *levels, "--out", "l.json"]) == 0
    assert load("l.json").decisions.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert run(["frontier", *roles, *asked, *parity[:2]]) == 0
    capsys.readouterr()
    assert run(["fit", *roles, "--decisions", "0:1:.3", *levels[2:], "--out", "x.json"]) != 0
    assert "is no range" in capsys.readouterr().err


def test_recalibrated_from_the_baseline_of_the_new_people():
    """Whoever asks for few changes is recalibrated from the column that the constructor names."""
    one, other = people(700, 1), people(700, 2)
    model = FrozenEstimator(LogisticRegression().fit(one[["ability"]], one["repaid"]))
    fair = FairClassifier(
        model, decisions=REFER, loss="changes", happiness="distributional_parity", gap=0.03,
        sensitive_features="sex", baseline="decided", key="id", random_state=0,
    )  # fmt: skip
    fair.fit(one, one["repaid"])
    again = fair.recalibrate(other)
    probabilities = again.predict_proba(other)
    changed = 1.0 - probabilities[np.arange(700), [REFER.index(word) for word in other["decided"]]]
    assert again.loss_ == pytest.approx(changed.mean(), abs=1e-9)
    assert max(again.gaps_.values()) <= 0.03 + 1e-9
    assert fair.recalibrate(one).loss_ == pytest.approx(fair.loss_, abs=1e-9)
    with pytest.raises(HappinessError, match="baseline"):
        fair.recalibrate(other.drop(columns="decided"))
