"""FairClassifier where labels are missing: wiring, what it shows, and what it says."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from felicific import Exploration, FairClassifier, MissingLabels, Score, aggregate, audit, solve
from felicific.exceptions import DataError, PolicyWarning
from felicific.sklearn import make_scorer

FEATURES = ["x1", "x2"]


def lending(n=3000, seed=0, steep=0.7):
    """People, their true labels, and who has one by an officer whose chances are known."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    x1, x2 = rng.normal(-0.3 * z, 1.0), rng.normal(size=n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-(x1 + 0.7 * x2 + 0.4)))).astype(int)
    probabilities = 1 / (1 + np.exp(-steep * (x1 + 0.7 * x2 - 0.5 * z + 0.5)))
    X = pd.DataFrame(
        {
            "x1": x1,
            "x2": x2,
            "group": np.array(["A", "B"], dtype=object)[z],
            "amount": np.exp(rng.normal(9, 0.5, n)),
            "id": np.arange(n) + 10**6 * seed,
            "proba": probabilities,
        }
    )
    return X, truth, np.where(rng.random(n) < probabilities, truth, np.nan)


X, TRUTH, Y = lending()
MODEL = FrozenEstimator(LogisticRegression().fit(lending(seed=9)[0][FEATURES], lending(seed=9)[1]))


def fair(**more):
    settings = {
        "happiness": "equal_opportunity",
        "gap": 0.02,
        "sensitive_features": "group",
        "key": "id",
        "random_state": 0,
        "missing_labels": "at_random",
    }
    return FairClassifier(MODEL, **settings | more)


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
@pytest.mark.parametrize("said", ["at_random", MissingLabels(label_proba="proba")])
def test_every_kind_of_policy_is_near_the_fit_to_all_labels(kind, said):
    """What is stated is near what the policy does to everybody's true labels; what is stated of the labelled is not."""
    fitted = fair(policy=kind, missing_labels=said, change_cost=0).fit(X, Y)
    probabilities = fitted.predict_proba(X)
    loss = float(np.mean(1.0 - probabilities[np.arange(len(X)), TRUTH]))
    assert fitted.loss_ == pytest.approx(loss, abs=0.04)
    have = np.isfinite(Y)
    left_out = fair(policy=kind, missing_labels=None, change_cost=0).fit(X[have], Y[have].astype(int))
    probabilities = left_out.predict_proba(X)
    there = float(np.mean(1.0 - probabilities[np.arange(len(X)), TRUTH]))
    assert abs(left_out.loss_ - there) > abs(fitted.loss_ - loss)
    assert fitted.gaps_["true positive rate"] <= 0.02 + 1e-9
    known = fitted.labels_
    assert known.source == ("label_proba" if said != "at_random" else "model")
    assert known.people.sum() == len(X)
    assert known.labelled.sum() == np.isfinite(Y).sum()
    assert (known.imputed[:, 1] < known.seen[:, 1]).all()  # the officer took the better ones
    assert "No label" in str(fitted.policy_)


def test_known_probabilities_are_those_of_solve():
    """The sums are the same as those of a table of scores with a column of probabilities."""
    fitted = fair(
        policy=Score(bins=30), missing_labels=MissingLabels(label_proba="proba"), change_cost=0
    ).fit(X, Y)
    table = X.assign(y=Y, p=MODEL.predict_proba(X[FEATURES])[:, 1])
    policy = solved(
        table,
        score="p",
        y="y",
        sensitive_features="group",
        happiness="equal_opportunity",
        gap=0.02,
        policy=Score(bins=30),
        missing_labels=MissingLabels(label_proba="proba"),
        random_state=0,
    )
    assert fitted.loss_ == pytest.approx(policy.loss, abs=1e-12)
    assert fitted.policy_.labels.to_dict() == policy.labels.to_dict()


def test_nothing_changes_where_no_label_is_missing():
    """With complete labels, bit for bit the fit without missing_labels, and no labels_."""
    plain = fair(missing_labels=None).fit(X, TRUTH)
    said = fair().fit(X, TRUTH)
    assert said.policy_.to_json() == plain.policy_.to_json()
    assert said.labels_ is None


