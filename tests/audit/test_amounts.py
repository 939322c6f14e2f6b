"""Audits of amounts: group means by hand, distances by a double loop, on every engine, and what is refused."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from functions import ENGINES
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from felicific import Happiness, audit, compare, monitor
from felicific.exceptions import BatchWarning, DataError, HappinessError

N = 1200


@pytest.fixture(scope="module")
def table():
    """Hours of care: what was decided in two ways, what was needed, and who people are."""
    rng = np.random.default_rng(2)
    sex = rng.choice(["f", "m", "x"], N, p=[0.5, 0.4, 0.1])
    need = rng.gamma(4.0, 8.0, N)
    hours = np.round(0.6 * need + 10 + 6 * (sex == "m") + rng.normal(0, 3, N), 1)
    return {
        "sex": sex,
        "need": need,
        "hours": hours,
        "after": np.where(sex == "m", hours - 2.0, hours + rng.choice([0.0, 0.0, 1.0], N)),
        "children": rng.integers(0, 4, N),
        "w": rng.integers(1, 4, N).astype(float),
        "branch": rng.integers(0, 60, N),
    }


def frame(table):
    return pd.DataFrame(table)


ASKED = {"happiness": "decision", "sensitive_features": "sex"}

#: Decisions that are amounts, whatever they are.
ANY = (-math.inf, math.inf)

#: Happiness with what it is of one person.
HAPPINESS = {
    "decision": ("decision", lambda row: row["hours"]),
    "children": (lambda decision, x: decision * x["children"], lambda row: row["hours"] * row["children"]),
    "enough": ("decision >= need", lambda row: float(row["hours"] >= row["need"])),
    "short": (
        lambda decision, y: np.minimum(decision - y, 0),
        lambda row: min(row["hours"] - row["need"], 0),
    ),
    "branching": (lambda decision: 5.0 if decision > 30 else 0.0, lambda row: 5.0 * (row["hours"] > 30)),
}


def naive_means(table, value, weight=None):
    """Mean of every group by a loop over rows."""
    sums = {}
    for i in range(N):
        row = {name: column[i] for name, column in table.items()}
        w = 1.0 if weight is None else weight[i]
        total, mass = sums.get(row["sex"], (0.0, 0.0))
        sums[row["sex"]] = total + w * value(row), mass + w
    return {group: total / mass for group, (total, mass) in sums.items()}


def naive_distance(amounts, groups, weight=None):
    """The largest difference of shares above any amount, over all pairs of groups, by loops."""
    weight = np.ones(len(amounts)) if weight is None else weight
    names, largest = sorted(set(groups)), 0.0
    for t in sorted(set(amounts)):
        shares = [weight[(groups == z) & (amounts > t)].sum() / weight[groups == z].sum() for z in names]
        largest = max(largest, max(shares) - min(shares))
    return largest


@pytest.mark.parametrize("weighted", [False, True])
def test_group_means_by_hand(table, weighted):
    """Means, the gap, the loss and the distance are what loops over rows find."""
    weight = table["w"] if weighted else None
    asked = {name: one for name, (one, _) in HAPPINESS.items()} | {"whole": "distributional_parity"}
    found = audit(
        "hours", frame(table), "need", happiness=asked, sensitive_features="sex", sample_weight=weight
    )
    for name, (_, value) in HAPPINESS.items():
        naive = naive_means(table, value, weight)
        assert found.means[name] == pytest.approx(naive, rel=1e-12)
        assert found.gaps[name] == pytest.approx(max(naive.values()) - min(naive.values()), rel=1e-10)
    squares = (table["hours"] - table["need"]) ** 2
    assert found.loss.estimate == pytest.approx(np.average(squares, weights=weight), rel=1e-12)
    assert found.loss_name == "squared"
    assert f"its root, in the unit of the label, {math.sqrt(found.loss.estimate):.5g}" in str(found)
    exact = naive_distance(table["hours"], table["sex"], weight)
    assert found.gaps["whole"] == pytest.approx(exact, abs=1e-12)
    part = found["whole"]
    shares = {
        z: np.average(
            table["hours"][table["sex"] == z] > part.at,
            weights=None if weight is None else weight[table["sex"] == z],
        )
        for z in "fmx"
    }
    assert {z: one.estimate for z, one in part.means.items()} == pytest.approx(shares, abs=1e-12)
    assert max(shares.values()) - min(shares.values()) == pytest.approx(exact, abs=1e-12)
    assert part.gap.low <= exact <= part.gap.high


def test_parity_alone(table):
    """Distributional parity is one entry, with one gap; mean amounts stand beside it, and are not judged."""
    found = audit("hours", frame(table), happiness="distributional_parity", sensitive_features="sex", gap=0)
    assert (
        found.gap
        == found.gaps["distributional_parity"]
        == pytest.approx(naive_distance(table["hours"], table["sex"]), abs=1e-12)
    )
    assert list(found.gaps) == ["distributional_parity"]
    assert found.means["mean amount"]["f"] == pytest.approx(
        table["hours"][table["sex"] == "f"].mean(), rel=1e-12
    )
    assert found["distributional_parity"].test.verdict == "more"
    assert any("exactly 0" in note for note in found.notes)
    written = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(written)["measures"][1]["at"] == found["distributional_parity"].at
    for text in (str(found), repr(found), found._repr_html_(), found.to_html()):
        assert "furthest apart" in text
    assert "monitor" not in found.one_look
    assert len(found.to_frame()) == 3 + 3 + 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["plain", "frequency", "sampling", "cluster"])
@pytest.mark.usefixtures("large_samples")
def test_engines(table, engine, how, tmp_path, monkeypatch):
    """Every engine finds what memory finds, to twelve digits."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 350)
    monkeypatch.setattr("felicific._people.people.BATCH", 100)
    asked = {name: one for name, (one, _) in HAPPINESS.items() if name != "branching"}
    asked |= {"whole": "distributional_parity", "fraction": Happiness("children + 0", among="decision > 30")}
    options = {"happiness": asked, "sensitive_features": "sex", "gap": {"decision": 1, "whole": 0.1}}
    options |= {"baseline": "after"}
    if how in ("frequency", "sampling"):
        options |= {"sample_weight": "w", "weight_kind": how}
    if how == "cluster":
        options |= {"cluster": "branch"}
    exact = audit("hours", frame(table), "need", **options)
    found = audit("hours", ENGINES[engine](table, tmp_path), "need", **options)
    assert found.notes == exact.notes
    assert found["whole"].at == exact["whole"].at
    one, other = (pd.DataFrame(result._lines()) for result in (exact, found))
    numbers = ["n", "estimate", "low", "high", "bias", "at_most", "p_value", "p_exceeds"]
    assert (one.drop(columns=numbers).fillna("") == other.drop(columns=numbers).fillna("")).all().all()
    left, right = one[numbers].to_numpy(dtype=float), other[numbers].to_numpy(dtype=float)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)
    means = one["what"] == "mean"
    np.testing.assert_allclose(left[means, 1], right[means, 1], rtol=1e-12)


