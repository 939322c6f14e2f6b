"""Worth: every door of the library says the same of the same people, and what a naive loop over rows says."""

from dataclasses import replace

import numpy as np
import pytest
from doors import (
    KINDS,
    MODEL,
    PLACES,
    Asked,
    fit_doors,
    fitted_doors,
    make_columns,
    policy_doors,
    rows_of,
    table_doors,
)
from helpers import solved, traced
from hypothesis import given
from hypothesis import strategies as st
from naive import LAZY, MEMORY, as_dask, cases
from strategies import examples

from felicific import Happiness, aggregate, audit
from felicific._fit.fitted import achieved
from felicific._fit.tryout import Tryout
from felicific._people.people import People
from felicific._policy.ledger import find_origin, real_ledger
from felicific._problem.problem import Problem
from felicific.exceptions import DataError, HappinessError
from felicific.sklearn import make_scorer

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

#: A table in memory, an engine that is asked by queries and one that reads batches.
SOME = ("pandas", "duckdb", "dataset")

POLICIES = st.sampled_from(["label", "soft-label"])


def close(number, exact, scale, tolerance=1e-9):
    """Whether a number is right, relative to the size of what it is made of."""
    return abs(number - exact) <= tolerance * max(scale, abs(exact)) + 1e-300


def assert_naive(sums, case, policy):
    """Compare every sum with the loop over rows."""
    assert sums.groups == tuple(case.groups)
    assert [measure.name for measure in sums.measures] == [part.name for part in case.parts]
    for z, group in enumerate(case.groups):
        assert sums.rows[z] == sum(row["z"] == group for row in case.rows)
        for s in range(len(case.classes)):

            def total(term, group=group, s=s):
                return case.total(group, term, s, policy)

            assert close(sums.mass[z, s], *total(lambda row: 1.0))
            assert close(
                sums.baseline_loss[z, s], *total(lambda row: case.cost(row, case.classes[case.now(row)]))
            )
            for d, decision in enumerate(case.classes):
                assert close(sums.loss[z, s, d], *total(lambda row, d=decision: case.cost(row, d)))
            for j, part in enumerate(case.parts):
                origin = float(sums.origin[j])

                def away(row, decision, part=part, origin=origin):
                    return (part.value(row, decision) - origin) * part.counts(row)

                assert close(sums.among[z, s, j], *total(part.counts))
                now = total(lambda row, away=away: away(row, case.classes[case.now(row)]))
                assert close(sums.baseline_value[z, s, j], *now)
                for d, decision in enumerate(case.classes):
                    exact = total(lambda row, away=away, d=decision: away(row, d))
                    assert close(sums.value[z, s, d, j], *exact)


SUMS = ("mass", "loss", "value", "among", "baseline_loss", "baseline_value", "rows", "origin")


def assert_same(one, other, tolerance=1e-9):
    """Aggregates that agree in every sum, the origins included."""
    assert one.groups == other.groups
    assert one.measures == other.measures
    assert one.classes.tolist() == other.classes.tolist()
    for name in SUMS:
        left, right = getattr(one, name), getattr(other, name)
        scale = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale, err_msg=name)


@examples
@given(case=cases())
def test_helpers_notice_a_wrong_sum(refuses, case):
    """One sum that is off by a millionth is noticed, and so is a door that lets people pass."""
    sums = aggregate(dict(case.columns), policy="label", **case.asked)
    assert_naive(sums, case, "label")
    for name in SUMS:
        number = getattr(sums, name).astype(float)
        number.flat[np.abs(number).argmax()] += 1e-6 + 1e-6 * np.abs(number).max()
        changed = {name: number}
        wrong = replace(sums, **changed) if name in ("rows", "origin") else sums.with_sums(**changed)
        with pytest.raises(AssertionError):
            assert_same(sums, wrong)
        with pytest.raises(AssertionError):
            assert_naive(wrong, case, "label")
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        refused_at({"open": lambda: None}, refuses, HappinessError)


# ---------------------------------------------------------------------------------------------------------
# Aggregates


@pytest.mark.parametrize("library", MEMORY)
@examples
@given(case=cases(), policy=POLICIES)
def test_aggregates_in_memory_are_the_naive_sums(library, case, policy):
    """Mass, loss, value, among and the baseline are what a loop over rows adds up, in every library."""
    assert_naive(aggregate(MEMORY[library](case.columns), policy=policy, **case.asked), case, policy)


