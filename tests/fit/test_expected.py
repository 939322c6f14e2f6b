"""What gap to expect on new people: the formula, the words, the files, and the one warning of a fit."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import fair_classifier
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from strategies import examples

from felicific import FairClassifier, Floor, Happiness, Policy, aggregate, audit, solve
from felicific._files import checksum
from felicific._program.evidence import expected_range, pooled_variance
from felicific.exceptions import ClusterWarning, DataError, GroupError, PolicyFileError, PolicyWarning


class Told(ClassifierMixin, BaseEstimator):
    """A model whose probabilities are columns of the table."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y=None):
        return self

    def predict_proba(self, X):
        return np.asarray(X[[f"p{k}" for k in range(self.n_classes)]], float)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def make_people(n=400, seed=0, groups=("F", "M"), n_classes=2, shares=None, shift=0.15):
    """People with scores, labels that follow them, an amount, a key and a branch."""
    rng = np.random.default_rng(seed)
    z = rng.choice(len(groups), n, p=shares)
    raised = np.exp(rng.normal(0.0, 1.0, (n, n_classes)) + shift * z[:, None] * np.arange(n_classes))
    score = raised / raised.sum(axis=1, keepdims=True)
    y = (score.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=n_classes - 1)
    columns = {f"p{k}": score[:, k] for k in range(n_classes)}
    columns |= {"group": np.array(groups)[z], "amount": rng.integers(1, 9, n) * 10.0}
    ids = np.arange(n) + 10**6 * seed
    return pd.DataFrame(columns | {"branch": rng.integers(0, n // 5, n), "id": ids}), y


def fitted(X, y, n_classes=2, fit=None, **options):
    asked = {"happiness": "decision", "sensitive_features": "group", "key": "id", "random_state": 0}
    asked |= {"change_cost": 0.0} | options
    return fair_classifier(FrozenEstimator(Told(n_classes)), **asked).fit(X, y, **(fit or {}))


# ---------------------------------------------------------------------------------------------------------
# The formula


def naive_variance(chance, value, counted, group, weight=None):
    """Mean and variance of happiness by group, person by person: the decision is drawn, then worth something."""
    weight = np.ones(len(group)) if weight is None else weight
    found = {}
    for z in sorted(set(group)):
        pairs = [
            (weight[i] * chance[i, d], value[i][d])
            for i in range(len(group))
            for d in range(chance.shape[1])
            if group[i] == z and counted[i]
        ]
        total = math.fsum(w for w, _ in pairs)
        mean = math.fsum(w * v for w, v in pairs) / total
        found[z] = total, mean, math.fsum(w * (v - mean) ** 2 for w, v in pairs) / total
    return found


def naive_gap(found, people=None, draws=200_000, seed=1):
    """The formula of the page with draws of its own; ``found`` are number, mean and variance by group."""
    rng = np.random.default_rng(seed)
    n, mean, variance = (np.array([row[k] for row in found.values()]) for k in range(3))
    pooled = sum(n * variance) / sum(n)
    shrunk = (n * variance + 2 * pooled) / (n + 2)
    people = n if people is None else people
    sample = mean + rng.standard_normal((draws, len(n))) * np.sqrt(shrunk * (1 / n + 1 / np.asarray(people)))
    return float((sample.max(axis=1) - sample.min(axis=1)).mean())


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
@pytest.mark.parametrize("among", [None, "amount > 30"])
def test_expected_gaps_are_those_of_a_naive_formula(kind, among):
    """Of every kind of policy, with people who are not counted, on as many people and on any number of each group."""
    X, y = make_people(300, groups=("a", "b", "c"))
    happy = Happiness("(decision == 1) * amount", among=among, name="funds")
    fair = fitted(X, y, happiness=happy, gap=3.0, policy=kind)
    counted = np.ones(len(X), bool) if among is None else (X["amount"] > 30).to_numpy()
    value = [(0.0, amount) for amount in X["amount"]]
    found = naive_variance(fair.predict_proba(X), value, counted, X["group"].to_numpy())
    evidence = fair.policy_.basis.evidence
    assert evidence.number[:, 0] == pytest.approx([row[0] for row in found.values()])
    assert evidence.variance[:, 0] == pytest.approx([row[2] for row in found.values()], rel=1e-9)
    policy = fair.policy_
    assert policy.expected_gaps()["funds"] == pytest.approx(naive_gap(found), rel=0.02)
    many = {"a": 50, "b": 400, "c": 1_000}
    sizes = X["group"].value_counts()
    shares = np.array([row[0] / sizes[z] for z, row in found.items()])
    expected = naive_gap(found, shares * [*many.values()])
    assert policy.expected_gaps(many)["funds"] == pytest.approx(expected, rel=0.02)


@given(
    st.integers(2, 5).flatmap(
        lambda g: st.tuples(
            *(st.lists(st.floats(*ends), min_size=g, max_size=g) for ends in [(-5, 5), (0, 3)])
        )
    )
)
@examples
def test_expected_range_is_never_below_the_range_and_grows_with_the_error(drawn):
    """The draws come with their opposites, so chance only adds; without error the range itself is expected."""
    means, error = (np.array(part)[:, None] for part in drawn)
    span = np.ptp(means)
    sizes = [expected_range(means, scale * error)[0] for scale in (0.0, 0.5, 1.0, 2.0)]
    assert sizes[0] == pytest.approx(span, abs=1e-12)
    assert (np.diff(sizes) >= -1e-12).all()


def test_a_group_without_variance_borrows_some():
    """Two people of an average group are added to each group's own variance."""
    found = pooled_variance(np.array([[0.0], [0.25]]), np.array([[10.0], [90.0]]))
    assert found[:, 0] == pytest.approx([2 * 0.225 / 12, (90 * 0.25 + 2 * 0.225) / 92])


def test_monotone_in_people():
    """More new people, less chance; infinitely many leave what is not known of the fitted ones."""
    policy = fitted(*make_people()).policy_
    gaps = [policy.expected_gaps(n)["decision"] for n in (20, 100, 1_000, 1e6, math.inf)]
    assert (np.diff(gaps) < 0).all()
    assert policy.expected_gaps(400)["decision"] == pytest.approx(policy.expected_gaps()["decision"])
    assert gaps[-1] > policy.gap


def test_bad_numbers_of_people(refuses):
    """A number of people is above 0, and given for every group or for all together."""
    policy = fitted(*make_people()).policy_
    for wrong in (0, -3, True, "many", math.nan):
        with refuses(DataError, f"{wrong!r} new people", remedy="above 0"):
            policy.expected_gaps(wrong)
    with refuses(DataError, "of the group 'X'", remedy="'F', 'M'"):
        policy.expected_gaps({"F": 3, "M": 3, "X": 1})
    with refuses(GroupError, "'M' no number", remedy="for each"):
        policy.expected_gaps({"F": 3})


# ---------------------------------------------------------------------------------------------------------
# Weights and clusters


def test_frequencies_count_and_sampling_weights_do_not():
    """Weight 2 as a frequency is the row twice; as a sampling weight it is still one person."""
    X, y = make_people()
    twice = np.full(len(X), 2.0)
    plain = fitted(X, y).policy_
    doubled = fitted(pd.concat([X, X.assign(id=-1 - X["id"])]), np.tile(y, 2)).policy_
    counted = fitted(X, y, fit={"sample_weight": twice, "weight_kind": "frequency"}).policy_
    stand = fitted(X, y, fit={"sample_weight": twice, "weight_kind": "sampling"}).policy_
    assert counted.expected_gaps() == pytest.approx(doubled.expected_gaps())
    assert stand.expected_gaps() == pytest.approx(plain.expected_gaps(), rel=1e-6)
    assert stand.expected_gaps() == pytest.approx(plain.expected_gaps(), rel=1e-6)
    assert stand.basis.evidence.size == pytest.approx(plain.basis.evidence.size)
    uneven = np.where(np.arange(len(X)) % 4 == 0, 5.5, 0.5)
    known = fitted(X, y, fit={"sample_weight": uneven, "weight_kind": "sampling"}).policy_.basis.evidence
    own = X["group"] == "F"
    kish = uneven[own].sum() ** 2 / (uneven[own] ** 2).sum()
    assert known.number[0, 0] <= kish * (1 + 1e-9) < own.sum()


def test_people_of_one_cluster_tell_less():
    """Rows of one person repeated, and named as a cluster, are as many people as there are persons."""
    X, y = make_people(200)
    rows = np.repeat(np.arange(200), 5)
    X5, y5 = X.iloc[rows].reset_index(drop=True), y[rows]
    clustered = fitted(X5, y5, key=None, fit={"cluster": rows})
    loose = fitted(X5.assign(id=np.arange(1_000)), y5)
    evidence = clustered.policy_.basis.evidence
    assert evidence.number[:, 0] == pytest.approx(X["group"].value_counts().sort_index().to_numpy(), rel=0.02)
    assert clustered.expected_gaps_["decision"] > 1.2 * loose.expected_gaps_["decision"]
    moved = clustered.at(gap=0.05).policy_.basis.evidence
    assert moved.number == pytest.approx(evidence.number)


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_one_number_wherever_it_is_said(kind):
    """The printed object, sentences, report and file say one number, stored or not, asked for before that or not."""
    X, y = make_people()
    fair = fitted(X, y, policy=kind)
    late = pickle.loads(pickle.dumps(fair))
    said = fair.expected_gaps_
    assert said == fair.policy_.expected_gaps() == late.expected_gaps_ == late.policy_.expected_gaps()
    assert pickle.loads(pickle.dumps(fair)).expected_gaps_ == said
    file = Policy.from_json(fair.policy_.to_json(), loss="error")
    assert file.expected_gaps(90) == late.policy_.expected_gaps(90) == fair.policy_.expected_gaps(90)
    about = f"a gap of about {said['decision']:.2g} must be expected"
    others = make_people(300, seed=3)
    for text in (repr(fair), repr(late), str(fair.policy_), str(file), fair.report(*others).to_html()):
        assert about in text
    assert late.policy_.sha256 == fair.policy_.sha256 == file.sha256


# ---------------------------------------------------------------------------------------------------------
# Moved and recalibrated


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_recalibrated_people_are_known(kind):
    """What ignores the label is exact on those very people; what looks at it is known from the labelled ones."""
    X, y = make_people(400)
    new, _ = make_people(1_000, seed=5)
    fair = fitted(X, y, happiness={"yes": "decision", "right": "decision == y"}, gap=0.02, policy=kind)
    fresh = fair.recalibrate(new)
    gaps = fresh.expected_gaps_
    assert gaps["yes"] == pytest.approx(fresh.gaps_["yes"])
    assert gaps["right"] > fresh.gaps_["right"]
    evidence, old = fresh.policy_.basis.evidence, fair.policy_.basis.evidence
    assert evidence.number[:, 1] == pytest.approx(old.number[:, 1])
    assert evidence.people.sum(axis=0) == pytest.approx([1_000, 1_000])
    assert fresh.policy_.expected_gaps(1_000)["yes"] > gaps["yes"]
    assert "On these people, a gap of about" in str(fresh.policy_)


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_policies_of_the_frontier_know_what_to_expect(kind):
    """A policy that was moved along the frontier knows how much its own decisions vary."""
    X, y = make_people()
    moved = fitted(X, y, gap=0.0, policy=kind).at(gap=0.05)
    everybody, value = np.ones(len(X), bool), [(0.0, 1.0)] * len(X)
    found = naive_variance(moved.predict_proba(X), value, everybody, X["group"].to_numpy())
    assert moved.policy_.basis.evidence.variance[:, 0] == pytest.approx([row[2] for row in found.values()])
    assert moved.policy_.expected_gaps()["decision"] == pytest.approx(naive_gap(found), rel=0.02)
    assert moved.expected_gaps_ == moved.policy_.expected_gaps()


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_rounded_policies_expect_what_they_decide(kind):
    """Without a lottery the variance is that of the rounded decisions."""
    X, y = make_people()
    fair = fitted(X, y, policy=kind, randomize=False)
    value = [(0.0, 1.0)] * len(X)
    found = naive_variance(fair.predict_proba(X), value, np.ones(len(X), bool), X["group"].to_numpy())
    assert fair.policy_.basis.evidence.variance[:, 0] == pytest.approx([row[2] for row in found.values()])


# ---------------------------------------------------------------------------------------------------------
# Files and sums


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_files_hold_what_is_needed(kind):
    """A policy that is read expects what the one that was written expects."""
    policy = fitted(*make_people(), policy=kind).policy_
    back = Policy.from_json(policy.to_json(), loss="error")
    assert back.expected_gaps() == policy.expected_gaps()
    assert back.sentences() == policy.sentences()
    assert back.to_json() == policy.to_json()


def without_evidence(policy, change):
    content = json.loads(policy.to_json())
    change(content["basis"])
    rest = {name: part for name, part in content.items() if name not in ("format", "version", "sha256")}
    return json.dumps(content | {"sha256": checksum(rest)})


@pytest.mark.parametrize("name", ["variance", "number", "people", "size"])
def test_files_with_impossible_evidence_are_refused(name):
    """A negative variance, a mean of nobody, another shape."""
    policy = fitted(*make_people()).policy_
    for wrong in (-1.0, "x", None):

        def change(basis, wrong=wrong):
            basis["evidence"][name] = [wrong] * 2 if name == "size" else [[wrong]] * 2

        with pytest.raises(PolicyFileError):
            Policy.from_json(without_evidence(policy, change))
    for part in ([1.0], [[1.0, 1.0]]):
        with pytest.raises(PolicyFileError):
            Policy.from_json(
                without_evidence(policy, lambda basis, p=part: basis["evidence"].update({name: p}))
            )
    with pytest.raises(PolicyFileError):
        Policy.from_json(without_evidence(policy, lambda basis: basis["evidence"].pop(name)))


def test_added_aggregates_expect_what_all_rows_do():
    """Squares add: two tables summed apart and added give the expectation of both together; without them, none."""
    X, y = make_people(600)
    said = {"score": ["p0", "p1"], "sensitive_features": "group", "happiness": "decision * amount"}
    parts = [aggregate(X[rows], y=y[rows], **said) for rows in (slice(0, 250), slice(250, None))]
    whole, added = (solve(sums, gap=1.0, random_state=0) for sums in (aggregate(X, y=y, **said), sum(parts)))
    assert added.expected_gaps() == pytest.approx(whole.expected_gaps(), rel=1e-9)
    silent = solve(sum(parts).without("square"), gap=1.0, random_state=0)
    assert silent.basis.evidence is None
    assert "is not known" in str(silent)


# ---------------------------------------------------------------------------------------------------------
# Words and warnings


def test_shown_wherever_a_classifier_is_printed():
    """The printed object, the notebook and the sentences say the fitted gap and the one to expect."""
    fair = fitted(*make_people(3_000))
    gap = fair.expected_gaps_["decision"]
    about = f"a gap of about {gap:.2g}"
    for text in (repr(fair), str(fair), fair._repr_mimebundle_()["text/html"]):
        assert about in text
        assert "chosen because there are two classes and the group is seen" in text
    assert "must be expected" in str(fair.policy_)
    unfitted = FairClassifier(Told(), gap=0.0)
    assert "expected" not in repr(unfitted)
    assert "must be" not in repr(make_pipeline(fair))


def caught(**options):
    people = options.pop("people", {"n": 3_000})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fair = fitted(*make_people(**people), **options)
    return fair, [warning for warning in found if "key" not in str(warning.message)]


def test_one_warning_where_chance_exceeds_what_was_asked():
    """A gap that so few people cannot keep, where chance alone sets them as far apart as the baseline does."""
    fair, found = caught(people={"n": 300}, gap=0.02, constraints=[Floor("decision", "baseline")])
    assert [warning.category for warning in found] == [PolicyWarning]
    text = str(found[0].message)
    n = int(fair.policy_.basis.evidence.number.min())
    assert f"from {n} people in" in text
    assert "by chance alone, 0.02 was asked for: ask for at least that." in text
    assert found[0].filename == __file__
    assert text in repr(fair)
    rare = {"n": 3_000, "shares": (0.02, 0.98)}
    assert "0 was asked for" in str(caught(people=rare, gap=0.0)[1][0].message)
    assert "(0.9 was asked for): fit on more people" in str(
        caught(people=rare, gap=0.9)[0].policy_.cautions()
    )
    for quiet in ({"gap": 0.0}, {"gap": 0.1}, {"people": rare, "gap": {}}, {"people": rare, "gap": 0.9}):
        assert caught(**quiet)[1] == []


def taker(kind, **options):
    """A fit in which the cheapest way to equal shares is to refuse nearly everybody."""
    X, y = make_people(2_000, shift=-1.2)
    cost = [[0.0, 3.0], [0.05, 0.0]]
    return lambda: fitted(X, y, happiness={"yes": "decision"}, loss=cost, policy=kind, **options)


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
def test_every_group_loses_is_a_warning_with_a_remedy(kind):
    """For every kind of policy; with the floor that it names, nobody loses and nothing is warned of."""
    with pytest.warns(
        PolicyWarning,
        match=r"Every group loses: .* Add a floor of 'yes' at its baseline, or let the policy",
    ):
        fair = taker(kind)()
    assert all(
        was > now
        for was, now in zip(fair.policy_.basis.baseline.means, fair.policy_.outcome.means, strict=True)
    )
    assert "Every group loses" in repr(fair)
    assert any("Add a floor of 'yes' at its baseline" in text for text in fair.policy_.sentences())
    with warnings.catch_warnings():
        warnings.simplefilter("error", PolicyWarning)
        kept = taker(kind, constraints=[Floor("yes", "baseline")])()
    assert "Every group loses" not in repr(kept)
    X, y = make_people(2_000, seed=9, shift=-1.2)
    page = fair.report(X, y)
    flags = [flag.kind for flag in page.verdict.flags]
    assert page.verdict.kind == "levels-down" or "levels-down" in flags, page.verdict
    assert any("Add a floor of" in note for note in audit(fair, X, y).notes)


def test_at_most_one_warning_for_a_fit():
    """Of several things to say the worst is warned of, and all are in the printed object."""
    X, y = make_people(80, shift=-1.2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fair = fitted(X.assign(id=X["id"] // 2), y, gap=0.01, loss=[[0.0, 3.0], [0.05, 0.0]])
    assert [warning.category for warning in found] == [PolicyWarning]
    assert str(found[0].message).startswith("Every group loses")
    for text in ("Every group loses", "0.01 was asked for: ask for at least that", "different keys"):
        assert text in repr(fair)
    with pytest.warns(ClusterWarning, match="different keys"):
        fitted(*(lambda X, y: (X.assign(id=X["id"] // 2), y))(*make_people(2_000)), gap=0.2)


def test_a_score_of_one_cell_a_label_is_the_label_policy():
    """Probabilities that say no more than the label: said in words, and the decisions are those of the label."""
    X, y = make_people(1_000)
    X["p1"] = (X["p1"] > 0.5) * 0.8 + 0.1
    X["p0"] = 1 - X["p1"]
    fair, label = (fitted(X, y, policy=kind) for kind in ("score", "label"))
    assert any("is the label policy" in text for text in fair.policy_.sentences())
    assert not any("is the label policy" in text for text in label.policy_.sentences())
    assert fair.loss_ == pytest.approx(label.loss_, abs=1e-9)
    few, y = make_people(150, n_classes=3)
    assert "is the label policy" in str(fitted(few, y, 3, policy="score").policy_)
    assert "is the label policy" not in str(
        fitted(*make_people(2_000, n_classes=3), 3, policy="score").policy_
    )


# ---------------------------------------------------------------------------------------------------------
# policy="auto"


def test_auto_takes_what_the_problem_asks_for():
    """Score for two classes and a seen group; individual for more, or unseen; else a decision function."""
    X, y = make_people()
    assert fitted(X, y).policy_.kind == "score"
    assert fitted(*make_people(n_classes=3), 3).policy_.kind == "individual"
    said = {"happiness": "decision", "gap": 0.0, "sensitive_features": "group", "random_state": 0}
    features = X[["p0", "p1", "group"]].assign(group=(X["group"] == "F") * 1)
    blind = FairClassifier(LogisticRegression(), sees_group=False, **said).fit(features, y)
    assert blind.policy_.kind == "individual"
    assert "chosen because the group is not seen" in repr(blind)
    ridge = FairClassifier(RidgeClassifier(), **said).fit(features, y)
    assert ridge.policy_.kind == "score"
    assert "has a decision function and no predict_proba" in repr(ridge)
    assert FairClassifier(Told(), gap=0.0).get_params()["policy"] == "auto"


def test_auto_is_the_policy_that_it_chose():
    """Nothing but the printed object and the report tells a chosen kind from one that was asked for."""
    X, y = make_people()
    auto, score = (fitted(X, y, policy=kind) for kind in ("auto", "score"))
    assert auto.policy_.to_json() == score.policy_.to_json()
    assert "chosen" not in repr(score)
    others, labels = make_people(300, seed=3)
    pages = [fair.report(others, labels) for fair in (auto, score)]
    assert [page.content["policy"]["chosen"] is None for page in pages] == [False, True]
    assert "because there are two classes and the group is seen" in pages[0].to_html()
    assert pages[0].content["outlook"] in str(auto.policy_)
