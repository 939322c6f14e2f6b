"""Ratios of an audit: against loops over rows; of some attributes, with people left out, wherever the rows are."""

import json
import math
import re

import numpy as np
import pytest
from functions import ENGINES, as_pandas, people
from helpers import solved
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from felicific import FairClassifier, Happiness, audit, compare
from felicific._statistics.gaps import limits_to_highest, smallest_limits
from felicific.exceptions import ConstraintError

HAPPINESS = [
    Happiness(lambda decision: decision == 2, name="best", rate=True),
    Happiness(lambda decision, x: decision * x["loan"], name="loan", unit="$"),
    Happiness(lambda decision: decision > 0, among=lambda x: x["hours"] > 40, name="some", rate=True),
]


@pytest.fixture(scope="module")
def table():
    table = people(3000)
    rng = np.random.default_rng(5)
    decided = np.where(rng.random(3000) < 0.6, table["y"], rng.integers(0, 3, 3000))
    race = rng.choice(np.array(["a", "b", "c & d"], dtype=object), 3000, p=[0.6, 0.37, 0.03])
    sex = table["sex"].copy()
    sex[rng.random(3000) < 0.05] = "?"
    return table | {"decided": decided, "race": race, "gender": sex, "branch": rng.integers(0, 90, 3000)}


@pytest.fixture(params=["memory", *ENGINES])
def lay(request, tmp_path):
    make = ENGINES.get(request.param, lambda table, folder: as_pandas(table))
    return lambda table: make(table, tmp_path)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Several batches, so that parts are combined."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 700)
    monkeypatch.setattr("felicific._people.people.BATCH", 300)


def measured(rows, named=("sex", "race"), **more):
    """An audit by names of columns."""
    named = list(named) if isinstance(named, tuple) else named
    return audit("decided", rows, happiness=HAPPINESS, sensitive_features=named, **more)


def counted(table, name, value):
    """Who is counted of those with this value, and what each of them gets, in loops."""
    decided, inside = table["decided"], {"some": table["hours"] > 40}.get(name, np.full(3000, True))
    worth = {"best": decided == 2, "loan": decided * table["loan"], "some": decided > 0}[name]
    return [float(worth[i]) for i in range(3000) if inside[i] and value(i)]


def assert_same(found, expected, rel=1e-9):
    """Ratios agree, name by name."""
    assert list(found) == list(expected)
    for one, other in zip(found.values(), expected.values(), strict=True):
        assert [row.group for row in one.rows] == [row.group for row in other.rows]
        pairs = [(one.smallest, other.smallest, ("estimate", "low", "high", "n"))]
        rows = (*zip(one.rows, other.rows, strict=True),)
        pairs += [(mine, theirs, ("people", "mean", "ratio", "low", "high")) for mine, theirs in rows]
        for mine, theirs, names in pairs:
            assert [getattr(mine, name) for name in names] == pytest.approx(
                [getattr(theirs, name) for name in names], rel=rel
            )
        assert (one.lowest, one.highest, one.verdict) == (other.lowest, other.highest, other.verdict)


def test_ratios_against_loops(table, lay):
    """Numbers of people, means and ratios are those of loops over the rows; limits those of the statistics."""
    found = measured(lay(table)).ratios_between("race", min_people=0.05)
    assert (found.between, found.min_people, len(found)) == ("race", 0.05, 3)
    for name in ("best", "loan", "some"):
        part, values = found[name], [counted(table, name, lambda i, r=r: table["race"][i] == r) for r in "ab"]
        means = [math.fsum(value) / len(value) for value in values]
        assert [row.group for row in part.rows] == ["a", "b"]
        assert [row.people for row in part.rows] == [len(value) for value in values]
        assert [row.mean for row in part.rows] == pytest.approx(means, rel=1e-12)
        assert [row.ratio for row in part.rows] == pytest.approx([m / max(means) for m in means], rel=1e-12)
        assert part.smallest.estimate == pytest.approx(min(means) / max(means), rel=1e-12)
        assert (part.lowest, part.highest) == ("ab"[np.argmin(means)], "ab"[np.argmax(means)])
        (left,) = part.left_out
        alone = counted(table, name, lambda i: table["race"][i] == "c & d")
        assert (left.group, left.people) == ("c & d", len(alone))
        assert left.mean == pytest.approx(math.fsum(alone) / len(alone), rel=1e-12)


