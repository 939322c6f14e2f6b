"""Counts: a published table, audited by weights, says what its people say one by one, and what the textbook says."""

import math
import runpy
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

from felicific import audit

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "audit_counts.py"
COUNTED = {"sample_weight": "count", "weight_kind": "frequency"}
ASKED = {
    "happiness": {"selected": "decision == 1"},
    "sensitive_features": "group",
}
TABLES = {
    "two groups": [("a", 60, 12), ("b", 45, 20)],
    "not stated and few": [("a", 300, 60), ("b", 250, 70), ("c", 4, 1), ("not stated", 90, 22)],
    "nobody of one, everybody of another": [("a", 40, 0), ("b", 30, 30), ("c", 50, 25)],
}


@pytest.fixture(params=TABLES)
def table(request):
    return pd.DataFrame(TABLES[request.param], columns=["group", "people", "selected"])


def two_rows(table):
    """Those who were selected, and those who were not."""
    chosen = table.assign(decision=1, count=table["selected"])
    return pd.concat([chosen, table.assign(decision=0, count=table["people"] - table["selected"])])


def one_by_one(rows):
    """Everybody in a row of their own."""
    return rows.iloc[np.repeat(np.arange(len(rows)), rows["count"])]


def test_weights_say_what_the_people_say_one_by_one(table):
    """Every number of an audit with its ratios is the same for two rows a group as for a row a person."""
    rows = two_rows(table)
    people = one_by_one(rows)
    assert len(people) == table["people"].sum()
    weighted = audit("decision", rows, **ASKED, **COUNTED).with_ratios().to_dict()
    expanded = audit("decision", people, **ASKED).with_ratios().to_dict()
    assert (weighted.pop("rows"), expanded.pop("rows")) == ((rows["count"] > 0).sum(), len(people))
    (said,) = set(weighted.pop("notes")) - set(expanded.pop("notes"))
    assert f"stand for {len(people):,} people" in said
    assert_alike(weighted, expanded)


def assert_alike(one, other):
    """Insist on the same structure, texts and numbers, but for rounding."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_alike(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    else:
        assert one == other


def test_rates_have_the_exact_binomial_interval(table):
    """Of every group, those not stated too: as scipy's binomial test has it."""
    found = audit("decision", two_rows(table), **ASKED, **COUNTED)["selected"]
    for group, people, selected in table.itertuples(index=False):
        mean = found.means[group]
        exact = stats.binomtest(selected, people).proportion_ci(0.95, method="exact")
        assert (mean.estimate, mean.n) == (pytest.approx(selected / people), people)
        assert (mean.low, mean.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_the_gap_of_two_groups_is_that_of_the_exact_score_test():
    """Where the largest p-value over the second rate, of all tables at least as extreme, is the level."""
    (_, n, x), (_, m, y) = TABLES["two groups"]
    rows = two_rows(pd.DataFrame(TABLES["two groups"], columns=["group", "people", "selected"]))
    gap = audit("decision", rows, **ASKED, **COUNTED)["selected"].gap
    (x, n), (y, m) = sorted([(x, n), (y, m)], key=lambda part: -part[0] / part[1])
    assert gap.estimate == pytest.approx(x / n - y / m)
    z = stats.norm.ppf(0.975)
    p, q = x / n, y / m
    plain = z * math.sqrt(p * (1 - p) / n + q * (1 - q) / m)
    assert gap.high == pytest.approx(p - q + plain, rel=0.05)  # near the usual one, of so many people
    assert gap.low == pytest.approx(p - q - plain, rel=0.1)


def score_limits(x, n, y, m, alpha):
    """Ratios of x of n to y of m that the score test (Miettinen and Nurminen) does not reject, by searching."""

    def away(r):
        def unlikely(q):
            return -sum(
                k * math.log(p) for k, p in ((x, r * q), (n - x, 1 - r * q), (y, q), (m - y, 1 - q)) if k
            )

        top = min(1.0, 1.0 / r)
        q = minimize_scalar(unlikely, bounds=(1e-12, top - 1e-12), options={"xatol": 1e-13}).x
        variance = (r * q * (1 - r * q) / n + r * r * q * (1 - q) / m) * (n + m) / (n + m - 1)
        off = x / n - r * y / m
        corrected = max(abs(off) - 0.3 * (1 / n + r / m), 0.0)
        return math.copysign(corrected, off) / math.sqrt(variance)

    z, ratio = stats.norm.ppf(1 - alpha / 2), x / n * m / y
    return brentq(lambda r: away(r) - z, ratio / 50, ratio), brentq(lambda r: away(r) + z, ratio, ratio * 50)


@pytest.mark.parametrize("name", ["two groups", "not stated and few"])
def test_ratios_are_those_of_the_score_test(name):
    """Each to the highest at 1 - alpha / (groups - 1), the smallest from all pairs; who did not say is in none."""
    found = audit(
        "decision",
        two_rows(pd.DataFrame(TABLES[name], columns=["group", "people", "selected"])),
        groups=[group for group, _, _ in TABLES[name] if group != "not stated"],
        **ASKED,
        **COUNTED,
    )
    ratios = found.ratios["selected"]
    known = {group: (x, n) for group, n, x in TABLES[name] if group != "not stated"}
    assert [row.group for row in ratios.rows] == sorted(known)
    assert [(part.group, part.people) for part in ratios.left_out] == [
        (group, n) for group, n, _ in TABLES[name] if group == "not stated"
    ]
    top = max(known, key=lambda group: known[group][0] / known[group][1])
    for row in ratios.rows:
        if row.group != top:
            limits = score_limits(*known[row.group], *known[top], 0.05 / (len(known) - 1))
            assert (row.low, row.high) == pytest.approx(limits, rel=1e-4)
    pairs = list(permutations(known, 2))
    every = [score_limits(*known[a], *known[b], 0.05 / (len(pairs) / 2)) for a, b in pairs]
    smallest = (min(low for low, _ in every), min(1.0, *(high for _, high in every)))
    assert (ratios.smallest.low, ratios.smallest.high) == pytest.approx(smallest, rel=1e-4)


def test_small_groups_are_left_out_by_name(table):
    """With ``min_people``, and their people and rate are shown; everybody is somewhere."""
    ratios = audit("decision", two_rows(table), **ASKED, **COUNTED).ratios_between(min_people=0.02)[
        "selected"
    ]
    least = 0.02 * table["people"].sum()
    small = {group for group, people, _ in table.itertuples(index=False) if people < least}
    assert {part.group for part in ratios.left_out} == small
    shown = [*ratios.rows, *ratios.left_out]
    assert sum(part.people for part in shown) == table["people"].sum()


def test_the_example_shows_both_comparisons(capsys):
    """All women against all men: shown below four fifths. By department: only A shows a gap, and women lead there."""
    shown = runpy.run_path(str(EXAMPLE))
    ratio = shown["overall"].ratios["admitted"].smallest
    assert ratio.estimate == pytest.approx((557 / 1835) / (1198 / 2691))
    assert ratio.high < 0.8
    gaps = {part.measure.name[-1]: part for part in shown["departments"].measures}
    assert [name for name, part in gaps.items() if part.gap.low > 0] == ["A"]
    assert gaps["A"].means["women"].estimate > gaps["A"].means["men"].estimate
    assert "not stated (905" in capsys.readouterr().out