def test_engine_function_of_one_decision(table, tmp_path):
    """A function that cannot be an expression runs batch by batch, once for every amount."""

    def reward(decision, x):
        return (5.0 if decision > 30 else 0.0) * np.asarray(x["children"])

    with pytest.warns(BatchWarning):
        found = audit("hours", ENGINES["polars"](table, tmp_path), happiness=reward, sensitive_features="sex")
    naive = naive_means(table, lambda row: 5.0 * (row["hours"] > 30) * row["children"])
    assert found.means["reward"] == pytest.approx(naive, rel=1e-12)


def test_invariances(table):
    """The order of rows, weights against repeats, names of groups and units change nothing but themselves."""
    asked = {"happiness": ["decision", "distributional_parity"], "sensitive_features": "sex"}
    plain = frame(table)
    found = audit("hours", plain, "need", **asked)
    mixed = plain.sample(frac=1.0, random_state=1)
    assert audit("hours", mixed, "need", **asked).gaps == pytest.approx(found.gaps, rel=1e-12)
    named = plain.assign(sex=plain["sex"].map({"f": "b", "m": "a", "x": "c"}))
    assert audit("hours", named, "need", **asked).gaps == pytest.approx(found.gaps, rel=1e-12)
    thousand = plain.assign(hours=plain["hours"] * 1000.0)
    other = audit("hours", thousand, "need", **asked)
    assert other.gaps["decision"] == pytest.approx(1000.0 * found.gaps["decision"], rel=1e-12)
    assert other.gaps["distributional_parity"] == found.gaps["distributional_parity"]
    often = plain.loc[plain.index.repeat(plain["w"].astype(int))]
    repeated, weighted = (
        audit("hours", often, "need", **asked),
        audit("hours", plain, "need", sample_weight="w", **asked),
    )
    assert weighted.gaps == pytest.approx(repeated.gaps, rel=1e-12)
    assert weighted["distributional_parity"].gap.high == pytest.approx(
        repeated["distributional_parity"].gap.high, rel=1e-12
    )
    absent = pd.concat([plain.assign(w=1.0), plain.assign(hours=np.nan, w=0.0)])
    assert audit("hours", absent, "need", sample_weight="w", **asked).gaps == found.gaps


