"""Criteria by each of their names: what they measure, at every door, and what it is called."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Gap, Policy, Ratio, aggregate, audit, compare, frontier, load, solve
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import function_from_json, function_to_json, resolve_happiness
from felicific.cli import run
from felicific.exceptions import HappinessError

#: What is measured of decisions d and labels y, both 0 or 1: written down a second time.
RATES = {
    "selection rate": lambda d, y: d.mean(),
    "accuracy": lambda d, y: (d == y).mean(),
    "error rate": lambda d, y: (d != y).mean(),
    "true positive rate": lambda d, y: d[y == 1].mean(),
    "false negative rate": lambda d, y: 1 - d[y == 1].mean(),
    "false positive rate": lambda d, y: d[y == 0].mean(),
    "true negative rate": lambda d, y: 1 - d[y == 0].mean(),
    "precision": lambda d, y: y[d == 1].mean(),
    "negative predictive value": lambda d, y: 1 - y[d == 0].mean(),
}

#: Of these people want more.
HOPED_FOR = {"selection rate", "accuracy", "true positive rate", "false positive rate"}

#: Names that fairlearn 0.15 takes as constraints of its ThresholdOptimizer, and has classes for among its reductions.
FAIRLEARN = {
    "selection_rate_parity",
    "demographic_parity",
    "false_positive_rate_parity",
    "false_negative_rate_parity",
    "true_positive_rate_parity",
    "true_negative_rate_parity",
    "equalized_odds",
    "error_rate_parity",
}

#: Two names of which the gaps are the same.
SAME = [
    ("demographic_parity", "statistical_parity"),
    ("selection_rate_parity", "statistical_parity"),
    ("accuracy_parity", "overall_accuracy"),
    ("distributional_parity", "statistical_parity"),
    ("selection_rate", "statistical_parity"),
    ("error_rate_parity", "overall_accuracy"),
    ("true_positive_rate_parity", "equal_opportunity"),
    ("false_negative_rate_parity", "equal_opportunity"),
    ("false_positive_rate_parity", "predictive_equality"),
    ("true_negative_rate_parity", "predictive_equality"),
    ("tpr", "equal_opportunity"),
    ("fpr", "predictive_equality"),
    ("fnr", "equal_opportunity"),
    ("tnr", "predictive_equality"),
]


def people(n=600):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.normal(size=n), "sex": rng.choice(["f", "m"], n), "id": np.arange(n)})
    table["repaid"] = (table.age + (table.sex == "m") + rng.normal(size=n) > 0.5).astype(int)
    table["score"] = 1 / (1 + np.exp(-2 * table.age + 0.4))
    table["approved"] = (table.score > 0.5).astype(int)
    return table


def last(means):
    """The means of the last of the measures: of two decisions the best one."""
    return list(means.values())[-1]


def test_every_name_of_fairlearn_is_a_criterion():
    """What its users write is understood."""
    assert FAIRLEARN | {"equal_opportunity"} <= set(CRITERIA)


@pytest.mark.parametrize(
    "name", sorted({*CRITERIA} - {"distributional_parity"})
)  # of numbers it is of amounts
def test_a_measure_is_the_rate_that_it_is_called(name):
    """An audit by each name shows one measure, or two of equalized odds, as NumPy computes them group by group."""
    table = people()
    found = audit("approved", table, y="repaid", sensitive_features="sex", happiness=name)
    names = [one.measure.name for one in found.measures if not one.measure.name.startswith("counted by")]
    assert names == [*CRITERIA[name].measures]
    assert len(names) == 1 + (name == "equalized_odds")
    for called in names:
        assert found[called].measure.wanted == (called in HOPED_FOR)
        for group, part in table.groupby("sex"):
            rate = RATES[called](part.approved.to_numpy(), part.repaid.to_numpy())
            assert found[called].means[group].estimate == pytest.approx(rate)
    assert len(names) > 1 or found[name] is found[names[0]]


@pytest.mark.parametrize(("name", "own"), SAME)
def test_two_names_give_one_policy(name, own):
    """A name and its equal, or its mirror, lead to the same decisions, loss and gap."""
    table = people()
    about = {"score": "score", "y": "repaid", "sensitive_features": "sex", "gap": 0.02, "random_state": 0}
    ours, theirs = (solved(table, happiness=one, **about) for one in (name, own))
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-12)
    assert list(ours.gaps.values()) == pytest.approx(list(theirs.gaps.values()), abs=1e-9)
    assert np.allclose(ours.q, theirs.q, atol=1e-9)
    assert list(ours.gaps) == [*CRITERIA[name].measures]
    assert any(repr(next(iter(ours.gaps))) in sentence for sentence in ours.sentences())


@pytest.mark.parametrize("name", sorted(FAIRLEARN))
def test_a_name_is_taken_at_every_door(name, tmp_path):
    """FairClassifier, aggregates, solve, frontier, audit, compare, requirements, gaps by name and files know it."""
    table = people()
    about = {"score": "score", "y": "repaid", "sensitive_features": "sex"}
    sums = aggregate(table, happiness=name, **about)
    policy = solve(sums, gap={name: 0.03}, random_state=0)
    assert max(policy.gaps.values()) <= 0.03 + 1e-9
    assert Policy.from_json(policy.to_json()).gaps == policy.gaps
    assert frontier(sums).at(gap=0.03).loss >= policy.loss - 1e-9
    measured = [
        audit(decided, table, y="repaid", sensitive_features="sex", happiness=name)
        for decided in ("approved", "repaid")
    ]
    assert compare(*measured).measures[0].measure.family == CRITERIA[name].name
    beside = solved(
        table, happiness="decision", constraints=[Gap(name, 0.03)], gap=1.0, random_state=0, **about
    )
    assert [*beside.gaps] == ["decision", *CRITERIA[name].measures]
    assert max(beside.gaps[one] for one in CRITERIA[name].measures) <= 0.03 + 1e-9
    model = LogisticRegression().fit(table[["age"]][:200], table.repaid[:200])
    fair = FairClassifier(
        FrozenEstimator(model), happiness=name, gap=0.03, sensitive_features="sex", random_state=0, key="id"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few people cannot hold such a gap on others
        fair.fit(table[200:], table.repaid[200:])
        report = fair.report(table[:200], table.repaid[:200])
    assert max(fair.gaps_.values()) <= 0.03 + 1e-9
    page = report.to_html()
    assert all(measure in page for measure in CRITERIA[name].measures)


def test_a_ratio_may_be_asked_by_name():
    """The four-fifths rule of the rates that everybody calls by another name."""
    table = people()
    about = {"score": "score", "y": "repaid", "sensitive_features": "sex", "random_state": 0}
    policy = solved(
        table, happiness="decision", constraints=[Ratio("true_positive_rate_parity", 0.95)], **about
    )
    means = last(policy.means)
    assert min(means.values()) >= 0.95 * max(means.values()) - 1e-9


@pytest.mark.parametrize(
    "name", ["error_rate_parity", "false_negative_rate_parity", "true_negative_rate_parity"]
)
def test_what_nobody_hopes_for_says_nothing_of_who_gains(name):
    """Of three classes too: the function that a file holds is the same, and nobody is said to want more of it."""
    (one,) = resolve_happiness(name, ["a", "c", "b"])
    assert not one.measure.wanted
    held = json.loads(json.dumps(function_to_json(one)))
    assert function_from_json(one.measure, held, {}) == one
    y = np.array(["a", "b", "c"])
    values = [one.function(decision=d, **({"y": y} if name == "error_rate_parity" else {})) for d in "abc"]
    if name == "error_rate_parity":
        assert np.array_equal(np.stack(values), ~np.eye(3, dtype=bool))
    else:
        assert [bool(value) for value in values] == [True, False, True]
        assert np.array_equal(one.among(y=y), (y == "b") == (name == "false_negative_rate_parity"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("demografic_parity", "demographic_parity"),
        ("demographic_parrity", "demographic_parity"),
        ("true_positiv_rate_parity", "true_positive_rate_parity"),
        ("accuracy_paritty", "accuracy_parity"),
        ("equalised_odds", "equalized_odds"),
        ("error_rates_parity", "error_rate_parity"),
    ],
)
def test_a_misspelt_name_is_put_right(written, meant):
    """The nearest of all names is proposed."""
    with pytest.raises(HappinessError, match=f"Did you mean '{meant}'"):
        resolve_happiness(written, [0, 1])


@pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")
def test_the_command_line_knows_the_names(tmp_path, capsys):
    """``--happiness demographic_parity`` audits and fits."""
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    said = ["--label", "repaid", "--group", "sex", "--happiness", "demographic_parity"]
    assert run(["audit", str(path), "--decision", "approved", *said]) == 0
    assert "selection rate (share)" in capsys.readouterr().out
    out = tmp_path / "policy.json"
    fitted = ["fit", str(path), "--score", "score", "--gap", "0.05", *said, "--seed", "1"]
    assert run([*fitted, "--out", str(out)]) == 0
    assert max(load(out).gaps.values()) <= 0.05 + 1e-9
