"""The cost of changes: what is minimised, what "auto" takes, and who is changed, gains and loses, by naive loops."""

import numpy as np
import pytest
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st
from naive import as_duckdb, as_polars
from naive_program import Naive
from strategies import examples

from felicific import Gap, Policy, Score, aggregate, frontier, solve
from felicific._files import read_document, write_document
from felicific.exceptions import AggregatesError, DataError, InfeasibleError, PolicyFileError

ROLES = {"sensitive_features": "sex", "y": "repaid"}
SEEDS = st.integers(0, 10_000)


def people(seed, n=60, own_baseline=True, groups="fm"):
    """Loans of people with few distinct scores; the present decisions are the model's unless they are drawn."""
    rng = np.random.default_rng(seed)
    score = rng.choice([0.1, 0.2, 0.4, 0.6, 0.7, 0.9], n)
    return {
        "id": np.arange(n) + 1000 * seed,
        "sex": np.array(list(groups), dtype=object)[np.arange(n) % len(groups)],
        "score": score,
        "repaid": (rng.random(n) < score).astype(int),
        "loan": rng.choice([-2.0, 0.0, 1.0, 5.0], n),
        "now": (score > 0.5).astype(int) if own_baseline else rng.integers(0, 2, n),
        "weight": np.ones(n),
    }


def naive_costs(table, cost):
    """What every decision costs everybody beside the loss; "auto" by who stands where in the person's own group."""
    found = np.zeros((len(table["score"]), 2))
    for i, (group, score, now) in enumerate(zip(table["sex"], table["score"], table["now"], strict=True)):
        below = same = refused = whole = 0.0
        for other, its, theirs, weight in zip(
            table["sex"], table["score"], table["now"], table["weight"], strict=True
        ):
            if other == group:
                whole += weight
                below += weight * (its < score)
                same += weight * (its == score)
                refused += weight * (theirs == 0)
        place, border = (below + same / 2) / whole, refused / whole  # as if the refused had the lowest scores
        for d, between in enumerate((max(place - border, 0.0), max(border - place, 0.0))):
            if d != now:
                found[i, d] = 0.1 * (1 + 20 * between) if cost == "auto" else cost
    return found


def paid(policy, table):
    """Loss plus cost of changes, from the probabilities of everybody."""
    probabilities = policy.probabilities(table["score"], table["sex"] if policy.sees_group else None)
    loss = 1.0 - probabilities[np.arange(len(probabilities)), table["repaid"]]
    assert policy.loss == pytest.approx(
        np.average(loss, weights=table["weight"]), abs=1e-12
    )  # the loss alone
    costs = (probabilities * naive_costs(table, policy.change_cost)).sum(axis=1)
    return np.average(loss + costs, weights=table["weight"])


@examples
@given(
    SEEDS,
    st.sampled_from([0.0, 0.05, 0.3, 2.0, "auto", "auto"]),
    st.sampled_from([0.0, 0.4, 5.0]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["fm", "fmx", "fmfmfmfmfmfmfmfmfmfmfmfmx"]),  # of the last few have every score
    st.booleans(),
)
def test_least_loss_plus_cost_of_changes(seed, cost, gap, own_baseline, sees_group, groups, weighted):
    """What is minimised is the loss and so much for everybody whose decision changes: by another solver."""
    table = people(seed, own_baseline=own_baseline, groups=groups)
    if weighted:
        table["weight"] = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(table["score"]))
    sums = aggregate(
        table, score="score", happiness="decision * loan", baseline="now", sample_weight="weight", **ROLES
    ).joined()
    policy = solve(sums, gap=gap, change_cost=cost, sees_group=sees_group, random_state=0)
    naive = Naive(sums, sees_group=sees_group, change_cost=cost)
    assert policy.change_cost == cost
    assert paid(policy, table) == pytest.approx(
        naive.least([Gap("decision * loan", gap, min_people=0)]), abs=1e-8
    )
    assert max(policy.gaps.values()) <= gap + 1e-8


