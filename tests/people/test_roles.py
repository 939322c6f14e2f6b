"""Columns: of two classes the score of the second is enough, however it is spelled and wherever the table is."""

import numpy as np
import pytest
from doors import PLACES, Asked, make_columns, numbers
from helpers import solved, traced
from naive import LAZY, MEMORY, as_arrow, as_pandas, as_polars

from felicific import Happiness, aggregate, audit
from felicific._people.roles import Roles
from felicific._tables.groups import attributes_of
from felicific.exceptions import DataError

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

HAPPINESS = [
    Happiness(lambda decision, x: decision * x["amount"], name="money"),
    Happiness(lambda decision, x, y: (y == decision) * x["amount"], name="rightly"),
]
ASKED = Asked(HAPPINESS, {}, weighted=True)
TWO = {0: "p0", 1: "p1"}

#: Names that mean the score of the second class.
NAMES = {"text": "p1", "list": ["p1"], "mapping": {1: "p1"}, "tuple": ("p1",)}


def arrays(columns):
    """Values that mean it."""
    return {
        "vector": columns["p1"],
        "column": columns["p1"][:, None],
        "series": as_pandas(columns)["p1"],
        "frame": as_pandas(columns)[["p1"]],
        "polars series": as_polars(columns)["p1"],
        "polars frame": as_polars(columns).select("p1"),
    }


@pytest.fixture(scope="module")
def columns():
    return make_columns(60)


@pytest.fixture(scope="module")
def policies(columns):
    return [
        solved(columns, policy=kind, gap=1.0, random_state=0, **ASKED.table)
        for kind in ("score", "soft-label", "individual")
    ]


def lay(name, columns, folder):
    return MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, folder)


@pytest.mark.parametrize("name", PLACES)
def test_one_column_is_two(columns, policies, tmp_path, name):
    """In aggregates, policies, frontiers and audits: names on every table, arrays for those in memory."""
    table = lay(name, columns, tmp_path)
    doors = {
        **{
            f"aggregate {kind}": lambda score, kind=kind: aggregate(
                table, policy=kind, **ASKED.table | {"score": score}
            )
            for kind in ("score", "label", "soft-label")
        },
        "solve": lambda score: solved(table, gap=1.0, random_state=0, **ASKED.table | {"score": score}),
        "frontier": lambda score: traced(table, **ASKED.table | {"score": score}),
        **{
            f"audit {policy.kind}": lambda score, policy=policy: audit(
                policy, table, score=score, **ASKED.audited
            )
            for policy in policies
        },
    }
    if name in MEMORY:
        doors["individual"] = lambda score: solved(
            table, policy="individual", gap=1.0, random_state=0, **ASKED.table | {"score": score}
        )
    spelled = NAMES | arrays(columns) if name in MEMORY else {"text": "p1", "mapping": {1: "p1"}}
    for door, ask in doors.items():
        exact = numbers(ask(TWO))
        for spelling, score in spelled.items():
            np.testing.assert_allclose(numbers(ask(score)), exact, rtol=1e-12, err_msg=f"{door} {spelling}")


def decisions_in(table):
    """The decisions of any table, by the person."""
    for collect in ("collect", "to_arrow_table", "to_table", "read_all"):
        table = getattr(table, collect)() if hasattr(table, collect) else table
    order = np.argsort(np.asarray(table["id"]))
    return np.asarray(table["decision"])[order].tolist()


@pytest.mark.parametrize("name", PLACES)
def test_policies_decide_by_one_column(columns, policies, tmp_path, name):
    """As by two, in memory and on engines."""
    table = lay(name, columns, tmp_path)
    for policy in policies:
        roles = {"sensitive_features": "g", "key": "id"}
        exact = decisions_in(policy.apply(table, score=TWO, **roles))
        for score in NAMES.values():
            assert decisions_in(policy.apply(table, score=score, **roles)) == exact


def test_probabilities_of_one_column(columns, policies):
    """Arrays of one column, flat or not, are as good as two."""
    two, x = np.column_stack([columns["p0"], columns["p1"]]), as_pandas(columns)
    for policy in policies:
        exact = policy.probabilities(two, columns["g"], x)
        drawn = policy.decide(two, columns["g"], columns["id"], x)
        for scores in arrays(columns).values():
            np.testing.assert_allclose(policy.probabilities(scores, columns["g"], x), exact, rtol=1e-12)
            assert (policy.decide(scores, columns["g"], columns["id"], x) == drawn).all()


def test_sql_of_one_column(columns, policies):
    """The expression decides the same, inside DuckDB."""
    import duckdb

    database = duckdb.connect()
    database.register("people", as_arrow(columns))

    def decided(policy, score):
        text = policy.to_sql(score=score, sensitive_features="g", key="id")
        return database.execute(f"SELECT {text} FROM people ORDER BY id").fetchall()

    for policy in policies[:2]:
        exact = decided(policy, TWO)
        assert all(decided(policy, score) == exact for score in NAMES.values())


