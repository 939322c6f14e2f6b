"""Amounts on the command line: fitted, applied, shown, summed up and written as SQL, as Python does."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers import solved

from felicific import aggregate, load, solve

ASKED = "--predicted f --loss squared --label hours --group sex --happiness distributional_parity"


@pytest.fixture
def care(tmp_path, monkeypatch):
    """A folder with ``p.csv`` of predicted and real hours of care, and ``next.csv`` without labels."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex = rng.choice(["Female", "Male"], 800)
    f = np.round(rng.normal(np.where(sex == "Male", 42.0, 36.0), 8.0), 3)
    people = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(800)],
            "sex": sex,
            "f": f,
            "hours": np.round(f + rng.normal(0, 5, 800), 1),
            "now": np.round(f / 5) * 5,
            "w": rng.integers(0, 4, 800),
        }
    )
    people.to_csv("p.csv", index=False)
    people.head(300).drop(columns=["hours", "now"]).to_csv("next.csv", index=False)
    return people


def test_fit_apply_show_and_sql_agree_with_python(care, done):
    """A policy file gives the same amounts on the command line, in Python and in DuckDB; keys stay as written."""
    told = done(f"fit p.csv {ASKED} --gap .05 --seed 1 --out policy.json")
    assert "Written to policy.json." in told
    policy = load("policy.json")
    asked = {
        "predicted": "f",
        "loss": "squared",
        "y": "hours",
        "sensitive_features": "sex",
        "happiness": "distributional_parity",
    }
    assert policy.to_json() == solved(care, gap=0.05, random_state=1, **asked).to_json()
    assert policy.gap <= 0.05 * (1 + 1e-9)
    done("apply policy.json next.csv --predicted f --group sex --key id --out decided.csv")
    decided, people = pd.read_csv("decided.csv", dtype={"id": str}), care.head(300)
    expected = policy.amounts(people["f"], people["sex"], people["id"])
    assert np.allclose(decided["decision"], expected, rtol=1e-12)
    assert decided["id"].tolist() == people["id"].tolist()
    text = done("sql policy.json --dialect duckdb --predicted f --group sex --key id --from people")
    found = duckdb.from_df(people).query("people", text).df()
    assert np.array_equal(found["decision"], expected)
    shown = done("show policy.json")
    assert policy.sha256 in shown
    assert policy.salt not in shown
    assert json.loads(done("show policy.json --json"))["kind"] == "amounts"


def test_what_is_printed_as_json(care, done):
    """Loss, gaps and mean amounts under the baseline, of least loss and as proposed."""
    told = json.loads(done(f"fit p.csv {ASKED} --gap .1 --seed 1 --json"))
    policy = load("policy.json")
    assert told["fitted"]["loss"] == policy.loss
    assert told["fitted"]["gaps"] == policy.gaps
    assert told["baseline"]["loss"] == policy.baseline.loss
    given = json.loads(
        done("apply policy.json next.csv --predicted f --group sex --key id --out d.parquet --json")
    )
    assert given["rows"] == 300
    assert given["mean"] == pytest.approx(pd.read_parquet("d.parquet")["decision"].mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "bounds", "listed"),
    [
        ("0:80", (0.0, 80.0), None),
        ("20:60:10", (20.0, 60.0), (20.0, 30.0, 40.0, 50.0, 60.0)),
        ("30,40,50", (30.0, 50.0), (30.0, 40.0, 50.0)),
    ],
)
def test_which_amounts_there_may_be(care, done, text, bounds, listed):
    """Bounds, a range with steps, or a list."""
    done(f"fit p.csv {ASKED} --gap .1 --decisions {text} --seed 1")
    policy = load("policy.json")
    assert policy.bounds == bounds
    assert policy.listed == listed


def test_weights_the_baseline_and_other_losses(care, done):
    """Options mean what the arguments of Python mean."""
    done(
        f"fit p.csv {ASKED} --gap .1 --weight w --baseline now --loss absolute --decisions 0:80 --seed 1 "
        "--floor decision=30"
    )
    policy = load("policy.json")
    assert policy.loss_name == "absolute"
    assert policy.baseline.loss == pytest.approx(
        np.average(abs(care["now"] - care["hours"]), weights=care["w"]), rel=1e-12
    )


