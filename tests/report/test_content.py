"""What a report says, as data: every number is one that ``fair.at``, ``audit`` and ``compare`` find apart."""

import json

import numpy as np
import pandas as pd
import pytest
from reported import HOSTILE, fitted, many
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Happiness, audit, compare
from felicific._report.data import PLACES, mark, round_step, spread
from felicific.exceptions import DataError, FelicificError, FittedRowsWarning

FUNDING = Happiness("decision * loan", name="funding", unit="$")


def world(n, seed, shift=0.7, k=2):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, k, n)
    x = rng.normal(size=n) - shift * z / (k - 1)
    names = np.array([f"group {i}" for i in range(k)])
    table = pd.DataFrame({"x": x, "loan": rng.lognormal(0, 0.5, n) * 1e5, "g": names[z]})
    return table, (x + 0.7 * rng.normal(size=n) > 0).astype(int)


def classifier(**settings):
    train, y = world(500, 5)
    told = {"happiness": FUNDING, "gap": 2_000.0, "sensitive_features": "g", "random_state": 0} | settings
    model = FrozenEstimator(LogisticRegression().fit(train[["x"]], y))
    return FairClassifier(model, **told).fit(*world(3_000, 1))


@pytest.fixture(scope="module")
def fair():
    return classifier()


@pytest.fixture(scope="module")
def others():
    return world(4_000, 2)


@pytest.fixture(scope="module")
def content(fair, others):
    also = {"approved": "decision == 1", "right": "decision == y"}
    return fair.report(*others, also=also, names={0: "no", 1: "yes"}, labels="all").content


