"""Fractions with everything else that can be asked: every pair against means that are counted person by person."""

import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import solved, traced
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import (
    FairClassifier,
    Floor,
    Gap,
    Happiness,
    Ratio,
    Score,
    WorseOff,
    aggregate,
    alternatives,
    audit,
    load,
    solve,
)
from felicific.exceptions import ConstraintError

#: Happiness, its name, the decision that counts, what a person counted is worth, and a gap to ask for.
FRACTIONS = {
    "precision": ("precision", "precision", 1, lambda t: 1.0 * (t["y"] == 1), 0.02),
    "negative": ("npv", "negative predictive value", 0, lambda t: 1.0 * (t["y"] == 0), 0.02),
    "dollars": (
        {"dollars": Happiness("decision * loan", among="decision == 1", bounds=(0, 8000))},
        "dollars", 1, lambda t: t["loan"], 100.0,
    ),
}  # fmt: skip
SOME = Score(bins=10)
CHOSEN = Happiness("decision", name="chosen")


def people(seed=0, n=700, missing=False):
    """People of two attributes; a score means less for one sex."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n).astype(object), rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1])
    score = np.round(rng.beta(np.where(sex == "f", 2, 3), 2.5 + (race == "b")), 2)
    y = (rng.random(n) < score ** np.where(sex == "f", 1.5, 1.0)).astype(int)
    if missing:
        sex[rng.random(n) < 0.05] = None
    loan = rng.integers(1, 9, n) * 1000.0
    return {"sex": sex, "race": race.astype(object), "score": score, "y": y, "loan": loan, "id": np.arange(n)}


class Asked:
    """One fraction about some people, with the naive means of a policy's own probabilities."""

    def __init__(self, kind, table=None):
        self.kind = kind
        self.happiness, self.name, self.counts, self.worth, self.width = FRACTIONS[kind]
        self.table = people() if table is None else table

    @property
    def roles(self):
        return {
            "score": "score",
            "y": "y",
            "sensitive_features": ["sex", "race"],
            "happiness": self.happiness,
        }

    def solve(self, *constraints, table=None, **more):
        told = {"policy": SOME, "random_state": 0} | self.roles | more
        return solved(self.table if table is None else table, constraints=constraints, **told)

    def probabilities(self, policy, **more):
        t = self.table
        parts = [np.where(pd.isna(t[name]), "unknown", t[name]) for name in policy.attributes]
        group = np.array([" & ".join(values) for values in zip(*parts, strict=True)], dtype=object)
        x = pd.DataFrame({name: t[name] for name in ("loan",)})
        return policy.probabilities(t["score"], group, x if policy.sees_x else None, **more)[:, self.counts]

    def means(self, probabilities, who):
        """Numerator by denominator of everybody of each kind, person by person."""
        top, bottom = {}, {}
        for kind, chance, worth in zip(who, probabilities, self.worth(self.table), strict=True):
            if kind is not None:
                top[kind] = top.get(kind, 0.0) + chance * worth
                bottom[kind] = bottom.get(kind, 0.0) + chance
        return {kind: top[kind] / bottom[kind] if bottom[kind] else np.nan for kind in sorted(top)}

    def by(self, policy, attribute, **more):
        return np.array(list(self.means(self.probabilities(policy, **more), self.table[attribute]).values()))


def between_gap(asked, tmp_path):
    policy = asked.solve(Gap(asked.name, asked.width, between="sex"))
    gap = np.ptp(asked.by(policy, "sex"))
    assert gap <= asked.width * (1 + 1e-6)
    assert next(iter(policy.reached.values())) == pytest.approx(gap, rel=1e-9)


def between_ratio(asked, tmp_path):
    policy = asked.solve(Ratio(asked.name, 0.97, between="race"))
    found = asked.by(policy, "race")
    assert found.min() / found.max() >= 0.97 - 1e-6
    assert next(iter(policy.reached.values())) == pytest.approx(found.min() / found.max(), rel=1e-9)


def small_groups(asked, tmp_path):
    policy = asked.solve(Gap(asked.name, asked.width, between="race", min_people=0.2))
    assert np.ptp(asked.by(policy, "race")[:2]) <= asked.width * (1 + 1e-6)
    (left_out,) = policy.not_constrained.values()
    assert list(left_out) == ["c"]


def a_floor_beside(asked, tmp_path):
    table = asked.table
    counted = (table["sex"] == "f") & ((table["score"] > 0.5) == asked.counts)
    baseline = asked.worth(table)[counted].mean()
    policy = asked.solve(
        Gap(asked.name, 4 * asked.width), Floor(asked.name, "baseline", ["f"]), sensitive_features="sex"
    )
    found = asked.by(policy, "sex")
    assert found[0] >= baseline * (1 - 1e-6)
    assert np.ptp(found) <= 4 * asked.width * (1 + 1e-6)


