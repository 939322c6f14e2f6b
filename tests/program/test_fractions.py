"""Fractions: means whose among looks at the decision. Sums, the search for a level, prices, conflicts, sites, files."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import solved
from hypothesis import assume, given
from hypothesis import strategies as st
from naive_program import Naive
from strategies import examples, small_ints

from felicific import Budget, Floor, Gap, Happiness, Policy, Ratio, Score, aggregate, solve
from felicific._problem.constraints import requirements_of
from felicific._problem.linear import Goal
from felicific._problem.requirements import fraction_of
from felicific._problem.unions import shares_of, unions_of
from felicific._program.aggregates import Aggregates
from felicific._program.program import Program
from felicific._program.solution import solve_program
from felicific.exceptions import ConstraintError, HappinessError, InfeasibleError, PolicyFileError

FREE = Score(monotone=False)
PRECISION = "precision"
COUNTED = "counted by 'precision'"


@st.composite
def people(draw, most=3):
    """A few people of some groups: scores on a coarse grid, labels, loans."""
    n = draw(st.integers(12, 40))
    group = np.concatenate([np.arange(2), draw(small_ints(n - 2, 0, draw(st.integers(1, most)) - 1 or 1))])
    assume((np.bincount(group)[np.unique(group)] > 1).all())  # a group of one is refused
    return {
        "group": np.array(["a", "b", "c"])[group],
        "score": draw(small_ints(n, 0, 4)) / 4.0,
        "y": np.concatenate([[0, 1], draw(small_ints(n - 2, 0, 1))]),
        "loan": draw(small_ints(n, 1, 5)) * 10.0,
    }


def sums_of(table, happiness=PRECISION, policy=FREE, **more):
    """Their sums."""
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": happiness}
    return aggregate(table, policy=policy, classes=[0, 1], **roles, **more).joined()


def crowd(n=2000, seed=0, groups=2):
    """Many people, with scores that mean more in one group than in the other."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    score = np.round(rng.beta(2 + group, 3 - 0.5 * group), 3)
    return {
        "group": np.array(["a", "b", "c"])[group],
        "score": score,
        "y": (rng.random(n) < score ** (1 + 0.4 * (group == 0))).astype(int),
        "loan": rng.integers(1, 9, n) * 1000.0,
        "id": np.arange(n),
    }


def naive(table, probabilities, value, counted):
    """Numerator by denominator of every group, person by person: probabilities of 1, what counts for each decision."""
    found = {}
    for z in sorted(set(table["group"].tolist())):
        top = bottom = 0.0
        for i in np.flatnonzero(table["group"] == z):
            for d, chance in ((0, 1 - probabilities[i]), (1, probabilities[i])):
                inside = counted(d, i)
                bottom += chance * inside
                top += chance * inside * value(d, i)
        found[z] = top / bottom if bottom > 1e-12 else np.nan
    return found


@examples
@given(people(), st.data())
def test_means_are_those_of_the_people(table, data):
    """Of any policy and of the baseline's decisions, by every person's own numbers; nobody counted is no number."""
    dollars = Happiness("decision * loan + y", among="decision == 1 or loan > 30", name="dollars")
    sums = sums_of(table, [dollars, PRECISION, "negative_predictive_parity"])
    q = data.draw(small_ints(sums.mass.shape, 0, 2)) / 2.0
    means = sums.evaluate(np.stack([1 - q, q], axis=-1)).means
    now = sums.baseline.means
    codes = {z: i for i, z in enumerate(sums.groups)}
    cells = sums.signal.spread(np.stack([1 - table["score"], table["score"]], axis=1), None)[0][0]
    probabilities = q[[codes[z] for z in table["group"]], cells]
    baseline = (table["score"] > 0.5).astype(float)  # of a tie, the first class
    loan, y = table["loan"], table["y"]
    expected = (
        (lambda d, i: d * loan[i] + y[i], lambda d, i: d == 1 or loan[i] > 30),
        (lambda d, i: y[i] == 1, lambda d, i: d == 1),
        (lambda d, i: y[i] != 1, lambda d, i: d != 1),
    )
    for j, parts in enumerate(expected):
        for found, chances in ((means, probabilities), (now, baseline)):
            wanted = naive(table, chances, *parts)
            np.testing.assert_allclose(found[:, j], [wanted[z] for z in sums.groups], rtol=1e-9, atol=1e-12)


