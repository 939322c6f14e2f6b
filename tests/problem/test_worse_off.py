"""WorseOff: who gets less than from the baseline, against a loop over rows; through every door."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import solved, traced
from hypothesis import given
from hypothesis import strategies as st
from naive import DASK, LAZY, MEMORY, as_dask, as_pandas, cases
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from strategies import examples

from felicific import (
    Budget,
    FairClassifier,
    Floor,
    Happiness,
    Policy,
    Score,
    WorseOff,
    aggregate,
    audit,
    frontier,
    load,
    solve,
)
from felicific._program.aggregates import Aggregates
from felicific.exceptions import (
    CertificateError,
    ConstraintError,
    HappinessError,
    InfeasibleError,
    PolicyFileError,
)


def people(n=400, seed=0):
    """People of two groups, one of whom has higher scores."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    s = rng.normal(size=n) + 0.9 * g
    p = 1 / (1 + np.exp(-s))
    return as_pandas(
        {
            "s": s, "g": np.array(["f", "m"], dtype=object)[g], "loan": rng.integers(1, 40, n) / 4,
            "y": (rng.random(n) < p).astype(int), "p0": 1 - p, "p1": p, "now": rng.integers(0, 2, n),
        }
    )  # fmt: skip


COLUMNS = {"score": {0: "p0", 1: "p1"}, "y": "y", "sensitive_features": "g"}
ASKED = COLUMNS | {"happiness": {"got": "decision * loan"}}


def lost(probabilities, now):
    """Chance of each person to be refused, of those whom the baseline approves."""
    return probabilities[:, 0] * (np.asarray(now) == 1)


def by_group(numbers, table):
    return {g: float(numbers[(table["g"] == g).to_numpy()].mean()) for g in "fm"}


# ---------------------------------------------------------------------------------------------------------
# Who loses


def naive_loses(case, row, decision):
    """Whether a decision gives one person less of something than the baseline's does."""
    now = case.classes[case.now(row)]
    return any(
        part.counts(row)
        and part.value(row, now) - part.value(row, decision) > 1e-12 * abs(part.value(row, now))
        for part in case.parts
    )


@examples
@given(cases(), st.sampled_from([*MEMORY, *LAZY, *DASK]), st.sampled_from(["label", "soft-label"]))
def test_who_loses_is_a_loop_over_rows_everywhere(case, place, policy):
    """The measure counts, in memory and on every engine, whom each decision gives less of some measure."""
    with tempfile.TemporaryDirectory() as folder:
        if place in MEMORY:
            table = MEMORY[place](case.columns)
        else:
            table = as_dask(case.columns) if place in DASK else LAZY[place](case.columns, Path(folder))
        found = aggregate(table, **case.asked, policy=policy).with_losses(WorseOff())
    j = [measure.name for measure in found.measures].index("loses")
    measure = found.measures[j]
    assert (measure.bounds, measure.unit, measure.wanted, measure.aside) == (
        (0, 1),
        "share",
        False,
        True,
    )
    value = (found.value + (found.origin * found.among)[:, :, None, :])[..., j]
    for z, s, d in np.ndindex(*value.shape):
        wanted, _ = case.total(
            case.groups[z], lambda row, d=d: naive_loses(case, row, case.classes[d]), s, policy
        )
        assert value[z, s, d] == pytest.approx(wanted, abs=1e-9 * found.total)
    assert found.baseline.means[:, j] == pytest.approx(0.0, abs=1e-12)