def an_unknown_group(asked, tmp_path):
    asked = type(asked)(asked.kind, people(missing=True))
    filled = asked.table | {"sex": np.where(pd.isna(asked.table["sex"]), "unknown", asked.table["sex"])}
    gap = Gap(asked.name, asked.width, groups=["f", "m"])
    policy = asked.solve(gap, table=filled, sensitive_features="sex")
    found = asked.by(policy, "sex")
    assert len(found) == 2
    assert policy.gaps[asked.name] == pytest.approx(np.ptp(found), rel=1e-9)
    assert policy.gaps[asked.name] <= asked.width * (1 + 1e-6)
    assert next(iter(policy.expected_gaps())) == asked.name
    assert policy.means[asked.name]["unknown"] > 0


def costs_of_changes(asked, tmp_path):
    losses = []
    for cost in (0.0, 0.1, "auto"):
        policy = asked.solve(Gap(asked.name, asked.width, between="sex"), change_cost=cost)
        assert np.ptp(asked.by(policy, "sex")) <= asked.width * (1 + 1e-6)
        losses.append(policy.loss + 0.1 * np.average(policy.outcome.changed, weights=policy.mass.sum(axis=1)))
    assert losses[1] <= losses[0] + 1e-4


def worse_off(asked, tmp_path):
    policy = asked.solve(Gap(asked.name, asked.width, between="sex"), WorseOff(0.02, CHOSEN))
    yes, t = policy.probabilities(asked.table["score"], groups_of(asked.table))[:, 1], asked.table
    assert np.mean((t["score"] > 0.5) * (1 - yes)) <= 0.02 + 1e-9
    assert np.ptp(asked.by(policy, "sex")) <= asked.width * (1 + 1e-6)
    with pytest.raises(ConstraintError, match="Nobody can lose"):
        asked.solve(WorseOff(0.02))


def individual(asked, tmp_path):
    asked = type(asked)(asked.kind, people(1, 120 if asked.kind == "negative" else 200))
    ratio = [Ratio(asked.name, 0.98, between="sex")] if asked.kind != "negative" else []  # that takes long
    for requirement in (Gap(asked.name, asked.width, between="sex"), *ratio):
        policy = asked.solve(requirement, policy="individual", change_cost=0.02)
        found = asked.by(policy, "sex")
        assert next(iter(policy.reached.values())) == pytest.approx(
            np.ptp(found) if isinstance(requirement, Gap) else found.min() / found.max(), abs=1e-9
        )


def blind_individual(asked, tmp_path):
    asked = type(asked)(asked.kind, people(1, 200))
    belief = np.where(asked.table["sex"] == "f", 0.8, 0.2)
    chances = {"group_proba": {"f": belief, "m": 1 - belief}}
    width, roles = 5 * asked.width, {"sensitive_features": "sex", "sees_group": False}
    policy = asked.solve(gap=width, policy="individual", **chances, **roles)
    found = asked.by(policy, "sex", group_proba=np.column_stack([belief, 1 - belief]))
    assert np.ptp(found) <= width * (1 + 1e-4)
    assert policy.gaps[asked.name] == pytest.approx(np.ptp(found), abs=1e-9 * max(found))


def gaps_to_expect(asked, tmp_path):
    """By the delta method: among those who are counted, the lottery included, by the page's own formula."""
    policy = asked.solve(gap=asked.width, sensitive_features="sex")
    probabilities, worth, var, n = asked.probabilities(policy), asked.worth(asked.table), [], []
    means = asked.by(policy, "sex")
    for z, mean in zip("fm", means, strict=True):
        mine = asked.table["sex"] == z
        n.append(probabilities[mine].sum())
        var.append((probabilities[mine] * (worth[mine] - mean) ** 2).sum() / n[-1])
    var, n = np.array(var), np.array(n)
    likely = (n * var + 2 * (n * var).sum() / n.sum()) / (n + 2)
    error, gap = math.sqrt((2 * likely / n).sum()), abs(means[0] - means[1])
    draws = np.abs(gap + error * np.random.default_rng(0).standard_normal(200_000))
    assert policy.expected_gaps()[asked.name] == pytest.approx(draws.mean(), rel=0.01)


def along_a_frontier(asked, tmp_path):
    for requirement in (Gap(asked.name, asked.width, between="sex"), Ratio(asked.name, 0.9, between="sex")):
        line = traced(
            asked.table, constraints=[requirement], policy=SOME, random_state=0, change_cost=0.02, **asked.roles
        )  # fmt: skip
        for policy, tau in list(zip(line.policies, line.tau, strict=True))[:-1:7]:
            found = asked.by(policy, "sex")
            if isinstance(requirement, Gap):
                assert np.ptp(found) == pytest.approx(tau, abs=1e-6 * found.max())
            else:
                assert found.min() / found.max() >= tau - 1e-6
        assert (np.diff(line.value) <= 2e-4).all()


