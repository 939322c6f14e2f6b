"""Worth of amounts: a function gets everybody's own amount, and says what it says of one person at a time."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from felicific import Happiness
from felicific._people.evaluate import loss_of_amounts, worth_of_amounts
from felicific._people.user_functions import DISTINCT, Batch
from felicific._problem.numeric import amount_loss
from felicific.exceptions import DataError, HappinessError

N = 200
RNG = np.random.default_rng(0)
AMOUNTS = RNG.normal(20.0, 8.0, N)
LOAN = RNG.integers(1, 50, N)
Y = RNG.normal(20.0, 8.0, N)
TABLES = {
    "dict": {"loan": LOAN},
    "pandas": pd.DataFrame({"loan": LOAN}, index=np.arange(N)[::-1]),
    "polars": pl.DataFrame({"loan": LOAN}),
    "arrow": pa.table({"loan": LOAN}),
}


def batch_of(x=None, n=N, baseline=None):
    group = np.array(["a", "b"] * (n // 2))
    return Batch(x, Y[:n], None, group, np.arange(n), baseline)


FUNCTIONS = {
    "vector": lambda decision, x: decision * np.asarray(x["loan"]),
    "table": lambda decision, x: x["loan"] * decision,
    "where": lambda decision: np.where(decision > 20, 100.0, 0.0),
    "array only": lambda decision: decision.clip(0.0, 10.0),
    "branch": lambda decision: 100.0 if decision > 20 else 0.0,
    "math": lambda decision: math.exp(decision / 100.0),
    "builtin": lambda decision, y: np.maximum(max(decision, 3.0), y),
    "label": lambda decision, y: -((decision - y) ** 2),
    "constant": lambda decision: 3.0,
}


def naive(name, function, i, x):
    """One person alone."""
    given = {"decision": float(AMOUNTS[i]), "y": Y[i], "x": {"loan": float(LOAN[i])}}
    if name == "array only":
        given["decision"] = np.array([AMOUNTS[i]])
    asked = function.__code__.co_varnames[: function.__code__.co_argcount]
    return float(np.asarray(function(**{key: given[key] for key in asked})).reshape(-1)[0])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_by_one(name, table):
    """Whatever a function can do with an array, everybody gets what it says of them alone."""
    values, counted = worth_of_amounts(Happiness(FUNCTIONS[name]), batch_of(TABLES[table]), AMOUNTS)
    assert counted is None
    exact = [naive(name, FUNCTIONS[name], i, TABLES[table]) for i in range(N)]
    np.testing.assert_allclose(values, exact, rtol=1e-12, atol=0)


def test_what_is_no_number_of_one_row_is_that_of_one_decision():
    """A function that takes the largest of an array is called for every amount, where that is the amount itself."""
    values, _ = worth_of_amounts(Happiness(lambda decision: np.max(decision)), batch_of(), AMOUNTS)
    np.testing.assert_array_equal(values, AMOUNTS)


def test_other_people():
    """A function that looks at other people's rows is refused, of an array and of one amount at a time."""
    batch = batch_of(TABLES["pandas"])
    function = lambda decision, x: decision * x["loan"].mean()  # noqa: E731
    with pytest.raises(HappinessError, match="other people's rows"):
        worth_of_amounts(Happiness(function), batch, np.round(AMOUNTS / 10.0))


def test_among():
    """Who is counted may look at the amount: then everybody is counted by what they add to the numerator."""
    plain = Happiness("decision", among="loan > 20")
    values, counted = worth_of_amounts(plain, batch_of(TABLES["dict"]), AMOUNTS)
    np.testing.assert_array_equal(counted, LOAN > 20)
    np.testing.assert_array_equal(values, np.where(LOAN > 20, AMOUNTS, 0.0))
    fraction = Happiness("loan + 0", among=lambda decision: decision > 20)
    values, counted = worth_of_amounts(fraction, batch_of(TABLES["dict"]), AMOUNTS)
    assert counted is None
    np.testing.assert_array_equal(values, np.where(AMOUNTS > 20, LOAN, 0.0))


