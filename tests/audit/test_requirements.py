"""What was asked of a policy, on the people of an audit: against loops over their rows, and audits of unions."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers import by, solved
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import (
    Budget,
    FairClassifier,
    Floor,
    Gap,
    Happiness,
    Policy,
    Ratio,
    WorseOff,
    audit,
    compare,
    load,
)

GOT, YES = {"got": "decision"}, {"got": "decision == 1"}
ROLES = {"score": "s", "y": "y", "sensitive_features": ["sex", "race"], "happiness": GOT}
ASKED = [
    Ratio("got", 0.8, between="sex"),
    Gap("got", 0.1, between="race", min_people=30),
    Floor("got", "baseline", groups=["f & A"]),
    Budget("got", at_most=0.6, at_least=0.1),
    WorseOff(0.1),
    WorseOff(0.15, groups=["m & A"]),
]


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["A", "B"], n)
    race[:8] = "C"
    s = np.round(np.clip(rng.beta(2, 2, n) + 0.1 * (sex == "m") + 0.06 * (race == "A"), 0.01, 0.99), 3)
    weight = rng.choice([0.5, 1.0, 2.5], n)
    return {"sex": sex, "race": race, "s": s, "y": (rng.random(n) < s).astype(int), "weight": weight}


def groups_of(table):
    return [f"{sex} & {race}" for sex, race in zip(table["sex"], table["race"], strict=True)]


def naive(policy, table, weight):
    """Every number that was asked about, by loops over people, in the order of ASKED."""
    groups = groups_of(table)
    probabilities = policy.probabilities(table["s"], np.array(groups, dtype=object))
    baseline = [float(score > 0.5) for score in table["s"]]
    rows = list(
        zip(
            table["sex"],
            table["race"],
            groups,
            probabilities[:, 1],
            probabilities[:, 0],
            baseline,
            weight,
            strict=True,
        )
    )

    def mean(value, of=lambda row: True):
        held = [row for row in rows if of(row)]
        return sum(row[6] * value(row) for row in held) / sum(row[6] for row in held)

    def got(row):
        return row[3]

    def loses(row):
        return row[5] * row[4]

    sexes = [mean(got, lambda row, one=one: row[0] == one) for one in "fm"]
    races = [mean(got, lambda row, one=one: row[1] == one) for one in "AB"]
    numbers = [
        min(sexes) / max(sexes),
        max(races) - min(races),
        mean(got, lambda row: row[2] == "f & A"),
        mean(got),
        mean(loses),
        mean(loses, lambda row: row[2] == "m & A"),
    ]
    floor = mean(lambda row: row[5], lambda row: row[2] == "f & A")
    sides = [(0.8, 2), (-1, 0.1), (floor, 2), (0.1, 0.6), (-1, 0.1), (-1, 0.15)]
    met = [low - 1e-9 <= one <= high + 1e-9 for one, (low, high) in zip(numbers, sides, strict=True)]
    return numbers, met


@pytest.fixture(scope="module")
def policy():
    return solved(people(600, 7), constraints=ASKED, random_state=0, **ROLES)


def asked_on(policy, table, **more):
    with by("large"):
        return audit(policy, table, **ROLES, baseline=None, **more)


@given(seed=st.integers(0, 10**6), n=st.integers(60, 300), weighted=st.booleans())
def test_every_number_is_a_loop_over_people(policy, seed, n, weighted):
    """In memory and of sums of an engine, of people alike or of unequal weight, after a way through a file."""
    table = people(n, seed)
    more = {"sample_weight": "weight", "weight_kind": "sampling"} if weighted else {}
    numbers, met = naive(policy, table, table["weight"] if weighted else np.ones(n))
    stored = Policy.from_json(policy.to_json())
    for rows in (
        asked_on(policy, table, **more).requirements,
        asked_on(stored, pl.DataFrame(table).lazy(), **more).requirements,
    ):
        # A floor at the baseline is that of the people who are looked at, so its number is another one.
        said = [
            re.sub(r"at least \S+ \(baseline\)", "at least the baseline's", words) for words in policy.reached
        ]
        assert [row.words for row in rows] == said
        assert [row.reached.estimate for row in rows] == pytest.approx(numbers, abs=1e-9)
        assert [row.met for row in rows] == met


def test_intervals_are_those_of_an_audit_of_the_unions(policy):
    """A gap between the races is that of an audit by race, a ratio that of one by sex, a mean that of everybody."""
    table = people(400, 3)
    probabilities = policy.probabilities(table["s"], np.array(groups_of(table), dtype=object))
    kept = np.flatnonzero(table["race"] != "C")
    some = {name: column[kept] for name, column in table.items()}
    asked = {"happiness": GOT, "decisions": [0, 1]}
    by_race = audit(probabilities[kept], some, sensitive_features="race", **asked)
    by_sex = audit(probabilities, table, sensitive_features="sex", **asked)
    by_group = audit(probabilities, table, sensitive_features=["sex", "race"], **asked)
    ratio, gap, floor, *_ = audit(policy, table, **ROLES).requirements
    assert gap.reached == by_race["got"].gap
    assert ratio.reached == by_sex.ratios["got"].smallest
    assert replace(floor.reached, note="") == by_group["got"].means["f & A"]


def test_on_the_fitted_people_everything_is_met(policy):
    """What was solved for holds where it was solved for, however tightly."""
    with pytest.warns(UserWarning, match="fitted on"):
        rows = audit(policy, people(600, 7), **ROLES).requirements
    assert [row.verdict for row in rows] == ["met"] * 6
    assert [row.reached.estimate for row in rows[1:3]] == pytest.approx([0.1, 0.6], abs=1e-12)


def test_every_output_says_it(policy):
    """Text, notebook, data, dataframe and page; a policy of which nothing is asked has no such table."""
    found = audit(policy, people(200, 5), **ROLES)
    words = "mean 'got' of every sex at least 0.8 of the highest"
    verdict = found.requirements[0].verdict
    line = next(line for line in str(found).splitlines() if words in line)
    assert "smallest ratio" in line
    assert line.endswith(verdict)
    assert "What was asked of the policy" in found._repr_html_()
    row = found.to_dict()["requirements"][0]
    assert (row["words"], row["verdict"], row["statistic"]) == (words, verdict, "ratio")
    json.dumps(found.to_dict(), allow_nan=False)
    frame = found.to_frame()
    assert frame[frame["what"] == f"required: {words}"]["verdict"].tolist() == [verdict]
    assert words in found.to_html().replace("&#39;", "'")
    free = audit("y", people(200, 5), happiness=GOT, sensitive_features="sex")
    assert free.requirements == ()
    assert "requirements" not in free.to_dict()


def test_a_floor_at_the_baseline_is_its_mean_of_these_people(policy):
    """The level that was fitted is of other people, so the baseline's mean of these counts, and is said."""
    table = people(300, 11)
    first = np.array(groups_of(table)) == "f & A"
    generous = np.where(first, 1, 0)
    row = audit(policy, table, **ROLES, baseline=generous).requirements[2]
    assert row.met is False
    assert "the baseline mean of these people is 1" in row.reached.note


