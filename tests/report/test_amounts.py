"""The report on amounts: its numbers are the library's, its page is one file that needs no script, names stay text."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from report.test_report import check_page
from reported import HOSTILE, amounts_world, fitted_amounts

from felicific import Floor, Happiness, Score, audit, compare
from felicific.exceptions import DataError, FittedRowsWarning

PEOPLE = 2_000


@pytest.fixture(scope="module")
def others():
    return amounts_world(PEOPLE, 2)


@pytest.fixture(scope="module")
def fair():
    return fitted_amounts()


@pytest.fixture(scope="module")
def found(fair, others):
    X, y, group = others
    return fair.report(X, y, sensitive_features=group, unit="hours", command="python fit.py")


def part_of(content, name):
    """The position of a measure."""
    return [part["name"] for part in content["measures"]].index(name)


# ---------------------------------------------------------------------------------------------------------
# Numbers


def test_the_numbers_are_those_of_an_audit_of_the_same_rows(fair, others, found):
    """Distance, where it is reached, mean amounts and loss, with their intervals, are those of ``audit``."""
    X, y, group = others
    asked = {"happiness": "distributional_parity", "sensitive_features": group, "gap": 0.05}
    for name, amounts in (
        ("baseline", fair.estimator_.predict(X)),
        ("proposed", found_amounts(fair, others)),
    ):
        one, point = audit(amounts, X, y, **asked), found.content["points"][name]
        parity = point["measures"][part_of(found.content, "distributional_parity")]
        gap = one["distributional_parity"].gap
        assert [parity["gap"][end] for end in ("estimate", "low", "high")] == [
            gap.estimate,
            gap.low,
            gap.high,
        ]
        assert parity["at"] == one["distributional_parity"].at
        means = point["measures"][part_of(found.content, "mean amount")]["means"]
        for mean, said in zip(one["mean amount"].means.values(), means, strict=True):
            assert [said[end] for end in ("estimate", "low", "high")] == [mean.estimate, mean.low, mean.high]
        assert point["loss"]["estimate"] == one.loss.estimate
        assert point["root"]["high"] == math.sqrt(one.loss.high)


def found_amounts(fair, others):
    """What the policy gives these people."""
    X, _, group = others
    return fair.predict(X, sensitive_features=group)


def test_changes_are_those_of_the_same_people(fair, others, found):
    """Paired changes of the distance and of the loss are those of ``compare``; of the root they follow its slope."""
    X, y, group = others
    asked = {"happiness": "distributional_parity", "sensitive_features": group}
    baseline, then = fair.estimator_.predict(X), found_amounts(fair, others)
    change, said = (
        compare(audit(baseline, X, y, **asked), audit(then, X, y, **asked)),
        found.content["changes"],
    )
    for one, other in (
        (change.loss, said["cost"]),
        (
            change["distributional_parity"].gap,
            said["measures"][part_of(found.content, "distributional_parity")]["gap"],
        ),
    ):
        assert [other[end] for end in ("estimate", "low", "high")] == [one.estimate, one.low, one.high]
    roots = [math.sqrt(np.mean((amounts - y) ** 2)) for amounts in (baseline, then)]
    assert said["root_cost"]["estimate"] == pytest.approx(roots[1] - roots[0], abs=1e-12)
    slopes = (then - y) ** 2 / (2 * roots[1]) - (baseline - y) ** 2 / (2 * roots[0])
    half = 1.96 * slopes.std() / math.sqrt(PEOPLE)
    for end, sign in (("low", -1), ("high", 1)):
        distance = sign * (said["root_cost"][end] - said["root_cost"]["estimate"])
        assert half * 0.99 < distance < half * 1.2  # two changed people are added, and skewness


def test_who_gets_more_is_counted_one_by_one(fair, others, found):
    """Who gets more and who less than from the baseline, and shares above amounts, of every group, as loops count."""
    X, _, group = others
    baseline, then = fair.estimator_.predict(X), found_amounts(fair, others)
    for told in found.content["groups"]:
        rows = np.flatnonzero(group == told["name"])
        assert told["people"] == len(rows)
        assert told["more"] == sum(then[i] > baseline[i] + 1e-7 for i in rows)
        assert told["less"] == sum(then[i] < baseline[i] - 1e-7 for i in rows)
    spread = found.content["distributions"]
    for name, amounts in (("baseline", baseline), ("proposed", then)):
        for z, told in enumerate(found.content["groups"]):
            own = amounts[group == told["name"]]
            for k in (0, 17, 80, len(spread["amounts"]) - 1):
                share = sum(amount > spread["amounts"][k] for amount in own) / len(own)
                assert spread[name][z][k] == pytest.approx(share, abs=1e-6)


def test_on_the_fitted_people_it_is_what_the_policy_states(fair):
    """There loss and gaps are those of ``impact_``, at all three points, and nothing can be told from them."""
    X, y, group = amounts_world(1_500, 1)
    with pytest.warns(FittedRowsWarning, match="fitted on"):
        report = fair.report(X, y, sensitive_features=group)
    points, outcomes = report.content["points"], fair.impact_
    j = part_of(report.content, "distributional_parity")
    for name, other in (("baseline", "baseline"), ("free", "unconstrained"), ("proposed", "proposed")):
        assert points[name]["loss"]["estimate"] == pytest.approx(outcomes[other].loss, rel=1e-9)
        distance = points[name]["measures"][j]["gap"]["estimate"]
        assert distance == pytest.approx(outcomes[other].distance.value, abs=1e-9)
    assert (report.verdict.kind, report.verdict.reason) == ("unclear", "in-sample")
    assert report.verdict.flags[0].kind == "in-sample"


def test_weights_are_repetitions(fair, others):
    """Weight 2 is the row twice and weight 0 the row absent, in every number of the report."""
    X, y, group = (part[:600] for part in others)
    weight = np.arange(600) % 3
    rows = np.repeat(np.arange(600), weight)
    weighted = fair.report(X, y, sensitive_features=group, sample_weight=weight).content
    repeated = fair.report(X.iloc[rows], y[rows], sensitive_features=group[rows]).content
    assert [one["people"] for one in weighted["groups"]] == [one["people"] for one in repeated["groups"]]
    for name in ("baseline", "free", "proposed"):
        for one, other in zip(
            weighted["points"][name]["measures"], repeated["points"][name]["measures"], strict=True
        ):
            for end in ("estimate", "low", "high"):
                assert one["gap"][end] == pytest.approx(other["gap"][end], rel=1e-9)
    for key in ("cost", "root_cost"):
        assert weighted["changes"][key]["high"] == pytest.approx(repeated["changes"][key]["high"], rel=1e-9)


def test_the_frontier_is_that_of_the_policy_on_these_people(fair, others, found):
    """Loss and distance along it are those of ``fair.at`` on these rows; the dot is where the policy is asked to be."""
    X, y, group = others
    line = found.content["frontier"]
    j = part_of(found.content, "distributional_parity")
    assert line["places"][0] == 0.0
    assert line["places"][-1] == 1.0
    assert line["proposed"] * line["widest"][j] == pytest.approx(0.05)
    k = len(line["places"]) // 2
    other = fair.at(gap=line["places"][k] * line["widest"][j])
    amounts = other.predict(X, sensitive_features=group)
    assert line["loss"][k] == pytest.approx(np.mean((amounts - y) ** 2), rel=1e-9)
    assert line["gaps"][k][j] == pytest.approx(
        audit(amounts, X, happiness="distributional_parity", sensitive_features=group)
        .measures[-1]
        .gap.estimate,
        abs=1e-9,
    )


# ---------------------------------------------------------------------------------------------------------
# Verdicts


def test_the_verdict_says_who_gets_more_and_what_it_costs(found):
    """A distance that is shown to shrink: the sentence has the change, group means and the root of the error."""
    verdict = found.verdict
    assert (verdict.kind, verdict.reason) == ("unpromised", "no certificate")
    assert re.search(
        r"Female \+[\d.]+.hours and Male .[\d.]+.hours", verdict.sentence.replace("\N{MINUS SIGN}", "-")
    )
    assert "root mean squared error goes from" in verdict.sentence
    assert [name for name, _ in verdict.numbers] == [
        "gap in distributional parity", "gap in mean amount", "root mean squared error", "people",
    ]  # fmt: skip
    assert max(map(len, str(found).splitlines())) <= 80
    assert found.content["verdict"] == verdict.to_dict()


def test_what_holds_already_is_left_as_it_is(fair, others):
    """Where the distance that is allowed is shown to hold under the baseline, there is nothing to repair."""
    X, y, group = others
    report = fair.at(gap=0.9).report(X, y, sensitive_features=group)
    assert (report.verdict.kind, report.verdict.reason) == ("leave", "met")


def test_taking_from_a_group_alone_is_called_levelling_down(others):
    """Where amounts may not rise above the lower group's, a gap of what people want closes by levelling down."""
    X, y, group = others
    taking = fitted_amounts(happiness="decision", gap=0.5, decisions=(0.0, 40.5))
    verdict = taking.report(X, y, sensitive_features=group).verdict
    assert verdict.kind == "levels-down"
    neutral = fitted_amounts(gap=0.05, decisions=(0.0, 40.5)).report(X, y, sensitive_features=group)
    assert neutral.verdict.kind == "unpromised"  # of distributions nobody said that people want more
    assert any(flag.kind == "every-group-less" for flag in neutral.verdict.flags)


