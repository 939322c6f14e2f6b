"""Happiness: arguments by name, measures, criteria; the same numbers on every table in memory."""

import functools
import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from felicific import Happiness, aggregate
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import resolve_happiness, with_counted
from felicific.exceptions import DataError, HappinessError

N = 24
RNG = np.random.default_rng(11)
COLUMNS = {
    "loan": RNG.integers(1, 100, N) * 100.0,
    "years": RNG.integers(1, 30, N),
    "education": np.array(["Master", "High School", "Doctorate", "None"], dtype=object)[np.arange(N) % 4],
    "owner": RNG.random(N) < 0.5,
    "sex": np.array(["F", "M", "X"], dtype=object)[np.arange(N) % 3],
    "approved": RNG.integers(0, 2, N),
    "predicted": RNG.integers(0, 2, N),
    "weight": RNG.integers(1, 4, N) * 1.0,
}


def table(kind):
    """The same people in every library."""
    if kind == "dict":
        return dict(COLUMNS)
    if kind == "polars":
        return pl.DataFrame({name: column.tolist() for name, column in COLUMNS.items()})
    if kind == "pyarrow":
        return pa.table({name: column.tolist() for name, column in COLUMNS.items()})
    frame = pd.DataFrame(COLUMNS)
    if kind == "pandas shuffled":
        frame.index = np.random.default_rng(1).permutation(N)
    elif kind == "pandas duplicated":
        frame.index = [0] * N
    elif kind == "pandas text":
        frame.index = [f"person {i}" for i in range(N)][::-1]
    elif kind == "pandas pyarrow":
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    elif kind == "pandas nullable":
        frame = frame.convert_dtypes()
    return frame


PANDAS = (
    "pandas",
    "pandas shuffled",
    "pandas duplicated",
    "pandas text",
    "pandas nullable",
    "pandas pyarrow",
)
KINDS = (*PANDAS, "polars", "pyarrow", "dict")


def compute(happiness, people="dict", **changes):
    arguments = {
        "y": "approved",
        "policy": "label",
        "predicted": "predicted",
        "sensitive_features": "sex",
        "sample_weight": "weight",
        "happiness": happiness,
    }
    return aggregate(table(people), **(arguments | changes))


def assert_same(one, two):
    """Compare everything that aggregates hold, to the last digits."""
    assert one.groups == two.groups
    assert [type(group) for group in one.groups] == [type(group) for group in two.groups]
    assert one.classes.tolist() == two.classes.tolist()
    for name in ("mass", "loss", "value", "among", "baseline_loss", "baseline_value", "rows", "origin"):
        found, wanted = getattr(one, name), getattr(two, name)
        assert found == pytest.approx(wanted, rel=1e-14, abs=1e-12), name


def numbers(column):
    """A column of any library as an array."""
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def test_the_comparison_fails_on_other_aggregates():
    """Another happiness, another weight, another group do not pass as the same."""
    one = compute(lambda decision, x: decision * x["loan"])
    assert_same(one, compute(lambda decision, x: decision * x["loan"]))
    others = [
        compute(lambda decision, x: decision * x["loan"] * (1 + 1e-12)),
        compute(lambda decision, x: decision * x["loan"], sample_weight=None),
        compute(lambda decision, x: decision * x["loan"], sensitive_features="education"),
        compute(lambda decision, x: decision * x["loan"], predicted="approved"),
    ]
    for other in others:
        with pytest.raises(AssertionError):
            assert_same(one, other)


# ---------------------------------------------------------------------------------------------------------
# Arguments by name