def test_what_cannot_be_told_says_why(policy):
    """Groups of which nobody is there, and what was not measured."""
    table = people()
    women = {name: column[table["sex"] == "f"] for name, column in table.items()}
    ratio, _, _, _, _, men = audit(policy, women, **ROLES).requirements
    assert (ratio.verdict, men.verdict) == ("cannot be told", "cannot be told")
    assert "none of these people" in ratio.reached.note
    other = audit(policy, table, **(ROLES | {"happiness": {"other": "decision * 2"}})).requirements
    assert {row.verdict for row in other} == {"cannot be told"}
    assert "not measured" in other[0].reached.note
    json.dumps(audit(policy, women, **ROLES).to_dict(), allow_nan=False)


def test_a_fraction_between_unions():
    """Precision between the sexes, where a lottery decides who is counted, in memory and on an engine."""
    table = people(600, 2)
    roles = {**ROLES, "happiness": "precision_parity"}
    policy = solved(
        people(600, 1), constraints=[Gap("precision_parity", 0.01, between="sex")], random_state=0, **roles
    )
    probabilities = policy.probabilities(table["s"], np.array(groups_of(table), dtype=object))[:, 1]
    means = [
        (probabilities * table["y"])[table["sex"] == sex].sum() / probabilities[table["sex"] == sex].sum()
        for sex in ("f", "m")
    ]
    with by("large"):
        here, there = (audit(policy, one, **roles) for one in (table, pl.DataFrame(table).lazy()))
    for found in (here, there):
        assert found.requirements[0].reached.estimate == pytest.approx(abs(means[0] - means[1]), abs=1e-9)
        assert found.ratios_between("sex")["precision_parity"].smallest.estimate == pytest.approx(
            min(means) / max(means), abs=1e-9
        )
    for part in ("low", "high", "n"):
        one, other = (getattr(found.requirements[0].reached, part) for found in (here, there))
        assert other == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize("between", [None, "sex"])
