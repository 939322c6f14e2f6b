"""Exploration: a chance that everybody keeps; its price, conflicts and files."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import fair_classifier, solved, traced
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import Budget, Exploration, Gap, Policy, Score, WorseOff, aggregate, audit, solve
from felicific._program.aggregates import Aggregates
from felicific._program.master import solve_rows
from felicific._program.solution import check_solution, written_program
from felicific.exceptions import (
    ConstraintError,
    InfeasibleError,
    LotteryWarning,
    PolicyFileError,
    SolverError,
)


def people(n=300, seed=0, classes=2):
    """People of two groups with scores, loans and labels; of three classes, with three probabilities."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    s = rng.normal(size=(n, classes)) + 0.4 * g[:, None] * np.arange(classes)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    columns = {f"p{k}": p[:, k] for k in range(classes)}
    return pd.DataFrame(
        {"g": np.array(["f", "m"])[g], "loan": rng.integers(1, 40, n) / 4, "y": y, "id": np.arange(n)}
        | columns
    )


def roles(table, **more):
    """What the columns are, and happiness that is the loan of those who are decided the last class."""
    classes = [int(name[1:]) for name in table.columns if name[0] == "p"]
    return {
        "score": {k: f"p{k}" for k in classes},
        "y": "y",
        "sensitive_features": "g",
        "happiness": {"got": f"(decision == {classes[-1]}) * loan"},
        "random_state": 0,
    } | more


def probabilities_of(policy, table, **more):
    score = table[[name for name in table.columns if name[0] == "p"]].to_numpy()
    return policy.probabilities(score, table["g"] if policy.sees_group else None, table, **more)


def explored(policy):
    (one,) = policy.explore
    return one


# ---------------------------------------------------------------------------------------------------------
# What it does


KINDS = {
    "score": {"policy": "score"},
    "free": {"policy": Score(monotone=False)},
    "few cells": {"policy": Score(bins=5)},
    "label": {"policy": "label"},
    "soft-label": {"policy": "soft-label"},
    "blind": {"policy": "score", "sees_group": False},
    "individual": {"policy": "individual"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
def test_everybody_keeps_the_chance(kind, classes):
    """Those it was fitted on keep it, and so do people with scores that nobody had."""
    table = people(200, 3, classes)
    table = table[(table["p1"] < 0.3) | (table["p1"] > 0.45)]
    policy = solved(table, **roles(table, gap=0.5, constraints=[Exploration(0.07)], **KINDS[kind]))
    for others in (table, people(3000, 4, classes)):
        probabilities = probabilities_of(policy, others)
        assert probabilities[:, -1].min() >= 0.07 - 1e-15
        assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(probabilities)), abs=1e-12)
    assert policy.reached[f"chance of {classes - 1} at least 0.07"] == pytest.approx(0.07, abs=1e-12)


def test_a_blind_individual_policy_keeps_it_too():
    """Deciding by how likely each group is leaves everybody the chance."""
    table = people(300, 1)
    chances = {"f": 0.3 + 0.4 * (table["g"] == "f"), "m": 0.7 - 0.4 * (table["g"] == "f")}
    table = table.assign(cf=chances["f"], cm=chances["m"])
    told = {"policy": "individual", "sees_group": False, "group_proba": {"f": "cf", "m": "cm"}}
    policy = solved(table, **roles(table, gap=1.0, constraints=[Exploration(0.07)], **told))
    probabilities = probabilities_of(policy, table, group_proba=chances)
    assert probabilities[:, 1].min() == pytest.approx(0.07)


@pytest.mark.parametrize("decision", [0, 1])
@pytest.mark.parametrize("kind", ["score", "free", "individual"])
def test_a_range_of_scores(kind, decision):
    """Within the range everybody keeps the chance; far from it, on the cheap side, nobody has to."""
    table = people(400, 2)
    table = table[(table["p1"] < 0.4) | (table["p1"] > 0.5)]
    one = Exploration(0.1, decision=decision, scores=(0.3, 0.6))
    policy = solved(table, **roles(table, gap={}, constraints=[one], **KINDS[kind]))
    others = people(3000, 5)
    probabilities, inside = (
        probabilities_of(policy, others)[:, decision],
        others["p1"].between(0.3, 0.6).to_numpy(),
    )
    assert probabilities[inside].min() >= 0.1 - 1e-15
    far = others["p1"].to_numpy() < 0.2 if decision == 1 else others["p1"].to_numpy() > 0.7
    assert probabilities[far].min() == 0.0
    if kind == "score":
        chance = probabilities_of(policy, others.sort_values(["g", "p1"]))[:, 1]
        for g in "fm":
            assert (np.diff(chance[np.sort(others["g"].to_numpy()) == g]) >= -1e-12).all()