def three(content):
    """The position that is proposed, one before it and one after it."""
    chosen = content["proposed"]
    return [content["positions"][i] for i in (chosen, max(chosen - 1, 0), len(content["positions"]) // 2)]


def test_positions_are_those_of_fair_at(fair, others, content):
    """Means, gap, loss, moves, lotteries, who gains and loses at three positions are those of ``fair.at``, by loops."""
    X, y = others
    baseline, group, loan = fair.estimator_.predict(X[["x"]]), X["g"].to_numpy(), X["loan"].to_numpy()
    for place in three(content):
        moved = fair if place["proposed"] else fair.at(gap=place["aimed"][0])
        assert moved.policy_.sha256 == place["policy_sha256"]
        probabilities = moved.predict_proba(X)
        part = place["measures"][0]
        means = [np.mean((probabilities[:, 1] * loan)[group == who]) for who in fair.groups_]
        assert [mean["estimate"] for mean in part["means"]] == pytest.approx(means)
        assert part["gap"]["estimate"] == pytest.approx(abs(means[0] - means[1]))
        assert place["loss"] == pytest.approx(
            np.mean(np.where(y == 1, probabilities[:, 0], probabilities[:, 1]))
        )
        for z, who in enumerate(fair.groups_):
            here = group == who
            up, down = (here & (baseline == d) for d in (0, 1))
            assert part["means"][z]["gain"] == pytest.approx(probabilities[up, 1].sum(), abs=1e-6)
            assert part["means"][z]["lose"] == pytest.approx(probabilities[down, 0].sum(), abs=1e-6)
            assert place["moves"][z][0][1] == pytest.approx(probabilities[up, 1].sum(), abs=1e-6)
            assert place["better"][z] == pytest.approx(probabilities[up, 1].sum(), abs=1e-6)
            assert place["worse"][z] == pytest.approx(probabilities[down, 0].sum(), abs=1e-6)
            assert place["changed"][z] == pytest.approx(
                probabilities[up, 1].sum() + probabilities[down, 0].sum(), abs=1e-6
            )
            assert place["randomized"][z] == ((probabilities[here] > 0).sum(axis=1) > 1).sum()


def test_positions_are_as_sure_as_audits_and_comparisons(fair, others, content):
    """Limits of changes at three positions are those of ``compare``, at the confidence that the position needs."""
    X, y = others
    asked = {"happiness": FUNDING, "sensitive_features": "g"}
    before = audit(fair.estimator_.predict(X[["x"]]), X, y, **asked)
    assert content["baseline"]["measures"][0]["gap"]["high"] == pytest.approx(before["funding"].gap.high)
    positions, groups = len(content["positions"]) - 1, len(fair.groups_)
    for place in three(content):
        moved = fair if place["proposed"] else fair.at(gap=place["aimed"][0])
        alpha = 0.05 if place["proposed"] else 0.05 / positions
        after = audit(moved, X, y)
        part = place["measures"][0]
        gap = compare(before, after, confidence=1 - alpha)["funding"].gap
        assert limits(part["gap"]["change"]) == pytest.approx([gap.estimate, gap.low, gap.high])
        means = compare(before, after, confidence=1 - alpha / groups)["funding"].means.values()
        for mine, theirs in zip(part["means"], means, strict=True):
            assert limits(mine["change"]) == pytest.approx([theirs.estimate, theirs.low, theirs.high])
        assert place["cost_baseline"]["estimate"] == pytest.approx(after.loss.estimate - before.loss.estimate)
        every = compare(before, after, confidence=1 - 0.05 / positions)["funding"].gap
        assert place["every"]["gaps"][0] == pytest.approx([every.low, every.high])
        assert part["bound"] >= part["gap"]["estimate"]
        if place["proposed"]:
            assert limits(part["gap"])[1:] == pytest.approx(
                [after["funding"].gap.low, after["funding"].gap.high]
            )
            loss = compare(before, after).loss
            assert limits(place["cost_baseline"]) == pytest.approx([loss.estimate, loss.low, loss.high])


def limits(interval):
    return [interval["estimate"], interval["low"], interval["high"]]


def test_the_cost_against_the_best_is_paired(fair, others, content):
    """The best policy of this kind with gaps ignored is the frontier's end, on these people."""
    X, y = others
    probabilities = fair.at(gap=float(fair.frontier_.tau[-1])).predict_proba(X)
    best = np.mean(np.where(y == 1, probabilities[:, 0], probabilities[:, 1]))
    assert content["best"]["loss"] == pytest.approx(best)
    for place in content["positions"]:
        assert place["cost_best"]["estimate"] == pytest.approx(place["loss"] - best, abs=1e-12)


def test_scores_add_up_to_people(fair, others, content):
    """Histograms hold everybody once, and those who move are those who move."""
    for z, group in enumerate(content["groups"]):
        assert sum(group["scores"]) == group["people"] == (others[0]["g"] == group["name"]).sum()
        for place in content["positions"]:
            assert sum(place["up"][z]) == pytest.approx(place["moves"][z][0][1], abs=1e-3)
            assert sum(place["down"][z]) == pytest.approx(place["moves"][z][1][0], abs=1e-3)
    steps = content["positions"][content["proposed"]]["steps"]
    scores = np.array([0.031, 0.47, 0.6, 0.93])
    for z, group in enumerate(fair.groups_):
        probabilities = fair.policy_.probabilities(scores, [group] * 4)[:, 1]
        assert [next(q for low, high, q in steps[z] if low < s <= high) for s in scores] == pytest.approx(
            probabilities
        )


def test_the_worked_person_is_a_cell_of_many(fair, others, content):
    """At least ten people of one group at one score, half of whom move; the most of all such cells."""
    X, _ = others
    score, probabilities = fair.estimator_.predict_proba(X[["x"]])[:, 1], fair.predict_proba(X)
    baseline = (score > 0.5).astype(int)
    moved = 1 - probabilities[np.arange(len(X)), baseline]
    cells = pd.DataFrame(
        {
            "cell": np.floor(score * 100),
            "g": X["g"],
            "moved": moved,
            "loan": X["loan"],
            "proba": probabilities[:, 1],
        }
    )
    sums = cells.groupby(["g", "cell"]).agg(
        people=("moved", "size"), moved=("moved", "sum"), proba=("proba", "mean")
    )
    able = sums[(sums["people"] >= 10) & (sums["moved"] >= sums["people"] / 2)]
    person = content["positions"][content["proposed"]]["person"]
    group = content["groups"][person["group"]]["name"]
    cell = round(person["low"] * 100)
    assert able.loc[(group, cell), "people"] == person["people"]
    apart = able[
        [
            abs(sums.loc[(g, c), "proba"] - sums["proba"].xs(c, level="cell").drop(g).mean()) >= 0.5
            for g, c in able.index
        ]
    ]
    best = (apart if len(apart) else able)["moved"].max()
    assert able.loc[(group, cell), "moved"] == pytest.approx(best)
    here = (cells["g"] == group) & (cells["cell"] == cell)
    change = ((cells["proba"] - baseline) * cells["loan"])[here].mean()
    assert person["changes"] == pytest.approx([change])


def test_other_measures_are_audits(fair, others, content):
    """Gaps that nobody asked to close are those of audits, and "grows" is what a comparison shows."""
    X, y = others
    for part, happiness in zip(content["also"], ("decision == 1", "decision == y"), strict=True):
        asked = {"happiness": {part["name"]: happiness}, "sensitive_features": "g"}
        before = audit(fair.estimator_.predict(X[["x"]]), X, y, **asked)
        after = audit(fair, X, y, happiness={part["name"]: happiness}, gap={})
        assert part["baseline"]["estimate"] == pytest.approx(before.gap)
        assert part["then"]["estimate"] == pytest.approx(after.gap)
        change = compare(before, after, confidence=1 - 0.05 / 2)[part["name"]].gap
        assert limits(part["change"]) == pytest.approx([change.estimate, change.low, change.high])
        assert part["grows"] == (change.low > 0)
        assert part["unit"] == "share"


def test_positions_end_with_the_baseline(fair, content):
    """From the least gap to the baseline; at most 40; none but the proposed has a larger gap."""
    places = content["positions"]
    assert 20 < len(places) <= PLACES
    now = float(fair.frontier_.baseline.gaps[0])
    assert [place["tau"] for place in places] == sorted(place["tau"] for place in places)
    assert all(place["tau"] < now for place in places[:-1])
    last = places[-1]
    assert (last["names"], last["baseline"], last["hash"], last["policy_sha256"]) == (
        ["under the model"],
        True,
        "baseline",
        None,
    )
    assert sum(last["changed"]) == 0
    assert last["verdict"]["headline"] == "Nothing changes."
    named = {name: place for place in places for name in place["names"]}
    assert named["proposed"]["aimed"] == [2_000.0]
    assert named["proposed"]["python"] == "fair.policy_"
    assert named["half of the model's gap"]["aimed"][0] == pytest.approx(now / 2)
    assert len({place["hash"] for place in places}) == len(places)
    for place in places[:-1]:
        assert place["hash"] == f"gap={place['aimed'][0]!r}"


def test_an_aim_of_rounding_is_zero():
    """What is left of nothing is written, and hashed, as nothing."""
    places = classifier(gap=0.0).report(*world(800, 2)).content["positions"]
    assert places[0]["aimed"] == [0.0]
    assert places[0]["hash"] == "gap=0.0"


@pytest.mark.parametrize(
    ("least", "most", "baseline", "policy"),
    [(0.0, 9e4, 21_273.0, 0.0), (0.03, 1.0, 0.031, 0.0305), (1e-9, 1.0, 0.8, 0.4), (5.0, 5.0, 5.0, 5.0),
     (0.0, 0.0, 0.0, 0.0), (0.2, 0.5, 0.1, 0.3), (0.1, 0.3, 0.6, 0.3)],
)  # fmt: skip
def test_places_are_round_numbers(least, most, baseline, policy):
    """Between the named ones lie round numbers, few enough, and nothing where the least gap is the baseline's."""
    marked = mark(least, most, baseline, policy)
    assert marked["proposed"] == pytest.approx(policy)
    found = spread(marked, baseline)
    assert found == sorted(set(found))
    assert set(marked.values()) <= set(found)
    assert len(found) < PLACES
    assert all(tau < baseline or tau == marked["proposed"] for tau in found)
    if baseline - min(marked.values()) > 1e-6:
        step = round_step((baseline - min(marked.values())) / 33)
        rest = [tau for tau in found if tau not in marked.values()]
        assert all(abs(tau / step - round(tau / step)) < 1e-6 for tau in rest)
        assert len(found) >= 15


def test_nobody_worse_off_is_a_place_or_none(others):
    """A policy that gives has a place where no group has less than from the baseline; one that levels down has none."""
    from felicific import Floor

    giving = classifier(constraints=[Floor("funding", at_least="baseline")]).report(*others).content
    named = [place for place in giving["positions"] if "no group worse off here" in place["names"]]
    assert giving["nobody_worse"] == bool(named)
    for place in named:
        assert min(mean["change"]["estimate"] for mean in place["measures"][0]["means"]) >= 0
    taking = classifier(sees_group=False, policy="score", gap=15_000.0).report(*others).content
    assert not taking["nobody_worse"]
    assert taking["positions"][taking["proposed"]]["verdict"]["kind"] == "levels-down"


def test_fitted_people_are_no_evidence(fair):
    """On the rows that it was fitted on every verdict but the baseline's is that we cannot tell."""
    with pytest.warns(match="fitted on"):
        found = fair.report(*world(3_000, 1))
    assert found.verdict.reason == "in-sample"
    assert {place["verdict"]["reason"] for place in found.content["positions"]} == {"in-sample", "same"}
    assert found.verdict.flags[0].kind == "in-sample"


def test_the_certificate_belongs_to_one_position(others):
    """The position of the policy that was certified says so, and no other does."""
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    found = classifier(happiness=rate, gap=0.15, confidence=0.9).report(*others).content
    kinds = [place["verdict"]["kind"] for place in found["positions"]]
    assert kinds[found["certified"]] == "certified"
    assert kinds.count("certified") == 1
    assert found["certificate"]["gaps"] == {"approved": 0.15}


def test_content_is_plain(content):
    """It is what JSON holds, number for number."""
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_the_verdict_is_that_of_the_position_proposed(fair, others):
    """``page.verdict``, the printed page and the data say the same."""
    page = fair.report(*others)
    told = page.content["positions"][page.content["proposed"]]["verdict"]
    assert page.verdict.to_dict() == told
    assert str(page).startswith(told["headline"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"names": {0: "no", 2: "yes"}}, "names= has 2"),
        ({"names": {0: "no"}}, "no name for the decision 1"),
        ({"names": {0: "no", 1: "no"}}, "called 'no'"),
        ({"names": {0: "no", 1: 5}}, "as text"),
        ({"names": "no"}, "a dict"),
        ({"labels": "some"}, "labels is 'some'"),
        ({"period": 2025}, "period is 2025"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"also": {"age": "years"}}, "'years'"),
    ],
)
def test_bad_options_are_named(fair, others, options, text):
    """What cannot be meant is refused by name, with what to do."""
    with pytest.raises(FelicificError) as error:
        fair.report(*others, **options)
    assert text in str(error.value)
    assert isinstance(error.value, DataError) or "also" in options