def test_limits_are_those_of_the_statistics(table):
    """Rows and the smallest ratio have the limits of their sample, rates by scores and others by logarithms."""
    found = measured(as_pandas(table), "race")
    for j, (name, rate) in enumerate({"best": True, "loan": False, "some": True}.items()):
        sample = found.persons.sample.take(j)
        sample = type(sample)(sample.n, sample.mean + found.persons.origin[j], sample.sd, sample.skewness)
        low, high = limits_to_highest(sample, 0.05, rate=rate)
        assert [(row.low, row.high) for row in found.ratios[name].rows] == list(zip(low, high, strict=True))
        ends = found.ratios[name].smallest
        assert (ends.low, ends.high) == smallest_limits(sample, 0.05, rate=rate)


@pytest.mark.parametrize("count", [{}, {"sample_weight": "w"}, {"cluster": "branch"}, "sampling"])
def test_between_an_attribute_is_the_audit_of_that_column(table, lay, count):
    """Of sex and race, the ratios between sexes are those of an audit by sex, weights and clusters included."""
    if count == "sampling":
        count = {"sample_weight": "w", "weight_kind": "sampling"}
    rows = lay(table)
    alone = measured(rows, "race", **count).ratios
    assert_same(measured(rows, **count).ratios_between("race"), alone)
    assert_same(measured(as_pandas(table), **count).ratios_between("race"), alone)
    both = measured(rows, **count)
    assert_same(both.ratios_between(["race", "sex"]), both.ratios)


def test_frequencies_are_rows_repeated(table):
    """Weight 2 is the row twice."""
    times = table["w"].astype(int)
    repeated = {name: np.repeat(column, times) for name, column in table.items()}
    weighted = measured(as_pandas(table), sample_weight="w", weight_kind="frequency")
    assert_same(weighted.ratios, measured(as_pandas(repeated)).ratios)


@pytest.mark.parametrize(
    "count", [{}, {"cluster": "branch"}, {"sample_weight": "loan", "weight_kind": "sampling"}]
)
def test_unknown_groups_are_not_compared_by_gaps_and_ratios(table, lay, count):
    """Gaps and ratios are those of the audit without these people, also where clusters hold several groups."""
    found = measured(lay(table), "gender", groups=["F", "M"], gap=0, **count)
    held = np.flatnonzero(table["gender"] != "?")
    rows = as_pandas({name: column[held] for name, column in table.items()})
    without = measured(rows, "gender", gap=0, **count)
    assert found.groups == ("?", *without.groups)
    assert_same(found.ratios, without.ratios)
    for part, other in zip(found.measures, without.measures, strict=True):
        assert (part.gap.low, part.gap.high) == pytest.approx((other.gap.low, other.gap.high), rel=1e-9)
        assert part.bias == pytest.approx(other.bias, rel=1e-9)
        assert part.test.p_value == pytest.approx(other.test.p_value, rel=1e-6, abs=1e-9)
        assert "not compared" in part.means["?"].note
    assert [*found.left_out["best"]] == ["?"]
    assert any("not in groups=" in note for note in found.notes)


def test_comparisons_leave_the_unknown_out(table):
    """The change of the gap is that of the people whose group is known."""
    rows = as_pandas(table)
    asked = {"happiness": HAPPINESS[:1], "sensitive_features": "gender", "decisions": [0, 1, 2]}
    held = rows[rows["gender"] != "?"]
    found = compare(*(audit(name, rows, groups=["F", "M"], **asked) for name in ("decided", "y")))
    expected = compare(*(audit(name, held, **asked) for name in ("decided", "y")))
    mine, other = found["best"].gap, expected["best"].gap
    assert (mine.estimate, mine.low, mine.high) == pytest.approx((other.estimate, other.low, other.high))
    assert set(found["best"].means) == {"F", "M", "?"}


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_a_fitted_classifier_knows_its_attributes(table):
    """The columns that ``fit`` named can be compared by, and probabilities that are drawn are no rate."""
    rows = as_pandas(table)
    x = rows[["loan", "hours", "sex", "race"]].assign(loan=rows["loan"] / 1e4)
    label = (rows["y"] > 0).astype(int)
    model = make_pipeline(FunctionTransformer(_numbers), LogisticRegression())
    fair = FairClassifier(model, happiness="statistical_parity", sensitive_features=["sex", "race"], gap=0.02)
    found = audit(fair.fit(x, label), x, label).ratios_between("race", min_people=0.05)
    chance = fair.predict_proba(x)[:, 1]
    means = [chance[(rows["race"] == race).to_numpy()].mean() for race in "ab"]
    part = found["selection rate"]
    assert [row.mean for row in part.rows] == pytest.approx(means, rel=1e-9)
    assert ("delta" in part.smallest.method) == fair.policy_.is_randomized


