"""Alternatives: the least gap at the baseline's loss, judged by other people, against naive programs and loops."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from strategies import examples

import felicific._fit.alternatives as module
from felicific import FairClassifier, aggregate, alternatives, audit, compare, frontier, load
from felicific._audit.result import Interval
from felicific._fit.alternatives import least_gap_at
from felicific._fit.candidates import Alternative
from felicific.datasets import synthetic_loans
from felicific.exceptions import ConstraintError, DataError, FittedRowsWarning, GroupError, HappinessError

YES = {"yes": "decision == 1"}
ASKED = {"happiness": YES, "sensitive_features": "g"}


def make_people(n=600, seed=0, groups=2):
    rng = np.random.default_rng(seed)
    g = rng.integers(0, groups, n)
    z = rng.normal(size=n) + 0.7 * (g == 1)
    score = 1.0 / (1.0 + np.exp(-1.4 * z))
    return pd.DataFrame(
        {
            "z": z,
            "other": z + rng.normal(size=n),
            "g": np.array(["f", "m", "x"], dtype=object)[g],
            "score": score,
            "worse": np.clip(score + 0.1 * rng.normal(size=n), 0.001, 0.999),
            "y": (rng.random(n) < score).astype(int),
            "w": rng.integers(1, 4, n),
        }
    )


def search(people, candidates=None, **settings):
    return alternatives(candidates or {"baseline": "score"}, people, "y", **ASKED | settings)


def numbers(result):
    """All that is measured, as one list."""
    rows = [row for row in result.rows if row.loss_change]
    ends = [change for row in rows for change in (*row.gap_changes.values(), row.loss_change)]
    gaps = [gap for row in rows for gap in row.gaps.values()]
    least = [result.least_gap] if result.least_gap else []
    return [*gaps, *(getattr(end, side) for end in [*ends, *least] for side in ("estimate", "low", "high"))]


# ---------------------------------------------------------------------------------------------------------
# The least gap at a loss


def naive_least(scores, y, group, values, widths, most, *, blind):
    """Least t such that every gap is at most t times its width, by a program over the different scores."""
    cuts, groups = np.unique(scores), np.unique(group)
    tables = 1 if blind else len(groups)
    n = tables * len(cuts)
    place = np.searchsorted(cuts, scores) + (0 if blind else np.searchsorted(groups, group) * len(cuts))
    rows, sides = [], []

    def add(row, side):
        rows.append(row)
        sides.append(side)

    loss = np.zeros(n + 1)  # of deciding 1 instead of 0
    np.add.at(loss, place, (1.0 - 2.0 * y) / len(y))
    add(loss, most - y.mean())
    for value, width in zip(values, widths, strict=True):
        means = []
        for name in groups:
            mine, row = group == name, np.zeros(n + 1)
            np.add.at(row, place[mine], (value[mine, 1] - value[mine, 0]) / mine.sum())
            means.append((row, value[mine, 0].mean()))
        for one, base in means:
            for other, level in means:
                row = one - other
                row[-1] = -width
                add(row, level - base)
    for table in range(tables):
        for s in range(len(cuts) - 1):
            row = np.zeros(n + 1)
            row[table * len(cuts) + s], row[table * len(cuts) + s + 1] = 1.0, -1.0
            add(row, 0.0)
    cost = np.zeros(n + 1)
    cost[-1] = 1.0
    found = linprog(cost, np.array(rows), np.array(sides), bounds=[(0, 1)] * n + [(0, None)])
    return found.fun if found.status == 0 else None


@examples
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 2), st.sampled_from([-0.05, 0.0, 0.02, 0.3]))
def test_the_least_gap_at_a_loss_is_that_of_a_naive_program(seed, blind, n_parts, more):
    """One program finds the least part of all widths at no more than a loss, or that no policy loses so little."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    scores, group = rng.integers(0, 9, n) / 8, np.arange(n) % int(rng.integers(2, 4))
    y, loan = rng.integers(0, 2, n), rng.integers(1, 6, n).astype(float)
    people = {"s": scores, "g": group, "y": y, "loan": loan}
    parts = {"yes": "decision == 1", "money": "decision * loan"}
    happiness = dict(list(parts.items())[:n_parts])
    sums = aggregate(people, score="s", y="y", sensitive_features="g", happiness=happiness).joined()
    values = [np.column_stack([np.zeros(n), unit]) for unit in (np.ones(n), loan)][:n_parts]
    widths = rng.integers(1, 5, n_parts) / 4.0 if n_parts > 1 else np.ones(1)
    most = sums.baseline.loss + more
    expected = naive_least(scores, y, group, values, widths, most, blind=blind)
    part, policy = least_gap_at(sums, widths, most, sees_group=not blind, salt="0")
    if expected is None:
        assert policy is None
        assert part > most
    else:
        assert policy is not None
        assert part == pytest.approx(expected, abs=1e-7)
        assert policy.loss <= most + 1e-8
        assert (policy.outcome.gaps <= part * widths + 1e-7).all()


