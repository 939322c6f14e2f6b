"""The reference says what the code has, and what goes with what; everything else is refused by name."""

import importlib.util
import pickle
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import fair_classifier, solved, traced
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import felicific
from felicific import (
    Exploration,
    FairClassifier,
    FairRegressor,
    Policy,
    Ratio,
    aggregate,
    alternatives,
    audit,
    compare,
    frontier,
    monitor,
)
from felicific.cli import run
from felicific.cli.sql import SqlOptions, sql
from felicific.exceptions import AggregatesError, ConstraintError, DataError, HappinessError, PolicyFileError

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

ASKED = {"sensitive_features": "sex", "happiness": "decision * loan"}
ROLES = {"score": "score", "y": "repaid", **ASKED}
LISTED_ALONE = {
    "happiness": "distributional_parity",
    "decisions": ["refuse", "refer", "approve"],
    "loss": [[0, 0.2, 1], [0.6, 0.2, 0]],
}
LISTED = ROLES | LISTED_ALONE
AMOUNTS = {
    "predicted": "score", "loss": "squared", "y": "loan", "sensitive_features": "sex",
    "happiness": "distributional_parity",
}  # fmt: skip


def funding(decision, x):
    return decision * x["loan"]


@cache
def people(n=400, classes=2):
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    score = rng.beta(2, 3, n) * np.where(sex == "f", 0.85, 1.0)
    return pd.DataFrame(
        {
            "sex": sex,
            "region": np.where(rng.random(n) < 0.5, "north", "south"),
            "score": score,
            "rest": 1.0 - score,
            "repaid": (rng.random(n) < score).astype(int) + (rng.random(n) < 0.3) * (classes > 2),
            "loan": rng.uniform(10.0, 50.0, n),
            "approved": (score > 0.4).astype(int),
            "id": [f"p{i}" for i in range(n)],
        }
    )


def partly():
    rows = people()
    return rows.assign(repaid=rows["repaid"].where(np.random.default_rng(1).random(len(rows)) < 0.7))


def lazy():
    return pl.from_pandas(people()).lazy()


@cache
def model():
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        people()[["score", "loan"]], people()["repaid"]
    )


def fitted(table=None, **settings):
    fair = fair_classifier(FrozenEstimator(model()), **{"gap": 2.0, "random_state": 0} | ASKED | settings)
    table = people() if table is None else table
    return fair.fit(table, people()["repaid"])


@cache
def margin():
    """A classifier around a model that has a decision function and no probabilities."""
    model = RidgeClassifier().fit(people()[["score", "loan"]], people()["repaid"])
    fair = FairClassifier(FrozenEstimator(model), gap=2.0, random_state=0, **ASKED)
    return fair.fit(people(), people()["repaid"])


def valued():
    """The people with what its decision function says of them."""
    return people().assign(value=margin().estimator_.decision_function(people()[["score", "loan"]]))


def monitored(table):
    return monitor("approved", table, sensitive_features="sex", happiness="decision", gap=0.9)


def stored(thing):
    return pickle.loads(pickle.dumps(thing))


def read_back(policy, **functions):
    return Policy.from_json(policy.to_json(), **functions)


def reported(fair):
    return fair.report(people(), people()["repaid"]).to_dict()


def audited(table, decided="approved", happiness=None, **settings):
    happiness = ASKED["happiness"] if happiness is None else happiness
    return audit(decided, table, "repaid", sensitive_features="sex", happiness=happiness, **settings)


def banded(table):
    return traced(people(), **ROLES).band(people()["score"], table, people()["repaid"], **ASKED)


def command_line(*words):
    people().to_csv("people.csv", index=False)
    common = ["people.csv", "--group", "sex", "--happiness", "decision * loan"]
    assert run([words[0], *common, *words[1:]]) == 0


def sql_on_the_command_line(policy):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.json"
        path.write_text(policy.to_json(), "utf-8")
        sql(SqlOptions(policy=path, dialect="postgres", score=["score"], group=["sex"], key="id"))