@pytest.mark.parametrize("engine", LAZY)
@examples
@given(case=cases(), policy=POLICIES)
def test_aggregates_on_engines_are_the_naive_sums(engine, tmp_path_factory, case, policy):
    """An engine adds up the same, batch by batch."""
    table = LAZY[engine](case.columns, tmp_path_factory.mktemp("people"))
    sums = aggregate(table, policy=policy, **case.asked)
    assert_naive(sums, case, policy)
    whole = aggregate(dict(case.columns), policy=policy, **case.asked)
    assert_same(sums.around(whole.origin), whole)  # a typical value is taken from the first batch


@examples
@given(case=cases(), policy=POLICIES)
def test_aggregates_on_partitions_are_the_naive_sums(case, policy):
    """So do the workers of Dask."""
    pytest.importorskip("dask.dataframe", reason="needs dask: pip install -e '.[dask]'")
    assert_naive(aggregate(as_dask(case.columns), policy=policy, **case.asked), case, policy)


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb"])
@examples
@given(case=cases())
def test_score_aggregates_agree_bin_by_bin(engine, case):
    """The fine bins of a score are the same in memory and on engines; over all bins the sums are the naive ones."""
    here = aggregate(dict(case.columns), **case.asked)
    assert_same(here, aggregate(LAZY[engine](case.columns, None), **case.asked))
    for z, group in enumerate(case.groups):
        assert close(here.mass[z].sum(), *case.total(group, lambda row: 1.0))
        for d, decision in enumerate(case.classes):
            assert close(
                here.loss[z, :, d].sum(), *case.total(group, lambda row, d=decision: case.cost(row, d))
            )
        for j, part in enumerate(case.parts):
            assert close(here.among[z, :, j].sum(), *case.total(group, part.counts))


# ---------------------------------------------------------------------------------------------------------
# Audits


def assert_audited(found, case, decide):
    """Group means and loss of an audit are the naive ones."""
    assert found.groups == tuple(case.groups)
    assert found.rows == len(case.rows)
    for j, part in enumerate(case.parts):
        for z in case.groups:
            estimate = found[part.name].means[z].estimate
            assert close(estimate, case.mean(z, j, decide), case.scale(j))
        # The gap is relative to a typical value: an offset costs it no digits.
        means = [case.mean(z, j, decide) for z in case.groups]
        spread = case.scale(j) * 1e-15 * 64
        assert abs(found[part.name].gap.estimate - (max(means) - min(means))) <= 1e-9 + spread
    if case.loss is not None:
        assert close(found.loss.estimate, case.mean_loss(decide), 1.0)


def decided(row):
    """What the column says."""
    return {row["decided"]: 1.0}


def asked_of_audits(case):
    return {
        "y": "y",
        "sensitive_features": "z",
        "happiness": case.happiness,
        "loss": case.loss,
        "decisions": case.classes,
        "sample_weight": "w" if case.weighted else None,
        "weight_kind": "sampling",
    }


@pytest.mark.parametrize("library", MEMORY)
@examples
@given(case=cases())
def test_audits_in_memory_are_the_naive_means(library, case):
    """Group means and loss of a column of decisions are what a loop over rows says."""
    table = MEMORY[library](case.columns)
    assert_audited(audit("decided", table, **asked_of_audits(case)), case, decided)
    assert_audited(audit(case.columns["decided"], table, **asked_of_audits(case)), case, decided)


@pytest.mark.parametrize("engine", LAZY)
@examples
@given(case=cases())
def test_audits_on_engines_are_the_naive_means(engine, tmp_path_factory, case):
    """So are those of an engine."""
    table = LAZY[engine](case.columns, tmp_path_factory.mktemp("people"))
    assert_audited(audit("decided", table, **asked_of_audits(case)), case, decided)


# ---------------------------------------------------------------------------------------------------------
# Ledgers, and what is made of them


def people_of(case):
    """The people of a case, with all their roles."""
    problem = Problem.of(np.array(case.classes), case.happiness, loss=case.loss)
    score = np.column_stack([case.columns[f"p{k}"] for k in range(len(case.classes))])
    people = People.of(
        case.columns,
        problem,
        group=case.columns["z"],
        y=case.columns["y"],
        score=score,
        predicted=case.columns["own"] if case.predicted else None,
        baseline=case.columns["now"] if case.baseline else None,
        weight=case.columns["w"] if case.weighted else None,
        weight_kind="sampling",
    )
    return problem, people.with_scores


