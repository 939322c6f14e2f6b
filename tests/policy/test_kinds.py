"""What every kind of policy owes: rounding, one lottery for all, files that come back or are refused."""

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import fair_classifier
from oracles_policies import Told, codes, make_people, outcome_of, proba_of, put, tampered
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from felicific import FairClassifier, Happiness, Individual, Policy, Score, load
from felicific.exceptions import PolicyFileError

#: Policies of tests are saved with the salt of a seed, so that their draws are the same again.
pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

KINDS = {
    "score": "score",
    "free score": Score(bins=12, monotone=False),
    "label": "label",
    "soft-label": "soft-label",
    "individual": "individual",
    "sigmoid": Individual("sigmoid"),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def funding(decision, x):
    return decision * x["loan"]


def relief(decision, x, y):
    return np.where(y == decision, 0.0, -1.0) * x["loan"]


def rich(x):
    return x["wealth"] > 0


def regret(decision, x, y):
    return np.abs(decision - y) * (1.0 + (x["group"] == "a"))


def fitted(table, y, kind, n_classes=2, **options):
    options = {"happiness": funding, "sensitive_features": "group", "random_state": 0} | options
    model = FrozenEstimator(Told(n_classes).fit(table, y))
    return fair_classifier(model, policy=KINDS[kind], **options).fit(table, y)


def truth(decided, table, y, weight=None):
    """Loss and funding gap of decision probabilities, person by person."""
    K = decided.shape[1]
    value = (np.arange(K) * table["loan"].to_numpy()[:, None])[:, :, None]
    cost = (np.arange(K) != y[:, None]).astype(float)
    weight = np.ones(len(y)) if weight is None else weight
    group = codes(table["group"])
    loss, _, gaps = outcome_of(
        decided, cost, value, np.ones((len(y), 1), bool), weight, group, group.max() + 1
    )
    return loss, gaps[0]


# ---------------------------------------------------------------------------------------------------------
# What is stated


@kinds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_stated_is_real(kind, n_classes, weighted):
    """loss_, gaps_ and share_randomized_ are what predict_proba does to the fitted rows, weights included."""
    table, y = make_people(400, n_classes, 3, seed=1)
    weight = 1.0 + np.arange(400) % 4 if weighted else np.ones(400)
    model = FrozenEstimator(Told(n_classes).fit(table, y))
    fair = FairClassifier(
        model, happiness=funding, gap=1.0, policy=KINDS[kind], sensitive_features="group", random_state=0
    ).fit(table, y, sample_weight=weight)
    decided = fair.predict_proba(table)
    assert (decided >= 0).all()
    assert np.abs(decided.sum(axis=1) - 1).max() <= 1e-12
    loss, gap = truth(decided, table, y, weight)
    assert fair.loss_ == fair.policy_.loss == pytest.approx(loss, rel=1e-12)
    assert fair.gaps_["funding"] == pytest.approx(gap, abs=1e-12 * 60)
    assert gap <= 1.0 + 1e-9
    drawn = (decided > 0).sum(axis=1) > 1
    assert fair.share_randomized_ == pytest.approx(np.average(drawn, weights=weight), abs=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "label" not in kind])
def test_rounding_states_what_it_reaches(kind):
    """With randomize=False nobody faces a lottery, all get the likeliest decision, and loss and gap are theirs."""
    table, y = make_people(400, seed=2)
    mixed, rounded = (fitted(table, y, kind, randomize=choice) for choice in (True, False))
    decided = rounded.predict_proba(table)
    assert mixed.share_randomized_ > 0
    assert rounded.share_randomized_ == 0.0
    assert (decided.argmax(axis=1) == mixed.predict_proba(table).argmax(axis=1)).all()
    assert set(decided.ravel().tolist()) == {0.0, 1.0}
    assert (rounded.predict(table) == decided.argmax(axis=1)).all()
    loss, gap = truth(decided, table, y)
    assert rounded.loss_ == rounded.policy_.loss == pytest.approx(loss, rel=1e-12)
    assert rounded.gaps_ == rounded.policy_.gaps
    assert rounded.gaps_["funding"] == pytest.approx(gap, rel=1e-9)
    assert gap > 1e-3
    back = Policy.from_json(rounded.policy_.to_json(), happiness=funding)
    assert back.randomize is False
    assert (back.probabilities(scores_of(back, table), table["group"], x=table) == decided).all()


