"""Amounts by cells of the prediction: happiness of people, levels, other losses, and groups that are not seen."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_amounts import Measure, best_levels, cell_means, level_costs, nearest_amounts

from felicific import Budget, Floor
from felicific._people.people import People
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_fit import fit_amounts
from felicific._problem.numeric import NumericProblem
from felicific._program.levels import BINS, Bins, level_aggregates
from felicific._program.solution import solve_program
from felicific.exceptions import ConstraintError, DataError, HappinessError, InfeasibleError

SALT = "0" * 32


def world(n=300, n_groups=2, n_predictions=6, seed=0):
    """People of few different predictions, so that each of them is a cell; everybody of every group."""
    rng = np.random.default_rng(seed)
    group = np.tile(np.arange(n_groups), n // n_groups + 1)[:n]
    cell = np.concatenate(
        [
            np.arange(n_predictions).repeat(n_groups),
            rng.integers(0, n_predictions, n - n_predictions * n_groups),
        ]
    )
    prediction = np.linspace(0.0, 10.0, n_predictions)[cell]
    x = pd.DataFrame({"loan": rng.lognormal(0.0, 0.5, n) * (1 + 0.4 * group)})
    return x, cell, prediction, prediction + 0.5 * group + rng.normal(0.0, 1.0, n), group


def people_of(x, prediction, y, group, **more):
    return People.predicted_amounts(x, prediction=prediction, y=y, group=group, **more)


def fitted(people, happiness, gap=None, calibration="none", **asked):
    monotone = asked.pop("monotone", True)
    problem = replace(NumericProblem.finding(happiness, gap=gap, **asked), monotone=monotone)
    return fit_amounts(problem, people, calibration=calibration, salt=SALT)


def given_by(fit, people):
    codes = people.codes if fit.policy.sees_group else np.zeros(len(people), dtype=int)
    return fit.policy.given(people.prediction, codes, people.rows)


# ---------------------------------------------------------------------------------------------------------
# Squared error and straight happiness


@given(
    seed=st.integers(0, 10_000),
    n_groups=st.integers(2, 3),
    gap=st.sampled_from([0.0, 0.5, 2.0]),
    bounds=st.sampled_from([(0.0, 10.0), (3.0, 8.0), (-20.0, 30.0)]),
    monotone=st.booleans(),
    blind=st.booleans(),
)
def test_straight_as_the_naive_program(seed, n_groups, gap, bounds, monotone, blind):
    """The least squared error of one amount per cell and group (or per cell), rising or free, within the bounds."""
    x, cell, prediction, y, group = world(120, n_groups, 6, seed)
    loan, n_cells = x["loan"].to_numpy(), 6
    code = cell if blind else group * n_cells + cell
    n_amounts = n_cells if blind else n_cells * n_groups
    mass = np.bincount(code, minlength=n_amounts)
    means = []
    for z in range(n_groups):
        own = group == z
        means.append(np.bincount(code[own], loan[own], n_amounts) / own.sum())
    rows = [one - other for one in means for other in means if one is not other]
    limits = [gap] * len(rows)
    for first in range(n_amounts - 1) if monotone else ():
        if blind or (first + 1) % n_cells:
            step = np.zeros(n_amounts)
            step[[first, first + 1]] = 1.0, -1.0
            rows.append(step)
            limits.append(0.0)
    rows += [*np.eye(n_amounts), *-np.eye(n_amounts)]
    limits += [bounds[1]] * n_amounts + [-bounds[0]] * n_amounts
    at = np.bincount(code, prediction, n_amounts) / mass
    people = people_of(x, prediction, y, group)
    asked = {"decisions": bounds, "sees_group": not blind, "monotone": monotone}
    try:
        best = nearest_amounts(at, rows, limits, mass)
    except ValueError:
        with pytest.raises(InfeasibleError):
            fitted(people, "decision * loan", gap, **asked)
        return
    fit = fitted(people, "decision * loan", gap, **asked)
    amounts = given_by(fit, people)
    added = float(np.mean((amounts - prediction) ** 2))
    assert added == pytest.approx(float(np.average((best - at) ** 2, weights=mass)), rel=1e-5, abs=1e-6)
    assert fit.policy.gaps["decision * loan"] <= gap + 1e-6
    if monotone:
        for z in range(n_groups):
            assert (np.diff(amounts[group == z][np.argsort(prediction[group == z])]) >= -1e-9).all()


@pytest.mark.parametrize("sees_group", [True, False])
def test_gaps_between_cells(sees_group):
    """With more predictions than cells, means are those of people on the lines, not of cells."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, 5_000)
    prediction = rng.normal(10 + group, 2.0)
    x = pd.DataFrame({"loan": rng.lognormal(0, 0.4, 5_000) * (1 + 0.2 * group)})
    people = people_of(x, prediction, prediction + rng.normal(0, 1, 5_000), group)
    fit = fitted(
        people, "decision * loan", 0.5, calibration="affine", sees_group=sees_group, monotone=sees_group
    )
    amounts = given_by(fit, people)
    paid = [np.mean((amounts * x["loan"])[group == z]) for z in (0, 1)]
    assert 0.4999 <= abs(paid[0] - paid[1]) <= 0.5 + 1e-6
    assert fit.policy.gaps["decision * loan"] == pytest.approx(abs(paid[0] - paid[1]), abs=1e-9)


