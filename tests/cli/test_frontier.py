"""``felicific frontier``: unit, group means, price and whom it changes, in the table and in its files."""

import csv
import json

import numpy as np
import pytest

from felicific import Happiness, aggregate, frontier

LINE = (
    "frontier scores.csv --score score --label repaid --group sex --happiness 'decision * loan' --name funding "
    "--unit k$"
)


@pytest.fixture
def line(loans):
    happiness = Happiness("decision * loan", name="funding", unit="k$")
    return frontier(
        aggregate(loans, score="score", y="repaid", sensitive_features="sex", happiness=happiness)
    )


def naive_changed(line, loans):
    """Share of people whose decision is not the baseline's, policy by policy and person by person."""
    found = []
    for policy in line.policies:
        probabilities = policy.probabilities(loans["score"], loans["sex"])
        baseline = (loans["score"] > 0.5).astype(int).to_numpy()
        found.append(1 - probabilities[np.arange(len(baseline)), baseline].mean())
    return found


def test_every_row_says_all_of_it(loans, line, done):
    """In CSV and JSON: means of the groups, prices, the unit and the share of people changed, as by hand."""
    done(f"{LINE} --out frontier.csv")
    content = json.loads(done(f"{LINE} --json"))
    with open("frontier.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(line)
    assert {row["unit of funding"] for row in rows} == {"k$"}
    assert content["units"] == {"funding": "k$"}
    for z, group in enumerate(line.groups):
        means = [float(row[f"mean funding of {group}"]) for row in rows]
        np.testing.assert_allclose(means, line.means[:, z, 0], rtol=1e-6)
        assert content["baseline"]["means"]["funding"][group] == pytest.approx(line.baseline.means[z, 0])
    np.testing.assert_allclose([float(row["changed"]) for row in rows], naive_changed(line, loans), atol=1e-9)
    np.testing.assert_allclose(content["breakpoints"]["changed"], naive_changed(line, loans), atol=1e-9)
    assert rows[0]["largest price"] == ""  # nothing less is for sale
    np.testing.assert_allclose(
        [float(row["largest price"]) for row in rows[1:]], line.prices[1:, 1], rtol=1e-6
    )


def test_the_table_is_read_at_80_columns(loans, line, done):
    """One table for a measure, with its unit, in lines of at most 80 characters; numbers as in the file."""
    text = done(LINE)
    assert max(map(len, text.splitlines())) <= 80
    assert "funding (k$)" in text
    header = next(row for row in text.splitlines() if "accuracy" in row)
    assert header.split() == ["accuracy", "changed", "price", "gap", "Female", "Male"]
    first = next(row for row in text.splitlines() if row.startswith("  breakpoint 1 ")).split()
    changed = naive_changed(line, loans)[0]
    assert first[3] == f"{changed:.2%}"
    assert first[4:6] == ["none", "less"]
    last = next(row for row in text.splitlines() if row.startswith(f"  breakpoint {len(line)} ")).split()
    assert last[4] == f"{line.prices[-1, 1]:.3g}"


def test_many_groups_are_broken_over_tables(loans, done):
    """Columns that do not fit stand in a further table with the places again; every group is there."""
    text = done(LINE.replace("--group sex", "--group sex --group race"))
    assert max(map(len, text.splitlines())) <= 80
    for group in ("Female & a", "Male & d"):
        assert group in text
    assert text.count("  baseline ") > 1
