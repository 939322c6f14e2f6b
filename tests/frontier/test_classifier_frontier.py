"""The frontier of a fitted classifier: every policy kind, other people, and moving along it."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import fair_classifier
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Floor, Happiness, Individual, Policy, aggregate, frontier
from felicific._fit.fitted import achieved
from felicific._frontier.curve import kinks_of
from felicific._program.generation import Generator
from felicific.exceptions import AggregatesError, DataError, InfeasibleError

KINDS = ("score", "label", "soft-label", "individual")


def population(seed, n=500):
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "b", "a")
    score = rng.normal(size=n) + 0.5 * (group == "a")
    table = pd.DataFrame({"score": score, "size": rng.lognormal(sigma=0.5, size=n), "group": group})
    return table, (rng.random(n) < 1 / (1 + np.exp(-1.5 * score))).astype(int)


def funding(decision, x):
    return decision * x["size"]


def fitted(policy, gap=0.0, happiness=funding, seed=1, **settings):
    table, y = population(seed)
    model = LogisticRegression().fit(table[["score", "size"]], y)
    fair = fair_classifier(
        FrozenEstimator(model),
        happiness=happiness,
        gap=gap,
        policy=policy,
        sensitive_features="group",
        random_state=0,
        **settings,
    )
    return fair.fit(table, y), table, y


def measured(fair, table, y):
    """Loss, gap and share of lotteries, person by person."""
    chance = fair.predict_proba(table)
    loss = (1 - chance[np.arange(len(y)), y]).mean()
    worth = chance[:, 1] * table["size"].to_numpy()
    means = [worth[table["group"].to_numpy() == group].mean() for group in ("a", "b")]
    return loss, abs(means[0] - means[1]), (chance.max(axis=1) < 1).mean()


@pytest.mark.parametrize("policy", KINDS)
def test_every_place_is_what_it_says(policy):
    """The classifier moved to a gap keeps it, has the loss and lotteries it states, and no refit is better."""
    fair, table, y = fitted(policy)
    line = fair.frontier_
    assert (np.diff(line.loss) < 0).all()
    for share in (0.0, 0.3, 0.7, 1.0, 1.5):
        gap = float(share * line.tau[-1])
        moved = fair.at(gap=gap)
        loss, found, drawn = measured(moved, table, y)
        assert found <= gap + 1e-9
        assert moved.loss_ == pytest.approx(loss, abs=1e-12)
        assert moved.gaps_["funding"] == pytest.approx(found, abs=1e-12)
        assert moved.share_randomized_ == pytest.approx(drawn, abs=1e-12)
        again = clone(moved).fit(table, y)
        rise = line.loss[0] - line.loss[-1]
        if policy == "individual":
            assert moved.loss_ <= again.loss_ + 0.02 * rise
        else:
            assert moved.loss_ == pytest.approx(again.loss_, abs=1e-9)


@pytest.mark.parametrize("policy", KINDS)
def test_a_loss_is_a_place_too(policy):
    """The classifier moved to a loss has it, and the gap that the frontier states there."""
    fair, table, y = fitted(policy)
    line = fair.frontier_
    middle = float(line.loss[[0, -1]].mean())
    moved = fair.at(loss=middle)
    loss, gap, _ = measured(moved, table, y)
    assert loss == pytest.approx(middle, abs=1e-9)
    assert gap == pytest.approx(np.interp(-middle, -line.loss, line.tau), abs=1e-9)
    assert moved.gap == {"funding": pytest.approx(gap)}
    assert fair.gap == 0.0


def best_expected_loss(score, size, group, gap):
    """Least expected loss of any policy that sees everything: one probability of approval per person."""
    n = len(size)
    row = size * np.where(group == "a", 1 / (group == "a").sum(), -1 / (group == "b").sum())
    cost = (1 - 2 * score) / n
    found = linprog(cost, A_ub=[row, -row], b_ub=[gap, gap], bounds=(0, 1), method="highs")
    return found.fun + score.mean()


def test_individual_frontier_is_within_its_tolerance():
    """On people without labels, the frontier is within its tolerance of a program with a column per person."""
    fair, _, _ = fitted(Individual("none"))
    table, _ = population(2)
    line = fair.recalibrate(table).frontier_
    score = fair.estimator_.predict_proba(table[["score", "size"]])[:, 1]
    rise = line.loss[0] - line.loss[-1]
    for gap in np.linspace(0, 1.1 * line.tau[-1], 40):
        best = best_expected_loss(score, table["size"].to_numpy(), table["group"].to_numpy(), gap)
        found = line.at(gap=float(gap)).loss
        assert best - 1e-9 <= found <= best + line.tolerance * rise + 1e-9


def test_individual_frontier_is_nowhere_above_the_fitted_policy():
    """The policy that was fitted is one of the mixtures, so the frontier at its gap is no worse."""
    fair, _, _ = fitted("individual", gap=0.1)
    assert fair.frontier_.at(gap=0.1).loss <= fair.loss_ + 1e-12


@pytest.mark.parametrize("policy", ["score", "individual"])
def test_constraints_hold_all_along(policy):
    """A floor is kept at every breakpoint."""
    fair, table, _ = fitted(policy, constraints=[Floor("funding", "baseline")], gap=0.3)
    baseline = fair.estimator_.predict(table[["score", "size"]]) * table["size"].to_numpy()
    floor = [baseline[table["group"].to_numpy() == group].mean() for group in ("a", "b")]
    assert (fair.frontier_.means[:, :, 0] >= np.array(floor) - 1e-9).all()


def test_several_gaps_shrink_as_asked():
    """With a positive number for each gap the ray has their proportions, and the fitted policy is on it."""
    fair, _, _ = fitted(
        "score", gap={"funding": 0.2, "statistical_parity": 0.05}, happiness=[funding, "statistical_parity"]
    )
    names = [measure.name for measure in fair.frontier_.measures]
    assert fair.frontier_.ray[names.index("funding")] == 0.2
    moved = fair.at(gap={"funding": 0.2, "statistical_parity": 0.05})
    assert moved.loss_ == pytest.approx(fair.loss_, abs=1e-9)


@pytest.mark.parametrize("policy", KINDS)
def test_on_other_people_gaps_have_theirkinks_of(policy):
    """Between its points the curve is straight: it equals each blended policy, measured on those people."""
    fair, _, _ = fitted(policy)
    table, y = population(9)
    found = fair.frontier_on(table, y)
    line = fair.frontier_
    for tau in np.linspace(line.tau[0], line.tau[-1], 60):
        loss, gap, _ = measured(fair.at(gap=max(float(tau), 0.0)), table, y)
        assert np.interp(tau, found.tau, found.loss) == pytest.approx(loss, abs=1e-8)
        assert np.interp(tau, found.tau, found.gaps[:, 0]) == pytest.approx(gap, abs=1e-8)
    baseline = (fair.estimator_.predict(table[["score", "size"]]) != y).mean()
    assert found.baseline.loss == pytest.approx(baseline)


def test_curve_lists_the_kink_of_crossing_groups():
    """Where two groups change places the gap is 0, and the curve has that point."""
    x = np.arange(40.0)[:, None]
    group = np.arange(40) % 2
    score = np.column_stack([1 - (s := np.linspace(0.05, 0.95, 40)), s])

    def sums(shift):
        return aggregate(
            x,
            score=score,
            y=(s > 0.5).astype(int),
            sensitive_features=group,
            happiness=lambda decision, group: decision * (1.0 + group) + shift * group,
            policy="label",
        )

    found = frontier(sums(0.0)).on(sums(-0.25))
    assert found.kink.sum() == 1
    assert found.gaps[found.kink, 0] == pytest.approx([0.0], abs=1e-12)
    assert len(found.to_frame()) == len(found.tau)


def test_kinks_are_where_the_envelope_turns():
    """Only crossings at the top or the bottom count; those of lines between others do not."""
    assert kinks_of(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == [pytest.approx(0.5)]
    assert kinks_of(np.array([0.0, 1.0]), np.array([0.2, 0.5])) == []
    assert kinks_of(np.array([5.0, 1.0, 2.0, -5.0]), np.array([5.0, 2.0, 1.0, -5.0])) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        left, right = rng.normal(size=(2, 5))
        places = np.array([0.0, *kinks_of(left, right), 1.0])
        lines = (1 - places)[:, None] * left + places[:, None] * right
        for t in np.linspace(0, 1, 101):
            here = (1 - t) * left + t * right
            assert np.interp(t, places, np.ptp(lines, axis=1)) == pytest.approx(np.ptp(here), abs=1e-12)


def test_other_peoples_aggregates_must_match():
    """Aggregates of another signal or of other groups are refused."""
    x, group = np.arange(30.0)[:, None], np.arange(30) % 3
    settings = {
        "y": (x[:, 0] > 14).astype(int),
        "happiness": lambda decision, x: decision * x[:, 0],
        "score": np.column_stack([1 - x[:, 0] / 30, x[:, 0] / 30]),
    }
    line = frontier(aggregate(x, sensitive_features=group, policy="label", **settings))
    for wrong in (
        aggregate(x, sensitive_features=group, policy="soft-label", **settings),
        aggregate(x, sensitive_features=group + 1, policy="label", **settings),
        aggregate(x, sensitive_features=group, policy="label", loss=[[0, 1], [5, 0]], **settings),
    ):
        with pytest.raises(AggregatesError, match="disagree with the frontier"):
            line.on(wrong)
    with pytest.raises(AggregatesError, match="frontier_on"):
        fitted("individual")[0].frontier_.on(wrong)


def test_score_frontier_on_other_aggregates():
    """Other people's aggregates in the frontier's own cells give the same curve as people scored by the classifier."""
    fair, _, _ = fitted("score")
    table, y = population(9)
    others = aggregate(
        table,
        score=fair.estimator_.predict_proba(table[["score", "size"]]),
        y=y,
        sensitive_features="group",
        happiness=funding,
        policy=fair.policy_.signal,
    )
    found, expected = fair.frontier_.on(others), fair.frontier_on(table, y)
    assert found.loss == pytest.approx(expected.loss, abs=1e-12)
    assert found.gaps == pytest.approx(expected.gaps, abs=1e-12)
    assert found.baseline.loss == pytest.approx(expected.baseline.loss)


@pytest.mark.parametrize("policy", [kind for kind in KINDS if "label" not in str(kind)])
def test_rounded_classifiers_state_what_rounding_does(policy):
    """With randomize=False the moved classifier states the loss and gap of its rounded decisions."""
    fair, table, y = fitted(policy, randomize=False)
    moved = fair.at(gap=0.1)
    loss, gap, drawn = measured(moved, table, y)
    assert (moved.loss_, moved.gaps_["funding"]) == (pytest.approx(loss), pytest.approx(gap, abs=1e-12))
    assert moved.share_randomized_ == drawn == 0


@pytest.mark.parametrize("policy", KINDS)
def test_stored_classifiers_keep_no_people(policy):
    """A pickle holds no row of the data; a score policy moves on nevertheless, an individual one says why not."""
    fair, table, _ = fitted(policy)
    expected = fair.at(gap=0.1)
    stored = pickle.dumps(fair)
    assert len(stored) < len(pickle.dumps(table)) + 175_000
    for name in table.select_dtypes("number"):  # the sums alone are larger than so few people
        assert table[name].to_numpy().tobytes() not in stored, name
    again = pickle.loads(stored)
    assert "_people" not in vars(again)
    if policy in ("individual", "soft-label"):
        with pytest.raises(DataError, match="Fit it again"):
            again.at(gap=0.1)
        return
    moved = again.at(gap=0.1)
    assert np.array_equal(moved.predict(table), expected.predict(table))


@pytest.mark.parametrize("policy", KINDS)
def test_showing_a_classifier_solves_nothing_and_never_fails(policy):
    """In a notebook every attribute is evaluated: fitted, stored, recalibrated or moved, none is dear or raises."""
    fair, table, y = fitted(policy)
    moved = fair.at(gap=0.1)
    for shown in (
        clone(fair).fit(table, y),
        pickle.loads(pickle.dumps(fair)),
        fair.recalibrate(population(3)[0]),
        moved,
    ):
        assert "frontier_" in shown._repr_html_()
        assert "loss_" in dir(shown)
        assert shown is moved or "_line" not in vars(shown.frontier_)


@pytest.mark.parametrize("policy", KINDS)
def test_copies_in_memory_move_on(policy):
    """A copy has the people too, and is left alone by what happens to the original."""
    fair, table, y = fitted(policy)
    expected = fair.at(gap=0.1).predict(table)
    shallow, deep = copy.copy(fair), copy.deepcopy(fair)
    fair.set_params(gap=0.3).fit(table[::-1], y)
    for other in (shallow, deep):
        assert (other.at(gap=0.1).predict(table) == expected).all()


@pytest.mark.parametrize("policy", KINDS)
def test_moving_forgets_no_gap(policy):
    """Moved by one of two gaps or by a loss, the classifier's own gap names both, and a refit gets there."""
    fair, table, y = fitted(policy, happiness=[funding, right, "statistical_parity"], gap=asked(0.3, 0.1))
    line = fair.frontier_
    for place in ({"gap": {"funding": 0.15}}, {"gap": 0.03}, {"loss": float(line.loss.mean())}):
        moved = fair.at(**place)
        assert set(moved.gap) == {"funding", "selection rate"}
        assert all(moved.gaps_[name] <= width + 1e-9 for name, width in moved.gap.items())
        assert moved.gap["selection rate"] == pytest.approx(moved.gap["funding"] / 3)
        if policy != "individual":
            assert clone(moved).fit(table, y).loss_ == pytest.approx(moved.loss_, abs=1e-9)
        new, _ = population(3)
        again = moved.recalibrate(new)
        assert all(again.gaps_[name] <= width + 1e-9 for name, width in moved.gap.items())


