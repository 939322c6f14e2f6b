"""People: a row of weight 0 is absent, whatever it holds, and the baseline's decisions are what is said of them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from doors import (
    KINDS,
    MODEL,
    Asked,
    fit_doors,
    fitted_doors,
    make_columns,
    numbers,
    numbers_of_report,
    policy_doors,
    rows_of,
    table_doors,
)
from helpers import solved, traced
from naive import LAZY, MEMORY
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from felicific import FairClassifier, Happiness, aggregate, audit
from felicific._people.people import People
from felicific._problem.missing_labels import SAY
from felicific._problem.problem import Problem
from felicific.exceptions import DataError
from felicific.sklearn import make_scorer

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

HAPPINESS = [
    Happiness(lambda decision, x: decision * x["amount"], name="money", bounds=(0, 10)),
    Happiness(
        lambda decision, x, y: (y == decision) * x["amount"], among=lambda x: x["amount"] > 2, name="rightly"
    ),
    "equal_opportunity",
]

#: What rows of weight 0 hold.
EMPTY = {"s": np.nan, "amount": np.nan, "p0": np.nan, "p1": np.nan, "w": 0.0, "g": None}
ROWS, GONE = 60, 8


def woven(missing):
    """The same people twice: alone, and with rows of weight 0 among them that hold nothing (NaN, or None)."""
    few = make_columns(ROWS, seed=1)
    few["w"] = np.maximum(few["w"], 1.0)
    gone = np.sort(np.random.default_rng(2).choice(ROWS + GONE, GONE, replace=False))
    kept = np.setdiff1d(np.arange(ROWS + GONE), gone)
    many = {}
    for name, column in few.items():
        if name in ("y", "d", "now"):
            column = column.astype(float if missing == "nan" else object)
        many[name] = np.empty(ROWS + GONE, dtype=column.dtype)
        many[name][kept] = column
        many[name][gone] = EMPTY.get(name, -1 if name == "id" else np.nan if missing == "nan" else None)
    return few, many, kept


@pytest.fixture(scope="module", params=["nan", "None"])
def both(request):
    return woven(request.param)


ASKED = Asked(HAPPINESS, {}, weighted=True, gap={"money": 3.0, "rightly": 3.0})
LOOSE = {"money": 9.0, "rightly": 9.0}


def assert_doors_alike(one, other):
    """Every door says the same of both."""
    assert one.keys() == other.keys()
    for name, door in one.items():
        left, right = numbers(door()), numbers(other[name]())
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=name)


def test_weight_0_is_absent_from_tables(both, tmp_path):
    """From aggregates, individual policies, frontiers and audits of tables in every library and on every engine."""
    few, many, _ = both
    assert_doors_alike(table_doors(many, ASKED, tmp_path), table_doors(few, ASKED, tmp_path))


@pytest.mark.parametrize("name", [*MEMORY, *LAZY])
def test_weight_0_is_absent_from_every_role(both, tmp_path, name):
    """Predictions and the baseline's decisions may be missing too; classes and groups are those of the others."""
    few, many, _ = both
    lay = MEMORY[name] if name in MEMORY else lambda columns: LAZY[name](columns, tmp_path)
    for roles in (
        {"predicted": "d", "baseline": "now"},
        {"score": "p1"},
        {"score": None, "predicted": "d", "policy": "label"},
    ):
        ask = ASKED.table | roles
        there, here = aggregate(lay(many), **ask), aggregate(few, **ask)
        assert there.groups == here.groups
        assert there.rows.tolist() == here.rows.tolist()
        np.testing.assert_allclose(numbers(there), numbers(here), rtol=1e-12)


def test_weight_0_is_absent_from_arrays(both):
    """Whether roles are columns, arrays or lists."""
    few, many, _ = both
    here = numbers(aggregate(few, **ASKED.table | {"baseline": "now", "predicted": "d"}))
    for kind in (np.asarray, list):
        roles = {
            name: kind(many[column]) for name, column in (("y", "y"), ("baseline", "now"), ("predicted", "d"))
        }
        roles |= {"sensitive_features": kind(many["g"]), "sample_weight": kind(many["w"])}
        for score in (np.column_stack([many["p0"], many["p1"]]), many["p1"], many["p1"].astype(object)):
            there = aggregate(many, **ASKED.table | roles | {"score": score})
            np.testing.assert_allclose(numbers(there), here, rtol=1e-12)