@examples
@given(SEEDS, st.booleans(), st.sampled_from([0.0, 0.3]))
def test_shares_of_people_changed_gaining_and_losing(seed, own_baseline, gap):
    """Who is changed, gains and loses at each of the three points is what a loop over everybody counts."""
    table = people(seed, own_baseline=own_baseline)
    asked = {
        "score": "score",
        "baseline": "now",
        "happiness": {"funding": "decision * loan", "right": "decision == y"},
    }
    policy = solved(table, gap={"funding": gap}, change_cost=0.1, random_state=0, **asked, **ROLES)
    free = solved(table, gap={}, change_cost=0.1, random_state=0, **asked, **ROLES)
    points = policy.outcomes
    assert list(points) == ["baseline", "unconstrained", "proposed"]
    baseline = np.eye(2)[table["now"]]
    for name, probabilities in (
        ("baseline", baseline),
        ("unconstrained", free.probabilities(table["score"], table["sex"])),
        ("proposed", policy.probabilities(table["score"], table["sex"])),
    ):
        point = points[name]
        for z, group in enumerate(("f", "m")):
            mine = [i for i in range(len(probabilities)) if table["sex"][i] == group]
            changed, gains, loses = 0.0, np.zeros(2), np.zeros(2)
            for i in mine:
                for d in (0, 1):
                    worth = [np.array([e * table["loan"][i], float(e == table["repaid"][i])]) for e in (0, 1)]
                    changed += probabilities[i, d] * (d != table["now"][i])
                    gains += probabilities[i, d] * (worth[d] > worth[table["now"][i]])
                    loses += probabilities[i, d] * (worth[d] < worth[table["now"][i]])
            assert point.changed[z] == pytest.approx(changed / len(mine), abs=1e-9)
            assert point.gains[z] == pytest.approx(gains / len(mine), abs=1e-9)
            assert point.loses[z] == pytest.approx(loses / len(mine), abs=1e-9)


@pytest.mark.parametrize("make", [as_duckdb, as_polars])
@pytest.mark.parametrize("named", ["now", None])
def test_engines_count_the_same_who_gain_and_lose(make, named):
    """Sums of who gains and who loses are the same numbers on an engine, of what looks at x and of what does not."""
    table = people(3, n=200, own_baseline=False)
    asked = {
        "score": "score", "baseline": named, "policy": Score(6),
        "happiness": {"funding": "decision * loan", "selected": "decision"},
    }  # fmt: skip
    here, there = aggregate(table, **asked, **ROLES), aggregate(make(table), **asked, **ROLES)
    for name in ("gains", "loses", "baseline_mass"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    assert here.gains[..., 0].sum() > 0
    assert here.loses[..., 0].sum() > 0


def test_auto_charges_one_score_of_two_classes_and_the_error_rate():
    """Through every door alike, and nothing else: no other loss, signal, order, or decisions that are listed."""
    table, asked = people(1, n=400), {"happiness": "decision", **ROLES}
    scored = asked | {"score": "score"}
    sums = aggregate(table, **scored)
    by_all = {"gap": 0.1, "change_cost": "auto", "random_state": 0}
    policies = [
        solve(found, **by_all) for found in (sums, aggregate(as_duckdb(table), **scored), sums + sums)
    ]
    for policy in (
        *policies,
        solved(table, **scored, **by_all),
        frontier(sums, change_cost="auto").at(gap=0.1),
    ):
        assert policy.change_cost == "auto"
        assert policy.q == pytest.approx(policies[0].q, abs=1e-9)
    missing = table | {"repaid": [None, *table["repaid"][1:].tolist()]}
    for changed in (
        {"policy": "label"},
        {"policy": "soft-label"},
        {"policy": Score(monotone=False)},
        {"loss": [[0.0, 1.0], [10.0, 0.0]]},
        {"loss": "changes"},
        {"decisions": [5, 7], "loss": [[0.0, 1.0], [1.0, 0.0]]},
        {"missing_labels": "at_random"},
    ):
        rows = missing if "missing_labels" in changed else table
        assert solve(aggregate(rows, **scored | changed), gap=1.0, change_cost="auto").change_cost == 0.0


def test_auto_mixes_neighbouring_thresholds():
    """Where one group has to come down into its ROC curve, a flat cost randomizes all of it, "auto" few."""
    rng = np.random.default_rng(0)
    sex, score = np.where(rng.random(4000) < 0.5, "f", "m"), rng.random(4000)
    chance = np.where(sex == "f", score, 0.02 + 0.96 * score)  # of the m the score tells a little less
    table = {"sex": sex, "score": score, "repaid": (rng.random(4000) < chance).astype(int)}
    asked = {"score": "score", "happiness": "equalized_odds", "gap": 0.0, "random_state": 0, **ROLES}
    drawn = {cost: solved(table, change_cost=cost, **asked).share_drawn for cost in (0.1, "auto")}
    assert drawn["auto"] < drawn[0.1] / 3


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), "none", True, None, [1.0]])
def test_a_cost_that_is_none_is_refused(bad):
    """A cost of changes is "auto" or a finite number that is not negative."""
    with pytest.raises(DataError, match=r"change_cost is .* 0 or more"):
        solved(people(1), change_cost=bad, score="score", happiness="decision", **ROLES)