@examples
@given(people(), st.sampled_from([0.0, 0.02, 0.1, 0.3]))
def test_search_against_a_fine_grid(table, width):
    """No level of a fine grid has less loss than the search proves; its answer keeps the gap, by the people's sums."""
    sums = sums_of(table)
    asked = requirements_of({PRECISION: width}, (), sums.measures)
    naive = Naive(sums)
    grid = [naive.solved(asked, t) for t in np.linspace(0, 1, 121)]
    best = min((one[0] for one in grid if one is not None), default=None)
    try:
        found = solve_program(sums, asked, tolerance=1e-7)
    except InfeasibleError:
        assert best is None
        return
    spread = Program.of(sums).spread
    assert best is None or found.outcome.loss <= best + 1e-7 * spread + 1e-9
    assert found.level.bound <= found.outcome.loss + 1e-9
    assert found.outcome.loss <= found.level.bound + 1e-7 * spread + 1e-9
    assert found.outcome.gaps[0] <= width + 1e-7
    value = (sums.value + sums.among[:, :, None, :] * sums.origin)[..., 1]
    assert (np.einsum("zsd,zsd->z", value, found.q) >= 1 - 1e-6).all()


def test_search_ends_within_its_tolerance():
    """A coarser search has a loss that is no further from a finer one's than it says, and asks fewer programs."""
    sums = sums_of(crowd(), [PRECISION, "equalized_odds"], Score())
    asked = requirements_of({PRECISION: 0.01, "equalized_odds": 0.1}, (), sums.measures)
    fine, coarse = (solve_program(sums, asked, tolerance=tolerance) for tolerance in (1e-7, 1e-3))
    spread = Program.of(sums).spread
    assert fine.outcome.loss - 1e-9 <= coarse.outcome.loss <= fine.outcome.loss + 1e-3 * spread
    assert coarse.level.bound <= fine.outcome.loss + 1e-9
    assert coarse.level.programs < fine.level.programs
    started = solve_program(sums, asked, tolerance=1e-3, start=fine.level.level)
    assert started.outcome.loss <= fine.outcome.loss + 1e-9


def test_a_gap_that_is_kept_anyway_changes_nothing():
    """Where the policy of least loss keeps the gap already, it is the answer."""
    sums = sums_of(crowd(), policy=Score())
    free = solve(sums, gap={}, random_state=0)
    slack = solve(sums, gap=free.gap * 1.01, random_state=0)
    assert np.array_equal(free.q, slack.q)
    assert slack.prices[PRECISION] == 0.0
    assert free.gap == free.gaps[PRECISION]


@pytest.mark.parametrize("width", [0.0, 0.01, 0.03])
def test_prices_are_the_slopes_of_the_loss(width):
    """The price of a gap is what a little less of it costs."""
    sums = sums_of(crowd(600, seed=3), [PRECISION, "equal_opportunity"], Score(bins=32))

    def loss(at_most):
        asked = requirements_of({PRECISION: at_most, "equal_opportunity": 0.1}, (), sums.measures)
        return solve_program(sums, asked, tolerance=1e-7)

    found, step = loss(width), 1e-3
    price = (loss(max(width - step, 0.0)).outcome.loss - loss(width + step).outcome.loss) / (
        width + step - max(width - step, 0.0)
    )
    slopes = sorted(
        (loss(max(width - a, 0.0)).outcome.loss - loss(width + b).outcome.loss) / (min(a, width) + b)
        for a, b in ((step, 0.0), (0.0, step))
        if min(a, width) + b > 0
    )
    assert price > 0
    assert slopes[0] * 0.99 - 1e-9 <= found.prices[PRECISION] <= slopes[-1] * 1.01 + 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("width", [0.02, 0.03, 0.05])