def test_weight_0_is_absent_from_audits(both, tmp_path):
    """Of policies, of a model, of probabilities."""
    few, many, kept = both
    policies = [
        solved(few, policy=kind, gap=ASKED.gap, random_state=0, **ASKED.table)
        for kind in ("score", "individual")
    ]
    assert_doors_alike(
        policy_doors(many, ASKED, tmp_path, policies), policy_doors(few, ASKED, tmp_path, policies)
    )
    probabilities = np.column_stack([many["p0"], many["p1"]])
    doors = [
        {
            "score": lambda c=columns, q=q: audit(q, c, **ASKED.audited),
            "model": lambda c=columns: audit(
                MODEL.estimator,
                rows_of(c, ASKED)[0],
                **ASKED.audited | {"y": c["y"], "sample_weight": c["w"]},
            ),
        }
        for columns, q in ((many, probabilities), (few, probabilities[kept]))
    ]
    assert_doors_alike(*doors)


def test_weight_0_is_absent_from_fits(both):
    """Of policies of every kind, that see the group or not."""
    few, many, _ = both
    assert_doors_alike(fit_doors(many, ASKED), fit_doors(few, ASKED))


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_weight_0_is_absent_from_cross_fitting(both, kind):
    """With a number of folds, with folds that list rows, and with half of the people held out."""
    few, many, kept = both
    gone = np.setdiff1d(np.arange(ROWS + GONE), kept)
    model = make_pipeline(make_column_transformer(("passthrough", ["s", "amount"])), LogisticRegression())
    tests = np.array_split(np.arange(ROWS), 3)
    folds = [(np.setdiff1d(np.arange(ROWS), test), test) for test in tests]
    listed = [
        (np.append(kept[a], gone[:4]), np.append(kept[b], gone[4 + i :: 3])) for i, (a, b) in enumerate(folds)
    ]
    settings = {
        "number": ({"cv": 3}, {"cv": 3}),
        "list": ({"cv": listed}, {"cv": folds}),
        "held out": ({"cv": 3, "gap": LOOSE, "confidence": 0.6},) * 2,
    }
    for left, right in settings.values():
        one, other = (
            ASKED.fair(kind, estimator=model, **changes).fit(rows, y, **weight)
            for changes, (rows, y, weight) in ((left, rows_of(many, ASKED)), (right, rows_of(few, ASKED)))
        )
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-9)
    frozen = [ASKED.fair(kind, gap=LOOSE, confidence=0.6) for _ in range(2)]
    for fair, columns in zip(frozen, (many, few), strict=True):
        rows, y, weight = rows_of(columns, ASKED)
        fair.fit(rows, y, baseline=columns["now"], **weight)
    np.testing.assert_allclose(numbers(frozen[0]), numbers(frozen[1]), rtol=1e-9, atol=1e-9)
    assert str(frozen[0].certificate_) == str(frozen[1].certificate_)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_0_is_absent_from_what_a_fitted_classifier_says(both, kind):
    """Audits, the frontier on other people, its band, the report, scores."""
    few, many, _ = both
    rows, y, weight = rows_of(few, ASKED)
    fair = ASKED.fair(kind).fit(rows, y, **weight)
    assert_doors_alike(fitted_doors(many, ASKED, fair), fitted_doors(few, ASKED, fair))
    others, labels, weights = rows_of(many, ASKED)
    assert fair.score(others, labels, **weights) == pytest.approx(fair.score(rows, y, **weight), rel=1e-12)


def test_weight_0_is_absent_when_groups_are_passed(both):
    """To a classifier that was told no column, and to a scorer of any classifier."""
    few, many, _ = both
    said = []
    for columns in (many, few):
        rows, y, weight = rows_of(columns, ASKED)
        passed = {"sensitive_features": columns["g"]} | weight
        kept = rows_of(few, ASKED)
        fair = ASKED.fair(sensitive_features=None).fit(kept[0], kept[1], sensitive_features=few["g"])
        plain = make_scorer(happiness="overall_accuracy", sensitive_features=columns["g"])
        said.append(
            numbers(audit(fair, rows, y, **passed))
            + numbers(fair.frontier_on(rows, y, **passed))
            + numbers(make_scorer()(fair, rows, y, **passed))
            + [fair.score(rows, y, **passed)]
            + numbers(plain(MODEL.estimator, rows[["s"]], y, **weight))
        )
    np.testing.assert_allclose(*said, rtol=1e-9, atol=1e-12)