def test_beyond_the_cells():
    """Whoever is predicted more than anybody, or where nobody is, is moved as their nearest neighbours are."""
    x, _, prediction, y, group = world(2_000, 2, 20)
    people = people_of(x, prediction, y, group)
    fit = fitted(people, "decision * loan", 2.0, decisions=(-100.0, 100.0))
    line = fit.policy.lines[0]
    last, beyond = line.at(np.array([10.0, 13.0]))
    assert beyond - last == pytest.approx(3.0, abs=1e-6)
    between = line.at(np.array([prediction[0], 0.25]))
    assert np.isfinite(between).all()


def test_floor_at_the_baseline_and_budget():
    """Floors at what groups have under the baseline, and budgets, hold on the people themselves."""
    x, _, prediction, y, group = world(2_000, 2, 40)
    people = people_of(x, prediction, y, group)
    fit = fitted(
        people,
        "decision * loan",
        1.0,
        decisions=(-10.0, 30.0),
        constraints=[Floor("decision * loan", at_least="baseline"), Budget("decision", at_most=5.5)],
    )
    amounts, loan = given_by(fit, people), x["loan"].to_numpy()
    for z in (0, 1):
        own = group == z
        assert np.mean((amounts * loan)[own]) >= np.mean((prediction * loan)[own]) - 1e-6
    assert amounts.mean() <= 5.5 + 1e-6
    assert fit.policy.gaps["decision * loan"] <= 1.0 + 1e-6


# ---------------------------------------------------------------------------------------------------------
# Levels


@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(["squared", "absolute", "quantile:0.8"]),
    blind=st.booleans(),
    happiness=st.sampled_from(["decision * loan", "(decision >= 6) * loan", "-abs(decision - y)"]),
)
def test_levels_as_the_whole_program(seed, loss, blind, happiness):
    """Listed amounts, other losses and any happiness: the loss of the whole linear program."""
    x, cell, prediction, y, group = world(120, 2, 6, seed)
    levels, loan = np.array([1.0, 4.0, 6.0, 9.0]), x["loan"].to_numpy()
    truth = prediction if loss == "squared" else y
    mass, cost = cell_means(level_costs(loss, truth, levels), group, cell, 2, 6)
    worth = {
        "decision * loan": levels[None] * loan[:, None],
        "(decision >= 6) * loan": (levels >= 6)[None] * loan[:, None],
        "-abs(decision - y)": -np.abs(levels[None] - y[:, None]),
    }[happiness]
    _, value = cell_means(worth, group, cell, 2, 6)
    people = people_of(x, prediction, y, group)
    asked = {"decisions": levels.tolist(), "sees_group": not blind, "loss": loss}
    free = fitted(people, happiness, {happiness: np.inf}, **asked)
    gap = 0.5 * free.policy.gaps[happiness]
    best = best_levels(mass, cost, measures=[Measure(value, gap)], blind=blind)
    problem = NumericProblem.finding(happiness, gap=gap, **asked)
    cells = Bins.of(people, fit_scale(people), sees_group=not blind)
    aggregates = level_aggregates(problem, people, cells, prediction, levels, np.bincount(group))
    solution = solve_program(aggregates, problem.requirements, sees_group=not blind)
    assert solution.outcome.loss == pytest.approx(best.loss, rel=1e-7, abs=1e-9)
    fit = fitted(people, happiness, gap, **asked)
    assert set(given_by(fit, people)) <= set(levels)
    # Lotteries are looked at in thirty-seconds.
    assert fit.policy.gaps[happiness] <= gap + 0.05 * np.abs(worth).max()


def fit_scale(people):
    return fitted(people, "decision", np.inf).sums.scale


# ---------------------------------------------------------------------------------------------------------
# Not seeing the group