def test_bands_of_one_column(columns):
    """A frontier's band takes arrays of one column."""
    for kind in ("score", "individual"):
        line = traced(columns, policy=kind, **ASKED.table)

        def band(scores, line=line):
            rows = as_pandas(columns)
            return numbers(line.band(scores, rows, columns["y"], happiness=HAPPINESS, sensitive_features="g"))

        exact = band(np.column_stack([columns["p0"], columns["p1"]]))
        for scores in arrays(columns).values():
            np.testing.assert_allclose(band(scores), exact, rtol=1e-9)


@pytest.mark.parametrize("score", [1.5, -0.1, np.nan, np.inf])
@pytest.mark.parametrize("name", PLACES)
def test_a_score_that_is_none_is_refused_by_row(columns, policies, tmp_path, name, score):
    """Outside 0 to 1 or not a number, in memory and on engines."""
    wrong = columns["p1"].copy()
    wrong[17] = score
    bad = columns | {"p1": wrong}
    table = lay(name, bad, tmp_path)
    doors = {
        "aggregates": lambda score: aggregate(table, **ASKED.table | {"score": score}),
        "audit": lambda score: audit(policies[0], table, score=score, **ASKED.audited),
    }
    if name in MEMORY:
        doors["individual"] = lambda score: solved(
            table, policy="individual", **ASKED.table | {"score": score}
        )
        group, frame = columns["g"], as_pandas(columns)
        doors["apply"] = lambda score: policies[0].apply(table, score=score, sensitive_features="g", key="id")
        doors["probabilities"] = lambda score: policies[0].probabilities(wrong, group)
        doors["individual probabilities"] = lambda score: policies[2].probabilities(wrong, group, frame)
        doors["array"] = lambda score: aggregate(table, **ASKED.table | {"score": wrong})
    for door, ask in doors.items():
        for score in ("p1", {1: "p1"}):
            with pytest.raises(DataError) as caught:
                ask(score)
            assert "row 17" in str(caught.value), (door, str(caught.value))


def test_one_column_must_be_that_of_the_second_class(columns, refuses, tmp_path):
    """The score of the first class, or one score of three classes, is refused with what is expected."""
    three = columns | {"y": np.arange(60) % 3}
    for name in ("dict", "duckdb"):
        with refuses(DataError, "probabilities for [0]", "[0, 1]"):
            aggregate(lay(name, columns, tmp_path), **ASKED.table | {"score": {0: "p0"}})
        with refuses(DataError, remedy="one column for e"):
            aggregate(lay(name, three, tmp_path), **ASKED.table | {"score": "p1"})


def test_classes_are_named_by_two_columns_or_more():
    """A mapping of one class names no classes: they are the labels."""
    table = {"y": np.array([0, 1, 1]), "p": np.ones(3)}
    assert Roles(y="y", score={1: "p"}).classes_in(table, None, None).tolist() == [0, 1]
    assert Roles(y="y", score={2: "p", 0: "p", 1: "p"}).classes_in(table, None, None).tolist() == [2, 0, 1]
    assert Roles(y="y", score={1: "p"}).classes_in(table, [0, 1, 2], None).tolist() == [0, 1, 2]


SCORES = np.array([0.2, 0.7, 0.4, 0.9])


@pytest.mark.parametrize(
    "score", ["s", ["s"], SCORES, SCORES[:, None]], ids=["name", "list", "vector", "column"]
)
def test_one_score_of_classes_the_other_way_round_is_refused(score, refuses):
    """Taken for the second class as listed, it would be taken for the other one; named by its class, it is clear."""
    table = {"s": SCORES, "g": np.array([0, 1, 0, 1]), "y": np.array([0, 1, 1, 0])}
    asked = {"y": "y", "sensitive_features": "g", "happiness": "statistical_parity"}
    with refuses(DataError, "one score", "[1, 0]", remedy="score={class: column}"):
        aggregate(table, score=score, classes=[1, 0], **asked)
    assert aggregate(table, score=score, classes=[0, 1], **asked).total == 4


def test_attributes_are_what_groups_are_made_of():
    """Names of columns, of the table or of another one; positions where values have no name."""
    table = {"sex": np.array(["f", "m"]), "race": np.array(["a", "b"])}
    both = np.array([["f", "a"], ["m", "b"]])
    assert attributes_of(table, ["sex", "race"]) == ("sex", "race")
    assert attributes_of(table, "race") == ("race",)
    assert attributes_of(both, table) == ("sex", "race")
    assert attributes_of(table, both) == (0, 1)
    assert attributes_of(table, np.array(["u", "v"])) == (0,)
