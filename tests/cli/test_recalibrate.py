"""``felicific recalibrate``: what FairClassifier.recalibrate does, from a file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness, load
from felicific._sklearn.inputs import ScoreColumns

pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

ROLES = "--score score --group sex --happiness 'decision * loan' --name funding --unit k$"
FIT = f"fit scores.csv {ROLES} --label repaid --gap .5 --seed 0 --change-cost 0"
AGAIN = f"recalibrate policy.json next.csv {ROLES}"
LABELLED = "--labelled scores.csv --label repaid"


def two_columns(frame):
    """With the probability of each class."""
    return frame.assign(other=1 - frame["score"])


def test_recalibration_is_the_librarys(loans, done):
    """By the rows with labels or by their sums: the gap is met on the new people, and the draws are the same."""
    done(f"{FIT} --out policy.json")
    done(f"{AGAIN} {LABELLED} --out rows.json")
    done(f"aggregate scores.csv {ROLES} --label repaid --out sums.json")
    told = done(f"{AGAIN} --labelled sums.json --out sums-next.json")
    fair = FairClassifier(
        FrozenEstimator(ScoreColumns(["other", "score"], [0, 1])),
        happiness=Happiness("decision * loan", name="funding", unit="k$"),
        sensitive_features="sex",
        policy="score",
        gap=0.5,
        random_state=0,
        change_cost=0.0,
    ).fit(two_columns(loans), loans["repaid"])
    new = two_columns(pd.read_csv("next.csv"))
    expected = fair.recalibrate(new).policy_
    for name in ("rows.json", "sums-next.json"):
        found = load(name)
        np.testing.assert_allclose(found.q, expected.q, atol=1e-7)
        assert found.loss == pytest.approx(expected.loss, rel=1e-9)
        assert found.salt == load("policy.json").salt
        assert found.expected
        # By hand: means of what the probabilities give on the new people.
        probabilities = found.probabilities(new["score"], new["sex"])[:, 1]
        means = (probabilities * new["loan"]).groupby(new["sex"]).mean()
        assert means.max() - means.min() == pytest.approx(0.5, abs=1e-6)
    old = load("policy.json").probabilities(new["score"], new["sex"])[:, 1]
    before = (old * new["loan"]).groupby(new["sex"]).mean()
    assert f"{before.max() - before.min():.6g} k$ by the policy before, 0.5 k$ by this one" in told
    assert "in expectation over the lottery" in told
    content = json.loads(done(f"{AGAIN} {LABELLED} --out json.json --json"))
    moved = np.abs(old - found.probabilities(new["score"], new["sex"])[:, 1])
    shares = pd.Series(moved).groupby(new["sex"]).mean()
    assert [one["share"] for one in content["decided_otherwise"]] == pytest.approx(shares.tolist())


def test_an_individual_policy_needs_no_labels(loans, done, command_line):
    """It brings what it knows of labels; naming people with labels is refused."""
    done(f"{FIT} --policy individual --out policy.json")
    line = "recalibrate policy.json next.csv --score score --group sex --out again.json"
    done(line)
    found, new = load("again.json"), pd.read_csv("next.csv")
    probabilities = found.probabilities(new["score"], new["sex"], new)[:, 1]
    means = (probabilities * new["loan"]).groupby(new["sex"]).mean()
    assert means.max() - means.min() == pytest.approx(0.5, abs=1e-6)
    code, _, err = command_line(f"{line} --force --labelled scores.csv")
    assert code == 1
    assert "Leave --labelled out." in err


def test_what_was_asked_stays_or_is_said_again(loans, done, command_line):
    """A floor, which a file cannot repeat, has to be said again; another gap may be said."""
    done(f"{FIT} --floor 2 --out policy.json")
    code, out, err = command_line(f"{AGAIN} {LABELLED} --out again.json")
    assert (code, out) == (1, "")
    assert "Say it again" in err
    done(f"{AGAIN} {LABELLED} --floor 2 --gap 1 --out again.json")
    found = load("again.json")
    assert found.gaps["funding"] == pytest.approx(1.0, abs=1e-6)
    assert min(found.means["funding"].values()) >= 2 - 1e-6
    told = done(f"{AGAIN} {LABELLED} --budget 90 --out budget.json")
    assert "No longer asked for: mean 'funding' of group 'Male' at least 2 k$." in told


def test_what_cannot_be_recalibrated(loans, done, command_line):
    """No labels, other happiness, sums of others, unknown columns, no policy: one line, and nothing written."""
    done(f"{FIT} --out policy.json")
    done(f"aggregate scores.csv {ROLES} --label repaid --out sums.json")
    done(f"aggregate scores.csv {ROLES} --label repaid --policy label --out labels.json")
    done(
        "aggregate scores.csv --score score --group race --happiness decision --label repaid --out others.json"
    )
    for line, words in (
        (AGAIN, "--labelled FILE"),
        (f"{AGAIN} --labelled scores.csv", "Name it with --label"),
        (f"{AGAIN.replace('--name funding', '--name money')} {LABELLED}", "The policy is about 'funding'"),
        (f"{AGAIN} --labelled others.json", "differ in the groups"),
        (f"{AGAIN} --labelled labels.json", "differ in what a policy sees: score and label"),
        (f"{AGAIN} {LABELLED} --baseline nothing", "no column 'nothing'"),
        (f"{AGAIN} {LABELLED} --policy label", "--policy has no use"),
        (f"{AGAIN} --labelled policy.json", "holds a policy"),
        (f"{AGAIN.replace('policy.json', 'sums.json')} {LABELLED}", "'sums.json' holds sums of people"),
    ):
        code, out, err = command_line(f"{line} --out again.json")
        assert (code, out) == (1, ""), line
        assert words in err, err
        assert not Path("again.json").exists()