@examples
@given(case=cases())
def test_real_ledgers_are_the_naive_values_of_every_person(case):
    """Cost, value and membership of every person and decision, by which individual policies are judged."""
    problem, people = people_of(case)
    origin = find_origin(problem, people)
    ledger = real_ledger(problem, people, origin)
    assert len(ledger.cost) == len(case.rows)
    for i, row in enumerate(case.rows):
        for j, part in enumerate(case.parts):
            assert ledger.among[i, 0, j] == part.counts(row)
            for d, decision in enumerate(case.classes):
                exact = (part.value(row, decision) - origin[j]) * part.counts(row)
                assert close(ledger.value[i, d, 0, j], exact, abs(exact))
        for d, decision in enumerate(case.classes):
            assert ledger.cost[i, d] == pytest.approx(case.cost(row, decision), rel=1e-15)


@examples
@given(case=cases())
def test_achieved_and_tryouts_agree_with_audits(case):
    """What probabilities of decisions do is the same by sums, by a tryout, by an audit and by a loop over rows."""
    problem, people = people_of(case)
    probabilities = people.score
    tried = Tryout(problem, people)
    sums, tries = achieved(problem, people, probabilities), tried.outcome(probabilities)
    persons = tried.measured(probabilities, drawn=True)
    every = np.column_stack([case.columns[f"p{k}"] for k in range(len(case.classes))])
    found = audit(every, dict(case.columns), **asked_of_audits(case))

    def decide(row):
        return dict(zip(case.classes, case.probabilities(row), strict=True))

    assert_audited(found, case, decide)
    for j, part in enumerate(case.parts):
        for z, group in enumerate(case.groups):
            exact = case.mean(group, j, decide)
            for mean in (sums.means, tries.means, persons.sample.mean + persons.origin):
                assert close(mean[z, j], exact, case.scale(j))
        gap = found[part.name].gap.estimate
        assert sums.gaps[j] == pytest.approx(gap, rel=1e-9, abs=1e-9)
        assert tries.gaps[j] == pytest.approx(gap, rel=1e-9, abs=1e-9)
    for loss in (sums.loss, tries.loss, float(persons.loss_sample.mean[0])):
        assert loss == pytest.approx(case.mean_loss(decide), rel=1e-9, abs=1e-9)


@examples
@given(case=cases())
def test_the_baseline_is_the_same_everywhere(case):
    """Aggregates, a tryout and an audit of the baseline's decisions say the same of them."""
    problem, people = people_of(case)
    sums = aggregate(dict(case.columns), **case.asked)

    def decide(row):
        return {case.classes[case.now(row)]: 1.0}

    outcomes = [sums.baseline, Tryout(problem, people).baseline]
    for outcome in outcomes:
        for j in range(len(case.parts)):
            for z, group in enumerate(case.groups):
                assert close(outcome.means[z, j], case.mean(group, j, decide), case.scale(j))
        assert outcome.loss == pytest.approx(case.mean_loss(decide), rel=1e-9, abs=1e-12)


# ---------------------------------------------------------------------------------------------------------
# Bounds, overflow and origins, at every door


def money(decision, x):
    """A function of x."""
    return decision * x["amount"]


def rightly(decision, x, y):
    """A function of x and y."""
    return (y == decision) * x["amount"]


def refused_at(doors, refuses, error, *words):
    """Insist that every door refuses with these words."""
    for name, door in doors.items():
        try:
            with refuses(error, *words):
                door()
        except BaseException as failure:
            failure.add_note(f"at the door {name!r}")
            raise


def every_door(columns, asked, tmp_path, good, recalibrates=True, names=PLACES):
    """All doors for these columns; classifiers and policies that need others first are fitted on ``good`` ones."""
    doors = table_doors(columns, asked, tmp_path, names) | fit_doors(columns, asked)
    plain = Asked(asked.happiness, asked.settings)
    policies = [
        solved(good, policy=kind, gap=3.0, random_state=0, **plain.table) for kind in ("score", "individual")
    ]
    doors |= policy_doors(columns, asked, tmp_path, policies)
    frame, y, _ = rows_of(good, plain)
    for kind in KINDS:
        fair = asked.fair(kind).fit(frame, y)
        doors |= {f"{name} {kind}": door for name, door in fitted_doors(columns, asked, fair).items()}
        if recalibrates:
            doors[f"recalibrate {kind}"] = lambda fair=fair: fair.recalibrate(rows_of(columns, asked)[0])
    line = traced(good, **plain.table)
    scores = np.column_stack([columns["p0"], columns["p1"]])
    weight = {"sample_weight": columns["w"]} if asked.weighted else {}
    doors["frontier.band"] = lambda: line.band(
        scores,
        rows_of(columns, asked)[0],
        columns["y"],
        happiness=asked.happiness,
        sensitive_features="g",
        **weight,
    )
    doors["audit model"] = lambda: audit(
        MODEL.estimator, rows_of(columns, asked)[0], **asked.audited | {"y": columns["y"]} | weight
    )
    return doors