def _numbers(x):
    return x[["loan", "hours"]]


def test_positions_stand_for_names(table):
    """Arrays have no names: their attributes are called by position."""
    both = np.column_stack([table["sex"], table["race"]])
    found = measured(as_pandas(table), both)
    assert_same(found.ratios_between(1), measured(as_pandas(table), "race").ratios)


@pytest.mark.parametrize("draw", [False, True])
def test_what_a_lottery_lets_expect_is_no_rate(draw):
    """Probabilities are means of any kind: the interval is that of the logarithm."""
    probabilities = np.random.default_rng(0).random(200)
    decided = (
        np.column_stack([1 - probabilities, probabilities]) if draw else (probabilities > 0.5).astype(int)
    )
    found = audit(
        decided,
        happiness={"yes": "decision == 1"},
        sensitive_features=["f", "m"] * 100,
        decisions=[0, 1],
    )
    assert ("score" in found.ratios["yes"].smallest.method) != draw


def test_a_mean_that_can_be_negative_has_no_ratio():
    """By its bounds, or by a value that some decision has for somebody; the others are given."""
    rows = {"sex": ["f", "m"] * 30, "yes": [0, 1, 1, 1] * 15}
    happiness = {
        "profit": lambda decision: decision - 0.25,
        "bounded": Happiness(lambda decision: decision, bounds=(-1, 1)),
        "fine": lambda decision: decision,
    }
    found = audit("yes", rows, happiness=happiness, sensitive_features="sex")
    assert list(found.ratios) == ["fine"]
    for name in ("profit", "bounded"):
        with pytest.raises(ConstraintError, match="can be negative"):
            found.ratios[name]
        assert name in str(found.ratios)
    with pytest.raises(KeyError):
        found.ratios["misspelt"]
    alone = audit("yes", rows, happiness={"profit": happiness["profit"]}, sensitive_features="sex")
    assert not alone.ratios
    with pytest.raises(ConstraintError, match="gap"):
        alone.with_ratios()


def test_nobody_gets_anything():
    """There is no ratio of nothing, and an interval of none where a mean may be 0."""
    rows = {"sex": ["f", "m"] * 30, "no": [0] * 60, "rare": [0] * 59 + [1]}
    asked = {"happiness": "decision", "sensitive_features": "sex", "decisions": [0, 1]}
    with pytest.raises(ConstraintError, match="0 in every group"):
        audit("no", rows, **asked).ratios["decision"]
    money = asked | {"happiness": {"decision": lambda decision: 5.0 * decision}}
    part = audit("rare", rows, **money).ratios["decision"]
    assert (part.rows[0].ratio, part.rows[0].low, part.rows[0].high) == (0.0, 0.0, math.inf)
    assert "reaches 0" in part.rows[0].note
    assert part.verdict == "undecided"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"between": "colour"}, ConstraintError, "attributes of the groups are 'sex', 'race'"),
        ({"between": ["sex", "sex"]}, ConstraintError, "once"),
        ({"min_people": 5000}, ConstraintError, "5,000 people"),
        ({"between": "race", "min_people": 0.5}, ConstraintError, "1,500 people"),
        ({"min_people": -1}, ConstraintError, "min_people"),
        ({"min_people": "many"}, ConstraintError, "min_people"),
    ],
)
def test_what_cannot_be_compared_is_refused(table, options, error, words):
    """By name, with a remedy."""
    with pytest.raises(error, match=words):
        measured(as_pandas(table)).ratios_between(**options)["best"]


def test_a_number_of_people_is_of_those_who_were_seen(table):
    """Sampling weights make nobody out of nothing; a share is one of those they stand for."""
    rows = as_pandas(table).assign(heavy=np.where(table["race"] == "c & d", 1000.0, 1.0))
    found = measured(rows, "race", sample_weight="heavy", weight_kind="sampling")
    assert [row.group for row in found.ratios_between(min_people=200)["best"].left_out] == ["c & d"]
    assert [row.group for row in found.ratios_between(min_people=0.015)["best"].left_out] == ["b"]