def test_a_chance_that_costs_nothing_changes_nothing():
    """Where everybody has the chance anyway, the policy stays as it was, and the price is 0."""
    table = people(300, 6)
    asked = roles(table, gap={}, loss=[[0.0, 0.0], [1.0, 0.0]])  # approving everybody is free
    plain, kept = solved(table, **asked), solved(table, **asked, constraints=[Exploration(0.1)])
    if probabilities_of(plain, table)[:, 1].min() >= 0.1:
        assert kept.q.tolist() == plain.q.tolist()
    assert kept.prices["chance of 1 at least 0.1"] == pytest.approx(0.0, abs=1e-12)
    assert kept.loss == pytest.approx(plain.loss, abs=1e-12)


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_nothing_changes_without_it(kind):
    """A policy without Exploration remembers none, and its unconstrained counterpart is the same as one with it."""
    table = people(200, 7)
    asked = roles(table, gap=0.3, **KINDS[kind])
    plain, kept = solved(table, **asked), solved(table, **asked, constraints=[Exploration(0.1)])
    assert plain.explore == ()
    assert not any("chance" in name for name in plain.prices)
    one, other = plain.outcomes["unconstrained"], kept.outcomes["unconstrained"]
    assert other.loss == pytest.approx(one.loss, abs=1e-12)
    assert explored(kept).loss == pytest.approx(kept.loss - plain.loss, abs=1e-12)


# ---------------------------------------------------------------------------------------------------------
# What it costs


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_price_is_what_a_little_more_costs(kind, seed):
    """The price is the slope of the loss in the chance, from both sides, unless there is a kink in between."""
    table, step = people(500, seed), 1e-4
    asked = roles(table, gap=0.4, **KINDS[kind])

    def at(chance):
        return solved(table, **asked, constraints=[Exploration(chance)])

    found, before, after = at(0.05), at(0.05 - step), at(0.05 + step)
    left, right = (found.loss - before.loss) / step, (after.loss - found.loss) / step
    price = found.prices["chance of 1 at least 0.05"]
    assert left * (1 - 1e-3) - 1e-9 <= price <= right * (1 + 1e-3) + 1e-9
    if abs(left - right) < 1e-6:
        assert price == pytest.approx(left, rel=1e-3)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_prices_of_groups_and_scores(kind):
    """Each of several chances has a price of its own, which is its own slope."""
    table, step = people(600, 4), 1e-4
    asked = roles(table, gap=0.4, **KINDS[kind])

    def at(first, second):
        both = [Exploration(first, groups=["f"], scores=(0.0, 0.4)), Exploration(second, decision=0)]
        return solved(table, **asked, constraints=both)

    found = at(0.05, 0.03)
    names = ["chance of 1 at least 0.05 in 'f' for scores from 0 to 0.4", "chance of 0 at least 0.03"]
    slopes = [
        (at(0.05 + step, 0.03).loss - found.loss) / step,
        (at(0.05, 0.03 + step).loss - found.loss) / step,
    ]
    assert [found.prices[name] for name in names] == pytest.approx(slopes, rel=2e-3)


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_who_is_explored_is_counted(kind):
    """The share is that of the people whose chance is just the one that is kept, and a sentence says it."""
    table = people(400, 8)
    policy = solved(table, **roles(table, gap=0.4, constraints=[Exploration(0.05)], **KINDS[kind]))
    share = float(np.isclose(probabilities_of(policy, table)[:, 1], 0.05, atol=1e-9).mean())
    assert policy.share_explored(explored(policy)) == pytest.approx(share)
    assert 0 < share < 1
    (sentence,) = [text for text in policy.sentences() if text.startswith("Asked for: chance")]
    assert f"{share:.2%} of the people have just that chance" in sentence
    assert f"it adds {explored(policy).loss:.6g} to the loss" in sentence


# ---------------------------------------------------------------------------------------------------------
# Beside others