def test_it_is_the_place_on_the_frontier():
    """With one measure it is the policy of that loss on the exact frontier."""
    people = make_people()
    sums = aggregate(people, score="score", y="y", sensitive_features="g", happiness=YES).joined()
    line = frontier(sums)
    for loss in np.linspace(line.loss[-1], line.loss[0], 7):
        gap, policy = least_gap_at(sums, np.ones(1), float(loss), sees_group=True, salt="0")
        assert gap == pytest.approx(line.position(loss=float(loss)), abs=1e-8)
        assert policy.loss == pytest.approx(line.at(loss=float(loss)).loss, abs=1e-8)


# ---------------------------------------------------------------------------------------------------------
# Judged by others


def test_rows_are_what_the_policies_do_to_those_who_judge(monkeypatch):
    """Gaps, losses and intervals are those of a loop over the half that judges, at the corrected confidence."""
    people, kept, made = make_people(900, groups=3), [], module.halves
    monkeypatch.setattr(module, "halves", lambda *given: kept.append(made(*given)) or kept[-1])
    found = search(people, {"baseline": "score", "b": "worse"}, loss_slack=0.05, confidence=0.9)
    (_, fitting), (_, judging) = kept[0]
    assert sorted([*fitting, *judging]) == list(range(len(people)))
    half = people.iloc[judging]
    before = audit((half["score"] > 0.5).astype(int).to_numpy(), half, "y", **ASKED)
    assert found.baseline.gaps == pytest.approx(before.gaps)
    for row, column in zip(found.rows, ("score", "worse"), strict=True):
        probabilities = row.policy.probabilities(half[column].to_numpy(), half["g"].to_numpy())
        means = {g: probabilities[(half["g"] == g).to_numpy(), 1].mean() for g in "fmx"}
        assert row.gap == pytest.approx(max(means.values()) - min(means.values()))
        error = np.mean([probabilities[i, 1 - label] for i, label in enumerate(half["y"])])
        assert row.loss_change.estimate == pytest.approx(error - before.loss.estimate)
        after = audit(row.policy, half, "y", score=column, **ASKED)
        change = compare(before, after, confidence=1 - 0.1 / 2)["yes"].gap
        assert (row.gap_change.low, row.gap_change.high) == pytest.approx((change.low, change.high))
        # On those who fit it loses no more than is allowed.
        fit = people.iloc[fitting]
        chances = row.policy.probabilities(fit[column].to_numpy(), fit["g"].to_numpy())[:, 1]
        lost, now = np.abs(chances - fit["y"]).mean(), ((fit["score"] > 0.5) != fit["y"]).mean()
        assert lost <= now + 0.05 + 1e-9


def test_halves_hold_half_of_every_group(monkeypatch):
    """Of every group one half fits and the other judges."""
    people, kept, made = make_people(997, groups=3), [], module.halves
    monkeypatch.setattr(module, "halves", lambda *given: kept.append(made(*given)) or kept[-1])
    search(people)
    for _, rows in kept[0]:
        counts = people.iloc[rows]["g"].value_counts()
        assert (abs(counts - people["g"].value_counts() / 2) <= 1).all()


def test_the_order_of_the_rows_does_not_matter():
    """Who judges depends on the contents of the rows, so nobody can shuffle until something is found."""
    people = make_people(500)
    people = pd.concat([people, people.head(60)], ignore_index=True)  # some people look alike
    mixed = people.sample(frac=1.0, random_state=3)
    assert numbers(search(mixed)) == pytest.approx(numbers(search(people)), rel=1e-9, abs=1e-12)
    bare = {"happiness": YES, "confidence": 0.9}
    one, other = (
        alternatives({"t": rows["score"].to_numpy()}, None, rows["y"], sensitive_features=rows["g"], **bare)
        for rows in (people, mixed)
    )
    assert numbers(one) == pytest.approx(numbers(other), rel=1e-9, abs=1e-12)