def test_the_probabilities_column_is_read_at_the_fit_alone():
    """Neither the model nor predict sees it, and people without it are decided on as people with it."""
    said = fair(missing_labels=MissingLabels(label_proba="proba")).fit(X, Y)
    assert "proba" not in said.feature_names_in_
    assert (said.predict(X) == said.predict(X.drop(columns="proba"))).all()
    free = FairClassifier(
        LogisticRegression(),
        happiness="equal_opportunity",
        gap=0.05,
        sensitive_features="group",
        missing_labels=MissingLabels(label_proba="proba"),
        random_state=0,
    ).fit(X[[*FEATURES, "proba"]].assign(group=(X["group"] == "B").astype(int)), Y)
    assert list(free.estimator_.feature_names_in_) == [*FEATURES, "group"]
    assert free.predict(X[FEATURES].assign(group=(X["group"] == "B").astype(int))[:5]).shape == (5,)


def test_an_unfitted_model_learns_from_the_labelled_and_is_tried_on_all():
    """Labels of the unlabelled are never looked at, whatever stands there; folds are over all rows."""
    people = X[[*FEATURES, "group", "amount"]]
    kinds = [Y, np.where(np.isnan(Y), None, Y).astype(object), pd.Series(Y), pd.array(Y, dtype="Int64")]
    fits = [
        FairClassifier(
            HistGradientBoostingClassifier(max_iter=10, random_state=0, categorical_features=["group"]),
            happiness="decision * amount",
            gap=100.0,
            policy="score",
            sensitive_features="group",
            missing_labels="at_random",
            random_state=0,
        ).fit(people.assign(group=(people["group"] == "B").astype(int)), y)
        for y in kinds
    ]
    assert len({one.policy_.loss for one in fits}) == 1
    assert fits[0].classes_.tolist() == [0, 1]


def test_labels_of_text_and_rows_of_weight_zero():
    """Labels may be text, and a row of weight 0 is absent, whatever its label and probabilities."""
    words = np.where(np.isnan(Y), None, np.where(Y == 1, "good", "bad"))
    model = FrozenEstimator(LogisticRegression().fit(X[FEATURES], np.where(TRUTH == 1, "good", "bad")))
    settings = {
        "happiness": "equal_opportunity",
        "gap": 0.02,
        "sensitive_features": "group",
        "random_state": 0,
    }
    settings |= {"missing_labels": MissingLabels(label_proba="proba"), "policy": "score", "change_cost": 0}
    plain = FairClassifier(model, **settings).fit(X, words)
    more = pd.concat([X, X[:20].assign(proba=np.nan)])
    weight = np.append(np.ones(len(X)), np.zeros(20))
    again = FairClassifier(model, **settings).fit(more, np.append(words, ["bad"] * 20), sample_weight=weight)
    assert again.loss_ == plain.loss_
    twice = FairClassifier(model, **settings).fit(X, words, sample_weight=np.full(len(X), 2.0))
    double = FairClassifier(model, **settings).fit(pd.concat([X, X]), np.append(words, words))
    assert twice.loss_ == pytest.approx(double.loss_, abs=1e-12)
    np.testing.assert_allclose(twice.labels_.effective, double.labels_.effective)


def test_what_is_hidden_is_a_range():
    """The loss at max_odds_ratio=2 is worse than at 1, and its range holds it; at() needs no new fit."""
    said = fair(
        happiness="decision * amount",
        gap=0.0,
        missing_labels=MissingLabels(label_proba="proba"),
        policy="score",
    )
    one = said.fit(X, Y)
    two = one.at(max_odds_ratio=2)
    again = fair(
        happiness="decision * amount",
        gap=0.0,
        missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=2),
        policy="score",
        change_cost=one.policy_.change_cost,
    ).fit(X, Y)
    assert two.loss_ == pytest.approx(again.loss_, abs=1e-9)
    assert two.policy_.loss_range[0] <= one.loss_ <= two.loss_ == two.policy_.loss_range[1]
    assert one.at(max_odds_ratio=math.inf).loss_ >= two.loss_
    assert "at worst" in str(two.policy_)
    wider = two.at(gap=500.0)
    assert wider.loss_ <= two.loss_
    fitted = fair(
        happiness="decision * amount",
        gap=500.0,
        missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=2),
        policy="score",
        change_cost=one.policy_.change_cost,
    ).fit(X, Y)
    assert wider.policy_.loss_range == pytest.approx(fitted.policy_.loss_range, abs=1e-9)
    assert wider.policy_.labels.to_dict() == fitted.policy_.labels.to_dict()
    assert two.missing_labels.max_odds_ratio == 2
    with pytest.raises(DataError, match="nothing is hidden"):
        fair(missing_labels=None).fit(X, TRUTH).at(max_odds_ratio=2)
    bounded = fair(
        happiness="decision * amount",
        missing_labels=MissingLabels(max_odds_ratio=2),
        policy="individual",
        gap=100.0,
    )
    free = fair(happiness="decision * amount", policy="individual", gap=100.0).fit(X, Y)
    assert bounded.fit(X, Y).loss_ > free.loss_
    with pytest.raises(DataError, match="looks at the label"):
        fair(missing_labels=MissingLabels(max_odds_ratio=2), policy="individual").fit(X, Y)


