"""Why, for one person: what is explained is what is decided, cuts are cuts, and a second look finds the same."""

import hashlib
import html
import json
import math
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import fair_classifier, solved, traced
from hypothesis import given
from hypothesis import strategies as st
from oracles_policies import Told, cells_of, make_people, proba_of, put, tampered
from sklearn.frozen import FrozenEstimator
from strategies import examples

from felicific import Budget, Exploration, FairClassifier, Floor, Gap, Policy, Score
from felicific._policy.explanation import NOT_LEGAL_REASONS
from felicific._shown.parts import LINES, lines_of
from felicific.exceptions import DataError, GroupError, PolicyFileError

#: Lotteries of tests are the same again, some by the row's content, and few people fit these policies.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::felicific.exceptions.{name}")
    for name in ("LotteryWarning", "PolicyWarning")
]

#: Kinds of policies, each with what makes it, the number of classes and that of groups.
KINDS = {
    "score": ({"gap": 0.5}, 2, 2),
    "score of three groups": ({"gap": 1.0}, 2, 3),
    "few cells": ({"policy": Score(bins=4), "gap": 0.0}, 2, 2),
    "free score": ({"policy": Score(bins=12, monotone=False), "gap": 0.0}, 2, 2),
    "score of many classes": ({"policy": "score", "gap": 1.0}, 3, 2),
    "blind score": ({"policy": "score", "gap": 3.0, "sees_group": False}, 2, 2),
    "explored": ({"gap": 4.0, "constraints": [Exploration(0.05)]}, 2, 2),
    "no requirement": ({"gap": {}}, 2, 2),
    "label": ({"policy": "label", "gap": 1.0}, 2, 2),
    "label of many classes": ({"policy": "label", "gap": 1.0}, 3, 2),
    "soft-label": ({"policy": "soft-label", "gap": 0.1}, 2, 2),
    "individual": ({"policy": "individual", "gap": 1.0}, 2, 2),
    "individual of many classes": ({"policy": "individual", "gap": 2.0}, 3, 2),
    "individual explored": ({"policy": "individual", "gap": 4.0, "constraints": [Exploration(0.05)]}, 2, 2),
    "blind individual": ({"policy": "individual", "gap": 5.0, "sees_group": False}, 2, 2),
}
kinds = pytest.mark.parametrize("kind", KINDS)
ALONG_A_SCORE = [
    kind for kind in KINDS if "score" in kind or kind in ("few cells", "explored", "no requirement")
]


@cache
def people(kind):
    return make_people(300, KINDS[kind][1], KINDS[kind][2], seed=len(kind))


@cache
def classifier(kind, **more):
    options, n_classes, _ = KINDS[kind]
    options = {"happiness": "decision * loan", "sensitive_features": "group", "random_state": 0} | options
    table, y = people(kind)
    return fair_classifier(FrozenEstimator(Told(n_classes).fit(table, y)), **options | more).fit(table, y)


def told(fair, row, n_classes):
    """What a policy is told of one person by hand: scores, group, the row, and how likely each group is."""
    policy = fair.policy_
    scores = proba_of(row, n_classes)[0]
    chances = None
    if policy.infers_group:
        chances = fair._chances(row[list(fair.feature_names_in_)], policy.groups)[0]
    return {
        "scores": scores if policy.needs_proba else int(scores.argmax()),
        "group": row["group"].tolist()[0] if policy.sees_group else None,
        "x": row if policy.sees_x else None,
        "group_proba": chances,
    }


# ---------------------------------------------------------------------------------------------------------
# What is explained is what is decided


@kinds
def test_it_decides_as_predict_does(kind):
    """Decision, probabilities and the baseline are those of predict, predict_proba and the model, by all doors."""
    n_classes = KINDS[kind][1]
    fair, (table, _) = classifier(kind), people(kind)
    rows = table[:15]
    keys = rows["id"].tolist()
    decided, probabilities = fair.predict(rows, key="id"), fair.predict_proba(rows)
    baseline = fair.estimator_.predict(rows)
    for i, key in enumerate(keys):
        row = rows[i : i + 1]
        found = fair.explain(row, key=key)
        assert found.decision == decided[i]
        assert list(found.probabilities.values()) == probabilities[i].tolist()
        assert found.baseline == baseline[i]
        by_hand = fair.policy_.explain(**told(fair, row, n_classes), key=key)
        assert (by_hand.decision, by_hand.probabilities) == (found.decision, found.probabilities)
        assert fair.explain(row.iloc[0], key=key).to_dict() == found.to_dict()


