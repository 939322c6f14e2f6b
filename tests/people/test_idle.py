"""Idle happiness, which no decision changes for anybody, and text that is no class or group: refused at every door."""

import numpy as np
import pandas as pd
import pytest
from doors import KINDS, PLACES, Asked, fit_doors, fitted_doors, make_columns, rows_of, table_doors
from helpers import solved, traced
from hypothesis import given
from hypothesis import strategies as st
from naive import LAZY, MEMORY
from sklearn.frozen import FrozenEstimator
from strategies import examples, small_ints

from felicific import FairClassifier, Floor, Gap, Happiness, Ratio, aggregate, audit, frontier, load, solve
from felicific._program.aggregates import Aggregates
from felicific._sklearn.inputs import ScoreColumns
from felicific.exceptions import ExpressionError, GroupError, GroupWarning, HappinessError
from felicific.sklearn import make_scorer

NAMED = {"score": {0: "p0", 1: "p1"}, "y": "y", "sensitive_features": "g"}

IDLE = {
    "constant": lambda decision: 3.0,
    "of x": lambda decision, x: x["amount"] * 2.0,
    "other class": lambda decision, x: (decision == 7) * x["amount"],
    "expression": "amount * 2",
    "order": "(decision > 5) * amount",
    "of y": Happiness(lambda decision, y: 1.0 * (y == 1), name="labelled"),
    "counted": Happiness("0.5 * decision if amount > 99 else amount", among="amount < 5", name="counted"),
    "one of two": {"fine": "decision * amount", "idle": "amount + 0 * decision"},
}


@pytest.mark.parametrize("what", IDLE)
def test_what_no_decision_changes_is_refused_at_every_door(what, tmp_path, refuses):
    """By aggregates, solve, frontier and audit in every library and engine, by fits of every kind and by scorers."""
    columns, asked = make_columns(), Asked(IDLE[what], {})
    rows, y, _ = rows_of(columns, asked)
    doors = table_doors(columns, asked, tmp_path) | fit_doors(columns, asked, sees=(True,))
    fair = Asked("decision * amount", {}).fair().fit(rows, y)
    doors["scorer"] = lambda: make_scorer(IDLE[what], "g")(fair, rows, y)
    doors["blind"] = lambda: asked.fair("individual", see=False).fit(rows, y)
    doors["safe"] = lambda: asked.fair(confidence=0.6).fit(rows, y)
    doors["floor"] = lambda: solved(
        columns, **NAMED, happiness="decision", constraints=[Floor(Happiness("amount * 2"), at_least=0.0)]
    )
    for name, door in doors.items():
        if name.startswith("audit"):  # which does not fail because of who was sampled
            notes = " ".join(door().notes)
            assert (
                "does not ask for the decision" if what == "expression" else "of anybody in these rows"
            ) in notes
            continue
        with refuses(HappinessError, "No decision changes the happiness", "[0, 1]", remedy="decision == 1"):
            door()


@pytest.mark.parametrize("name", PLACES)
def test_what_never_asks_for_the_decision_is_measured_and_not_judged(name, tmp_path):
    """Means and gap by hand, a note, no test, no ratio; of another happiness beside it there is a verdict."""
    columns = make_columns()
    table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, tmp_path)
    happiness = {"wealth": "amount * 2", "given": "decision * amount"}
    asked = {"y": "y", "sensitive_features": "g", "happiness": happiness, "gap": 0.5}
    found = audit("d", table, **asked)
    means = [2 * np.mean(columns["amount"][columns["g"] == group]) for group in ("a", "b")]
    assert list(found.means["wealth"].values()) == pytest.approx(means)
    assert found.gaps["wealth"] == pytest.approx(abs(means[0] - means[1]))
    assert found["wealth"].test is None
    assert found["given"].test is not None
    assert sum("'wealth' does not ask for the decision" in note for note in found.notes) == 1
    assert list(found.ratios) == ["given"]
    assert "No decision changes 'wealth'" in str(found.ratios.refused["wealth"])