CONFLICTS = {
    "budget": [Exploration(0.3), Budget("got", at_most=0.1)],
    "worse_off": [WorseOff(0), Exploration(0.3, decision=0)],
    "gap of groups": [
        Exploration(0.9, groups=["f"]),
        Exploration(0.9, decision=0, groups=["m"]),
        Gap("got", 0.1),
    ],
}


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
@pytest.mark.parametrize("case", CONFLICTS)
def test_conflicts_are_irreducible(kind, case):
    """A conflict names all that is part of it; what has nothing to do with it is not named, and any one less helps."""
    table = people(300, 9)
    asked = roles(table, gap={}, **KINDS[kind])
    idle = [Exploration(0.01, scores=(0.0, 0.1))] if kind != "label" else [Exploration(0.01, groups=["f"])]
    if case == "gap of groups":
        idle = []
    with pytest.raises(InfeasibleError) as raised:
        solved(table, **asked, constraints=[*idle, *CONFLICTS[case]])
    assert len(raised.value.conflict) == len(CONFLICTS[case])
    assert all("0.01" not in words for words in raised.value.conflict)
    for one in CONFLICTS[case]:
        solved(table, **asked, constraints=[*idle, *(other for other in CONFLICTS[case] if other is not one)])


def test_a_conflict_that_it_is_no_part_of_does_not_name_it():
    """What cannot be met anyway is said without the chance."""
    table = people(300, 9)
    for kind in ("score", "individual"):
        impossible = [Budget("got", at_most=0.1), Budget("got", at_least=3.0), Exploration(0.01)]
        with pytest.raises(InfeasibleError) as raised:
            solved(table, **roles(table, gap={}, constraints=impossible, **KINDS[kind]))
        assert len(raised.value.conflict) == 2
        assert not any("chance" in text for text in raised.value.conflict)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_chances_that_are_more_than_one(kind):
    """Chances of several decisions that are together more than 1 are refused, and only those are named."""
    table = people(100, 1, 3)
    three = [
        Exploration(0.6, decision=0),
        Exploration(0.5, decision=1),
        Exploration(0.05),
        Exploration(0.1, decision=1),
    ]
    with pytest.raises(InfeasibleError) as raised:
        solved(table, **roles(table, gap={}, constraints=three, **KINDS[kind]))
    assert sorted(raised.value.conflict) == ["chance of 0 at least 0.6", "chance of 1 at least 0.5"]
    just = [Exploration(0.5, decision=0), Exploration(0.3, decision=1), Exploration(0.2)]
    policy = solved(table, **roles(table, gap={}, constraints=just, **KINDS[kind]))
    assert probabilities_of(policy, table) == pytest.approx(np.tile([0.5, 0.3, 0.2], (100, 1)), abs=1e-9)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_it_holds_everywhere_on_a_frontier(kind):
    """Every policy of the frontier keeps the chance, and its loss is that of solving at its gap."""
    table = people(400, 10)
    asked = roles(table, constraints=[Exploration(0.1)], **KINDS[kind])
    line = traced(table, **asked)
    for policy in (*line.policies, line.at(gap=0.3)):
        assert probabilities_of(policy, table)[:, 1].min() >= 0.1 - 1e-12
        assert Policy.from_json(policy.to_json()).explore == policy.explore
    assert line.at(gap=0.3).loss == pytest.approx(solved(table, **asked, gap=0.3).loss, abs=1e-3)
    if kind == "score":
        assert line.at(gap=0.3).loss == pytest.approx(solved(table, **asked, gap=0.3).loss, abs=1e-9)


def test_it_does_not_move(refuses):
    """A frontier along the chance is refused by name."""
    table, one = people(100), Exploration(0.1)
    with refuses(ConstraintError, "does not move", remedy="single limit"):
        traced(table, **roles(table, constraints=[one], move=one))


def test_it_is_of_the_best_decision():
    """Of aggregates too, which know it."""
    table = people(200, 3)
    told = {name: part for name, part in roles(table).items() if name != "random_state"}
    sums = Aggregates.from_json(aggregate(table, **told, decisions=[1, 0]).to_json())
    for policy in (
        solve(sums, gap={}, constraints=[Exploration(0.1)]),
        solved(table, **roles(table, gap={}, constraints=[Exploration(0.1)], decisions=[1, 0])),
    ):
        assert list(policy.prices) == ["chance of 0 at least 0.1"]
        assert policy.best == 0
    line = traced(sums, constraints=[Exploration(0.1)])
    assert all(probabilities_of(policy, table)[:, 0].min() >= 0.1 - 1e-12 for policy in line.policies)