@pytest.mark.parametrize("policy", KINDS)
def test_identical_groups_stay_together(policy):
    """Where no gap is open, any gap is the same place."""
    table, y = population(1, 200)
    table = pd.concat([table.assign(group="a"), table.assign(group="b")], ignore_index=True)
    fair = FairClassifier(
        FrozenEstimator(LogisticRegression().fit(table[["score", "size"]], np.tile(y, 2))),
        gap=0.0,
        happiness=[funding, "equalized_odds"],
        policy=policy,
        sensitive_features="group",
    ).fit(table, np.tile(y, 2))
    assert len(fair.frontier_) == 1
    for gap in (0.0, 0.1, np.inf):
        moved = fair.at(gap=gap)
        assert moved.loss_ == pytest.approx(fair.loss_, abs=1e-12)
        assert moved.recalibrate(table).loss_ == pytest.approx(fair.loss_, abs=1e-9)


def right(decision, y):
    return (decision == y) * 1.0


def asked(funding, parity):
    return {"funding": funding, "statistical_parity": parity}


def test_an_infinite_gap_is_not_closed():
    """A measure that may have any gap is measured, on the frontier as in the fit."""
    fair, _, _ = fitted(
        "score", happiness=[funding, "statistical_parity"], gap={"funding": 0.2, "statistical_parity": np.inf}
    )
    assert np.isfinite(fair.frontier_.ray).tolist() == [True, False]
    assert fair.at(gap=0.2).loss_ == pytest.approx(fair.loss_, abs=1e-9)