def test_prices_count_that_the_level_moves(seed, width):
    """Beside other requirements the best level moves with the gap, and prices, all of them, are still the slopes."""
    sums = sums_of(crowd(400, seed=seed), [PRECISION, "equalized_odds"], Score(bins=12))

    def found(by=0.0, probabilities=0.05):
        asked = requirements_of({PRECISION: width + by, "equalized_odds": probabilities}, (), sums.measures)
        return solve_program(sums, asked, tolerance=1e-7)

    here, step = found(), 1e-4
    losses = [found(by).outcome.loss for by in (-step, 0.0, step)]
    slopes = -np.diff(losses) / step
    assert min(slopes) * 0.99 - 1e-6 <= here.prices[PRECISION] <= max(slopes) * 1.01 + 1e-6
    fall = found(probabilities=0.05 - step).outcome.loss - found(probabilities=0.05 + step).outcome.loss
    others = sum(price for name, price in here.prices.items() if name != PRECISION)
    assert others == pytest.approx(fall / (2 * step), rel=0.02, abs=1e-3)


@pytest.mark.parametrize("requirement", ["floor", "budget"])
def test_a_known_level_is_one_row(requirement):
    """A floor or a budget of a fraction needs no search; its price is the slope of the loss."""
    sums = sums_of(crowd(seed=1), policy=Score())

    def found(level):
        asked = Floor(PRECISION, level) if requirement == "floor" else Budget(PRECISION, at_least=level)
        return solve_program(sums, [asked])

    level = 0.8
    here, step = found(level), 1e-5
    assert here.level is None
    value = sums.value + sums.among[:, :, None, :] * sums.origin
    top, bottom = (np.einsum("zsd,zsd->z", value[..., j], here.q) for j in (0, 1))
    means = top / bottom if requirement == "floor" else [top.sum() / bottom.sum()]
    assert min(means) == pytest.approx(level, abs=1e-7)
    slope = (found(level + step).outcome.loss - found(level - step).outcome.loss) / (2 * step)
    assert slope > 0
    assert sum(here.prices.values()) == pytest.approx(slope, rel=1e-4)


def test_floor_at_the_baseline():
    """The baseline's precision of every group is kept; where it counts nobody there is none to keep."""
    table = crowd(seed=2)
    sums = sums_of(table, [PRECISION, "decision"], Score())
    policy = solve(sums, gap={"decision": 0.0}, constraints=[Floor(PRECISION, "baseline")], random_state=0)
    for z, group in enumerate(sums.groups):
        assert policy.means[PRECISION][group] >= sums.baseline.means[z, 0] - 1e-9
    none = sums_of(table | {"score": np.where(table["group"] == "a", 0.0, table["score"])})
    assert np.isnan(none.baseline.means[0, 0])
    assert none.baseline.gaps[0] == 0.0
    with pytest.raises(
        ConstraintError, match="Nobody of the group 'a' is counted by 'precision' under the baseline"
    ):
        solve(none, gap={}, constraints=[Floor(PRECISION, "baseline")])


def test_one_level_is_searched_for():
    """Two fractions that are compared are one too many, by name; a floor of the second will do."""
    sums = sums_of(crowd(), [PRECISION, "negative_predictive_parity"], Score())
    words = "'precision' at most 0 and gap of 'negative predictive value' at most 0"
    with pytest.raises(ConstraintError, match=words) as refused:
        solve(sums, gap=0.0)
    assert "Floor" in refused.value.remedy
    kept = solve(
        sums, gap={PRECISION: 0.0}, constraints=[Floor("negative_predictive_parity", 0.6)], random_state=0
    )
    assert kept.gaps[PRECISION] < 1e-7
    assert min(kept.means["negative predictive value"].values()) >= 0.6 - 1e-9