@kinds
def test_without_a_key_the_row_decides_or_nothing_does(kind):
    """A classifier draws by the row's content, as predict does; a policy that is told no key draws nothing."""
    n_classes = KINDS[kind][1]
    fair, rows = classifier(kind), people(kind)[0][:12]
    decided, probabilities = fair.predict(rows), fair.predict_proba(rows)
    for i in range(len(rows)):
        found = fair.explain(rows[i : i + 1])
        assert found.decision == decided[i]
        assert found.draw is None or found.draw.key is None
        without = fair.policy_.explain(**told(fair, rows[i : i + 1], n_classes))
        assert without.draw is None
        assert (without.decision is None) == ((probabilities[i] > 0).sum() > 1)


@kinds
def test_a_file_explains_the_same(kind):
    """A policy that was stored and read again explains in the same words."""
    fair, rows = classifier(kind), people(kind)[0][:20]
    again = Policy.from_json(fair.policy_.to_json())
    assert again.sha256 == fair.policy_.sha256
    for i in range(len(rows)):
        arguments = told(fair, rows[i : i + 1], KINDS[kind][1])
        one, other = (policy.explain(**arguments, key=i) for policy in (fair.policy_, again))
        assert (str(one), one.to_dict()) == (str(other), other.to_dict())


def test_rounded_decisions():
    """Without a lottery the explanation has the rounded probabilities, no draw, and cuts of what is decided."""
    fair, rows = classifier("few cells", randomize=False), people("few cells")[0][:40]
    for i, decision in enumerate(fair.predict(rows)):
        found = fair.explain(rows[i : i + 1], key=i)
        assert (found.decision, found.draw, max(found.probabilities.values())) == (decision, None, 1.0)
        assert all(max(cut.probabilities.values()) == 1.0 for cut in found.cuts)
        assert any("does not randomize" in sentence for sentence in found.sentences)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_policies_that_moved(kind):
    """Along a frontier, and recalibrated for people without labels, it decides as predict does."""
    fair, (table, _) = classifier(kind), people(kind)
    for moved in (fair.at(gap=5.0), fair.recalibrate(table[:150])):
        decided = moved.predict(table[:30], key="id")
        for i in range(30):
            found = moved.explain(table[i : i + 1], key=table["id"][i])
            assert found.decision == decided[i]
            assert found.unconstrained is not None


# ---------------------------------------------------------------------------------------------------------
# The cut is the cut: a second, naive look at the file


def looked_up(file, score, z):
    """The probabilities of a person, read off the file of a policy cell by cell."""
    signal = file["policy"]
    cell = int(cells_of(np.array([score]), signal["cuts"], signal["boundary"])[0])
    return file["q"][z][cell]


def spread_out(top, label, n_classes):
    """Probabilities whose largest is this label's, all others being equal."""
    if n_classes == 2:
        return [1.0 - top, top]
    rest = (1.0 - top) / (n_classes - 1)
    return [top if k == label else rest for k in range(n_classes)]


@cache
def naive_steps(kind, z, label):
    """Every stretch of scores between neighbouring edges of fine bins.

    From, to, and the probabilities in its middle.
    """
    n_classes = KINDS[kind][1]
    file = json.loads(classifier(kind).policy_.to_json())
    fine = 4096 if n_classes == 2 else max(32, 4096 // n_classes)
    edges = sorted({i / fine for i in range(fine + 1)} | {file["policy"]["boundary"]})
    if n_classes > 2:
        edges = [0.5, *(edge for edge in edges if edge > 0.5)]  # below, another label may be the likeliest
    steps = [] if n_classes > 2 else [(-math.inf, 0.0, looked_up(file, [1.0, 0.0], z))]
    for low, high in pairwise(edges):
        steps.append((low, high, looked_up(file, spread_out((low + high) / 2, label, n_classes), z)))
    return steps


def naive_cuts(kind, score, label, z):
    """The nearest scores below and above at which the probabilities change, by walking from stretch to stretch."""
    steps = naive_steps(kind, z, label)
    place = next(i for i, (low, high, _) in enumerate(steps) if low < score <= high)
    own = steps[place][2]

    def differs(probabilities):
        return max(abs(a - b) for a, b in zip(probabilities, own, strict=True)) > 1e-9

    found = {}
    for _, high, probabilities in reversed(steps[:place]):
        if differs(probabilities):
            found["below"] = (high, probabilities)
            break
    for low, _, probabilities in steps[place + 1 :]:
        if differs(probabilities):
            found["above"] = (low, probabilities)
            break
    return own, found


@pytest.mark.parametrize("kind", ALONG_A_SCORE)
@given(place=st.integers(0, 299), shift=st.sampled_from([0.0, 1e-3, -1e-3, 0.05, -0.05, 0.2]))
@examples
def test_the_cuts_are_where_the_probabilities_change(kind, place, shift):
    """The nearest cuts below and above are those that a walk over all edges finds.

    With the probabilities beyond them.
    """
    n_classes = KINDS[kind][1]
    policy, row = classifier(kind).policy_, people(kind)[0][place : place + 1]
    score = proba_of(row, n_classes)[0]
    label = int(score.argmax()) if n_classes > 2 else 1
    score = float(np.clip(score[label] + shift, 0.51 if n_classes > 2 else 0.0, 1.0))
    z = policy.groups.index(row["group"].tolist()[0])
    found = policy.explain(
        spread_out(score, label, n_classes), policy.groups[z] if policy.sees_group else None
    )
    own, tried = naive_cuts(kind, found.score, label, z)
    assert list(found.probabilities.values()) == own
    cuts = {cut.side: cut for cut in found.cuts if n_classes == 2 or cut.at > 0.5}
    assert set(cuts) == set(tried)
    for side, (at, probabilities) in tried.items():
        assert cuts[side].at == pytest.approx(at, abs=1e-12)
        assert list(cuts[side].probabilities.values()) == probabilities
        assert cuts[side].distance == pytest.approx(abs(found.score - at), abs=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in ALONG_A_SCORE if KINDS[kind][1] == 2])