FIT = ("--score", "score", "--label", "repaid")
INDIVIDUAL = {"policy": "individual", "gap": 2.0, "random_state": 0}
APPROVE = "decision == 'approve'"

#: What is said where sums over people are not enough.
PEOPLE = (
    "Use FairClassifier, which has them in memory; or policy='score', which decides by score bins anywhere."
)

#: What does not go with what: the error, words of its remedy, and the call that is refused.
REFUSED = [
    ("amounts losses, engine", DataError, "FairRegressor, which has the people in memory",
     lambda: solved(lazy(), **AMOUNTS | {"loss": "absolute"})),
    ("amounts losses, sites", DataError, "FairRegressor, which has the people in memory",
     lambda: aggregate(people(), **AMOUNTS | {"loss": "absolute"})),
    ("amounts among classes, memory", DataError, "Apply it, and audit the column of amounts.",
     lambda: audited(people(), solved(people(), **AMOUNTS), score="score")),
    ("amounts missing labels, memory", DataError, "Leave y= out, or audit the people who have a label.",
     lambda: audited(partly(), "score", missing_labels="at_random", decisions=(0, 1))),
    ("monitor amounts, memory", DataError, "Amounts can be audited, with decisions=(low, high), and not monitored.",
     lambda: monitor("score", people(), sensitive_features="sex", happiness="decision", gap=0.9)),
    ("fraction promises, memory", ConstraintError, "Leave confidence= out, and audit the policy on rows it",
     lambda: fitted(confidence=0.9, happiness="precision_parity", gap=0.1)),
    ("values, sites", DataError, "Pass what predict_proba returns",
     lambda: aggregate(valued(), **ROLES | {"score": "value"})),
    ("individual, sites", DataError, PEOPLE, lambda: aggregate(people(), policy="individual", **ROLES)),
    ("individual, engine", DataError, PEOPLE, lambda: aggregate(lazy(), policy="individual", **ROLES)),
    ("individual functions, files", PolicyFileError, "Pass happiness= with functions",
     lambda: read_back(solved(people(), **ROLES | INDIVIDUAL | {"happiness": funding}))),
    ("individual sql, memory", DataError, "Apply it where Python runs, or fit a policy that sees the score.",
     lambda: solved(people(), **ROLES | INDIVIDUAL).to_sql(score="score", sensitive_features="sex", key="id")),
    ("individual sql, command line", DataError, "Apply it where Python runs, or fit a policy that sees the score.",
     lambda: sql_on_the_command_line(solved(people(), **ROLES | INDIVIDUAL))),
    ("explain, engine", DataError, "collect a lazy one first", lambda: fitted().explain(lazy())),
    ("steer, engine", DataError, "Collect the table first, or name the file on the command line.",
     lambda: solved(people(), **ROLES).steer("decision * loan").decide(lazy(), "sex")),
    ("steer classes, memory", DataError, "Fit an individual policy, which is steered with any number of classes.",
     lambda: solved(people(classes=3), policy="label", predicted="repaid", y="repaid", gap=5.0, **ASKED)
     .steer("decision * loan")),
    ("decisions steer, memory", DataError, "Fit an individual policy, which is steered whatever is decided.",
     lambda: solved(people(), **LISTED | {"happiness": APPROVE}, gap=0.1).steer(APPROVE)),
    ("drawn decisions without a baseline, report", DataError,
     "Pass baseline=, the column of what was really decided.",
     lambda: reported(fitted(**LISTED_ALONE, gap=0.1, policy="soft-label"))),
    ("steer blind, memory", DataError, "Fit a policy that sees the group, or audit the decisions.",
     lambda: solved(people(), **ROLES, gap=5.0, sees_group=False).steer("decision * loan")),
    ("steer labels, memory", HappinessError, "Steer happiness that does not, and audit this one once labels are known.",
     lambda: solved(people(), **ROLES | {"happiness": "equal_opportunity"}, gap=0.2).steer("equal_opportunity")),
    ("steer explore, memory", ConstraintError, "Fit it without Exploration, or decide by the policy as it is.",
     lambda: solved(people(), **ROLES, gap=5.0, constraints=[Exploration(0.02)]).steer("decision * loan")),
    ("steer others, memory", ConstraintError, "Say which gap between all groups is to be kept instead: gap=number.",
     lambda: solved(people(), **ROLES, constraints=[Ratio("decision * loan", 0.8)]).steer("decision * loan")),
    ("recalibrate, engine", DataError, "collect a lazy one first", lambda: fitted().recalibrate(lazy())),
    ("frontier of a table, memory", AggregatesError, "Pass aggregate(table", lambda: frontier(people())),
    ("individual frontier, files", DataError, "Fit it again, or use policy='score'.",
     lambda: stored(fitted(policy="individual")).at(gap=3.0)),
    ("safe fit, engine", DataError, "collect a lazy one first", lambda: fitted(lazy(), confidence=0.9, gap=30.0)),
    ("band, engine", DataError, "collect a lazy one first", lambda: banded(lazy())),
    ("audit classifier, engine", DataError, "or pass a Policy (fair.policy_ is one) and score=.",
     lambda: audited(lazy(), model())),
    ("audit missing labels, engine", DataError, "Collect the table first, or name the file on the command line.",
     lambda: audited(lazy(), missing_labels="at_random")),
    ("compare, engine", DataError, "Collect the table and audit it again.",
     lambda: compare(audited(lazy()), audited(lazy()))),
    ("alternatives, engine", DataError, "Collect the table first, or name the file on the command line.",
     lambda: alternatives({"baseline": "score"}, lazy(), "repaid", **ASKED)),
]  # fmt: skip