def test_too_many_amounts():
    """A function of one decision at a time is not called for more than so many amounts: the remedy is np.where."""
    n = DISTINCT + 2
    amounts = np.arange(float(n))
    batch = Batch(None, None, None, np.zeros(n), np.arange(n))
    with pytest.raises(HappinessError, match=r"4,098 different amounts.*np\.where"):
        worth_of_amounts(Happiness(FUNCTIONS["branch"], name="hours"), batch, amounts)
    with pytest.raises(HappinessError, match=r"raised NameError.*no_such"):  # fails of one person too
        worth_of_amounts(Happiness(lambda decision: no_such * decision), batch, amounts)  # noqa: F821
    values, _ = worth_of_amounts(Happiness(FUNCTIONS["branch"]), batch, np.minimum(amounts, 4000.0))
    np.testing.assert_array_equal(values, np.where(amounts > 20, 100.0, 0.0))


def test_refused():
    """What is not finite, outside its bounds or too large names the row; a missing label is named."""
    nan = lambda decision: np.where(decision == AMOUNTS[7], np.nan, decision)  # noqa: E731
    with pytest.raises(HappinessError, match=r"nan in row 7 \(group 'b'\)"):
        worth_of_amounts(Happiness(nan), batch_of(), AMOUNTS)
    with pytest.raises(HappinessError, match=rf"amount {AMOUNTS[AMOUNTS > 30][0]:.6g} is .* bounds 0 to 30"):
        worth_of_amounts(Happiness("max(decision, 0)", bounds=(0, 30)), batch_of(), AMOUNTS)
    with pytest.raises(HappinessError, match="a rate is 0 or 1"):
        worth_of_amounts(Happiness(FUNCTIONS["where"], rate=True), batch_of(), AMOUNTS)
    with pytest.raises(HappinessError, match="overflows"):
        worth_of_amounts(Happiness("decision * 1e300"), batch_of(), AMOUNTS)
    with pytest.raises(HappinessError, match="no_such"):
        worth_of_amounts(Happiness(lambda decision, x: x["no_such"]), batch_of(TABLES["dict"]), AMOUNTS)
    with pytest.raises(HappinessError, match="looks at the baseline"):
        worth_of_amounts(Happiness("decision - baseline"), batch_of(), AMOUNTS)


LOSSES = {
    "squared": lambda a, y: (a - y) ** 2,
    "absolute": lambda a, y: abs(a - y),
    "quantile:0.9": lambda a, y: 0.9 * (y - a) if y > a else 0.1 * (a - y),
    "decision * 2 - y": lambda a, y: a * 2 - y,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_loss(loss):
    """A loss of amounts is what its name says, person by person."""
    found = loss_of_amounts(amount_loss(loss), batch_of(), AMOUNTS)
    exact = [LOSSES[loss](a, y) for a, y in zip(AMOUNTS.tolist(), Y.tolist(), strict=True)]
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)


def test_loss_function_and_the_baseline():
    """A loss may be a function, or count changes from the baseline."""
    found = loss_of_amounts(amount_loss(lambda decision, y: abs(decision - y)), batch_of(), AMOUNTS)
    np.testing.assert_array_equal(found, abs(AMOUNTS - Y))
    baseline = np.where(np.arange(N) % 2, AMOUNTS, 0.0)
    found = loss_of_amounts(amount_loss("changes"), batch_of(baseline=baseline), AMOUNTS)
    np.testing.assert_array_equal(found, baseline != AMOUNTS)


@pytest.mark.parametrize(
    "loss", ["error", "quantile:2", "quantile:", "quantile", "quadratic", [[0, 1], [1, 0]]]
)
def test_no_loss_of_amounts(loss):
    """A loss that compares classes, and a quantile that is none, are refused."""
    with pytest.raises(DataError):
        amount_loss(loss)