def test_only_what_people_want_can_be_lost():
    """Of a criterion, who is decided unfavourably less often loses nothing; three classes have one best one."""
    rng, n = np.random.default_rng(2), 300
    score = rng.dirichlet([1, 1, 1], n)
    table = as_pandas({f"p{k}": score[:, k] for k in range(3)} | {
        "y": rng.integers(0, 3, n), "g": np.array(["f", "m"], dtype=object)[rng.integers(0, 2, n)],
    })  # fmt: skip
    asked = {"score": ["p0", "p1", "p2"], "y": "y", "sensitive_features": "g"}
    for criterion, best in (("statistical_parity", 1), ("equalized_odds", 1), ("equal_opportunity", 2)):
        others = [k for k in range(3) if k != best]
        about = asked | {"decisions": [*others, best], "happiness": criterion}
        found = aggregate(table, **about, policy="label").with_losses(WorseOff())
        value = (found.value + (found.origin * found.among)[:, :, None, :])[..., -1].sum(axis=0)
        own = found.mass.sum(axis=0)
        if criterion == "equal_opportunity":
            own = np.bincount(score.argmax(axis=1)[table["y"] == best], minlength=3)
        wanted = np.zeros((3, 3))
        wanted[best, others] = own[best]
        assert np.allclose(value, wanted), criterion


def test_parts_of_sites_add():
    """Sums of two sites with who loses are those of all; a file holds them; without it they say so."""
    table = people()
    asked = ASKED | {"groups": ["f", "m"]}
    whole = aggregate(table, **asked)
    both = aggregate(table[:150], **asked) + Aggregates.from_json(aggregate(table[150:], **asked).to_json())
    one, two = (solve(sums, gap=1.0, constraints=[WorseOff(0.02)], random_state=0) for sums in (whole, both))
    assert one.loss == pytest.approx(two.loss, abs=1e-9)
    assert one.means["loses"] == pytest.approx(two.means["loses"], abs=1e-9)
    with pytest.raises(ConstraintError, match="Sum up with a baseline, and with what somebody may lose"):
        solve(whole.without("loses"), gap=1.0, constraints=[WorseOff(0.02)])
    old = json.loads(one.to_json())
    assert [measure["aside"] for measure in old["measures"]] == [False, True]


def test_a_gap_and_a_frontier_leave_it_alone():
    """One number for all gaps, the gap of a policy and a frontier of sums do not speak of who loses."""
    sums, limit = aggregate(people(), **ASKED), [WorseOff(0.99)]
    policy = solve(sums, gap=1.0, constraints=limit, random_state=0)
    assert policy.basis.allowed == {"got": 1.0}
    assert policy.gap == policy.gaps["got"]
    line = frontier(sums, constraints=limit)
    assert np.isfinite(line.ray).tolist() == [True, False]
    assert len(line) == len(frontier(aggregate(people(), **ASKED)))


# ---------------------------------------------------------------------------------------------------------
# Words and conflicts


def test_words():
    """Requirements read as people say them, in prices and in conflicts."""
    sums = aggregate(people(), **ASKED)
    asked = [WorseOff(0.02), WorseOff(0.005, groups=["f"]), WorseOff(0.1, "got")]
    assert [*solve(sums, gap=3.0, constraints=asked, random_state=0).prices] == [
        "got",
        "at most 2 % of the people get less than from the baseline",
        "at most 0.5 % of group 'f' get less than from the baseline",
        "at most 10 % of the people get less 'got' than from the baseline",
    ]
    assert str(WorseOff(0.02)) == "at most 2 % of the people get less than from the baseline"


def test_a_conflict_is_irreducible_and_in_words():
    """Who conflicts is named, and nobody else: a budget below the baseline's cannot be kept if nobody loses."""
    sums = aggregate(people(), **ASKED)
    mean = float((sums.counted[:, 0] / sums.counted[:, 0].sum()) @ sums.baseline.means[:, 0])
    asked = [WorseOff(0), Budget("got", at_most=mean / 2), Floor("got", 0.1)]
    with pytest.raises(InfeasibleError) as caught:
        solve(sums, gap=None, constraints=asked)
    assert len(caught.value.conflict) == 2
    assert caught.value.conflict[0] == "at most 0 % of the people get less than from the baseline"
    assert "'got' of all people together" in caught.value.conflict[1]