def test_arguments_come_by_name_in_any_order():
    """Whatever the order, each argument gets what its name says; unused ones need not be there."""

    def four(group, y, x, decision):
        return decision * x["loan"] + 2 * y + (group == "F")

    def same(decision, x, y, group):
        return decision * x["loan"] + 2 * y + (group == "F")

    def keywords(*, y, decision, group, x):
        return decision * x["loan"] + 2 * y + (group == "F")

    def defaults(x, decision, y, group, rate=2, *, share=1):
        return decision * x["loan"] + rate * y + share * (group == "F")

    class Callable:
        def __call__(self, x, group, decision, y):
            return same(decision, x, y, group)

        def method(self, y, x, group, decision):
            return same(decision, x, y, group)

    wanted = compute({"f": four})
    partial = functools.partial(
        lambda rate, decision, x, y, group: decision * x["loan"] + rate * y + (group == "F"), 2
    )
    for function in (same, keywords, defaults, Callable(), Callable().method, partial):
        assert_same(compute({"f": function}), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_what_each_argument_is(kind):
    """The decision is a Python scalar, x the user's own kind of table, y and group 1-D NumPy arrays."""
    seen = []
    own = type(table(kind))

    def check(decision, x, y, group):
        assert type(decision) is int
        assert type(x) is own
        assert type(y) is type(group) is np.ndarray
        assert y.shape == group.shape == (N,)
        seen.append(decision)
        return float(decision)

    compute(check, kind)
    assert seen == [0, 1]


@pytest.mark.parametrize(
    ("labels", "python"),
    [
        (np.array([0, 1]), int),
        (np.array([0, 1], dtype=np.int8), int),
        (np.array([False, True]), bool),
        (np.array([0.0, 1.0], dtype=np.float32), float),
        (np.array(["no", "yes"]), str),
        (np.array(["no", "yes"], dtype=object), str),
    ],
)
def test_decisions_are_python_scalars_for_every_type_of_label(labels, python):
    """Whatever the type of the labels, the decision that a function sees is a plain Python value of theirs."""
    y = labels[COLUMNS["approved"]]
    seen = set()

    def record(decision):
        seen.add((type(decision), decision))
        return float(len(seen))

    compute(record, y=y, predicted=labels[COLUMNS["predicted"]])
    assert seen == {(python, label) for label in labels.tolist()}


def test_a_number_for_everybody_is_enough():
    """A function may return one number: it counts for each person."""
    one = compute({"f": lambda decision: 3.0 * decision})
    assert_same(one, compute({"f": lambda decision, x: np.full(N, 3.0 * decision)}))
    assert_same(one, compute({"f": lambda decision: 3 * decision}))
    assert_same(one, compute({"f": lambda decision: np.float32(3 * decision)}))


@pytest.mark.parametrize(
    "kind",
    [np.int8, np.uint8, np.int64, np.float32, np.float64, np.bool_, object],
    ids=lambda kind: kind.__name__,
)
def test_results_of_every_numeric_type_are_the_same_number(kind):
    """Integers, booleans, single precision and objects that are numbers count as what they are."""
    values = np.arange(N) % 2
    wanted = compute({"f": lambda decision: decision * values.astype(float)})
    assert_same(compute({"f": lambda decision: (decision * values).astype(kind)}), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda decision, x: decision * (x["loan"] - np.mean(x["loan"])),
        lambda decision, x: decision * x["loan"] / np.max(x["loan"]),
        lambda decision, x: decision * np.cumsum(x["loan"]),
        lambda decision, x: decision * np.argsort(np.argsort(x["loan"])),
        lambda decision, x: decision * np.random.default_rng().random(len(x["loan"])),
        lambda decision, y: decision * (y - np.mean(y) + np.arange(len(y))),
    ],
    ids=["mean", "max", "running", "rank", "chance", "labels"],
)
@pytest.mark.parametrize("kind", ["pandas", "polars", "dict"])
def test_a_person_s_happiness_does_not_depend_on_other_rows(kind, function):
    """Functions see some rows at a time, so what is taken over rows would be another number for every batch."""
    with pytest.raises(HappinessError, match="depends on other people's rows"):
        compute(function, kind)
    with pytest.raises(HappinessError, match="depends on other people's rows"):
        compute(Happiness(lambda decision: decision, among=lambda x: x["loan"] >= np.max(x["loan"])), kind)


def test_subtracting_the_origin_does_not_touch_the_users_column():
    """A function that returns a column of the table as it is finds it unchanged afterwards."""
    people = table("dict")
    before = people["loan"].copy()
    aggregate(
        people,
        y="approved",
        predicted="predicted",
        policy="label",
        sensitive_features="sex",
        happiness=lambda decision, x: x["loan"],
        groups=["F", "M", "X"],
    )
    assert np.array_equal(people["loan"], before)


# ---------------------------------------------------------------------------------------------------------
# Happiness objects, lists, dicts, criteria


