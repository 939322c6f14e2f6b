"""What is a rate is declared, and never seen in the rows at hand."""

import math

import numpy as np
import pytest
from conftest import refused
from functions import as_duckdb, as_lazy
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from felicific import Happiness, aggregate, audit, compare, solve
from felicific._problem.expressions import Expression
from felicific._problem.happiness import function_from_json, function_to_json, resolve_happiness
from felicific.exceptions import HappinessError

#: Expressions of decisions, comparisons and numbers.
BINARY = st.recursive(
    st.sampled_from(["decision", "baseline", "0", "1", "2", "(loan > 0)", "loan", "(decision == 1)"]),
    lambda part: st.builds(
        lambda form, a, b: form.format(a, b),
        st.sampled_from(["({} * {})", "(1 - {1})", "({} + {})", "({} if loan > 0 else {})", "({} - {})"]),
        part,
        part,
    ),
    max_leaves=4,
).filter(lambda text: "decision" in text)


def funding(decision, x):
    return decision * x["loan"]


@pytest.fixture
def nobody():
    """Sixty people who all ask for a loan, and nobody is approved."""
    rng = np.random.default_rng(0)
    return {
        "sex": np.repeat(["f", "m"], 30),
        "loan": rng.integers(1000, 9000, 60),
        "approved": np.zeros(60, int),
    }


ASKED = {"sensitive_features": "sex", "decisions": [0, 1]}


def test_dollars_that_nobody_got_are_no_rate(nobody):
    """That 60 people all got 0 does not show that nobody gets more, and no limit of cents is exact."""
    for happiness in (funding, "decision * loan", Happiness(funding, unit="$")):
        found = audit("approved", nobody, happiness=happiness, gap=1000, **ASKED).measures[0]
        assert all(mean.high == math.inf and "exact" not in mean.method for mean in found.means.values())
        assert found.gap.high == math.inf
        assert found.test.verdict == "undecided"
    bounded = Happiness(funding, bounds=(0, 10_000))
    mean = audit("approved", nobody, happiness=bounded, **ASKED).measures[0].means["f"]
    assert "betting" in mean.method
    assert 300 < mean.high < 10_000
    for lay in (as_lazy, as_duckdb):
        found = audit("approved", lay(nobody), happiness="decision * loan", **ASKED).measures[0]
        assert all(mean.high == math.inf for mean in found.means.values())


def test_nothing_is_said_of_chance_where_nothing_varies(nobody):
    """How large a gap chance shows is not known where all values are alike, whatever their bounds."""
    bounded = Happiness(funding, bounds=(0, 50_000), unit="$")
    found = audit("approved", nobody, happiness=bounded, **ASKED)
    assert found.measures[0].bias == math.inf
    assert "chance alone" not in str(found)
    assert found.to_dict()["measures"][0]["gap"]["bias"] is None


@pytest.mark.parametrize(
    ("happiness", "exact"),
    [
        ("statistical_parity", True),
        ("decision == 1", True),
        ("decision == 1 and loan > 2000", True),
        ("not (decision == 1)", True),
        ("(decision == 1) if loan > 2000 else 0", True),
        ("decision in (1,)", True),
        (Happiness(lambda decision: decision == 1, rate=True), True),
        (Happiness("decision", rate=True), True),
        ("decision", True),
        ("1 - decision", True),
        ("1 * decision", True),
        ("(decision == 1) * 1", True),
        ("decision * (loan > 2000)", True),
        ("decision if loan > 2000 else 1 - decision", True),
        (Happiness("decision", name="approved", unit="share"), True),
        (Happiness("decision", rate=False), False),
        ("2 * decision", False),
        ("decision + (loan > 2000)", False),
        ("decision - 1", False),
        ("decision * loan", False),
        ("(decision == 1) if loan > 2000 else 2", False),
        (Happiness(lambda decision: decision == 1), False),
        (Happiness(lambda decision: decision == 1, unit="share"), False),
    ],
)
def test_who_is_a_rate(nobody, happiness, exact):
    """Criteria, comparisons joined by and, or, not, decisions of 0 and 1, products of such, and what is said to be one.

    In memory and on an engine.
    """
    for table in (nobody, as_lazy(nobody)):
        found = audit("approved", table, happiness=happiness, **ASKED).measures[-1]
        assert all(("exact" in mean.method) == exact for mean in found.means.values())
        assert (found.measure.bounds == (0.0, 1.0)) == exact


def test_what_looks_like_a_rate_is_asked_about(nobody):
    """Values that are all 0 or 1 and not declared get a hint; others and declared ones do not."""
    table = nobody | {"approved": np.tile([0, 1, 1], 20)}
    for happiness, hint in (
        (lambda decision: decision, True),
        ("decision", False),
        ("decision * loan", False),
    ):
        for lay in (dict, as_lazy):
            found = audit("approved", lay(table), happiness=happiness, **ASKED)
            assert any("all 0 or 1 here" in note for note in found.notes) == hint


@examples
@given(text=BINARY, classes=st.sampled_from([(0, 1), (False, True), (1, 2), (0, 1, 2)]))
def test_what_is_a_rate_by_itself_is_one_for_everybody(text, classes):
    """Where an expression is a rate by itself, no people and no decision make it anything but 0 or 1."""
    happiness = resolve_happiness(text, classes)[0]
    x = {"loan": np.array([-3.0, 0.0, 0.5, 7.0])}
    values = [
        np.broadcast_to(
            happiness.function(**{name: value for name, value in given if name in happiness.asks}), 4
        )
        for decision in classes
        for baseline in classes
        for given in [[("decision", decision), ("baseline", baseline), ("x", x)]]
    ]
    if happiness.rate:
        assert set(np.unique(values)) <= {0.0, 1.0}


