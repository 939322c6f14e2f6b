"""Recalibrating on people without labels: nothing changes on the old ones, the gap is met on the new ones."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import fair_classifier, name_of
from hypothesis import given
from hypothesis import strategies as st
from oracles_policies import (
    Asked,
    Told,
    cells_of,
    codes,
    least_loss,
    make_people,
    outcome_of,
    person_units,
    proba_of,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from felicific import Budget, FairClassifier, Floor, Happiness, Individual, Policy, Score, aggregate
from felicific._program.reweighted import reweighted
from felicific.exceptions import FittedRowsWarning, GroupError

CELLS = [Score(bins=40), Score(bins=9, monotone=False), "label", "soft-label"]
EVERY = [*CELLS, "individual", Individual("none")]


def funding(decision, x):
    return decision * x["loan"]


def relief(decision, x, y):
    return np.where(y == decision, 0.0, -1.0) * x["loan"]


def rich(x):
    return x["wealth"] > 0


def fitted(table, y, n_classes=2, **options):
    options = {"happiness": funding, "sensitive_features": "group", "random_state": 0} | options
    return fair_classifier(FrozenEstimator(Told(n_classes).fit(table, y)), **options).fit(table, y)


def brought(fair):
    """How each measure was brought to new people, by its name."""
    return dict(note[1:].split("': ", 1) for note in fair._notes if note.startswith("'"))


def gap_of(decided, table, among=None):
    """The gap of funding under decision probabilities, person by person with exact sums."""
    counted = np.ones(len(table), bool) if among is None else np.asarray(among)
    means = []
    for z in sorted(set(table["group"])):
        mine = np.flatnonzero((table["group"].to_numpy() == z) & counted)
        happy = math.fsum(
            decided[i, d] * d * table["loan"].iloc[i] for i in mine for d in range(decided.shape[1])
        )
        means.append(happy / len(mine))
    return max(means) - min(means), max(map(abs, means))


# ---------------------------------------------------------------------------------------------------------
# On the people it was fitted on


@pytest.mark.parametrize("policy", CELLS, ids=str)
@pytest.mark.parametrize(
    "happiness", ["equalized_odds", funding, [funding, relief]], ids=["odds", "funding", "both"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fitted_people_change_nothing(policy, happiness, n_classes):
    """Recalibrated on the rows it was fitted on, a policy, its loss and its gaps stay what they were."""
    table, y = make_people(500, n_classes, seed=1)
    gap = 0.01 if happiness == "equalized_odds" else 0.5
    fair = fitted(table, y, n_classes, happiness=happiness, gap=gap, policy=policy)
    again = fair.recalibrate(table)
    assert np.abs(again.policy_.q - fair.policy_.q).max() <= 1e-9
    assert again.loss_ == pytest.approx(fair.loss_, abs=1e-9)
    assert again.gaps_ == pytest.approx(fair.gaps_, abs=1e-9)
    assert again.share_randomized_ == fair.share_randomized_
    assert (again.predict(table) == fair.predict(table)).all()


@pytest.mark.parametrize("happiness", [funding, "equalized_odds", {"ease": relief}], ids=name_of)
def test_nothing_changes_for_the_fitted_people(happiness):
    """Recalibrating an individual policy on the rows it was fitted on changes nothing, whatever it looks at."""
    table, y = make_people(150, seed=2)
    fair = fitted(table, y, happiness=happiness, gap=0.1, policy="individual")
    again = fair.recalibrate(table)
    assert again.policy_ is fair.policy_
    assert again.certificate_ is None
    assert (again.loss_, again.gaps_, again.share_randomized_) == (
        fair.loss_,
        fair.gaps_,
        fair.share_randomized_,
    )
    assert (again.predict(table) == fair.predict(table)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fitted_people_under_an_individual_policy(n_classes):
    """Recalibrating on the fitted rows changes nothing; in another order their labels are not known any more.

    The mixture is then optimal for expected losses: the optimum of the full program.
    """
    table, y = make_people(90, n_classes, seed=2)
    fair = fitted(table, y, n_classes, gap=0.5, policy=Individual("none"))
    same = fair.recalibrate(table)
    assert same.policy_ is fair.policy_
    assert "unchanged" in brought(same)["funding"]
    table = table.iloc[::-1]
    again = fair.recalibrate(table)
    assert again.recalibrate(table.iloc[::-1]).policy_ is not again.policy_
    assert again.gaps_["funding"] == pytest.approx(fair.gaps_["funding"], abs=1e-8)
    assert again.loss_ == again.policy_.search.plug_in_loss
    assert again.loss_ <= fair.policy_.search.plug_in_loss + 1e-9
    value = (np.arange(n_classes) * table["loan"].to_numpy()[:, None])[:, :, None, None]
    units = person_units(
        1 - proba_of(table, n_classes),
        value,
        np.ones((len(y), 1, 1)),
        np.ones(len(y)),
        codes(table["group"]),
        2,
    )
    assert again.loss_ == pytest.approx(least_loss(units, Asked({0: 0.5})), abs=1e-7)


def test_a_recalibrated_classifier_has_a_report():
    """The page for the person who signs can be made without a certificate too."""
    table, y = make_people(300, seed=2)
    new, labels = make_people(300, seed=3)
    again = fitted(table, y).recalibrate(new)
    assert again.certificate_ is None
    assert again.report(new, labels).to_dict()


def test_an_individual_policy_on_its_own_people_has_a_report():
    """Also a classifier that recalibrating left unchanged has a report, which says that nothing is promised."""
    table, y = make_people(120, 2, seed=1)
    same = fitted(table, y, policy="individual").recalibrate(table)
    with pytest.warns(FittedRowsWarning):
        page = same.report(table, y).to_html()
    assert "recalibrated on people without labels" in page


def test_moving_along_the_frontier_closes_no_other_gap():
    """After a move, recalibrating closes the gaps that were closed and no others."""
    table, y = make_people(400, 2, seed=1)
    fair = fitted(table, y, happiness=[funding, relief], gap={"funding": 1.0}, change_cost=0).at(gap=0.5)
    moved = fair.recalibrate(table)
    assert moved.gaps_["funding"] <= 0.5 + 1e-9
    assert moved.loss_ == pytest.approx(fair.loss_, abs=1e-9)
    assert moved.gaps_["relief"] > 0.5


def test_recalibrating_twice_changes_nothing_more():
    """An individual policy that was recalibrated is recalibrated on the same rows to itself."""
    table, y = make_people(300, seed=2)
    new, _ = make_people(300, seed=3)
    once = fitted(table, y, policy="individual").recalibrate(new)
    twice = once.recalibrate(new)
    assert twice.loss_ == pytest.approx(once.loss_, abs=1e-9)
    assert twice.gaps_ == pytest.approx(once.gaps_, abs=1e-9)
    assert np.abs(twice.predict_proba(new) - once.predict_proba(new)).max() <= 1e-9


@pytest.mark.parametrize("policy", [*CELLS, "individual"], ids=str)
def test_a_detour_over_other_people_leaves_no_trace(policy):
    """Recalibrated on some people and then on others, the labelled rows speak as if only on the latter.

    The first stop leaves many cells without people; what the labels said about those cells is not forgotten.
    """
    table, y = make_people(600, seed=4)
    few, _ = make_people(25, seed=5)
    new, _ = make_people(400, seed=6)
    fair = fitted(table, y, policy=policy, happiness=[funding, relief], gap={"funding": 0.0, "relief": 4.0})
    direct, detour = fair.recalibrate(new), fair.recalibrate(few).recalibrate(new)
    assert detour.loss_ == pytest.approx(direct.loss_, abs=1e-9)
    assert detour.gaps_ == pytest.approx(direct.gaps_, abs=1e-9)


@pytest.mark.parametrize("policy", ["score", Score(bins=4)])
def test_rounded_decisions_are_stated_as_they_are(policy):
    """With randomize=False a recalibrated object states what the rounded decisions do, as a fitted one does."""
    table, y = make_people(300, seed=7)
    fair = fitted(table, y, policy=policy, randomize=False)
    again = fair.recalibrate(table)
    assert (again.predict_proba(table) == fair.predict_proba(table)).all()
    gap, size = gap_of(again.predict_proba(table), table)
    assert gap > 1e-3 * size
    assert fair.gaps_["funding"] == pytest.approx(gap, rel=1e-9)
    assert again.gaps_["funding"] == pytest.approx(gap, rel=1e-9)
    assert again.policy_.gaps == again.gaps_
    assert again.loss_ == pytest.approx(fair.loss_, abs=1e-9)


def test_rounded_individual_decisions_are_stated_as_they_are():
    """The same for an individual policy, whose gap of a happiness that ignores y needs no expectation."""
    table, y = make_people(300, seed=7)
    new, _ = make_people(250, seed=8)
    again = fitted(table, y, policy="individual", randomize=False).recalibrate(new)
    decided = again.predict_proba(new)
    assert set(decided.ravel().tolist()) == {0.0, 1.0}
    gap, size = gap_of(decided, new)
    assert gap > 1e-3 * size
    assert again.gaps_["funding"] == pytest.approx(gap, rel=1e-9)


# ---------------------------------------------------------------------------------------------------------
# On new people


@pytest.mark.parametrize("policy", EVERY, ids=str)
@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_is_met_on_the_new_people(policy, n_groups, n_classes):
    """A gap of a happiness that ignores y is 0 on the new rows, counted by hand from predict_proba."""
    table, y = make_people(600, n_classes, n_groups, seed=8)
    new, _ = make_people(350, n_classes, n_groups, seed=9)
    fair = fitted(table, y, n_classes, policy=policy)
    gap, size = gap_of(fair.predict_proba(new), new)
    assert gap > 1e-3 * size
    again = fair.recalibrate(new)
    gap, size = gap_of(again.predict_proba(new), new)
    assert gap <= 1e-9 * size
    assert again.gaps_["funding"] <= 1e-9 * size


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_an_asked_gap_is_reached_on_the_new_people(policy):
    """A positive gap, among some people only, with a floor and a budget, holds on the new rows."""
    table, y = make_people(600, seed=10)
    new, _ = make_people(400, seed=11)
    fair = fitted(
        table,
        y,
        policy=policy,
        happiness=Happiness(funding, among=rich, name="cash"),
        gap=2.0,
        constraints=[Floor("cash", 12.0), Budget("cash", at_most=20.0)],
    )
    again = fair.recalibrate(new)
    decided = again.predict_proba(new)
    counted = (new["wealth"] > 0).to_numpy()
    gap, size = gap_of(decided, new, counted)
    assert gap <= 2.0 + 1e-9 * size
    assert again.gaps_["cash"] == pytest.approx(gap, abs=1e-9 * size)
    happy = decided[:, 1] * new["loan"].to_numpy()
    for z in "ab":
        mine = counted & (new["group"] == z).to_numpy()
        assert happy[mine].mean() >= 12.0 - 1e-8
        assert again.policy_.means["cash"][z] == pytest.approx(happy[mine].mean(), abs=1e-9 * size)
    assert happy[counted].mean() <= 20.0 + 1e-8


def test_recalibration_says_which_it_did():
    """Measures that ignore y are computed on the new people; the others say how else."""
    table, y = make_people(300, seed=12)
    happiness = {"cash": funding, "ease": relief, "hit": "overall_accuracy", "yes": "statistical_parity"}
    exact = {"cash", "yes"}
    for policy in EVERY:
        fair = fitted(table, y, policy=policy, happiness=happiness, gap={})
        said = brought(fair.recalibrate(table.iloc[::-1]))
        assert set(said) == {*exact, "ease", "hit"}
        kept = "expected by calibrated" if "ndividual" in str(policy) else "reweighted from the labelled"
        for name, words in said.items():
            assert words.startswith("computed on the new" if name in exact else kept), (name, words)


def test_a_measure_called_loss_is_not_overwritten():
    """What was done to a measure is said even when it is called "loss"."""
    table, y = make_people(200, seed=12)
    fair = fitted(table, y, happiness={"loss": funding}, gap={})
    assert brought(fair.recalibrate(table))["loss"].startswith("computed on the new")


# ---------------------------------------------------------------------------------------------------------
# Reweighting by hand


def reweighted_by_hand(table, y, new, cell, new_cell, n_cells, runs):
    """Loss (G, S, K), value and among of ``relief`` among the rich, cell by cell and person by person.

    A cell without labelled people takes the mean of the nearest cells of its run that have some: of its own
    group, failing that of all groups.
    """
    groups = sorted(set(table["group"]))
    rows = list(table.itertuples(index=False))
    found = (
        np.zeros((len(groups), n_cells, 2)),
        np.zeros((len(groups), n_cells, 2)),
        np.zeros((len(groups), n_cells)),
    )
    for z, group in enumerate(groups):
        for run in runs:
            for s in run:
                source = []
                for known in ({group}, set(groups)):
                    held = [
                        t
                        for t in run
                        if any(cell[i] == t and rows[i].group in known for i in range(len(rows)))
                    ]
                    near = [t for t in held if abs(t - s) == min(abs(u - s) for u in held)]
                    source = [i for i in range(len(rows)) if cell[i] in near and rows[i].group in known]
                    if source:
                        break
                if not source:
                    source = [i for i in range(len(rows)) if rows[i].group == group]
                mass = sum(new_cell[i] == s and new["group"].iloc[i] == group for i in range(len(new)))
                for d in range(2):
                    found[0][z, s, d] = mass * sum(y[i] != d for i in source) / len(source)
                    happy = sum(-rows[i].loan * (y[i] != d) for i in source if rows[i].wealth > 0)
                    found[1][z, s, d] = mass * happy / len(source)
                found[2][z, s] = mass * sum(rows[i].wealth > 0 for i in source) / len(source)
    return found


@given(st.integers(0, 10**6), st.sampled_from([20, 60, 250]), st.sampled_from([2, 4]))
def test_measures_that_look_at_y_are_reweighted(seed, n, n_groups):
    """Loss and happiness of the new people are the labelled means per cell, borrowed from neighbours if empty."""
    table, y = make_people(n, 2, n_groups, seed=seed)
    new, _ = make_people(80, 2, n_groups, seed=seed + 1)
    table.loc[table.groupby("group").head(1).index, "wealth"] = 1.0
    fair = fitted(
        table,
        y,
        policy=Score(bins=8),
        happiness=[Happiness(relief, among=rich, name="ease"), funding],
        gap={"funding": 1e9},
    )
    again = fair.recalibrate(new)
    signal = fair.aggregates_.signal
    S = len(signal.cuts) + 1
    cell, new_cell = (cells_of(proba_of(people, 2), signal.cuts, signal.boundary) for people in (table, new))
    loss, value, among = reweighted_by_hand(table, y, new, cell, new_cell, S, [range(S)])
    found = again.aggregates_
    assert found.signal == signal
    assert np.abs(found.loss - loss).max() <= 1e-9
    assert np.abs(found.among[..., 0] - among).max() <= 1e-9
    shifted = found.value[..., 0] + found.origin[0] * found.among[..., 0][:, :, None]
    assert np.abs(shifted - value).max() <= 1e-8
    mass = np.zeros((n_groups, S))
    np.add.at(mass, (codes(new["group"]), new_cell), 1.0)
    assert (found.mass == mass).all()
    assert (found.rows == mass.sum(axis=1)).all()


def test_empty_cells_borrow_from_neighbours_then_groups_then_the_group():
    """By hand: the nearest cells of the group; a run that the group never entered, of everybody; else the group.

    Labels 0, 1, 2. Group "a" was never labelled 1 and nobody 2; every label is a run of its own.
    """
    label = np.array([0, 0, 0, 1, 1, 0])
    group = np.array(["a", "a", "b", "b", "b", "b"])
    y = np.array([0, 1, 0, 1, 2, 0])
    common = {"happiness": "overall_accuracy", "policy": "label", "classes": [0, 1, 2], "groups": ["a", "b"]}
    labelled = aggregate({"i": np.arange(6)}, y=y, predicted=label, sensitive_features=group, **common)
    new = np.repeat([0, 1, 2], 2)
    fresh = aggregate(
        {"i": np.arange(6)},
        y=np.zeros(6, int),
        predicted=new,
        sensitive_features=np.tile(["a", "b"], 3),
        **common,
    )
    found = reweighted(labelled, replace(fresh, measures=()))
    # Errors of deciding 0, 1, 2: group a under label 0 half and half; under 1 borrowed from b; under 2 from all of a.
    assert found.loss[0].tolist() == [[0.5, 0.5, 1.0], [1.0, 0.5, 0.5], [0.5, 0.5, 1.0]]
    assert found.loss[1, 0].tolist() == [0.0, 1.0, 1.0]
    assert found.loss[1, 1].tolist() == [1.0, 0.5, 0.5]
    assert found.loss[1, 2].tolist() == [0.5, 0.75, 0.75]
    assert (found.mass == 1.0).all()


def test_monotone_stays_monotone():
    """After recalibration on few people, with most cells empty, the score still never turns against a person."""
    table, y = make_people(500, 2, 3, seed=13)
    new, _ = make_people(60, 2, 3, seed=14)
    again = fitted(table, y, gap=1.0).recalibrate(new)
    empty = again.policy_.mass == 0
    assert empty.mean() > 0.5
    assert np.diff(again.policy_.q[:, :, 1], axis=1).min() >= -1e-12
    assert again.policy_.q[:, :, 1].max() == 1.0


def test_a_floor_at_the_baseline_is_that_of_the_new_people():
    """A floor at the baseline is met by what the model decides on the new people, not the old ones."""
    table, y = make_people(500, seed=15)
    new, _ = make_people(300, seed=16)
    for policy in EVERY:
        fair = fitted(table, y, policy=policy, gap={}, constraints=[Floor("funding", "baseline")])
        again = fair.recalibrate(new)
        own = (new["p1"] > new["p0"]).to_numpy() * new["loan"].to_numpy()
        for z in "ab":
            mine = (new["group"] == z).to_numpy()
            decided = again.predict_proba(new)[mine, 1] @ new["loan"].to_numpy()[mine] / mine.sum()
            assert decided >= own[mine].mean() - 1e-8


# ---------------------------------------------------------------------------------------------------------
# The object


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_the_original_is_left_alone_and_the_salt_kept(policy):
    """A new object comes back; the old one decides as before, and both draw with the same salt."""
    table, y = make_people(300, seed=17)
    new, _ = make_people(200, seed=18)
    fair = fitted(table, y, policy=policy, key="id")
    before = {name: value for name, value in vars(fair).items() if name.endswith("_")}
    decided, drawn = fair.predict_proba(new), fair.predict(new)
    again = fair.recalibrate(new)
    assert again is not fair
    assert type(again) is FairClassifier
    after = {name: value for name, value in vars(fair).items() if name.endswith("_")}
    assert list(before) == list(after)
    for name, value in before.items():
        assert value is after[name] or value == after[name]
    assert (fair.predict_proba(new) == decided).all()
    assert (fair.predict(new) == drawn).all()
    assert np.abs(again.predict_proba(new) - decided).max() > 1e-6
    assert again.policy_.salt == fair.policy_.salt
    assert again.groups_ == fair.groups_
    assert again.get_params() == fair.get_params()
    assert again.certificate_ is None
    assert not hasattr(clone(again), "policy_")


def test_a_recalibrated_object_states_no_stale_cost_of_blindness():
    """What blindness cost on the labelled rows is not said of the new ones."""
    table, y = make_people(300, seed=17)
    new, _ = make_people(200, seed=18)
    fair = fitted(table, y, sees_group=False, gap=2.0)
    again = fair.recalibrate(new)
    assert again.cost_of_blindness_ is None


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_groups_must_be_those_that_were_fitted(policy):
    """A group that is missing, unknown or null among the new people raises and is named; so does no group."""
    table, y = make_people(300, 2, 3, seed=19)
    fair = fitted(table, y, policy=policy)
    with pytest.raises(GroupError, match="'c' is empty"):
        fair.recalibrate(table[table["group"] != "c"])
    with pytest.raises(GroupError, match="'d'"):
        fair.recalibrate(table.assign(group=table["group"].replace("c", "d")))
    with pytest.raises(GroupError, match="missing"):
        fair.recalibrate(table.assign(group=table["group"].where(table["group"] != "c", None)))
    without = FairClassifier(fair.estimator, gap=0.0, happiness=funding, policy=policy, random_state=0)
    without.fit(table, y, sensitive_features=table["group"])
    with pytest.raises(GroupError):
        without.recalibrate(table)
    again = without.recalibrate(table, sensitive_features=table["group"])
    assert again.gaps_["funding"] <= 1e-8


def test_an_unfitted_object_is_refused():
    """There is nothing to recalibrate before a fit."""
    table, _ = make_people(30)
    with pytest.raises(NotFittedError):
        FairClassifier(FrozenEstimator(Told()), gap=0.0, happiness=funding).recalibrate(table)


@pytest.mark.parametrize("randomize", [True, False])
def test_a_blind_individual_policy(randomize):
    """A policy that decides without the group meets the gap on new people whose groups are known to us."""
    table, y = make_people(400, seed=20)
    new, _ = make_people(500, seed=21)
    model = GaussianNB().fit(table[["p1", "loan", "wealth"]], y)
    fair = fair_classifier(
        FrozenEstimator(model),
        happiness=funding,
        gap=0.5,
        policy="individual",
        sensitive_features="group",
        sees_group=False,
        randomize=randomize,
        random_state=0,
    ).fit(table, y)
    before, _ = gap_of(fair.predict_proba(new), new)
    again = fair.recalibrate(new)
    decided = again.predict_proba(new.drop(columns="group"))
    gap, size = gap_of(decided, new)
    assert again.gaps_["funding"] == pytest.approx(gap, abs=1e-9 * size)
    assert before > 0.6
    if randomize:
        assert gap <= 0.5 + 1e-9 * size
    assert again.cost_of_blindness_ is None


def test_many_batches_are_one():
    """Rows beyond the first batch are summed too: the gap is met on all of 20 000 people."""
    table, y = make_people(2000, seed=21)
    new, _ = make_people(20_000, seed=22)
    for policy in ("score", "individual"):
        again = fitted(table, y, policy=policy).recalibrate(new)
        decided = again.predict_proba(new)
        happy = pd.Series(decided[:, 1] * new["loan"]).groupby(new["group"]).mean()
        assert happy.max() - happy.min() <= 1e-9 * happy.max()


def test_outcome_helper_disagrees_with_wrong_decisions():
    """The counting by hand that these tests rest on tells a fair policy from an unfair one."""
    table, y = make_people(200, seed=23)
    decided = np.column_stack([1 - table["p1"], table["p1"]])
    gap, _ = gap_of(decided, table)
    value = (np.arange(2) * table["loan"].to_numpy()[:, None])[:, :, None]
    everyone = np.ones((200, 1), bool)
    cost = (np.arange(2) != y[:, None]).astype(float)
    loss, _, gaps = outcome_of(decided, cost, value, everyone, np.ones(200), codes(table["group"]), 2)
    assert gaps[0] == pytest.approx(gap, rel=1e-12)
    assert gap > 1.0
    assert loss == pytest.approx((decided * cost).sum() / 200, rel=1e-12)


@pytest.mark.parametrize("policy", ["score", "individual"])
def test_what_looks_at_the_label_names_its_assumption(policy):
    """Of gaps that look at labels nobody has, and of the loss, it is said what they take for granted; of others not."""
    table, y = make_people(400, 2, seed=1)
    new, _ = make_people(300, 2, seed=2)
    fair = fitted(table, y, happiness={"money": funding, "ease": relief}, gap=5.0, policy=policy)
    again = fair.recalibrate(new)
    assumed = "as if p(label given signal, group) had not changed"
    assert assumed not in str(fair.policy_)
    said = [sentence for sentence in again.policy_.sentences() if assumed in sentence]
    assert said == [f"The expectation of 'ease' and the accuracy is made {assumed}."]
    assert assumed in brought(again)["ease"]
    assert brought(again)["money"] == "computed on the new people."
    assert said[0] in str(again.at(gap=6.0).policy_)
    assert said[0] in str(
        Policy.from_json(again.policy_.to_json(), happiness={"money": funding, "ease": relief})
    )
    others, truth = make_people(350, 2, seed=3)
    assert assumed in again.report(others, truth).to_html()
    plain = fitted(table, y, policy=policy, loss=[[0, 2], [1, 0]]).recalibrate(new)
    assert "The expectation of the loss, as far as it looks at the label, is made" in str(plain.policy_)
