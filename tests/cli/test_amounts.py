"""``felicific audit`` and ``felicific compare`` of amounts: the library's, from a file."""

import json

import numpy as np
import pandas as pd
import pytest

from felicific import audit, compare

ASKED = "--group sex --happiness decision --happiness distributional_parity"


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Credit limits of two systems, and what people could have paid back."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    sex = rng.choice(["f", "m"], 600)
    could = rng.gamma(3.0, 900.0, 600).round(2)
    limit = (0.5 * could + 500 * (sex == "m") + rng.normal(900, 200, 600)).round(2)
    people = pd.DataFrame({"sex": sex, "could": could, "limit": limit, "new": limit - 500 * (sex == "m")})
    people["level"] = np.round(people["limit"], -3)
    people.to_csv("limits.csv", index=False)
    people.to_parquet("limits.parquet")
    return people


def close(left, right):
    """Whether two trees of data are the same but for rounding."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(close(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(close, left, right))
    return left == pytest.approx(right, rel=1e-9, abs=1e-12) if isinstance(left, float) else left == right


def test_close_sees_a_difference():
    """The helper tells numbers apart, and trees of other shape."""
    assert not close({"a": [1.0]}, {"a": [1.001]})
    assert not close({"a": [1.0]}, {"a": [1.0, 2.0]})


@pytest.mark.parametrize("file", ["limits.csv", "limits.parquet"])
def test_audit(limits, done, file):
    """Numbers in a file are audited as amounts, and the shell says so in its own words."""
    line = f"audit {file} --decision limit --label could {ASKED} --gap distributional_parity=.05"
    found = json.loads(done(f"{line} --json"))
    asked = {"happiness": ["decision", "distributional_parity"], "sensitive_features": "sex"}
    expected = audit("limit", limits, "could", gap={"distributional_parity": 0.05}, **asked).to_dict()
    assert "--class" in found["notes"][0]
    assert "amounts=" not in found["notes"][0]
    assert close({**found, "notes": []}, {**expected, "notes": []})
    text = done(line)
    assert "furthest apart" in text
    assert "mean squared error" in text


def test_said(limits, done):
    """Few whole numbers are classes unless --amounts says otherwise; --class says so of any."""
    means = {}
    for option in ("", "--amounts"):
        found = json.loads(
            done(f"audit limits.csv --decision level --group sex --happiness decision {option} --json")
        )
        means[option] = [mean["estimate"] for mean in found["components"][0]["means"]]
    assert means[""] == pytest.approx(means["--amounts"], rel=1e-12)
    page = done("audit limits.csv --decision limit --group sex --happiness decision --out page.html")
    assert "Written" in page or "decision" in page


def test_compare(limits, done):
    """Who gains and who loses is counted by what everybody's own amounts are."""
    content = json.loads(done(f"compare limits.csv --before limit --after new --label could {ASKED} --json"))
    asked = {"happiness": ["decision", "distributional_parity"], "sensitive_features": "sex"}
    expected = compare(*(audit(name, limits, "could", **asked) for name in ("limit", "new")))
    assert close({name: content[name] for name in expected.to_dict()}, expected.to_dict())
    lose = {(one["component"], one["group"]): one["lose"] for one in content["who"]}
    assert lose["decision", "m"] == 1.0
    assert lose["decision", "f"] == 0.0
    assert lose["distributional_parity", "f"] is None
    assert {one["group"]: one["changed"] for one in content["changed"]} == {"f": 0.0, "m": 1.0}
    text = done(f"compare limits.csv --before limit --after new {ASKED}")
    assert "gets less than before" in text