def test_weights_are_rows():
    """Weight 2 is the row twice and weight 0 the row absent."""
    people = make_people(300)
    twice = people.loc[people.index.repeat(people["w"])].reset_index(drop=True)
    weighted = alternatives({"t": "score"}, people, "y", sample_weight="w", **ASKED)
    listed = alternatives({"t": "score"}, twice, "y", **ASKED)
    assert numbers(weighted) == pytest.approx(numbers(listed), rel=1e-9)
    absent = people.assign(w=1)
    absent.loc[:40, ["w", "score"]] = 0, math.nan
    assert numbers(alternatives({"t": "score"}, absent, "y", sample_weight="w", **ASKED)) == pytest.approx(
        numbers(search(absent.iloc[41:]))
    )


def test_sampling_weights_and_clusters():
    """Whole clusters fit or judge; with sampling weights or clusters no bound is stated."""
    people = make_people(800)
    branch = np.arange(800) // 4
    found = search(people, cluster=branch)
    assert "clusters" in found.least_gap.note
    assert found.least_gap.low == 0.0
    assert found.judged % 4 == 0
    weighed = alternatives({"t": "score"}, people, "y", sample_weight="w", weight_kind="sampling", **ASKED)
    assert abs(weighed.judged - 400) <= 1
    assert "weighted" in " ".join(weighed.sentences())


def test_a_candidate_may_be_a_model_a_column_or_an_array():
    """A model, its probabilities as an array, as columns and as a Polars column are one candidate."""
    people = make_people(700)
    model = LogisticRegression().fit(people[["z", "other"]][:200], people["y"][:200])
    rest = people[200:].reset_index(drop=True)
    score = model.predict_proba(rest[["z", "other"]])
    table = rest.assign(p0=score[:, 0], p1=score[:, 1])
    ways = [model, score, score[:, 1], pd.Series(score[:, 1]), "p1", ["p0", "p1"], {0: "p0", 1: "p1"}]
    results = [numbers(search(table, {"baseline": way})) for way in ways]
    for result in results:
        assert result == pytest.approx(results[0], abs=1e-12)
    lazy = search(pl.from_pandas(table), {"baseline": "p1"})
    assert numbers(lazy) == pytest.approx(results[0], abs=1e-9)


def test_a_fair_classifier_is_taken_as_it_is(monkeypatch):
    """A FairClassifier is judged by its own probabilities, and is a baseline that is not solved anew."""
    people, kept, made = make_people(900), [], module.halves
    monkeypatch.setattr(module, "halves", lambda *given: kept.append(made(*given)) or kept[-1])
    model = LogisticRegression().fit(people[["z", "other"]][:150], people["y"][:150])
    fair = FairClassifier(
        FrozenEstimator(model), sensitive_features="g", happiness=YES, gap=0.05, random_state=0
    )
    fair.fit(people[150:400], people["y"][150:400])
    rest = people[400:].reset_index(drop=True)
    found = search(rest, {"baseline": model, "fair": fair})
    half = rest.iloc[kept[0][1][1]]
    probabilities = fair.predict_proba(half)[:, 1]
    apart = (
        probabilities[(half["g"] == "m").to_numpy()].mean()
        - probabilities[(half["g"] == "f").to_numpy()].mean()
    )
    assert found["fair"].gap == pytest.approx(abs(apart))
    assert found["fair"].policy is None
    assert found["baseline"].policy is not None
    back = search(rest, {"fair": fair, "model": model}, loss_slack=0.2)
    assert [row.name for row in back.rows] == ["model"]
    assert back.baseline.gap == pytest.approx(found["fair"].gap)
    assert math.isinf(back.least_gap.high)


def test_blind_policies_decide_alike():
    """Without the group, policies have one rule for all."""
    policy = search(make_people(900), loss_slack=0.05, sees_group=False).rows[0].policy
    assert not policy.sees_group
    assert (policy.q[0] == policy.q[1]).all()


def test_more_classes_and_a_loss_of_its_own():
    """With three classes, and a loss in money, the loss allowed is kept on those who fit."""
    rng = np.random.default_rng(1)
    n = 1500
    g, score = rng.integers(0, 2, n), rng.dirichlet([2, 2, 2], n)
    y = np.array([rng.choice(3, p=row) for row in score])
    cost = [[0.0, 5.0, 9.0], [2.0, 0.0, 3.0], [7.0, 4.0, 0.0]]
    happiness = {"top": "decision == 2"}
    found = alternatives(
        {"t": score}, None, y, happiness=happiness, sensitive_features=g, loss=cost, loss_slack=0.4
    )
    assert found.rows[0].policy.q.shape[2] == 3
    assert found.rows[0].policy.loss <= found.baseline.loss.estimate + 0.4 + 0.5