def test_one_step_beyond_the_cut_flips(kind):
    """Moving a score by its distance reaches the cut: there, or one float further.

    The probabilities are those beyond it.
    """
    policy, table = classifier(kind).policy_, people(kind)[0]
    flipped = 0
    for score, group in zip(table["p1"][:60].tolist(), table["group"][:60], strict=True):
        group = group if policy.sees_group else None
        found = policy.explain(score, group)
        for cut in found.cuts:
            sign = 1.0 if cut.side == "above" else -1.0
            assert found.score + sign * cut.distance == pytest.approx(cut.at, abs=1e-15)
            inside, outside = cut.at, math.nextafter(cut.at, 2.0)
            if cut.side == "below":
                inside, outside = outside, inside
            probabilities = policy.probabilities(
                [inside, outside], None if group is None else [group] * 2
            ).tolist()
            assert probabilities[0] == pytest.approx(list(found.probabilities.values()), abs=1e-9)
            assert probabilities[1] == list(cut.probabilities.values())
            assert max(abs(a - b) for a, b in zip(*probabilities, strict=True)) > 1e-9
            flipped += 1
        assert found.distance == min((cut.distance for cut in found.cuts), default=None)
    assert flipped > 30 or kind == "no requirement"


def test_two_cuts_at_one_score():
    """Where a cell is no score's, at the model's own boundary, what lies beyond the cut is what scores there get."""
    people = {"g": ["a", "a", "b", "b"] * 10, "s": [0.3, 0.5001, 0.4, 0.7] * 10, "y": [0, 1, 0, 1] * 10}
    policy = solved(
        people, score="s", y="y", sensitive_features="g", happiness="decision", gap=0.0, random_state=0
    )
    for group in ("a", "b"):
        for score in (0.3, 0.5, 0.5001, 0.6):
            for cut in policy.explain(score, group).cuts:
                beyond = math.nextafter(cut.at, 2.0) if cut.side == "above" else cut.at
                assert policy.probabilities([beyond], [group])[0].tolist() == list(cut.probabilities.values())


# ---------------------------------------------------------------------------------------------------------
# The draw


def test_the_draw_is_the_one_that_anybody_with_the_salt_computes():
    """The number is that of SHA-256, the decision the one whose limits hold it, and the salt is nowhere told."""
    fair, table = classifier("few cells"), people("few cells")[0]
    drawn = 0
    for i in range(150):
        found = fair.explain(table[i : i + 1], key=i)
        text = str(found) + json.dumps(found.to_dict())
        assert fair.policy_.salt.removeprefix("seed-") not in text
        if found.draw is None:
            continue
        drawn += 1
        digits = hashlib.sha256(f"{fair.policy_.salt}:{i}".encode()).hexdigest()[:13]
        assert found.draw.number == int(digits, 16) / 2**52
        low, high = found.draw.limits[found.decision]
        assert low <= found.draw.number < high
        assert high - low == pytest.approx(found.probabilities[found.decision], abs=1e-12)
        assert [low for low, _ in found.draw.limits.values()][1:] == [
            high for _, high in found.draw.limits.values()
        ][:-1]
        for cut in found.cuts:  # what the same number would have been there
            step = math.nextafter(cut.at, 2.0) if cut.side == "above" else cut.at
            assert cut.decision == fair.policy_.decide([step], [found.group], [i])[0]
    assert drawn > 5


# ---------------------------------------------------------------------------------------------------------
# Groups