@pytest.mark.parametrize("kind", ["score", "label", "soft-label"])
def test_levelling_up_only(kind):
    """With WorseOff(0) nobody's chances are worse than under the baseline, person by person."""
    table = people()
    policy = solved(table, **ASKED, policy=kind, gap=0.5, constraints=[WorseOff(0)], random_state=0)
    probabilities = policy.probabilities(
        table[["p0", "p1"]] if kind != "label" else (table["p1"] > 0.5).astype(int), table["g"]
    )
    assert lost(probabilities, table["p1"] > 0.5).max() <= 1e-9
    assert policy.means["loses"] == pytest.approx({"f": 0.0, "m": 0.0}, abs=1e-9)


def test_nobody_can_lose_who_has_nothing():
    """Where the baseline gives everybody the least, no decision makes anybody worse off: right, and no error."""
    table = people()
    table["none"] = 0
    policy = solved(table, **ASKED, baseline="none", gap=1.0, constraints=[WorseOff(0)], random_state=0)
    assert policy.means["loses"] == {"f": 0.0, "m": 0.0}


# ---------------------------------------------------------------------------------------------------------
# Doors

MODEL = FrozenEstimator(LogisticRegression().fit(people(600, 9)[["s"]], people(600, 9)["y"]))


def classifier(**changes):
    settings = {"happiness": {"got": "decision * loan"}, "gap": 0.5, "constraints": [WorseOff(0.03)]}
    return FairClassifier(MODEL, sensitive_features="g", random_state=0, **(settings | changes))


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
@pytest.mark.parametrize("blind", [False, True])
def test_fits_recalibrations_and_files(kind, blind):
    """What is said of who is worse off happens, of every kind of policy, also recalibrated and out of a file."""
    table, fresh = people(), people(seed=3)
    fair = classifier(policy=kind, sees_group=not blind, gap=0.9).fit(table, table["y"])
    for found, others in ((fair, table), (fair.recalibrate(fresh), fresh)):
        probabilities = found.predict_proba(others)
        now = MODEL.predict(others[["s"]])
        shares = by_group(lost(probabilities, now), others)
        stated = found.policy_.means["loses"]
        if blind and kind == "individual":
            continue  # its numbers are out of fold
        assert stated == pytest.approx(shares, abs=1e-9)
        assert lost(probabilities, now).mean() <= 0.03 + 1e-6
    back = Policy.from_json(fair.policy_.to_json())
    assert back.means == fair.policy_.means
    if not blind:
        scores = MODEL.predict_proba(table[["s"]]) if back.needs_proba else MODEL.predict(table[["s"]])
        assert np.array_equal(back.probabilities(scores, table["g"], table), fair.predict_proba(table))


@pytest.mark.parametrize("own", [False, True])
def test_files_of_individual_policies_with_functions(own):
    """Who loses is rebuilt from the functions that the reader passes."""

    def got(decision, x):
        return decision * x["loan"]

    table = people()
    happiness = {"got": got}
    asked = WorseOff(0.05, happiness=Happiness(got, name="twice")) if own else WorseOff(0.05)
    fair = classifier(policy="individual", happiness=happiness, constraints=[asked]).fit(table, table["y"])
    text = fair.policy_.to_json()
    with pytest.raises(PolicyFileError, match="Python function"):
        Policy.from_json(text)
    given = happiness | ({"twice": got} if own else {})
    back = Policy.from_json(text, happiness=given)
    scores = MODEL.predict_proba(table[["s"]])
    assert np.array_equal(back.probabilities(scores, table["g"], table), fair.predict_proba(table))


@pytest.mark.parametrize("kind", ["score", "individual"])
def test_it_holds_along_a_frontier_and_at_other_gaps(kind):
    """Every policy of the frontier keeps it; so does one that was moved."""
    table = people()
    fair = classifier(policy=kind).fit(table, table["y"])
    j = [measure.name for measure in fair.frontier_.measures].index("loses")
    share = (table["g"] == "f").mean()
    means = fair.frontier_.means[:, :, j]
    assert (share * means[:, 0] + (1 - share) * means[:, 1]).max() <= 0.03 + 1e-6
    moved = fair.at(gap=0.9)
    assert lost(moved.predict_proba(table), MODEL.predict(table[["s"]])).mean() <= 0.03 + 1e-6


