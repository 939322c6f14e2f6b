"""Beside an audit: every group loses, nothing to repair, rows that were fitted on; the same sentences everywhere."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

from felicific import Budget, FairClassifier, Floor, Happiness, Policy, audit, compare, load
from felicific.exceptions import FittedRowsWarning

FUNDING = Happiness("decision * loan", name="funding", unit="$")
ASKED = {"happiness": FUNDING, "sensitive_features": "sex"}
BOUNDED = ASKED | {"happiness": Happiness("decision * loan", name="funding", bounds=(0, 1e5))}


def make_loans(n, seed):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    skill = rng.normal(size=n) + 0.7 * (sex == "m")
    y = (rng.random(n) < 1 / (1 + np.exp(-skill))).astype(int)
    X = pd.DataFrame({"skill": skill, "loan": rng.integers(50, 300, n) * 100.0, "sex": sex})
    return X, y


@pytest.fixture(scope="module")
def loans():
    """A model, rows to fit a policy on, and others."""
    (X, y), (new, truth) = make_loans(800, 1), make_loans(900, 2)
    columns = ["skill", "loan"]
    others, labels = make_loans(500, 0)
    model = GaussianNB().fit(others[columns], labels)
    return Bunch(model=FrozenEstimator(model), X=X, y=y, new=new, truth=truth, columns=columns)


def fitted(loans, X=None, **settings):
    settings = ASKED | {"gap": 500.0, "random_state": 0} | settings
    return FairClassifier(loans.model, **settings).fit(loans.X if X is None else X, loans.y)


def poorer(loans, **settings):
    """A policy under which less money is lent to everybody."""
    return fitted(loans, constraints=[Budget("funding", at_most=4000)], **settings)


def own_means(loans, X):
    """What the model's own decisions do, by hand."""
    funding = loans.model.predict(X[loans.columns]) * X["loan"]
    return [float(funding[X["sex"] == group].mean()) for group in ("f", "m")]


def losing(texts):
    found = [text for text in texts if text.startswith("Every group loses: ")]
    assert len(found) <= 1
    return found[0] if found else ""


# ---------------------------------------------------------------------------------------------------------
# Every group loses


@pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")
def test_every_output_says_that_every_group_loses(loans, tmp_path):
    """Fit, its file, an audit, a comparison and the report say it, of their own people; if it is not so none does."""
    fair = poorer(loans)
    said = losing(fair.policy_.sentences())
    for was in own_means(loans, loans.X):
        assert f"from {FUNDING.measure.quantity(was)} to " in said
    fair.policy_.save(tmp_path / "policy.json")
    assert said in str(load(tmp_path / "policy.json"))
    found = audit(fair, loans.new, loans.truth)
    noted = losing(found.notes)
    assert noted in str(found)
    baseline = audit(loans.model, loans.new, loans.truth, **ASKED)
    compared = losing(compare(baseline, found).remarks)
    for was, now in zip(own_means(loans, loans.new), found.means["funding"].values(), strict=True):
        for text in (noted, compared):
            quantities = [FUNDING.measure.quantity(number) for number in (was, now)]
            assert f"from {quantities[0]} to {quantities[1]} in group" in text
    page = fair.report(loans.new, loans.truth)
    remedy = " Add a floor of 'funding' at its baseline, or let the policy see more."
    assert page.verdict.headline == "It shrinks the gap by leveling everybody down."
    assert page.verdict.headline in page.to_html()
    assert said.endswith(remedy)
    assert noted.endswith(remedy)
    kinder = fitted(loans, constraints=[Floor("funding", "baseline", groups=["f"])])
    assert not losing(kinder.policy_.sentences())
    assert not losing(audit(kinder, loans.new, loans.truth).notes)
    assert "everybody down" not in str(kinder.report(loans.new, loans.truth))


def test_a_policy_in_a_table_is_compared_too(loans):
    """Also a Policy by the columns of its scores, in memory or on an engine, and with a baseline at the fit."""
    import polars as pl

    table = loans.X.assign(p=loans.model.predict_proba(loans.X[loans.columns])[:, 1], y=loans.y, now=1)
    named = ASKED | {"score": "p", "y": "y"}
    policy = solved(table, gap=500.0, constraints=[Budget("funding", at_most=4000)], **named)
    new = loans.new.assign(p=loans.model.predict_proba(loans.new[loans.columns])[:, 1], y=loans.truth)
    here, there = (audit(policy, rows, **named) for rows in (new, pl.from_pandas(new).lazy()))
    assert losing(here.notes)
    assert here.notes == there.notes
    everybody = solved(table, gap=500.0, baseline="now", **named)
    means = table.groupby("sex")["loan"].mean()
    said = losing(everybody.sentences())
    assert all(f"from {FUNDING.measure.quantity(mean)} to" in said for mean in means)