@pytest.mark.parametrize("name", PLACES)
def test_one_group_alone_is_measured_with_a_warning(name, tmp_path):
    """Its mean and loss are by hand, and there is no gap, no verdict and nothing to repair."""
    columns = make_columns() | {"g": np.full(90, "a")}
    table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, tmp_path)
    asked = {
        "y": "y",
        "sensitive_features": "g",
        "happiness": "decision * amount",
        "gap": 99.0,
    }
    with pytest.warns(GroupWarning, match="one group only: 'a'"):
        found = audit("d", table, **asked)
    assert found.means["decision * amount"] == pytest.approx({"a": np.mean(columns["d"] * columns["amount"])})
    part = found["decision * amount"]
    assert np.isnan(found.gap)
    assert (part.gap.low, part.gap.high, part.gap.note) == (0.0, np.inf, "one group only")
    assert part.test.verdict == "undecided"
    assert "one group only" in str(found)
    assert "Nothing to repair" not in str(found)
    assert found.to_dict()["measures"][0]["gap"]["estimate"] is None
    assert "one group only" in found.to_html()


def test_a_group_of_one_person_is_refused_where_it_would_be_compared():
    """By every requirement that compares groups; not where few people are left out, or nothing is compared."""
    table = {
        "g": ["a", "b"] * 20 + ["c"],
        "y": [0, 1, 1, 0] * 10 + [1],
        "s": [0.25, 0.5, 0.75, 0.625] * 10 + [0.875],
    }
    table["r"] = [1 - score for score in table["s"]]
    asked = {"score": "s", "y": "y", "sensitive_features": "g", "happiness": "decision"}
    sums = aggregate(table, **asked)
    fair = FairClassifier(
        FrozenEstimator(ScoreColumns(["r", "s"], [0, 1])),
        gap=0.0,
        happiness="decision",
        sensitive_features="g",
    )
    for door in (
        lambda: solve(sums, gap=0.0),
        lambda: solved(table, policy="individual", **asked),
        lambda: solve(sums, constraints=[Ratio("decision", 0.8)]),
        lambda: len(frontier(sums)),
        lambda: fair.fit(pd.DataFrame(table), table["y"]),
    ):
        with pytest.raises(GroupError, match=r"The group 'c' is one person.*min_people=2"):
            door()
    for fine in (
        {"constraints": [Gap("decision", 0.1, min_people=2)]},
        {"gap": {}, "constraints": [Floor("decision", 0.1)]},
    ):
        assert solve(sums, **fine).groups == ("a", "b", "c")
    twice = aggregate(table, sample_weight=np.where(np.array(table["g"]) == "c", 2, 1), **asked)
    assert solve(twice, gap=0.0).gap <= 1e-9
    weighed = np.where(np.array(table["g"]) == "c", 2.5, 1)
    with pytest.raises(GroupError, match="'c' is one person"):
        solve(aggregate(table, sample_weight=weighed, weight_kind="sampling", **asked), gap=0.0)


@pytest.mark.parametrize("name", PLACES)
def test_one_person_who_is_changed_is_enough(name, tmp_path):
    """A happiness that a decision changes for one counted person is asked of people, not of their first batch."""
    columns = make_columns()
    columns["amount"] = np.zeros(90)
    columns["amount"][-1] = 0.25
    table = MEMORY[name](columns) if name in MEMORY else LAZY[name](columns, tmp_path)
    asked = Asked("decision * amount", {})
    assert aggregate(table, **asked.table).moves == (True,)
    assert audit("d", table, **asked.audited).rows == 90