def test_a_certificate_is_on_the_page(others):
    """What was shown on people held out is promised, with its confidence."""
    X, y, group = others
    sure = fitted_amounts(n=4_000, gap=0.2, confidence=0.9)
    report = sure.report(X, y, sensitive_features=group)
    assert (report.verdict.kind, report.content["certificate"]["basis"]) == ("certified", "held-out test")
    words = check_page(report.to_html()).words
    assert "at most 20\N{NO-BREAK SPACE}%" in words.replace("20 %", "20\N{NO-BREAK SPACE}%")
    assert "tested on people that were held out" in words


def test_other_requirements_are_held_against_these_people(others):
    """A floor that was met at the fit is measured here, against the baseline's means of these people."""
    X, y, group = others
    kept = fitted_amounts(happiness="decision", gap=1.0, constraints=[Floor("decision", at_least="baseline")])
    report = kept.report(X, y, sensitive_features=group)
    rows = report.content["requirements"]
    assert [row["words"] for row in rows] == [
        f"mean 'decision' of group {name!r} at least the baseline's" for name in ("Female", "Male")
    ]
    means = [kept.predict(X, sensitive_features=group)[group == name].mean() for name in ("Female", "Male")]
    assert [row["estimate"] for row in rows] == pytest.approx(means)
    assert "whether these people meet it" in check_page(report.to_html()).words


