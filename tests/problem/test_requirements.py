"""Requirements: as objects and in short, their words, how they give way, and kinds that only a test knows."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import solved, traced
from oracles import Exact, Limit
from oracles import _linear_program as naive_program
from program import test_model
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from strategies import aggregates_of

from felicific import Budget, FairClassifier, Floor, Gap, Happiness, Ratio, aggregate, audit, frontier, solve
from felicific._problem.constraints import requirements_of, resolve_gap
from felicific._problem.linear import Goal, Linear
from felicific._problem.requirement import Requirement, rows_of
from felicific.exceptions import ConstraintError, InfeasibleError
from felicific.sklearn import make_scorer


def some_rows(seed, n=60, **more):
    """Generic people, whose gaps cost something to close."""
    return test_model.some_rows(seed, n, **more)


def funding_aggregates():
    """Eight people of two groups, of two measures and a criterion that is several."""
    return aggregate(
        {"loan": np.full(8, 1000.0)},
        y=[0, 1] * 4,
        predicted=[0, 1, 1, 1, 0, 0, 1, 0],
        policy="label",
        sensitive_features=["men", "women"] * 2 + ["men", "men", "women", "women"],
        happiness=[Happiness("decision * loan", unit="$"), "equalized_odds"],
    )


# ---------------------------------------------------------------------------------------------------------
# Gaps as objects, and in short


def test_gap_objects_equal_the_shorthand():
    """gap= as a number or a dict, and Gap(...) among the constraints, are the same requirements in the same order."""
    computed = aggregates_of(some_rows(0, J=3))
    measures = computed.measures
    floor = Floor("eta0", 0.1)
    names = [f"eta{j}" for j in range(3)]
    for gap, objects in (
        (0.2, [Gap(name, 0.2) for name in reversed(names)]),
        ({"eta2": 0.3, "eta0": 0.1}, [Gap("eta0", 0.1), Gap("eta2", 0.3)]),
        ({"eta1": math.inf}, [Gap("eta1", math.inf)]),
        ({}, []),
    ):
        short = requirements_of(gap, [floor], measures)
        assert requirements_of(None, [*objects, floor], measures) == short
        assert requirements_of(None, iter([floor, *objects]), measures) == short
        assert [row.words for row in rows_of(short, computed)] == [
            row.words for row in rows_of((*sorted(objects, key=lambda gap: gap.happiness), floor), computed)
        ]
        one = solve(computed, gap=gap, constraints=[floor])
        other = solve(computed, gap={}, constraints=[*objects, floor])
        assert (one.q.tobytes(), one.prices) == (other.q.tobytes(), other.prices)


def test_of_several_gaps_of_a_measure_the_smallest_counts():
    """Wherever they are written, and in any order."""
    measures = aggregates_of(some_rows(0, J=2)).measures
    for gap, constraints in (
        (0.3, [Gap("eta0", 0.1)]),
        (0.3, [Gap("eta0", 0.1), Gap("eta0", 0.2), Gap("eta1", 0.5)]),
        ({"eta0": 0.1, "eta1": 0.4}, [Gap("eta1", 0.3), Gap("eta0", 0.2)]),
    ):
        assert resolve_gap(gap, measures, constraints) == [0.1, 0.3]
        assert [each.at_most for each in requirements_of(gap, constraints, measures)] == [0.1, 0.3]


def test_a_gap_may_be_of_a_criterion_a_function_or_a_happiness():
    """A criterion stands for each of its measures; functions and happiness go by their names."""

    def funding(decision, x):
        return decision * x["loan"]

    computed = funding_aggregates()
    names = [measure.name for measure in computed.measures]
    assert names[0] == "decision * loan"
    assert len(names) == 3
    assert resolve_gap(None, computed.measures, [Gap("equalized_odds", 0.1)]) == [math.inf, *[0.1] * 2]
    assert resolve_gap(None, computed.measures, [Gap(Happiness("decision * loan"), 5)])[0] == 5
    with pytest.raises(ConstraintError, match="A gap is set for 'funding', which is no measure"):
        solve(computed, gap={}, constraints=[Gap(funding, 5)])


@pytest.mark.parametrize("policy", ["score", "individual"])
def test_a_classifier_takes_gaps_among_its_constraints(people, policy):
    """Fitted, moved along its frontier and certified as with the same gap in short; also of a happiness of its own."""
    X, y = people.table("pandas", ["score", "wealth"]), people.y
    model = FrozenEstimator(LogisticRegression().fit(X, y))

    def fitted(**settings):
        fair = FairClassifier(
            model, happiness="statistical_parity", policy=policy, random_state=0, **settings
        )
        return fair.fit(X, y, sensitive_features=people["group"])

    short = fitted(gap={"statistical_parity": 0.1})
    name = next(iter(short.gaps_))
    objects = fitted(gap={}, constraints=[Gap("statistical_parity", 0.1)])
    assert (objects.loss_, objects.gaps_) == (short.loss_, short.gaps_)
    assert objects.gaps_[name] <= 0.1 + 1e-9
    assert objects.frontier_.tau.tolist() == short.frontier_.tau.tolist()
    # Moved along its frontier, it is what fitting with its own settings gives, not the old gap's.
    other = fitted(gap={}, constraints=[Gap("equal_opportunity", 0.05)])
    assert other.gaps_["true positive rate"] <= 0.05 + 1e-9
    moved = other.at(gap={"equal_opportunity": 0.02})
    again = fitted(gap=moved.gap, constraints=moved.constraints)
    assert moved.gaps_["true positive rate"] <= 0.02 + 1e-9
    assert again.gaps_["true positive rate"] <= 0.02 + 1e-9
    # Individual policies are searched for, so that their frontier may have found a better one.
    assert again.loss_ == pytest.approx(moved.loss_, abs=1e-9 if policy == "score" else 5e-3)


def test_individual_policies_of_tables_take_gaps_among_the_constraints():
    """The same policy as with the gap in short."""
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    score = np.clip(0.3 + 0.2 * y + 0.2 * group + rng.normal(0, 0.1, 200), 0.01, 0.99)
    asked = {
        "score": np.column_stack([1 - score, score]),
        "y": y,
        "sensitive_features": group,
        "happiness": "statistical_parity",
    }
    short = solved({"score": score}, policy="individual", gap=0.05, **asked)
    objects = solved(
        {"score": score},
        policy="individual",
        gap={},
        constraints=[Gap("statistical_parity", 0.05)],
        **asked,
    )
    assert (objects.loss, objects.gaps, objects.prices) == (short.loss, short.gaps, short.prices)


def test_a_frontier_closes_gaps_among_its_constraints():
    """As those of gap=, and keeps the other requirements; a list of gaps beside them is refused."""
    computed = aggregates_of(some_rows(3, J=2))
    floor = Floor("eta0", 0.3)
    short = frontier(computed, gap={"eta0": 0.1, "eta1": 0.2}, constraints=[floor])
    for gap, gaps in (
        (None, [Gap("eta0", 0.1), Gap("eta1", 0.2)]),
        ({"eta0": 0.1}, [Gap("eta1", 0.2)]),
    ):
        line = frontier(computed, gap=gap, constraints=[*gaps, floor])
        assert line.tau.tolist() == short.tau.tolist()
        assert line.ray.tolist() == short.ray.tolist() == [0.1, 0.2]
    assert (short.means[:, :, 0] >= 0.3 - 1e-9).all()
    with pytest.raises(ConstraintError, match="listed"):
        frontier(computed, gap=["eta0"], constraints=[Gap("eta1", 0.2)])


@pytest.mark.parametrize("width", [-1, "5%", True, None, math.nan])
def test_a_gap_that_is_no_width_is_refused_when_it_is_written(width):
    """By its name, before any data is seen."""
    with pytest.raises(ConstraintError, match="The gap of 'funding' is"):
        Gap("funding", width)


# ---------------------------------------------------------------------------------------------------------
# Words, and how rows give way


def test_words():
    """Every row says measure, group, number, unit and for how many people."""
    computed = funding_aggregates()
    name = computed.measures[0].name
    asked = [
        Gap(name, 250),
        Floor(name, 600.0),
        Floor(name, "baseline", groups=["women"]),
        Budget(name, at_least=1, at_most=500_000, per=1000),
        Budget(name, exactly=300),
    ]
    assert [row.words for row in rows_of(asked, computed)] == [
        f"gap of '{name}' at most $250",
        f"mean '{name}' of group 'men' at least $600",
        f"mean '{name}' of group 'women' at least $600",
        f"mean '{name}' of group 'women' at least $750 (baseline)",
        f"'{name}' of all people together at least $1 and at most $500,000 for 1,000 people",
        f"'{name}' of all people together exactly $300 per person",
    ]
    assert [row.name for row in rows_of(asked[:2], computed)] == [
        name,
        *(f"mean '{name}' of group '{group}' at least $600" for group in ("men", "women")),
    ]


def bound(requirement, computed):
    (row,) = rows_of([requirement], computed)
    return row


def test_rows_are_missed_by_what_means_lack():
    """A gap by the largest difference, a floor by its group, a budget by all people weighted as they are counted."""
    rows = some_rows(0, G=3)
    computed = aggregates_of(replace(rows, weight=np.array([1.0, 1.0, 2.0])[rows.group]))
    origin, unit = float(computed.origin[0]), np.ones(1)
    means = np.array([[0.0], [0.5], [1.0]])
    for requirement, exceeds in (
        (Gap("eta0", 1.0), 0.0),
        (Gap("eta0", 0.75), 0.25),
        (Floor("eta0", origin + 0.5, groups=[1]), 0.0),
        (Floor("eta0", origin + 0.5, groups=[0]), 0.5),
        (Budget("eta0", at_most=origin + 0.625), 0.0),
        (Budget("eta0", at_least=(origin + 0.75) * 8, per=8), 0.125),
        (Budget("eta0", exactly=origin + 0.5), 0.125),
        (Ratio("eta0", (origin + 0.25) / (1 + origin)), 0.25),
    ):
        row = bound(requirement, computed)
        assert row.excess(means) == pytest.approx(exceeds, abs=1e-9), requirement
        size = row.sizes(unit).max()  # slack is by the size of a row
        assert row.met(means, unit, (exceeds + 1e-9) / size), requirement
        assert not row.met(means, unit, (exceeds - 1e-9) / size)
        assert not row.met(means, unit, (exceeds - 1e-6) / size), requirement
        assert not row.met(means * math.nan, unit, 1.0)


def test_only_gaps_have_a_width():
    """A frontier multiplies the width of a gap, and 0 is the tightest; a floor or budget moves with its own number."""
    computed = aggregates_of(some_rows(0))
    gap = bound(Gap("eta0", 0.5), computed)
    assert (gap.width, gap.at_width(0.0).width, gap.at_width(2.0).width) == (0.5, 0.0, 2.0)
    assert (Gap.course, gap.fixed().width) == ("ray", None)
    assert gap.reached(np.array([[0.0], [0.7]])) == pytest.approx(0.7)
    for kept in (Floor("eta0", 0.5, groups=[0]), Budget("eta0", at_most=0.5)):
        assert bound(kept, computed).width is None
        assert kept.course == "points"


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (lambda number: Gap("eta0", number), 0.25),
        (lambda number: Ratio("eta0", number), 0.8),
        (lambda number: Floor("eta0", number, groups=[1]), 1.5),
        (lambda number: Budget("eta0", at_most=number, per=7), 9.0),
        (lambda number: Budget("eta0", at_least=number, per=7), 5.0),
    ],
)
def test_rows_move_as_they_are_written_anew(make, number):
    """What one more unit of the number does to rows is what another requirement's rows say."""
    computed = aggregates_of(some_rows(0, G=3))
    moved, anew = bound(make(number), computed).moved(0.125), bound(make(number + 0.125), computed)
    for name in ("number", "lower", "upper", "over_level"):
        one, other = getattr(moved, name), getattr(anew, name)
        assert (one is None) is (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------
# A requirement of a new kind is one class and its rows, and nothing elsewhere


@dataclass(frozen=True)
class FourFifths(Requirement):
    """The four-fifths rule."""

    happiness: Any
    at_least: float = 0.8

    def rows(self, sums):
        j = [measure.name for measure in sums.measures].index(self.happiness)
        words = f"mean {self.happiness!r} of every group at least {self.at_least:g} of the highest"
        n, origin = len(sums.groups), float(sums.origin[j])
        each, twice, endless = np.arange(n), np.arange(2 * n), np.full(n, math.inf)
        goal = Goal(words, j, "ratio", np.eye(n), sums.groups)
        return [
            Linear(
                goal,
                row=twice,
                group=np.append(each, each),
                measure=np.full(2 * n, j),
                number=np.ones(2 * n),
                lower=np.append(-endless, np.full(n, -origin)),
                upper=np.append(np.full(n, -origin), endless),
                over_level=np.repeat([-1.0, -self.at_least], n),
                least_level=0.0,
                d_level=np.repeat([0.0, -1.0], n),
            )
        ]


def least_loss_by_ratio(exact, ratio):
    """The naive program: every mean at least the ratio times every other."""
    factor = Fraction(ratio)
    limits = [
        Limit(0, {a: Fraction(-1), b: factor}, factor * exact.base[b][0] - exact.base[a][0], Fraction(0))
        for a, b in permutations(range(exact.rows.n_groups), 2)
    ]
    regret, _ = naive_program(exact, limits, elastic=False)
    return float(exact.least_loss) + regret * float(exact.loss_swing)


@pytest.mark.parametrize("ratio", [0.5, 0.75, 0.875, 1.0])
@pytest.mark.parametrize("groups", [2, 4])
def test_a_requirement_of_a_new_kind_needs_nothing_elsewhere(ratio, groups):
    """A four-fifths rule that only this file knows is solved, checked, priced and kept on a frontier."""
    priced = 0
    for seed in range(5):
        rows = some_rows(seed, G=groups)
        exact, computed = Exact(rows), aggregates_of(rows)
        policy = solve(computed, gap={}, constraints=[FourFifths("eta0", ratio)])
        means = policy.outcome.means[:, 0]
        assert means.min() >= ratio * means.max() - 1e-9
        assert policy.loss == pytest.approx(least_loss_by_ratio(exact, ratio), abs=1e-9)
        (price,) = policy.prices.values()
        step = 1e-6
        left, right = (
            (least_loss_by_ratio(exact, ratio + at) - least_loss_by_ratio(exact, ratio + at - step)) / step
            for at in (0.0, step)
        )
        if left == pytest.approx(right, rel=1e-3) and left > 1e-3:
            priced += 1
            assert price == pytest.approx(left, rel=1e-3)
        line = frontier(computed, constraints=[FourFifths("eta0", ratio)])
        assert line.loss[-1] == pytest.approx(policy.loss, abs=1e-9)
        assert (line.means.min(axis=1) >= ratio * line.means.max(axis=1) - 1e-8).all()
    assert priced or ratio in (0.5, 1.0)  # slack everywhere, or nothing tighter to compare with


def test_a_conflict_names_a_requirement_of_a_new_kind():
    """In its own words, and without what does not take part in the conflict."""
    computed = aggregates_of(some_rows(0))
    level = 0.5 * float(computed.baseline.means[1, 0])
    taking_part = [
        Floor("eta0", level, groups=[1]),
        FourFifths("eta0", 1.0),
        Budget("eta0", at_most=0.9 * level),
    ]
    with pytest.raises(InfeasibleError) as caught:
        solve(computed, gap=100.0, constraints=taking_part)
    assert caught.value.conflict == tuple(row.words for row in rows_of(taking_part, computed))
    assert caught.value.least_gap is None
    for left_out in range(3):
        solve(computed, gap=100.0, constraints=taking_part[:left_out] + taking_part[left_out + 1 :])


# ---------------------------------------------------------------------------------------------------------
# Gaps that cannot mean anything

TABLE = {
    "g": ["a", "b"] * 20,
    "s": np.linspace(0.05, 0.95, 40),
    "y": [0, 0, 1, 1] * 10,
    "loan": np.arange(1.0, 41.0),
}
ROLES = {"score": "s", "y": "y", "sensitive_features": "g"}
UNITS = {
    "dollars": Happiness("decision * loan", unit="$"),
    "hours": Happiness("decision * loan / 2", unit="h"),
}


def wide(happiness, gap, **more):
    """Every door that takes a gap, with this one."""
    frame, y = pd.DataFrame(TABLE), np.array(TABLE["y"])
    fair = {"happiness": happiness, "sensitive_features": "g", "random_state": 0} | more
    model = FrozenEstimator(LogisticRegression().fit(frame[["s"]], y))
    fitted = FairClassifier(model, **fair | {"gap": {}, "constraints": ()}).fit(frame, y)
    asked = {"happiness": happiness, "gap": gap}
    doors = {
        "fit": lambda: FairClassifier(model, **fair, gap=gap).fit(frame, y),
        "solve": lambda: solved(TABLE, **ROLES, **asked, **more),
        "individual": lambda: solved(TABLE, **ROLES, **asked, policy="individual", **more),
        "sums": lambda: solve(aggregate(TABLE, **ROLES, happiness=happiness), gap=gap, **more),
        "audit": lambda: audit("y", TABLE, "y", sensitive_features="g", **asked),
        "at": lambda: fitted.at(gap=gap),
        "frontier": lambda: traced(TABLE, **ROLES, happiness=happiness).at(gap=gap),
    }
    return doors


@pytest.mark.parametrize(
    ("happiness", "largest"),
    [("statistical_parity", "1"), (Happiness("decision * loan", bounds=(-10, 40), unit="$"), "$50")],
    ids=["share", "bounds"],
)
def test_a_gap_that_bounds_do_not_allow(happiness, largest, refuses):
    """Is refused at every door with the largest there is, which is allowed; so is one among the constraints."""
    most = float(largest.split()[0].strip("$"))
    for door in wide(happiness, most * 1.01).values():
        with refuses(
            ConstraintError, "at most", f"no gap of it is larger than {largest}", remedy="from 0 to"
        ):
            door()
    for door in wide(happiness, most).values():
        door()
    for unbounded in (np.inf, {}):
        solved(TABLE, **ROLES, happiness=happiness, gap=unbounded)
    doors = wide(happiness, None, constraints=[Gap(happiness, 5 * most)])
    for name in ("fit", "solve", "individual", "sums"):
        with refuses(ConstraintError, f"no gap of it is larger than {largest}"):
            doors[name]()


def test_places_along_a_ray_may_allow_more():
    """Of several gaps that shrink together one may leave its bounds; moving there asks for what can be."""
    frame, y = pd.DataFrame(TABLE), (TABLE["s"] > 0.5).astype(int)
    frame["loan"] *= np.where(frame["g"] == "a", 1.0, 3.0)
    model = FrozenEstimator(LogisticRegression().fit(frame[["s"]], y))
    fair = FairClassifier(
        model,
        happiness={"share": "equal_opportunity", "dollars": "decision * loan"},
        gap={"share": 1.0, "dollars": 1.0},
        sensitive_features="g",
        random_state=0,
    ).fit(frame, y)
    assert fair.frontier_.tau[-1] > 1.0
    moved = fair.at(loss=float(fair.frontier_.loss[-1]))
    assert moved.gap["share"] == 1.0
    assert clone(moved).fit(frame, y).loss_ == pytest.approx(moved.loss_, abs=1e-9)


def test_one_number_for_several_units(refuses):
    """Is refused at every door, and by a price; 0 and nothing mean the same in all, and names say the rest."""
    for door in wide(UNITS, 0.1).values():
        with refuses(ConstraintError, "0.1", "$ and in h", remedy="gap={'dollars': ..., 'hours': ...}"):
            door()
    for gap in (0, 0.0, {"dollars": 5.0, "hours": 2.0}):
        for door in wide(UNITS, gap).values():
            door()
    same = {name: replace(part, unit="$") for name, part in UNITS.items()}
    for door in wide(same, 5.0).values():
        door()
    frame, y = pd.DataFrame(TABLE), np.array(TABLE["y"])
    model = LogisticRegression().fit(frame[["s", "loan"]], y)
    with refuses(ConstraintError, "$ and in h", remedy="'hours'"):
        make_scorer(UNITS, lambda X: X["loan"] > 20, price=0.1)(model, frame[["s", "loan"]], y)
    named = make_scorer(UNITS, lambda X: X["loan"] > 20, price={"hours": 0.1})
    assert named(model, frame[["s", "loan"]], y) < 0


def test_limits_that_every_policy_keeps(refuses):
    """A floor below all values, and a budget beyond them, ask for nothing, and that is said; their ends are fine."""
    asked = {"gap": {}, "happiness": "equal_opportunity"}
    for limit in (
        Floor("equal_opportunity", -0.01),
        Budget("equal_opportunity", at_most=1.01),
        Budget("equal_opportunity", at_most=0.5, at_least=-1),
        Budget("equal_opportunity", at_most=600, per=500),
    ):
        with refuses(ConstraintError, "asks for nothing", "between 0 and 1"):
            solved(TABLE, **ROLES, **asked, constraints=[limit])
    for limit in (
        Floor("equal_opportunity", 0.0),
        Budget("equal_opportunity", at_most=1.0, at_least=0.0),
        Budget("equal_opportunity", exactly=500, per=500),
    ):
        solved(TABLE, **ROLES, **asked, constraints=[limit])