def with_amount(columns, row, amount):
    """The same people, one of whom has another amount."""
    changed = columns["amount"].copy()
    changed[row] = amount
    return columns | {"amount": changed}


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_are_refused_at_every_door_by_measure_and_row(tmp_path, refuses, weighted):
    """A person whose happiness leaves its bounds is named by its row, whatever rows of weight 0 stand before it."""
    good = make_columns()
    bad = with_amount(good, 37, 1000.0)
    bad["w"] = np.where(np.isin(np.arange(90), [3, 5, 20]), 0.0, bad["w"])
    asked = Asked(Happiness(money, name="money", bounds=(0, 10)), {}, weighted)
    doors = every_door(bad, asked, tmp_path, good)
    # A fitted classifier is asked about the present rows alone, and its own functions count those.
    inside = {name: doors.pop(name) for name in ("audit individual", "scorer individual")}
    refused_at(doors, refuses, HappinessError, "'money'", "is 1000 in row 37 (group 'a')", "bounds 0 to 10")
    where = "in row 34" if weighted else "in row 37"
    refused_at(inside, refuses, HappinessError, "'money'", "is 1000", where, "bounds 0 to 10")


def test_bounds_of_what_looks_at_labels_are_refused(tmp_path, refuses):
    """So is a happiness that looks at labels, of x too or of them alone, where labels are known."""
    good = make_columns()
    bad = with_amount(good, 37, 1000.0)
    asked = Asked(Happiness(rightly, name="rightly", bounds=(0, 10)), {})
    doors = every_door(bad, asked, tmp_path, good, recalibrates=False, names=SOME)
    refused_at(doors, refuses, HappinessError, "'rightly'", "is 1000 in row 37", "bounds 0 to 10")
    first = int(np.flatnonzero(good["y"] == 1)[0])
    alone = Asked(Happiness(lambda decision, y: 5.0 * (y * decision), name="alone", bounds=(0, 3)), {})
    doors = table_doors(good, alone, tmp_path, SOME) | fit_doors(good, alone)
    refused_at(doors, refuses, HappinessError, "'alone'", f"is 5 in row {first}", "bounds 0 to 3")


def test_bounds_bind_those_who_are_counted(tmp_path):
    """Whoever is not counted may be worth anything."""
    good = make_columns()
    bad = with_amount(good, 37, 1000.0)
    asked = Asked(Happiness(money, among=lambda x: x["amount"] < 100, name="money", bounds=(0, 10)), {})
    for door in every_door(bad, asked, tmp_path, good, names=SOME).values():
        door()


def test_bounds_are_refused_among_people_held_out(refuses):
    """With confidence=, a person is named by its row in whichever half it is."""
    bad = with_amount(make_columns(), 37, 1000.0)
    bad["w"] = np.where(np.isin(np.arange(90), [3, 5, 20]), 0.0, bad["w"])
    asked = Asked(Happiness(money, name="money", bounds=(0, 10)), {}, weighted=True)
    rows, y, weight = rows_of(bad, asked)
    for kind in ("score", "individual"):
        for seed in range(3):
            with refuses(HappinessError, "'money'", "in row 37"):
                asked.fair(kind, gap=9.0, confidence=0.9, random_state=seed).fit(rows, y, **weight)


@pytest.mark.parametrize("everybody", [False, True])
def test_overflow_is_refused_by_name_at_every_door(tmp_path, refuses, everybody):
    """One value of 1e301, and values whose sum overflows, are refused; NumPy does not warn."""
    good = make_columns()
    amount = np.full(90, 2e299) if everybody else with_amount(good, 37, 1e301)["amount"]
    asked = Asked(Happiness(money, name="money"), {})
    doors = every_door(good | {"amount": amount}, asked, tmp_path, good)
    refused_at(doors, refuses, HappinessError, "'money'")


