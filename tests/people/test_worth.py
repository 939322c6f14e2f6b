"""Worth: every door of the library says the same of the same people, and what a naive loop over rows says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import LAZY, MEMORY, as_dask, cases
from strategies import examples

from felicific import audit, moments
from felicific._fit.fitted import achieved
from felicific._fit.tryout import Tryout
from felicific._people.people import People
from felicific._policy.ledger import find_origin, real_ledger
from felicific._problem.problem import Problem

POLICIES = st.sampled_from(["label", "soft-label"])


def close(number, exact, scale, tolerance=1e-9):
    """Whether a number is right, relative to the size of what it is made of."""
    return abs(number - exact) <= tolerance * max(scale, abs(exact)) + 1e-300


def assert_naive(sums, case, policy):
    """Compare every sum with the loop over rows."""
    assert sums.groups == tuple(case.groups)
    assert [component.name for component in sums.components] == [part.name for part in case.parts]
    for z, group in enumerate(case.groups):
        assert sums.rows[z] == sum(row["z"] == group for row in case.rows)
        for s in range(len(case.classes)):

            def total(term, group=group, s=s):
                return case.total(group, term, s, policy)

            assert close(sums.mass[z, s], *total(lambda row: 1.0))
            assert close(
                sums.today_loss[z, s], *total(lambda row: case.cost(row, case.classes[case.now(row)]))
            )
            for d, decision in enumerate(case.classes):
                assert close(sums.loss[z, s, d], *total(lambda row, d=decision: case.cost(row, d)))
            for j, part in enumerate(case.parts):
                origin = float(sums.origin[j])

                def away(row, decision, part=part, origin=origin):
                    return (part.value(row, decision) - origin) * part.counts(row)

                assert close(sums.among[z, s, j], *total(part.counts))
                now = total(lambda row, away=away: away(row, case.classes[case.now(row)]))
                assert close(sums.today_value[z, s, j], *now)
                for d, decision in enumerate(case.classes):
                    exact = total(lambda row, away=away, d=decision: away(row, d))
                    assert close(sums.value[z, s, d, j], *exact)


SUMS = ("mass", "loss", "value", "among", "today_loss", "today_value", "rows", "origin")


def assert_same(one, other, tolerance=1e-9):
    """Moments that agree in every sum, the origins included."""
    assert one.groups == other.groups
    assert one.components == other.components
    assert one.classes.tolist() == other.classes.tolist()
    for name in SUMS:
        left, right = getattr(one, name), getattr(other, name)
        scale = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale, err_msg=name)


# ---------------------------------------------------------------------------------------------------------
# Moments


@pytest.mark.parametrize("library", MEMORY)
@examples(25)
@given(case=cases(), policy=POLICIES)
def test_moments_in_memory_are_the_naive_sums(library, case, policy):
    """Mass, loss, value, among and today are what a loop over rows adds up, in every library."""
    assert_naive(moments(MEMORY[library](case.columns), policy=policy, **case.asked), case, policy)


@pytest.mark.parametrize("engine", LAZY)
@examples(12)
@given(case=cases(), policy=POLICIES)
def test_moments_on_engines_are_the_naive_sums(engine, tmp_path_factory, case, policy):
    """An engine adds up the same, by a query or batch by batch."""
    table = LAZY[engine](case.columns, tmp_path_factory.mktemp("people"))
    sums = moments(table, policy=policy, **case.asked)
    assert_naive(sums, case, policy)
    assert_same(sums, moments(dict(case.columns), policy=policy, **case.asked))


@examples(2)
@given(case=cases(), policy=POLICIES)
def test_moments_on_partitions_are_the_naive_sums(case, policy):
    """So do the workers of Dask."""
    assert_naive(moments(as_dask(case.columns), policy=policy, **case.asked), case, policy)


@pytest.mark.parametrize("engine", ["polars lazy", "duckdb"])
@examples(8)
@given(case=cases())
def test_score_moments_agree_bin_by_bin(engine, case):
    """The fine bins of a score are the same in memory and on engines; over all bins the sums are the naive ones."""
    here = moments(dict(case.columns), **case.asked)
    assert_same(here, moments(LAZY[engine](case.columns, None), **case.asked))
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
        "classes": case.classes,
        "sample_weight": "w" if case.weighted else None,
        "method": "t",
    }


@pytest.mark.parametrize("library", MEMORY)
@examples(15)
@given(case=cases())
def test_audits_in_memory_are_the_naive_means(library, case):
    """Group means and loss of a column of decisions are what a loop over rows says."""
    table = MEMORY[library](case.columns)
    assert_audited(audit("decided", table, **asked_of_audits(case)), case, decided)
    assert_audited(audit(case.columns["decided"], table, **asked_of_audits(case)), case, decided)


@pytest.mark.parametrize("engine", LAZY)
@examples(8)
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
    proba = np.column_stack([case.columns[f"p{k}"] for k in range(len(case.classes))])
    people = People.of(
        case.columns,
        problem,
        group=case.columns["z"],
        y=case.columns["y"],
        proba=proba,
        predicted=case.columns["own"] if case.predicted else None,
        today=case.columns["now"] if case.today else None,
        weight=case.columns["w"] if case.weighted else None,
    )
    return problem, people.with_scores


@examples(25)
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


@examples(20)
@given(case=cases())
def test_achieved_and_tryouts_agree_with_audits(case):
    """What odds of decisions do is the same by sums, by a tryout, by an audit and by a loop over rows."""
    problem, people = people_of(case)
    odds = people.proba
    tried = Tryout(problem, people)
    sums, tries = achieved(problem, people, odds), tried.outcome(odds)
    persons = tried.measured(odds)
    every = np.column_stack([case.columns[f"p{k}"] for k in range(len(case.classes))])
    found = audit(every, dict(case.columns), **asked_of_audits(case))

    def decide(row):
        return dict(zip(case.classes, case.proba(row), strict=True))

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


@examples(10)
@given(case=cases())
def test_today_is_what_is_decided_today(case):
    """Moments, a tryout and an audit of today's decisions say the same of them."""
    problem, people = people_of(case)
    sums = moments(dict(case.columns), **case.asked)

    def decide(row):
        return {case.classes[case.now(row)]: 1.0}

    outcomes = [sums.today, Tryout(problem, people).today]
    for outcome in outcomes:
        for j in range(len(case.parts)):
            for z, group in enumerate(case.groups):
                assert close(outcome.means[z, j], case.mean(group, j, decide), case.scale(j))
        assert outcome.loss == pytest.approx(case.mean_loss(decide), rel=1e-9, abs=1e-12)