@pytest.mark.parametrize("policy", KINDS)
def test_policies_on_the_frontier_do_what_they_state(policy):
    """Also when the classifier rounds, those of the frontier are lotteries, with the outcome of lotteries."""
    fair, table, y = fitted(policy, randomize="label" in str(policy))
    line = fair.frontier_
    scores = fair.estimator_.predict_proba(table[["score", "size"]])
    scores = fair.estimator_.predict(table[["score", "size"]]) if policy == "label" else scores
    for place, loss in zip(line.policies, line.loss, strict=True):
        chance = place.probabilities(scores, table["group"], table)
        assert (1 - chance[np.arange(len(y)), y]).mean() == pytest.approx(loss, abs=1e-12)
        assert place.loss == pytest.approx(loss, abs=1e-12)
        assert place.salt == fair.policy_.salt
    assert all(place.expected for place in fair.recalibrate(population(3)[0]).frontier_.policies)


class Timid(LogisticRegression):
    """A model that is right more often than it dares to say."""

    def predict_proba(self, X):
        return 0.5 + 0.05 * (super().predict_proba(X) - 0.5)


def test_what_the_probabilities_call_out_of_reach_has_a_frontier():
    """A floor that the real labels meet, and the probabilities do not, is kept all along, as the fit keeps it."""
    table, y = population(1)
    fair = FairClassifier(
        FrozenEstimator(Timid().fit(table[["score", "size"]], y)),
        happiness=funding,
        policy=Individual("none"),
        constraints=[Floor(Happiness(right), 0.65)],
        gap=0.1,
        sensitive_features="group",
    ).fit(table, y)
    assert fair.policy_.search.stopped == "out of reach by the probabilities"
    line = fair.frontier_
    assert (line.means[:, :, 1] >= 0.65 - 1e-9).all()
    moved = fair.at(gap=0.1)
    assert moved.loss_ <= fair.loss_ + 1e-12
    assert moved.policy_.search.duality_gap is None
    assert Policy.from_json(moved.policy_.to_json(), happiness=[funding, right]).loss == moved.loss_