@pytest.mark.parametrize("size", [0.1, 0.7, 1.1e5])
def test_nothing_is_exactly_nothing(size):
    """A group that gets nothing has the ratio 0, whatever the sums are relative to."""
    got = Happiness(lambda decision: (decision > 0) * size, name="got")
    found = audit(np.array([0, 1, 2] * 333), happiness=got, sensitive_features=["a", "b", "c"] * 333)
    assert found.persons.origin[0] == size
    first = found.ratios["got"].rows[0]
    assert (first.mean, first.ratio) == (0.0, 0.0)


def test_notes_leave_the_unknown_out(table):
    """That nothing is to be repaired is said of the groups that are known, of decisions and of a policy."""
    rows = as_pandas(table).assign(yes=np.array([0, 1] * 1500), even=["f", "f", "m", "m"] * 750, p=0.4)
    rows.loc[::50, "even"] = "?"
    asked = {
        "happiness": {"got": "decision == 1"},
        "sensitive_features": "even",
        "decisions": [0, 1],
        "gap": 0.03,
    }
    found = audit("yes", rows, groups=["f", "m"], **asked)
    assert found["got"].means["?"].estimate == 0.0
    assert any(note.startswith("Nothing to repair") for note in found.notes)
    policy = solved(
        rows[rows["even"] != "?"].assign(truth=rows["yes"]),
        gap=0.0,
        score="p",
        y="truth",
        sensitive_features="even",
        happiness={"got": "decision == 1"},
        predicted="yes",
        policy="label",
        sees_group=False,
    )
    told = audit(policy, rows, groups=["f", "m"], predicted="yes", **asked | {"decisions": None})
    assert any(note.startswith("Nothing to repair") for note in told.notes)


@pytest.mark.parametrize(
    ("hits", "verdict", "words"),
    [
        ((100, 400), "less", "not met on these rows, .* shown not to hold"),
        ((380, 400), "at least", "met on these rows, .* shown to hold"),
        ((310, 400), "undecided", "not met on these rows, .* neither shown nor refuted"),
    ],
)
def test_four_fifths_in_words(hits, verdict, words):
    """The rule on these rows, and what is shown of people like them."""
    yes = np.concatenate([np.arange(500) < hit for hit in hits]).astype(int)
    found = audit(
        yes,
        happiness={"got": "decision == 1"},
        sensitive_features=np.repeat(["f", "m"], 500),
        decisions=[0, 1],
    ).ratios
    assert found["got"].verdict == verdict
    assert words.split(",")[0] in str(found)
    assert re.search(words, found["got"].four_fifths(0.95))


def test_no_rule_for_what_nobody_wants(table):
    """Four fifths of the refusals is no rule: such a measure has ratios and no such sentence."""
    found = audit(
        "decided", as_pandas(table), happiness="statistical_parity", sensitive_features="sex"
    ).ratios
    said = ["Four-fifths" in " ".join(part.remarks(0.95)) for part in found.values()]
    assert said == [part.measure.wanted for part in found.values()]
    assert sorted(said) == [False, False, True]


def test_an_audit_tells_the_ratios_that_it_was_asked_for(table):
    """In its text, its data, its dataframe and its notebook page; without asking it says nothing of them."""
    found = measured(as_pandas(table).assign(race=lambda x: x["race"].replace("a", "<b>")))
    assert "Four-fifths" not in str(found)
    assert "ratios" not in found.to_dict()
    told = found.with_ratios("sex", ["sex", "race"], min_people=100)
    assert [ratios.between for ratios in told.shown_ratios] == ["sex", ["sex", "race"]]
    assert str(found.ratios_between("sex", min_people=100)) in str(told)
    content = json.loads(json.dumps(told.to_dict(), allow_nan=False))["ratios"]
    assert content[0]["between"] == "sex"
    assert content[1]["measures"][0]["left_out"][0]["people"] < 100
    assert content[0]["measures"][0]["smallest"]["estimate"] == told.shown_ratios[0]["best"].smallest.estimate
    frame = told.to_frame()
    rows = frame[frame["what"] == "ratio between sex"]
    assert rows["estimate"].tolist() == [
        row.ratio for part in told.shown_ratios[0].values() for row in part.rows
    ]
    assert len(told.shown_ratios[0].to_frame()) == 3 * (2 + 1)
    page = told._repr_html_()
    assert "Four-fifths" in page
    assert "<b>" not in page
    assert found.with_ratios().shown_ratios[0].between is None