def test_fewer_labels_than_rows_are_refused(fair, others, refuses):
    """One label for every row."""
    with refuses(DataError, "3999"):
        fair.report(others[0], others[1][:-1])


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
def test_hostile_names_are_data(people):
    """Names of any content are kept as they are; texts that hold them are cut, cleaned and whole."""
    happiness = {name: Happiness(lambda decision: float(decision), unit=name) for name in HOSTILE[::2]}
    found, x, y, group = many(5, 2, happiness, HOSTILE, gap=dict.fromkeys(happiness, 0.1))
    content = found.report(x, y, sensitive_features=group).content
    assert [part["name"] for part in content["groups"]] == list(found.groups_)
    for place in content["positions"]:
        for text in (place["verdict"]["sentence"], *(flag["sentence"] for flag in place["verdict"]["flags"])):
            assert len(text) < 2_000
            assert "\n" not in text
            assert "\x00" not in text


def test_a_happiness_that_hardly_changes_is_reported(people):
    """Where one person's happiness depends on the decision, and on these people nobody's changes, nothing shrinks."""

    def hardly(decision, x):
        return 1.0 + decision * (x["id"] == 1000)

    found = fitted(people, happiness=hardly, gap=0.0)
    with pytest.warns(FittedRowsWarning):
        verdict = found.report(people.table("pandas").assign(id=people["id"] + 10_000), people.y).verdict
    assert verdict.kind in ("unclear", "leave")