def test_a_group_that_gets_nothing_has_a_ratio_with_an_end(nobody):
    """Of decisions of 0 and 1 ratios have score intervals; other classes are numbers of which more is possible."""
    table = nobody | {"approved": np.repeat([0, 1], 30)}
    part = audit("approved", table, happiness="decision", **ASKED).ratios["decision"]
    assert part.smallest.estimate == 0.0
    assert 0.0 < part.smallest.high < 0.5
    assert part.verdict == "less"
    asked = {"sensitive_features": "sex", "happiness": "decision"}
    other = audit("approved", table | {"approved": table["approved"] + 1}, decisions=[1, 2], **asked)
    assert other.measures[0].measure.bounds is None


def test_other_values_of_a_rate_are_refused(nobody):
    """By row, in memory and on engines; and bounds that say otherwise."""
    wrong = Happiness("decision * loan", rate=True)
    for table in (nobody, as_lazy(nobody), as_duckdb(nobody)):
        with refused(HappinessError, "a rate is 0 or 1", remedy="rate="):
            audit("approved", table, happiness=wrong, **ASKED)
    with refused(HappinessError, "a rate is 0 or 1", remedy="rate="):
        aggregate(nobody, y="approved", score=np.full((60, 2), 0.5), happiness=wrong, sensitive_features="sex",
                classes=[0, 1])  # fmt: skip
    with refused(HappinessError, "is a rate and has the bounds", remedy="leave"):
        Happiness("decision", rate=True, bounds=(0, 2))
    half = Happiness(lambda decision: 0.5 * decision, rate=True, name="half")
    with refused(HappinessError, "0.5", "a rate is 0 or 1"):
        audit("approved", nobody, happiness=half, **ASKED)


def test_a_lottery_is_no_rate():
    """Probabilities may lie between 0 and 1 for others, even if these people face no lottery; decisions are certain."""
    group, probabilities = np.repeat(["f", "m"], 50), np.eye(2)[np.tile([0, 1], 50)]
    for decided, exact in ((probabilities, False), (probabilities.argmax(axis=1), True)):
        asked = {"sensitive_features": group, "decisions": [0, 1], "happiness": "statistical_parity"}
        found = audit(decided, None, np.tile([0, 1], 50), **asked)
        assert ("exact" in found.measures[0].means["f"].method) == exact
        assert ("exact" in found.loss.method) == exact


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_a_policy_says_whether_it_draws():
    """One of certain decisions is audited exactly, on an engine too, and one with a lottery never."""
    rng = np.random.default_rng(1)
    score = rng.random(400)
    table = {"sex": np.tile(["f", "m"], 200), "y": (rng.random(400) < score).astype(int), "p": score}
    found = aggregate(table, y="y", score="p", happiness="statistical_parity", sensitive_features="sex", policy="label",
                    classes=[0, 1])  # fmt: skip
    asked = {"score": "p", "happiness": "statistical_parity", "sensitive_features": "sex"}
    for gap, draws in ((1.0, False), (0.01, True)):
        policy = solve(found, gap=gap, random_state=0)
        assert policy.is_randomized == draws
        for table_ in (table, as_lazy(table)):
            result = audit(policy, table_, "y", **asked)
            assert ("exact" in result.measures[0].means["f"].method) != draws


def test_files_remember_a_declared_rate():
    """An expression that is a comparison needs no word; one that was said to be a rate keeps it."""
    for happiness in (Happiness("decision", rate=True), Happiness("decision == 1"), Happiness("decision")):
        again = function_from_json(happiness.measure, function_to_json(happiness), {})
        assert again == happiness
    assert Expression("decision == 1").is_test
    assert not Expression("decision").is_test


def test_the_bounds_of_a_cost_matrix_are_used():
    """Costs of 1 and 100: the sample may lack the dear mistake, and the interval holds the truth all the same."""
    rng = np.random.default_rng(2)
    runs, covered = 200, 0
    costs = [[0.0, 1.0], [100.0, 0.0]]
    truth = 0.3 * 1.0 + 0.005 * 100.0
    group = np.tile(["f", "m"], 60)
    for _ in range(runs):
        mistake = rng.choice(3, 120, p=[0.695, 0.3, 0.005])
        y, decided = np.where(mistake == 2, 1, 0), np.where(mistake == 1, 1, 0)
        found = audit(
            decided,
            None,
            y,
            happiness="decision == 1",
            sensitive_features=group,
            decisions=[0, 1],
            loss=costs,
        )
        assert "betting" in found.loss.method
        covered += found.loss.low <= truth <= found.loss.high
    assert covered / runs >= 0.95


def test_a_loss_of_0_and_1_is_declared_so():
    """The error loss, a matrix of 0 and 1 and a comparison are exact; another function is not."""
    group, y, decided = np.tile(["f", "m"], 30), np.tile([0, 1, 1], 20), np.tile([1, 1], 30)
    asked = {"happiness": "decision == 1", "sensitive_features": group, "decisions": [0, 1]}
    losses = {"error": True, "decision != y": True, "abs(decision - y)": False}
    for loss, exact in losses.items():
        assert ("exact" in audit(decided, None, y, loss=loss, **asked).loss.method) == exact
    assert "exact" in audit(decided, None, y, loss=[[0, 1], [1, 0]], **asked).loss.method
    assert "exact" not in audit(decided, None, y, loss=[[0, 1], [5, 0]], **asked).loss.method
    change = compare(*(audit(d, None, y, **asked) for d in (decided, 1 - decided))).loss
    assert change.low < change.estimate < change.high