def test_a_fraction_that_counts_nobody_cannot_be_told(between):
    """Where nobody of a group is approved, there is no precision to compare."""
    roles = {**ROLES, "sensitive_features": "sex", "happiness": "precision_parity"}
    asked = Gap("precision_parity", 0.5, between=between)
    policy = solved(people(600, 1), constraints=[asked], random_state=0, **roles)
    table = people(200, 2)
    table["s"] = np.where(table["sex"] == "f", 0.01, table["s"])
    for one in (table, pl.DataFrame(table).lazy()):
        (row,) = audit(policy, one, **roles).requirements
        assert row.verdict == "cannot be told"
        assert "counted" in row.reached.note


# ---------------------------------------------------------------------------------------------------------
# A classifier, and what only requirements speak of


@pytest.fixture(scope="module")
def fair():
    table = frame(people(6000, 7))
    model = FrozenEstimator(LogisticRegression().fit(table[["s"]], table["y"]))
    model.estimator.feature_names_in_ = np.array(["s"], dtype=object)
    worth = Happiness("decision * (1 + s)", name="worth", bounds=(0, 2))
    asked = [Floor(worth, 0.1), WorseOff(0.1), WorseOff(0.2, "got")]
    fair = FairClassifier(
        model,
        happiness=YES,
        sensitive_features="sex",
        gap=0.05,
        constraints=asked,
        policy="score",
        key="key",
        random_state=0,
    )
    return fair.fit(table, table["y"])


def frame(table, first=0):
    import pandas as pd

    return pd.DataFrame(table | {"key": np.arange(len(table["y"])) + first})


def test_who_loses_is_no_gap_no_ratio_and_no_promise(fair):
    """What only requirements speak of has group means, and nothing that compares groups; who loses is called so."""
    table = frame(people(400, 9), first=10**6)
    found = audit(fair, table, table["y"])
    assert [part.measure.name for part in found.measures] == ["got", "worth", "loses", "loses got"]
    assert list(found.gaps) == ["got"] == list(fair.certificate_.gaps)
    assert found.gap == found.gaps["got"]
    assert list(found.ratios) == ["got"]
    assert not found.ratios.refused
    assert found.to_dict()["measures"][2]["gap"] is None
    lines = found.to_frame()
    assert set(lines[lines["measure"] == "loses"]["what"]) == {
        "mean",
        "required: " + fair_words(fair, "loses"),
    }
    assert "loses: people who get less than from the baseline (share)" in str(found)
    assert "loses got: people who get less 'got' than from the baseline" in str(found)
    assert compare(found, found)["loses"].gap is None
    assert "nan" not in str(compare(found, found))
    now = LogisticRegression.predict(fair.estimator.estimator, table[["s"]])
    lost = (now * (1 - fair.predict_proba(table)[:, 1]))[table["sex"] == "m"].mean()
    assert found["loses"].means["m"].estimate == pytest.approx(lost, abs=1e-9)


def fair_words(fair, name):
    places = [measure.name for measure in fair.policy_.measures]
    return next(asked.words for asked in fair.policy_.basis.requirements if places[asked.j] == name)