def test_who_faces_a_lottery_is_counted(others):
    """Of predictions that many share, those who draw their amount are counted, and shown on the page."""
    X, y, group = amounts_world(1_000, 2, steps=8)
    drawn = fitted_amounts(steps=8, gap=0.0)
    report = drawn.report(X, y, sensitive_features=group)
    lucky = drawn.policy_.drawing(
        drawn.estimator_.predict(X), np.array([drawn.groups_.index(one) for one in group])
    )
    assert report.content["randomized"] == len(lucky) > 0
    j = part_of(report.content, "distributional_parity")
    with_lottery, without = (
        one.report(X, y, sensitive_features=group).content["points"]["proposed"]["measures"][j]["gap"]
        for one in (drawn, fitted_amounts(steps=8, gap=0.0, policy=Score(randomize=False)))
    )
    # People who are alike draw each for themselves.
    assert with_lottery["estimate"] < without["estimate"] / 2
    assert 'class="apart"' in report.to_html()


# ---------------------------------------------------------------------------------------------------------
# The page


@pytest.mark.slow
def test_two_runs_make_the_same_bytes():
    """In two processes with different hash seeds, the same inputs give the same page and the same data."""
    code = """
import sys
from reported import amounts_world, fitted_amounts
X, y, group = amounts_world(300, 2)
report = fitted_amounts(n=300).report(X, y, sensitive_features=group)
sys.stdout.write(report.to_html() + report.to_json())
"""
    X, y, group = amounts_world(300, 2)
    mine = fitted_amounts(n=300).report(X, y, sensitive_features=group)
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert other.stdout.decode("utf-8") == mine.to_html() + mine.to_json()


def test_the_page_needs_neither_script_nor_server(found, fair):
    """One file under 1 MB without a script, with all sections, the policy's checksum and its sentences."""
    page = found.to_html()
    seen = check_page(page)
    assert "script" not in seen.tags
    assert len(page.encode()) < 300_000
    sections = [value for name, value in seen.attributes if name == "id"]
    for part in (
        "verdict",
        "card",
        "who",
        "three",
        "promise",
        "policy",
        "spread",
        "choice",
        "sign",
        "appendix",
    ):
        assert part in sections
    assert fair.policy_.sha256 in seen.words
    assert "fair.at(gap=...)" in seen.words
    for rule in fair.policy_.rules(digits=4):
        assert rule in seen.words
    assert seen.words.count("nan") == 0