def test_a_fitted_classifier_is_stored_and_recalibrated():
    """What was supposed of labels survives a file, and new people without labels are met."""
    said = fair(happiness="decision * amount", gap=50.0).fit(X, Y)
    back = pickle.loads(pickle.dumps(said))
    assert (back.predict(X) == said.predict(X)).all()
    assert back.labels_.to_dict() == said.labels_.to_dict()
    new = lending(seed=4)[0]
    assert said.recalibrate(new).gaps_["decision * amount"] <= 50.0 + 1e-6


def test_labels_nobody_looks_at_may_be_missing():
    """With loss="changes" and happiness that ignores the label, a missing one is no error, and nothing is supposed."""
    asked = {"happiness": "decision * amount", "loss": "changes", "gap": 100.0, "missing_labels": None}
    found = fair(**asked).fit(X, Y)
    assert found.loss_ == fair(**asked).fit(X).loss_
    assert found.labels_ is None


def test_errors_say_what_to_do():
    """Nothing said, a classifier that knows no chances, probabilities of another length, nobody alike."""
    with pytest.raises(DataError, match="Leaving them out would fit the policy"):
        fair(missing_labels=None).fit(X, Y)
    with pytest.raises(DataError, match="has no predict_proba"):
        fair(missing_labels=MissingLabels(label_proba=RidgeClassifier())).fit(X, Y)
    with pytest.raises(DataError, match="label_proba for"):
        fair(missing_labels=MissingLabels(label_proba=np.full(5, 0.5))).fit(X, Y)
    with pytest.raises(DataError, match="nothere"):
        fair(missing_labels=MissingLabels(label_proba="nothere")).fit(X, Y)
    score = MODEL.predict_proba(X[FEATURES])[:, 1]
    cut = np.where(score > 0.55, TRUTH, np.nan)
    with pytest.raises(DataError, match="nobody alike has a label") as error:
        fair().fit(X, cut)
    assert "Exploration in the next round" in str(error.value)
    with pytest.raises(DataError, match="missing_labels is"):
        fair(missing_labels="missing at random").fit(X, Y)


def test_doubtful_overlap_warns_once():
    """Where those with a label stand for few of the others, one warning says so, and the printed object too."""
    people, truth, _ = lending(8000)
    rng = np.random.default_rng(5)
    chance = (1 / (1 + np.exp(-1.1 * (people["x1"] + 0.7 * people["x2"])))).to_numpy()
    y = np.where(rng.random(len(people)) < chance, truth, np.nan)
    y[chance < 0.15] = np.nan
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fair(happiness="decision * amount", gap=500.0).fit(people, y)
    assert 0.6 < found.labels_.standing.min() < 0.9
    said = [str(warning.message) for warning in told if issubclass(warning.category, PolicyWarning)]
    assert len(said) == 1
    assert "nobody alike was seen" in said[0]
    assert "nobody alike was seen" in str(found.policy_)