@pytest.mark.parametrize("kind", ["score", "score of three groups", "label", "soft-label", "individual"])
def test_who_would_get_another_decision(kind):
    """The groups that are named are just those whose probabilities differ, everything else being the same."""
    n_classes = KINDS[kind][1]
    fair, rows = classifier(kind), people(kind)[0][:40]
    policy, differing = fair.policy_, 0
    for i in range(len(rows)):
        row = rows[i : i + 1]
        arguments = told(fair, row, n_classes)
        found = policy.explain(**arguments)
        for group in policy.groups:
            other = policy.explain(**arguments | {"group": group})
            apart = (
                max(abs(found.probabilities[d] - other.probabilities[d]) for d in found.probabilities) > 1e-9
            )
            assert (group in found.otherwise) == apart
            assert not apart or found.otherwise[group] == other.probabilities
        matters = [sentence for sentence in found.sentences if sentence.startswith("The group matters")]
        assert len(matters) == bool(found.otherwise)
        assert all(repr(group) in matters[0] for group in found.otherwise)
        differing += bool(found.otherwise)
    assert differing


def test_a_blind_policy_names_no_group():
    """Where the group is not seen, none is told and no other is compared; an individual one says what it infers."""
    row = people("blind score")[0][:1]
    found = classifier("blind score").explain(row)
    assert (found.group, found.otherwise) == (None, {})
    assert "The policy does not see the group." in found.sentences
    found = classifier("blind individual").explain(people("blind individual")[0][:1])
    assert any("infers it: this person is of" in sentence for sentence in found.sentences)


def test_a_group_that_is_missing_or_never_seen():
    """Who is in no gap is told so; people whose group is missing, or was never fitted, are refused."""
    table, y = people("score")
    known = sorted({*table["group"]})
    table = table.assign(group=table["group"].where(np.arange(len(table)) % 5 > 0, "unknown"))
    fair = FairClassifier(
        FrozenEstimator(Told(2).fit(table, y)),
        happiness="decision * loan",
        sensitive_features="group",
        constraints=[Gap("decision * loan", 2.0, groups=known)],
        random_state=0,
    ).fit(table, y)
    found = fair.explain(table[:1], key=1)
    assert found.group == "unknown"
    assert found.decision == fair.predict(table[:1], key=[1])[0]
    with pytest.raises(GroupError, match="missing"):
        fair.policy_.explain(0.5, [None])
    assert any("is not compared" in sentence for sentence in found.sentences)
    with pytest.raises(GroupError, match="never fitted"):
        fair.policy_.explain(0.5, "zebra")


# ---------------------------------------------------------------------------------------------------------
# Which requirement pays


def test_without_requirements_it_is_the_best_policy_without():
    """What is said of the best policy of which nothing is required is what that policy does, cuts included."""
    table, y = people("score")
    fair = classifier("score")
    free = FairClassifier(
        FrozenEstimator(Told(2).fit(table, y)),
        happiness="decision * loan",
        gap={},
        sensitive_features="group",
        change_cost=fair.policy_.change_cost,
        random_state=0,
    ).fit(table, y)
    moved = 0
    for i in range(120):
        found, other = (one.explain(table[i : i + 1], key=i) for one in (fair, free))
        assert found.unconstrained == pytest.approx(other.probabilities, abs=1e-9)
        differs = (
            max(abs(found.probabilities[d] - other.probabilities[d]) for d in found.probabilities) > 1e-9
        )
        assert [one.changes for one in found.requirements] == [differs]
        if differs:
            moved += 1
            words = "What makes the difference is one requirement: gap of 'decision * loan' at most 0.5."
            assert any(sentence.startswith(words) for sentence in found.sentences)
            assert found.requirements[0].price > 0
    assert moved