def files(asked, tmp_path):
    sums = aggregate(asked.table, policy=SOME, **asked.roles)
    sums.save(tmp_path / "sums.json")
    requirement = Gap(asked.name, asked.width, between="sex")
    policy = solve(load(tmp_path / "sums.json"), constraints=[requirement])
    policy.save(tmp_path / "policy.json")
    again = load(tmp_path / "policy.json")
    assert again.reached == policy.reached
    assert np.ptp(asked.by(again, "sex")) <= asked.width * (1 + 1e-6)
    told = {"score": "score", "sensitive_features": ["sex", "race"], "key": "id"}
    frame = pd.DataFrame(asked.table)
    assert again.apply(frame, **told)["decision"].tolist() == policy.apply(frame, **told)["decision"].tolist()
    assert again.expected_gaps() == policy.expected_gaps()


def engines(asked, tmp_path):
    frame = pd.DataFrame(asked.table)
    requirement = Gap(asked.name, asked.width, between="sex")
    here = asked.solve(requirement)
    for table in (pl.from_pandas(frame).lazy(), duckdb.from_df(frame)):
        there = asked.solve(requirement, table=table)
        assert there.loss == pytest.approx(here.loss, abs=1e-9)
        assert np.ptp(asked.by(there, "sex")) <= asked.width * (1 + 1e-6)


def audits(asked, tmp_path):
    policy = asked.solve(Gap(asked.name, asked.width, between="sex"))
    found = audit(
        policy, asked.table, "y", score="score", sensitive_features=["sex", "race"], happiness=asked.happiness
    ).ratios_between("sex")[asked.name]  # fmt: skip
    means = asked.by(policy, "sex")
    assert [row.mean for row in found.rows] == pytest.approx(means.tolist(), rel=1e-9)
    assert found.smallest.estimate == pytest.approx(means.min() / means.max(), rel=1e-9)


def classifiers(asked, tmp_path):
    """Fitted, stated three times, moved to new people (exactly where nothing looks at the label), and stored."""
    X, t = pd.DataFrame({k: asked.table[k] for k in ("score", "sex", "race", "loan")}), asked.table
    model = LogisticRegression().fit(X[["score"]], t["y"])
    fair = FairClassifier(
        FrozenEstimator(model), happiness=asked.happiness, sensitive_features=["sex", "race"], policy=SOME,
        constraints=[Gap(asked.name, asked.width, between="sex")], random_state=0,
    ).fit(X, t["y"])  # fmt: skip
    for point, outcome in fair.impact_.items():
        probabilities = {
            "baseline": 1.0 * (fair.estimator_.predict(X[["score"]]) == asked.counts),
            "proposed": fair.predict_proba(X)[:, asked.counts],
        }.get(point)
        if probabilities is not None:
            naive = asked.means(probabilities, groups_of(t))
            assert outcome.means[:, 0] == pytest.approx(
                [naive[z] for z in fair.groups_], rel=1e-9, nan_ok=True
            )
    assert np.isnan(fair.impact_["proposed"].loses[:, 0]).all()
    assert any(asked.name in text for text in fair.policy_.impact())
    other = type(asked)(asked.kind, people(5, 500))
    fresh = pd.DataFrame({k: other.table[k] for k in X})
    moved = fair.recalibrate(fresh)
    assert next(iter(moved.policy_.reached.values())) <= asked.width * (1 + 1e-6)
    assert set(moved.policy_.expected_gaps()) == set(fair.expected_gaps_)
    if asked.kind == "dollars":
        naive = other.means(moved.predict_proba(fresh)[:, 1], other.table["sex"])
        assert abs(naive["f"] - naive["m"]) <= asked.width * (1 + 1e-6)


def refusals(asked, tmp_path):
    both = [Gap(asked.name, asked.width, between=name) for name in ("sex", "race")]
    with pytest.raises(ConstraintError, match="only one such level can be searched for"):
        asked.solve(*both)
    candidates = {"baseline": asked.table["score"], "other": asked.table["score"] ** 2}
    with pytest.raises(ConstraintError, match="no alternative is searched for"):
        alternatives(
            candidates, pd.DataFrame(asked.table), asked.table["y"], happiness=asked.happiness,
            sensitive_features="sex",
        )  # fmt: skip


def groups_of(table):
    return np.array([f"{s} & {r}" for s, r in zip(table["sex"], table["race"], strict=True)], dtype=object)


TOGETHER = [
    between_gap, between_ratio, small_groups, a_floor_beside, an_unknown_group, costs_of_changes, worse_off, individual,
    blind_individual, gaps_to_expect, along_a_frontier, files, engines, audits, classifiers, refusals,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", FRACTIONS)
@pytest.mark.parametrize("together", TOGETHER, ids=lambda one: one.__name__)
def test_fractions_together_with(together, kind, tmp_path):
    """Every pair holds on the people themselves, or is refused by name."""
    asked = Asked(kind)
    together(asked, tmp_path)