def test_the_best_decision_may_be_the_first():
    """The line of scores is that of the last decision; the chance is that of the best one."""
    found = (
        classifier(happiness={"kept": "decision == 0"}, decisions=[1, 0], gap=0.05)
        .report(*world(1_000, 2))
        .content
    )
    assert found["best_decision"] == 0
    steps = found["positions"][-1]["steps"][0]
    assert [step[2] for step in steps] == [1.0, 0.0]
    proposed = found["positions"][found["proposed"]]["steps"][0]
    assert proposed[0][2] >= proposed[-1][2]


def test_the_baseline_of_the_fit_is_remembered(others):
    """A column that was named as the baseline at the fit is looked at again; where the two differ, a note says so."""
    X, y = world(3_000, 1)
    train, labels = world(500, 5)
    model = FrozenEstimator(LogisticRegression().fit(train[["x"]], labels))
    told = {"happiness": FUNDING, "gap": 2_000.0, "sensitive_features": "g", "random_state": 0}
    fitted_beside = FairClassifier(model, **told).fit(X.assign(now=1), y, baseline="now")
    table, truth = others
    found = fitted_beside.report(table.assign(now=1), truth).content
    assert found["positions"][-1]["loss"] == pytest.approx(1 - truth.mean())
    again = fitted_beside.report(table.assign(now=1), truth, baseline="now").content
    assert again["positions"] == found["positions"]
    plain = FairClassifier(model, **told).fit(X, y)
    caveats = plain.report(table.assign(now=1), truth, baseline="now").content["caveats"]
    assert any("fitted beside what the model predicts" in text for text in caveats)