def test_the_cuts_that_a_requirement_moves():
    """From where to where the cut of the group moves is said: where the probabilities of both policies change."""
    rng = np.random.default_rng(1)
    sex = np.repeat(["f", "m"], 2000)
    score = rng.beta(2, 2, 4000) * np.where(sex == "f", 0.8, 1.0)
    table = {"sex": sex, "score": score, "y": (rng.random(4000) < score).astype(int)}
    common = {
        "score": "score",
        "y": "y",
        "sensitive_features": "sex",
        "happiness": "decision",
        "random_state": 0,
    }
    policy, free = solved(table, gap=0.0, **common), solved(table, gap={}, **common)
    before = [policy_cuts(free, group) for group in ("f", "m")]
    after = [policy_cuts(policy, group) for group in ("f", "m")]
    grid = np.linspace(0.3, 0.7, 60)
    changed = [s for s in grid if (policy.probabilities([s], ["f"]) != free.probabilities([s], ["f"])).any()]
    assert changed
    found = policy.explain(changed[len(changed) // 2], "f")
    text = next(sentence for sentence in found.sentences if "moves the cut" in sentence)
    was, is_ = (" and ".join(f"{cut:.6g}" for cut in cuts) for cuts in (before[0], after[0]))
    assert text.endswith(f"of group 'f' from {was} to {is_}.")
    assert before[1] != before[0]


def test_no_single_requirement_is_said_to_move_what_several_move():
    """A gap that costs nothing, as other policies are equally good, is not hidden by a chance that costs something.

    Whoever keeps nothing but the chance is told of it, and not that it moved the cuts, which the gap does.
    """
    table, _ = people("explored")
    both, kept, free = (
        classifier("explored", change_cost=0.0, **more)
        for more in ({"gap": 1.0}, {"gap": 1e9}, {"gap": 1e9, "constraints": ()})
    )
    only = classifier("explored", change_cost=0.0, gap=1.0, constraints=())
    assert both.policy_.prices["decision * loan"] == 0.0
    probabilities, *others = (fair.predict_proba(table) for fair in (both, kept, only, free))
    patterns = set()
    for i in range(len(table)):
        found, apart = (
            both.explain(table[i : i + 1], key=1),
            [differs(probabilities[i], one[i]) for one in others],
        )
        if apart[2]:
            assert [one.changes for one in found.requirements] == apart[:2]
            patterns.add(tuple(apart[:2]))
        group = table["group"][i]
        assert policy_cuts(kept.policy_, group) == policy_cuts(free.policy_, group)
        assert not any("chance" in one and "moves" in one for one in found.sentences)
        told = both.policy_.explain(float(table["p1"][i]), group)
        assert {one.changes for one in told.requirements} == ({None} if apart[2] else {False})
    assert patterns == {(True, False), (False, True), (True, True)}


def differs(one, other):
    return bool(np.abs(one - other).max() > 1e-9)


def policy_cuts(policy, group):
    """All scores at which the probabilities of a group change, by bisection between points of a fine grid."""
    grid = [(i + 0.5) / 8192 for i in range(8192)]
    probabilities = policy.probabilities(grid, [group] * len(grid))
    cuts = []
    for i in np.flatnonzero(np.abs(np.diff(probabilities, axis=0)).max(axis=1) > 1e-9).tolist():
        cuts.append(math.floor(grid[i + 1] * 4096) / 4096)
    return cuts


def test_several_requirements_are_told_apart_by_a_classifier():
    """A classifier solves again without each; a policy, which cannot, says that it does not keep which it is."""
    table, y = people("score")

    def fitted(*constraints):
        return FairClassifier(
            FrozenEstimator(Told(2).fit(table, y)),
            happiness="decision * loan",
            gap={},
            constraints=constraints,
            sensitive_features="group",
            change_cost=0.0,
            random_state=0,
        ).fit(table, y)

    asked = [Gap("decision * loan", 1.0), Budget("decision * loan", at_most=9.0)]
    fair = fitted(*asked)
    names = ["decision * loan", next(name for name in fair.policy_.prices if "all people" in name)]
    assert all(fair.policy_.prices[name] > 0 for name in names)
    without = [fitted(asked[1]), fitted(asked[0])]
    probabilities = fair.predict_proba(table)
    others = [one.predict_proba(table) for one in without]
    patterns, words = set(), set()
    for i in range(150):
        found = fair.explain(table[i : i + 1], key=i)
        changes = tuple(one.changes for one in found.requirements)
        if found.unconstrained != found.probabilities:
            assert changes == tuple(bool(np.abs(o[i] - probabilities[i]).max() > 1e-9) for o in others)
            patterns.add(changes)
            alone = fair.policy_.explain(float(table["p1"][i]), table["group"][i])
            assert {one.changes for one in alone.requirements} == {None}
            assert any("this policy does not keep" in sentence for sentence in alone.sentences)
            words |= {sentence[:30] for sentence in found.sentences}
    assert len(patterns) > 1
    assert "What makes the difference is o" in words


def test_files_of_before_say_that_it_is_not_kept():
    """A file without the table of the best policy without requirements is read, keeps its checksum, and says so."""
    policy = classifier("score").policy_
    old = tampered(policy.to_json(), lambda content: content.pop("unconstrained"))
    found = Policy.from_json(old)
    assert found.sha256 == json.loads(old)["sha256"]
    why = found.explain(0.5, "a")
    assert why.unconstrained is None
    assert [one.changes for one in why.requirements] == [None]
    assert any("is not kept in this policy" in sentence for sentence in why.sentences)
    assert why.decision == policy.explain(0.5, "a").decision


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [[[0, [0.5, 0.5]]]],
        [[[1, [0.5, 0.5]]]] * 2,
        [[[0, [0.5, 0.6]]]] * 2,
        [[[0, [1.0, 0.0]], [0, [1.0, 0.0]]]] * 2,
        [[[0, [1.0, 0.0]], [9999, [1.0, 0.0]]]] * 2,
        [[[0.5, [1.0, 0.0]]]] * 2,
        [[[0, [1.0]]]] * 2,
        {"a": 1},
        [[3]] * 2,
    ],
    ids=range(10),
)
def test_a_wrong_table_is_refused(wrong):
    """What cannot be the table of a policy is no policy file."""
    with pytest.raises(PolicyFileError):
        Policy.from_json(tampered(classifier("score").policy_.to_json(), put("unconstrained", wrong)))