def test_sums_without_a_baseline_refuse_a_cost():
    """Where sums have no baseline, a cost of changes is refused, and a policy without one is not."""
    sums = aggregate(people(1), score="score", happiness="decision", **ROLES).without("baseline_mass")
    for cost in (0, "auto"):  # which charges nothing then
        assert solve(sums, gap=0.0, change_cost=cost).outcomes["proposed"].changed is None
    for door in (solve, frontier):
        with pytest.raises(AggregatesError, match=r"have no baseline.*change_cost=0"):
            door(sums, gap={}, change_cost=0.1)


@examples
@given(SEEDS, st.sampled_from([0.05, 0.3, "auto"]))
def test_the_frontier_is_that_of_the_sum(seed, cost):
    """At every gap the frontier is as good as the program; its value is convex, its loss is the loss alone."""
    table = people(seed, own_baseline=False)
    sums = aggregate(table, score="score", happiness="decision * loan", baseline="now", **ROLES)
    line = frontier(sums, change_cost=cost)
    assert line.change_cost == cost
    assert (np.diff(line.value) < 0).all()
    assert line.value == pytest.approx([paid(policy, table) for policy in line.policies], abs=1e-12)
    for tau in np.linspace(line.tau[0], line.tau[-1] * 1.2 + 0.1, 5):
        asked = solve(sums, gap={"decision * loan": float(tau) + 1e-9}, change_cost=cost)
        assert paid(line.at(tau=float(tau)), table) == pytest.approx(paid(asked, table), abs=1e-6)
        assert line.at(tau=float(tau)).change_cost == cost


def test_a_loss_on_a_frontier_with_a_cost_is_found_exactly_or_refused():
    """The loss along such a frontier may rise again: of its policies with that loss or less, the least gap is found."""
    rising = 0
    for seed in range(40):
        sums = aggregate(people(seed), score="score", happiness="decision * loan", **ROLES)
        line = frontier(sums, change_cost=0.3)
        rising += bool((np.diff(line.loss) > 1e-9).any())
        fine = np.unique(np.concatenate([np.linspace(line.tau[0], line.tau[-1], 400), line.tau]))
        losses = np.array([policy.loss for policy in line.policies_at(fine)])
        for allowed in (losses.min(), (losses.min() + losses.max()) / 2, losses.max() + 0.1):
            tau = line.position(loss=float(allowed))
            assert line.at(tau=tau).loss <= allowed + 1e-9
            assert tau <= fine[losses <= allowed + 1e-12][0] + 1e-9
            assert (losses[fine < tau - 1e-9] > allowed - 1e-9).all()
        with pytest.raises(InfeasibleError, match="No policy on this frontier"):
            line.position(loss=float(losses.min()) - 0.01)
    assert rising  # it does happen


def test_changes_alone_need_no_label():
    """loss="changes" gives the same policy with labels and without; it changes as few as a small program does."""
    for seed in range(5):
        table = people(seed)
        asked = {
            "score": {0: "p0", 1: "score"},
            "happiness": "decision * loan",
            "loss": "changes",
            "gap": 0.3,
        }
        table["p0"] = 1.0 - table["score"]
        both = [
            solved(table, y=y, sensitive_features="sex", random_state=0, **asked) for y in ("repaid", None)
        ]
        assert np.array_equal(both[0].q, both[1].q)
        blank = {name: column for name, column in table.items() if name != "repaid"}
        on_engine = solved(as_duckdb(blank), sensitive_features="sex", random_state=0, **asked)
        assert on_engine.loss == pytest.approx(both[0].loss, abs=1e-12)
        share = np.mean([both[1].outcome.changed[z] for z in (0, 1)])  # groups of equal size
        assert both[1].loss == pytest.approx(share, abs=1e-12)
        assert both[1].outcomes["unconstrained"].loss == 0.0
        # At a cost that leaves errors no say, the naive program finds the fewest changes too.
        sums = aggregate(table, score="score", happiness="decision * loan", **ROLES).joined()
        fewest = Naive(sums, change_cost=1e6).least([Gap("decision * loan", 0.3, min_people=0)]) / 1e6
        assert both[1].loss == pytest.approx(fewest, abs=2e-6)