def test_a_report_without_labels_is_refused(fair, others, refuses):
    """By name, and not by an error of Python's."""
    with refuses(DataError, "no labels"):
        fair.report(others[0], None)


def test_flags_of_a_policy_are_not_those_of_the_baseline(content):
    """The baseline does not decide by group because a policy would."""
    assert "sees-group" not in [flag["kind"] for flag in content["positions"][-1]["verdict"]["flags"]]


def test_a_floor_at_the_baseline_is_that_of_these_people(others):
    """What was asked for is the baseline's mean of whoever is looked at, and not the number of the fitted people."""
    from felicific import Floor

    found = classifier(constraints=[Floor("funding", at_least="baseline")]).report(*others).content
    rows = [row for row in found["requirements"] if row["statistic"] == "mean"]
    assert rows
    assert all(row["words"].endswith("at least the baseline's") for row in rows)
    assert all("the baseline mean of these people is" in row["note"] for row in rows)
    assert not found["best"]["free"]


def test_other_decisions_may_be_the_baseline(fair, others):
    """With ``baseline=`` changes are against that system, and unchanged groups are not known to be."""
    X, y = others
    found = fair.report(X.assign(now=1), y, baseline="now").content
    assert found["positions"][-1]["loss"] == pytest.approx(1 - y.mean())
    place = found["positions"][found["proposed"]]
    assert sum(place["better"]) == 0
    assert sum(place["worse"]) > 0