def test_what_is_taken_for_amounts(table):
    """Numbers are amounts where they cannot be classes or something only amounts have is asked for; a note says so."""
    plain = frame(table)
    whole, few = np.round(table["hours"]), np.round(table["hours"] / 20.0)
    for amounts, options in (
        (table["hours"], {}),
        (np.arange(N) % 21, {}),
        (few, {"happiness": "distributional_parity"}),
        (few.astype(int), {"loss": "absolute", "y": "need"}),
    ):
        found = audit(amounts, plain, **(ASKED | options))
        assert "audited as amounts" in found.notes[0]
        assert "decisions=[...]" in found.notes[0]
    for said in (ANY, (-100.0, 300.0)):
        assert not any("audited as" in note for note in audit(few, plain, decisions=said, **ASKED).notes)
    classes = audit(few, plain, **ASKED)
    assert classes.persons.amounts is None
    assert f"{len(np.unique(few))} different whole numbers" in classes.notes[0]
    assert audit(whole, plain, decisions=sorted({*whole}), **ASKED).persons.amounts is None
    assert audit(few, plain, decisions=ANY, **ASKED).means["decision"] == pytest.approx(
        classes.means["decision"], rel=1e-12
    )
    words = np.array([f"level {level:.0f}" for level in few])
    assert (
        audit(words, plain, happiness="decision == 'level 1'", sensitive_features="sex").persons.amounts
        is None
    )


def test_scores_are_not_amounts(table):
    """Fractions between 0 and 1 beside labels of two classes look like scores, and are refused unless said."""
    scores, truth = table["need"] / table["need"].max(), (table["need"] > 30).astype(int)
    with refused(DataError, "fractions", remedy="decisions=(low, high)"):
        audit(scores, frame(table), truth, **ASKED)
    assert audit(scores, frame(table), truth, decisions=ANY, **ASKED).persons.amounts is not None
    assert audit(scores, frame(table), **ASKED).persons.amounts is not None  # rates, say


def test_bounds_of_amounts(table):
    """Amounts that are known to lie between two numbers have distribution-free intervals, and others are refused."""
    found = audit("hours", frame(table), decisions=(-10, 200), **ASKED)
    assert "betting" in found["decision"].means["f"].method
    assert found["decision"].measure.bounds == (-10.0, 200.0)
    row = int(np.argmax(table["hours"] > 60))
    with refused(DataError, f"row {row} ", "between 0 and 60", remedy="decisions=(low, high)"):
        audit("hours", frame(table), decisions=(0, 60), **ASKED)
    for wrong in ((60, 0), (0, math.inf), (math.nan, 3)):
        with refused(DataError, "not a range", remedy="(low, high)"):
            audit("hours", frame(table), decisions=wrong, **ASKED)


def test_regressor(table):
    """A regressor is audited by what it predicts, on the columns that it was trained on."""
    plain = frame(table)
    model = LinearRegression().fit(plain[["hours", "children"]], plain["need"])
    found = audit(model, plain, "need", **ASKED)
    same = audit(model.predict(plain[["hours", "children"]]), plain, "need", decisions=ANY, **ASKED)
    assert found.to_dict() == same.to_dict()
    assert found.loss.estimate == pytest.approx(
        ((model.predict(plain[["hours", "children"]]) - table["need"]) ** 2).mean()
    )