def test_blind_line():
    """One line for all groups, which gives whoever is predicted the same the same; it says what would be better."""
    x, _, prediction, y, group = world(600, 2, 50)
    group = np.where(np.random.default_rng(0).random(600) < 0.5 + 0.04 * (prediction - 5), 1, 0)
    people = people_of(x, prediction, y, group)
    fit = fitted(people, "decision", 1.0, sees_group=False)
    assert len(fit.policy.lines) == 1
    assert not fit.policy.sees_group
    assert fit.policy.gap <= 1.0 + 1e-6
    assert "An individual policy weighs" in fit.policy.cautions()[0]
    text = fit.policy.to_json()
    again = AmountPolicy.from_json(text)
    assert again.amounts(prediction) == pytest.approx(given_by(fit, people), abs=1e-12)


# ---------------------------------------------------------------------------------------------------------
# Other people, and what is refused


def test_recalibrate():
    """New people are added up anew; a happiness that looks at labels is refused."""
    x, _, prediction, y, group = world(600, 2, 30)
    people = people_of(x, prediction, y, group)
    fit = fitted(people, "decision * loan", 0.5, decisions=(-10.0, 30.0))
    again = fit.recalibrated(replace(people, y=None))
    assert again.policy.gaps["decision * loan"] <= 0.5 + 1e-6
    assert given_by(again, people) == pytest.approx(given_by(fit, people), abs=1e-4)
    looking = fitted(people, "decision * y", 5.0)
    with pytest.raises(HappinessError, match="looks at the label"):
        looking.recalibrated(replace(people, y=None))


def test_refused():
    """Ranks beside happiness of people or without the group, and people that are gone, are refused by name."""
    x, _, prediction, y, group = world(600, 2, 30)
    people = people_of(x, prediction, y, group)
    with pytest.raises(ConstraintError, match="let the policy see the group"):
        fitted(people, "distributional_parity", 0.1, sees_group=False)
    with pytest.raises(ConstraintError, match="alone"):
        fitted(people, ["distributional_parity", "decision * loan"], {"distributional_parity": 0.1})
    fit = fitted(people, "decision * loan", 0.5)
    with pytest.raises(DataError, match="files never hold"):
        replace(fit, people=None).moved(0.1)
    with pytest.raises(InfeasibleError):
        fitted(people, "decision * loan", 0.0, constraints=[Floor("decision * loan", at_least=1e6)])


def test_cells_hold_everybody():
    """Everybody is in one cell, cells of a group do not overlap, and equal predictions are never parted."""
    rng = np.random.default_rng(1)
    group, prediction = rng.integers(0, 3, 3_000), rng.normal(size=3_000).round(2)
    people = people_of(None, prediction, prediction, group, weight=rng.integers(1, 4, 3_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = Bins.of(people, fit_scale(people), sees_group=True)
    assert cells.mass.sum() == pytest.approx(people.weights.sum())
    for z in range(3):
        run = cells.run(z)
        assert run.stop - run.start <= BINS
        assert (cells.most[run][:-1] < cells.least[run][1:]).all()
        assert (cells.mass[z, run] > 0).all()
        assert np.delete(cells.mass[z], np.r_[run]).sum() == 0


# ---------------------------------------------------------------------------------------------------------
# Lotteries


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_what_is_stated_of_lotteries_is_what_they_do_on_average(loss):
    """However likely an amount is, gap and loss are those expected, and the gap asked for is met to the letter."""
    x, _, prediction, y, group = world(400, seed=3)
    people = people_of(
        x, prediction, y, group, weight=np.random.default_rng(3).integers(1, 4, 400).astype(float)
    )
    asked = {"decisions": [0, 4, 7, 10], "loss": loss, "sees_group": False}
    gap = 0.37 * fitted(people, "decision", 9.0, **asked).policy.gap
    policy = fitted(people, "decision", gap, **asked).policy
    assert policy.share_randomized > 0
    line, draws = policy.lines[0], (np.arange(100_000) + 0.5) / 100_000
    place, amount = line.drawing(prediction), line.at(prediction)
    cost = (amount - y) ** 2 if loss == "squared" else np.abs(amount - y)
    for k, atom in enumerate(line.atoms):
        drawn, chance = np.unique(atom.drawn(draws), return_counts=True)
        chance = chance / len(draws)
        amount[place == k] = drawn @ chance
        far = drawn - y[place == k, None]
        cost[place == k] = (far**2 if loss == "squared" else np.abs(far)) @ chance
    means = [np.average(amount[group == z], weights=people.weights[group == z]) for z in (0, 1)]
    assert policy.gap == pytest.approx(abs(means[1] - means[0]), abs=1e-4)
    assert policy.gap <= gap * (1 + 1e-9)
    assert policy.loss == pytest.approx(np.average(cost, weights=people.weights), abs=1e-3)