def test_conflicts_are_irreducible_and_in_words():
    """Requirements that conflict with a fraction are named, and none that does not."""
    sums = sums_of(crowd(), [PRECISION, "decision", "equal_opportunity"], Score())
    with pytest.raises(InfeasibleError) as refused:
        solve(
            sums,
            gap={PRECISION: 0.001, "equal_opportunity": 0.9},
            constraints=[Floor("decision", 0.95)],
        )
    words = refused.value.conflict
    assert len(words) == 2
    assert "gap of 'precision' at most 0.001" in words
    assert all("true positive rate" not in part for part in words)
    assert sum("'decision' of group" in part for part in words) == 1
    solve(sums, gap={PRECISION: 0.001}, random_state=0)  # each of them alone can be met
    solve(sums, gap={}, constraints=[Floor("decision", 0.95)], random_state=0)


def test_least_gap_that_is_named_can_be_reached():
    """When no policy reaches a gap, asking for the least one that the message names succeeds."""
    table = {
        "group": np.array(["a"] * 8 + ["b"] * 8),
        "score": np.full(16, 0.75),
        "y": np.array([1, 0, 0, 0, 0, 0, 0, 0] + [1] * 6 + [0] * 2),
    }
    sums = sums_of(table)
    with pytest.raises(InfeasibleError, match=r"least reachable gap is 0\.625") as refused:
        solve(sums, gap=0.1)
    assert solve(sums, gap=refused.value.least_gap * (1 + 1e-6)).gap == pytest.approx(0.625, abs=1e-6)


def test_somebody_is_counted_in_every_group():
    """Parity is not met by deciding against a whole group: at least one person of it is counted."""
    table = crowd(seed=5)
    table["y"] = np.where(table["group"] == "a", 0, 1)  # precision 0 and 1
    sums = sums_of(table, [PRECISION, "decision"], Score())
    with pytest.raises(InfeasibleError, match="least reachable gap is 1"):
        solve(sums, gap={PRECISION: 0.5})
    policy = solve(sums, gap={}, constraints=[Floor(PRECISION, 0.0, groups=["a"])], random_state=0)
    people_a = float(sums.mass[0].sum())
    assert policy.means[COUNTED]["a"] * people_a == pytest.approx(1.0, abs=1e-5)


def test_few_who_are_left_are_noted():
    """A policy that counts less than half as many of a group as the baseline says so, and names a Floor that helps."""
    table = crowd(seed=4)
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": PRECISION}
    asked = {"gap": 0.0, "random_state": 0, "constraints": [Floor(PRECISION, 0.93)]}
    policy = solved(table, **roles, **asked)
    noted = [sentence for sentence in policy.sentences() if sentence.startswith("Few are left")]
    assert len(noted) == 1
    assert f"add a floor of '{COUNTED}' at its baseline" in noted[0]
    assert policy.cautions()[0] == noted[0]  # what a fit warns of
    assert " % instead of " in noted[0]
    baseline = sums_of(table, policy=Score()).baseline.means[:, 1]
    least = min(policy.means[COUNTED][z] / now for z, now in zip(("a", "b"), baseline, strict=True))
    assert least < 0.5
    kept = solved(table, **roles, gap=0.05, constraints=[Floor(COUNTED, "baseline")], random_state=0)
    assert not any(sentence.startswith("Few are left") for sentence in kept.sentences())


@examples
@given(people(), st.sampled_from([0.5, 0.8, 1.0]))
def test_a_ratio_of_fractions_against_a_fine_grid(table, ratio):
    """The same search finds the level of a ratio: all fractions between ratio times t and t."""
    sums = sums_of(table)
    naive = Naive(sums)
    grid = [naive.solved([Ratio(PRECISION, ratio, min_people=0)], t) for t in np.linspace(0, 1, 121)]
    best = min((one[0] for one in grid if one is not None), default=None)
    try:
        found = solve_program(sums, [Ratio(PRECISION, ratio)], tolerance=1e-7)
    except InfeasibleError:
        assert best is None
        return
    assert best is None or found.outcome.loss <= best + 1e-6
    means = found.outcome.means[:, 0]
    assert means.min() >= ratio * means.max() - 1e-6