def test_a_happiness_names_itself():
    """The name is the function's unless said; unit, bounds and whether it looks at y are kept in the aggregates."""

    def funding(decision, x):
        return decision * x["loan"]

    plain = Happiness(funding)
    assert (plain.name, plain.unit, plain.bounds, plain.looks_at_y) == ("funding", "", None, False)
    full = Happiness(funding, among=lambda y: y == 1, name="money", unit="$", bounds=(0, 10_000))
    assert full.looks_at_y
    measure = compute(full).measures[0]
    assert (measure.name, measure.unit, measure.bounds) == ("money", "$", (0.0, 10_000.0))
    assert measure.looks_at_y
    assert not compute(plain).measures[0].looks_at_y
    assert Happiness(lambda decision, y: decision == y).looks_at_y
    assert Happiness(lambda decision: decision).name == "happiness"
    assert Happiness(lambda decision: decision, name="").name == ""


def test_among_counts_the_people_it_says():
    """A measure with ``among`` is the mean over those people only, whatever truth values it returns."""
    counted = COLUMNS["loan"] > 3000
    values, weight = COLUMNS["loan"] * COLUMNS["predicted"], COLUMNS["weight"]
    wanted = []
    for group in "FMX":
        mine = counted & (COLUMNS["sex"] == group)
        wanted.append((weight[mine] * values[mine]).sum() / weight[mine].sum())
    for among in (
        lambda x: x["loan"] > 3000,
        lambda x: (x["loan"] > 3000).astype(int),
        lambda x: (x["loan"] > 3000).astype(float),
        lambda group, x: np.where(group == "nobody", False, x["loan"] > 3000),
        lambda y, x: (x["loan"] > 3000) & (y >= 0),
    ):
        computed = compute(Happiness(lambda decision, x: decision * x["loan"], among=among))
        assert computed.baseline.means[:, 0] == pytest.approx(wanted, rel=1e-14)


def test_lists_and_dicts_of_everything():
    """Functions, Happiness objects and criteria mix in a list or dict; a dict's keys are the names."""

    def funding(decision, x):
        return decision * x["loan"]

    years = Happiness(lambda decision, x: decision * x["years"], name="years", unit="y")
    listed = compute([funding, years, "equal_opportunity", "statistical_parity"])
    names = [measure.name for measure in listed.measures]
    assert names == [
        "funding",
        "years",
        "true positive rate",
        "selection rate",
    ]
    named = compute(
        {"money": funding, "time": years, "chance": "equal_opportunity", "share": "statistical_parity"}
    )
    assert [measure.name for measure in named.measures] == [
        "money",
        "time",
        "chance",
        "share",
    ]
    assert [measure.family for measure in named.measures] == [
        "money",
        "time",
        "chance",
        "share",
    ]
    assert [measure.unit for measure in named.measures] == ["", "y", "share", "share"]
    assert named.value == pytest.approx(listed.value, rel=1e-15)
    assert_same(compute((funding, years)), compute([funding, years]))
    for j, single in enumerate([funding, years, "equal_opportunity"]):
        alone = compute(single)
        assert np.array_equal(alone.value[..., 0], listed.value[..., j])
        assert alone.origin[0] == listed.origin[j]