def test_sites_add_to_the_policy_of_all_rows(care, done):
    """Sums of two files, merged, give the policy of the sums of one; both are read by Python too."""
    care.head(350).to_csv("north.csv", index=False)
    care.tail(450).to_csv("south.csv", index=False)
    bounded = f"{ASKED} --decisions 0:80"
    for name in ("north", "south"):
        done(f"aggregate {name}.csv {bounded} --out {name}.json")
    done("merge north.json south.json --out all.json")
    done(f"aggregate north.csv south.csv {bounded} --out both.json")
    done("fit all.json --gap .05 --seed 1 --out merged.json")
    done("fit both.json --gap .05 --seed 1 --out both-policy.json")
    asked = {
        "predicted": "f",
        "loss": "squared",
        "y": "hours",
        "sensitive_features": "sex",
        "happiness": "distributional_parity",
    }
    whole = solve(aggregate(care, decisions=(0, 80), **asked), gap=0.05, random_state=1)
    for path in ("merged.json", "both-policy.json"):
        policy = load(path)
        assert policy.loss == pytest.approx(whole.loss, rel=1e-9)
        assert policy.gap == pytest.approx(whole.gap, abs=1e-9)
    assert load("all.json").rows.sum() == 800
    assert json.loads(done("aggregate north.csv --out n2.json --json " + bounded))["kind"] == "amounts"


@pytest.mark.slow
def test_the_frontier_of_a_file_and_of_sums(care, done):
    """The least loss rises as the gap falls, in the file that is written too."""
    done(f"aggregate p.csv {ASKED} --out sums.json")
    done("frontier sums.json --out line.csv")
    table = pd.read_csv("line.csv")
    assert table["loss"].is_monotonic_decreasing
    assert "gap of distributional_parity" in table
    assert json.loads(done(f"frontier p.csv {ASKED} --json"))["breakpoints"]["loss"]


REFUSED = {
    "both": (f"fit --out new.json p.csv {ASKED} --score f", "--score"),
    "blind": (f"fit --out new.json p.csv {ASKED} --without-group", "--without-group"),
    "worse_off": (f"fit --out new.json p.csv {ASKED} --worse-off .1", "--worse-off"),
    "individual": (f"fit --out new.json p.csv {ASKED} --policy individual", "--policy individual"),
    "no column": (f"fit --out new.json p.csv {ASKED.replace(' f ', ' g ')}", "'g'"),
    "words": (f"fit --out new.json p.csv {ASKED} --decisions low,high", "words"),
    "range": (f"fit --out new.json p.csv {ASKED} --decisions a:b", "no range"),
    "criterion": (
        f"fit --out new.json p.csv {ASKED.replace('distributional', 'statistical')}",
        "criterion",
    ),
    "text": (
        "fit --out new.json p.csv --predicted id --loss squared --label sex --group sex --happiness decision",
        "number",
    ),
    "loss of sums": (f"aggregate p.csv {ASKED} --loss absolute --out s.json", "absolute"),
    "sites": (f"aggregate p.csv next2.csv {ASKED} --out s.json", "--decisions LOW:HIGH"),
    "baseline of sums": (f"aggregate p.csv {ASKED} --baseline now --out s.json", "baseline"),
    "apply score": ("apply policy.json next.csv --predicted f --score f --group sex --out d.csv", "--score"),
    "apply probabilities": (
        "apply policy.json next.csv --predicted f --group sex --with-proba --out d.csv",
        "--with-proba",
    ),
    "taken": ("apply policy.json next.csv --predicted f --group sex --column f --out d.csv", "already"),
    "audit by it": (
        "audit p.csv --policy-file policy.json --score f --label hours --group sex --happiness decision",
        "amounts",
    ),
    "compare": (
        "compare p.csv --before policy.json --after policy.json --score f --group sex --happiness decision",
        "amounts",
    ),
    "too late": ("fit --out new.json sums.json --predicted f --gap .1", "too late"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(care, done, command_line, name):
    """With what is wrong, in the words of the command line; nothing is written."""
    done(f"fit p.csv {ASKED} --gap .1 --seed 1 --out policy.json")
    done(f"aggregate p.csv {ASKED} --out sums.json")
    care.to_csv("next2.csv", index=False)
    line, words = REFUSED[name]
    before = sorted(path.name for path in Path().iterdir())
    code, _, err = command_line(line)
    assert code != 0
    assert words in err
    assert sorted(path.name for path in Path().iterdir()) == before


def test_sums_of_amounts_and_of_decisions_do_not_add(care, done, command_line):
    """By name of the files."""
    care["y"] = (care["hours"] > 40).astype(int)
    care["s"] = 0.5
    care.to_csv("c.csv", index=False)
    done(f"aggregate p.csv {ASKED} --out a.json")
    done("aggregate c.csv --score s --label y --group sex --happiness decision --out b.json")
    code, _, err = command_line("merge a.json b.json --out c.json")
    assert code != 0
    assert "sums of amounts" in err