def test_the_table_without_requirements_is_small():
    """It adds less than a tenth to a file."""
    text = classifier("score").policy_.to_json()
    held = json.loads(text).pop("unconstrained")
    assert len(json.dumps(held, indent=1)) < len(text) / 10


def test_along_a_frontier_of_several_gaps_no_price_is_guessed():
    """The price of several gaps together belongs to none of them: it is None, and the words say what is not kept."""
    table, _ = people("score")
    line = traced(
        table.assign(y=people("score")[1]),
        score={0: "p0", 1: "p1"},
        y="y",
        sensitive_features="group",
        happiness={"money": "decision * loan", "yes": "decision"},
    )
    policy = line.at(tau=0.2)
    scores = [
        s
        for s in np.linspace(0.2, 0.8, 60)
        if policy.explain(s, "a").unconstrained != policy.explain(s, "a").probabilities
    ]
    found = policy.explain(scores[0], "a")
    assert {one.price for one in found.requirements} == {None}
    assert len(found.requirements) == 2


# ---------------------------------------------------------------------------------------------------------
# Individual policies


def test_an_individual_policy_weighs_by_hand():
    """The totals are the calibrated expected loss less the prices times the happiness, and the least is decided."""
    fair, table = classifier("individual"), people("individual")[0]
    policy = fair.policy_
    for i in range(60):
        row = table[i : i + 1]
        found = fair.explain(row, key=i)
        z, loan = policy.groups.index(found.group), float(row["loan"].iloc[0])
        chance = float(np.interp(row["p1"].iloc[0], *policy.calibration.knots[z][1]))
        probabilities = [0.0, 0.0]
        rules = np.flatnonzero(policy.mixture.share[z])
        assert len(found.weighed) == len(rules)
        for rule, m in zip(found.weighed, rules, strict=True):
            probabilities[rule.decision] += rule.share
            assert rule.share == policy.mixture.share[z, m]
            if rule.margin is None:
                continue
            alpha, kappa = policy.mixture.alpha[m], policy.mixture.kappa[m, z, 0]
            totals = [alpha * chance, alpha * (1.0 - chance) - kappa * loan]
            assert list(rule.total.values()) == pytest.approx(totals, abs=1e-9)
            assert rule.margin == pytest.approx(abs(totals[0] - totals[1]), abs=1e-9)
            assert rule.margin < 1e-9 or rule.decision == int(totals[1] < totals[0])
            for d in (0, 1):
                terms = sum(term[d] for term in rule.terms.values())
                assert rule.total[d] == pytest.approx(rule.loss[d] - terms, abs=1e-12)
        assert list(found.probabilities.values()) == pytest.approx(probabilities, abs=1e-12)
        by_loss = [float(chance <= 0.5), float(chance > 0.5)]
        assert abs(chance - 0.5) < 1e-9 or list(found.unconstrained.values()) == by_loss


def test_chances_that_people_keep_are_a_requirement_too():
    """Without requirements nobody keeps a chance; an individual policy tells it apart from what prices do."""
    fair, table = classifier("individual explored"), people("individual explored")[0]
    for i in range(20):
        found = fair.explain(table[i : i + 1], key=i)
        assert sorted(found.unconstrained.values()) == [0.0, 1.0]
        kept = next(one for one in found.requirements if "chance" in one.words)
        assert kept.changes == (found.probabilities[1] < 1.0)


def test_requirements_of_the_same_have_one_price():
    """Of two that speak of the same measure, an individual policy does not say which of them it is."""
    table, y = people("individual")
    policy = solved(
        table.assign(y=y), score={0: "p0", 1: "p1"}, y="y", sensitive_features="group", policy="individual",
        happiness="decision * loan", gap=1.0, constraints=[Budget("decision * loan", at_most=9.0)], random_state=0,
    )  # fmt: skip
    assert all(price > 0 for price in policy.prices.values())
    told = [policy.explain(row["p1"], row["group"], x=table[i : i + 1]) for i, row in table[:60].iterrows()]
    moved = [why for why in told if why.unconstrained != why.probabilities]
    assert moved
    assert {one.changes for why in moved for one in why.requirements} == {None}


# ---------------------------------------------------------------------------------------------------------
# One person, however it is at hand