def test_a_measure_does_not_depend_on_its_neighbours():
    """Measured alone or in a list, a measure has the same numbers to the last bit."""
    functions = {
        "a": lambda decision, x: decision * x["loan"],
        "b": lambda decision, y: 1e9 + (decision == y),
        "c": Happiness(lambda decision, x: -decision * x["years"], among=lambda x: x["owner"]),
    }
    together = compute(functions)
    for j, (name, function) in enumerate(functions.items()):
        alone = compute({name: function})
        assert alone.baseline.means[:, 0].tolist() == together.baseline.means[:, j].tolist()
        assert alone.baseline.gaps[0] == together.baseline.gaps[j]


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True], [1, 2, 3], ["a", "b", "c", "d"]])
def test_criteria_are_rows_of_one_table(classes):
    """Each criterion has the measures of the design's table: how many, over whom, and whether y is needed."""
    K = len(classes)
    counts = {"statistical_parity": K, "distributional_parity": K - 1, "equalized_odds": K * K}
    if K == 2:  # of two decisions one says it all
        counts = {"statistical_parity": 1, "distributional_parity": 1, "equalized_odds": 2}
    assert len({row.name for row in CRITERIA.values()}) == 11
    y = np.array(classes)[np.arange(4 * K) % K]
    for name, row in CRITERIA.items():
        measures = resolve_happiness(name, classes)
        assert len(measures) == len({measure.name for measure in measures}) == counts.get(row.name, 1)
        assert {measure.looks_at_y for measure in measures} == {not row.measures[0].startswith("selection")}
        assert {measure.family for measure in measures} <= {one.name for one in CRITERIA.values()}
        assert {measure.bounds for measure in measures} == {(0.0, 1.0)}
        assert pickle.loads(pickle.dumps(measures)) == measures
        if K == 2:
            assert [measure.name for measure in measures] == [*row.measures]
        elif name == "statistical_parity":
            for decision in classes:
                assert sum(measure.function(decision=decision) for measure in measures) == 1.0
        elif name == "equalized_odds":
            counted = np.array([measure.among(y=y) for measure in measures])
            assert (counted.sum(axis=0) == K).all()
    best, *_ = resolve_happiness("equal_opportunity", classes)
    assert best.function(decision=classes[-1]) == 1.0
    assert best.function(decision=classes[0]) == 0.0
    turned = resolve_happiness("equal_opportunity", classes, order=classes[::-1])[0]
    assert turned.function == replace(best.function, wanted=False)  # the last class is no longer the best
    *_, best = resolve_happiness("statistical_parity", classes, order=classes[::-1])
    assert best.function(decision=classes[0]) == 1.0


@pytest.mark.parametrize(
    ("happiness", "words"),
    [
        (None, "No happiness was given"),
        ([], "empty"),
        ({}, "empty"),
        ("statistical_paritty", "Did you mean 'statistical_parity'"),
        ("xyz", "The criteria are statistical_parity"),
        (3, "3, which cannot be called"),
        ([lambda decision: 1, lambda decision: 2], "both called 'happiness'"),
        (lambda decision, z: 1, "argument z"),
        (lambda decision, *rest: 1, r"argument \*rest"),
        (lambda decision, **rest: 1, r"argument \*\*rest"),
        (lambda decision, x: None, "returned None"),
        (lambda decision, x: "text", "not real numbers"),
        (lambda decision, x: 1j, "not real numbers"),
        (lambda decision, x: np.ones(3), r"shape \(3,\) for 24 rows"),
        (lambda decision, x: np.ones((N, 2)), r"shape \(24, 2\) for 24 rows"),
        (lambda decision, x: np.where(np.arange(N) == 5, np.inf, 1.0), r"inf in row 5 \(group 'X'\)"),
    ],
)
def test_what_is_no_happiness_is_refused_in_words(happiness, words):
    """What cannot be a happiness raises an error that names the offender and says what to do."""
    with pytest.raises(HappinessError, match=words) as caught:
        compute(happiness)
    assert caught.value.remedy


def test_among_that_looks_at_the_decision_is_a_fraction():
    """Who is counted may depend on what is decided: the mean is a fraction, and its denominator is named."""
    plain = Happiness("decision * loan", among="loan > 0", name="dollars")
    fraction = Happiness("decision * loan", among="decision == 1", name="dollars")
    assert (plain.over, fraction.over) == ("", "counted by 'dollars'")
    happiness = with_counted([plain, replace(fraction, name="each", family="each")])
    assert [part.name for part in happiness] == ["dollars", "each", "counted by 'each'"]
    assert [part.measure.over for part in happiness] == ["", "counted by 'each'", ""]
    assert [part.measure.wanted for part in happiness] == [True, True, False]
    assert happiness[2].rate
    with pytest.raises(HappinessError, match="argument z"):
        Happiness(lambda decision: 1, among=lambda decision, z: True)


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1)])
def test_bounds_are_a_range(bounds):
    """Bounds that are no finite range are refused."""
    with pytest.raises(HappinessError, match="not a range"):
        Happiness(lambda decision: 1, bounds=bounds)


def test_nobody_counted_names_measure_and_group():
    """A group without anybody inside ``among`` is an error that names both."""
    from felicific import solve

    computed = compute(Happiness(lambda decision: decision, among=lambda group: group != "M", name="f"))
    with pytest.raises(HappinessError, match="group 'M' is counted by 'f'"):
        solve(computed, gap=0.0)