# ---------------------------------------------------------------------------------------------------------
# What is said


def change(low, high):
    return Interval((low + high) / 2, low, high, 100.0, "t")


@pytest.mark.parametrize(
    ("gaps", "loss", "found", "shown"),
    [
        ([(-0.2, -0.1)], (-0.1, 0.0), True, True),
        ([(-0.2, -0.1)], (0.01, 0.2), True, False),  # not shown to be more than the slack of 0.01
        ([(-0.2, -0.1)], (0.011, 0.2), False, False),
        ([(-0.2, 0.0)], (-0.1, 0.0), False, False),
        ([(-0.2, -0.1), (-0.2, 0.1)], (-0.1, 0.0), False, False),  # one of two gaps may have grown
        ([(-0.2, -0.1), (-0.3, -0.2)], (-0.1, 0.0), True, True),
    ],
)
def test_when_an_alternative_is_found(gaps, loss, found, shown):
    """Every gap has to be shown to be smaller, and the loss must not be shown to be more than is allowed."""
    names = [f"c{j}" for j in range(len(gaps))]
    changes = {name: change(*ends) for name, ends in zip(names, gaps, strict=True)}
    row = Alternative("a", None, dict.fromkeys(names, 0.1), changes, change(*loss), 0.01)
    assert (row.found, row.shown) == (found, shown)
    assert row.gap_change.high == max(high for _, high in gaps)


def test_the_best_is_the_most_surely_smaller():
    """Of those that were found the best is most surely smaller; one whose loss is shown comes before all others."""
    found = search(make_people(4000), {"baseline": "score", "b": "worse"}, loss_slack=0.06)
    assert found.found
    assert "Found: a policy that sees the score of" in str(found)
    made = {"a": (-0.3, -0.1, 0.3), "b": (-0.3, -0.2, 0.3), "c": (-0.1, -0.05, 0.06), "d": (-0.4, 0.1, 0.0)}
    rows = tuple(
        Alternative(name, None, {"yes": 0.1}, {"yes": change(low, high)}, change(-0.1, loss), 0.06)
        for name, (low, high, loss) in made.items()
    )
    assert replace(found, rows=rows).best.name == "c"
    without = replace(found, rows=(rows[0], rows[1], rows[3]))
    assert without.best.name == "b"
    assert "not shown to exceed the present loss plus 0.06, and may exceed it by up to 0.24" in str(without)
    assert replace(found, rows=rows[3:]).best is None


