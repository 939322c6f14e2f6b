"""How the means of an individual policy follow its weights: where it stands, and how steep that is."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from helpers import solved, traced

from felicific import Exploration, Policy
from felicific._files import read_document, write_document
from felicific._program.crowd import choose
from felicific._program.slopes import MOVED
from felicific.exceptions import PolicyFileError

ASKED = {
    "score": "score",
    "y": "y",
    "sensitive_features": "sex",
    "happiness": "decision * loan",
    "random_state": 0,
}


def people(n=3_000, seed=0, ties=None):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    score = np.clip(rng.beta(2, 2, n) - 0.1 * (sex == "f"), 0.0, 1.0)
    if ties:
        score = np.round(score * ties) / ties
    loan = rng.lognormal(1, 0.3, n)
    return pd.DataFrame({"sex": sex, "score": score, "loan": loan, "y": (rng.random(n) < score).astype(int)})


def fitted(rows, **settings):
    return solved(rows, policy="individual", **{"gap": 0.0} | ASKED | settings)


def means_at(policy, rows, kappa):
    """Mean happiness of every group where one deterministic policy weighs it so."""
    codes = np.array([policy.groups.index(sex) for sex in rows["sex"]])
    ledger = policy.look(rows["score"].to_numpy(), codes, rows).ledger
    found = []
    for z in range(len(policy.groups)):
        mine = codes == z
        decisions = choose(1.0, np.array([[kappa[z]]]), ledger.cost[mine], ledger.value[mine])
        found.append(float((decisions * rows["loan"][mine]).mean()))
    return np.array(found)


@pytest.mark.parametrize("ties", [None, 8, 2])
def test_slopes_are_those_of_the_people(ties):
    """The weights give groups nearly the means of the mixture, and steps from there move them as steeply as is said."""
    rows = people(ties=ties)
    policy = fitted(rows)
    slopes = policy.slopes
    wanted, here = policy.outcome.means[:, 0], means_at(policy, rows, slopes.kappa)
    swing = rows.groupby("sex")["loan"].mean().to_numpy()
    assert slopes.swing == pytest.approx(swing)
    assert slopes.share == pytest.approx(rows["sex"].value_counts(normalize=True).sort_index().to_numpy())
    # People who are alike move together: with few different scores no single policy has the mean of the mixture.
    assert (np.abs(here - wanted) < (0.02 if ties is None else 0.6) * swing).all()
    sizes = rows["sex"].value_counts().sort_index().to_numpy()
    steps = [sign * width for width in np.geomspace(1e-3, 3, 50) for sign in (1, -1)]
    moved = np.array([means_at(policy, rows, slopes.kappa + step) - wanted for step in steps])
    for z in range(2):
        enough = np.abs(moved[:, z]) * sizes[z] / swing[z] >= MOVED
        steep = moved[enough, z] / np.array(steps)[enough]
        assert steep[steep > 0].min() * 0.9 <= slopes.slope[z] <= steep.max() * 1.1


def test_where_nobody_could_steer_there_are_no_slopes():
    """Labels, fractions, chances that people keep, no group, several measures: nothing is stored, or looked for."""
    rows = people(600)
    assert fitted(rows, happiness="equal_opportunity", gap=0.1).slopes is None
    assert fitted(rows, happiness=["decision", "decision * loan"]).slopes is None
    assert fitted(rows, gap=1.0, constraints=[Exploration(0.02)]).slopes is None
    blind = rows.assign(f=0.3, m=0.7)
    assert fitted(blind, gap=1.0, sees_group=False, group_proba={"f": "f", "m": "m"}).slopes is None
    assert traced(rows, policy="individual", **ASKED).at(gap=0.5).slopes is None


def test_a_measure_that_weighs_nothing_is_no_hindrance():
    """What is measured beside, and not required, leaves the slopes of the other."""
    rows = people(600)
    found = fitted(
        rows, happiness={"rate": "decision", "loans": "decision * loan"}, gap={"loans": 0.0}
    ).slopes
    assert found.j == 1


def test_files_without_slopes_keep_their_checksum():
    """A file that does not hold them is read, and says of itself what it said before."""
    policy = fitted(people(600))
    content = read_document(policy.to_json())
    assert Policy.from_json(policy.to_json()).sha256 == policy.sha256
    del content["slopes"]
    text = write_document(content)
    old = Policy.from_json(text)
    assert old.slopes is None
    assert old.sha256 == json.loads(text)["sha256"]


def test_slopes_that_cannot_be_are_refused():
    """Each part of its type, shape and range."""
    policy = fitted(people(600))
    content = read_document(policy.to_json())
    good = content["slopes"]
    wrong = [
        {},
        good | {"measure": 1},
        good | {"measure": True},
        good | {"slope": [-1.0, 1.0]},
        good | {"slope": [0.0, 0.0]},
        good | {"share": [0.5, 0.6]},
        good | {"kappa": [1.0]},
        good | {"swing": ["1", 2]},
        good | {"more": 1},
    ]
    for slopes in wrong:
        with refused(PolicyFileError):
            Policy.from_json(write_document(content | {"slopes": slopes}))