class Told(RegressorMixin, BaseEstimator):
    """What audits ask of a fair regressor."""

    happiness, loss, gap, sensitive_features_, constraints = (
        "distributional_parity",
        "absolute",
        0.1,
        "sex",
        (),
    )
    missing_labels = key = None

    def amounts_of(self, X, sensitive_features=None):
        return X["after"]

    def predict(self, X):
        raise AssertionError("the hook is asked")

    def _without_policy(self, X):
        return X["hours"]

    def baseline_of(self, X):
        return None

    def _shares_fitted(self, X):
        return 0.0, 0.0


def test_fair_regressor(table):
    """An estimator that tells amounts is audited by these, with what it was told, beside what its model predicts."""
    found = audit(Told(), frame(table), "need")
    assert found.gap == pytest.approx(naive_distance(table["after"], table["sex"]), abs=1e-12)
    assert found.loss.estimate == pytest.approx(np.abs(table["after"] - table["need"]).mean(), rel=1e-12)
    assert found["distributional_parity"].test.at_most == 0.1
    assert audit(Told(), frame(table), "need", happiness="decision").loss_name == "absolute"


def test_compare(table):
    """Who gets less and who more than before is counted by group; changes are those of the same people."""
    asked = {"happiness": ["decision", "distributional_parity"], "sensitive_features": "sex"}
    before, after = (audit(name, frame(table), "need", **asked) for name in ("hours", "after"))
    change = compare(before, after)
    part = change["decision"]
    for z in "fmx":
        moved = (table["after"] - table["hours"])[table["sex"] == z]
        assert part.means[z].estimate == pytest.approx(moved.mean(), abs=1e-12)
        assert part.means[z].low <= moved.mean() <= part.means[z].high
        assert part.loses[z].estimate == pytest.approx((moved < -1e-9).mean(), abs=1e-12)
        assert part.gains[z].estimate == pytest.approx((moved > 1e-9).mean(), abs=1e-12)
    assert part.loses["m"].estimate == 1.0
    whole = change["distributional_parity"].gap
    exact = naive_distance(table["after"], table["sex"]) - naive_distance(table["hours"], table["sex"])
    assert whole.estimate == pytest.approx(exact, abs=1e-12)
    assert whole.low < exact < whole.high
    losses = (table["after"] - table["need"]) ** 2 - (table["hours"] - table["need"]) ** 2
    assert change.loss.estimate == pytest.approx(losses.mean(), rel=1e-9)
    for text in (str(change), repr(change), change._repr_html_()):
        assert "gets less than before" in text
    assert "gets_less_than_before" in change.to_dict()["measures"][0]
    assert (change.to_frame()["what"] == "gets more than before").sum() == 3


def test_compare_nothing_is_not_known_to_stay(table):
    """Of amounts that do not change here, it is not known that they change for nobody; of what is none, it is."""
    asked = {"happiness": {"hours": "decision", "age": "children + 0"}, "sensitive_features": "sex"}
    same = audit("hours", frame(table), **asked)
    change = compare(same, same)
    assert change["hours"].means["f"].low < 0 < change["hours"].means["f"].high
    assert (change["age"].means["f"].low, change["age"].means["f"].high) == (0.0, 0.0)
    constant = [audit(np.full(N, one), frame(table), decisions=ANY, **ASKED) for one in (10.0, 12.5)]
    moved = compare(*constant)["decision"].means["f"]
    assert moved.estimate == 2.5
    assert moved.low <= 2.5 <= moved.high


def test_compare_refuses(table):
    """Other people, and amounts beside classes, are not compared."""
    plain, few = frame(table), np.round(table["hours"] / 20.0)
    one = audit("hours", plain, **ASKED)
    with refused(DataError, "the same people"):
        compare(one, audit("hours", plain.assign(sex=plain["sex"][::-1].to_numpy()), **ASKED))
    with refused(DataError, "of amounts"):
        compare(
            audit(few, plain, decisions=ANY, **ASKED), audit(few, plain, decisions=sorted({*few}), **ASKED)
        )
    with refused(DataError, "measures"):
        compare(one, audit("hours", plain, **(ASKED | {"happiness": "distributional_parity"})))