def test_frontiers_of_tables_and_sums_agree():
    """The frontier of a table, of sums and of an engine is the same, with the limit kept everywhere."""
    table, asked = people(), [WorseOff(0.02)]
    columns = {name: table[name].to_numpy() for name in table}
    lines = [
        traced(table, **ASKED, constraints=asked),
        frontier(aggregate(table, **ASKED), constraints=asked),
        traced(LAZY["duckdb"](columns, None), **ASKED, constraints=asked),
    ]
    for line in lines[1:]:
        assert line.loss == pytest.approx(lines[0].loss, abs=1e-9)
        assert line.tau == pytest.approx(lines[0].tau, abs=1e-9)


def test_limits_along_a_frontier_know_who_loses():
    """A band of a frontier that keeps a limit measures it too, from the same happiness."""
    table, others = people(), people(seed=8)
    line = traced(table, **ASKED, constraints=[WorseOff(0.02)])
    asked = {"happiness": ASKED["happiness"], "sensitive_features": "g"}
    band = line.band(others[["p0", "p1"]].to_numpy(), others, "y", **asked)
    assert [measure.name for measure in band.measures] == ["got", "loses"]
    probabilities = line.policies[0].probabilities(others[["p0", "p1"]], others["g"])
    shares = by_group(lost(probabilities, others["p1"] > 0.5), others)
    assert band.means[0, :, 1] == pytest.approx([*shares.values()], abs=1e-9)


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_an_audit_measures_who_loses():
    """An audit of what people got, beside the baseline, finds the share that the policy states."""
    table = people()
    fair = classifier().fit(table, table["y"])
    now = MODEL.predict(table[["s"]])
    found = audit(fair, table, table["y"], happiness="decision < baseline", baseline=now)
    means = {group: mean.estimate for group, mean in found.measures[0].means.items()}
    assert means == pytest.approx(fair.policy_.means["loses"], abs=1e-9)
    assert audit(fair, table, table["y"])["got"].gap.estimate == pytest.approx(fair.gaps_["got"], abs=1e-9)


def test_several_worse_off_of_different_happiness():
    """Each has a measure of its own name; of the same happiness one is shared."""
    table = people()
    twice = Happiness("decision * loan", among="y == 1", name="deserved")
    asked = [WorseOff(0.05), WorseOff(0.02, twice), WorseOff(0.01, twice, ["f"]), WorseOff(0.05, "got")]
    policy = solved(table, **ASKED, gap=1.0, constraints=asked, random_state=0)
    assert [measure.name for measure in policy.measures] == [
        "got",
        "loses",
        "loses deserved",
        "loses got",
    ]
    assert policy.means["loses"] == pytest.approx(policy.means["loses got"], abs=1e-12)
    other = Happiness("decision * loan * 2", name="deserved")
    with pytest.raises(HappinessError, match="differ"):
        solved(table, **ASKED, gap=1.0, constraints=[asked[1], WorseOff(0.02, other)])
    with pytest.raises(HappinessError, match="differ"):
        solved(table, **ASKED, gap=1.0, constraints=[WorseOff(0.02, Happiness("decision", name="got"))])


@pytest.mark.parametrize("at_most", [-0.1, 1.0, 2, "0.1", None, True, float("nan"), [0.1]])
def test_a_share_that_is_none_is_refused(at_most):
    """A share lies from 0 to below 1."""
    with pytest.raises(ConstraintError, match=r"are to lose.*0\.02"):
        WorseOff(at_most)


@pytest.mark.parametrize("groups", ["fm", 3, [], ()])
def test_groups_that_are_no_list_are_refused(groups):
    """Groups are a list."""
    with pytest.raises(ConstraintError, match="list of groups"):
        WorseOff(0.1, groups=groups)