def test_weight_0_is_absent_from_bands(both):
    """Of a frontier that knows no classifier."""
    few, many, _ = both
    line = traced(few, **ASKED.table)
    said = []
    for columns in (many, few):
        rows, y, weight = rows_of(columns, ASKED)
        scores = np.column_stack([columns["p0"], columns["p1"]])
        band = line.band(scores, rows, y, happiness=HAPPINESS, sensitive_features="g", **weight)
        said.append(numbers(band))
    np.testing.assert_allclose(*said, rtol=1e-9)


def test_rows_keep_their_numbers():
    """People know what the user calls their rows, and only those of positive weight are there."""
    columns = make_columns(6)
    problem = Problem.of(np.array([0, 1]), "overall_accuracy")
    weight = [1.0, 0.0, 2.0, 0.0, 1.0, 1.0]
    people = People.of(
        columns, problem, group=columns["g"], y=columns["y"], weight=weight, decided=columns["d"]
    )
    assert people.rows.tolist() == [0, 2, 4, 5]
    assert people.weights.tolist() == [1.0, 2.0, 1.0, 1.0]
    assert people.take(np.array([1, 3])).rows.tolist() == [2, 5]
    assert people.probabilities.argmax(axis=1).tolist() == columns["d"][[0, 2, 4, 5]].tolist()


# ---------------------------------------------------------------------------------------------------------
# The baseline


@pytest.mark.parametrize("name", [*MEMORY, *LAZY])
def test_the_baseline_is_what_was_given_or_what_the_model_predicts(tmp_path, name):
    """The baseline of sums is an audit of those decisions: of ``now``, of ``predicted``, of the likeliest class."""
    columns = make_columns()
    columns["d"][:20] = 1 - columns["d"][:20]  # the model says otherwise than its probabilities
    columns["top"] = (columns["p1"] > 0.5).astype(int)
    table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, tmp_path)
    for roles, column in (
        ({"baseline": "now", "predicted": "d"}, "now"),
        ({"baseline": "now"}, "now"),
        ({"predicted": "d"}, "d"),
        ({}, "top"),
        ({"baseline": "now", "predicted": "d", "score": None, "policy": "label"}, "now"),
    ):
        baseline = aggregate(table, **ASKED.table | roles).baseline
        audited = audit(column, columns, **ASKED.audited)
        np.testing.assert_allclose(
            [baseline.loss, *baseline.means.T.ravel()], numbers(audited)[:-1], rtol=1e-9
        )


@pytest.mark.parametrize("kind", KINDS)
def test_classifiers_and_reports_show_the_baseline(kind):
    """The frontier of a classifier and its report begin from the decisions given, by default from the model's."""
    columns = make_columns()
    rows, y, weight = rows_of(columns, ASKED)
    own = MODEL.predict(rows[["s"]])
    for baseline, decided in ((columns["now"], columns["now"]), (None, own)):
        fair = ASKED.fair(kind).fit(rows, y, baseline=baseline, **weight)
        audited = audit(decided, columns, **ASKED.audited)
        exact = [audited.loss.estimate, *audited.gaps.values()]
        line = fair.frontier_.baseline
        np.testing.assert_allclose([line.loss, *line.gaps], exact, rtol=1e-9)
        if fair.aggregates_ is not None:
            np.testing.assert_allclose(fair.aggregates_.baseline.loss, exact[0], rtol=1e-9)
        report = fair.report(rows, y, baseline=baseline, **weight).to_dict()["baseline"]
        assert report["loss"]["estimate"] == pytest.approx(exact[0], rel=1e-9)
        assert [part["gap"]["estimate"] for part in report["measures"]] == pytest.approx(exact[1:], rel=1e-9)


def test_the_baseline_may_be_a_column():
    """Of X, by its name."""
    columns = make_columns()
    rows, y, _ = rows_of(columns, ASKED)
    frame = rows.assign(now=columns["now"])
    fair = ASKED.fair().fit(frame, y, baseline="now")
    same = ASKED.fair().fit(frame, y, baseline=columns["now"])
    assert fair.aggregates_.baseline.loss == same.aggregates_.baseline.loss
    reports = [
        numbers_of_report(fair.report(frame, y, baseline=baseline)) for baseline in ("now", columns["now"])
    ]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("name", [*MEMORY, *LAZY])