def test_a_row_in_any_form():
    """A table of one row, a row of pandas, a dict and Polars give the same explanation, and the key of the settings."""
    table, y = people("score")
    table = table.assign(id=np.arange(len(table)) + 2**40)
    fair = FairClassifier(
        FrozenEstimator(Told(2).fit(table, y)), happiness="decision * loan", gap=2.0, sensitive_features="group",
        key="id", random_state=0,
    ).fit(table, y)  # fmt: skip
    for i in range(20):
        found = fair.explain(table[i : i + 1])
        for row in (table.iloc[i], table.iloc[i].to_dict(), pl.from_pandas(table[i : i + 1])):
            assert fair.explain(row).to_dict() == found.to_dict()
        assert found.decision == fair.predict(table[i : i + 1])[0]
    numbers = table.assign(
        group=(table["group"] == "a").astype(int)
    )  # pandas makes floats of all of such a row
    fair = FairClassifier(**fair.get_params(deep=False)).fit(numbers, y)
    drawn = np.flatnonzero(fair.predict_proba(numbers).max(axis=1) < 1.0)[:5].tolist()
    for i in [*drawn, 0, 1, 2]:
        assert fair.explain(numbers.iloc[i]).to_dict() == fair.explain(numbers[i : i + 1]).to_dict()