def test_what_does_not_occur_is_refused():
    """A group or a happiness that is none is named, with those there are."""
    table = people()
    with pytest.raises(ConstraintError, match=r"'x', which does not occur.*'f', 'm'"):
        solved(table, **ASKED, constraints=[WorseOff(0.1, groups=["x"])])
    with pytest.raises(ConstraintError, match=r"'gott', which is no measure.*'got'"):
        solved(table, **ASKED, constraints=[WorseOff(0.1, "gott")])


def test_what_is_met_to_within_rounding_is_met():
    """A share of 1e-16 who lose is nobody: the number is rounding, and no miss."""
    policy = solved(people(), **ASKED, gap=0.5, constraints=[WorseOff(0)], random_state=0)
    q = np.where(policy.q[..., 1:] == 1.0, [1e-16, 1.0 - 1e-16], policy.q)
    named = {name: ASKED[name] for name in ("score", "sensitive_features", "happiness")}
    row = audit(replace(policy, q=q), people(seed=1), **named).requirements[-1]
    assert "get less" in row.words
    assert 0.0 < row.reached.estimate < 1e-12
    assert (row.verdict, row.refuted) == ("met", False)


# ---------------------------------------------------------------------------------------------------------
# What it costs


def test_the_price_of_worse_off_is_that_of_fitting_again():
    """Each row is the policy that a limit of that share would give; the first is the policy itself."""
    table = people(1500)
    fair = classifier(constraints=[], gap=0.3).fit(table, table["y"])
    rows = fair.price_of_worse_off()
    assert rows[0].loss == fair.loss_
    shares = by_group(lost(fair.predict_proba(table), MODEL.predict(table[["s"]])), table)
    assert rows[0].loses == pytest.approx(shares, abs=1e-9)
    assert [row.at_most / rows[0].at_most for row in rows] == pytest.approx([1, 0.5, 0.25, 0])
    for row in rows[1:]:
        again = classifier(constraints=[WorseOff(row.at_most, groups=["f", "m"])], gap=0.3).fit(
            table, table["y"]
        )
        assert row.loss == pytest.approx(again.loss_, abs=1e-9)
        assert max(row.loses.values()) <= row.at_most + 1e-9
    assert "loses" not in fair.policy_.means
    assert [measure.name for measure in fair.aggregates_.measures] == ["got"]


def test_the_price_of_worse_off_out_of_reach_and_of_nothing():
    """Where no policy makes nobody worse off, the row says so; where nobody loses there is no table."""
    table = people(1500)
    tight = classifier(constraints=[Budget("got", at_most=1.0)], gap=0.3).fit(table, table["y"])
    assert tight.price_of_worse_off()[-1][1:] == (None, None)
    assert classifier(constraints=[WorseOff(0)], gap=0.3).fit(table, table["y"]).price_of_worse_off() == []
    individual = classifier(policy="individual").fit(table, table["y"])
    with pytest.raises(ConstraintError, match=r"individual policy .* Fit again with constraints"):
        individual.price_of_worse_off()
    others = people(300, seed=4)
    assert individual.report(others, others["y"]).content["worse_off"] == []


def test_the_report_says_what_it_costs():
    """The page has the table, and what was asked; a policy that makes nobody worse off has none."""
    table, others = people(600), people(300, seed=4)
    page = (
        classifier(constraints=[WorseOff(0.06)], gap=0.3).fit(table, table["y"]).report(others, others["y"])
    )
    rows = page.to_dict()["worse_off"]
    assert len(rows) == 4
    assert "Who would lose less, and what it costs" in page.to_html()
    assert "at most 6 % of the people get less than from the baseline" in page.to_html()
    assert "nobody" in page.to_html()
    none = classifier(constraints=[WorseOff(0)], gap=0.3).fit(table, table["y"]).report(others, others["y"])
    found = page.to_dict()
    assert [part["has_gap"] for part in found["measures"]] == [True, False]
    assert list(found["certificate"]["gaps"]) in ([], ["got"])
    assert "loses" not in found["certificate"]["sentence"]
    assert [row["measure"] for row in found["requirements"]] == ["got", "loses"]
    text = page.to_html()
    assert "people who get less than from the baseline" in text
    for wrong in ("gap of people", "gap in people", "gap found in people", "mean people"):
        assert wrong not in text
    assert "Got by g" in text
    assert none.to_dict()["worse_off"] == []
    assert "Who would lose less" not in none.to_html()