def test_none_was_found_is_no_proof():
    """Where groups are alike nothing is found, and that is not said to prove that there is nothing."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(12):
        n = 800
        score, g = rng.random(n), rng.integers(0, 2, n)
        y = (rng.random(n) < score).astype(int)
        result = alternatives({"t": score}, None, y, happiness=YES, sensitive_features=g)
        found += result.found
    assert found <= 2  # 98 % of 12 would be at most this many if each had probability 5 %
    assert result.sentences()[0].startswith("None was found")
    assert "does not say that there is none" in result.sentences()[-1]
    assert result.best is None


def test_a_candidate_that_cannot_lose_so_little_is_not_judged():
    """A score that says nothing cannot reach the baseline's loss; that is said, and widens no other's interval."""
    people = make_people(900).assign(noise=np.linspace(0.3, 0.7, 900))
    both, alone = search(people, {"baseline": "score", "bad": "noise"}), search(people)
    assert "loses so little" in both["bad"].note
    assert both["bad"].gap is both["bad"].gap_change is both["bad"].loss_change is None
    assert not both["bad"].found
    assert both["baseline"].gap_change.high == alone["baseline"].gap_change.high
    assert "'bad' was not judged" in str(both)
    with pytest.raises(KeyError):
        both["worse"]


def test_the_bound_is_uniform_over_the_maps():
    """With many people, nothing below the bound is left: the least gap at a larger loss, less the margins."""
    people = make_people(3000)
    people["w"] = 4000
    settings = {"sample_weight": "w", "weight_kind": "frequency", "confidence": 0.9}
    found = alternatives({"baseline": "score"}, people, "y", **ASKED | settings)
    sizes = 4000.0 * people["g"].value_counts().to_numpy()
    union = math.log(2 * 2 * 3 / 0.05)
    log = union + math.log(4096 + 3)
    delta = np.sqrt(log / (2 * sizes))
    total = sizes.sum()
    more = (sizes * delta).sum() / total + math.sqrt(union / (2 * total))
    sums = aggregate(people, score="score", y="y", sensitive_features="g", happiness=YES)
    line = frontier(sums)
    expected = line.position(loss=line.baseline.loss + more) - delta.sum()
    assert found.least_gap.low == pytest.approx(expected, abs=1e-4)
    assert 0 < found.least_gap.low < found.least_gap.estimate < found.least_gap.high
    assert "no policy that sees one of these scores has a gap below" in found.sentences()[-1]


def test_without_a_range_nothing_is_bounded():
    """A happiness or a loss whose range is not known is not bounded, and the sentence says how to mend it."""
    people = make_people(400)
    found = search(people, happiness="decision * z")
    assert "without bounds of 'decision * z'" in found.least_gap.note
    found = search(people, loss=lambda decision, y: np.abs(decision - y) * 2.0)
    assert "the loss" in found.least_gap.note


def test_plain_data():
    """JSON holds all of it, a dataframe every number, and a notebook shows hostile names as text."""
    people = make_people(900).assign(noise=np.linspace(0.3, 0.7, 900))
    found = search(people, {"<script>": "score", "bad": "noise"}, happiness="equalized_odds")
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["rows"][1]["loss_change"] is None
    assert content["rows"][0]["gap_changes"].keys() == found.rows[0].gap_changes.keys()
    frame = found.to_frame()
    assert len(frame) == 2 * len(found.baseline.measures)
    assert frame["gap_high"][0] == next(iter(found.rows[0].gap_changes.values())).high
    assert "<script>" not in found._repr_html_()
    assert "as a part" not in str(found)


def test_the_policy_found_can_be_used(tmp_path):
    """The policy of the best one is a policy like others: it is saved, read and applied."""
    found = search(make_people(3000), loss_slack=0.02)
    found.best.policy.save(tmp_path / "best.json")
    again = load(tmp_path / "best.json")
    assert np.array_equal(again.q, found.best.policy.q)


def test_several_gaps_shrink_together():
    """Several measures shrink in the proportions of the baseline's gaps; one that is closed already stays so."""
    data = synthetic_loans(3000)
    score = (data.X["yearly_salary"].rank() / 3001).to_numpy()
    happiness = {"yes": "decision == 1", "money": "decision * loan_requested"}
    found = alternatives(
        {"t": score}, data.X, data.y, happiness=happiness, sensitive_features="sex", loss_slack=0.01
    )
    asked = found.rows[0].policy.basis.allowed
    assert found.rows[0].policy.gaps["money"] <= asked["money"] + 1e-6
    assert found.rows[0].policy.gaps["yes"] <= asked["yes"] + 1e-9
    assert 0 < found.least_gap.estimate < 1
    nobody = alternatives(
        {"t": np.full(3000, 0.2) + score / 10},
        data.X,
        data.y,
        happiness=YES,
        sensitive_features="sex",
        loss_slack=0.01,
    )
    assert nobody.baseline.gap == 0
    assert not nobody.found


# ---------------------------------------------------------------------------------------------------------
# Bad input