def test_price_of_a_ratio():
    """What a little more of a ratio costs."""
    sums = sums_of(crowd(seed=3), policy=Score())
    ratio, step = 0.995, 1e-3
    here, less, more = (
        solve_program(sums, [Ratio(PRECISION, r)], tolerance=1e-9)
        for r in (ratio, ratio - step, ratio + step)
    )
    slopes = sorted(
        [(more.outcome.loss - here.outcome.loss) / step, (here.outcome.loss - less.outcome.loss) / step]
    )
    assert slopes[0] * 0.99 <= here.prices[next(iter(here.prices))] <= slopes[1] * 1.01
    assert slopes[0] > 0


@examples
@given(people(), st.integers(0, 2**16))
def test_sites_add(table, seed):
    """Sums of two parts are those of the whole, and so is the policy."""
    dollars = Happiness("decision * loan", among="decision == 1", name="dollars")
    part = np.random.default_rng(seed).random(len(table["y"])) < 0.5
    groups = sorted(set(table["group"].tolist()))
    halves = [{name: column[rows] for name, column in table.items()} for rows in (part, ~part)]
    halves = [half for half in halves if len(half["y"])]
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "groups": groups}
    both, whole = (
        sum(aggregate(one, happiness=[dollars, PRECISION], classes=[0, 1], **roles) for one in some)
        for some in (halves, [table])
    )
    np.testing.assert_allclose(both.baseline.means, whole.baseline.means, rtol=1e-9, atol=1e-12)
    for name in ("value", "among", "baseline_value"):
        around = both.around(whole.origin)
        np.testing.assert_allclose(getattr(around, name), getattr(whole, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_agree(engine):
    """A table that stays where it is gives the same sums, by expressions that look at x and by those that do not."""
    import polars as pl

    table = crowd(300)
    frame = pl.DataFrame({name: column.tolist() for name, column in table.items()})
    lazy = frame.lazy()
    if engine == "duckdb":
        import duckdb

        lazy = duckdb.sql("select * from frame")
    dollars = Happiness(
        "decision * loan", among="decision == 1 and loan > 2000", name="dollars", bounds=(3000.0, 8000.0)
    )
    for happiness in (PRECISION, [dollars, "negative_predictive_parity"]):
        here, there = sums_of(table, happiness), sums_of(lazy, happiness)
        assert there.measures == here.measures
        around = there.around(here.origin)
        np.testing.assert_allclose(around.value, here.value, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(there.baseline.means, here.baseline.means, rtol=1e-12)
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": PRECISION, "gap": 0.05}
    assert solved(table, policy="individual", random_state=0, **roles).gap <= 0.05 + 1e-7


def test_individual_policies_keep_the_gap():
    """On the rows it was fitted on an individual policy keeps the gap, at no more loss than its own pool needs."""
    table = crowd(800)
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": PRECISION}
    free, tight = (solved(table, policy="individual", gap=gap, random_state=0, **roles) for gap in ({}, 0.01))
    assert tight.gap <= 0.01 + 1e-7
    assert free.search.plug_in_optimum <= tight.search.plug_in_optimum + 1e-9
    probabilities = tight.probabilities(table["score"], table["group"], table)[:, 1]
    found = naive(table, probabilities, lambda d, i: table["y"][i] == 1, lambda d, i: d == 1)
    assert found == pytest.approx(tight.means[PRECISION], abs=1e-9)
    cells = solved(table, gap=0.01, random_state=0, **roles)
    assert tight.loss <= cells.loss + 0.01


def test_files_round_trip():
    """Aggregates and policies of both kinds come back as they were, also where nobody is counted under the baseline."""
    table = crowd(200)
    table["score"] = np.where(table["group"] == "a", table["score"] * 0.49, table["score"])
    happiness = [PRECISION, Happiness("decision * loan", among="decision == 1", name="dollars", unit="$")]
    sums = sums_of(table, happiness)
    assert np.isnan(sums.baseline.means[0, 0])
    again = Aggregates.from_json(sums.to_json())
    assert again.measures == sums.measures
    assert np.array_equal(again.value, sums.value)
    roles = {"score": "score", "y": "y", "sensitive_features": "group", "happiness": happiness}
    for kind in ("score", "individual"):
        policy = solved(table, policy=kind, gap={"dollars": 500.0}, random_state=0, **roles)
        twin = Policy.from_json(policy.to_json())
        assert twin.to_json() == policy.to_json()
        assert twin.measures == policy.measures
        assert np.isnan(twin.basis.baseline.means[0, 0])
        probabilities = [one.probabilities(table["score"], table["group"], table) for one in (policy, twin)]
        assert np.array_equal(*probabilities)
    wrong = replace(policy.outcome, means=np.where(np.arange(4) == 2, np.nan, policy.outcome.means))
    with pytest.raises(
        PolicyFileError, match="means is not finite"
    ):  # of who is counted there is always a number
        Policy.from_json(replace(policy, outcome=wrong).to_json())


def test_who_is_counted_is_0_or_1():
    """An among of other numbers is refused, by name."""
    table = crowd(50)
    with pytest.raises(
        HappinessError, match="`among` of the happiness 'x' returned numbers other than 0 and 1"
    ):
        sums_of(table, Happiness("decision", among="decision * loan", name="x"))


def test_the_name_of_a_denominator_is_taken():
    """A denominator keeps the name of what it belongs to; the same name twice is the user's own measure."""
    table = crowd(50)
    own = Happiness("decision == 1", name=COUNTED)
    sums = sums_of(table, [PRECISION, own])
    assert [measure.name for measure in sums.measures] == [PRECISION, COUNTED]
    assert sums.baseline.means[:, 0] == pytest.approx(sums_of(table).baseline.means[:, 0])


@pytest.mark.parametrize("decisions", [None, ["good", "fair", "bad"]])
def test_criteria_of_several_classes(decisions):
    """Who truly is of the last class, among those decided so, and the others: whichever is best for the person."""
    rng = np.random.default_rng(0)
    classes = np.array(["bad", "fair", "good"])
    y, d, z = classes[rng.integers(0, 3, 90)], classes[rng.integers(0, 3, 90)], np.array(["a", "b"] * 45)
    table = {"y": y, "d": d, "z": z}
    sums = aggregate(
        table,
        predicted="d",
        policy="label",
        y="y",
        sensitive_features="z",
        happiness=[PRECISION, "negative_predictive_parity"],
        decisions=decisions,
    )
    best = "good"
    for i, group in enumerate("ab"):
        inside = z == group
        yes, no = inside & (d == best), inside & (d != best)
        assert sums.baseline.means[i, 0] == pytest.approx((y[yes] == best).mean())
        assert sums.baseline.means[i, 1] == pytest.approx((y[no] != best).mean())


def test_gap_of_a_union_is_of_its_sums():
    """Unions of groups compare the sums of their members."""
    sums = sums_of(crowd(600, groups=3), policy=FREE)
    unions = [
        replace(unions_of(sums.groups, ())[0], name="ab", members=(0, 1)),
        unions_of(sums.groups, ())[2],
    ]
    shares = shares_of(unions, sums.counted[:, 1])
    said = Goal("gap", 0, "gap", shares, ("ab", "c"), over=1)
    fraction = fraction_of(sums, said)
    q = np.random.default_rng(0).dirichlet((1, 1), sums.mass.shape)
    value = sums.value + sums.among[:, :, None, :] * sums.origin
    top, bottom = fraction.parts(sums.linear_means(q))
    total = np.einsum("zsdj,zsd->zj", value, q)
    assert top / bottom == pytest.approx(
        [total[:2, 0].sum() / total[:2, 1].sum(), total[2, 0] / total[2, 1]], rel=1e-12
    )


def test_gap_as_a_constraint_stands_for_the_gap():
    """Gap(...) of a fraction and gap= ask for the same."""
    sums = sums_of(crowd(), policy=Score())
    one = solve(sums, gap={PRECISION: 0.02}, random_state=0)
    other = solve(sums, gap={}, constraints=[Gap(PRECISION, 0.02)], random_state=0)
    assert np.array_equal(one.q, other.q)