def test_shown_is_told_from_seen(loans):
    """A comparison says 'shown' if every group's interval lies below 0, and otherwise that it is seen on these rows."""
    rng = np.random.default_rng(0)
    X, y = loans.new, loans.truth
    approved = np.ones(len(y), dtype=int)
    for lost, shown in ((0.3, True), (0.004, False)):
        fewer = approved.copy()
        for group in ("f", "m"):
            rows = np.flatnonzero(X["sex"] == group)
            fewer[rng.choice(rows, round(lost * len(rows)), replace=False)] = 0
        change = compare(*(audit(d, X, y, decisions=[0, 1], **ASKED) for d in (approved, fewer)))
        assert all(mean.high < 0 for mean in change["funding"].means.values()) == shown
        known = (
            "shown of people like these with confidence 0.95" if shown else "not shown of people like these"
        )
        assert known in losing(change.remarks)
        assert losing(change.remarks) in str(change)
        assert losing(change.remarks) in json.dumps(change.to_dict(), ensure_ascii=False)


# ---------------------------------------------------------------------------------------------------------
# Nothing to repair


def test_nothing_to_repair(loans):
    """Every output says so when the baseline's gap is at most what was asked for, and not when it is more."""
    table = loans.X
    was = own_means(loans, table)
    gap = abs(was[0] - was[1])
    for asked, nothing in ((gap * 1.01, True), (gap * 0.99, False)):
        fair = fitted(loans, gap=asked)
        said = [text for text in fair.policy_.sentences() if text.startswith("Nothing to repair: ")]
        assert len(said) == nothing
        asked = {"gap": 9e4 if nothing else 1.0} | BOUNDED
        found = audit(fair, loans.new, loans.truth, **asked)
        noted = [text for text in found.notes if text.startswith("Nothing to repair: ")]
        assert len(noted) == nothing
        baseline = audit(loans.model, loans.new, loans.truth, **asked)
        assert any("shown of people like these" in note for note in baseline.notes) == nothing
        remarks = compare(baseline, found).remarks
        said = "Nothing to repair: before, on these rows (shown of people like these with confidence 0.95), the gap of "
        assert any(text.startswith(said) for text in remarks) == nothing
    assert not any("Nothing to repair" in text for text in fitted(loans, gap={}).policy_.sentences())


# ---------------------------------------------------------------------------------------------------------
# Rows that were fitted on


@pytest.mark.parametrize("policy", ["score", "label", "soft-label", "individual"])
@pytest.mark.parametrize("blind", [False, True])
def test_audits_of_the_fitted_rows_warn(loans, policy, blind):
    """Of every kind of policy; in any order; audits of others, and of rows held out for a test, do not."""
    X = loans.X[[*loans.columns, "sex"]]
    fair = fitted(loans, policy=policy, sees_group=not blind, happiness="statistical_parity", gap=0.2)
    order = np.random.default_rng(0).permutation(len(X))
    for rows in (np.arange(len(X)), order, order[:200]):
        with pytest.warns(FittedRowsWarning, match="the intervals do not speak of other people"):
            found = audit(fair, X.iloc[rows], loans.y[rows])
        assert found.notes[0].startswith("These are rows that the policy was fitted on")
        out_of_fold = blind and policy == "individual"
        assert ("out of fold" in found.notes[0]) == out_of_fold
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedRowsWarning)
        assert not any("fitted on" in note for note in audit(fair, loans.new, loans.truth).notes)


def test_moved_recalibrated_and_wrapped_classifiers_remember_their_rows(loans):
    """Also at another place of the frontier; those recalibrated for are noted; a pipeline sees its own rows."""
    fair = fitted(loans)
    with pytest.warns(FittedRowsWarning):
        audit(fair.at(gap=800.0), loans.X, loans.y)
    again = fair.recalibrate(loans.new)
    found = audit(again, loans.new, loans.truth)
    assert found.notes[0].startswith("These are rows that it was recalibrated for")
    with pytest.warns(FittedRowsWarning):
        audit(again, loans.X, loans.y)
    inner = FairClassifier(GaussianNB(), happiness="statistical_parity", gap=0.1, random_state=0)
    pipe = make_pipeline(StandardScaler(), inner)
    groups = {"fairclassifier__sensitive_features": loans.X["sex"].to_numpy()}
    pipe.fit(loans.X[loans.columns], loans.y, **groups)
    with pytest.warns(FittedRowsWarning, match="out of fold"):
        audit(pipe, loans.X[loans.columns], loans.y, sensitive_features=loans.X["sex"].to_numpy())