def test_the_loop_decides_observes_and_fits_again():
    """Probabilities of a policy that explores are the probabilities with which labels are seen.

    The next fit takes them as they are.
    """
    people, _, y = lending(4000, seed=6)
    first = fair(constraints=[Exploration(at_least=0.05)]).fit(people.drop(columns="proba"), y)
    new, later, _ = lending(4000, seed=7)
    scores = MODEL.predict_proba(new[FEATURES])[:, 1]
    table = new.drop(columns="proba").assign(score=scores)
    decided = first.policy_.apply(table, score="score", sensitive_features="group", key="id", with_proba=True)
    assert decided["proba"].min() >= 0.05 - 1e-12
    seen = np.where(decided["decision"] == 1, later, np.nan)
    again = fair(
        missing_labels=MissingLabels(label_proba="proba"), constraints=[Exploration(at_least=0.05)]
    ).fit(decided.drop(columns=["decision", "score"]), seen)
    assert again.labels_.source == "label_proba"
    assert abs(again.labels_.standing - 1).max() < 0.6
    wrong = decided.assign(proba=(decided["proba"] * 0.8).clip(lower=0.01)).drop(
        columns=["decision", "score"]
    )
    with pytest.raises(DataError, match="not the probabilities with which labels were seen"):
        fair(missing_labels=MissingLabels(label_proba="proba")).fit(wrong, seen)


def test_sums_of_sites_are_those_of_one_table():
    """aggregate(...) of parts with missing labels add to what one fit sees."""
    table = X.assign(y=Y, p=MODEL.predict_proba(X[FEATURES])[:, 1])
    asked = {"score": "p", "y": "y", "sensitive_features": "group", "happiness": "decision * amount"}
    asked |= {"missing_labels": "at_random"}
    whole = solve(aggregate(table, **asked), gap=0.0, random_state=0)
    parts = solve(
        sum(aggregate(part, **asked) for part in (table[:1000], table[1000:])), gap=0.0, random_state=0
    )
    assert parts.loss == pytest.approx(whole.loss, abs=1e-9)


# ---------------------------------------------------------------------------------------------------------
# People of whom nothing can be known, and objects that are moved or fitted again


def test_known_probabilities_of_nothing_are_refused():
    """Whoever could not have a label is like nobody who has one, also for an audit; only bounds are left."""
    score = MODEL.predict_proba(X[FEATURES])[:, 1]
    cut = X.assign(proba=(score > 0.5).astype(float))
    y = np.where(score > 0.5, TRUTH, np.nan)
    with pytest.raises(DataError, match=r"For 100 % of the unlabelled of '.' the probability is 0"):
        fair(missing_labels=MissingLabels(label_proba="proba")).fit(cut, y)
    plain = fair(missing_labels=None).fit(X, TRUTH)
    with pytest.raises(DataError, match="the probability is 0"):
        audit(plain, cut, y, missing_labels=MissingLabels(label_proba="proba"))
    bounds = fair(
        happiness="decision * amount",
        missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=math.inf),
    )
    assert bounds.fit(cut, y).policy_.loss_range[0] < bounds.policy_.loss_range[1]


def test_probabilities_are_checked_where_nobody_lacks_a_label():
    """Probabilities of a twentieth in a group in which everybody has a label are not the probabilities."""
    y, wrong = np.where(X["group"] == "A", TRUTH, Y), X["proba"].where(X["group"] != "A", 0.05)
    with pytest.raises(DataError, match=r"In the group 'A'.*not the probabilities"):
        fair(missing_labels=MissingLabels(label_proba="proba")).fit(X.assign(proba=wrong), y)
    right = X.assign(proba=X["proba"].where(X["group"] != "A", 1.0))
    found = fair(
        missing_labels=MissingLabels(label_proba="proba"), happiness="decision * y * amount", gap={}
    ).fit(right, y)
    chosen = X["group"] == "A"
    probabilities = found.predict_proba(X)[:, 1]
    mean = float((probabilities * TRUTH * X["amount"])[chosen].mean())
    assert found.policy_.means["decision * y * amount"]["A"] == pytest.approx(mean, rel=1e-9)


def test_people_who_were_labelled_otherwise_are_refused():
    """What was learnt of who has a label holds for people labelled alike; of others it has to be said."""
    said = fair().fit(X, Y)
    new, later, seen = lending(seed=3)
    assert audit(said, new, seen).loss.estimate < 1
    almost = later.astype(float)
    almost[0] = np.nan
    for ask in (
        lambda: audit(said, new, almost),
        lambda: said.report(new, almost),
        lambda: make_scorer()(said, new, almost),
    ):
        with pytest.raises(DataError, match="labelled in another way"):
            ask()
    by_score = audit(
        said, new, almost, missing_labels=MissingLabels(label_proba=np.full(len(new), 1 - 1 / len(new)))
    )
    assert by_score.loss.estimate == pytest.approx(audit(said, new, later).loss.estimate, abs=2e-3)