def test_a_decision_of_the_baseline_that_is_none_is_refused(tmp_path, refuses, name):
    """With the value, the row and the decisions that there are."""
    columns = make_columns()
    columns["now"] = np.where(np.arange(90) == 11, 7, columns["now"])
    table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, tmp_path)
    for door in (aggregate, partial(solved, policy="individual"))[: 1 + (name in MEMORY)]:
        with refuses(DataError, "baseline decision 7", "row 11", "[0, 1]"):
            door(table, **ASKED.table | {"baseline": "now"})


def test_classifiers_refuse_a_decision_of_the_baseline_that_is_none(refuses):
    """When they are fitted and when they report."""
    columns = make_columns()
    rows, y, _ = rows_of(columns, ASKED)
    wrong = np.where(np.arange(90) == 11, 7, columns["now"])
    with refuses(DataError, "baseline decision 7", "row 11", "[0, 1]"):
        ASKED.fair().fit(rows, y, baseline=wrong)
    fair = ASKED.fair().fit(rows, y)
    with refuses(DataError, "baseline decision 7", "row 11", "[0, 1]"):
        fair.report(rows, y, baseline=wrong)
    with refuses(DataError, "baseline decisions", "90 rows"):
        fair.report(rows, y, baseline=wrong[:5])


def doors_for_labels():
    """Every door that takes labels, as a function of a table in pandas whose labels are in column y."""
    import polars as pl

    asked = {
        "score": {0: "p0", 1: "p1"},
        "y": "y",
        "sensitive_features": "g",
        "happiness": "decision * amount",
    }
    audited = {"sensitive_features": "g", "happiness": "decision * amount"}

    def fair(**settings):
        whole = pd.DataFrame(make_columns())
        return FairClassifier(MODEL, **audited, gap=1.0, random_state=0, **settings).fit(whole, whole["y"])

    def fit(table, **settings):
        return FairClassifier(MODEL, **audited, gap=1.0, **settings).fit(table, table["y"])

    return {
        "aggregates": lambda table: aggregate(table, **asked),
        "aggregates on an engine": lambda table: aggregate(pl.from_pandas(table).lazy(), **asked),
        "solve": lambda table: solved(table, gap=1.0, **asked),
        "solve individual": lambda table: solved(table, gap=1.0, policy="individual", **asked),
        "frontier": lambda table: traced(table, **asked),
        "audit": lambda table: audit("d", table, "y", loss="error", **audited),
        "audit of arrays": lambda table: audit(
            table["d"].to_numpy(), table, table["y"].to_numpy(), loss="error", **audited
        ),
        "audit on an engine": lambda table: audit(
            "d", pl.from_pandas(table).lazy(), "y", loss="error", **audited
        ),
        "fit": fit,
        "fit individual": lambda table: fit(table, policy="individual"),
        "fit safely": lambda table: fit(table, confidence=0.9),
        "audit of a classifier": lambda table: audit(fair(), table, table["y"], loss="error"),
        "frontier_on": lambda table: fair().frontier_on(table, table["y"]),
        "frontier_band": lambda table: fair().frontier_on(table, table["y"], confidence=0.95),
        "report": lambda table: fair().report(table, table["y"]),
    }


@pytest.mark.parametrize("door", doors_for_labels())
def test_a_missing_label_says_of_whom_at_every_door(door, refuses):
    """How many of which group have none, what leaving them out would mean, and what else there is to say."""
    table = pd.DataFrame(make_columns())
    gone = table.index[table["g"] == "a"][[2, 5, 9]]
    table["y"] = table["y"].astype(float)
    table.loc[gone, "y"] = None if "engine" in door else np.nan
    some = 300 / (table["g"] == "a").sum()
    words = (
        f"The label is missing in 3 of {len(table)} rows ({300 / len(table):.0f} %): {some:.0f} % of 'a'; ",
        "first in row",
        "Leaving them out would fit the policy to the people who have one.",
    )
    with refuses(DataError, *words, remedy=SAY):
        doors_for_labels()[door](table)
