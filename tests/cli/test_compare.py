"""``felicific compare``: the library's comparison, and who gains and who loses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from felicific import Happiness, audit, compare, load
from felicific.exceptions import FittedRowsWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed"),
    pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning"),
]

HAPPINESS = "--group sex --happiness 'decision * loan' --name funding --unit k$"
FIT = f"fit scores.csv --score score --label repaid {HAPPINESS}"


@pytest.fixture
def policies(loans, done):
    """Two policies with one salt, and one with another."""
    done(f"{FIT} --gap .5 --seed 0 --change-cost 0 --out one.json")
    done(f"{FIT} --gap 1.5 --seed 0 --change-cost 0 --out other.json")
    done(f"{FIT} --gap 1.5 --seed 1 --change-cost 0 --out third.json")
    return loans


def drawn_shares(was, then, values, groups, uniforms):
    """By drawing: shares of every group whose decision changes, who gain and who lose."""
    first, second = (
        (u[:, None] >= np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
        for probabilities, u in zip((was, then), uniforms, strict=True)
    )
    rows = np.arange(len(first))
    change = values[rows, second] - values[rows, first]
    told = {"changed": first != second, "gain": change > 0, "lose": change < 0}
    return {name: [one[groups == group].mean() for group in ("Female", "Male")] for name, one in told.items()}


def shares_in(content):
    who = {name: [one[name] for one in content["who"]] for name in ("gain", "lose")}
    return {"changed": [one["changed"] for one in content["changed"]], **who}


def test_comparison_is_the_librarys(policies, done):
    """Of a column and a policy: the paired changes, the gaps of both, as JSON and in the file."""
    line = f"compare scores.csv --before approved --after one.json --score score --label repaid {HAPPINESS}"
    content = json.loads(done(f"{line} --json --out comparison.csv"))
    asked = {
        "happiness": Happiness("decision * loan", name="funding", unit="k$"),
        "sensitive_features": "sex",
    }
    before = audit("approved", policies, "repaid", **asked)
    with pytest.warns(FittedRowsWarning):
        after = audit(load("one.json"), policies, "repaid", score="score", **asked)
    expected = compare(before, after)
    assert {name: content[name] for name in expected.to_dict()} == expected.to_dict()
    assert content["before"]["gaps"] == before.gaps
    assert content["after"]["gaps"] == after.gaps
    table = pd.read_csv("comparison.csv")
    means = table[table["what"] == "mean"]
    # Some versions of pandas read a number one step beside what is written.
    assert means["lose"].tolist() == pytest.approx(shares_in(content)["lose"], rel=1e-15)
    text = done(line)
    assert str(expected) in text
    assert "Before: approved. Afterwards: one.json." in text


@pytest.mark.parametrize(
    ("after", "same"), [("other.json", True), ("third.json", False), ("approved", False)]
)
def test_who_gains_is_who_would(after, same, policies, done):
    """Shares are those of many draws: with one number for both policies of one salt, else with one for each."""
    line = f"compare scores.csv --before one.json --after {after} --score score {HAPPINESS} --json"
    found = shares_in(json.loads(done(line)))
    probabilities = [load("one.json").probabilities(policies["score"], policies["sex"])]
    if after == "approved":
        probabilities.append(np.eye(2)[policies["approved"]])
    else:
        probabilities.append(load(after).probabilities(policies["score"], policies["sex"]))
    values = np.column_stack([np.zeros(len(policies)), policies["loan"]])
    rng = np.random.default_rng(0)
    sums = None
    for _ in range(2_000):
        u = rng.random(len(policies))
        uniforms = (u, u if same else rng.random(len(policies)))
        shares = drawn_shares(*probabilities, values, policies["sex"].to_numpy(), uniforms)
        table = np.array([shares[name] for name in ("changed", "gain", "lose")])
        sums = table if sums is None else sums + table
    np.testing.assert_allclose(
        np.array([found[n] for n in ("changed", "gain", "lose")]), sums / 2_000, atol=2e-3
    )
    independent = "as if the draws of one told nothing" in done(line.removesuffix(" --json"))
    assert independent == (after == "third.json")


def test_the_baseline_is_the_model_by_default_and_weights_count(policies, done):
    """Without --before it is what the model predicts; weight 0 is the row absent, weight 2 the row twice."""
    weights = np.arange(len(policies)) % 3
    policies.assign(weight=weights).to_csv("weighted.csv", index=False)
    policies.loc[policies.index.repeat(weights)].to_csv("repeated.csv", index=False)
    line = f"--after other.json --score score {HAPPINESS} --json"
    weighted = json.loads(done(f"compare weighted.csv --weight weight --weight-kind frequency {line}"))
    repeated = json.loads(done(f"compare repeated.csv {line}"))
    assert weighted["before"]["way"] == "what the model predicts"
    for name in ("changed", "gain", "lose"):
        np.testing.assert_allclose(shares_in(weighted)[name], shares_in(repeated)[name], rtol=1e-9)
    column = json.loads(done(f"compare repeated.csv --before approved {line}"))
    assert shares_in(column) == shares_in(repeated)


def test_what_cannot_be_compared(policies, done, command_line):
    """An unknown column, sums, decisions that the policy does not know: one line, and nothing written."""
    done(f"aggregate scores.csv --score score --label repaid {HAPPINESS} --out sums.json")
    policies.assign(approved="yes").to_csv("words.csv", index=False)
    more = f"--score score {HAPPINESS} --out comparison.json"
    for line, words in (
        ("compare scores.csv --before aproved --after one.json", "Did you mean 'approved'?"),
        ("compare scores.csv --before approved --after sums.json", "holds sums of people"),
        ("compare words.csv --before approved --after one.json", "'yes' stands in the file"),
        ("compare scores.csv --before approved --after one.json --group nobody", "no column 'nobody'"),
    ):
        code, out, err = command_line(f"{line} {more}")
        assert (code, out) == (1, ""), err
        assert words in err, err
        assert not Path("comparison.json").exists()