# ---------------------------------------------------------------------------------------------------------
# The same numbers on every table

EVERYDAY = {
    "arithmetic": lambda decision, x: decision * x["loan"] - 3 * x["years"],
    "condition": lambda decision, x: np.where(x["loan"] > 2000, decision, -1.0),
    "correct": lambda decision, x, y: (y == decision) * numbers(x["loan"]),
    "group": lambda decision, x, group: (group == "F") * decision + numbers(x["years"]),
    "comparison": lambda decision, x: x["loan"] > 2000,
    "ufunc": lambda decision, x: np.log(x["loan"]) * decision,
    "member": lambda decision, x: np.isin(numbers(x["education"]), ["Master", "None"]) * decision,
    "column as it is": lambda decision, x: x["years"],
    "boolean column": lambda decision, x: x["owner"],
}


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pyarrow"])
def test_everyday_functions_give_the_same_numbers_on_every_table(name, kind):
    """What a user would write on pandas, Polars or a dict of arrays gives one set of aggregates.

    A pandas index that is shuffled, duplicated or text does not matter, nor does the type of its columns.
    """
    # Some of these no decision changes, which is refused of a whole table.
    some = {"groups": ["F", "M", "X"]}
    assert_same(compute({"f": EVERYDAY[name]}, kind, **some), compute({"f": EVERYDAY[name]}, "dict", **some))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_criteria_give_the_same_numbers_on_every_table(kind, criterion):
    """So do criteria, by name."""
    assert_same(compute(criterion, kind), compute(criterion, "dict"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_arrays_gives_the_same_numbers_on_every_table(kind):
    """So does a function that turns columns into arrays first, and an ``among`` of the kind; weights 0 included."""
    happiness = Happiness(
        lambda decision, x: decision * numbers(x["loan"]),
        among=lambda x, y: (numbers(x["years"]) > 5) | (y == 1),
        name="f",
    )
    assert_same(compute(happiness, kind), compute(happiness, "dict"))
    weight = np.where(np.arange(N) % 5 == 1, 0.0, 1.0)
    assert_same(
        compute(happiness, kind, sample_weight=weight), compute(happiness, "dict", sample_weight=weight)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["error", np.array([[0.0, 2.0], [1.0, -1.0]])], ids=["error", "matrix"])
def test_loss_and_intersections_are_the_same_on_every_table(kind, loss):
    """Groups from two columns, and any loss, are the same on every table."""
    changes = {"sensitive_features": ["sex", "owner"], "loss": loss}
    assert_same(
        compute("statistical_parity", kind, **changes), compute("statistical_parity", "dict", **changes)
    )


def test_an_array_is_a_table_too():
    """For a NumPy table, x is the array, and groups may be a column by position."""
    array = np.column_stack([COLUMNS["loan"], COLUMNS["years"], np.arange(N) % 3])
    arguments = {
        "y": COLUMNS["approved"],
        "predicted": COLUMNS["predicted"],
        "policy": "label",
        "sample_weight": COLUMNS["weight"],
    }
    found = aggregate(
        array,
        sensitive_features=2,
        happiness={"f": lambda decision, x: decision * x[:, 0] - x[:, 1]},
        **arguments,
    )
    wanted = compute(
        {"f": lambda decision, x: decision * x["loan"] - x["years"]},
        sensitive_features=np.arange(N) % 3 + 0.0,
    )
    assert_same(found, wanted)


@pytest.mark.parametrize("kind", PANDAS)
def test_columns_passed_as_series_are_taken_by_position(kind):
    """y, groups, weights and predictions as series with an index of their own: position counts, not the index."""
    frame = table(kind)
    other = pd.RangeIndex(N)[::-1]

    def series(name):
        return pd.Series(COLUMNS[name], index=other)

    found = compute(
        {"f": lambda decision, x, y, group: decision * numbers(x["loan"]) * (y == decision) + (group == "F")},
        kind,
        y=series("approved"),
        predicted=series("predicted"),
        sensitive_features=series("sex"),
        sample_weight=series("weight"),
    )
    wanted = compute(
        {"f": lambda decision, x, y, group: decision * x["loan"] * (y == decision) + (group == "F")}, "dict"
    )
    assert_same(found, wanted)
    assert frame.shape == (N, len(COLUMNS))


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pl.Series, pa.array, pd.Categorical])
def test_labels_and_groups_in_any_container(make):
    """Lists, arrays and series of any library hold the same labels and groups."""
    y = ["no" if label == 0 else "yes" for label in COLUMNS["approved"]]
    predicted = ["no" if label == 0 else "yes" for label in COLUMNS["predicted"]]
    sex = COLUMNS["sex"].tolist()
    wanted = compute("equalized_odds", y=np.array(y), predicted=np.array(predicted))
    if make is pd.Categorical:
        make = lambda values: pd.Series(values, dtype="category")  # noqa: E731  # a container like the others
    found = compute(
        "equalized_odds",
        y=make(y),
        predicted=make(predicted),
        sensitive_features=make(sex),
        classes=["no", "yes"],
    )
    assert_same(found, wanted)