def test_a_solved_frontier_holds_no_table_of_people():
    """What column generation knew of each person is gone once the frontier is solved."""
    fair, table, _ = fitted("individual", happiness="equalized_odds")
    line = fair.frontier_._line
    held = list(line.policy.args)
    held += [part for kept in held if hasattr(kept, "__dict__") for part in vars(kept).values()]
    held += list(vars(line.sums).values())
    sizes = [len(part) for part in held if isinstance(part, np.ndarray) and part.ndim]
    assert sizes
    assert max(sizes) < len(table)
    assert not any(isinstance(part, Generator) for part in held)


def test_looking_at_a_frontier_draws_nothing():
    """A generator given as random_state is drawn from by fitting alone."""
    fair, _, _ = fitted("score")
    fair.random_state = np.random.RandomState(3)
    fair.frontier_  # noqa: B018  # it must not draw
    assert fair.random_state.randint(1 << 30) == np.random.RandomState(3).randint(1 << 30)


@pytest.mark.parametrize("policy", KINDS)
def test_weights_of_other_people_are_frequencies(policy):
    """Weight 2 is the row twice, and weight 0 the row absent, of whatever group."""
    fair, _, _ = fitted(policy)
    table, y = population(9)
    weight = np.arange(len(y)) % 3
    max_odds_ratio = table.assign(group=np.where(weight == 0, "nobody", table["group"]))
    found = fair.frontier_on(max_odds_ratio, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    expected = fair.frontier_on(table.iloc[rows], y[rows])
    assert found.loss == pytest.approx(expected.loss, abs=1e-12)
    assert found.gaps == pytest.approx(expected.gaps, abs=1e-12)
    assert found.baseline.loss == pytest.approx(expected.baseline.loss, abs=1e-12)
    band = fair.frontier_on(max_odds_ratio, y, sample_weight=weight, confidence=0.95)
    assert band.loss == pytest.approx(
        fair.frontier_on(table.iloc[rows], y[rows], confidence=0.95).loss, abs=1e-12
    )
    with pytest.raises(DataError, match="labels y for"):
        fair.frontier_on(table, y[:-1], sample_weight=weight[:-1])


def test_below_the_least_gap_is_refused():
    """A gap that no policy reaches is refused with the least one."""
    fair, _, _ = fitted("label", gap={}, happiness=lambda decision, group: decision + 9.0 * (group == "a"))
    with pytest.raises(InfeasibleError, match="the least is"):
        fair.at(gap=1.0)


def test_blind_policies_have_a_frontier():
    """A policy that does not see the group has a frontier of such policies, above that of those who see it."""
    blind, _, _ = fitted("individual", sees_group=False, cv=2)
    seeing, _, _ = fitted("individual")
    gap = 0.5 * seeing.frontier_.tau[-1]
    moved = blind.at(gap=float(gap))
    assert moved.gaps_["funding"] <= gap + 1e-9
    assert not moved.policy_.sees_group
    # Those who see the group could do as these do; the fitted rows' beliefs were cross-fitted, so only nearly so.
    assert moved.loss_ >= seeing.at(gap=float(gap)).loss_ - 0.01


def worth(decision, x, y):
    return np.where(y == decision, 1.0, -0.5) * x["size"] + 1e4


def big(x):
    return x["size"] > 0.8


@pytest.mark.parametrize("policy", KINDS)
@pytest.mark.parametrize("sees_group", [True, False])
def test_trying_many_policies_at_once_is_trying_each(policy, sees_group):
    """Evaluated once for all breakpoints, happiness and loss are what they are for one policy alone."""
    asked = [Happiness(worth, among=big), funding]
    fair, _, _ = fitted(
        policy, 0.1, asked, sees_group=sees_group, loss=lambda decision, y: 3.0 * (decision != y)
    )
    table, y = population(7, 300)
    weight = np.arange(300) % 4 + 1.0
    tried, line = fair._tryout(table, y, table["group"], weight), fair.frontier_
    people = tried.people
    assert len(line) > 1
    for place in [*line.policies, replace(line.policies[0], randomize=False)]:
        decisions = place.probabilities_of(people)
        np.testing.assert_array_equal(tried.probabilities(place), decisions)
        found, expected = tried.outcome(decisions), achieved(tried.problem, people, decisions)
        assert found.loss == pytest.approx(expected.loss, rel=1e-12)
        np.testing.assert_allclose(found.means, expected.means, rtol=1e-12)
        np.testing.assert_allclose(found.gaps, expected.gaps, rtol=1e-9, atol=1e-9)


def test_trying_policies_evaluates_happiness_once():
    """However many breakpoints there are, a happiness function is asked as often."""
    calls = []

    def counted(decision, x):
        calls.append(len(x["size"]))
        return funding(decision, x)

    fair, _, _ = fitted("individual", 0.1, [counted, "equalized_odds"])
    table, y = population(7, 100)
    assert len(fair.frontier_) > 3
    calls.clear()
    fair.frontier_on(table, y)
    # The baseline's decisions, where values lie, what is expected and what is real: each for both decisions.
    assert calls.count(100) == 8