@pytest.mark.parametrize("kind", ["score", "free score", "label", "soft-label"])
def test_few_signals_are_split_by_lottery(kind):
    """A vertex solution: with one gap and two groups, at most two different lotteries are held."""
    table, y = make_people(400, seed=3)
    policy = fitted(table, y, kind).policy_
    split = (policy.q > 0).sum(axis=2) > 1
    assert 1 <= split.any(axis=1).sum() <= 2
    assert len(set(np.round(policy.q[split][:, 1], 9).tolist())) <= 2


@pytest.mark.parametrize("calibration", ["isotonic", "none"])
def test_few_people_face_a_lottery_under_expected_values(calibration):
    """Without labels and ties, an optimal individual policy leaves at most one person per group to a lottery."""
    table, y = make_people(600, seed=3)
    model = FrozenEstimator(Told().fit(table, y))
    fair = FairClassifier(
        model,
        gap=0.0,
        happiness=funding,
        policy=Individual(calibration),
        sensitive_features="group",
        random_state=0,
    ).fit(table, y)
    assert fair.recalibrate(table.iloc[::-1]).share_randomized_ * 600 <= 2 + 1e-9


@kinds
@pytest.mark.parametrize("column", ["group", "loan"])
def test_weight_zero_is_the_row_absent(kind, column):
    """A row of weight 0 may hold a group that nobody else has, or no loan: it is not looked at."""
    table, y = make_people(300, seed=4)
    hostile = table.copy()
    hostile.loc[0, column] = {"group": "nobody", "loan": np.nan}[column]
    weight = np.ones(300)
    weight[0] = 0.0
    model = FrozenEstimator(Told().fit(table, y))
    options = {"happiness": funding, "gap": 0.0, "policy": KINDS[kind]}
    options |= {"sensitive_features": "group", "random_state": 0}
    one = FairClassifier(model, **options).fit(hostile, y, sample_weight=weight)
    other = FairClassifier(model, **options).fit(table[1:], y[1:])
    assert one.groups_ == other.groups_ == ("a", "b")
    assert one.loss_ == pytest.approx(other.loss_, abs=1e-12)
    assert one.share_randomized_ == pytest.approx(other.share_randomized_, abs=1e-12)
    assert np.abs(one.predict_proba(table) - other.predict_proba(table)).max() <= 1e-12


def test_weight_zero_moves_no_boundary():
    """The score at which the model decides otherwise is looked for among people who count."""
    table, y = make_people(300, seed=4)
    table.loc[0, ["p0", "p1"]] = [0.7 + 1e-9, 0.3 - 1e-9]
    table.loc[1:, "p1"] = table.loc[1:, "p1"].where((table["p1"][1:] - 0.3).abs() > 0.01, 0.32)
    table["p0"] = 1 - table["p1"]
    weight = np.ones(300)
    weight[0] = 0.0
    model = FrozenEstimator(Told(threshold=0.3).fit(table, y))
    options = {"happiness": funding, "gap": 0.0, "sensitive_features": "group", "random_state": 0}
    one = FairClassifier(model, **options).fit(table, y, sample_weight=weight)
    other = FairClassifier(model, **options).fit(table[1:], y[1:])
    assert one.policy_.signal == other.policy_.signal


# ---------------------------------------------------------------------------------------------------------
# One lottery