@pytest.mark.parametrize("kind", ["pandas", "pandas nullable", "pandas pyarrow", "polars", "pyarrow"])
def test_a_missing_value_in_a_column_is_reported_with_its_row(kind):
    """null, NA and NaN in a column that a happiness uses are named by row and group, not dropped."""
    values = [float(i) for i in range(N)]
    values[7] = None
    if kind == "polars":
        people = pl.DataFrame({"v": values})
    elif kind == "pyarrow":
        people = pa.table({"v": values})
    else:
        people = pd.DataFrame({"v": values})
        if kind == "pandas nullable":
            people = people.convert_dtypes()
        elif kind == "pandas pyarrow":
            people = people.convert_dtypes(dtype_backend="pyarrow")
    with pytest.raises(HappinessError, match=r"nan in row 7 \(group 'M'\)"):
        aggregate(
            people,
            y=COLUMNS["approved"],
            predicted=COLUMNS["predicted"],
            policy="label",
            sensitive_features=COLUMNS["sex"],
            happiness=lambda decision, x: x["v"],
        )


def test_a_missing_column_is_named_with_its_nearest():
    """A misspelt column is an error with the nearest name."""
    with pytest.raises(DataError, match=r"'aproved'.*Did you mean 'approved'"):
        compute("statistical_parity", y="aproved")


@pytest.mark.parametrize(
    ("happiness", "classes", "titles"),
    [
        ("statistical_parity", [0, 1], ["selection rate"]),
        ("statistical_parity", ["a", "b", "c"], [f"share decided {one!r}" for one in "abc"]),
        ("equalized_odds", ["no", "yes"], ["true positive rate", "false positive rate"]),
        ("equalized_odds", ["a", "b", "c"], ["share decided 'a' among those labelled 'a'"]),
        ({"fair": "equalized_odds"}, [0, 1], ["true positive rate", "false positive rate"]),
        ({"fair": "demographic_parity"}, [0, 1], ["fair"]),
        ("distributional_parity", ["a", "b", "c"], ["share decided 'b' or better"]),
        (["tpr", "equalized_odds"], [0, 1], ["true positive rate", "false positive rate"]),
        ({"my_loan": "decision * loan"}, [0, 1], ["my_loan"]),
        ({"f(decision=1)": "decision * loan"}, [0, 1], ["f(decision=1)"]),
    ],
)
def test_titles_are_what_a_reader_says(happiness, classes, titles):
    """A measure of a criterion is called by what it counts, and the user's own by their name."""
    found = [item.measure.title for item in resolve_happiness(happiness, classes)]
    assert found[: len(titles)] == titles
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("unit", "number", "text"),
    [
        ("$", 16_000.0, "$16,000"),
        ("$", -2978.46, "-$2,978.46"),
        ("€", 0.5, "€0.5"),
        ("$", math.inf, "inf"),
        ("k$", 16.0, "16 k$"),
        ("share", 0.25, "0.25"),
        ("", 0.25, "0.25"),
    ],
)
def test_a_currency_stands_before_the_number(unit, number, text):
    """Money is written as people write it; any other unit follows the number."""
    measure = Happiness("decision", unit=unit).measure
    assert measure.quantity(number) == text
    assert measure.cell(number, 6) == (text if unit in ("$", "€") else text.removesuffix(unit).rstrip())
    assert measure.in_currency == (unit in ("$", "€"))