def test_a_gap_asked_of_what_is_aside_is_shown():
    """A plain gap among the constraints is a gap that is tested, as that of gap= is."""
    table = frame(people(600, 7))
    model = FrozenEstimator(LogisticRegression().fit(table[["s"]].to_numpy(), table["y"]))
    fair = FairClassifier(model, happiness={"twice": "decision * 2"}, constraints=[Gap("statistical_parity", 0.1)],
                          random_state=0)  # fmt: skip
    X = table[["s"]].to_numpy()
    fair.fit(X, table["y"], sensitive_features=table["sex"])
    other = people(300, 1)
    found = audit(fair, other["s"][:, None], other["y"], sensitive_features=other["sex"])
    assert set(found.gaps) == {"twice", "selection rate"}
    assert [row.statistic for row in found.requirements] == ["gap"]
    part = found["selection rate"]
    assert found.requirements[0].reached == part.gap
    assert part.test.at_most == 0.1
    loose = audit(fair, other["s"][:, None], other["y"], sensitive_features=other["sex"], gap={"twice": 0.5})
    assert loose["twice"].test.at_most == 0.5
    assert loose["selection rate"].gap is None
    assert loose.requirements == found.requirements


def test_without_labels_what_looks_at_them_cannot_be_told():
    """An audit without labels still says what it can."""
    table = frame(people(600, 7))
    X = table[["s"]].to_numpy()
    model = FrozenEstimator(LogisticRegression().fit(X, table["y"]))
    deserved = Happiness("decision", among="y == 1", name="deserved")
    fair = FairClassifier(
        model, happiness=GOT, gap=0.1, constraints=[Floor(deserved, 0.2), WorseOff(0.1)], random_state=0
    )
    fair.fit(X, table["y"], sensitive_features=table["sex"])
    other = people(300, 1)
    rows = audit(fair, other["s"][:, None], sensitive_features=other["sex"]).requirements
    assert [row.met is None for row in rows] == [False, True, True, False]


def test_the_command_line(tmp_path):
    """A policy's file says what was asked, and an audit of other people on the command line whether they meet it."""
    from typer.testing import CliRunner

    from felicific.cli import app

    asked = ["--score", "s", "--label", "y", "--group", "sex", "--group", "race", "--happiness", "decision"]
    for name, seed in (("a", 7), ("b", 1)):
        frame(people(600, seed)).to_csv(tmp_path / f"{name}.csv", index=False)
    target = str(tmp_path / "policy.json")
    limits = ["--ratio", "0.8", "--between", "sex", "--worse-off", "0.02"]

    def run(*arguments):
        result = CliRunner().invoke(app, [*arguments])
        assert result.exit_code == 0, result.output
        return result.output

    said = run("fit", str(tmp_path / "a.csv"), *asked, *limits, "--out", target)
    assert "gap of 'loses'" not in said
    text = run("audit", str(tmp_path / "b.csv"), "--policy-file", target, *asked)
    rows = json.loads(run("audit", str(tmp_path / "b.csv"), "--policy-file", target, *asked, "--json"))[
        "requirements"
    ]
    table = people(600, 1)
    probabilities = load(target).probabilities(table["s"], np.array(groups_of(table), dtype=object))
    found = {row["what"]: row for row in rows}
    lost = ((table["s"] > 0.5) * probabilities[:, 0]).mean()
    means = [probabilities[table["sex"] == sex, 1].mean() for sex in ("f", "m")]
    assert found["share"]["estimate"] == pytest.approx(lost, abs=1e-9)
    assert found["share"]["verdict"] == ("met" if lost <= 0.02 else "not met")
    assert found["smallest ratio"]["estimate"] == pytest.approx(min(means) / max(means), abs=1e-9)
    for row in rows:
        assert any(row["words"] in line and line.endswith(row["verdict"]) for line in text.splitlines())


def test_where_nobody_at_all_is_counted_nothing_can_be_told():
    """A policy for precision that approves none of these people."""
    rng = np.random.default_rng(0)
    table = {"g": np.repeat(["a", "b"], 200), "s": rng.random(400).round(2)}
    table["y"] = (rng.random(400) < table["s"]).astype(int)
    roles = {"score": "s", "y": "y", "sensitive_features": "g", "happiness": "precision_parity"}
    policy = solved(table, gap=0.05, random_state=0, **roles)
    (row,) = audit(policy, table | {"s": np.full(400, 0.01)}, **roles).requirements
    assert (row.met, row.verdict) == (None, "cannot be told")
