"""A steered policy closes its gap while it decides: by the book, within the bound, and whatever happens to its file."""

import json
import math
import os
import subprocess
import sys
import textwrap
import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import fair_classifier, solved, traced
from hypothesis import given
from hypothesis import strategies as st

from felicific import (
    Budget,
    Exploration,
    FairClassifier,
    Floor,
    Happiness,
    Policy,
    Ratio,
    Score,
    WorseOff,
    audit,
    load,
    plots,
)
from felicific._policy.aims import BudgetAim, FloorAim, GapAim, find_level, read_aim
from felicific._policy.lottery import uniforms
from felicific._policy.steering import Steering
from felicific._policy.steering_state import POINTS
from felicific._program.crowd import choose
from felicific.exceptions import (
    ConstraintError,
    DataError,
    GroupError,
    HappinessError,
    PolicyFileError,
    SteeringWarning,
)

from conftest import refused  # isort: skip

ROLES = {"score": "score", "y": "repaid", "sensitive_features": "sex", "random_state": 0}
FUNDING = "decision * loan"


@cache
def world(n=1_500, seed=0, groups=("f", "m"), fall=0.0):
    """People with scores, loans and labels; the scores of the first group are lower, by so much more."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(list(groups), n, p=np.arange(1, len(groups) + 1) / sum(range(1, len(groups) + 1)))
    score = rng.beta(2, 2, n) * np.where(sex == groups[0], 0.9 - fall, 1.0)
    return pd.DataFrame(
        {
            "id": [f"{seed}-{i}" for i in range(n)],
            "sex": sex,
            "score": score.round(3),
            "label": (score > 0.5).astype(int),
            "loan": rng.lognormal(2, 0.4, n).round(2) * np.where(sex == groups[0], 1.3, 1.0),
            "repaid": (rng.random(n) < score).astype(int),
        }
    )


def fitted(kind="score", happiness=FUNDING, groups=("f", "m"), **asked):
    named = {"predicted": "label"} if kind == "label" else {}
    return solved(
        world(groups=groups), policy=kind, happiness=happiness, **{"gap": 0.0} | ROLES | named | asked
    )


@cache
def policy_of(kind="score"):
    return fitted(kind)


def started(policy, happiness=FUNDING, **settings):
    """A steering, of an individual policy with its own happiness."""
    return policy.steer(None if policy.sees_x else happiness, **settings)


def decided(steering, rows, kind="score"):
    """What a steering decides on rows of a table."""
    scores = rows["label"] if kind == "label" else rows["score"]
    return steering.decide(scores.to_numpy(), rows["sex"].to_numpy(), rows["id"].to_numpy(), rows)


# ---------------------------------------------------------------------------------------------------------
# By the book


def naive_rank(policy, row, kind):
    """Where somebody stands among the fitted people of the group, as on the page: by score, at random within a cell."""
    z, k = policy.groups.index(row.sex), len(policy.classes)
    draw = 1.0 - float(uniforms(policy.salt, [row.id])[0]) if policy.randomize else 0.5
    if kind == "label":
        cell = row.label
    elif kind == "soft-label":
        if draw <= row.score:
            cell, draw = 1, draw / row.score
        else:
            cell, draw = 0, (draw - row.score) / (1.0 - row.score)
    else:
        cell = next(s for s, (_, low, high) in enumerate(ranges_of(policy, k)) if low < row.score <= high)
    mass = policy.mass[z].tolist()
    return (sum(mass[cell + 1 :]) + draw * mass[cell]) / sum(mass)


@cache
def ranges_of(policy, k):
    return policy.signal.ranges(k)


def naive_excess(aim, z, people, sums):
    """From the page, with the level by bisection."""
    if isinstance(aim, FloorAim):
        return min(0.0, sums[z] - people[z] * aim.levels[z])
    if isinstance(aim, BudgetAim):
        return max(0.0, sum(sums) - sum(people) * aim.upper)
    if not people[z]:
        return 0.0
    level = naive_level(people, sums, aim.width)
    mean = sums[z] / people[z]
    return sums[z] - people[z] * min(max(mean, level), level + aim.width)


def naive_level(people, sums, width):
    """The lower end at which excesses add up to nothing, by bisection."""
    known = [(total / held, held) for held, total in zip(people, sums, strict=True) if held]
    low, high = min(mean for mean, _ in known) - width, max(mean for mean, _ in known)
    for _ in range(200):
        level = (low + high) / 2
        left = sum(held * (mean - min(max(mean, level), level + width)) for mean, held in known)
        low, high = (level, high) if left > 0 else (low, level)
    return (low + high) / 2


def naive_run(policy, rows, aim, pace, *, kind="score", reach=0.25, value=None):
    """Decide on everybody, one after another, from the page alone."""
    value = value or (lambda decision, row: decision * row.loan)
    groups, n = policy.groups, len(policy.groups)
    held = policy.mass.sum(axis=1)
    share, begin = held / held.sum(), (policy.rounded(policy.q)[:, :, 1] * policy.mass).sum(axis=1) / held
    people, sums, changes, sizes = [0] * n, [0.0] * n, [0.0] * n, 0.0
    found, limited = [], 0
    for row in rows.itertuples():
        z = groups.index(row.sex)
        change = value(1, row) - value(0, row)
        sizes, changes[z] = sizes + abs(change), changes[z] + change
        slope = sizes / (sum(people) + 1)
        weight = 1.0 if isinstance(aim, BudgetAim) else share[z]
        step = naive_excess(aim, z, people, sums) / (slope * pace * weight)
        control = begin[z] - (step if changes[z] >= 0 else -step)
        for end, side in ((begin[z] - reach, -1), (begin[z] + reach, 1)):
            if side * (control - end) > 0 and 0 < end < 1:
                control, limited = end, limited + 1
        rank = naive_rank(policy, row, kind)
        decision = int(rank <= control) if 0 < control < 1 else int(control >= 1)
        people[z] += 1
        sums[z] += value(decision, row)
        found.append(decision)
    return found, people, sums, limited


@pytest.mark.parametrize("kind", ["score", "label", "soft-label"])
@pytest.mark.parametrize("pace", [200.0, 900.0])
def test_cells_are_steered_by_the_book(kind, pace):
    """Everybody is decided on as one person after another is by the formulas of the page."""
    policy, rows = policy_of(kind), world(seed=1, fall=0.1)
    steering = started(policy, pace=pace)
    assert decided(steering, rows, kind).tolist() == naive_run(policy, rows, GapAim(0.0), pace, kind=kind)[0]


ASKED = {
    "gap of two": ({"gap": 1.5}, ("f", "m"), GapAim(1.5)),
    "gap of four": ({"gap": 0.8}, ("a", "b", "c", "d"), GapAim(0.8)),
    "no gap of three": ({"gap": 0.0}, ("a", "b", "c"), GapAim(0.0)),
    "floor": ({"gap": {}, "constraints": [Floor(FUNDING, 4.5)]}, ("f", "m"), FloorAim((4.5, 4.5))),
    "budget": ({"gap": {}, "constraints": [Budget(FUNDING, at_most=3.0)]}, ("f", "m"), BudgetAim(-math.inf, 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_every_requirement_is_steered_by_the_book(asked):
    """Gaps of any width and of any number of groups, floors and budgets, where people are others than those fitted."""
    settings, groups, aim = ASKED[asked]
    policy = fitted(groups=groups, **settings)
    rows = world(1_200, seed=2, groups=groups, fall=0.2)
    steering = started(policy, pace=800)
    taken, people, sums, limited = naive_run(policy, rows, aim, 800)
    assert decided(steering, rows).tolist() == taken
    assert list(steering.people.values()) == people
    assert list(steering.means.values()) == pytest.approx([s / n for s, n in zip(sums, people, strict=True)])
    assert steering.limited == limited
    assert steering.gap == pytest.approx(max(steering.means.values()) - min(steering.means.values()))


@pytest.mark.parametrize("groups", [("f", "m"), ("a", "b", "c")])
@pytest.mark.parametrize("classes", [2, 3])
def test_individual_policies_are_steered_by_the_book(groups, classes):
    """Every person gets the decision of least loss less the weight of happiness that the sums have set."""
    rows = world(900, groups=groups).assign(rest=lambda t: 1 - t["score"], half=lambda t: t["score"] / 2)
    roles = ROLES | {"score": {0: "rest", 1: "score"}}
    worth = FUNDING
    if classes == 3:
        rows = rows.assign(repaid=rows["repaid"] + (rows["repaid"] & (rows["loan"] > 8)))
        roles, worth = ROLES | {"score": {0: "rest", 1: "half", 2: "half"}}, "(decision == 2) * loan"
    policy = solved(rows, policy="individual", happiness=worth, gap=0.0, **roles)
    scores = rows[[roles["score"][k] for k in range(classes)]].to_numpy()
    sex = rows["sex"].to_numpy()
    steering = policy.steer(pace=400)
    seen = policy.look(scores, np.array([groups.index(one) for one in sex]), rows)
    slopes, n = policy.slopes, len(groups)
    slope = float(((1 - slopes.share) / (n - 1)) @ slopes.slope)
    people, sums, found = np.zeros(n), np.zeros(n), []
    for i, one in enumerate(sex):
        z = groups.index(one)
        level = sums.sum() / people.sum() if people.sum() else 0.0
        kappa = slopes.kappa[z] - (sums[z] - people[z] * level) / (slope * 400 * slopes.share[z])
        limit = 0.25 * slopes.swing[z] / slope
        kappa = min(max(kappa, slopes.kappa[z] - limit), slopes.kappa[z] + limit)
        part = slice(i, i + 1)
        ledger = seen.ledger
        decision = int(choose(1.0, np.array([[kappa]]), ledger.cost[part], ledger.value[part])[0])
        people[z] += 1
        sums[z] += (decision == classes - 1) * rows["loan"].iloc[i]
        found.append(decision)
    assert steering.decide(scores, sex, x=rows).tolist() == found


@pytest.mark.parametrize("direction", [1, -1])
def test_the_direction_is_that_of_happiness(direction):
    """Where the first class is the better one, the gap closes all the same, and by the book."""
    worth = f"{direction} * decision * loan"
    policy, rows = fitted(happiness=worth), world(2_500, seed=3, fall=0.15)
    steering = policy.steer(worth, pace=300)
    taken = naive_run(
        policy, rows, GapAim(0.0), 300, value=lambda decision, row: direction * decision * row.loan
    )
    assert decided(steering, rows).tolist() == taken[0]
    fixed = policy.decide(rows["score"], rows["sex"], rows["id"].to_numpy()) * rows["loan"]
    means = fixed.groupby(rows["sex"]).mean()
    assert steering.gap < 0.2 * abs(means["f"] - means["m"])


def test_groups_may_differ_in_what_is_good_for_them():
    """What helps one group and hurts another moves the two controls the same way."""
    worth = Happiness("decision if group == 'f' else 1 - decision", name="good")
    rows = world(3_000, seed=4)
    policy = solved(rows, policy="score", happiness=worth, gap=0.4, **ROLES)
    steering = policy.steer(worth, gap=0.0, pace=300, reach=1.0)
    decided(steering, rows)
    moved = {group: control.now - control.fitted for group, control in steering.controls.items()}
    assert steering.gap < 0.05
    assert moved["f"] * moved["m"] > 0


def test_without_a_lottery_there_are_no_keys():
    """A policy without a lottery is steered without keys, everybody standing in the middle of the cell."""
    rows = world(seed=5, fall=0.1)
    fair = fair_classifier(
        _Column(), policy="score", randomize=False, happiness=FUNDING, sensitive_features="sex"
    )
    fair.fit(world(), world()["repaid"])
    policy = fair.policy_
    steering = policy.steer(FUNDING, pace=300)
    found = steering.decide(rows["score"].to_numpy(), rows["sex"].to_numpy(), x=rows)
    assert found.tolist() == naive_run(policy, rows, GapAim(0.0), 300)[0]


class _Column:
    """A model that says what stands in the table."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X["score"], X["score"]])

    def predict(self, X):
        return (X["score"] > 0.5).astype(int).to_numpy()

    def get_params(self, deep=True):
        return {}

    def __sklearn_tags__(self):
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def test_a_decision_function_is_steered_in_its_own_values():
    """Cells of values are ranked as those of scores are, and thresholds are values."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import RidgeClassifier

    rows = world()
    model = RidgeClassifier().fit(rows[["score", "loan"]], rows["repaid"])
    fair = FairClassifier(
        FrozenEstimator(model), gap=0.0, happiness=FUNDING, sensitive_features="sex", random_state=0
    )
    policy = fair.fit(rows, rows["repaid"]).policy_
    values = model.decision_function(rows[["score", "loan"]])
    steering = policy.steer(FUNDING)
    steering.decide(values, rows["sex"].to_numpy(), rows["id"].to_numpy(), rows)
    for control in steering.controls.values():
        assert values.min() < control.threshold < values.max()
        assert "value" in control.words
    assert steering.gap < 0.3


# ---------------------------------------------------------------------------------------------------------
# Invariances


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
def test_batches_may_be_cut_anywhere(kind):
    """One person at a time, some, or all at once: the same decisions, sums and history, to the last bit."""
    policy, rows = policy_of(kind), world(700, seed=6, fall=0.1)
    other = started(policy, pace=200)
    decided(other, world(300, seed=7), kind)
    files = []
    for cuts in ([0, 700], [0, 1, 2, 350, 351, 700], list(range(0, 701, 7))):
        steering = started(policy, pace=200)
        steering._state.name = "0" * 16
        for _ in range(3):  # of several that are heard of, too
            steering.hear([other])
        found = [decided(steering, rows.iloc[a:b], kind) for a, b in pairwise(cuts)]
        files.append((np.concatenate(found).tolist(), steering.to_json()))
    assert files[0] == files[1] == files[2]


@pytest.mark.parametrize("kind", ["score", "label", "soft-label"])
def test_a_steering_begins_as_the_policy_decides(kind):
    """Before anybody is counted, all are decided on as by a policy that randomizes in one cell, with the same draws.

    A policy that randomizes in several cells begins with the same share of people, in the order of their scores.
    """
    policy, rows = started(policy_of(kind)).policy(), world(300, seed=8)
    scores = rows["label" if kind == "label" else "score"].to_numpy()
    fixed = policy.decide(scores, rows["sex"], rows["id"].to_numpy())
    for i in range(len(rows)):
        assert decided(started(policy), rows.iloc[i : i + 1], kind).tolist() == [fixed[i]]
    old = policy_of(kind)
    for one in (policy, old):
        assert [*started(one)._rule.controls.fitted] == pytest.approx(
            ((old.q[:, :, 1] * old.mass).sum(axis=1) / old.mass.sum(axis=1)).tolist()
        )


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
def test_the_controls_at_any_time_are_a_policy(kind):
    """It decides on everybody what the steering would decide next, with the same draws, and states no numbers."""
    policy, rows, more = policy_of(kind), world(800, seed=9, fall=0.15), world(200, seed=10)
    steering = started(policy, pace=200)
    decided(steering, rows, kind)
    now = steering.policy()
    scores = more["label" if kind == "label" else "score"].to_numpy()
    taken = now.decide(scores, more["sex"], more["id"].to_numpy(), more)
    for i in range(len(more)):
        copy = Steering(policy, steering._rule, steering._state.copy())
        # The one who comes is a part of the slope, so only nearly the same; the same unless just at the control.
        one = copy.decided(
            scores[i : i + 1], more["sex"][i : i + 1], more["id"][i : i + 1].to_numpy(), more[i : i + 1]
        )
        if abs(one.controls[0] - steering.controls[more["sex"][i]].now) < 1e-12:
            assert one.decisions[0] == taken[i]
    again = Policy.from_json(now.to_json())
    assert again.sha256 == now.sha256
    assert math.isnan(again.loss)
    assert math.isnan(again.gap)
    assert np.isnan(again.outcome.means).all()
    assert "Nobody measured" in str(again)
    assert f"{sum(steering.people.values()):,} people" in str(again)
    assert again.impact() == []
    assert again.cautions() == []
    assert again.explain(scores[0], more["sex"][0], key="a", x=more[:1]).decision == again.decide(
        scores[:1], more["sex"][:1], np.array(["a"]), more[:1]
    )
    found = audit(again, more, "repaid", sensitive_features="sex", happiness=FUNDING,
                  **({"predicted": "label"} if kind == "label" else {"score": "score"}))  # fmt: skip
    assert math.isfinite(found[FUNDING].gap.estimate)


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_a_new_period_begins_with_the_last_controls(kind):
    """The policy at any time can be steered again: nobody is counted, and the controls are where they were."""
    steering = started(policy_of(kind), pace=300)
    decided(steering, world(800, seed=9, fall=0.15), kind)
    again = started(steering.policy(), pace=300)
    assert sum(again.people.values()) == 0
    for group, control in again.controls.items():
        assert control.now == control.fitted
        assert control.now == pytest.approx(steering.controls[group].now, abs=1e-12)


def test_a_policy_with_numbers_that_nobody_measured_is_refused():
    """A file cannot claim a loss, or a gap, of the controls at any time."""
    from felicific._files import read_document, write_document

    steering = started(policy_of())
    content = read_document(steering.policy().to_json())
    for name, number in (("gaps", [0.0]), ("means", [[1.0], [1.0]])):
        with refused(PolicyFileError, "nobody measured"):
            Policy.from_json(write_document(content | {name: number}))
    plain = read_document(policy_of().to_json())
    with refused(PolicyFileError):
        Policy.from_json(write_document(plain | {"gaps": [None]}))


def test_who_is_not_counted_changes_nothing():
    """People outside `among` are decided on by the control of their group, and add to no sum."""
    worth = Happiness("decision * loan", among="loan > 6", name="large")
    policy = solved(world(), policy="score", happiness=worth, gap=0.0, **ROLES)
    rows = world(500, seed=12)
    steering = policy.steer(worth, pace=200)
    decided(steering, rows)
    assert sum(steering.people.values()) == (rows["loan"] > 6).sum()
    before = steering.to_json()
    outside = rows[rows["loan"] <= 6]
    changed = json.loads(steering.to_json())["state"]["own"]
    decided(steering, outside)
    assert json.loads(steering.to_json())["state"]["own"] == changed
    assert before != steering.to_json()  # they were decided on


def test_whatever_raises_leaves_everything_as_it_was():
    """A bad row in the middle, a missing key, a group that nobody knows: no sum moves."""
    policy, rows = policy_of(), world(50, seed=13)
    steering = started(policy)
    decided(steering, rows)
    before = steering.to_json()
    score, sex, key = rows["score"].to_numpy(), rows["sex"].to_numpy(), rows["id"].to_numpy()

    def with_one(array, value):
        array = array.astype(object)
        array[25] = value
        return array

    with refused(GroupError, "'x'"):
        steering.decide(score, with_one(sex, "x"), key, rows)
    with refused(DataError, "row 25"):
        steering.decide(np.where(np.arange(50) == 25, np.nan, score), sex, key, rows)
    with refused(DataError, "key"):
        steering.decide(score, sex, with_one(key, None), rows)
    with refused(DataError, "keys"):
        steering.decide(score, sex, None, rows)
    with refused(DataError, "3 keys for 50"):
        steering.decide(score, sex, key[:3], rows)
    with refused(HappinessError, "loan"):
        steering.decide(
            score, sex, key, rows.assign(loan=with_one(rows["loan"].to_numpy(), np.nan).astype(float))
        )
    with refused(HappinessError, "looks at x"):
        steering.decide(score, sex, key)
    assert steering.to_json() == before


def test_nobody_is_no_problem():
    """A batch of nobody decides on nobody."""
    steering = started(policy_of())
    before = steering.to_json()
    assert decided(steering, world(50, seed=13)[:0]).tolist() == []
    assert steering.to_json() == before
    assert math.isnan(steering.gap)
    assert steering.bound is None


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(-5, 5)), min_size=1, max_size=6).filter(
        lambda held: any(people for people, _ in held)
    ),
    st.floats(0.0, 6.0),
)
def test_the_level_is_where_excesses_add_up_to_nothing(held, width):
    """The closed form is what bisection finds, of any number of groups and any width."""
    people = [n for n, _ in held]
    sums = [n * mean for n, mean in held]
    level = find_level(people, sums, width)
    means = [mean for n, mean in held if n]
    if max(means) - min(means) > width + 1e-9:
        assert level == pytest.approx(naive_level(people, sums, width), abs=1e-9)
    excess = [GapAim(width).excess(z, people, sums) for z in range(len(people))]
    assert sum(excess) == pytest.approx(0.0, abs=1e-9 * max(1.0, sum(people)))
    assert all(e == pytest.approx(naive_excess(GapAim(width), z, people, sums), abs=1e-7)
               for z, e in enumerate(excess))  # fmt: skip


@pytest.mark.parametrize(
    "aim",
    [
        GapAim(0.5),
        FloorAim((0.5, None)),
        BudgetAim(-math.inf, 2.0),
        BudgetAim(1.0, math.inf),
        BudgetAim(1.0, 2.0),
    ],
)
def test_aims_survive_a_file(aim):
    """What is held is read as it was written, and everything else is refused."""
    assert read_aim(json.loads(json.dumps(aim.to_json())), 2) == aim
    for wrong in (None, {}, {"kind": "gap"}, {"kind": "gap", "width": -1}, {"kind": "floor", "levels": [1]},
                  {"kind": "budget", "limits": [2, 1]}, {"kind": "ratio", "width": 1}):  # fmt: skip
        with refused(PolicyFileError):
            read_aim(wrong, 2)


def test_both_sides_of_a_budget_are_held():
    """Too little is paid back as too much is, by all groups alike."""
    assert BudgetAim(1.0, 2.0).excess(0, [4, 6], [1.0, 4.0]) == pytest.approx(-5.0)
    assert BudgetAim(1.0, 2.0).excess(1, [4, 6], [10.0, 15.0]) == pytest.approx(5.0)
    assert BudgetAim(1.0, 2.0).excess(0, [4, 6], [6.0, 9.0]) == 0.0
    assert BudgetAim(1.0, 2.0).weights([0.3, 0.7, 0.0]) == [1.0, 1.0, 0.0]


# ---------------------------------------------------------------------------------------------------------
# The bound


@cache
def rates():
    """A policy of rates whose every score has people of both groups."""
    return solved(world(), policy="score", happiness="decision", gap=0.0, **ROLES)


HOSTILE = {
    "always the group above, who are approved if anybody is": lambda s, t: (_above(s), 1.0),
    "always the group below, who are refused if anybody is": lambda s, t: (_below(s), 0.0),
    "the best above, the worst below": lambda s, t: [(_above(s), 1.0), (_below(s), 0.0)][t % 2],
    "one group alone, then the other": lambda s, t: ("f", 1.0) if t < 1_500 else ("m", 0.0),
    "long waves": lambda s, t: [("f", 1.0), ("m", 0.0), ("f", 0.0), ("m", 1.0)][(t // 400) % 4],
    "just at the control": lambda s, t: (_above(s), _just(s, _above(s), 0.001)),
    "just below the control of the lower": lambda s, t: (_below(s), _just(s, _below(s), -0.001)),
}  # fmt: skip


def _above(steering):
    means = steering.means
    return max(means, key=lambda group: -math.inf if math.isnan(means[group]) else means[group])


def _below(steering):
    return "m" if _above(steering) == "f" else "f"


def _just(steering, group, beside):
    return min(max(steering.controls[group].threshold + beside, 0.0), 1.0)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_no_stream_passes_the_bound(hostile, gap):
    """Whoever comes, even if somebody looks at the controls to choose who, the gap stays within the bound."""
    steering = rates().steer("decision", gap=gap, pace=250, reach=1.0)
    closest = 0.0
    for t in range(1_600):
        group, score = (
            HOSTILE[hostile](steering, t) if t > 40 or "alone" in hostile else ("fm"[t % 2], t % 3 / 2)
        )
        steering.decide([score], [group], [f"p{t}"])
        bound = steering.bound
        if bound is not None:
            assert steering.gap <= bound * (1 + 1e-9)
            closest = max(closest, (steering.gap - gap) / (bound - gap))
    assert steering.limited == 0
    assert steering._state.added == 0.0  # rates always meet the condition
    if hostile in ("one group alone, then the other", "long waves"):
        assert closest > 0.95  # so a bound that is smaller by a twentieth would be passed


@given(st.lists(st.tuples(st.sampled_from(["f", "m"]), st.sampled_from([0.0, 0.3, 0.6, 1.0]), st.floats(-3, 9)),
                min_size=2, max_size=60))  # fmt: skip
def test_the_bound_counts_what_nobody_could_prevent(stream):
    """Of happiness of any size and sign, the gap stays within the bound: what nobody could prevent is a part of it."""
    steering = fitted_amounts().steer("decision * amount", pace=200, reach=1.0)
    for t, (group, score, amount) in enumerate(stream):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SteeringWarning)
            steering.decide([score], [group], [t], {"amount": [amount]})
        if steering.bound is not None:
            assert steering.gap <= steering.bound * (1 + 1e-9) + 1e-9


@cache
def fitted_amounts():
    rows = world().assign(amount=lambda t: t["loan"])
    return solved(rows, policy="score", happiness="decision * amount", gap=0.0, **ROLES)


def test_individual_policies_have_a_bound_too():
    """Made of the largest loss and the room that people have; a hostile stream stays within it."""
    policy, rows = policy_of("individual"), world(600, seed=14)
    steering = policy.steer(pace=200, reach=1.0)
    best, worst = (
        rows["score"].to_numpy()[[pick]] for pick in (rows["score"].argmax(), rows["score"].argmin())
    )
    for t in range(800):
        group = _above(steering) if t % 2 else _below(steering)
        steering.decide(best if t % 2 else worst, [group], [t], {"loan": [7.0]})
        if steering.bound is not None:
            assert steering.gap <= steering.bound * (1 + 1e-9)
    assert steering.bound is not None


@pytest.mark.parametrize("reach", [0.25, 1.0])
def test_a_group_that_no_decision_moves_has_no_bound(reach, tmp_path):
    """Nothing is proven, no weight of it goes too far, and the state can be saved."""
    worth = Happiness("decision if group == 'f' else 0.3", name="h")
    policy = fitted("individual", happiness=worth)
    steering, path = policy.steer(reach=reach), tmp_path / "steer.json"
    decided(steering, world(50, seed=14))
    assert steering.people["m"]
    assert steering.bound is None
    assert "could not be more" not in str(steering)
    low, high = (getattr(steering.controls["m"], name) for name in ("low", "high"))
    assert (low, high) == (-math.inf, math.inf)
    steering.save(path)
    assert load(path, policy=policy).to_json() == steering.to_json()


def test_there_is_a_bound_where_it_is_proven_and_nowhere_else():
    """None of three groups, of floors, once a control was held back, and where others are heard of."""
    rows = world(400, seed=15, fall=0.3)
    three = fitted(groups=("a", "b", "c"))
    steering = three.steer(FUNDING)
    decided(steering, world(200, seed=15, groups=("a", "b", "c")))
    assert steering.bound is None
    floor = fitted(gap={}, constraints=[Floor(FUNDING, 4.0)])
    steering = floor.steer(FUNDING)
    decided(steering, rows)
    assert steering.bound is None
    one, other = (started(policy_of()) for _ in range(2))
    decided(one, rows)
    decided(other, rows)
    assert one.bound > 0
    one.hear([other])
    assert one.bound is None
    held = started(policy_of(), reach=0.01)
    with pytest.warns(SteeringWarning, match=r"reach=0\.01"):
        decided(held, rows)
    assert held.limited > 0
    assert held.bound is None
    decided(held, world(100, seed=16))  # warned once


def test_what_is_owed_is_paid_back_when_it_can_be():
    """Controls that were held back go on owing: once people are as before, the gap closes."""
    steering = started(policy_of(), reach=0.05, pace=200)
    with pytest.warns(SteeringWarning):
        decided(steering, world(600, seed=17, fall=0.4))
    left = steering.gap
    decided(steering, world(4_000, seed=18))
    assert steering.gap < 0.2 * left


# ---------------------------------------------------------------------------------------------------------
# Servers


def test_hearing_twice_is_hearing_once():
    """What is known of others is replaced, whatever was heard before, and each is kept by itself."""
    here, there, yonder = (started(policy_of()) for _ in range(3))
    decided(there, world(100, seed=19))
    here.hear([there])
    decided(there, world(50, seed=20))
    decided(yonder, world(70, seed=21))
    here.hear([there, there])
    here.hear([yonder])
    once = here.to_json()
    here.hear([there, yonder])
    assert here.to_json() == once
    assert sum(here.people.values()) == 220
    there.hear([here])
    assert sum(there.people.values()) == 150  # what was heard is not passed on


def test_servers_that_hear_of_each_other_keep_the_gap_together():
    """Four servers that hear every fifty people leave less than four that never do."""
    rows, left = world(4_000, seed=22, fall=0.1), {}
    for hears in (True, False):
        servers = [started(policy_of(), pace=300) for _ in range(4)]
        for start in range(0, len(rows), 200):
            for k, server in enumerate(servers):
                decided(server, rows.iloc[start + 50 * k : start + 50 * k + 50])
            for server in servers if hears else ():
                server.hear([other for other in servers if other is not server])
        servers[0].hear(servers[1:])
        left[hears] = servers[0].gap
        assert sum(servers[0].people.values()) == len(rows)
    assert left[True] < left[False]


def test_who_may_not_be_heard_of():
    """Not a steering itself or a copy of it, not one of another policy or with another aim, nothing else."""
    here = started(policy_of())
    before = here.to_json()
    with refused(DataError, "itself"):
        here.hear([here])
    with refused(DataError, "another policy"):
        here.hear([rates().steer("decision")])
    with refused(DataError, "another policy"):
        here.hear([started(policy_of(), gap=1.0)])
    with refused(DataError, "no steering"):
        here.hear(["steer.json"])
    one, apart = started(policy_of()), started(policy_of())
    apart._state = one._state.copy()  # as from a copy of its file
    decided(one, world(20, seed=19))
    with refused(DataError, "went on apart"):
        here.hear([one, apart])
    assert here.to_json() == before


def test_who_was_heard_of_is_told_apart_from_who_is_not_counted():
    """The headline counts people of others by themselves, however many were decided on here and not counted."""
    worth = Happiness(FUNDING, among="loan > 9", name=FUNDING)
    here, there = (policy_of().steer(worth) for _ in range(2))
    decided(here, world(200, seed=19))
    decided(there, world(100, seed=20))
    here.hear([there])
    counted = int((world(100, seed=20)["loan"] > 9).sum())
    assert 0 < counted < 100
    assert here.heard == counted
    assert f"200 people decided on, {counted} more heard of." in str(here)


def test_servers_that_never_hear_have_no_bound_together():
    """Each sees no gap, and together there is one, beyond both bounds: so nothing is said of it."""
    g, t = np.arange(1_000) % 10 == 0, np.arange(1_000)
    good, bad = (rates().steer("decision", pace=300, reach=1.0) for _ in range(2))
    found = [
        (good.decide(np.full(1_000, 0.95), np.where(g, "m", "f"), t), g),
        (bad.decide(np.full(1_000, 0.02), np.where(g, "f", "m"), t), ~g),
    ]
    decisions, men = (np.concatenate(each) for each in zip(*found, strict=True))
    assert good.gap == bad.gap == 0.0
    assert decisions[~men].mean() - decisions[men].mean() == pytest.approx(0.8)
    good.hear([bad])
    assert good.gap == pytest.approx(0.8)
    assert good.bound is None


# ---------------------------------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
def test_a_file_goes_on_where_it_was_saved(kind, tmp_path):
    """Saved and loaded in the middle, the same decisions and the same file as without."""
    policy, rows = policy_of(kind), world(600, seed=23, fall=0.1)
    steering, whole = started(policy), started(policy)
    whole._state.name = steering._state.name
    whole.hear([started(policy)])
    steering._state.heard = {name: sums.copy() for name, sums in whole._state.heard.items()}
    first = decided(steering, rows.iloc[:300], kind)
    path = tmp_path / "steer.json"
    steering.save(path)
    own = None if policy.sees_x else FUNDING
    loaded = load(path, policy=Policy.from_json(policy.to_json()), happiness=own)
    assert loaded.to_json() == steering.to_json()
    second = decided(loaded, rows.iloc[300:], kind)
    assert np.concatenate([first, second]).tolist() == decided(whole, rows, kind).tolist()
    assert loaded.to_json() == whole.to_json()
    assert str(loaded) == str(whole)


def test_a_state_of_another_policy_is_refused(tmp_path):
    """By the checksum, and by name where only the draws are others."""
    path = tmp_path / "steer.json"
    started(policy_of()).save(path)
    with refused(PolicyFileError, "another policy", "steer.json"):
        load(path, policy=rates(), happiness="decision")
    with refused(PolicyFileError, "draws are others"):
        load(path, policy=policy_of().resalted(), happiness=FUNDING)
    with refused(HappinessError, FUNDING):
        load(path, policy=policy_of())


def test_a_state_of_more_groups_is_of_another_policy(tmp_path):
    """Whoever takes the wrong of two good files is told so, and not that one is broken."""
    three, path = ("a", "b", "c"), tmp_path / "steer.json"
    fitted(groups=three).steer(FUNDING).save(path)
    with refused(PolicyFileError, "another policy"):
        load(path, policy=policy_of(), happiness=FUNDING)


def test_a_file_that_is_no_steering_is_refused(tmp_path):
    """Cut, altered, of another format, with a part too many or one that cannot be."""
    from felicific._files import read_document, write_document

    steering, path = started(policy_of()), tmp_path / "steer.json"
    decided(steering, world(20, seed=24))
    text = steering.to_json()
    content = read_document(text, "felicific steering")

    def tried(changed):
        path.write_text(changed, "utf-8")
        with refused(PolicyFileError, "no file of a steering", "steer.json"):
            load(path, policy=policy_of(), happiness=FUNDING)

    tried(text[:-40])
    tried(text.replace('"decided": 20', '"decided": 21'))
    tried(policy_of().to_json())
    for part in content:
        tried(
            write_document(
                {name: held for name, held in content.items() if name != part}, "felicific steering"
            )
        )
    state = content["state"]
    wrong = {
        "own": state["own"] | {"people": [-1, 2]},
        "limited": -1,
        "added": -1.0,
        "name": "me",
        "files": ["x"],
        "heard": [["me", state["own"]]],
        "history": {"every": 0, "points": []},
        "decided": 1.5,
    }
    for name, held in wrong.items():
        tried(write_document(content | {"state": state | {name: held}}, "felicific steering"))
    for name, held in {
        "pace": 0,
        "reach": 2,
        "groups": ["f"],
        "policy": "x",
        "aim": {},
        "measure": 1,
    }.items():
        tried(write_document(content | {name: held}, "felicific steering"))
    tried(write_document(content | {"measure": "another"}, "felicific steering"))
    path.write_bytes(b"\xff\xfe")
    with refused(PolicyFileError, "not text"):
        load(path, policy=policy_of(), happiness=FUNDING)


def test_a_file_holds_nobody(tmp_path):
    """Neither keys nor the salt stand in it, and it stays small."""
    steering = started(policy_of())
    rows = world(3_000, seed=25)
    for start in range(0, 3_000, 500):
        decided(steering, rows.iloc[start : start + 500])
    text = steering.to_json()
    assert policy_of().salt not in text
    assert "25-17" not in text
    assert len(steering.history) <= POINTS
    assert len(text) < 60_000
    people = [point.people for point in steering.history]
    assert people == sorted(set(people))
    assert np.diff(people).max() == np.diff(people).min()
    assert people[-1] > 2_900


def test_a_killed_save_leaves_the_old_file_or_the_new_one(tmp_path):
    """Killed just before the new file takes its name leaves the old one, whole."""
    path, policy = tmp_path / "steer.json", tmp_path / "policy.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy_of().save(policy)
    steering = started(policy_of())
    decided(steering, world(30, seed=26))
    steering.save(path)
    before = path.read_bytes()
    script = textwrap.dedent(
        f"""
        import os, signal
        from felicific import load
        from felicific._policy.steering import Steering
        policy = load({str(policy)!r})
        steering = load({str(path)!r}, policy=policy, happiness={FUNDING!r})
        steering.decide([0.5], ["f"], ["a"], {{"loan": [3.0]}})
        os.replace = lambda *files: os.kill(os.getpid(), signal.SIGKILL)
        steering.save({str(path)!r})
        """
    )
    found = subprocess.run([sys.executable, "-c", script], env=os.environ, check=False)
    assert found.returncode == -9
    assert path.read_bytes() == before
    assert load(path, policy=policy_of(), happiness=FUNDING).people == steering.people


# ---------------------------------------------------------------------------------------------------------
# What is refused, and what is warned of


def explored():
    return fitted(happiness="decision", gap=0.1, constraints=[Exploration(0.02)])


def without_slopes():
    content = json.loads(policy_of("individual").to_json())
    from felicific._files import write_document

    kept = {k: v for k, v in content.items() if k not in ("slopes", "format", "version", "sha256")}
    return Policy.from_json(write_document(kept))


TWO = {"happiness": {"loans": FUNDING, "rate": "decision"}}
PER_APPROVED = Happiness("1 * loan", among="decision == 1", name="per approved person")
LOOKS = Happiness(lambda decision, y: decision * y, name=FUNDING)
BASELINE = Happiness("decision * (baseline == 0)", name=FUNDING)


def required(*constraints, gap=None):
    """A policy of other requirements."""
    return fitted(gap={} if gap is None else gap, constraints=constraints)


def three_classes():
    rows = world().assign(repaid=lambda t: t["repaid"] + (t["loan"] > 12))
    roles = {
        "predicted": "label",
        "y": "repaid",
        "sensitive_features": "sex",
        "happiness": FUNDING,
    }
    return solved(rows, policy="label", gap=5.0, **roles)


def off_a_frontier():
    return traced(world(), policy="individual", happiness=FUNDING, **ROLES).at(gap=1.0)


#: Who is asked, with what, the error and its words.
REFUSED = {
    "explore": (explored, {"happiness": "decision"}, ConstraintError, "chance"),
    "ratio": (lambda: required(Ratio(FUNDING, 0.9)), {}, ConstraintError, "0.9 of the highest"),
    "worse_off": (lambda: required(WorseOff(0.5), gap=2.0), {}, ConstraintError, "less than from the baseline"),
    "floor at the baseline": (lambda: required(Floor(FUNDING, "baseline")), {}, ConstraintError, "the baseline"),
    "several": (lambda: required(Floor(FUNDING, 1.0), gap=0.0), {}, ConstraintError, "2 requirements"),
    "nothing": (required, {}, ConstraintError, "no requirement"),
    "two measures": (lambda: fitted(**TWO), TWO, ConstraintError, "2 measures"),
    "two, one number": (lambda: fitted(**TWO), TWO | {"gap": 0.1}, ConstraintError, "2 measures"),
    "two names": (lambda: fitted(**TWO), TWO | {"gap": {"loans": 0, "rate": 0}}, ConstraintError, "2 measures"),
    "no such name": (policy_of, {"gap": {"x": 0.0}}, ConstraintError, "'x'"),
    "negative gap": (policy_of, {"gap": -1.0}, ConstraintError, "-1.0"),
    "infinite gap": (policy_of, {"gap": math.inf}, ConstraintError, "any size"),
    "pace": (policy_of, {"pace": 0}, ConstraintError, "pace is 0"),
    "pace of text": (policy_of, {"pace": "300"}, ConstraintError, "pace is '300'"),
    "reach": (policy_of, {"reach": 1.5}, ConstraintError, "reach is 1.5"),
    "no happiness": (policy_of, {"happiness": None}, HappinessError, FUNDING),
    "another happiness": (policy_of, {"happiness": "decision"}, HappinessError, "name="),
    "labels": (lambda: fitted(happiness="equal_opportunity", gap=0.1), {}, HappinessError, "label"),
    "a function of labels": (policy_of, {"happiness": LOOKS}, HappinessError, "label"),
    "baseline": (policy_of, {"happiness": BASELINE}, HappinessError, "baseline"),
    "fraction": (lambda: fitted(happiness=PER_APPROVED, gap=3.0), {}, HappinessError, "fraction"),
    "blind": (lambda: fitted(gap=3.0, sees_group=False), {}, DataError, "without the group"),
    "three classes": (three_classes, {}, DataError, "3 classes"),
    "not monotone": (lambda: falling(), {}, DataError, "falls"),
    "individual with happiness": (lambda: policy_of("individual"), {}, HappinessError, "itself"),
    "a file without slopes": (without_slopes, {"happiness": None}, DataError, "weights"),
    "off a frontier": (off_a_frontier, {"happiness": None}, DataError, "weights"),
    "individual of two": (
        lambda: fitted("individual", **TWO), {"happiness": None, "gap": {"loans": 0.0}}, DataError, "2 measures"
    ),
}  # fmt: skip


def falling():
    """A policy of cells whose chances fall where the score rises."""
    from dataclasses import replace

    policy = fitted(Score(4, monotone=False))
    q = policy.q.copy()
    q[:, 0], q[:, -1] = [0.0, 1.0], [1.0, 0.0]
    return replace(policy, q=q)


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_steered_is_refused_by_name(what):
    """With the offender, and with something to do about it."""
    make, settings, error, words = REFUSED[what]
    policy = make()
    with refused(error, words):
        policy.steer(**{"happiness": FUNDING} | settings)


def test_who_cannot_be_decided_on_is_refused_by_name():
    """A table that is not in memory, and a picture of nobody."""
    steering = started(policy_of())
    with refused(DataError, "in memory"):
        steering.decide(pl.from_pandas(world()).lazy(), "sex")
    with refused(DataError, "Nobody"):
        steering.plot()


def test_a_gap_may_be_named_where_the_policy_asks_for_something_else():
    """Then nothing else is kept, and the steering says so."""
    policy = fitted(constraints=[Floor(FUNDING, 1.0)])
    steering = policy.steer(FUNDING, gap=0.0)
    assert "Not kept while steering: mean" in str(steering)
    two = fitted(**TWO).steer(TWO["happiness"], gap={"rate": 0.0})
    assert two.measure.name == "rate"
    assert "a gap of 'loans'" in str(two)


def test_a_criterion_is_steered():
    """Of two decisions it is one measure, by whichever of its names."""
    policy = fitted(happiness="demographic_parity")
    assert policy.steer("demographic_parity").measure.name == "selection rate"
    steering = policy.steer("statistical_parity", gap={"demographic_parity": 0.0})
    rows = world(2_000, seed=30, fall=0.1)
    found = decided(steering, rows)
    assert steering.means["f"] == pytest.approx(found[rows["sex"] == "f"].mean())
    assert steering.gap < 0.05


def test_values_outside_their_bounds_are_refused():
    """What was promised of happiness is insisted on while deciding."""
    worth = Happiness(FUNDING, bounds=(0.0, 40.0))
    policy = solved(world(), policy="score", happiness=worth, gap=0.0, **ROLES)
    steering = policy.steer(worth)
    with refused(HappinessError, "outside its bounds"):
        steering.decide([0.5], ["f"], ["a"], {"loan": [50.0]})
    assert sum(steering.people.values()) == 0


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_a_recalibrated_policy_is_steered(kind):
    """One that was fitted anew to people without labels begins with their controls."""
    fair = FairClassifier(
        _Column(), gap=0.0, policy=kind, happiness=FUNDING, sensitive_features="sex", random_state=0
    )
    fair.fit(world(), world()["repaid"])
    new = world(1_000, seed=31, fall=0.2)
    policy = fair.recalibrate(new).policy_
    assert policy.expected
    steering = started(policy)
    decided(steering, new, kind)
    assert steering.limited == 0
    assert steering.gap < 1.0


def test_haste_is_warned_of():
    """Fewer than fifty people of the smallest group to pay back in are too few; the default is not."""
    with pytest.warns(SteeringWarning, match="pace=20 "):
        policy_of().steer(FUNDING, pace=20)
    steering = policy_of().steer(FUNDING)
    shares = policy_of().mass.sum(axis=1) / policy_of().mass.sum()
    assert steering.pace == pytest.approx(300 / shares.min())


@pytest.mark.parametrize("groups", [("f", "m"), ("a", "b", "c"), ("a", "b", "c", "d")])
def test_the_pace_that_a_warning_names_is_not_warned_of(groups):
    """It is rounded up: one person fewer would be too few."""
    policy = fitted(groups=groups)
    with pytest.warns(SteeringWarning) as told:
        policy.steer(FUNDING, pace=20)
    named = int(str(told[0].message).split(" Use ")[1].split()[0])
    policy.steer(FUNDING, pace=named)
    with pytest.warns(SteeringWarning):
        policy.steer(FUNDING, pace=named - 1)


# ---------------------------------------------------------------------------------------------------------
# What is shown


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_it_says_what_it_holds_and_how_far_it_is(kind):
    """In a terminal and in a notebook: the aim, the gap, the bound, and the control of every group."""
    steering = started(policy_of(kind))
    assert "nobody decided on yet" in str(steering)
    decided(steering, world(300, seed=27), kind)
    text = str(steering)
    assert "300 people decided on" in text
    assert f"a gap of {FUNDING!r} of at most 0" in text
    assert f"could not be more than {steering.measure.short(steering.bound, 1)}" in text
    for group, control in steering.controls.items():
        assert control.words in text
        assert control.low <= control.now <= control.high
        assert (control.threshold is not None) == (kind == "score")
        assert f"{steering.people[group]:,}" in text
    assert "<table" in steering._repr_html_()
    assert repr(steering) == text


def test_thresholds_decide():
    """Above the threshold that a control stands for people are decided the second class, below the first."""
    steering = started(policy_of(), pace=300)
    decided(steering, world(500, seed=28, fall=0.1))
    now = steering.policy()
    for group, control in steering.controls.items():
        low, high = control.threshold - 0.02, control.threshold + 0.02
        assert now.probabilities([low, high], [group, group])[:, 1].round().tolist() == [0.0, 1.0]


def test_names_that_a_terminal_would_obey_are_shown_as_text():
    """Groups called after escape sequences or tags stay text, in words and in pictures."""
    rows = world().assign(sex=lambda t: np.where(t["sex"] == "f", "<b>\x1b[1m", "m\n"))
    policy = solved(rows, policy="score", happiness="decision", gap=0.0, **ROLES)
    steering = policy.steer("decision")
    decided(steering, rows.iloc[:50])
    assert "\x1b" not in str(steering)
    assert "<b>" not in steering._repr_html_()
    assert "\x1b" not in plots.svg(steering.plot())


@pytest.mark.parametrize("kind", ["score", "label", "individual"])
def test_a_picture_shows_controls_and_the_gap(kind):
    """Thresholds of the score, or controls as they are, above; the gap, with its bound, below."""
    steering = started(policy_of(kind))
    decided(steering, world(400, seed=29), kind)
    content = plots.steering_steps(steering)
    assert content["people"] == 400
    assert len(content["controls"]) == 2 * len(steering.history)
    assert content["gaps"][-1]["gap"] == steering.history[-1].gap
    assert all("bound" in row for row in content["gaps"])
    text = plots.svg(steering.plot())
    assert "people decided on" in text
    assert "so far" in text
    floor = fitted(gap={}, constraints=[Floor(FUNDING, 4.0)]).steer(FUNDING)
    decided(floor, world(100, seed=29))
    assert "allowed" not in plots.svg(floor.plot())