#: Some of what goes with what.
HAD = {
    "decisions without a baseline, report": lambda: reported(fitted(**LISTED_ALONE, gap=0.1)),
    "classes, memory": lambda: solved(
        people(classes=3), policy="label", predicted="repaid", y="repaid", gap=5.0, **ASKED
    ),
    "groups, engine": lambda: solved(lazy(), **ROLES | {"sensitive_features": ["sex", "region"]}, gap=9.0),
    "values, memory": margin,
    "values, report": lambda: reported(margin()),
    "individual frontier, memory": lambda: traced(people(), policy="individual", **ROLES).points,
    "individual frontier, command line": lambda: command_line("frontier", *FIT, "--policy", "individual"),
    "safe fit, memory": lambda: fitted(confidence=0.9, gap=30.0),
    "safe fit, command line": lambda: command_line(
        "fit", *FIT, "--gap", "30", "--confidence", "0.9", "--seed", "0", "--change-cost", "0"
    ),
    "band, memory": lambda: banded(people()),
    "amounts losses, memory": lambda: FairRegressor(
        "score", loss="absolute", happiness="distributional_parity", gap=0.1, sensitive_features="sex",
        baseline="approved", random_state=0,
    ).fit(people().drop(columns="loan"), people()["loan"]),
}  # fmt: skip


def test_the_page_is_what_the_code_says():
    """Names, results and criteria of the page are those of the code; docs/reference.py writes them."""
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    assert reference.written(page) == page
    assert all(f"`{name}" in page for name in felicific.__all__)


def test_the_test_of_the_page_sees_a_wrong_one():
    """A page whose table was changed by hand is noticed."""
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    assert reference.written(page.replace("get each decision", "get none")) == page


@pytest.mark.parametrize(
    ("error", "remedy", "call"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_does_not_go_together_is_refused_by_name(error, remedy, call):
    """The error says what to do instead."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("name", HAD)
def test_what_goes_together_can_be_had(name, tmp_path, monkeypatch):
    """Asking for it raises nothing."""
    monkeypatch.chdir(tmp_path)
    HAD[name]()