@examples
@given(worth=small_ints((12, 2), 0, 1), place=st.sampled_from(["dict", "polars lazy", "duckdb"]))
def test_idle_is_what_a_second_look_calls_idle(worth, place):
    """Exactly where the two numbers of every person are the same, whatever their sums are."""
    columns = {"g": np.arange(12) % 2, "y": np.arange(12) // 2 % 2, "a": worth[:, 0], "b": worth[:, 1]}
    table = MEMORY[place](columns) if place in MEMORY else LAZY[place](columns, None)
    asked = {"sensitive_features": "g", "happiness": "b if decision == 1 else a"}
    idle = all(one == other for one, other in worth.tolist())
    doors = [
        lambda: aggregate(table, predicted="y", y="y", policy="label", **asked).moves,
        lambda: solved(table, predicted="y", y="y", policy="label", gap={}, **asked),
        lambda: solve(aggregate(table, predicted="y", y="y", policy="label", groups=[0, 1], **asked), gap={}),
    ]
    said = any(
        "changes 'b if decision == 1 else a' of anybody" in note
        for note in audit("y", table, "y", **asked).notes
    )
    assert said == idle
    for door in doors:
        if not idle:
            door()
            continue
        with pytest.raises(HappinessError, match="No decision changes"):
            door()


def test_sums_that_cancel_out_are_not_idle():
    """Of everybody who is right by 0 another is right by 1: every sum is the same, and people are changed."""
    people = {"g": ["a", "a", "b", "b"] * 5, "y": [0, 1] * 10, "own": [0, 0, 1, 1] * 5}
    sums = aggregate(
        people, predicted="own", policy="label", y="y", sensitive_features="g", happiness="overall_accuracy"
    )
    assert (sums.value[:, :, 0] == sums.value[:, :, 1]).all()
    assert sums.moves == (True,)
    assert solve(sums, gap=0.0).gaps["accuracy"] == 0.0
    assert Aggregates.from_json(sums.to_json()).moves == (True,)
    assert len(frontier(Aggregates.from_json(sums.to_json()).merged(2))) == 1


def test_a_site_may_be_idle_and_all_of_them_not(refuses, tmp_path):
    """With groups= a part is summed as it is; what the sites make together is refused, from files too."""
    whole = make_columns()
    whole["amount"] = np.where(np.arange(90) < 45, 0.0, whole["amount"])
    parts = [{name: column[some] for name, column in whole.items()} for some in (slice(45), slice(45, 90))]
    asked = NAMED | {"happiness": lambda decision, x: decision * x["amount"], "groups": ["a", "b"]}
    here, there = (aggregate(part, **asked) for part in parts)
    assert (here.moves, there.moves, (here + there).moves) == ((False,), (True,), (True,))
    assert solve(here + there, gap=1.0, random_state=0).gap <= 1.0 + 1e-9
    here.save(tmp_path / "here.json")
    for idle in (here, here + here, load(tmp_path / "here.json"), here.merged(3)):
        for door in (solve, frontier):
            with refuses(HappinessError, "No decision changes the happiness", "[0, 1]"):
                door(idle, gap={"happiness": 1.0})
    with refuses(HappinessError, "No decision changes"):
        aggregate(parts[0], **asked | {"groups": None})


def test_a_group_that_no_decision_changes_is_fine():
    """Idle for some group, some rows or some decisions is not idle."""
    columns = make_columns()
    for happiness in ("(group == 'a') * decision", "decision * (amount > 9)", "decision * y"):
        assert solved(columns, **NAMED, happiness=happiness, random_state=0).gap < 1e-9


def test_nobody_who_is_counted_is_told_first(refuses):
    """Nobody is changed where nobody is counted: that is what is said."""
    for door in (solved, traced):
        with refuses(HappinessError, "Nobody of the group 'a' is counted"):
            door(make_columns(), **NAMED, happiness=Happiness("decision", among="amount > 999"))


# ---------------------------------------------------------------------------------------------------------
# Text and numbers that are compared


TYPOS = {
    "(decision == 3) * amount": ("3 is no decision", "[0, 1]"),
    "3 == decision": ("3 is no decision", "[0, 1]"),
    "decision != -1": ("-1 is no decision", "[0, 1]"),
    "decision in (1, 2)": ("2 is no decision", "[0, 1]"),
    "decision * (y == 2)": ("2 is no label", "[0, 1]"),
    "decision * (group == 'c')": ("'c' is no group", "['a', 'b']"),
    "decision * (group not in ('a', 'bb'))": ("'bb' is no group", "['a', 'b']"),
}


@pytest.mark.parametrize("text", TYPOS)
def test_what_can_never_be_equal_is_refused_at_every_door(text, tmp_path, refuses):
    """With what was written, what there is, and where it stands; in the loss too."""
    columns = make_columns()
    for asked in (Asked(text, {}, gap=0.5), Asked("decision", {"loss": f"1 + ({text})"}, gap=0.5)):
        doors = table_doors(columns, asked, tmp_path) | fit_doors(columns, asked, KINDS, sees=(True,))
        for door in doors.values():
            with refuses(ExpressionError, *TYPOS[text]) as caught:
                door()
            assert "^" in caught.value.picture


def test_among_is_read_too(refuses):
    """Who is counted may not be compared with a class or a group that is none."""
    for among, words in (("y == 2", "2 is no label"), ("group == 'z'", "'z' is no group")):
        with refuses(ExpressionError, words):
            aggregate(make_columns(), **NAMED, happiness=Happiness("decision", among=among))


def test_text_that_is_no_class(refuses):
    """The nearest class is proposed; numbers and text that meet are told as before."""
    people = {"g": ["f", "m"] * 20, "d": ["good", "bad", "bad", "bad"] * 10}
    asked = {"sensitive_features": "g"}
    with refuses(ExpressionError, "'approved' is no decision", "['bad', 'good']", remedy="one of them"):
        audit("d", people, happiness="decision == 'approved'", **asked)
    with refuses(ExpressionError, "'god' is no decision", remedy="Did you mean 'good'?"):
        audit("d", people, happiness="decision == 'god'", **asked)
    with refuses(ExpressionError, "1 is no decision", "['bad', 'good']"):
        audit("d", people, happiness="decision == 1", **asked)
    with refuses(ExpressionError, "'maybe' is no decision"):
        audit("d", people, happiness="decision == 'maybe'", **asked)
    known = {"decisions": ["bad", "good", "maybe"]}
    assert audit("d", people, happiness="decision in ('good', 'maybe')", **asked, **known).rows == 40


def test_what_is_true_of_the_classes_is_taken():
    """Truth values as numbers, thresholds between classes, columns compared with anything."""
    people = {"g": [0, 1] * 20, "d": [True, False, False, False] * 10, "c": ["x"] * 40}
    for happiness in (
        "decision == 1",
        "decision == True",
        "decision > 0.5",
        "decision * (c != 'y')",
        "decision == -0",
    ):
        assert audit("d", people, happiness=happiness, sensitive_features="g").rows == 40


def test_a_group_may_be_missing_where_groups_are_named():
    """At one site, with groups=; and among the people of an audit, where the policy knows it."""
    columns = make_columns()
    asked = NAMED | {"happiness": "decision * (group == 'b')", "groups": ["a", "b"]}
    some = {name: column[columns["g"] == "a"] for name, column in columns.items()}
    with pytest.raises(ExpressionError, match="'b' is no group"):
        aggregate(some, **asked | {"groups": None})
    assert (
        solve(aggregate(some, **asked) + aggregate(columns, **asked), gap=0.1, random_state=0).gap
        < 0.1 + 1e-9
    )
    columns["g"][:20] = "c"
    policy = solved(columns, **NAMED, happiness="decision * (group != 'c')", gap=0.1, random_state=0)
    others = {name: column[20:] for name, column in columns.items()}
    asked = {"y": "y", "happiness": "decision * (group != 'c')", "sensitive_features": "g"}
    assert audit(policy, others, score=NAMED["score"], **asked).rows == 70
    with pytest.raises(ExpressionError, match="'c' is no group"):
        audit("d", others, **asked)


def test_fitted_classifiers_still_answer():
    """What is fitted was looked at once; other people may be idle to a curve, a band and a report."""
    columns, asked = make_columns(), Asked("decision * amount", {})
    rows, y, _ = rows_of(columns, asked)
    fair = asked.fair().fit(rows, y)
    still = fitted_doors(columns | {"amount": np.zeros(90)}, asked, fair)
    for name in ("frontier_on", "report"):
        still[name]()
    with pytest.raises(HappinessError, match="No decision changes"):
        still["scorer"]()
    assert any("of anybody in these rows" in note for note in still["audit"]().notes)