@kinds
@pytest.mark.parametrize("key", ["id", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_do_not_depend_on_the_batch(kind, key, n_classes):
    """Shuffled, one by one, in chunks or all at once: the same people get the same decisions."""
    table, y = make_people(260, n_classes, 3, seed=5)
    fair = fitted(table, y, kind, n_classes, key=key)
    decided, drawn = fair.predict_proba(table), fair.predict(table)
    assert fair.share_randomized_ > 0
    order = np.random.default_rng(0).permutation(260)
    assert (fair.predict_proba(table.iloc[order]) == decided[order]).all()
    assert (fair.predict(table.iloc[order]) == drawn[order]).all()
    for size in (1, 30, 100):
        parts = [table.iloc[start : start + size] for start in range(0, 20 if size == 1 else 260, size)]
        together = np.concatenate([fair.predict(part) for part in parts])
        assert (together == drawn[: len(together)]).all()
        mixed = np.concatenate([fair.predict_proba(part) for part in parts])
        assert (mixed == decided[: len(mixed)]).all()
    repeated = table.iloc[np.repeat(np.arange(260), 40)]
    assert (fair.predict_proba(repeated) == np.repeat(decided, 40, axis=0)).all()


@kinds
def test_decisions_follow_the_probabilities(kind):
    """People under many keys are decided as often as predict_proba says, within five standard errors."""
    table, y = make_people(200, seed=6)
    fair = fitted(table, y, kind, key="id")
    decided = fair.predict_proba(table)
    person = int(np.abs(decided[:, 1] - 0.5).argmin())
    q = decided[person, 1]
    assert 0 < q < 1
    twins = pd.concat([table.iloc[[person]]] * 2000).assign(id=np.arange(2000))
    share = fair.predict(twins).mean()
    assert abs(share - q) <= 5 * np.sqrt(q * (1 - q) / 2000)


@kinds
def test_a_seed_repeats_the_fit(kind):
    """The same random_state gives the same salt, policy and decisions, and a pickled object decides alike."""
    table, y = make_people(150, seed=7)
    one, other = fitted(table, y, kind), fitted(table, y, kind)
    assert one.policy_.salt == other.policy_.salt
    assert (one.predict(table) == other.predict(table)).all()
    assert (one.predict_proba(table) == other.predict_proba(table)).all()
    again = pickle.loads(pickle.dumps(one))
    assert (again.predict(table) == one.predict(table)).all()


def test_a_fitted_models_batches_are_alike():
    """With a real model, a tree, single rows are decided as in the whole table by every kind of policy."""
    table, y = make_people(400, seed=8)
    features = ["p1", "loan", "wealth"]
    model = FrozenEstimator(DecisionTreeClassifier(max_depth=4, random_state=0).fit(table[features], y))
    for kind in KINDS:
        fair = FairClassifier(
            model,
            happiness="equalized_odds",
            gap=0.02,
            policy=KINDS[kind],
            sensitive_features="group",
            random_state=0,
            key="id",
        ).fit(table, y)
        whole = fair.predict_proba(table)
        single = np.concatenate([fair.predict_proba(table.iloc[i : i + 1]) for i in range(12)])
        assert (single == whole[:12]).all(), kind


# ---------------------------------------------------------------------------------------------------------
# Files


def scores_of(policy, table, n_classes=2):
    """What the policy is applied to."""
    score = proba_of(table, n_classes)
    is_label = getattr(getattr(policy, "signal", None), "kind", "") == "label"
    return score.argmax(axis=1) if is_label else score


HAPPINESS = {
    "criteria": ("equalized_odds", None),
    "two criteria": (["statistical_parity", "overall_accuracy", "predictive_equality"], None),
    "function": (funding, funding),
    "functions": (
        {"cash": funding, "ease": relief, "score": "equal_opportunity"},
        {"cash": funding, "ease": relief},
    ),
    "among": (
        Happiness(funding, among=rich, name="cash", unit="$", bounds=(0, 60)),
        Happiness(funding, among=rich, name="cash", unit="$", bounds=(0, 60)),
    ),
}


@kinds
@pytest.mark.parametrize("name", HAPPINESS)
def test_files_come_back(kind, name):
    """Every kind of policy, whatever its happiness, comes back from JSON deciding and saying the same."""
    table, y = make_people(250, seed=9)
    happiness, functions = HAPPINESS[name]
    fair = fitted(table, y, kind, happiness=happiness, gap=0.1)
    policy = fair.policy_
    text = policy.to_json()
    back = Policy.from_json(text, happiness=functions)
    assert type(back) is type(policy)
    assert back.to_json() == text
    new, _ = make_people(120, seed=10)
    scores, group = scores_of(policy, new), new["group"]
    assert (back.probabilities(scores, group, x=new) == policy.probabilities(scores, group, x=new)).all()
    keys = new["id"]
    assert (back.decide(scores, group, keys, x=new) == policy.decide(scores, group, keys, x=new)).all()
    assert back.sentences() == policy.sentences()
    assert (back.loss, back.gaps, back.means, back.prices) == (
        policy.loss,
        policy.gaps,
        policy.means,
        policy.prices,
    )
    assert (fair.predict_proba(new) == back.probabilities(scores, group, x=new)).all()


@pytest.mark.parametrize("happiness", [None, "equalized_odds", {"other": funding}, [relief]])
def test_a_python_happiness_must_be_given(happiness):
    """An individual policy of a Python function does not load without it; the error names it and says how."""
    table, y = make_people(120, seed=9)
    text = fitted(table, y, "individual", happiness={"cash": funding}).policy_.to_json()
    with pytest.raises(PolicyFileError, match="'cash'") as caught:
        Policy.from_json(text, happiness=happiness)
    assert "happiness=" in caught.value.remedy
    assert isinstance(Policy.from_json(text, happiness={"cash": funding}), Policy)


def test_a_python_loss_must_be_given():
    """The same for a loss that is a function; a matrix is in the file."""
    table, y = make_people(120, seed=9)
    policy = fitted(table, y, "individual", happiness="statistical_parity", gap=0.1, loss=regret).policy_
    with pytest.raises(PolicyFileError, match="regret") as caught:
        Policy.from_json(policy.to_json())
    assert "loss=" in caught.value.remedy
    back = Policy.from_json(policy.to_json(), loss=regret)
    scores = proba_of(table, 2)
    assert (
        back.probabilities(scores, table["group"], x=table)
        == policy.probabilities(scores, table["group"], x=table)
    ).all()
    matrix = [[0.0, 1.0], [5.0, 0.0]]
    policy = fitted(table, y, "individual", happiness="statistical_parity", gap=0.1, loss=matrix).policy_
    back = Policy.from_json(policy.to_json())
    assert (
        back.probabilities(scores, table["group"], x=table)
        == policy.probabilities(scores, table["group"], x=table)
    ).all()


def test_a_file_through_the_disk(tmp_path):
    """Saving and loading do the same, functions included."""
    table, y = make_people(120, seed=9)
    policy = fitted(table, y, "individual").policy_
    policy.save(tmp_path / "policy.json")
    assert load(tmp_path / "policy.json", happiness=funding).to_json() == policy.to_json()
    with pytest.raises(PolicyFileError):
        load(tmp_path / "policy.json")


def test_the_file_holds_nobody():
    """No person's loan, score or name is in the file: only curves, weights and sums."""
    table, y = make_people(200, seed=9)
    for kind in KINDS:
        text = fitted(table, y, kind, key="id").policy_.to_json()
        assert "person" not in text
        assert not any(repr(p) in text for p in table["wealth"].tolist())


INDIVIDUAL = {
    "a share below zero": put("share", 0, 0, -0.5),
    "shares that sum to two": put("share", 0, 0, 2.0),
    "a group without shares": lambda content: content["share"].pop(),
    "a policy without weights": lambda content: content["kappa"].pop(),
    "a weight that is infinite": put("kappa", 0, 0, 0, float("inf")),
    "a loss weighted below zero": put("alpha", 0, -1.0),
    "a loss weight that is text": put("alpha", 0, "much"),
    "no calibration": put("calibration", []),
    "a group without calibration": lambda content: content["calibration"].pop(),
    "a class without calibration": lambda content: [curves.pop() for curves in content["calibration"]],
    "a calibration above one": put("calibration", 0, 1, [[0.0, 1.0], [0.0, 1.5]]),
    "a calibration that falls": put("calibration", 0, 1, [[0.0, 1.0], [1.0, 0.0]]),
    "a calibration out of order": put("calibration", 0, 1, [[1.0, 0.0], [0.0, 1.0]]),
    "a calibration at infinity": put("calibration", 0, 1, [[0.0, float("inf")], [0.0, 1.0]]),
    "a calibration without knots": put("calibration", 0, 1, [[], []]),
    "a calibration of unequal halves": put("calibration", 0, 1, [[0.0, 0.5, 1.0], [0.0, 1.0]]),
    "an origin that is infinite": put("origin", 0, float("inf")),
    "fewer functions than measures": lambda content: content["functions"].pop(),
    "fewer measures than functions": lambda content: content["measures"].pop(),
    "a decision that is no class": put("functions", 0, "decided", [17]),
    "a label that is no class": put("functions", 0, "label", [17, True]),
    "a cost matrix of one row": put("loss_function", [[0.0, 1.0]]),
    "a cost that is a number": put("loss_function", 5),
    "passes that are text": put("search", "passes", "many"),
    "a duality gap that is infinite": put("search", "duality_gap", float("inf")),
    "expected gaps that are a number": put("search", "plug_in_gaps", 7),
    "no search": lambda content: content.pop("search"),
    "another kind": put("policy", "kind", "oracle"),
}


@pytest.mark.parametrize("change", INDIVIDUAL)
def test_a_tampered_individual_policy_is_refused(change):
    """A file whose parts do not fit together is refused as no policy file, though its checksum is right."""
    table, y = make_people(200, seed=11)
    text = fitted(table, y, "individual", happiness="equalized_odds").policy_.to_json()
    assert Policy.from_json(tampered(text, lambda content: None)).to_json() == text
    with pytest.raises(PolicyFileError):
        Policy.from_json(tampered(text, INDIVIDUAL[change]))


def move_cut(content):
    """Take the boundary of 0.5 out of the cuts."""
    cuts = content["policy"]["cuts"]
    place = cuts.index(2049)
    cuts[place] = next(cut for cut in itertools.count(cuts[place - 1] + 1) if cut not in (2049, *cuts))
    cuts.sort()


SCORE = {
    "a cut beyond the last bin": lambda content: content["policy"]["cuts"].__setitem__(-1, 10_000),
    "a cut that is a fraction": put("policy", "cuts", 0, 1.5),
    "cuts out of order": lambda content: content["policy"]["cuts"].reverse(),
    "a cut fewer": lambda content: content["policy"]["cuts"].pop(),
    "a boundary beyond one": put("policy", "boundary", 2.0),
    "a boundary that is text": put("policy", "boundary", "half"),
    "a boundary that is infinite": put("policy", "boundary", float("inf")),
    "a boundary that is no cut": move_cut,
    "an order that is text": put("policy", "monotone", "maybe"),
    "probabilities that fall": lambda content: [line.reverse() for line in content["q"]],
    "probabilities beyond one": put("q", 0, 0, [1.5, -0.5]),
    "mass below zero": put("mass", 0, 0, -1.0),
}


@pytest.mark.parametrize("change", SCORE)
def test_a_tampered_score_policy_is_refused(change):
    """The same for score bins."""
    table, y = make_people(200, seed=11)
    text = fitted(table, y, "score", happiness="equalized_odds").policy_.to_json()
    assert Policy.from_json(tampered(text, lambda content: None)).to_json() == text
    with pytest.raises(PolicyFileError):
        Policy.from_json(tampered(text, SCORE[change]))


def test_a_changed_number_without_its_checksum_is_refused():
    """Without the checksum that belongs to it, any change is seen."""
    table, y = make_people(120, seed=11)
    content = json.loads(fitted(table, y, "individual", happiness="equalized_odds").policy_.to_json())
    content["kappa"][0][0][0] += 1e-9
    with pytest.raises(PolicyFileError, match="checksum"):
        Policy.from_json(json.dumps(content))


@pytest.mark.parametrize("kind", ["score", "free score", "label", "soft-label"])
def test_blind_policies_come_back_blind(kind):
    """A policy that does not see the group comes back from a file without asking for it."""
    table, y = make_people(250, seed=12)
    policy = fitted(table, y, kind, sees_group=False, gap=2.0).policy_
    back = Policy.from_json(policy.to_json())
    assert back.sees_group is False
    scores = scores_of(policy, table)
    assert (back.probabilities(scores) == policy.probabilities(scores, table["group"])).all()
    assert back.sentences() == policy.sentences()
