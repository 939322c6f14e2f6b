"""Frontiers of fractions: solved at some gaps, never mixed; the classifier, the command line and the report."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from felicific import FairClassifier, Score, aggregate, frontier, solve
from felicific._frontier.curve import STEPS
from felicific.cli import app

PRECISION = "precision"
ROLES = {"score": "score", "y": "y", "sensitive_features": "group"}


def people(n=600, seed=0):
    """People whose score means less in one group."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    score = np.round(rng.beta(np.where(group == "a", 2, 3), 2.5), 3)
    return pd.DataFrame(
        {
            "group": group,
            "score": score,
            "y": (rng.random(n) < score ** np.where(group == "a", 1.5, 1.0)).astype(int),
        }
    )


@pytest.fixture(scope="module")
def sums():
    """Their sums in few cells."""
    return aggregate(people(), happiness=PRECISION, policy=Score(bins=24), **ROLES)


def test_points_are_solved_and_never_mixed(sums):
    """Every point is the policy that solve finds at its gap; between two of them another search is."""
    line = frontier(sums, random_state=0)
    assert not line.mixes
    assert 3 <= len(line) <= STEPS
    assert (np.diff(line.tau) > 0).all()
    assert (np.diff(line.loss) < 0).all()
    width = (line.tau[1] + line.tau[2]) / 2
    exact, near = line.at(gap=width), line.policies_at([width])[0]
    alone = solve(sums, gap=width, random_state=0)
    assert exact.gap <= width + 1e-7
    assert exact.loss == pytest.approx(alone.loss, abs=1e-4)
    assert exact.prices[PRECISION] >= 0
    assert near.loss == line.loss[1]
    assert near.gap <= width
    mixed = (line.points[1].q + line.points[2].q) / 2
    assert not any(np.array_equal(point.q, mixed) for point in line.points)
    assert line.at(loss=float(line.loss[2])).loss == pytest.approx(line.loss[2], abs=1e-4)


def test_a_stored_frontier_has_its_points(sums):
    """Without the sums it was found from, a place between two points is the nearest tighter one."""
    line = frontier(sums, random_state=0)
    stored = pickle.loads(pickle.dumps(line))
    width = float(line.tau[1] + line.tau[2]) / 2
    assert np.array_equal(stored.loss, line.loss)
    assert stored.at(gap=width).loss == line.loss[1]


def test_gaps_of_a_fraction_and_others_shrink_together():
    """With several measures widths shrink in proportion, each step by a search."""
    both = aggregate(people(), happiness=[PRECISION, "decision"], policy=Score(bins=12), **ROLES)
    line = frontier(both, random_state=0)
    assert np.isfinite(line.ray).tolist() == [True, True, False]
    allowed = line.tau[:, None] * line.ray[:2]
    assert (line.gaps[:, :2] <= allowed + 1e-6).all()


def test_measured_beside_an_exact_frontier():
    """A fraction that is measured only leaves the frontier exact; at kinks of other people there is no number of it."""
    both = aggregate(people(), happiness=[PRECISION, "decision"], policy=Score(bins=12), **ROLES)
    line = frontier(both, gap=["decision"], random_state=0)
    assert line.mixes
    other = aggregate(
        people(seed=1), happiness=[PRECISION, "decision"], policy=line.policies[0].signal, **ROLES
    )
    curve = line.on(other)
    at = both.joined().evaluate(line.at(tau=float(line.tau[:2].mean())).q)
    assert line.at(tau=float(line.tau[:2].mean())).outcome.means == pytest.approx(at.means)
    assert np.isnan(curve.means[curve.kink][:, :, 0]).all()
    assert not np.isnan(curve.means[:, :, 1]).any()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Score(bins=16), "individual"])
def test_classifier(policy):
    """Fit, move, recalibrate and report: the criterion by name, wherever a gap may be asked for."""
    table = people(400)
    X, y = table[["score", "group"]], table["y"].to_numpy()
    model = LogisticRegression().fit(X[["score"]], y)
    settings = {"happiness": PRECISION, "sensitive_features": "group", "gap": 0.02, "random_state": 0}
    fair = FairClassifier(FrozenEstimator(model), policy=policy, **settings).fit(X, y)
    assert fair.gaps_[PRECISION] <= 0.02 + 1e-7
    moved = fair.at(gap=0.04)
    assert moved.gaps_[PRECISION] <= 0.04 + 1e-7
    fresh = people(300, 1)
    assert fair.recalibrate(fresh[["score", "group"]]).gaps_[PRECISION] <= 0.02 + 1e-7
    if policy != "individual":
        page = fair.report(fresh[["score", "group"]], fresh["y"].to_numpy()).to_html()
        assert "precision" in page
        assert "counted by" in page


def test_the_command_line(tmp_path):
    """Criteria by name and expressions of the decision, on the command line."""
    table, policy = tmp_path / "people.csv", tmp_path / "policy.json"
    frame = people()
    frame["approved"], frame["loan"] = (frame["score"] > 0.5).astype(int), 1000 * (1 + np.arange(600) % 7)
    frame.to_csv(table, index=False)
    run = CliRunner()
    shared = [str(table), "--label", "y", "--group", "group"]
    fit = [
        "fit",
        *shared,
        "--score",
        "score",
        "--happiness",
        PRECISION,
        "--gap",
        "0.05",
        "--out",
        str(policy),
    ]
    made = run.invoke(app, fit)
    assert made.exit_code == 0, made.output
    told = json.loads(policy.read_text())
    assert [part["over"] for part in told["measures"]] == ["counted by 'precision'", ""]
    assert told["gaps"][0] <= 0.05 + 1e-7
    asked = ["--decision", "approved", "--happiness", "decision * loan", "--among", "decision == 1", "--json"]
    found = run.invoke(app, ["audit", *shared, *asked])
    assert found.exit_code == 0, found.output
    means = json.loads(found.stdout)["measures"][0]["means"]
    for part in means:
        mine = frame[(frame["group"] == part["group"]) & (frame["approved"] == 1)]
        assert part["estimate"] == pytest.approx(mine["loan"].mean())
    line = run.invoke(app, ["frontier", *shared, "--score", "score", "--happiness", PRECISION])
    assert line.exit_code == 0, line.output
    assert "solved gap 1" in line.output