def test_on_an_engine():
    """Rows that stay where they are lead to the same chances, prices and people."""
    table = people(300, 11)
    asked = roles(table, gap=0.5, constraints=[Exploration(0.1, scores=(0.0, 0.4))])
    lazy, here = solved(pl.from_pandas(table).lazy(), **asked), solved(table, **asked)
    assert probabilities_of(lazy, table)[table["p1"] < 0.4, 1].min() >= 0.1 - 1e-15
    assert lazy.loss == pytest.approx(here.loss, abs=1e-9)
    assert list(lazy.prices.values()) == pytest.approx(list(here.prices.values()), abs=1e-8)
    assert lazy.share_explored(explored(lazy)) == pytest.approx(here.share_explored(explored(here)), abs=0.05)


def test_an_answer_that_does_not_keep_it_fails_its_check():
    """The probabilities themselves are looked at, not only the means that they make."""
    table = people(200, 12)
    told = {name: part for name, part in roles(table).items() if name != "random_state"}
    sums = aggregate(table, **told).joined()
    program, rows = written_program(sums, [Exploration(0.1)])
    answer = solve_rows(program.keeping([]), rows)
    with pytest.raises(SolverError, match="chance of 1 at least"):
        check_solution(program, rows, answer.q, answer.objective)


# ---------------------------------------------------------------------------------------------------------
# Of a classifier


TABLE = people(1200, 13)
MODEL = FrozenEstimator(LogisticRegression().fit(TABLE[["p1", "loan"]], TABLE["y"]))


def fair(**settings):
    told = {
        "happiness": "decision * loan",
        "gap": 0.5,
        "sensitive_features": "g",
        "random_state": 0,
        "key": "id",
    }
    model = fair_classifier(MODEL, **told | {"constraints": [Exploration(0.05)]} | settings)
    return model.fit(TABLE[["p1", "loan", "g", "id"]], TABLE["y"])


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
def test_a_classifier_keeps_it_wherever_it_moves(kind):
    """Fitted, moved along its frontier, recalibrated and stored, everybody keeps the chance."""
    X = TABLE[["p1", "loan", "g", "id"]]
    model = fair(policy=kind, change_cost=0.0)
    for one in (model, model.at(gap=1.0), model.recalibrate(X[::2])):
        probabilities = one.policy_.probabilities(
            model.estimator_.predict_proba(X[["p1", "loan"]]), X["g"], X
        )
        assert probabilities[:, 1].min() >= 0.05 - 1e-12
        assert len(one.policy_.explore) == 1
    stored = pickle.loads(pickle.dumps(model))
    assert stored.policy_.to_json() == model.policy_.to_json()


def test_a_safe_fit_keeps_it_untested():
    """It holds by construction, so the rows held out have nothing to show of it."""
    model = fair(gap=2.5, confidence=0.9)
    assert not any("chance" in text for text in str(model.certificate_).splitlines())
    assert model.policy_.reached["chance of 1 at least 0.05"] >= 0.05 - 1e-12


def test_the_report_and_an_audit_know_of_it():
    """The page says what was asked for, and an audit of the classifier measures what it does."""
    model, others = fair(), people(600, 14)
    X = others[["p1", "loan", "g", "id"]].assign(id=others["id"] + 10_000)  # others, by their keys too
    content = model.report(X, others["y"]).to_dict()
    assert "chance of 1 at least 0.05" in content["policy"]["requirements"]
    found = audit(model, X, others["y"])
    probabilities = model.policy_.probabilities(model.estimator_.predict_proba(X[["p1", "loan"]]), X["g"], X)
    for g in "fm":
        mean = float((probabilities[:, 1] * X["loan"])[X["g"] == g].mean())
        assert found["decision * loan"].means[g].estimate == pytest.approx(mean)


def test_the_same_chance_twice_is_once():
    """What is asked for twice is remembered, charged and priced once."""
    table = people(200, 3)
    for kind in ("score", "individual"):
        asked = roles(table, gap=0.3, **KINDS[kind])
        once, twice = (solved(table, **asked, constraints=[Exploration(0.1)] * k) for k in (1, 2))
        assert twice.explore == once.explore
        assert twice.prices == pytest.approx(once.prices, rel=1e-9)


