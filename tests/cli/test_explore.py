"""Chances that people keep, and probabilities beside decisions, on the command line.

The library's, and clear messages.
"""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import python_words, solved

from felicific import Exploration, load
from felicific.cli import run

pytestmark = pytest.mark.filterwarnings("always::felicific.exceptions.LotteryWarning")

ROLES = {"score": "score", "sensitive_features": "sex"}
FIT = "fit all.csv --score score --label repaid --group sex --happiness decision --gap .1 --change-cost 0"


@pytest.fixture
def table(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 300
    sex = rng.choice(["f", "m"], n)
    score = np.round(np.clip(rng.beta(2, 2, n) + 0.2 * (sex == "m"), 0, 1), 2)
    frame = pd.DataFrame(
        {"id": np.arange(n), "sex": sex, "score": score, "repaid": (rng.random(n) < score).astype(int)}
    )
    frame["rest"] = np.round(1.0 - frame["score"], 2)
    monkeypatch.chdir(tmp_path)
    frame.to_csv("all.csv", index=False)
    return frame


def call(line, capsys):
    code = run(line.split())
    found = capsys.readouterr()
    assert not python_words(found.err), found.err
    return code, found.out, found.err


@pytest.mark.parametrize("kind", ["score", "individual"])
@pytest.mark.parametrize("decisions", ["", "--decisions 1,0"])
def test_fitting_and_applying_with_chances(table, capsys, kind, decisions):
    """The policy is that of the library; the probabilities written are its own, of the best decision."""
    score = "--score 0=rest --score 1=score" if decisions else "--score score"
    fit = FIT.replace("--score score", score)
    code, out, err = call(f"{fit} --explore .04 --policy {kind} {decisions} --out policy.json", capsys)
    assert (code, err) == (0, "")
    best = 0 if decisions else 1
    assert f"chance of {best} at least 0.04" in out
    policy = load("policy.json")
    expected = solved(
        table, **ROLES, y="repaid", happiness="decision", gap=0.1, random_state=0, policy=kind,
        decisions=[1, 0] if decisions else None, constraints=[Exploration(0.04)],
    )  # fmt: skip
    assert policy.loss == pytest.approx(expected.loss, abs=1e-9)
    assert policy.best == expected.best == best
    code, _, err = call(
        f"apply policy.json all.csv {score} --group sex --key id --with-proba --out decided.csv", capsys
    )
    assert (code, err) == (0, "")
    decided = pd.read_csv("decided.csv")
    assert list(decided.columns) == [*table.columns, "decision", "proba"]
    probabilities = policy.probabilities(table["score"].to_numpy(), table["sex"], table)[:, best]
    assert decided["proba"].to_numpy() == pytest.approx(probabilities, abs=1e-15)
    assert probabilities.min() >= 0.04 - 1e-12


def test_a_frontier_keeps_the_chance(table, capsys):
    """Along the frontier on the command line everybody keeps it, so it lies above the one without."""
    line = FIT.replace("fit", "frontier").replace("--gap .1 --change-cost 0", "") + " --policy score --json"
    plain, kept = (json.loads(call(text, capsys)[1]) for text in (line, f"{line} --explore .1"))
    assert min(kept["breakpoints"]["loss"]) > min(plain["breakpoints"]["loss"])


@pytest.mark.parametrize(
    ("options", "exit_code", "words"),
    [
        ("--explore 2", 1, "Give a number between 0 and 1"),
        ("--explore .3 --budget .1", 3, "chance of 1 at least 0.3"),
    ],
)
def test_what_cannot_be_asked_is_one_line(table, capsys, options, exit_code, words):
    """A chance that is none, or one that conflicts, is said in a line with the options' names."""
    code, out, err = call(f"{FIT} {options} --out policy.json", capsys)
    assert (code, out, err.count("\n")) == (exit_code, "", 1), err
    assert words in err


def test_columns_of_probabilities_that_are_taken(table, capsys):
    """A file that has such a column is refused, and so are decisions of that name."""
    call(f"{FIT} --explore .04 --out policy.json", capsys)
    apply = "apply policy.json all.csv --score score --group sex --key id --with-proba --out decided.csv"
    table.assign(proba=1.0).to_csv("probabilities.csv", index=False)
    for line in (apply.replace("all.csv", "probabilities.csv"), f"{apply} --column proba"):
        code, _, err = call(line, capsys)
        assert (code, "'proba'" in err, "--with-proba" in err) == (1, True, True), err