def test_a_refit_forgets_what_was_believed():
    """Nothing of an earlier fit is left in a later one."""
    first = fair().fit(X, Y)
    again = first.fit(X, TRUTH)
    assert not hasattr(again, "_label_beliefs")
    assert again.labels_ is None
    new, _, seen = lending(seed=3)
    fresh = fair().fit(X, TRUTH)
    assert audit(again, new, seen).loss.estimate == audit(fresh, new, seen).loss.estimate


def test_policies_along_a_frontier_know_who_has_a_label():
    """After at(gap=), in any order with at(max_odds_ratio=), labels and range of the loss are those of the policy."""
    money = {"happiness": "decision * amount", "gap": 100.0, "policy": "score", "change_cost": 0}
    one = fair(**money, missing_labels=MissingLabels(label_proba="proba")).fit(X, Y)
    moved = one.at(max_odds_ratio=2).at(gap=600.0)
    other = one.at(gap=600.0).at(max_odds_ratio=2)
    assert moved.policy_.loss_range[1] == moved.loss_ == moved.policy_.loss
    assert moved.policy_.loss_range[0] < moved.loss_
    assert "at worst" in str(moved.policy_)
    assert other.policy_.loss_range == pytest.approx(moved.policy_.loss_range, abs=1e-9)
    assert one.frontier_.at(gap=600.0).labels is not None
    with pytest.raises(DataError, match="recalibrated"):
        one.recalibrate(lending(seed=4)[0]).at(max_odds_ratio=2)
    alone = fair(
        **money | {"policy": "individual"},
        missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=2),
    ).fit(X, Y)
    assert alone.policy_.loss_range[0] < alone.policy_.loss_range[1]


def test_happiness_of_the_label_has_ends_at_every_door():
    """A gap of happiness that looks at the label is the worst case: by the classifier, and as solve says it."""
    asked = {"happiness": {"h": "decision * y"}, "gap": 0.1, "policy": Score(bins=30), "change_cost": 0}
    found = fair(**asked, missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=1.5)).fit(X, Y)
    table = X.assign(y=Y, p=MODEL.predict_proba(X[FEATURES])[:, 1])
    roles = {"score": "p", "y": "y", "sensitive_features": "group", "random_state": 0}
    policy = solved(
        table,
        **roles,
        **asked,
        missing_labels=MissingLabels(label_proba="proba", max_odds_ratio=1.5),
    )
    assert found.loss_ == pytest.approx(policy.loss, abs=1e-9)
    assert found.gaps_["h"] <= 0.1 + 1e-9
    assert "loses, at most" not in found.gaps_
    assert found.at(gap=0.15).gaps_["h"] <= 0.15 + 1e-9
    assert len(found.frontier_) > 1
    with pytest.raises(DataError, match="Hidden reasons leave open"):
        found.report(X, Y)
    new, _, seen = lending(seed=3)
    text = str(audit(found, new, seen))
    assert "hidden reasons leave" in text


def test_overlap_is_asked_for_at_every_finite_strength():
    """A little doubt about hidden reasons makes nobody known of whom nobody alike has a label."""
    score = MODEL.predict_proba(X[FEATURES])[:, 1]
    cut = np.where(score > 0.55, TRUTH, np.nan)
    for max_odds_ratio in (1.0, 1.01, 3.0):
        with pytest.raises(DataError, match="nobody alike has a label"):
            fair(
                happiness="decision * amount", missing_labels=MissingLabels(max_odds_ratio=max_odds_ratio)
            ).fit(X, cut)


def test_complete_rows_need_no_probabilities_and_score_says_what_to_use():
    """An audit of people who all have a label asks for no column of probabilities.

    Score() of missing labels is refused.
    """
    said = fair(missing_labels=MissingLabels(label_proba="proba")).fit(X, Y)
    new, later, seen = lending(seed=3)
    assert audit(said, new.drop(columns="proba"), later).labels is None
    assert make_scorer()(said, new.drop(columns="proba"), later)["neg_loss"] < 0
    assert said.report(new.drop(columns="proba"), later).to_dict()["kind"] == "choice"
    with pytest.raises(DataError, match="some labels are missing"):
        said.score(new, seen)
    with pytest.raises(DataError, match="list of numbers"):
        MissingLabels(label_proba=[0.5, 0.2])