def test_rows_of_an_array():
    """Of features without names a row is one array; the group is passed as to predict."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    y = (X[:, 0] + 0.5 * group + rng.normal(size=400) > 0).astype(int)
    fair = FairClassifier(
        FrozenEstimator(LogisticRegression().fit(X, y)),
        happiness="statistical_parity",
        gap=0.02,
        random_state=0,
    ).fit(X, y, sensitive_features=group)
    for i in range(20):
        decided = fair.predict(X[i : i + 1], sensitive_features=group[i : i + 1])[0]
        for row, who in ((X[i], group[i]), (X[i : i + 1], [group[i]]), (X[i], int(group[i]))):
            found = fair.explain(row, sensitive_features=who)
            assert (found.decision, found.group) == (decided, group[i])


def test_the_baseline_may_be_said():
    """It is passed, or stands in the column that the fit named; by default it is what the model predicts."""
    table, y = people("score")
    table = table.assign(now=1 - (table["p1"] > 0.5).astype(int))
    fair = FairClassifier(
        FrozenEstimator(Told(2).fit(table, y)), happiness="decision * loan", gap=9.0, sensitive_features="group",
        random_state=0, change_cost=0.0,
    ).fit(table, y, baseline="now")  # fmt: skip
    row = table[:1]
    assert fair.explain(row).baseline == row["now"].iloc[0]
    assert fair.explain(row.drop(columns="now"), key=1).baseline == int(row["p1"].iloc[0] > 0.5)
    assert fair.explain(row).sentences[1].startswith("The present decision: ")
    assert fair.explain(row, baseline=1).baseline == 1
    assert fair.policy_.explain(0.7, "a", baseline=0).sentences[1].startswith("The present decision: 0")
    assert fair.policy_.explain(0.7, "a").sentences[1].startswith("The model's decision: 1")


@pytest.mark.parametrize("named", [True, False])
def test_a_model_is_not_called_the_present_system(named):
    """Where the fit was told what another system decides and the row is not, the model stands in by name."""
    table, y = people("score")
    now = 1 - (table["p1"] > 0.5).astype(int)
    fair = FairClassifier(
        FrozenEstimator(Told(2).fit(table, y)), happiness="decision * loan", gap=9.0, sensitive_features="group",
        random_state=0, change_cost=0.0,
    )  # fmt: skip
    fair.fit(table.assign(now=now) if named else table, y, baseline="now" if named else now.to_numpy())
    found = fair.explain(table[:1], key=1)
    assert found.sentences[1].startswith(f"The model's decision: {1 - now[0]}")
    assert (
        fair.explain(table[:1], key=1, baseline=int(now[0]))
        .sentences[1]
        .startswith(f"The present decision: {now[0]}")
    )
    fair.fit(table, y)
    assert fair.explain(table[:1], key=1).sentences[1].startswith(f"The model's decision: {1 - now[0]}")


@pytest.mark.parametrize(
    ("arguments", "error", "problem", "remedy"),
    [
        (([0.2, 0.7], ["a", "b"]), DataError, "one person, and there are 2 scores", "once for each"),
        (([[0.2, 0.8], [0.3, 0.7]], ["a", "b"]), DataError, "there are 2 scores", "X.iloc"),
        ((0.2, ["a", "b"]), DataError, "there are 2 groups", "one row"),
        ((0.2,), GroupError, "none was given", "group="),
        ((1.2, "a"), DataError, "not finite numbers from 0 to 1", "predict_proba"),
        ((math.nan, "a"), DataError, "not finite", "predict_proba"),
        (("high", "a"), DataError, "The probabilities have shape", "one row per person"),
        ((0.2, "a", 1.5), DataError, "The keys are float64", "identifier"),
        ((0.2, "a", ["x", "y"]), DataError, "there are 2 keys", "one row"),
        ((pl.LazyFrame({"s": [0.2]}), "a"), DataError, "not in memory", "collect a lazy one first"),
    ],
)  # fmt: skip
def test_what_is_no_person_is_refused(arguments, error, problem, remedy):
    """One line names what is wrong, and ends with what to do."""
    with pytest.raises(error) as caught:
        classifier("score").policy_.explain(*arguments)
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy


def test_several_rows_are_refused_by_a_classifier():
    """One person at a time, by whatever table."""
    fair, (table, _) = classifier("score"), people("score")
    for rows in (table[:2], table[:0], pl.from_pandas(table[:3]), table[:2].to_dict("list")):
        with pytest.raises(DataError, match="An explanation is of one person"):
            fair.explain(rows)
    with pytest.raises(DataError, match="baseline is 'yes'"):
        fair.explain(table[:1], baseline="yes")
    with pytest.raises(DataError, match="looks at the people themselves"):
        classifier("individual").policy_.explain(0.5, "a")


# ---------------------------------------------------------------------------------------------------------
# Words and data


@kinds
def test_it_says_what_it_is_not(kind):
    """Every explanation ends with it: no legal reasons, and what those need; also as data, which JSON holds."""
    row = people(kind)[0][:1]
    found = classifier(kind).explain(row, key="x")
    assert str(found).endswith(NOT_LEGAL_REASONS)
    for part in (
        "not the legal reasons",
        "adverse action",
        "Regulation B",
        "GDPR",
        "AI Act",
        "lawyer",
        "model's own",
    ):
        assert part in NOT_LEGAL_REASONS
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["caution"] == NOT_LEGAL_REASONS
    assert data["sentences"] == list(found.sentences)
    assert data["decision"] == found.decision
    assert dict(map(tuple, data["probabilities"])) == found.probabilities


@kinds
def test_it_is_shown_in_sentences(kind):
    """A notebook and a terminal show the sentences and what it is not, in thirty lines, and never the salt."""
    fair, table = classifier(kind), people(kind)[0]
    found = fair.explain(table[:1], key=1)
    text, page = repr(found), found._repr_html_()
    assert text == str(found)
    assert lines_of(text.splitlines()) <= LINES
    for sentence in [*found.sentences, found.caution]:
        assert html.escape(sentence) in page
    assert fair.policy_.salt not in text + page


def test_groups_and_decisions_keep_their_types():
    """Group 1 does not come back as "1", and hostile names stand as they are."""
    hostile = "<script>alert(1)</script>\n'\"; DROP"
    people = {
        "g": pd.Series([1, 1, 1, 1, 2, 2, 2, 2]),
        "s": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
        "y": [hostile, hostile, "z", "z", hostile, "z", "z", "z"],
    }
    policy = solved(
        people,
        score="s",
        y="y",
        sensitive_features="g",
        happiness={"f": "decision == 'z'"},
        gap=0.0,
        random_state=0,
    )
    data = json.loads(json.dumps(policy.explain(0.6, 2, key="k").to_dict()))
    assert data["group"] == 2
    assert data["otherwise"][0][0] == 1
    assert data["probabilities"][0][0] == hostile
    assert repr(hostile) in str(policy.explain(0.2, 2))


def test_who_has_nothing_but_the_chance_that_is_kept():
    """Whoever has just the chance that everybody keeps is told so."""
    fair = classifier("explored")
    low = fair.policy_.explain(0.01, "a", key=3)
    assert low.probabilities[1] == pytest.approx(0.05)
    assert any("is the one that people keep" in sentence for sentence in low.sentences)
    high = fair.policy_.explain(0.99, "a", key=3)
    assert not any("is the one that people keep" in sentence for sentence in high.sentences)


def test_gains_and_losses_are_of_the_best_decision():
    """Whether a person gains or loses follows its probability by the policy and by the baseline."""
    fair, table = classifier("score"), people("score")[0]
    seen = set()
    for i in range(100):
        found = fair.explain(table[i : i + 1], key=i)
        text = " ".join(found.sentences)
        change = found.probabilities[1] - found.baseline
        assert ("this person gains: the best" in text) == (change > 1e-9)
        assert ("this person loses: the best" in text) == (change < -1e-9)
        seen.add(np.sign(change).item())
    assert len(seen) > 1


def test_a_floor_is_a_requirement_too():
    """Requirements besides gaps are listed by their words, with their price."""
    table, y = people("score")
    policy = solved(
        table.assign(y=y), score={0: "p0", 1: "p1"}, y="y", sensitive_features="group",
        happiness={"money": "decision * loan"}, gap={}, constraints=[Floor("money", at_least=25.0)], random_state=0,
    )  # fmt: skip
    found = policy.explain(0.3, "a")
    assert {one.words for one in found.requirements} == set(policy.prices)
    assert all(one.price == policy.prices[one.words] for one in found.requirements)