def test_the_command_line(tmp_path):
    """--worse-off of fit and frontier, and the baseline of an audit, say the same as Python."""
    from typer.testing import CliRunner

    from felicific.cli import app

    table = people()
    table.to_csv(tmp_path / "people.csv", index=False)
    common = [str(tmp_path / "people.csv"), "--group", "g", "--happiness", "decision * loan"]
    fitting = [*common, "--score", "p1", "--label", "y", "--worse-off", ".02"]
    out = tmp_path / "policy.json"
    free = ["--change-cost", "0"]
    run = CliRunner().invoke(app, ["fit", *fitting, *free, "--gap", "0.5", "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    asked = COLUMNS | {"happiness": "decision * loan"}
    python = solved(table, **asked, gap=0.5, constraints=[WorseOff(0.02)], random_state=0)
    written = load(out)
    assert written.loss == pytest.approx(python.loss, abs=1e-9)
    assert written.means["loses"] == pytest.approx(python.means["loses"], abs=1e-9)
    run = CliRunner().invoke(app, ["frontier", *fitting, "--json"])
    assert run.exit_code == 0, run.output
    line = traced(table, **asked, constraints=[WorseOff(0.02)])
    assert json.loads(run.stdout)["breakpoints"]["loss"] == pytest.approx(line.loss.tolist(), abs=1e-9)
    run = CliRunner().invoke(app, ["fit", *fitting[:-1], "2", "--out", str(tmp_path / "no.json")])
    assert run.exit_code != 0
    lost_now = [str(tmp_path / "people.csv"), "--group", "g", "--happiness", "decision < baseline", "--json"]
    run = CliRunner().invoke(app, ["audit", *lost_now, "--decision", "y", "--baseline", "now"])
    assert run.exit_code == 0, run.output
    shares = by_group(((table["y"] == 0) & (table["now"] == 1)).to_numpy(), table)
    means = json.loads(run.stdout)["measures"][0]["means"]
    assert [mean["estimate"] for mean in means] == pytest.approx([*shares.values()], abs=1e-9)


def test_worse_off_can_be_cloned_and_compared():
    """A requirement is a value: equal ones are equal, and a search over settings may hold it."""
    from sklearn.base import clone

    fair = clone(classifier(constraints=[WorseOff(0.1, happiness="got", groups=["f"])]))
    assert [*fair.constraints] == [WorseOff(0.1, "got", ("f",))]
    assert replace(WorseOff(0.1), at_most=0.2) == WorseOff(0.2)


def test_a_safe_fit_shows_it_on_people_held_out():
    """With confidence, fewer are aimed at, so that people held out show the share; that nobody loses is never shown."""
    table = people(6000, 704)
    settings = {"gap": 0.9, "confidence": 0.9}
    free = classifier(constraints=[], gap=0.0).fit(table, table["y"]).price_of_worse_off()[0].at_most
    share = round(0.9 * free, 3)  # so that it binds where the gap is closed
    for groups in (None, ["f", "m"]):
        asked = WorseOff(share, groups=groups)
        fair = classifier(constraints=[asked], **settings).fit(table, table["y"])
        assert fair.certificate_.kept == tuple(row.words for row in asked.rows(fair.aggregates_))
        assert all(words in str(fair.certificate_) for words in fair.certificate_.kept)
        assert max(fair.policy_.means["loses"].values()) < share
        assert fair._fitted.problem.kept == (asked,)
        assert tuple(fair.policy_.reached) == fair.certificate_.kept
        assert {one.upper for one in fair.policy_.basis.requirements} == {share}
        assert fair.certificate_.to_dict()["kept"] == [*fair.certificate_.kept]
    with pytest.raises(ConstraintError, match="can never be shown"):
        classifier(constraints=[WorseOff(0)], **settings).fit(table, table["y"])
    with pytest.raises(CertificateError, match=r"could be shown to keep to: at most 0\.05 %.*Allow about"):
        classifier(constraints=[WorseOff(0.0005)], gap=3.0, confidence=0.9).fit(
            table[:1000], table["y"][:1000]
        )


@pytest.mark.parametrize("policy", ["score", "label", Score(bins=7, monotone=False), Score(randomize=False)])
@pytest.mark.parametrize("groups", [None, ["f"]])
def test_nobody_loses_by_construction_in_the_table_or_outside_of_it(policy, groups):
    """Whoever comes, also where nobody was fitted, gets no less; the certificate says so beside the gap."""
    table = people(6000, 704)
    table = table[(table["p1"] < 0.3) | (table["p1"] > 0.4)]
    settings = {"happiness": {"got": "decision"}, "gap": 0.3, "confidence": 0.9, "policy": policy}
    asked = WorseOff(0, groups=groups)
    fair = classifier(constraints=[asked], **settings).fit(table, table["y"])
    s = np.concatenate([np.linspace(-30, 30, 5001), [-1e-9, 0.0, 1e-9], table["s"]])
    for group in groups or ["f", "m"]:
        others = table.iloc[np.zeros(len(s), dtype=int)].assign(s=s, g=group)
        chances, now = fair.predict_proba(others), MODEL.predict(others[["s"]])
        assert (chances[now == 1, 1] == 1.0).all()
    found = fair.certificate_
    whom = "" if groups is None else " of group 'f'"
    assert f"By construction, and not by the test, nobody{whom} gets less than from the baseline: " in str(
        found
    )
    assert (found.gaps, found.kept) == (
        {"got": 0.3},
        (str(asked) if groups is None else "at most 0 % of group 'f' get less than from the baseline",),
    )
    assert "the gap of 'got' is at most 0.3" in str(found)


class Turning(ClassifierMixin, BaseEstimator):
    """A model that decides by its score, above a border, but for people of whom somebody says otherwise."""

    classes_ = np.array([0, 1])

    def __init__(self, border=0.5, contrary=99.0):
        self.border, self.contrary = border, contrary

    def predict_proba(self, X):
        return np.column_stack([1 - X["p1"], X["p1"]])

    def predict(self, X):
        return ((X["p1"] > self.border) != (X["loan"] > self.contrary)).astype(int)

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True


def test_where_a_policy_does_not_tell_that_nobody_loses_it_is_refused():
    """What depends on the person, a baseline from outside, a border that is not known, and decisions by more."""
    table, plain = people(3000, 5), {"happiness": {"got": "decision"}, "gap": 0.3, "confidence": 0.9}
    plain["constraints"] = [WorseOff(0)]
    for changes in (
        {"happiness": {"got": "decision * loan"}}, {"happiness": "accuracy"}, {"policy": "individual"},
        {"policy": "soft-label"}, {"baseline": "now"},
    ):  # fmt: skip
        with pytest.raises(ConstraintError, match="can never be shown"):
            classifier(**plain | changes).fit(table, table["y"])
    for model, why in (
        (Turning(0.3), "the border where"),
        (Turning(0.5, 9.0), "is not told by the model's score"),
    ):
        fair = FairClassifier(FrozenEstimator(model), sensitive_features="g", random_state=0, **plain)
        with pytest.raises(
            CertificateError, match=rf"does not hold by construction: .*{why}.*WorseOff\(0\.01\)"
        ):
            fair.fit(table, table["y"])
    fair = FairClassifier(FrozenEstimator(Turning()), sensitive_features="g", random_state=0, **plain)
    assert "By construction" in str(fair.fit(table, table["y"]).certificate_)