def test_losses_that_overflow_are_refused_at_every_door(tmp_path, refuses):
    """So are losses."""
    good = make_columns()
    asked = Asked(Happiness("decision", name="d"), {"loss": money}, gap=0.5)
    one = with_amount(good, 37, 1e301)
    doors = table_doors(one, asked, tmp_path, SOME) | fit_doors(one, asked)
    refused_at(doors, refuses, DataError, "The loss is so large")
    every = good | {"amount": np.full(90, 2e299)}
    doors = table_doors(every, asked, tmp_path, SOME)
    doors = {name: door for name, door in doors.items() if not name.startswith("audit")}
    refused_at(doors | fit_doors(every, asked), refuses, DataError, "The loss is so large")


@pytest.mark.parametrize("amount", [np.nan, np.inf])
def test_what_is_no_number_is_refused_by_row(tmp_path, refuses, amount):
    """NaN and infinity in a feature are named by row or column, without a warning of NumPy's."""
    good = make_columns()
    asked = Asked(Happiness(money, name="money"), {})
    bad = with_amount(good, 37, amount)
    doors = table_doors(bad, asked, tmp_path)
    word = "row 37"
    for name, door in doors.items():
        with pytest.raises((HappinessError, DataError)) as caught:
            door()
        assert word in str(caught.value), (name, str(caught.value))
    refused_at(fit_doors(bad, asked, sees=[True]), refuses, HappinessError, "'money'", word)


@pytest.mark.parametrize("n", [50, 3000])
def test_origins_are_the_same_in_memory_and_on_engines(tmp_path, n):
    """The typical value that sums are relative to does not depend on where the people are."""
    columns = make_columns(n, seed=3)
    happiness = [
        Happiness(lambda decision, x: 1e9 + decision * x["amount"], name="offset"),
        Happiness(money, among=lambda x: x["amount"] > 8, name="some"),
        Happiness(rightly, among="y == 1", name="rightly"),
        Happiness(lambda decision, y: 3.0 * (y == decision) - 1e6, name="labels"),
        "equal_opportunity",
    ]
    asked = Asked(happiness, {}, weighted=True)
    columns["w"][:7] = 0.0
    here = aggregate(columns, **asked.table)
    for lay in LAZY.values():
        there = aggregate(lay(columns, tmp_path), **asked.table)
        np.testing.assert_allclose(there.origin, here.origin, rtol=1e-15)
        assert_same(here, there)


def gaps_at(columns, asked, tmp_path):
    """Gaps of the only measure at every door that states them."""
    gaps = {}
    for name, door in table_doors(columns, asked, tmp_path, SOME).items():
        outcome = door()
        if hasattr(outcome, "baseline_value"):
            gaps[name] = [outcome.baseline.gaps[0]]
        elif hasattr(outcome, "tau"):
            gaps[name] = [outcome.gaps[:, 0].min(), outcome.gaps[:, 0].max()]
        else:
            gaps[name] = [outcome.gap]
    rows, y, weight = rows_of(columns, asked)
    for kind in KINDS:
        fair = asked.fair(kind).fit(rows, y, **weight)
        gaps[f"fit {kind}"] = list(fair.gaps_.values())
        others = fair.frontier_on(rows, y, **weight).gaps[:, 0]
        gaps[f"on {kind}"] = [others.min(), others.max()]  # kinks may be as close as rounding
        gaps[f"audit {kind}"] = [audit(fair, rows, y, **weight).gap]
        gaps[f"scorer {kind}"] = [make_scorer()(fair, rows, y, **weight)["neg_gap"]]
        gaps[f"recalibrate {kind}"] = list(fair.recalibrate(rows).gaps_.values())
    return gaps


def test_a_large_constant_changes_no_gap(tmp_path):
    """Adding 1e9 to a happiness leaves every gap what it was, to 1e-6 of what the happiness is about."""
    columns = make_columns()
    plain = gaps_at(columns, Asked(Happiness(money, name="money"), {}, weighted=True), tmp_path)
    far = Happiness(lambda decision, x: 1e9 + decision * x["amount"], name="money")
    moved = gaps_at(columns, Asked(far, {}, weighted=True), tmp_path)
    for name, gap in plain.items():
        np.testing.assert_allclose(moved[name], gap, rtol=1e-6, atol=1e-6, err_msg=name)