@pytest.mark.parametrize("make", [dict, as_duckdb])
def test_what_looks_at_labels_needs_them(make):
    """Without labels a loss or a happiness that looks at them is refused by name, on every engine."""
    table = make({name: column for name, column in people(1).items() if name != "repaid"})
    asked = {"score": "score", "baseline": "now", "sensitive_features": "sex"}
    with pytest.raises(DataError, match=r"There are no labels y, and the loss looks at them.*loss='changes'"):
        solved(table, happiness="decision", **asked)
    with pytest.raises(DataError, match=r"the happiness 'true positive rate' looks at them"):
        aggregate(table, happiness="equalized_odds", loss="changes", **asked)
    with pytest.raises(DataError, match=r"which classes there are\. Pass classes="):
        aggregate(table, happiness="decision", loss="changes", score="score", sensitive_features="sex")


@pytest.mark.parametrize("cost", [0.1, "auto"])
def test_files_remember_the_cost_and_the_three_points(cost):
    """A policy file holds the cost and the three points; one without them, or with nonsense, is refused."""
    policy = solved(
        people(2),
        score="score",
        happiness="decision * loan",
        gap=0.3,
        change_cost=cost,
        random_state=0,
        **ROLES,
    )
    text = policy.to_json()
    back = Policy.from_json(text)
    assert back.change_cost == cost
    assert back.sentences() == policy.sentences()
    more = ", and 0.02 more for each 1 % of the group between the person and the model's border"
    words = f"A changed decision counts 0.1 beside the loss{more * (cost == 'auto')}."
    assert words in back.sentences()
    assert back.impact() == policy.impact()
    for name, point in policy.outcomes.items():
        for part in ("loss", "means", "gaps", "changed", "gains", "loses"):
            assert np.array_equal(getattr(back.outcomes[name], part), getattr(point, part)), (name, part)
    content = read_document(text)
    whole = content["basis"]
    for part in ("unconstrained", "change_cost"):
        with pytest.raises(PolicyFileError):
            Policy.from_json(
                write_document(
                    content | {"basis": {name: one for name, one in whole.items() if name != part}}
                )
            )
    for part, wrong in (("change_cost", -1.0), ("unconstrained", {"loss": 0.0}), ("change_cost", "none")):
        with pytest.raises(PolicyFileError):
            Policy.from_json(write_document(content | {"basis": whole | {part: wrong}}))
    with pytest.raises(PolicyFileError, match="no share of people"):
        Policy.from_json(write_document(content | {"changed": [2.0, 0.0]}))


def test_the_words_tell_tuning_and_fairness_apart():
    """The impact speaks of tuning, of fairness, and of who gains and loses, with the numbers of the points."""
    policy = solved(
        people(2),
        score="score",
        happiness="decision * loan",
        gap=0.3,
        change_cost=0.1,
        random_state=0,
        **ROLES,
    )
    tuning, fairness, who = policy.impact()
    baseline, free, proposed = policy.outcomes.values()
    assert f"accuracy {1 - baseline.loss:.2%} -> {1 - free.loss:.2%}" in tuning
    assert f"{free.changed[0]:.2%} of group 'f'" in tuning
    assert f"accuracy {1 - free.loss:.2%} -> {1 - proposed.loss:.2%}" in fairness
    assert f"in group 'm' {proposed.gains[1, 0]:.2%} gain and {proposed.loses[1, 0]:.2%} lose" in who


def test_a_cost_of_nothing_is_not_spoken_of():
    """The default of solve and frontier is "auto"; with 0 nothing is said, and nothing but the loss counts."""
    table = people(4)
    asked = {"score": "score", "happiness": "decision * loan", "random_state": 0, **ROLES}
    plain = solved(table, gap=0.3, change_cost=0, **asked)
    assert not any("beside the loss" in sentence for sentence in plain.sentences())
    constrained = solved(table, constraints=[Gap("decision * loan", 0.3)], gap={}, change_cost=0, **asked)
    assert constrained.loss == plain.loss
    sums = aggregate(table, score="score", happiness="decision * loan", **ROLES)
    assert solve(sums, gap=0.3).change_cost == frontier(sums).change_cost == "auto"