def test_unknown_groups_and_one_group(table):
    """Groups that are not listed are shown and not compared; of one group there is no distance."""
    plain = frame(table)
    asked = {"happiness": ["decision", "distributional_parity"], "sensitive_features": "sex"}
    found = audit("hours", plain, groups=sorted({*table["sex"]} - {"x"}), **asked)
    known = table["sex"] != "x"
    exact = naive_distance(table["hours"][known], table["sex"][known])
    assert found.gaps["distributional_parity"] == pytest.approx(exact, abs=1e-12)
    assert "not compared" in found["distributional_parity"].means["x"].note
    with pytest.warns(UserWarning, match="one group only"):
        alone = audit("hours", plain[known & (table["sex"] == "f")], gap=0.1, **asked)
    part = alone["distributional_parity"]
    assert math.isnan(part.gap.estimate)
    assert part.test.verdict == "undecided"
    str(alone), alone.to_html(), alone.to_dict()


BAD = np.arange(N) + 0.5


def spoiled(row, value, dtype=float):
    amounts = BAD.astype(dtype)
    amounts[row] = value
    return amounts


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        (spoiled(7, np.inf), ("decision of row 7 is inf",)),
        (spoiled(9, -np.inf), ("decision of row 9 is -inf",)),
        (spoiled(3, np.nan), ("decision is missing in 1 rows, first in row 3",)),
        (spoiled(4, "12,5", object), ("decision of row 4 is '12,5'",)),
        (spoiled(4, None, object), ("first in row 4",)),
        (np.array(["much", "little"] * (N // 2)), ("decision of row 0 is 'much'", "no number")),
        (np.array([True, False] * (N // 2)), ("decision of row 0 is True", "no number")),
        (BAD[:-1], (f"{N - 1} decisions for {N} rows",)),
        (np.stack([BAD, BAD], axis=1), (f"shape ({N}, 2)",)),
        (np.empty(0), ("no decisions",)),
    ],
)
def test_bad_amounts(table, amounts, words):
    """What is no finite number for every row is refused, with its value and its row."""
    with refused(DataError, *words):
        audit(amounts, frame(table), decisions=ANY, **ASKED)


def test_bad_labels_and_settings(table):
    """Labels that are no numbers, and what only classes have, are refused by name."""
    plain = frame(table)
    with refused(DataError, "label of row 2 is inf"):
        audit("hours", plain, np.where(np.arange(N) == 2, np.inf, table["need"]), **ASKED)
    with refused(DataError, "label of row 0 is 'a'", "no number"):
        audit("hours", plain, np.array(["a", "b"] * (N // 2)), **ASKED)
    gone = np.where(np.arange(N) < 5, np.nan, table["need"])
    found = audit("hours", plain, gone, **ASKED)
    assert found.loss is None
    assert any("5 rows" in note for note in found.notes)
    with refused(DataError, "label is missing in 5 rows"):
        audit("hours", plain, gone, loss="squared", **ASKED)
    with refused(DataError, "looks at the label", remedy="Pass y"):
        audit("hours", plain, loss="absolute", **ASKED)
    with refused(DataError, "missing_labels="):
        audit("hours", plain, gone, missing_labels="at_random", **ASKED)
    with refused(DataError, "not among"):
        audit("hours", plain, decisions=[1.5, 2.5], **ASKED)
    with refused(DataError, "'error'", remedy="squared"):
        audit("hours", plain, "need", loss="error", **ASKED)
    with refused(HappinessError, "statistical_parity", remedy="distributional_parity"):
        audit("hours", plain, happiness="statistical_parity", sensitive_features="sex")
    with refused(HappinessError, "No happiness"):
        audit("hours", plain, sensitive_features="sex")
    none = audit("hours", plain, happiness=lambda decision: 0.0 * decision, sensitive_features="sex")
    assert any(note.startswith("No amount changes") for note in none.notes)
    with refused(HappinessError, "both called"):
        audit("hours", plain, happiness=["distributional_parity"] * 2, sensitive_features="sex")
    with refused(DataError, "fractions", remedy="not monitored"):
        monitor("hours", plain, **ASKED, gap=1.0)


def test_hostile_names(table):
    """Groups with markup in their names do no harm on any page."""
    name = "<script>alert(1)</script>"
    plain = frame(table).replace({"sex": {"m": name}})
    found = audit("hours", plain, **(ASKED | {"happiness": "distributional_parity"}))
    assert name in found["distributional_parity"].remark
    for page in (found._repr_html_(), found.to_html()):
        assert name not in page