def test_worse_off_beside_it():
    """The price of who is worse off is that of policies that keep the chance too."""
    for row in fair(gap=0.2).price_of_worse_off():
        assert (
            row.loss is None or row.loss >= fair(gap=0.2, constraints=[]).price_of_worse_off()[0].loss - 1e-9
        )


def test_without_a_key_one_warning():
    """Content keys repeat, so one warning says that the probabilities may not be the probabilities.

    With a key there is none.
    """
    with pytest.warns(LotteryWarning, match="Exploration") as found:
        fair(key=None)
    assert len(found) == 1
    assert "key=" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair()
        fair(key=None, constraints=[])


# ---------------------------------------------------------------------------------------------------------
# Bad input and files


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.1, 1.5, math.nan, "0.1", True, None])
def test_no_chance(refuses, chance):
    """What is no chance between 0 and 1 is refused, and shown."""
    with refuses(ConstraintError, repr(chance), remedy="between 0 and 1"):
        Exploration(chance)


@pytest.mark.parametrize(
    "scores", [0.3, (0.3,), (0.5, 0.3), (0.3, 0.3), (-0.1, 0.5), (0.2, 1.2), "ab", ("a", "b")]
)
def test_no_range_of_scores(refuses, scores):
    """What is no pair of rising scores is refused, and shown."""
    with refuses(ConstraintError, repr(scores), remedy="least and the largest"):
        Exploration(scores=scores)


@pytest.mark.parametrize("groups", ["f", [], 3])
def test_no_groups(refuses, groups):
    """What is no list of groups is refused."""
    with refuses(ConstraintError, repr(groups), remedy="list"):
        Exploration(groups=groups)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_unknown_names(refuses, kind):
    """A decision or a group that there is not is named, with those that there are."""
    table = people(50)
    for one, word, known in (
        (Exploration(decision=7), "7", "0, 1"),
        (Exploration(groups=["x"]), "'x'", "'f', 'm'"),
    ):
        with refuses(ConstraintError, word, remedy=known):
            solved(table, **roles(table, constraints=[one], **KINDS[kind]))


def test_what_cannot_be_seen(refuses):
    """Groups of a policy that sees none, scores of one that sees none, and of three classes, are refused by name."""
    table, three = people(50), people(50, 0, 3)
    blind = {"sees_group": False, "policy": "score"}
    with refuses(ConstraintError, "does not see the group", remedy="groups="):
        solved(table, **roles(table, constraints=[Exploration(groups=["f"])], **blind))
    for kind in ("label", "soft-label"):
        with refuses(ConstraintError, "sees no score", remedy="scores="):
            solved(table, **roles(table, constraints=[Exploration(scores=(0.1, 0.2))], policy=kind))
    with refuses(ConstraintError, "3 classes", remedy="scores="):
        solved(three, **roles(three, constraints=[Exploration(scores=(0.1, 0.2))]))


def test_rounded_decisions_explore_nothing(refuses):
    """Without the lottery there is no chance to keep."""
    with refuses(ConstraintError, "randomize=False", remedy="randomize=False"):
        fair(randomize=False)


def test_a_file_that_promises_more_than_it_keeps_is_refused():
    """The chances of a file are checked against its probabilities."""
    from felicific._files import checksum

    table = people(100)
    policy = solved(table, **roles(table, gap={}, constraints=[Exploration(0.1)]))
    content = json.loads(policy.to_json())

    def sealed(**parts):
        body = {
            name: part
            for name, part in (content | parts).items()
            if name not in ("format", "version", "sha256")
        }
        return json.dumps(content | parts | {"sha256": checksum(body)})

    (one,) = content["explore"]
    assert Policy.from_json(sealed(explore=[one])).explore == policy.explore
    broken = ({"at_least": 0.2}, {"decision": 2}, {"groups": []}, {"groups": [5]}, {"scores": [0.4, 0.1]},
              {"share": 2.0}, {"words": 3}, {"more": 1})  # fmt: skip
    for part in broken:
        with pytest.raises(PolicyFileError):
            Policy.from_json(sealed(explore=[one | part]))
    with pytest.raises(PolicyFileError):
        Policy.from_json(sealed(order="worst first"))
    old = {name: part for name, part in content.items() if name != "explore"}
    content = old
    assert Policy.from_json(sealed()).explore == ()