def test_bands_and_reports_of_the_fitted_rows_warn(loans):
    """What has intervals says that they do not speak of others."""
    fair = fitted(loans)
    with pytest.warns(FittedRowsWarning):
        fair.frontier_on(loans.X, loans.y, confidence=0.95)
    with pytest.warns(FittedRowsWarning):
        page = fair.report(loans.X, loans.y).to_html()
    assert "rows that the policy was fitted on" in page


def test_a_safe_fit_held_rows_out(loans):
    """Those were not fitted on: of all the rows about half were."""
    fair = fitted(loans, gap=4000.0, confidence=0.9)
    with pytest.warns(
        FittedRowsWarning, match="^About [45][0-9]% of these rows are rows that the policy was fitted on"
    ):
        audit(fair, loans.X, loans.y)


def test_a_policy_recognises_its_rows_by_what_it_states(loans):
    """A policy's file holds nobody's row; the same means with it and without it give its own rows away."""
    table = loans.X.assign(p=loans.model.predict_proba(loans.X[loans.columns])[:, 1], y=loans.y)
    named = ASKED | {"score": "p", "y": "y"}
    policy = Policy.from_json(solved(table, gap=500.0, **named).to_json())
    with pytest.warns(FittedRowsWarning):
        audit(policy, table, **named)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FittedRowsWarning)
        audit(policy, table.iloc[1:], **named)


# ---------------------------------------------------------------------------------------------------------
# Out of fold


def test_numbers_out_of_fold_are_called_so(loans):
    """What is stated of fitted rows is not what predict_proba gives there, and every output says why."""
    settings = {"policy": "individual", "sees_group": False}
    others, labels = make_loans(500, 0)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(others[loans.columns], labels)
    fair = fitted(Bunch(**loans | {"model": FrozenEstimator(tree)}), gap=0.0, **settings)
    happy = fair.predict_proba(loans.X)[:, 1] * loans.X["loan"]
    here = abs(happy[loans.X["sex"] == "f"].mean() - happy[loans.X["sex"] == "m"].mean())
    assert abs(here - fair.gaps_["funding"]) > 50
    said = "These numbers are out of fold: everybody is decided on by a model that was not fitted on them"
    for policy in (fair.policy_, fair.at(gap=800.0).policy_, Policy.from_json(fair.policy_.to_json())):
        assert said in str(policy)
    assert said in fair.report(loans.new, loans.truth).to_html()
    assert said not in str(fitted(loans).policy_)
    unfrozen = FairClassifier(GaussianNB(), happiness="statistical_parity", gap=0.02, random_state=0)
    unfrozen.fit(loans.X[loans.columns], loans.y, sensitive_features=loans.X["sex"].to_numpy())
    assert said in str(unfrozen.policy_)
    assert said in str(unfrozen.frontier_.at(gap=0.1))
    assert said not in str(fair.recalibrate(loans.new).policy_)


# ---------------------------------------------------------------------------------------------------------
# Small words


def test_few_people_are_no_large_sample():
    """Below 30 people the words of the method say what they rest on; from 30 on they say large sample."""
    for n in (5, 29, 30, 200):
        loan, d = np.random.default_rng(0).normal(size=2 * n), np.arange(2 * n) // 2 % 2
        people = {"sex": ["f", "m"] * n, "loan": loan, "d": d}
        part = audit("d", people, happiness="decision + loan", sensitive_features="sex").measures[0]
        for interval in (*part.means.values(), part.gap):
            assert ("large sample" in interval.method) == (n >= 30)
            assert ("few people" in interval.method) == (n < 30)
    assert replace(part.gap, n=3.0).method.endswith("(few people: right for nearly normal values only)")


def test_tiny_p_values_are_not_spelled_out():
    """A p-value of 8e-95 reads below 0.001; one of 0.03 is written."""
    rng = np.random.default_rng(0)
    people = {"sex": ["f", "m"] * 2000, "d": np.tile([0, 1], 2000) ^ (rng.random(4000) < 0.1)}
    found = audit("d", people, happiness="decision", sensitive_features="sex", gap=0.1)
    assert found.measures[0].test.p_value <= 1e-6  # no smaller one is looked for
    assert "p-value of at most this below 0.001, of more 1)" in str(found)
    assert "e-" not in str(found)