@pytest.mark.slow
def test_many_groups_and_many_measures(others):
    """Nine groups and two measures stay far under 1 MB; of the groups that are not drawn, it is said how many."""
    names = [f"group {i}" for i in range(9)]
    several = {"money": Happiness("decision", unit="$"), "enough": "decision >= 40"}
    report = fitted_amounts(names, 1_800, happiness=several, gap={"money": 2.0, "enough": 0.2}).report(
        *amounts_world(1_800, 2, names)[:2], sensitive_features=amounts_world(1_800, 2, names)[2]
    )
    page = report.to_html()
    assert len(page.encode()) < 600_000
    assert "4 more groups, whose means are in between, are not drawn." in check_page(page).words
    assert report.content["loss"]["root_unit"] == "$"


def test_hostile_names_stay_text():
    """Groups, measures, units, titles and commands of any content appear as text, and as nothing else."""
    happiness = {HOSTILE[0]: Happiness("decision", unit=HOSTILE[1]), HOSTILE[4]: "distributional_parity"}
    X, y, group = amounts_world(500, 2, HOSTILE)
    bad = fitted_amounts(HOSTILE, 500, happiness=happiness, gap={HOSTILE[0]: 2.0, HOSTILE[4]: 0.3})
    told = {"title": HOSTILE[1], "command": HOSTILE[0], "period": HOSTILE[1], "unit": HOSTILE[0]}
    page = bad.report(X, y, sensitive_features=group, **told).to_html()
    seen = check_page(page)
    assert HOSTILE[0] in seen.words
    assert HOSTILE[1][:20] in seen.words
    assert "{{ 7*7 }}" in seen.words
    assert "x" * 1000 not in page


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"y": None}, "no labels y"),
        ({"unit": 3}, "unit is 3"),
        ({"confidence": 1.5}, "confidence"),
        ({"title": 7}, "title is 7"),
        ({"baseline": [1.0, 2.0]}, "2"),
    ],
)
def test_what_makes_no_sense_is_refused(fair, others, told, words):
    """No labels, units and titles that are no text, a confidence that is none, too few of the baseline's amounts."""
    X, y, group = others
    given = {"y": y, "sensitive_features": group} | told
    with pytest.raises(DataError, match=words):
        fair.report(X, **given)


def test_the_page_of_an_audit_says_where_groups_differ_and_the_root(others):
    """An audit of amounts names the amount at which shares are compared, and the error in the label's unit."""
    X, y, group = others
    one = audit(X["x"], X, y, happiness="distributional_parity", gap=0.1, sensitive_features=group)
    words = check_page(one.to_html()).words
    assert f"Shares of people who get more than {one['distributional_parity'].at:.6g}" in words
    root = math.sqrt(np.mean((X["x"] - y) ** 2))
    assert f"Its root: {root:.2f}," in words
    assert "Loss per person" not in words


def double(decision, x):
    """Amounts count twice above 40."""
    return decision * (1 + (x["x"] > 40))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"happiness": {"pay": double}, "gap": 1.0, "policy": "individual"}, "everything that is known"),
        (
            {
                "happiness": {"pay": double},
                "gap": 2.0,
                "policy": "score",
                "constraints": [Floor("pay", at_least="baseline")],
            },
            "at least the baseline's",
        ),
        (
            {"happiness": "decision", "gap": 2.0, "policy": "score", "sees_group": False},
            "A line for everybody",
        ),
        ({"happiness": "decision", "gap": 2.0, "sees_group": False}, "Infers the group"),
    ],
    ids=["individual", "cells", "blind", "blind individual"],
)
@pytest.mark.filterwarnings("ignore::felicific.exceptions.PolicyWarning")
def test_every_kind_of_policy_has_a_page(others, settings, words):
    """Whether it sees people or predictions, and the group or not: numbers are those of ``predict`` on these rows."""
    X, y, group = (part[:800] for part in others)
    own = fitted_amounts(n=800, **settings)
    report = own.report(X, y, sensitive_features=group)
    amounts = own.predict(X, sensitive_features=group)
    loss = report.content["points"]["proposed"]["loss"]["estimate"]
    assert loss == pytest.approx(np.mean((amounts - y) ** 2), rel=1e-12)
    assert words in check_page(report.to_html()).words