CASES = {
    "no candidates": ({"candidates": {}}, DataError, "no candidates"),
    "a list": ({"candidates": ["score"]}, DataError, "list"),
    "a name that is none": ({"candidates": {3: "score"}}, DataError, "called 3"),
    "nothing": ({"candidates": {"a": None}}, DataError, "'a' is None"),
    "an unknown column": ({"candidates": {"a": "scores"}}, DataError, "'scores'"),
    "a wrong length": ({"candidates": {"a": np.full(7, 0.5)}}, DataError, "7 probabilities for 400 rows"),
    "no probabilities": ({"candidates": {"a": np.full(400, 1.5)}}, DataError, "row 0"),
    "text": ({"candidates": {"a": np.full(400, "x")}}, DataError, "holds no probabilities"),
    "no model": ({"candidates": {"a": object()}}, DataError, "holds no probabilities"),
    "an unfitted model": ({"candidates": {"a": LogisticRegression()}}, DataError, "not fitted"),
    "no labels": ({"y": None}, DataError, "no labels"),
    "labels of a wrong length": ({"y": np.zeros(3, dtype=int)}, DataError, "400"),
    "one class": ({"y": np.zeros(400, dtype=int)}, DataError, "one class only"),
    "one group": ({"sensitive_features": ["f"] * 400}, GroupError, "one group only"),
    "an unknown group column": ({"sensitive_features": "sex"}, DataError, "'sex'"),
    "a group of one": ({"sensitive_features": ["f"] * 399 + ["m"]}, GroupError, "'m' has 1 people"),
    "a negative slack": ({"loss_slack": -0.1}, ConstraintError, "loss_slack is -0.1"),
    "a slack that is none": ({"loss_slack": "5%"}, ConstraintError, "5%"),
    "a slack without end": ({"loss_slack": math.inf}, ConstraintError, "inf"),
    "a slack in per cent": ({"loss_slack": 5}, ConstraintError, "between 0 and 1"),
    "a confidence of 95": ({"confidence": 95}, DataError, "95"),
    "sight that is none": ({"sees_group": "no"}, DataError, "sees_group"),
    "an unknown happiness": ({"happiness": "parity"}, HappinessError, "parity"),
    "a happiness no decision changes": ({"happiness": "z + 1"}, HappinessError, "decision"),
    "unclear weights": ({"sample_weight": np.full(400, 0.5)}, DataError, "weight"),
    "a lazy table": ({"X": pl.LazyFrame({"z": [1.0]})}, DataError, "not in memory"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case, refuses):
    """Everything that cannot be searched is refused by name, with a remedy."""
    changed, kind, words = CASES[case]
    people = make_people(400)
    given = {"candidates": {"baseline": "score"}, "X": people, "y": "y", **ASKED} | changed
    with refuses(kind, words):
        alternatives(given.pop("candidates"), given.pop("X"), given.pop("y"), **given)


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_models_that_cannot_be_candidates():
    """A model without probabilities, one of other classes, and a lone policy are refused by name."""
    people = make_people(400)
    plain = RidgeClassifier().fit(people[["z", "other"]], people["y"])
    with pytest.raises(DataError, match=r"no predict_proba.*Calibrate"):
        search(people, {"a": plain})
    other = LogisticRegression().fit(people[["z", "other"]], np.where(people["y"], "yes", "no"))
    with pytest.raises(DataError, match="knows the classes"):
        search(people, {"a": other})
    model = LogisticRegression().fit(people[["z", "other"]], people["y"])
    fair = FairClassifier(
        FrozenEstimator(model), gap=0.0, sensitive_features="g", happiness=YES, random_state=0
    )
    fair.fit(people, people["y"])
    with pytest.raises(DataError, match="The only candidate, 'a', is a policy"):
        search(people, {"a": fair})
    strangers = people.assign(g=np.where(np.arange(400) % 2, "m", "new"))
    with pytest.raises(GroupError, match="new"):
        search(strangers, {"m": model, "a": fair})


def test_a_policy_that_was_fitted_on_these_rows_is_called_so():
    """Who judges must not have been fitted on: a warning says it, as an audit's does."""
    people = make_people()
    model = LogisticRegression().fit(people[["z"]], people["y"])
    settings = {"happiness": YES, "sensitive_features": "g", "gap": 0.05, "random_state": 0}
    fair = FairClassifier(FrozenEstimator(model), **settings).fit(people[["z", "g"]], people["y"])
    with pytest.warns(FittedRowsWarning, match="fitted on"):
        alternatives({"baseline": model, "fair": fair}, people[["z", "g"]], people["y"].to_numpy(), **ASKED)


def test_no_alternative_of_a_fraction():
    """Its gap is no straight line between policies, so the one program does not find the least."""
    with pytest.raises(ConstraintError, match="who is counted depends on the decision"):
        search(make_people(), happiness="precision_parity")


@pytest.mark.parametrize("happiness", ["decision", "statistical_parity"])
def test_changes_are_no_larger_than_they_can_be(happiness):
    """Of twelve people hardly anything is known: a rate's gap changes by at most 1, and so does an error rate."""
    rng = np.random.default_rng(1)
    score = np.round(rng.random(12), 2)
    found = alternatives(
        {"baseline": score}, {"sex": ["f", "m"] * 6}, (rng.random(12) < score).astype(int), happiness=happiness,
        sensitive_features="sex", confidence=0.999,
    )  # fmt: skip
    for row in found.rows:
        for change in (*row.gap_changes.values(), row.loss_change):
            assert -1.0 <= change.low <= change.high <= 1.0
